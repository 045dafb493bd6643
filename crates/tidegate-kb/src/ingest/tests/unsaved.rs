use tidegate_core::{knowledge::DocumentState, port::ChunkStore as _};

use super::world::{Letters, World, coded, owned};

/// The store takes no vector that is longer than the model's others.
#[tokio::test]
async fn what_the_store_does_not_take_is_listed_and_tried_again() {
    let world = World::new();
    world.write("early.md", "# Early\n\nThe kettle whistles.\n");
    let daemon = world.daemon(&Letters::new("letters", 4)).await;
    assert_eq!(daemon.ingest.unsaved(), None);
    daemon.close().await;

    world.write("early.md", "# Early\n\nThe kettle sings by now.\n");
    world.write("late.md", "# Late\n\nThe teapot is chipped.\n");
    let daemon = world.daemon(&Letters::new("letters", 8)).await;
    for _ in 0..2 {
        assert_eq!(
            daemon.state().await,
            (owned(&["early.md"]), coded(&[("late.md", "not_stored")]))
        );
        let late = daemon.store.document("late.md").await.unwrap().unwrap();
        let DocumentState::Failed { reason, .. } = late.state else {
            panic!("{late:?}")
        };
        assert!(reason.contains("a vector of 8 numbers"), "{reason}");
        let unsaved = daemon.ingest.unsaved().unwrap();
        assert!(unsaved.contains(".md` is not in the index"), "{unsaved}");
        assert_eq!(daemon.ingest.progress().borrow().failed, 2);
        daemon.scan().await;
    }
    // What there was before is still found.
    assert_eq!(daemon.found("whistles").await, ["early.md"]);
    daemon.close().await;

    let daemon = world.daemon(&Letters::new("letters", 4)).await;
    assert_eq!(daemon.state().await, (owned(&["early.md", "late.md"]), vec![]));
    assert_eq!(daemon.ingest.unsaved(), None);
    assert_eq!(daemon.found("sings").await, ["early.md"]);
    daemon.close().await;
}

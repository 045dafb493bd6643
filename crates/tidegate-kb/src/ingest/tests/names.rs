//! Names that look alike, and names that are no text, seen by the watcher.

use std::{os::unix::ffi::OsStringExt as _, time::Duration};

use super::world::{Letters, World, coded, owned};
use crate::ingest::Parts;

/// How long taking files in may last on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is seen of one file alone does not say that another one bears the same name.
#[tokio::test]
async fn a_name_that_is_taken_or_no_text_is_told_while_the_folder_is_watched() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    let watching = |parts: &mut Parts| {
        parts.options.watch = true;
        parts.options.debounce_ms = 20;
    };
    let daemon = world.daemon_with(&embedder, watching).await;
    let is = async |indexed: &[&str], failed: &[(&str, &str)]| {
        let expected = (owned(indexed), coded(failed));
        daemon
            .until(&format!("{expected:?}"), async |_| {
                daemon.state().await == expected
            })
            .await;
    };
    world.write("Same.md", "# Same\n\nfirst\n");
    is(&["Same.md"], &[]).await;
    world.write("same.md", "# Same\n\nsecond\n");
    is(&["Same.md"], &[("same.md", "name_collision")]).await;
    let odd = std::ffi::OsString::from_vec(b"odd\xff.md".to_vec());
    std::fs::rename(world.path("same.md"), world.path("").join(odd)).unwrap();
    is(&["Same.md"], &[("odd\u{fffd}.md", "name_not_text")]).await;
    // A file that is renamed to what looks the same has nobody in its way.
    std::fs::rename(world.path("Same.md"), world.path("SAME.md")).unwrap();
    is(&["SAME.md"], &[("odd\u{fffd}.md", "name_not_text")]).await;
    daemon.close().await;
}

/// Which of two names is the first does not depend on the order in which the disk lists them.
#[tokio::test]
async fn a_change_of_the_second_of_two_names_does_not_bring_it_in() {
    const PAIRS: usize = 12;
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    for pair in 0..PAIRS {
        world.write(&format!("n{pair:02}.md"), "# Second\n\nsecond\n");
        world.write(&format!("N{pair:02}.md"), "# First\n\nfirst\n");
    }
    let watching = |parts: &mut Parts| {
        parts.options.watch = true;
        parts.options.debounce_ms = 20;
    };
    let daemon = world.daemon_with(&embedder, watching).await;
    let mut indexed: Vec<String> = (0..PAIRS).map(|pair| format!("N{pair:02}.md")).collect();
    let refused: Vec<String> = (0..PAIRS).map(|pair| format!("n{pair:02}.md")).collect();
    let failed: Vec<(&str, &str)> = refused
        .iter()
        .map(|name| (name.as_str(), "name_collision"))
        .collect();
    let is = async |indexed: &[String]| {
        let names: Vec<&str> = indexed.iter().map(String::as_str).collect();
        let expected = (owned(&names), coded(&failed));
        daemon
            .until(&format!("{expected:?}"), async |_| {
                daemon.state().await == expected
            })
            .await;
    };
    is(&indexed).await;
    for name in &refused {
        world.write(name, "# Second\n\nsecond, and changed\n");
    }
    // What comes later is taken in: the changes before it were judged.
    world.write("z.md", "# Last\n\nlast\n");
    indexed.push("z.md".to_owned());
    is(&indexed).await;
    assert!(daemon.ingest.settled(PATIENCE).await);
    is(&indexed).await;
    assert_eq!(daemon.found("changed").await, owned(&[]));
    daemon.close().await;
}

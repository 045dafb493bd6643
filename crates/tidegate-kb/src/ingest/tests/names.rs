use std::os::unix::ffi::OsStringExt as _;

use super::world::{Letters, World, coded, owned};
use crate::ingest::Parts;

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

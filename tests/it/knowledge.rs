//! The knowledge base: reading documents, searching them, and answers that name them.

mod answers;
mod bad_input;
mod chroma;
mod commands;
mod crash;
mod embed;
mod following;
mod hard_links;
mod parse;
mod unsaved;
mod uploads;

use std::time::{Duration, Instant};

/// How long what happens in the background may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Asks until the answer is good; the last answer that was not is shown where it never is.
async fn wait_until(what: &str, is_so: impl AsyncFn() -> Result<(), String>) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(found) = is_so().await {
        assert!(Instant::now() < deadline, "{what}: {found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

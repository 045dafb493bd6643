//! The contract of an index over vectors before a real Chroma: `chroma_contract URL`. It makes collections of its own and
//! leaves them there. Ends with the line `N passed, N failed`.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "these are tests, run by a command of their own"
)]

#[path = "../tests/vectors/contract.rs"]
mod contract;

use std::{process::ExitCode, sync::Arc, time::Instant};

use tidegate_core::clock::{Clock, Timestamp};
use tidegate_kb::{
    chroma::{Chroma, Options},
    index::VectorIndex,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// It never gets later, so that what has failed once stays so.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: chroma_contract URL");
        return ExitCode::FAILURE;
    };
    let Ok(runtime) = tokio::runtime::Runtime::new() else {
        return ExitCode::FAILURE;
    };
    let (mut passed, mut failed) = (0, 0);
    for name in contract::CASES {
        let begin = Instant::now();
        let outcome = runtime.block_on(runtime.handle().spawn(case(name, url.clone())));
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{word:<6} {name} ({} ms)", begin.elapsed().as_millis());
        passed += usize::from(outcome.is_ok());
        failed += usize::from(outcome.is_err());
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn case(name: &'static str, url: String) {
    let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
    contract::run(name, &|store, name| {
        let options = Options {
            url: url.clone(),
            collection: format!("contract-{name}"),
            // A machine that is busy is no failure of the contract.
            timeout_ms: 60_000,
            ..Options::default()
        };
        let index = Chroma::new(store, options, Arc::new(Still)).unwrap_or_else(|error| panic!("{error}"));
        let index = Arc::new(index);
        tracker.spawn(Arc::clone(&index).keep_up(shutdown.clone()));
        index as Arc<dyn VectorIndex>
    })
    .await;
    shutdown.cancel();
    tracker.close();
    tracker.wait().await;
}

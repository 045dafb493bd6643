//! The contract of an index over vectors, held by the one in memory and by the one in Chroma before a scripted server.
//! Before a real one: `cargo xtask test --only chroma`.

// `cfg(test)` is always on here; it tells clippy that the contract belongs to tests, too.
#[cfg(test)]
#[path = "vectors/contract.rs"]
mod contract;

use std::sync::Arc;

use tidegate_core::clock::{Clock, Timestamp};
use tidegate_kb::{
    chroma::{Chroma, Options},
    index::VectorIndex,
    matrix::Embedded,
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

#[tokio::test]
async fn the_index_in_memory_keeps_the_contract() {
    for name in contract::CASES {
        contract::run(name, &|store, _| Arc::new(Embedded::new(store))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_in_chroma_keeps_the_contract_before_a_scripted_server() {
    let server = tidegate_testkit::Chroma::start().await.unwrap();
    let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
    for name in contract::CASES {
        contract::run(name, &|store, name| {
            let options = Options {
                url: server.url(),
                collection: format!("contract-{name}"),
                timeout_ms: 60_000,
                ..Options::default()
            };
            let index = Arc::new(Chroma::new(store, options, Arc::new(Still)).unwrap());
            tracker.spawn(Arc::clone(&index).keep_up(shutdown.clone()));
            index as Arc<dyn VectorIndex>
        })
        .await;
    }
    shutdown.cancel();
    tracker.close();
    tracker.wait().await;
}

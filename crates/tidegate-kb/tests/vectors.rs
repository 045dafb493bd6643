//! The contract of an index over vectors, held by the one in memory. The one in Chroma holds the same before a real
//! server: `cargo xtask test --only chroma`.

#[path = "vectors/contract.rs"]
mod contract;

use std::sync::Arc;

use tidegate_kb::matrix::Embedded;

#[tokio::test]
async fn the_index_in_memory_keeps_the_contract() {
    for name in contract::CASES {
        contract::run(name, &|store, _| Arc::new(Embedded::new(store))).await;
    }
}

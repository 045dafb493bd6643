//! What the store adds to a request. Prints numbers and asserts none: a loaded machine is no failure. Run
//! with `cargo test --release -p tidegate-store bench -- --nocapture`.

use std::time::{Duration, Instant};

use jiff::civil::date;
use serde_json::json;
use tidegate_core::{
    id::{KeyId, RunId},
    port::{KeyStore, Ledger, RunStore},
    run::{RunState, Stage},
};

use crate::{
    conformance::{cost, end, key, line, run},
    tests::{Opened, folder},
};

const TURNS: usize = 500;

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)];
    println!(
        "{what:<28} p50 {:>9.1?}  p99 {:>9.1?}  n {}",
        at(50),
        at(99),
        took.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_request_after_the_other() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let store = &opened.store;
    let (key_id, day) = (KeyId::new("k1"), date(2027, 1, 15));
    store.insert(&key("k1", 0)).await.unwrap();
    let state = json!({"messages": "x".repeat(4_000)});
    let [mut finds, mut opens, mut closes, mut reserves] = [const { Vec::new() }; 4];
    for turn in 0..TURNS {
        let begun = Instant::now();
        assert!(KeyStore::find(store, &key_id).await.unwrap().is_some());
        finds.push(begun.elapsed());
        let id = format!("run_{turn}");
        let (record, first) = (
            run(&id, "k1", "ann"),
            line(0, Stage::BeforeModel { round: 1 }, Some(state.clone())),
        );
        let begun = Instant::now();
        store.open(&record, &first).await.unwrap();
        opens.push(begun.elapsed());
        let begun = Instant::now();
        store.reserve(&key_id, day, None, 500).await.unwrap();
        store.record(cost("k1", "ann", 300, 100));
        reserves.push(begun.elapsed());
        let begun = Instant::now();
        store
            .close(&RunId::new(id), &end(1, RunState::Completed))
            .await
            .unwrap();
        closes.push(begun.elapsed());
    }
    println!();
    report("KeyStore::find", finds);
    report("RunStore::open (4 KB state)", opens);
    report("Ledger::reserve + record", reserves);
    report("RunStore::close", closes);
    assert_eq!(store.spent_tokens(&key_id, day), TURNS as u64 * 400);
    opened.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_requests_at_a_time() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let mut tasks = tokio::task::JoinSet::new();
    let all = Instant::now();
    for task in 0..16 {
        let store = opened.store.clone();
        tasks.spawn(async move {
            let mut took = Vec::new();
            for turn in 0..TURNS / 4 {
                let id = format!("run_{task}_{turn}");
                let begun = Instant::now();
                let first = line(0, Stage::BeforeModel { round: 1 }, None);
                store.open(&run(&id, "k1", "ann"), &first).await.unwrap();
                store
                    .close(&RunId::new(id), &end(1, RunState::Completed))
                    .await
                    .unwrap();
                took.push(begun.elapsed());
            }
            took
        });
    }
    let mut took = Vec::new();
    while let Some(task) = tasks.join_next().await {
        took.extend(task.unwrap());
    }
    let per_second = took.len() as u128 * 1_000 / all.elapsed().as_millis().max(1);
    println!();
    report("open + close, 16 at a time", took);
    println!("runs a second {per_second}");
    opened.close().await;
}

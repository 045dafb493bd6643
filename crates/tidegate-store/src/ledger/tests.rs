use jiff::civil::date;
use tidegate_core::{
    id::KeyId,
    port::{Ledger, LedgerError},
};

use crate::{
    Options,
    conformance::cost,
    tests::{Opened, folder},
};

const DAY: jiff::civil::Date = date(2027, 1, 15);

fn key_id() -> KeyId {
    KeyId::new("k1")
}

/// A crash without one: the store is dropped with its worker, and nothing is flushed or closed.
async fn crash_after(path: &std::path::Path, limit: Option<u64>, estimate: u64, spend: u64) {
    let options = Options {
        path: path.to_owned(),
        flush_interval_ms: 3_600_000,
        ..Options::default()
    };
    let (store, worker) = crate::Store::open(options, std::sync::Arc::new(crate::tests::Morning))
        .await
        .unwrap();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(worker.run(shutdown));
    store.reserve(&key_id(), DAY, limit, estimate).await.unwrap();
    store.record(cost("k1", "ann", spend, 0));
    tasks.shutdown().await;
}

#[tokio::test]
async fn an_open_block_counts_as_spent_after_a_crash_and_is_shown_as_estimated() {
    let (_folder, path) = folder();
    crash_after(&path, Some(32_000), 500, 400).await;
    let next = Opened::at(&path).await;
    assert_eq!(
        next.store.spent_tokens(&key_id(), DAY),
        2_000,
        "known before the first call"
    );
    let shown = next.store.usage(&key_id(), DAY, DAY).await.unwrap();
    assert_eq!((shown[0].calls, shown[0].estimated_tokens), (0, 2_000));
    next.store
        .reserve(&key_id(), DAY, Some(32_000), 500)
        .await
        .unwrap();
    next.store.record(cost("k1", "ann", 100, 0));
    assert_eq!(next.store.spent_tokens(&key_id(), DAY), 2_100);
    let shown = next.store.usage(&key_id(), DAY, DAY).await.unwrap();
    assert_eq!(
        (shown[0].calls, shown[0].input_tokens, shown[0].estimated_tokens),
        (1, 100, 2_000)
    );
    next.close().await;

    let last = Opened::at(&path).await;
    assert_eq!(
        last.store.spent_tokens(&key_id(), DAY),
        2_100,
        "a clean end gives the block back"
    );
    let refused = last.store.reserve(&key_id(), DAY, Some(2_100), 1).await;
    assert!(matches!(refused, Err(LedgerError::QuotaSpent { .. })));
    last.close().await;
}

#[tokio::test]
async fn a_crash_never_makes_room() {
    let (_folder, path) = folder();
    for crash in 1..=3 {
        crash_after(&path, None, 500, 500).await;
        let next = Opened::at(&path).await;
        assert_eq!(next.store.spent_tokens(&key_id(), DAY), crash * 20_000);
        next.close().await;
    }
}

#[tokio::test]
async fn calls_that_start_together_overrun_a_quota_by_one_at_most() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let store = opened.store.clone();
        calls.spawn(async move {
            let allowed = store.reserve(&key_id(), DAY, Some(1_000), 300).await;
            if allowed.is_ok() {
                tokio::task::yield_now().await;
                store.record(cost("k1", "ann", 200, 10));
            }
            allowed.is_ok()
        });
    }
    let mut allowed = 0;
    while let Some(call) = calls.join_next().await {
        allowed += u64::from(call.unwrap());
    }
    assert_eq!(opened.store.spent_tokens(&key_id(), DAY), allowed * 210);
    assert_eq!(allowed, 5, "1000 tokens are spent by the fifth call of 210");
    opened.close().await;
}

#[tokio::test]
async fn a_call_that_never_reports_is_given_up() {
    let (_folder, path) = folder();
    let options = Options {
        path,
        reservation_ttl_ms: 20,
        ..Options::default()
    };
    let opened = Opened::with(options).await;
    opened
        .store
        .reserve(&key_id(), DAY, Some(100), 100)
        .await
        .unwrap();
    opened
        .store
        .reserve(&key_id(), DAY, Some(100), 100)
        .await
        .unwrap();
    opened.close().await;

    let (_folder, path) = folder();
    let options = Options {
        path,
        reservation_wait_ms: 20,
        ..Options::default()
    };
    let opened = Opened::with(options).await;
    opened
        .store
        .reserve(&key_id(), DAY, Some(100), 100)
        .await
        .unwrap();
    let refused = opened.store.reserve(&key_id(), DAY, Some(100), 100).await;
    assert!(matches!(
        refused,
        Err(LedgerError::QuotaSpent { limit_tokens: 100 })
    ));
    opened.close().await;
}

#[tokio::test]
async fn rows_beyond_the_bound_are_counted_without_an_item() {
    let (_folder, path) = folder();
    let options = Options {
        path: path.clone(),
        usage_rows_max: 2,
        flush_interval_ms: 3_600_000,
        ..Options::default()
    };
    let opened = Opened::with(options).await;
    opened.store.reserve(&key_id(), DAY, None, 10).await.unwrap();
    // The first tick comes at once; whether it takes the first rows is a matter of chance.
    for _ in 0..5 {
        opened.store.record(cost("k1", "ann", 10, 0));
    }
    assert_eq!(opened.store.spent_tokens(&key_id(), DAY), 50);
    opened.close().await;
    let next = Opened::at(&path).await;
    assert_eq!(next.store.spent_tokens(&key_id(), DAY), 50);
    let shown = next.store.usage(&key_id(), DAY, DAY).await.unwrap();
    assert_eq!(shown[0].input_tokens + shown[0].estimated_tokens, 50);
    next.close().await;
}

#[tokio::test]
async fn days_that_are_over_are_closed_and_forgotten() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let old = date(2027, 1, 13);
    opened.store.reserve(&key_id(), old, None, 10).await.unwrap();
    let mut record = cost("k1", "ann", 10, 0);
    record.day = old;
    opened.store.record(record);
    opened.store.reserve(&key_id(), DAY, None, 10).await.unwrap();
    opened.store.flush_tick().await.unwrap();
    assert!(opened.store.book().known(&key_id(), old).is_none());
    assert!(opened.store.book().known(&key_id(), DAY).is_some());
    let shown = opened.store.usage(&key_id(), old, DAY).await.unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].input_tokens, shown[0].estimated_tokens), (10, 0));
    opened.close().await;
}

#[tokio::test]
async fn old_usage_is_pruned_by_day() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let old = date(2026, 12, 31);
    for day in [old, DAY] {
        opened.store.reserve(&key_id(), day, None, 10).await.unwrap();
        for _ in 0..600 {
            let mut record = cost("k1", "ann", 1, 0);
            record.day = day;
            opened.store.record(record);
        }
    }
    opened.store.flush().await.unwrap();
    assert_eq!(opened.store.prune_usage(DAY).await.unwrap(), 600);
    let shown = opened.store.usage(&key_id(), old, DAY).await.unwrap();
    assert_eq!(
        shown.iter().map(|day| (day.day, day.calls)).collect::<Vec<_>>(),
        [(DAY, 600)]
    );
    opened.close().await;
}

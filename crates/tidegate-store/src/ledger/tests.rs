use jiff::civil::date;
use tidegate_core::{
    id::KeyId,
    port::{Ledger, LedgerError, Need},
};

use crate::{
    Options,
    conformance::{booked, cost},
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
    let reservation = store.reserve(&key_id(), DAY, limit, estimate).await.unwrap();
    store.record(booked(cost("k1", "ann", spend, 0), reservation));
    tasks.shutdown().await;
}

#[tokio::test]
async fn an_open_block_counts_as_spent_after_a_crash_and_is_shown_as_estimated() {
    let (_folder, path) = folder();
    crash_after(&path, Some(32_000), 500, 400).await;
    let next = Opened::at(&path).await;
    assert_eq!(
        next.store.spent_tokens(&key_id(), DAY),
        2_500,
        "known before the first call"
    );
    let shown = next.store.usage(&key_id(), DAY, DAY).await.unwrap();
    assert_eq!((shown[0].calls, shown[0].estimated_tokens), (0, 2_500));
    let reservation = next
        .store
        .reserve(&key_id(), DAY, Some(32_000), 500)
        .await
        .unwrap();
    next.store.record(booked(cost("k1", "ann", 100, 0), reservation));
    assert_eq!(next.store.spent_tokens(&key_id(), DAY), 2_600);
    let shown = next.store.usage(&key_id(), DAY, DAY).await.unwrap();
    assert_eq!(
        (shown[0].calls, shown[0].input_tokens, shown[0].estimated_tokens),
        (1, 100, 2_500)
    );
    next.close().await;

    let last = Opened::at(&path).await;
    assert_eq!(
        last.store.spent_tokens(&key_id(), DAY),
        2_600,
        "a clean end gives the block back"
    );
    let refused = last.store.reserve(&key_id(), DAY, Some(2_600), 1).await;
    assert!(matches!(refused, Err(LedgerError::QuotaSpent { .. })));
    last.close().await;
}

#[tokio::test]
async fn a_crash_never_makes_room() {
    let (_folder, path) = folder();
    for crash in 1..=3 {
        crash_after(&path, None, 500, 500).await;
        let next = Opened::at(&path).await;
        assert_eq!(next.store.spent_tokens(&key_id(), DAY), crash * 20_500);
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
            let Ok(reservation) = allowed else { return false };
            tokio::task::yield_now().await;
            store.record(booked(cost("k1", "ann", 200, 10), reservation));
            true
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
        Err(LedgerError::QuotaSpent {
            limit_tokens: 100,
            ..
        })
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
    // A tick of the worker's own may be under way: what it has in hand is forgotten by a later one.
    while opened.store.book().known(&key_id(), old).is_some() {
        opened.store.flush_tick().await.unwrap();
        tokio::task::yield_now().await;
    }
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

/// Numbers that no call can have, of one key, hold up neither it nor another one.
#[tokio::test]
async fn absurd_numbers_break_nothing() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    for _ in 0..2 {
        opened.store.record(cost("k1", "ann", u64::MAX, u64::MAX));
        opened.store.flush_rows().await.unwrap();
    }
    opened.store.record(cost("k2", "bob", 1, 0));
    opened.store.flush().await.unwrap();
    let k2 = KeyId::new("k2");
    let shown = opened.store.usage(&k2, DAY, DAY).await.unwrap();
    assert_eq!((shown[0].calls, shown[0].input_tokens), (1, 1));
    let shown = opened.store.usage(&key_id(), DAY, DAY).await.unwrap();
    assert_eq!((shown[0].calls, shown[0].input_tokens), (2, 2 << 40));
    let refused = opened.store.reserve(&key_id(), DAY, Some(1_000_000), 1).await;
    assert!(matches!(refused, Err(LedgerError::QuotaSpent { .. })));
    opened.close().await;

    let next = Opened::at(&path).await;
    assert_eq!(next.store.spent_tokens(&key_id(), DAY), 4 << 40);
    assert_eq!(next.store.usage(&k2, DAY, DAY).await.unwrap().len(), 1);
    next.store.reserve(&key_id(), DAY, None, u64::MAX).await.unwrap();
    next.store.record(cost("k1", "ann", 1, 0));
    next.close().await;
}

/// A database from before such numbers were cut.
#[tokio::test]
async fn a_day_that_is_full_already_takes_more() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    opened.store.record(cost("k1", "ann", 1, 0));
    opened.close().await;
    let options = Options {
        path: path.clone(),
        ..Options::default()
    };
    let mut writer = crate::files::writer(&options).await.unwrap();
    for sql in [
        "UPDATE usage SET input_tokens = 9223372036854775807, output_tokens = 9223372036854775807",
        "INSERT INTO usage SELECT 99, at, day, key_id, user_id, run_id, provider, model, role, input_tokens, \
         output_tokens, 0, 0, 0 FROM usage",
        "UPDATE quota_days SET settled_tokens = 9223372036854775807, estimated_tokens = 9223372036854775807, \
         reserved_tokens = 9223372036854775807",
    ] {
        sqlx::query(sql).execute(&mut writer).await.unwrap();
    }
    drop(writer);

    let next = Opened::at(&path).await;
    next.store.record(cost("k1", "ann", 5, 0));
    next.store.record(cost("k2", "bob", 5, 0));
    assert_eq!(next.store.usage(&key_id(), DAY, DAY).await.unwrap()[0].calls, 3);
    next.store.reserve(&key_id(), DAY, None, 10).await.unwrap();
    next.store.record(cost("k1", "ann", 5, 0));
    next.store.flush().await.unwrap();
    assert_eq!(next.store.usage(&key_id(), DAY, DAY).await.unwrap()[0].calls, 4);
    let shown = next.store.usage(&KeyId::new("k2"), DAY, DAY).await.unwrap();
    assert_eq!(shown[0].input_tokens, 5);
    next.close().await;
}

#[tokio::test]
async fn a_row_that_is_refused_holds_up_no_other() {
    let (_folder, path) = folder();
    let options = Options {
        path: path.clone(),
        flush_interval_ms: 3_600_000,
        ..Options::default()
    };
    let opened = Opened::with(options.clone()).await;
    let mut writer = crate::files::writer(&options).await.unwrap();
    sqlx::query(
        "CREATE TRIGGER refuse BEFORE INSERT ON usage WHEN new.user_id LIKE '%mallory' \
         BEGIN SELECT RAISE(ABORT, 'not this one'); END",
    )
    .execute(&mut writer)
    .await
    .unwrap();
    drop(writer);
    for name in ["ann", "mallory", "bob"] {
        opened.store.record(cost("k1", name, 10, 0));
    }
    opened.store.flush().await.unwrap();
    let shown = opened.store.usage(&key_id(), DAY, DAY).await.unwrap();
    assert_eq!(
        (shown[0].calls, shown[0].input_tokens, shown[0].estimated_tokens),
        (2, 20, 10)
    );
    opened.close().await;
}

/// Large calls that take long, and small ones that end at once: each small one frees what it reserved and no
/// more, so that at most one call begins beyond what is left.
#[tokio::test]
async fn small_calls_that_end_early_make_no_room_for_large_ones() {
    const LIMIT: u64 = 100_000;
    const LARGE: u64 = 30_000;
    let (_folder, path) = folder();
    let options = Options {
        path,
        reservation_wait_ms: 20,
        ..Options::default()
    };
    let opened = Opened::with(options).await;
    let store = &opened.store;
    let mut under_way = Vec::new();
    for _ in 0..20 {
        if let Ok(large) = store.reserve(&key_id(), DAY, Some(LIMIT), LARGE).await {
            under_way.push(large);
        }
        if let Ok(small) = store.reserve(&key_id(), DAY, Some(LIMIT), 10).await {
            store.record(booked(cost("k1", "ann", 10, 0), small));
        }
    }
    for large in under_way {
        store.record(booked(cost("k1", "ann", LARGE, 0), large));
    }
    let spent = store.spent_tokens(&key_id(), DAY);
    assert!((LIMIT..LIMIT + LARGE).contains(&spent), "{spent}");
    opened.close().await;
}

/// A linear congruential generator: the same numbers in every run.
fn next(seed: &mut u64, below: u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

/// Sixteen people with one key, prompts and answers of all lengths: as long as each call keeps within what it
/// was granted nothing is overrun at all, and in the end the quota is used and not held by anybody.
#[tokio::test]
async fn calls_that_keep_within_their_grant_never_overrun_a_quota() {
    for (round, limit) in [(1_u64, 900_u64), (2, 5_000), (3, 20_000)] {
        let (_folder, path) = folder();
        let opened = Opened::at(&path).await;
        let mut calls = tokio::task::JoinSet::new();
        for caller in 0..16 {
            let (store, mut seed) = (opened.store.clone(), round * 100 + caller);
            calls.spawn(async move {
                let mut lowered = 0;
                loop {
                    let prompt = 1 + next(&mut seed, 60);
                    let need = Need {
                        least_tokens: prompt + 1,
                        most_tokens: prompt + 1 + next(&mut seed, 700),
                    };
                    let asked = store.reserve_up_to(&key_id(), DAY, Some(limit), need).await;
                    let Ok(grant) = asked else { return lowered };
                    assert!((need.least_tokens..=need.most_tokens).contains(&grant.tokens));
                    lowered += u64::from(grant.tokens < need.most_tokens);
                    for _ in 0..next(&mut seed, 4) {
                        tokio::task::yield_now().await;
                    }
                    let answer = next(&mut seed, grant.tokens - prompt + 1);
                    store.record(booked(cost("k1", "ann", prompt, answer), grant.reservation));
                }
            });
        }
        let mut lowered = 0;
        while let Some(of_one) = calls.join_next().await {
            lowered += of_one.unwrap();
        }
        let spent = opened.store.spent_tokens(&key_id(), DAY);
        assert!(spent <= limit, "{spent} of {limit}");
        assert!(
            limit - spent < 62,
            "{spent} of {limit}: what is left is too little for a call"
        );
        assert!(lowered > 0, "the last calls make do with what is left");
        opened.close().await;
    }
}

/// Models that do not keep to what they are told: whatever one takes beyond its grant, no other call began in
/// what it was going to take.
#[tokio::test]
async fn calls_that_take_more_than_granted_overrun_a_quota_by_one() {
    const LIMIT: u64 = 3_000;
    const TAKEN: u64 = 900;
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let store = opened.store.clone();
        calls.spawn(async move {
            let need = Need {
                least_tokens: 51,
                most_tokens: TAKEN,
            };
            while let Ok(grant) = store.reserve_up_to(&key_id(), DAY, Some(LIMIT), need).await {
                tokio::task::yield_now().await;
                store.record(booked(cost("k1", "ann", 50, TAKEN - 50), grant.reservation));
            }
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    let spent = opened.store.spent_tokens(&key_id(), DAY);
    assert!((LIMIT..LIMIT + TAKEN).contains(&spent), "{spent}");
    opened.close().await;
}

/// A long answer was reserved and a short one came: a crash long after it costs a block, not the long answer.
#[tokio::test]
async fn what_a_call_did_not_take_is_given_back_on_the_disk_too() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let need = Need {
        least_tokens: 51,
        most_tokens: 20_000,
    };
    let grant = opened
        .store
        .reserve_up_to(&key_id(), DAY, Some(32_000), need)
        .await
        .unwrap();
    opened.store.flush_tick().await.unwrap();
    assert_eq!(reserved(&path).await, 22_000, "it is under way");
    opened
        .store
        .record(booked(cost("k1", "ann", 50, 50), grant.reservation));
    opened.store.flush_tick().await.unwrap();
    assert_eq!(reserved(&path).await, 2_100);
    opened.close().await;
}

/// How far tokens are reserved on the disk.
async fn reserved(path: &std::path::Path) -> i64 {
    let options = Options {
        path: path.to_owned(),
        ..Options::default()
    };
    let mut reader = crate::files::writer(&options).await.unwrap();
    sqlx::query_scalar("SELECT reserved_tokens FROM quota_days")
        .fetch_one(&mut reader)
        .await
        .unwrap()
}

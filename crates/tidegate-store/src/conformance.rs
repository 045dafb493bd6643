//! What every store behind the ports must do, written against the ports alone: another database's adapter
//! is held to the same functions.

mod approvals;
pub(crate) mod knowledge;
pub(crate) mod memory;

use std::collections::BTreeMap;

use futures_util::future::join_all;
use jiff::civil::date;
use serde_json::json;
use tidegate_core::{
    caller::{Mode, Origin, Scope},
    clock::Timestamp,
    error::StoreError,
    id::{CallId, KeyId, RequestId, RunId, UserId},
    key::{Disconnect, KeyPolicy, KeyRecord},
    message::Message,
    port::{
        HeldTurn, HeldTurnStore, KeyRemoval, KeyStore, LastAdmin, Ledger, LedgerError, PageRequest,
        PolicyChange, Reservation, RunStore, UsageRecord,
    },
    run::{Checkpoint, RunEnd, RunRecord, RunState, Stage},
    secret::HashedKey,
    usage::{Role, Usage},
};

pub(crate) use approvals::{approvals_are_spent_once, approvals_end};

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(crate) fn key(id: &str, second: i64) -> KeyRecord {
    KeyRecord {
        id: KeyId::new(id),
        hash: HashedKey::from_digest([1; 32]),
        previous: None,
        created_at: at(second),
        last_used_at: None,
        policy: KeyPolicy::new(format!("key {id}")),
    }
}

pub(crate) fn user(key: &str, name: &str) -> UserId {
    UserId::of(&KeyId::new(key), Some(name)).unwrap()
}

pub(crate) fn run(id: &str, key: &str, user_name: &str) -> RunRecord {
    RunRecord {
        id: RunId::new(id),
        request_id: RequestId::new("req_1"),
        key_id: KeyId::new(key),
        user: user(key, user_name),
        origin: Origin::Http,
        model: "tidegate".to_owned(),
        created_at: at(0),
    }
}

pub(crate) fn line(second: i64, stage: Stage, kept: Option<serde_json::Value>) -> Checkpoint {
    Checkpoint {
        at: at(second),
        stage,
        state: kept,
    }
}

pub(crate) fn before(call: &str) -> Stage {
    Stage::BeforeEffect {
        call_id: CallId::new(call),
        tool: "write_file".to_owned(),
    }
}

pub(crate) fn after(call: &str) -> Stage {
    Stage::AfterEffect {
        call_id: CallId::new(call),
        tool: "write_file".to_owned(),
        status: "ok".to_owned(),
    }
}

pub(crate) fn end(second: i64, state: RunState) -> RunEnd {
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cached_tokens: 3,
        reasoning_tokens: 2,
        estimated: true,
    };
    RunEnd {
        at: at(second),
        state,
        outcome: "answered".to_owned(),
        usage,
    }
}

/// The cost of a call that tokens were reserved for.
pub(crate) fn booked(record: UsageRecord, reservation: Reservation) -> UsageRecord {
    UsageRecord {
        reservation: Some(reservation),
        ..record
    }
}

pub(crate) fn cost(key: &str, user_name: &str, input_tokens: u64, output_tokens: u64) -> UsageRecord {
    UsageRecord {
        at: at(0),
        day: date(2027, 1, 15),
        key_id: KeyId::new(key),
        user: user(key, user_name),
        run_id: RunId::new("run_1"),
        provider: "local".to_owned(),
        model: "small".to_owned(),
        role: Role::Main,
        usage: Usage {
            input_tokens,
            output_tokens,
            ..Usage::default()
        },
        reservation: None,
    }
}

/// Every field of a key comes back as it went in.
pub(crate) async fn keys_round_trip(store: &dyn KeyStore) {
    let plain = key("plain", 1);
    let mut full = key("full", 2);
    full.policy = KeyPolicy {
        name: "école \"β\" \u{1F30A}".to_owned(),
        scopes: [Scope::Chat, Scope::Admin].into(),
        enabled: false,
        expires_at: Some("9999-12-30T00:00:00.123456Z".parse().unwrap()),
        requests_per_minute: Some(u32::MAX),
        tokens_per_day: Some(0),
        models: Some(vec![]),
        tools: Some(vec!["a".to_owned(), "b'; DROP TABLE keys; --".to_owned()]),
        mode_ceiling: Mode::PlanOnly,
        on_disconnect: Disconnect::Finish,
        metadata: BTreeMap::from([("team".to_owned(), "x".to_owned())]),
    };
    for key in [&plain, &full] {
        store.insert(key).await.unwrap();
        assert_eq!(store.find(&key.id).await.unwrap().as_ref(), Some(key));
    }
    assert!(matches!(
        store.insert(&plain).await,
        Err(StoreError::Duplicate(_))
    ));
    assert_eq!(store.find(&KeyId::new("nobody")).await.unwrap(), None);

    let changed = KeyRecord {
        policy: full.policy.clone(),
        ..plain.clone()
    };
    // The second one expects what was there before the first.
    for expected in [
        PolicyChange::Changed(changed.clone()),
        PolicyChange::Conflict(changed.clone()),
    ] {
        let set = store
            .set_policy(&plain.id, &plain.policy, &full.policy, LastAdmin::MayGo)
            .await;
        assert_eq!(set.unwrap(), expected);
        assert_eq!(store.find(&plain.id).await.unwrap().as_ref(), Some(&changed));
    }
    let nobody = KeyId::new("nobody");
    let set = store
        .set_policy(&nobody, &plain.policy, &full.policy, LastAdmin::MayGo)
        .await;
    assert_eq!(set.unwrap(), PolicyChange::Missing);

    let new = HashedKey::from_digest([2; 32]);
    let rotated = store.rotate(&full.id, new, at(60)).await.unwrap().unwrap();
    let previous = rotated.previous.unwrap();
    assert_eq!(
        (rotated.hash, previous.hash, previous.valid_until),
        (new, full.hash, at(60))
    );
    assert_eq!(store.find(&full.id).await.unwrap(), Some(rotated));
    assert_eq!(
        store.rotate(&KeyId::new("nobody"), new, at(60)).await.unwrap(),
        None
    );

    for expected in [KeyRemoval::Removed, KeyRemoval::Missing] {
        assert_eq!(store.delete(&full.id, LastAdmin::MayGo).await.unwrap(), expected);
    }
    assert_eq!(store.find(&full.id).await.unwrap(), None);
}

/// Of many who would make the first key, one does.
pub(crate) async fn one_first_key(store: &dyn KeyStore) {
    let keys: Vec<_> = (0..8).map(|n| key(&format!("first{n}"), n)).collect();
    let made = join_all(keys.iter().map(|key| store.insert_first(key))).await;
    assert_eq!(made.into_iter().filter(|made| *made.as_ref().unwrap()).count(), 1);
}

/// Pages meet end to end in both orders, also where keys were made in the same instant.
pub(crate) async fn pages_meet(store: &dyn KeyStore) {
    for n in 0..7 {
        store.insert(&key(&format!("k{n}"), n / 3)).await.unwrap();
    }
    for newest_first in [false, true] {
        let mut expected: Vec<_> = (0..7).map(|n| format!("k{n}")).collect();
        if newest_first {
            expected.reverse();
        }
        let (mut seen, mut after_id) = (Vec::new(), None);
        loop {
            let page = PageRequest {
                after: after_id,
                limit: 3,
                newest_first,
            };
            let page = store.list(&page).await.unwrap();
            seen.extend(page.keys.iter().map(|key| key.id.as_str().to_owned()));
            after_id = page.keys.last().map(|key| key.id.clone());
            assert_eq!(page.has_more, seen.len() < 7);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(seen, expected);
    }
}

/// A run's life, and who may see it.
pub(crate) async fn a_run_from_open_to_close(store: &dyn RunStore) {
    let record = run("run_a", "k1", "ann");
    store
        .open(
            &record,
            &line(0, Stage::BeforeModel { round: 1 }, Some(json!({"n": 1}))),
        )
        .await
        .unwrap();
    let again = store
        .open(&record, &line(0, Stage::BeforeModel { round: 1 }, None))
        .await;
    assert!(matches!(again, Err(StoreError::Duplicate(_))));
    store
        .checkpoint(&record.id, &line(1, before("c1"), None))
        .await
        .unwrap();
    store
        .checkpoint(&record.id, &line(2, after("c1"), None))
        .await
        .unwrap();
    let state = store.latest_state(&record.id).await.unwrap().unwrap();
    assert_eq!(
        state,
        line(0, Stage::BeforeModel { round: 1 }, Some(json!({"n": 1})))
    );
    let second = line(3, Stage::BeforeModel { round: 2 }, Some(json!({"n": 2})));
    store.checkpoint(&record.id, &second).await.unwrap();
    assert_eq!(store.latest_state(&record.id).await.unwrap(), Some(second));

    let key_id = KeyId::new("k1");
    let view = store.find(&key_id, &record.id).await.unwrap().unwrap();
    assert_eq!(
        (view.state, view.ended_at, &view.record),
        (RunState::Running, None, &record)
    );
    let ending = end(4, RunState::Completed);
    store.close(&record.id, &ending).await.unwrap();
    let view = store.find(&key_id, &record.id).await.unwrap().unwrap();
    assert_eq!(
        (view.state, view.ended_at, view.usage),
        (RunState::Completed, Some(at(4)), ending.usage)
    );
    assert_eq!(view.outcome.as_deref(), Some("answered"));
    let stages: Vec<_> = view.journal.into_iter().map(|(_, stage)| stage).collect();
    let [one, two] = [1, 2].map(|round| Stage::BeforeModel { round });
    assert_eq!(stages, [one, before("c1"), after("c1"), two, Stage::End]);

    assert_eq!(
        store.latest_state(&record.id).await.unwrap(),
        None,
        "an ended run keeps no messages"
    );
    assert_eq!(
        store.find(&KeyId::new("k2"), &record.id).await.unwrap(),
        None,
        "another key's run"
    );
    assert!(store.close(&record.id, &ending).await.is_err(), "closed twice");
    assert!(
        store
            .checkpoint(&record.id, &line(5, before("c2"), None))
            .await
            .is_err()
    );
    assert!(
        store
            .checkpoint(&RunId::new("run_none"), &line(5, before("c2"), None))
            .await
            .is_err()
    );
}

/// What a dead process left open is closed honestly, and the ended is pruned by age.
pub(crate) async fn runs_are_recovered(store: &dyn RunStore) {
    let cases: [(&str, Vec<Stage>, RunState); 6] = [
        ("r_model", vec![], RunState::Interrupted),
        ("r_done", vec![before("c"), after("c")], RunState::Interrupted),
        ("r_open", vec![before("c")], RunState::Indeterminate),
        (
            "r_second",
            vec![before("c"), after("c"), before("d")],
            RunState::Indeterminate,
        ),
        (
            "r_same_id",
            vec![before("c"), after("c"), before("c")],
            RunState::Indeterminate,
        ),
        (
            "r_later",
            vec![before("c"), before("d"), after("d")],
            RunState::Indeterminate,
        ),
    ];
    for (id, stages, _) in &cases {
        let first = line(0, Stage::BeforeModel { round: 1 }, Some(json!({})));
        store.open(&run(id, "k1", "ann"), &first).await.unwrap();
        for stage in stages {
            store
                .checkpoint(&RunId::new(*id), &line(1, stage.clone(), None))
                .await
                .unwrap();
        }
    }
    store
        .open(&run("r_ended", "k1", "ann"), &line(0, Stage::End, None))
        .await
        .unwrap();
    store
        .close(&RunId::new("r_ended"), &end(5, RunState::Failed))
        .await
        .unwrap();

    assert_eq!(store.recover(at(9)).await.unwrap(), (4, 2));
    assert_eq!(store.recover(at(10)).await.unwrap(), (0, 0));
    for (id, _, state) in &cases {
        let view = store
            .find(&KeyId::new("k1"), &RunId::new(*id))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((view.state, view.ended_at), (*state, Some(at(9))), "{id}");
        assert!(
            store.latest_state(&RunId::new(*id)).await.unwrap().is_some(),
            "may still be continued"
        );
    }
    assert_eq!(store.prune(at(9)).await.unwrap(), 1);
    assert_eq!(store.prune(at(10)).await.unwrap(), 6);
    assert_eq!(store.latest_state(&RunId::new("r_open")).await.unwrap(), None);
}

/// Held turns: by key, user, call id and time, bounded a key. `bound` is the store's.
pub(crate) async fn turns_are_held(store: &(impl HeldTurnStore + RunStore), bound: i64) {
    let (store, runs): (&dyn HeldTurnStore, &dyn RunStore) = (store, store);
    for (id, name) in [("r_ann", "ann"), ("r_bob", "bob")] {
        let first = line(0, Stage::BeforeModel { round: 1 }, None);
        runs.open(&run(id, "k1", name), &first).await.unwrap();
    }
    let (of_ann, of_bob) = (RunId::new("r_ann"), RunId::new("r_bob"));
    let turn = |user_name: &str, calls: &[&str], expires: i64| HeldTurn {
        key_id: KeyId::new("k1"),
        user: user("k1", user_name),
        client_call_ids: calls.iter().map(|id| CallId::new(*id)).collect(),
        messages: vec![Message::human("hello \"there\"")],
        citations: Vec::new(),
        expires_at: at(expires),
    };
    let (k1, k2) = (KeyId::new("k1"), KeyId::new("k2"));
    let ids = |ids: &[&str]| ids.iter().map(|id| CallId::new(*id)).collect::<Vec<_>>();
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    let held = turn("ann", &["a", "b"], 100);
    for (unknown, whose) in [("r_none", "an unknown run"), ("r_bob", "another person's run")] {
        store.hold(&RunId::new(unknown), &held, at(0)).await.unwrap();
        let found = store.find(&k1, &ann, &ids(&["b"]), at(0)).await.unwrap();
        assert_eq!(found, None, "{whose} leaves nothing");
    }
    store.hold(&of_ann, &held, at(0)).await.unwrap();
    for _retry in 0..2 {
        assert_eq!(
            store
                .find(&k1, &ann, &ids(&["x", "b"]), at(99))
                .await
                .unwrap()
                .as_ref(),
            Some(&held)
        );
    }
    assert_eq!(
        store.find(&k1, &ann, &ids(&["b"]), at(100)).await.unwrap(),
        None,
        "expired"
    );
    assert_eq!(store.find(&k1, &ann, &ids(&["x"]), at(0)).await.unwrap(), None);
    assert_eq!(store.find(&k1, &ann, &[], at(0)).await.unwrap(), None);
    assert_eq!(
        store.find(&k1, &bob, &ids(&["b"]), at(0)).await.unwrap(),
        None,
        "another person"
    );
    assert_eq!(
        store.find(&k2, &ann, &ids(&["b"]), at(0)).await.unwrap(),
        None,
        "another key"
    );

    for n in 0..bound {
        store
            .hold(&of_bob, &turn("bob", &[&format!("n{n}")], 200), at(1))
            .await
            .unwrap();
    }
    assert_eq!(
        store.find(&k1, &ann, &ids(&["b"]), at(1)).await.unwrap(),
        None,
        "made room"
    );
    assert!(
        store
            .find(&k1, &bob, &ids(&["n0"]), at(1))
            .await
            .unwrap()
            .is_some()
    );
}

/// Booking, quota and the sums by day.
pub(crate) async fn usage_is_booked(ledger: &dyn Ledger) {
    let (key_id, day) = (KeyId::new("k1"), date(2027, 1, 15));
    let first = ledger.reserve(&key_id, day, Some(1_000), 400).await.unwrap();
    ledger.record(booked(cost("k1", "ann", 300, 100), first));
    assert_eq!(ledger.spent_tokens(&key_id, day), 400);
    let second = ledger.reserve(&key_id, day, Some(1_000), 400).await.unwrap();
    assert_ne!(first, second);
    ledger.record(booked(cost("k1", "bob", 500, 100), second));
    let refused = ledger.reserve(&key_id, day, Some(1_000), 1).await;
    assert!(matches!(
        refused,
        Err(LedgerError::QuotaSpent {
            limit_tokens: 1_000,
            left_tokens: 0
        })
    ));
    ledger.reserve(&key_id, day, Some(1_001), 1).await.unwrap();
    ledger.reserve(&key_id, day, None, u64::MAX).await.unwrap();
    ledger.reserve(&KeyId::new("k2"), day, Some(1), 1).await.unwrap();
    assert_eq!(ledger.spent_tokens(&KeyId::new("k2"), day), 0);

    let usage = ledger.usage(&key_id, day, day).await.unwrap();
    let [today] = usage.as_slice() else {
        panic!("{usage:?}")
    };
    assert_eq!(
        (today.day, today.calls, today.input_tokens, today.output_tokens),
        (day, 2, 800, 200)
    );
    assert_eq!(today.estimated_tokens, 0);
    let earlier = date(2027, 1, 14);
    assert!(ledger.usage(&key_id, earlier, earlier).await.unwrap().is_empty());
    assert!(
        ledger
            .usage(&KeyId::new("k2"), earlier, day)
            .await
            .unwrap()
            .is_empty()
    );
    ledger.flush().await.unwrap();
    assert_eq!(ledger.spent_tokens(&key_id, day), 1_000);
}

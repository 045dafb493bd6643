use serde_json::{Value, json};
use tidegate_core::{
    clock::Entropy,
    id::{KeyId, RunId},
    port::RunStore,
    run::{RunState, Stage},
    usage::Usage,
};

use crate::{
    conformance::{after, at, before, end, line, run},
    tests::{Opened, folder},
};

/// The journal of a run that was cut, and what it then shows: tokens in and out, and whether that is a guess.
type Row = (&'static str, Vec<(Stage, Option<Value>)>, (u64, u64, bool));

fn asking(round: u32, state: Option<Value>) -> (Stage, Option<Value>) {
    (Stage::BeforeModel { round }, state)
}

fn spent(asking_tokens: Option<u64>, calls: &Value) -> Value {
    json!({"spent": {"rounds": 1, "usage_by_role": calls}, "asking_tokens": asking_tokens})
}

fn rows() -> Vec<Row> {
    let one =
        json!({"main": {"input_tokens": 100, "output_tokens": 20, "cached_tokens": 7, "estimated": false}});
    let two = json!({"main": {"input_tokens": 100, "output_tokens": 20},
        "memory": {"input_tokens": 5, "output_tokens": 1, "estimated": true}});
    vec![
        (
            "cut in its first call",
            vec![asking(1, Some(spent(Some(30), &json!({}))))],
            (30, 0, true),
        ),
        (
            "cut in a later call",
            vec![
                asking(1, Some(spent(Some(30), &json!({})))),
                asking(2, Some(spent(Some(140), &one))),
            ],
            (240, 20, true),
        ),
        (
            "cut in a tool",
            vec![
                asking(1, Some(spent(Some(30), &json!({})))),
                (before("c"), Some(spent(None, &one))),
            ],
            (100, 20, false),
        ),
        (
            "cut after a tool",
            vec![(before("c"), Some(spent(None, &one))), (after("c"), None)],
            (100, 20, false),
        ),
        (
            "an estimate is one also where it is whole",
            vec![(before("c"), Some(spent(None, &two)))],
            (105, 21, true),
        ),
        ("without a state", vec![asking(1, None)], (0, 0, true)),
        (
            "a state of another form",
            vec![asking(
                1,
                Some(json!({"spent": [1, "x"], "asking_tokens": "many"})),
            )],
            (0, 0, true),
        ),
        (
            "numbers no call can have",
            vec![asking(
                1,
                Some(spent(
                    Some(1),
                    &json!({"main": {"input_tokens": u64::MAX, "output_tokens": -4}}),
                )),
            )],
            ((1 << 40) + 1, 0, true),
        ),
    ]
}

#[tokio::test]
async fn a_run_that_was_cut_shows_what_its_journal_knows_of_its_cost() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    for (at_second, (name, lines, _)) in (0..).zip(rows()) {
        let record = run(&format!("run_{at_second}"), "k1", "ann");
        for (index, (stage, state)) in lines.into_iter().enumerate() {
            let checkpoint = line(at_second, stage, state);
            let written = if index == 0 {
                opened.store.open(&record, &checkpoint).await
            } else {
                opened.store.checkpoint(&record.id, &checkpoint).await
            };
            written.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    opened.store.lock_daemon().unwrap();
    opened.store.recover(at(100)).await.unwrap();
    for (number, (name, _, expected)) in rows().into_iter().enumerate() {
        let id = run(&format!("run_{number}"), "k1", "ann").id;
        let view = RunStore::find(&opened.store, &KeyId::new("k1"), &id)
            .await
            .unwrap()
            .unwrap();
        assert!(
            matches!(view.state, RunState::Interrupted | RunState::Indeterminate),
            "{name}"
        );
        let Usage {
            input_tokens,
            output_tokens,
            estimated,
            ..
        } = view.usage;
        assert_eq!((input_tokens, output_tokens, estimated), expected, "{name}");
    }
    opened.close().await;
}

/// As a version that wrote every line of a journal into the table of lines left it.
const EARLIER: &str = "INSERT INTO runs (id, request_id, key_id, user_id, origin, model, created_at) \
     VALUES ('run_z', 'req_1', 'k1', 'k1:ann', 'http', 'm', 1); \
     INSERT INTO run_checkpoints VALUES \
     ('run_z', 1, 'k1', 'k1:ann', 1, '{\"stage\":\"before_model\",\"round\":1}', '{\"a\":1}')";

#[tokio::test]
async fn a_run_of_an_earlier_version_goes_on() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(EARLIER).unwrap();
    let id = RunId::new("run_z");
    let store = &opened.store;
    let first = store.latest_state(&id).await.unwrap().unwrap();
    assert_eq!(first.state, Some(json!({"a": 1})));
    store
        .checkpoint(&id, &line(2, before("c"), Some(json!({"a": 2}))))
        .await
        .unwrap();
    assert_eq!(
        store.latest_state(&id).await.unwrap().unwrap().state,
        Some(json!({"a": 2}))
    );
    store.close(&id, &end(3, RunState::Completed)).await.unwrap();
    let view = RunStore::find(store, &KeyId::new("k1"), &id)
        .await
        .unwrap()
        .unwrap();
    let stages: Vec<Stage> = view.journal.into_iter().map(|(_, stage)| stage).collect();
    assert_eq!(stages, [Stage::BeforeModel { round: 1 }, before("c"), Stage::End]);
    assert_eq!(store.prune(at(3)).await.unwrap(), 0);
    assert_eq!(store.prune(at(4)).await.unwrap(), 1);
    opened.close().await;
}

#[tokio::test]
async fn runs_are_pruned_by_their_end_whatever_their_ids() {
    #[derive(Debug)]
    struct Zeros;
    impl Entropy for Zeros {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let store = &opened.store;
    let ordered = |second| RunId::generate_at(at(second), &Zeros);
    // When each was opened, under which id, and when it ended.
    let rows = [
        (1, ordered(1), Some(2)),
        (2, RunId::new("run_q"), Some(3)),
        (3, ordered(3), Some(9)),
        (4, ordered(4), None),
        (5, RunId::new("run_x"), Some(9)),
        (6, ordered(6), Some(7)),
    ];
    for (opened_at, id, ended_at) in &rows {
        let record = run(id.as_str(), "k1", "ann");
        let first = line(*opened_at, Stage::BeforeModel { round: 1 }, None);
        store.open(&record, &first).await.unwrap();
        if let Some(second) = ended_at {
            store.close(id, &end(*second, RunState::Completed)).await.unwrap();
        }
    }
    for (before, pruned) in [(2, 0), (3, 1), (4, 1), (7, 0), (8, 1), (9, 0), (100, 2), (100, 0)] {
        assert_eq!(store.prune(at(before)).await.unwrap(), pruned, "before {before}");
    }
    let left = RunStore::find(store, &KeyId::new("k1"), &rows[3].1)
        .await
        .unwrap();
    assert_eq!(left.map(|view| view.state), Some(RunState::Running));
    opened.close().await;
}

use serde_json::{Value, json};
use tidegate_core::{
    id::KeyId,
    port::RunStore,
    run::{RunState, Stage},
    usage::Usage,
};

use crate::{
    conformance::{after, at, before, line, run},
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

//! kill -9 while people talk: whatever was answered is learned, and once.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tidegate_core::clock::Entropy as _;
use tidegate_testkit::Reply;

use super::person::{BY_RULES, Person, script};
use crate::support::{Chat, Daemon, Setup};

/// How often the daemon is killed.
const ROUNDS: u64 = 15;
/// People who talk meanwhile.
const PEOPLE: u64 = 4;
/// What each of them may say in a round: no more than is kept of one person on one day.
const TURNS: u64 = 15;
/// The latest moment of a kill, in milliseconds after people begin.
const LATEST_MS: u64 = 600;

/// The next number of a sequence without a pattern.
fn next(number: u64) -> u64 {
    number
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
        .rotate_left(23)
}

/// Lets people talk until the moment has come, and kills the daemon; what was answered, by person.
async fn talk_until(daemon: &mut Daemon, round: u64, after: Duration) -> BTreeMap<u64, Vec<String>> {
    let answered: Mutex<BTreeMap<u64, Vec<String>>> = Mutex::default();
    let talking = stream::iter(0..PEOPLE).for_each_concurrent(None, async |person| {
        for turn in 0..TURNS {
            let value = format!("topic{round}x{person}x{turn}");
            let said = format!("Remember that I like {value}.");
            let chat = Chat::new(daemon, &said).with("user", json!(name(round, person)));
            let body = chat.body.clone();
            let sent = daemon.client.post(daemon.url("/v1/chat/completions"));
            let sent = sent.bearer_auth(&daemon.key).json(&body).send().await;
            let Ok(answer) = sent else { return };
            if !answer.status().is_success() || answer.text().await.is_err() {
                return;
            }
            answered.lock().unwrap().entry(person).or_default().push(value);
        }
    });
    // The moment is the test: nothing that could be waited for decides it.
    tokio::select! {
        () = talking => {}
        () = tokio::time::sleep(after) => {}
    }
    daemon.kill();
    answered.into_inner().unwrap()
}

fn name(round: u64, person: u64) -> String {
    format!("person {round}-{person}")
}

#[tokio::test]
async fn what_was_answered_is_learned_once_whenever_the_process_is_killed() {
    let mut seed = [0; 8];
    tidegate::clock::OsEntropy.fill(&mut seed);
    let mut random = u64::from_le_bytes(seed);
    let mut daemon = Setup::default().config(BY_RULES).start().await;
    script(&daemon, json!([]), Reply::text("Noted."));
    let mut total = 0;
    for round in 0..ROUNDS {
        // The first turn of a process takes longer than all the others; the moment is to fall among those.
        Person::new(&daemon, "nobody").says("Name three rivers.").await;
        random = next(random);
        let after = Duration::from_millis(20 + random % LATEST_MS);
        let answered = talk_until(&mut daemon, round, after).await;
        daemon.launch().await;
        for (person, values) in answered {
            let person = Person::new(&daemon, name(round, person));
            let facts = person.facts().await;
            for value in &values {
                let told = format!("round {round}, killed after {after:?}: {value} in {facts:?}");
                let of_value: Vec<_> = facts
                    .iter()
                    .filter(|fact| fact["value"] == value.as_str())
                    .collect();
                assert_eq!(of_value.len(), 1, "{told}");
                assert_eq!(of_value[0]["state"], "stable", "{told}");
                assert_eq!(of_value[0]["evidence"].as_array().unwrap().len(), 1, "{told}");
            }
            // What was cut may have been learned, too, and nothing else.
            assert!(facts.len() <= values.len() + 1, "{values:?}: {facts:?}");
            let observations = person.export().await["observations"].as_array().unwrap().len();
            assert_eq!(observations, facts.len());
            total += values.len();
        }
    }
    println!("{total} turns were answered");
    assert!(total > 20, "only {total} turns were answered between the kills");
}

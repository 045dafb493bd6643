//! The scenarios whose outcome follows from the evidence alone: everything that the scripted extractor finds is genuine.

use serde::Deserialize;
use serde_json::Value;
use tidegate_core::{id::KeyId, memory::FactState};

use super::{tests::Person, *};
use crate::{briefing, evidence::Ledger};

const SCENARIOS: &str = include_str!("../../../../tests/memory/scenarios.jsonl");

/// Classes in which the write gate has nothing to refuse.
const CLASSES: &[&str] = &[
    "promote",
    "under",
    "burst",
    "retry",
    "midnight",
    "quote_form",
    "supersede",
    "contest",
    "flipflop",
    "multi_valued",
    "isolation",
    "scoped_forget",
    "forget_fact",
    "forget_then_again",
    "restart",
];

#[derive(Debug, Deserialize)]
struct Scenario {
    id: String,
    class: String,
    policy: Policy,
    steps: Vec<Step>,
    expect: Vec<Expected>,
    max_rows: Option<usize>,
    #[serde(default)]
    single_stable: Vec<String>,
    #[serde(default)]
    briefing_has: Vec<String>,
    #[serde(default)]
    briefing_lacks: Vec<String>,
    #[serde(default)]
    export_empty: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Policy {
    days_to_stable: u32,
    explicit_only: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Step {
    op: String,
    at: Timestamp,
    #[serde(default)]
    user: String,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    extractor: Vec<Found>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
struct Found {
    kind: String,
    value: String,
    quote: String,
    explicit: bool,
}

#[derive(Debug, Deserialize)]
struct Expected {
    user: String,
    kind: String,
    value: String,
    state: String,
}

fn user_id(name: &str) -> UserId {
    UserId::of(&KeyId::new("k1"), Some(name)).unwrap()
}

/// Plays the steps; what each person has at the end.
fn play(scenario: &Scenario) -> BTreeMap<String, Person> {
    let mut people: BTreeMap<String, Person> = BTreeMap::new();
    for step in &scenario.steps {
        let person = people
            .entry(step.user.clone())
            .or_insert_with(|| Person::new(user_id(&step.user)));
        match step.op.as_str() {
            "chat" => {
                let turn = turn_of(&step.messages, step.at);
                for found in &step.extractor {
                    person.say(&found.kind, &found.value, step.at, |observation| {
                        observation.quote.clone_from(&found.quote);
                        observation.turn = turn;
                        observation.is_explicit = found.explicit;
                    });
                }
            }
            "forget" => person
                .observations
                .retain(|observation| observation.kind != step.kind || observation.value != step.value),
            "erase_user" => person.observations.clear(),
            "restart" => {}
            other => panic!("{}: unknown step {other}", scenario.id),
        }
    }
    people
}

/// The turn's identity: what came before it, or, for a first turn, its text and day.
fn turn_of(messages: &[Value], at: Timestamp) -> [u8; 32] {
    let (newest, before) = messages.split_last().unwrap();
    let identity = if before.iter().any(|message| message["role"] != "system") {
        serde_json::to_string(before).unwrap()
    } else {
        format!(
            "{} {newest}",
            at.to_zoned_datetime(jiff::tz::TimeZone::UTC).date()
        )
    };
    Sha256::digest(identity.as_bytes()).into()
}

fn check(scenario: &Scenario) {
    let kinds = Kinds::shipped().unwrap().adjusted(|kind| {
        kind.days_to_stable = scenario.policy.days_to_stable;
        kind.explicit_only = scenario.policy.explicit_only.contains(&kind.name);
    });
    let people = play(scenario);
    let now = scenario.steps.iter().map(|step| step.at).max().unwrap();
    let facts_of = |name: &str| {
        people
            .get(name)
            .map(|person| derive(&kinds, &person.user, now, &person.observations))
            .unwrap_or_default()
    };
    for expected in &scenario.expect {
        let facts = facts_of(&expected.user);
        let state = facts
            .iter()
            .find(|fact| fact.kind == expected.kind && fact.value == expected.value)
            .map_or("absent", |fact| fact.state.name());
        assert_eq!(state, expected.state, "{}: {expected:?} {facts:#?}", scenario.id);
    }
    for name in people.keys() {
        let facts = facts_of(name);
        assert!(
            scenario.max_rows.is_none_or(|most| facts.len() <= most),
            "{}",
            scenario.id
        );
        for kind in &scenario.single_stable {
            let stable = facts
                .iter()
                .filter(|fact| fact.kind == *kind && fact.state == FactState::Stable);
            assert!(stable.count() <= 1, "{}", scenario.id);
        }
        let person = &people[name];
        let told = briefing::compose(
            &kinds,
            &facts,
            &Ledger::new(person.observations.clone()),
            "",
            &briefing::Options::default(),
        );
        let text = told.map(|told| told.text).unwrap_or_default();
        assert!(
            scenario.briefing_has.iter().all(|part| text.contains(part)),
            "{}: {text}",
            scenario.id
        );
        assert!(
            !scenario.briefing_lacks.iter().any(|part| text.contains(part)),
            "{}: {text}",
            scenario.id
        );
    }
    for name in &scenario.export_empty {
        assert!(facts_of(name).is_empty(), "{}", scenario.id);
    }
}

#[test]
fn evidence_leads_to_the_states_that_the_scenarios_expect() {
    let scenarios: Vec<Scenario> = SCENARIOS
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|scenario| CLASSES.contains(&scenario["class"].as_str().unwrap()))
        .map(|scenario| serde_json::from_value(scenario).unwrap())
        .collect();
    for class in CLASSES {
        assert!(
            scenarios.iter().any(|scenario| scenario.class == *class),
            "no scenario of {class}"
        );
    }
    scenarios.iter().for_each(check);
}

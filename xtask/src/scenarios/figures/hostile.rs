//! What others would have people say: documents, tools, assistants, clients, pasted text and tricks, with an extractor
//! that is fooled by all of it.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_memory::boundary::Reading;
use tidegate_memory::extract::rules;
use tidegate_memory::kinds::{Kinds, normalise};

use super::{day, own, play};
use crate::scenarios::api::{self, Who};
use crate::scenarios::form::{Chat, Passage, Policy, shown};
use crate::scenarios::policy;
use crate::scenarios::stage::{House, Plan, Stage};
use crate::suites::Count;

/// The class of turns that are one attack over many days.
const DRIP: &str = "drip";

/// How long each attack goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// One turn.
    Once,
    /// The same on as many days as would make it believed.
    Days,
}

impl Depth {
    fn days(self) -> &'static [i64] {
        match self {
            Self::Once => &[0],
            Self::Days => &[0, 1, 3],
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
struct Attack {
    class: String,
    turn: String,
    #[serde(default)]
    others: Vec<Other>,
    candidates: Vec<Value>,
}

#[derive(Debug, Clone, Deserialize)]
struct Other {
    source: String,
    text: String,
}

/// One person's attack, turn by turn.
struct Case {
    class: String,
    turns: Vec<Attack>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    turns: usize,
    asked: usize,
    accepted: usize,
    promoted: usize,
}

/// Plays every attack; one case a class, which holds where nothing was accepted.
pub(super) fn measure(house: &House, depth: Depth) -> Result<Count> {
    let cases = cases(own("poison.jsonl")?, depth);
    let policy: Policy =
        serde_json::from_value(json!({"days_to_stable": 3, "explicit_only": ["grade_level"]}))?;
    let kinds = policy::kinds(&policy)?;
    let table = Kinds::parse(&kinds)?;
    let plan = Plan {
        kinds: &kinds,
        begin: day(0)?,
        by_rules: false,
    };
    let played = play(house, &plan, &cases, |stage, number, case| {
        attack(stage, &table, &format!("person {number}"), case, depth)
    })?;
    let mut classes: BTreeMap<&str, Tally> = BTreeMap::new();
    for (case, (tally, wrong)) in cases.iter().zip(&played) {
        let class = classes.entry(&case.class).or_default();
        class.turns += tally.turns;
        class.asked += tally.asked;
        class.accepted += tally.accepted;
        class.promoted += tally.promoted;
        for wrong in wrong {
            println!("FAIL {}: {wrong}", case.class);
        }
    }
    println!(
        "\n{:<20} {:>6} {:>10} {:>9} {:>9}",
        "attack", "turns", "extracted", "accepted", "promoted"
    );
    let mut count = Count::default();
    let mut all = Tally::default();
    for (class, tally) in &classes {
        line(class, *tally);
        count.add(tally.accepted == 0 && tally.promoted == 0);
        all.turns += tally.turns;
        all.asked += tally.asked;
        all.accepted += tally.accepted;
        all.promoted += tally.promoted;
    }
    line("all", all);
    Ok(count)
}

fn line(class: &str, tally: Tally) {
    println!(
        "{class:<20} {:>6} {:>10} {:>9} {:>9}",
        tally.turns, tally.asked, tally.accepted, tally.promoted
    );
}

/// Attacks by people: a drip is one person's, in the order of its lines, and every other line is a person's own.
fn cases(attacks: Vec<Attack>, depth: Depth) -> Vec<Case> {
    let (drip, single): (Vec<Attack>, Vec<Attack>) =
        attacks.into_iter().partition(|attack| attack.class == DRIP);
    let single = single.into_iter().map(|attack| Case {
        class: attack.class.clone(),
        turns: vec![attack; depth.days().len()],
    });
    let mut cases: Vec<Case> = single.collect();
    if !drip.is_empty() {
        cases.push(Case {
            class: DRIP.to_owned(),
            turns: drip,
        });
    }
    cases
}

fn attack(
    stage: &mut Stage,
    table: &Kinds,
    user: &str,
    case: &Case,
    depth: Depth,
) -> Result<(Tally, Vec<String>)> {
    let before = stage.seen(|script| script.extractions);
    for (turn, number) in case.turns.iter().zip(0_i64..) {
        let days = depth.days();
        let planned = usize::try_from(number).ok().and_then(|at| days.get(at)).copied();
        stage.turn_clock(day(planned.unwrap_or(number))?)?;
        stage.chat(&chat(turn, user)?)?;
    }
    let memory = api::memory(stage.daemon()?, Who(Some(user)))?;
    let mut tally = Tally {
        turns: case.turns.len(),
        asked: stage.seen(|script| script.extractions) - before,
        ..Tally::default()
    };
    let mut wrong = Vec::new();
    for fact in &memory.facts {
        if is_planted(table, fact, &case.turns) {
            tally.accepted += 1;
            tally.promoted += usize::from(fact["state"] == "stable");
            wrong.push(format!(
                "{:?} -> {fact}",
                case.turns.first().map(|turn| &turn.turn)
            ));
        }
    }
    Ok((tally, wrong))
}

/// Whether a fact came from the fooled extractor. What the rules find by themselves is something that the person said,
/// unless it is what the attack wants.
fn is_planted(table: &Kinds, fact: &Value, turns: &[Attack]) -> bool {
    let by_rules = |attack: &Attack| {
        let others = attack
            .others
            .iter()
            .map(|other| tidegate_memory::boundary::Other {
                source: tidegate_memory::boundary::Source::Tool,
                text: &other.text,
            });
        rules::extract(&Reading::of(&attack.turn, others))
            .iter()
            .any(|found| is_value(table, fact, &found.kind, &found.value))
    };
    let is_wanted = |attack: &Attack| {
        attack
            .candidates
            .iter()
            .any(|wanted| is_value(table, fact, &shown(&wanted["kind"]), &shown(&wanted["value"])))
    };
    turns.iter().any(is_wanted) || !turns.iter().any(by_rules)
}

fn is_value(table: &Kinds, fact: &Value, kind: &str, value: &str) -> bool {
    let normalised = table.get(kind).and_then(|kind| normalise(kind, value).ok());
    fact["kind"] == kind && normalised.is_some_and(|value| fact["value"] == value.as_str())
}

/// The turn with everything that stands beside it, where it stands in a real conversation.
fn chat(attack: &Attack, user: &str) -> Result<Chat> {
    let mut chat = Chat {
        user: Some(user.to_owned()),
        assistant: Some("Noted. Let us begin.".to_owned()),
        extractor: Some(fooled(attack)),
        ..Chat::default()
    };
    let mut before = Vec::new();
    for other in &attack.others {
        let passage = Passage {
            source: other.source.clone(),
            text: other.text.clone(),
        };
        match other.source.as_str() {
            "retrieved" => chat.retrieved.push(passage),
            "tool" => chat.tool_results.push(passage),
            "system" => chat
                .messages
                .push(json!({"role": "system", "content": other.text})),
            "assistant" => before.extend([
                json!({"role": "user", "content": "Hello"}),
                json!({"role": "assistant", "content": other.text}),
            ]),
            "earlier" => before.extend([
                json!({"role": "user", "content": format!("Please look at this:\n\n> {}", other.text)}),
                json!({"role": "assistant", "content": "I have seen it."}),
            ]),
            unknown => bail!("there is no source `{unknown}`"),
        }
    }
    chat.messages.extend(before);
    chat.messages
        .push(json!({"role": "user", "content": attack.turn}));
    Ok(chat)
}

/// What the extractor was fooled into, and the same with every sentence of the turn for its quote.
fn fooled(attack: &Attack) -> Value {
    let reading = Reading::of(&attack.turn, []).own_words();
    let quotes = || reading.lines().chain(attack.turn.lines());
    attack
        .candidates
        .iter()
        .flat_map(|candidate| {
            let given = shown(&candidate["quote"]);
            quotes()
                .map(str::to_owned)
                .chain([given, attack.turn.clone()])
                .map(|quote| {
                    json!({"kind": candidate["kind"], "value": candidate["value"], "quote": quote,
                        "explicit": true, "first_person": true})
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

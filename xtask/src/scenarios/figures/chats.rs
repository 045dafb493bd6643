//! Ten days of chat of fifteen people: whatever is kept stands in what that person said.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_core::clock::Timestamp;
use tidegate_gate::guards::secrets::Redactor;
use tidegate_memory::boundary::{Boundary, Candidate, Held, Limits, Other, Reading, Source};
use tidegate_memory::extract::rules;
use tidegate_memory::kinds::Kinds;

use super::{day, lines, play};
use crate::scenarios::api::{self, Who};
use crate::scenarios::form::{Chat, Policy};
use crate::scenarios::policy;
use crate::scenarios::stage::{House, Plan, Stage};
use crate::suites::Count;

/// A turn and its answer.
#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    user: String,
    day: String,
    /// What the person said.
    pub(super) query: String,
    response: String,
}

/// The turns of each person, in their order.
pub(super) fn people(file: &Path) -> Result<BTreeMap<String, Vec<Turn>>> {
    let mut people: BTreeMap<String, Vec<Turn>> = BTreeMap::new();
    for turn in lines::<Turn>(file)? {
        people.entry(turn.user.clone()).or_default().push(turn);
    }
    Ok(people)
}

/// All turns through the boundary, and all of them through daemons.
pub(super) fn measure(house: &House, file: &Path) -> Result<Count> {
    let people = people(file)?;
    let turns: usize = people.values().map(Vec::len).sum();
    let mut count = Count::default();
    let (kept, strays) = pure(&people)?;
    println!("\nMemoryBank, {turns} turns of {} people", people.len());
    println!("  by the pure functions: {kept} statements kept, {strays} not from a turn of that person");
    count.add(strays == 0 && kept > 0);
    for by_rules in [true, false] {
        let kinds = policy::kinds(&Policy::default())?;
        let plan = Plan {
            kinds: &kinds,
            begin: day(0)?,
            by_rules,
        };
        let cases: Vec<&Vec<Turn>> = people.values().collect();
        let played = play(house, &plan, &cases, |stage, _, turns| live(stage, turns))?;
        let kept: usize = played.iter().map(|(kept, _)| kept).sum();
        let strays: usize = played.iter().map(|(_, strays)| strays).sum();
        let stable: usize = played
            .iter()
            .map(|(kept, _)| kept)
            .filter(|kept| **kept > 0)
            .count();
        println!(
            "  through the daemon, {}: {kept} quotes kept of {stable} people, {strays} not from a turn of that person",
            if by_rules {
                "by the rules"
            } else {
                "with an extractor that quotes the answers, too"
            },
        );
        count.add(strays == 0 && (kept > 0 || !by_rules));
    }
    Ok(count)
}

/// Observations that are kept, and those whose quote the person did not say.
fn pure(people: &BTreeMap<String, Vec<Turn>>) -> Result<(usize, usize)> {
    let kinds = Kinds::shipped()?;
    let redactor = Redactor::new([])?;
    let gate = Boundary {
        kinds: &kinds,
        limits: Limits::default(),
        redactor: &redactor,
    };
    let (mut kept, mut strays) = (0, 0);
    for turns in people.values() {
        for (at, turn) in turns.iter().enumerate() {
            let before = turns[..at].iter().map(|before| Other {
                source: Source::Assistant,
                text: &before.response,
            });
            let reading = Reading::of(&turn.query, before);
            let mut found = rules::extract(&reading);
            found.extend(claims(turn).into_iter().map(|(kind, value, quote)| Candidate {
                kind,
                value,
                quote,
                is_explicit: true,
                is_first_person: true,
            }));
            for accepted in gate
                .judge(&reading, Held::default(), &found)
                .into_iter()
                .flatten()
            {
                kept += 1;
                strays += usize::from(!is_said(turns, &accepted.quote));
            }
        }
    }
    Ok((kept, strays))
}

/// Quotes that are kept of one person after their days, and those that they did not say.
fn live(stage: &mut Stage, turns: &[Turn]) -> Result<(usize, usize)> {
    let user = turns.first().map(|turn| turn.user.clone()).unwrap_or_default();
    let mut conversation: Vec<Value> = Vec::new();
    let mut today = "";
    for turn in turns {
        if turn.day != today {
            conversation.clear();
            today = &turn.day;
        }
        let at: Timestamp = format!("{}T09:00:00Z", turn.day).parse()?;
        let minutes = i64::try_from(conversation.len())? * 60;
        stage.turn_clock(Timestamp::from_second(at.as_second() + minutes)?)?;
        conversation.push(json!({"role": "user", "content": turn.query}));
        let facts: Vec<Value> = claims(turn)
            .into_iter()
            .map(|(kind, value, quote)| json!({"kind": kind, "value": value, "quote": quote, "explicit": true}))
            .collect();
        stage.chat(&Chat {
            user: Some(user.clone()),
            messages: conversation.clone(),
            assistant: Some(turn.response.clone()),
            extractor: Some(Value::Array(facts)),
            ..Chat::default()
        })?;
        conversation.push(json!({"role": "assistant", "content": turn.response}));
    }
    let export = api::export(stage.daemon()?, Who(Some(&user)))?;
    let observations = export["observations"].as_array().map_or(&[][..], Vec::as_slice);
    let strays = observations
        .iter()
        .filter(|observation| !is_said(turns, observation["quote"].as_str().unwrap_or_default()))
        .count();
    ensure!(!turns.is_empty(), "a person without turns");
    Ok((observations.len(), strays))
}

/// Claims of an extractor that takes the answer for the person's words: each sentence as a liking and as a goal.
fn claims(turn: &Turn) -> Vec<(String, String, String)> {
    let own = Reading::of(&turn.response, []).own_words();
    own.lines()
        .filter_map(|sentence| {
            let value = sentence
                .split_whitespace()
                .last()?
                .trim_matches(|letter: char| !letter.is_alphanumeric());
            Some((value.to_owned(), sentence.to_owned()))
        })
        .flat_map(|(value, quote)| {
            ["preference", "goal"].map(|kind| (kind.to_owned(), value.clone(), quote.clone()))
        })
        .collect()
}

/// Whether the words stand in one of the person's turns, in whichever case and spacing.
fn is_said(turns: &[Turn], quote: &str) -> bool {
    let plain = |text: &str| {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        words.join(" ")
    };
    let quote = plain(quote);
    !quote.is_empty() && turns.iter().any(|turn| plain(&turn.query).contains(&quote))
}

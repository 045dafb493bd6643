//! What people say of themselves, in their own words, and how much of it is kept.

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_memory::boundary::Reading;
use tidegate_memory::kinds::Kinds;

use super::{day, own, percent, play};
use crate::scenarios::api::{self, Who};
use crate::scenarios::form::{Chat, Policy};
use crate::scenarios::policy;
use crate::scenarios::stage::{House, Plan};
use crate::suites::Count;

/// The share that must be kept, in percent, by an extractor that finds it.
const KEPT_MIN: usize = 95;

#[derive(Debug, Deserialize)]
struct Statement {
    half: String,
    kind: String,
    value: String,
    text: String,
}

/// Says each statement once, to a daemon with the rules and to one with a model that finds what is there.
pub(super) fn measure(house: &House) -> Result<Count> {
    let statements: Vec<Statement> = own("genuine.jsonl")?;
    let kinds = policy::kinds(&Policy::default())?;
    let table = Kinds::parse(&kinds)?;
    println!("\ngenuine statements, {} in all", statements.len());
    let mut count = Count::default();
    for by_rules in [true, false] {
        let plan = Plan {
            kinds: &kinds,
            begin: day(0)?,
            by_rules,
        };
        let kept = play(house, &plan, &statements, |stage, number, statement| {
            let user = format!("person {number}");
            stage.chat(&Chat {
                user: Some(user.clone()),
                messages: vec![json!({"role": "user", "content": statement.text})],
                extractor: Some(found(statement)),
                ..Chat::default()
            })?;
            let memory = api::memory(stage.daemon()?, Who(Some(&user)))?;
            Ok(memory.facts.iter().any(|fact| is_said(&table, fact, statement)))
        })?;
        let who = if by_rules {
            "by the rules alone"
        } else {
            "by an extractor that finds them"
        };
        for half in ["before", "after"] {
            let of_half: Vec<bool> = statements
                .iter()
                .zip(&kept)
                .filter(|(statement, _)| (statement.half == "before") == (half == "before"))
                .map(|(_, kept)| *kept)
                .collect();
            let kept = of_half.iter().filter(|kept| **kept).count();
            println!(
                "  kept {who}, written {half} the extractor: {kept} of {}, {}",
                of_half.len(),
                percent(kept, of_half.len())
            );
        }
        let all = kept.iter().filter(|kept| **kept).count();
        if !by_rules {
            count.add(all * 100 >= statements.len() * KEPT_MIN);
            for (statement, _) in statements.iter().zip(&kept).filter(|(_, kept)| !**kept) {
                println!(
                    "    not kept: {} ({}={})",
                    statement.text, statement.kind, statement.value
                );
            }
        }
    }
    Ok(count)
}

/// Whether a fact says what was said. It may say more: "teach on Mondays" where "Monday" was asked for.
fn is_said(table: &Kinds, fact: &Value, statement: &Statement) -> bool {
    let value = table
        .get(&statement.kind)
        .and_then(|kind| tidegate_memory::kinds::normalise(kind, &statement.value).ok());
    let held = fact["value"].as_str().unwrap_or_default();
    fact["kind"] == statement.kind.as_str()
        && value.is_some_and(|value| format!(" {} ", plain(held)).contains(&format!(" {} ", plain(&value))))
}

/// Without an article before it, and with days of the week as one of them.
fn plain(value: &str) -> String {
    let value = value.trim_start_matches("the ").trim_start_matches("a ");
    value.replace("days", "day").replace("weekends", "weekend")
}

/// A good extractor quotes the sentence: each is tried.
fn found(statement: &Statement) -> Value {
    let own_words = Reading::of(&statement.text, []).own_words();
    own_words
        .lines()
        .map(|quote| {
            json!({"kind": statement.kind, "value": statement.value, "quote": quote,
                "explicit": true, "first_person": true})
        })
        .collect()
}

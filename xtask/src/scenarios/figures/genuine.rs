//! What people say of themselves, in their own words, and how much of it is kept.

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_memory::boundary::Reading;
use tidegate_memory::kinds::Kinds;

use super::{day, own, percent, play};
use crate::scenarios::api::{self, Who};
use crate::scenarios::check::is_fact;
use crate::scenarios::form::{Chat, Policy};
use crate::scenarios::policy;
use crate::scenarios::stage::{House, Plan};
use crate::suites::Count;

/// The share that must be kept, in percent.
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
            let facts = memory.facts.iter();
            Ok(facts
                .map(|fact| said(&table, fact, statement))
                .max()
                .unwrap_or(Said::Not))
        })?;
        let who = if by_rules {
            "by the rules alone"
        } else {
            "by an extractor that finds them"
        };
        let said = kept;
        let share = |of: &dyn Fn(&Statement) -> bool, least: Said| {
            let counted = statements
                .iter()
                .zip(&said)
                .filter(|(statement, _)| of(statement));
            let kept = counted.clone().filter(|(_, said)| **said >= least).count();
            (kept, counted.count())
        };
        for half in ["before", "after"] {
            let (kept, all) = share(
                &|statement| (statement.half == "before") == (half == "before"),
                Said::More,
            );
            println!(
                "  kept {who}, written {half} the extractor: {kept} of {all}, {}",
                percent(kept, all)
            );
        }
        let (kept, all) = share(&|_| true, Said::More);
        let (exactly, _) = share(&|_| true, Said::Exactly);
        println!(
            "  kept {who}: {kept} of {all}, {}; {exactly} of them in the very words of the file, {}",
            percent(kept, all),
            percent(exactly, all)
        );
        count.add(kept * 100 >= all * KEPT_MIN);
        for (statement, _) in statements
            .iter()
            .zip(&said)
            .filter(|(_, said)| **said == Said::Not)
        {
            println!(
                "    not kept: {} ({}={})",
                statement.text, statement.kind, statement.value
            );
        }
    }
    Ok(count)
}

/// How a fact says what a statement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Not,
    /// With more words: "humor in explanations" for "humor", "teach on mondays" for "monday".
    More,
    Exactly,
}

fn said(table: &Kinds, fact: &Value, statement: &Statement) -> Said {
    let value = table
        .get(&statement.kind)
        .and_then(|kind| tidegate_memory::kinds::normalise(kind, &statement.value).ok());
    let Some(value) = value else { return Said::Not };
    if is_fact(fact, &statement.kind, &value) {
        return Said::Exactly;
    }
    let words = |text: &str| -> Vec<String> {
        let words = text.to_lowercase();
        let words = words
            .split_whitespace()
            .map(|word| word.trim_end_matches('s').to_owned());
        words.filter(|word| word != "the" && word != "a").collect()
    };
    let (kept, asked) = (words(fact["value"].as_str().unwrap_or_default()), words(&value));
    let holds = !asked.is_empty() && kept.windows(asked.len()).any(|part| part == asked);
    if fact["kind"] == statement.kind.as_str() && holds {
        Said::More
    } else {
        Said::Not
    }
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

//! The answer to a person who asks what is remembered of them.

use std::{collections::HashMap, sync::LazyLock};

use regex::Regex;
use tidegate_core::memory::{Basis, Fact, FactState};

use super::{day, quoted};
use crate::{
    evidence::{Ledger, days},
    kinds::{Kinds, folded},
};

/// A longer text is no mere question about memory, in characters.
const QUESTION_CHARS_MAX: usize = 300;

/// Questions about what is remembered of the one who asks, in folded text.
const QUESTIONS: &[&str] = &[
    r"\bwhat(?: all| else| things| exactly)? (?:do|did|have|can|could) you (?:\w+ )?(?:know|remember|remembered|recall|learn|learned|learnt|store|stored|save|saved|keep|kept|noted|got|have)\b.*\b(?:about|on|of|for) me\b",
    r"\bwhat(?: information| data| facts| notes| memories)(?: about me)? (?:do|did|have) you (?:\w+ )?(?:know|remember|store|stored|save|saved|keep|kept|have|hold|collected?)\b(?:.*\b(?:about|on|of) me\b|\s*\??$)",
    r"\b(?:information|data|facts|notes|memories)\b.*\byou (?:\w+ )?(?:have|keep|store|hold|remember|saved?|stored)\b.*\b(?:about|on|of) me\b",
    r"\bwhat(?:'s| is) (?:in|stored in|saved in) (?:your|my) memor(?:y|ies)\b(?:.*\b(?:about|on|of) me\b|\s*\??$)",
    r"\bwhat (?:is|was|has been|gets) (?:remembered|stored|saved|kept|known|noted) (?:about|of|on) me\b",
    r"\bdo you (?:still )?(?:remember|recall|know) (?:me\b|anything about me\b|something about me\b|who i am\b)",
    r"\b(?:show|list|tell|give)(?: me)?\b.*\b(?:you (?:\w+ )?(?:know|remember|recall|stored?|saved?|keep|have)|your (?:notes|memory|memories|facts))\b.*\b(?:about|on|of) me\b",
    r"\b(?:show|list|view|see)(?: me)? my (?:memory|memories|remembered facts|stored facts)\b",
];

static QUESTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&QUESTIONS.join("|")).ok());

/// Whether the person asks what is remembered of them, such as "what do you know about me?".
pub fn is_about_memory(text: &str) -> bool {
    if text.chars().nth(QUESTION_CHARS_MAX).is_some() {
        return false;
    }
    let text = folded(text).replace(['’', '‘'], "'");
    QUESTION.as_ref().is_some_and(|question| question.is_match(&text))
}

/// Everything that is remembered, told to the person themself, at most `chars_max` characters. Uncertain and sensitive
/// facts stand in it, since it is about them and for them; values that read like instructions do not, since the text may
/// pass through a model.
pub fn about_me(kinds: &Kinds, facts: &[Fact], ledger: &Ledger, chars_max: usize) -> String {
    let by_id: HashMap<&str, &Fact> = facts.iter().map(|fact| (fact.id.as_str(), fact)).collect();
    let (mut certain, mut open) = (Vec::new(), Vec::new());
    for kind in kinds {
        for fact in facts.iter().filter(|fact| fact.kind == kind.name) {
            let Some(value) = quoted(kind, fact, ledger) else {
                continue;
            };
            let (label, last) = (&kind.label, day(fact, ledger));
            let other = fact.other.as_ref().and_then(|other| by_id.get(other.as_str()));
            match fact.state {
                FactState::Stable => certain.push(format!("{label}: {value} ({}).", reason(fact, &last))),
                FactState::Contested => {
                    let other = other.and_then(|other| quoted(kind, other, ledger));
                    let other = other.unwrap_or_else(|| "something else".to_owned());
                    open.push(format!(
                        "{label}: you said {value}, and {other} since; I take neither for certain."
                    ));
                }
                // It stands in the line of the one that it contests.
                FactState::Candidate if other.is_some_and(|other| other.state == FactState::Contested) => {}
                FactState::Candidate => {
                    open.push(format!("{label}: maybe {value} (said on {}).", days(fact.days)));
                }
                FactState::Expired => open.push(format!("{label}: {value}, which you last said{last}.")),
                FactState::Superseded | FactState::Retracted => {}
            }
        }
    }
    if certain.is_empty() && open.is_empty() {
        return "I remember nothing about you.".to_owned();
    }
    told(&certain, &open, chars_max)
}

fn reason(fact: &Fact, last: &str) -> String {
    match fact.basis {
        Basis::Days | Basis::None => format!("you said so on {}, last{last}", days(fact.days)),
        Basis::Remembered => format!("you asked me to remember it; last said{last}"),
        Basis::Corrected => format!("you set it yourself{last}"),
    }
}

fn told(certain: &[String], open: &[String], chars_max: usize) -> String {
    const ENDING: &str = "\nYou can have any of this corrected or deleted.";
    let sections = [
        ("This is what I remember about you:", certain),
        ("This is not certain:", open),
    ];
    let mut text = String::new();
    // Room for the ending and for saying how much was left out.
    let room = chars_max.saturating_sub(ENDING.len() + 40);
    let (mut used, mut left_out) = (0, 0);
    for (heading, lines) in sections.iter().filter(|(_, lines)| !lines.is_empty()) {
        let mut is_open = false;
        for line in *lines {
            let opening = if is_open {
                String::new()
            } else {
                format!("{heading}\n")
            };
            let line = format!("{opening}- {line}\n");
            let length = line.chars().count();
            if used + length > room {
                left_out += 1;
                continue;
            }
            is_open = true;
            used += length;
            text.push_str(&line);
        }
    }
    if left_out > 0 {
        text.push_str("- and ");
        text.push_str(&left_out.to_string());
        text.push_str(" more.\n");
    }
    text.push_str(ENDING.trim_start());
    text
}

//! Why something is remembered: each fact with the words and the days that it rests on.
//!
//! These are the forms that the memory API, the terminal and an export show. They are for the person, and hold everything.

use std::collections::HashMap;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::Timestamp,
    id::{FactId, ObservationId},
    memory::{Basis, Fact, FactState, Observation, Stance, Voice},
};

use crate::kinds::{Kind, Kinds, ValueType, folded, is_instruction_shaped, is_markup};

/// A fact as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Its id.
    pub id: FactId,
    /// What it is about, by its name in the table of kinds.
    pub kind: String,
    /// The same as a heading.
    pub label: String,
    /// The value as it is compared.
    pub value: String,
    /// The value as the person wrote it.
    pub shown: String,
    /// What is to be made of it now.
    pub state: FactState,
    /// Why it is believed.
    pub basis: Basis,
    /// On how many days it was said.
    pub days: u32,
    /// On how many it must be said to be believed.
    pub days_to_stable: u32,
    /// Since when it holds.
    pub valid_from: Timestamp,
    /// Until when it held, where it no longer does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Timestamp>,
    /// When it was last said.
    pub last_at: Timestamp,
    /// What took its place, or stands against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<Other>,
    /// The state in one sentence.
    pub why: String,
    /// What the person said, oldest first.
    pub evidence: Vec<Quote>,
}

/// Another fact that one is to be read with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Other {
    /// Its id.
    pub id: FactId,
    /// Its value.
    pub value: String,
}

/// Something the person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Its id.
    pub id: ObservationId,
    /// The words.
    pub quote: String,
    /// The local day.
    pub day: Date,
    /// The time.
    pub at: Timestamp,
    /// In which way it was said.
    pub voice: Voice,
    /// Whether it was said to be so or not.
    pub stance: Stance,
    /// Who found it in the turn.
    pub extractor: String,
}

/// A person's observations, to be found by their ids. To be kept beside the facts that were derived from them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    observations: Vec<Observation>,
    by_id: HashMap<ObservationId, usize>,
}

impl Ledger {
    /// Takes all of them.
    pub fn new(observations: Vec<Observation>) -> Self {
        let ids = observations.iter().map(|observation| observation.id.clone());
        Self {
            by_id: ids.zip(0..).collect(),
            observations,
        }
    }

    /// All of them, as they were given.
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// What a fact rests on, oldest first.
    pub fn of<'s>(&'s self, fact: &'s Fact) -> impl DoubleEndedIterator<Item = &'s Observation> {
        fact.evidence
            .iter()
            .filter_map(|id| self.observations.get(*self.by_id.get(id)?))
    }

    /// The value of a fact as the person last wrote it, such as `McLeod` for `mcleod`; as it is compared where their
    /// words do not hold it, or hold anything but plain words.
    pub fn shown(&self, kind: &Kind, fact: &Fact) -> String {
        let spelled = match kind.value {
            ValueType::Grade => None,
            ValueType::Word | ValueType::Name | ValueType::Text => self
                .of(fact)
                .rev()
                .filter(|observation| observation.stance == Stance::Affirmed)
                .find_map(|observation| spelling(&observation.quote, &fact.value)),
        };
        spelled.unwrap_or_else(|| fact.value.clone())
    }
}

/// Every fact of a kind that the table has, with its evidence, in the order of `facts`.
pub fn views(kinds: &Kinds, facts: &[Fact], ledger: &Ledger) -> Vec<View> {
    let by_id: HashMap<&str, &Fact> = facts.iter().map(|fact| (fact.id.as_str(), fact)).collect();
    facts
        .iter()
        .filter_map(|fact| {
            let other = fact.other.as_ref().and_then(|other| by_id.get(other.as_str()));
            Some(view(kinds.get(&fact.kind)?, fact, other.copied(), ledger))
        })
        .collect()
}

fn view(kind: &Kind, fact: &Fact, other: Option<&Fact>, ledger: &Ledger) -> View {
    View {
        id: fact.id.clone(),
        kind: fact.kind.clone(),
        label: kind.label.clone(),
        value: fact.value.clone(),
        shown: ledger.shown(kind, fact),
        state: fact.state,
        basis: fact.basis,
        days: fact.days,
        days_to_stable: kind.days_to_stable,
        valid_from: fact.valid_from,
        valid_to: fact.valid_to,
        last_at: fact.last_at,
        other: other.map(|other| Other {
            id: other.id.clone(),
            value: other.value.clone(),
        }),
        why: why(kind, fact, other, ledger),
        evidence: ledger
            .of(fact)
            .map(|observation| Quote {
                id: observation.id.clone(),
                quote: observation.quote.clone(),
                day: observation.day,
                at: observation.at,
                voice: observation.voice,
                stance: observation.stance,
                extractor: observation.extractor.clone(),
            })
            .collect(),
    }
}

/// The state of a fact in one sentence.
fn why(kind: &Kind, fact: &Fact, other: Option<&Fact>, ledger: &Ledger) -> String {
    let said = format!("said on {}", days(fact.days));
    let other = other.map(|other| format!("\"{}\"", other.value));
    match fact.state {
        FactState::Candidate => match other {
            Some(other) => format!("not certain: {said}, and {other} was said as well"),
            None => format!(
                "not certain: {said}; believed after {}",
                days(kind.days_to_stable)
            ),
        },
        FactState::Stable => match fact.basis {
            Basis::Days | Basis::None => format!("believed: {said}"),
            Basis::Remembered => "believed: the person asked for it to be remembered".to_owned(),
            Basis::Corrected => "believed: the person put it right".to_owned(),
        },
        FactState::Contested => match other {
            Some(other) => format!("not certain any more: {other} was said since"),
            None => "not certain any more: something else was said since".to_owned(),
        },
        FactState::Superseded => match other {
            Some(other) => format!("no longer: {other} took its place"),
            None => "no longer: another value took its place".to_owned(),
        },
        FactState::Expired => {
            let last = ledger
                .of(fact)
                .rev()
                .find(|observation| observation.stance == Stance::Affirmed)
                .map(|observation| format!(" on {}", observation.day))
                .unwrap_or_default();
            format!(
                "no longer believed: last said{last}, and it has to be said again within {}",
                days(kind.reconfirm_after_days)
            )
        }
        FactState::Retracted => "no longer: the person said that it is not so".to_owned(),
    }
}

/// A number of days in words.
pub(crate) fn days(count: u32) -> String {
    if count == 1 {
        "1 day".to_owned()
    } else {
        format!("{count} days")
    }
}

/// The words of `quote` that are `value` when they are compared.
fn spelling(quote: &str, value: &str) -> Option<String> {
    let words: Vec<&str> = quote.split_whitespace().collect();
    let count = value.split(' ').count();
    let plain = |text: &str| {
        text.trim_matches(|letter: char| !letter.is_alphanumeric() && !"+#".contains(letter))
            .to_owned()
    };
    let found = words
        .windows(count)
        .map(|window| plain(&window.join(" ")))
        .find(|spelled| folded(spelled) == value)?;
    // Words that are all capitals shout the same value.
    let shouts = found.chars().filter(|letter| letter.is_alphabetic()).count() > 4
        && !found.chars().any(char::is_lowercase)
        && found.chars().any(char::is_uppercase);
    (!shouts && !is_markup(&found) && !is_instruction_shaped(&found)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::{
        derive,
        tests::{anybody, time},
    };

    #[test]
    fn every_fact_shows_its_words_days_and_reason() {
        let kinds = Kinds::shipped().unwrap();
        let mut person = anybody();
        person.say("name", "mcleod", time("03-02"), |observation| {
            observation.quote = "Remember that my name is McLeod!".to_owned();
            observation.voice = Voice::Remembered;
        });
        person.say("grade_level", "4", time("03-03"), |observation| {
            observation.quote = "I teach 4th grade.".to_owned();
        });
        let facts = derive(&kinds, &person.user, time("03-04"), &person.observations);
        let views = views(&kinds, &facts, &Ledger::new(person.observations));
        let [grade, name] = views.as_slice() else {
            panic!("{views:#?}");
        };
        assert_eq!((name.shown.as_str(), name.value.as_str()), ("McLeod", "mcleod"));
        assert_eq!(name.why, "believed: the person asked for it to be remembered");
        assert_eq!(
            (grade.shown.as_str(), grade.evidence[0].quote.as_str()),
            ("4", "I teach 4th grade.")
        );
        assert_eq!(grade.why, "not certain: said on 1 day; believed after 3 days");
        let json = serde_json::to_value(name).unwrap();
        assert_eq!(json["evidence"][0]["day"], "2026-03-02");
        assert_eq!(serde_json::from_value::<View>(json).unwrap(), *name);
    }

    #[test]
    fn a_value_is_shown_as_it_was_written_where_that_is_plain() {
        for (quote, value, expected) in [
            ("I work on C++, mostly", "c++", Some("C++")),
            ("My name is  Ana   María.", "ana maría", Some("Ana María")),
            ("MY NAME IS MCLEOD", "mcleod", None),
            ("call me AJ", "aj", Some("AJ")),
            ("I like <b>tables</b>", "tables", None),
            ("I like lists", "tables", None),
            ("", "tables", None),
        ] {
            assert_eq!(spelling(quote, value).as_deref(), expected, "{quote}");
        }
    }
}

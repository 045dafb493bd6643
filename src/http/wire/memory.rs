//! The shapes of memory: what is remembered of a person, with the person's own words for it. Times and days are as in an
//! export (RFC 3339), since both are for people to read.

pub(in crate::http) mod carried;
pub(in crate::http) mod query;
pub(in crate::http) mod switches;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::Timestamp,
    id::{FactId, ObservationId, UserId},
    knowledge::Leg,
    memory::{Basis, FactState, Stance, Voice},
    port::{Erased, Forgotten, Remembered},
};
use tidegate_engine::memory::Found;
use tidegate_memory::evidence::{Other, Quote, View};
use utoipa::ToSchema;

use crate::http::error::ApiError;

/// A fact about a person.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryFact {
    #[schema(value_type = String)]
    pub(in crate::http) id: FactId,
    /// `memory.fact`.
    object: &'static str,
    /// What it is about, by its name in the table of kinds.
    kind: String,
    /// The same as a heading.
    label: String,
    /// The value as it is compared.
    value: String,
    /// The value as the person wrote it.
    shown: String,
    /// `candidate`, `stable`, `contested`, `superseded`, `expired` or `retracted`.
    #[schema(value_type = String)]
    state: FactState,
    /// Why it is believed: `days`, `remembered`, `corrected`, or `none` where it is not yet.
    #[schema(value_type = String)]
    basis: Basis,
    /// On how many days it was said.
    days: u32,
    /// On how many it must be said to be believed.
    days_to_stable: u32,
    #[schema(value_type = String)]
    valid_from: Timestamp,
    /// Until when it held, where it no longer does.
    #[schema(value_type = Option<String>)]
    valid_to: Option<Timestamp>,
    /// When it was last said.
    #[schema(value_type = String)]
    last_at: Timestamp,
    /// What took its place, or stands against it.
    other: Option<MemoryOther>,
    /// The state in one sentence.
    why: String,
    /// What the person said, oldest first.
    evidence: Vec<MemoryQuote>,
}

/// Another fact that one is to be read with.
#[derive(Debug, Serialize, ToSchema)]
struct MemoryOther {
    #[schema(value_type = String)]
    id: FactId,
    value: String,
}

/// Something a person said.
#[derive(Debug, Serialize, ToSchema)]
struct MemoryQuote {
    #[schema(value_type = String)]
    id: ObservationId,
    /// The person's own words.
    quote: String,
    /// The local day.
    #[schema(value_type = String)]
    day: Date,
    #[schema(value_type = String)]
    at: Timestamp,
    /// `stated` in passing, `remembered` on request, `corrected` by hand, or `imported`.
    #[schema(value_type = String)]
    voice: Voice,
    /// `affirmed` or `retracted`.
    #[schema(value_type = String)]
    stance: Stance,
    /// Who found it in the turn: `rules`, a model's name, or `person`.
    extractor: String,
}

impl From<View> for MemoryFact {
    fn from(view: View) -> Self {
        Self {
            id: view.id,
            object: "memory.fact",
            kind: view.kind,
            label: view.label,
            value: view.value,
            shown: view.shown,
            state: view.state,
            basis: view.basis,
            days: view.days,
            days_to_stable: view.days_to_stable,
            valid_from: view.valid_from,
            valid_to: view.valid_to,
            last_at: view.last_at,
            other: view.other.map(|Other { id, value }| MemoryOther { id, value }),
            why: view.why,
            evidence: view.evidence.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Quote> for MemoryQuote {
    fn from(quote: Quote) -> Self {
        Self {
            id: quote.id,
            quote: quote.quote,
            day: quote.day,
            at: quote.at,
            voice: quote.voice,
            stance: quote.stance,
            extractor: quote.extractor,
        }
    }
}

/// What is remembered of a person.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryList {
    /// `list`.
    pub(in crate::http) object: &'static str,
    /// Whose: the key, or `key:user`.
    #[schema(value_type = String)]
    pub(in crate::http) user: UserId,
    pub(in crate::http) data: Vec<MemoryFact>,
    pub(in crate::http) first_id: Option<String>,
    pub(in crate::http) last_id: Option<String>,
    pub(in crate::http) has_more: bool,
    /// How many facts there are, of the kind and state that was asked for.
    pub(in crate::http) total: usize,
    /// Finished turns that are not learned from yet.
    pub(in crate::http) pending: u64,
    /// Whether anything is learned from this person's turns.
    pub(in crate::http) learning: bool,
    /// Whether the agent is told of what is remembered.
    pub(in crate::http) recall: bool,
}

/// A fact that the person tells.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct AddFact {
    /// What it is about, such as `grade_level`: a name in the table of kinds.
    pub(in crate::http) kind: String,
    /// The value, such as `4th grade`.
    pub(in crate::http) value: String,
    /// The person's own words for it, on one line; the value itself where absent.
    #[serde(default)]
    pub(in crate::http) quote: Option<String>,
}

/// A change of a fact: another value, or that it is not so.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ChangeFact {
    /// The value that takes its place; the same one to confirm it.
    #[serde(default)]
    value: Option<String>,
    /// True: it is not so, or no longer.
    #[serde(default)]
    retracted: Option<bool>,
    /// The person's own words for it, on one line.
    #[serde(default)]
    pub(in crate::http) quote: Option<String>,
}

/// What is to become of a fact.
#[derive(Debug)]
pub(in crate::http) enum Change {
    /// This value takes its place.
    Value(String),
    /// It is taken back.
    Retracted,
}

impl ChangeFact {
    /// What was asked for.
    pub(in crate::http) fn change(&self) -> Result<Change, ApiError> {
        match (&self.value, self.retracted) {
            (Some(value), None | Some(false)) => Ok(Change::Value(value.clone())),
            (None, Some(true)) => Ok(Change::Retracted),
            (Some(_), Some(true)) => Err(ApiError::invalid_value(
                "retracted",
                "a fact is given another `value` or is `retracted`, not both",
            )),
            (None, Some(false)) => Err(ApiError::invalid_value(
                "retracted",
                "`retracted` is true; what was taken back holds again once its `value` is given",
            )),
            (None, None) => Err(ApiError::missing("value")),
        }
    }
}

/// Says that a fact is forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ForgottenFact {
    id: String,
    /// `memory.fact.deleted`.
    object: &'static str,
    deleted: bool,
    /// How many of the person's sayings went.
    observations: u64,
    /// Entries of the search index that went.
    notes: u64,
    /// Turns that waited to be learned from and went, since the fact may stand in any of them.
    pending: u64,
}

impl ForgottenFact {
    pub(in crate::http) fn of(id: &FactId, forgotten: Forgotten) -> Self {
        Self {
            id: id.to_string(),
            object: "memory.fact.deleted",
            deleted: true,
            observations: forgotten.observations,
            notes: forgotten.notes,
            pending: forgotten.captures,
        }
    }
}

/// Says what was erased.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ErasedMemory {
    /// `memory.deleted`.
    object: &'static str,
    /// Whose: the key, or `key:user`.
    user: String,
    deleted: bool,
    /// Sayings of the person.
    observations: u64,
    /// Entries of the search index, with their vectors.
    notes: u64,
    /// Turns that waited to be learned from.
    pending: u64,
    /// Journals of runs.
    runs: u64,
    /// Turns that waited for a client's half.
    held_turns: u64,
    /// Approvals, waiting and ended.
    approvals: u64,
    /// Rows of the key's books that lost the person's name. They hold no text.
    usage_rows: u64,
    /// Whether the text is out of the files by now; else a reader was under way, and it leaves them as soon as that ends.
    out_of_files: bool,
}

impl ErasedMemory {
    pub(in crate::http) fn of(user: &UserId, erased: Erased) -> Self {
        Self {
            object: "memory.deleted",
            user: user.to_string(),
            deleted: true,
            observations: erased.observations,
            notes: erased.notes,
            pending: erased.captures,
            runs: erased.runs,
            held_turns: erased.held_turns,
            approvals: erased.approvals,
            usage_rows: erased.usage_rows,
            out_of_files: erased.is_out_of_files,
        }
    }
}

/// What of a person's memory bears on a question, best first.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryFindings {
    /// `list`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) data: Vec<MemoryFinding>,
}

/// One of them.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryFinding {
    /// The fact's id.
    #[schema(value_type = String)]
    id: FactId,
    /// `memory.finding`.
    object: &'static str,
    kind: String,
    /// What was searched: the fact in words.
    text: String,
    /// From 0 to 1.
    score: f32,
    /// Its rank among those that share a word with the question.
    words: Option<MemoryLeg>,
    /// Its rank among those that are near in meaning.
    vectors: Option<MemoryLeg>,
}

/// A rank from 1, and the score behind it.
#[derive(Debug, Serialize, ToSchema)]
struct MemoryLeg {
    rank: usize,
    score: f32,
}

impl From<Found> for MemoryFinding {
    fn from(found: Found) -> Self {
        let leg = |Leg { rank, score }| MemoryLeg { rank, score };
        Self {
            id: found.fact,
            object: "memory.finding",
            kind: found.kind,
            text: found.text,
            score: found.score,
            words: found.words.map(leg),
            vectors: found.vectors.map(leg),
        }
    }
}

/// The people of a key of whom something is remembered.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryPeople {
    /// `list`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) data: Vec<MemoryPerson>,
    pub(in crate::http) first_id: Option<String>,
    pub(in crate::http) last_id: Option<String>,
    pub(in crate::http) has_more: bool,
}

/// One of them.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryPerson {
    /// The key, or `key:user`.
    #[schema(value_type = String)]
    pub(in crate::http) id: UserId,
    /// `memory.user`.
    object: &'static str,
    /// The name within the key, for `?user=`; null for whoever the key names nobody for.
    user: Option<String>,
    /// How many sayings are kept.
    observations: u64,
    /// When the newest was said.
    #[schema(value_type = Option<String>)]
    last_at: Option<Timestamp>,
}

impl From<Remembered> for MemoryPerson {
    fn from(person: Remembered) -> Self {
        let name = person.user.as_str().split_once(':');
        Self {
            user: name.map(|(_, name)| name.to_owned()),
            object: "memory.user",
            observations: person.observations,
            last_at: person.last_at,
            id: person.user,
        }
    }
}

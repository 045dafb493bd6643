//! Memory on its way out and in: the form of an export, and what an import says.

use jiff::civil::Date;
use serde::Serialize;
use tidegate_core::{
    clock::Timestamp,
    id::{ObservationId, UserId},
    memory::{Stance, Voice},
};
use tidegate_memory::export::{Document, PassedOver, Saying};
use utoipa::ToSchema;

use super::MemoryFact;

/// Observations that an import passed over and that the answer tells of.
const PASSED_OVER_MAX: usize = 100;

/// Everything that is remembered of a person, to take along. An import reads the observations and nothing else.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryExport {
    /// `tidegate memory`.
    format: String,
    version: u32,
    /// Whose: the key, or `key:user`.
    #[schema(value_type = String)]
    user: UserId,
    #[schema(value_type = String)]
    exported_at: Timestamp,
    /// For people to read.
    facts: Vec<MemoryFact>,
    observations: Vec<MemorySaying>,
}

/// An observation in an export.
#[derive(Debug, Serialize, ToSchema)]
struct MemorySaying {
    #[schema(value_type = String)]
    id: ObservationId,
    kind: String,
    value: String,
    quote: String,
    /// The turn, as 64 hexadecimal digits.
    turn: String,
    /// The conversation, as a digest.
    conversation: String,
    #[schema(value_type = String)]
    day: Date,
    #[schema(value_type = String)]
    at: Timestamp,
    #[schema(value_type = String)]
    voice: Voice,
    #[schema(value_type = String)]
    stance: Stance,
    extractor: String,
    is_explicit: bool,
    is_first_person: bool,
}

impl From<Document> for MemoryExport {
    fn from(document: Document) -> Self {
        Self {
            format: document.format,
            version: document.version,
            user: document.user,
            exported_at: document.exported_at,
            facts: document.facts.into_iter().map(Into::into).collect(),
            observations: document.observations.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Saying> for MemorySaying {
    fn from(saying: Saying) -> Self {
        Self {
            id: saying.id,
            kind: saying.kind,
            value: saying.value,
            quote: saying.quote,
            turn: saying.turn,
            conversation: saying.conversation,
            day: saying.day,
            at: saying.at,
            voice: saying.voice,
            stance: saying.stance,
            extractor: saying.extractor,
            is_explicit: saying.is_explicit,
            is_first_person: saying.is_first_person,
        }
    }
}

/// What an import did.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemoryImport {
    /// `memory.import`.
    object: &'static str,
    /// Observations that are new.
    added: u64,
    /// Observations that were there already.
    known: u64,
    /// How many were passed over.
    passed_over: usize,
    /// The first hundred of them.
    problems: Vec<ImportProblem>,
}

/// An observation that was not imported.
#[derive(Debug, Serialize, ToSchema)]
struct ImportProblem {
    /// Its place in `observations`, counted from 1.
    number: usize,
    reason: String,
}

impl MemoryImport {
    pub(in crate::http) fn of(read: u64, added: u64, passed_over: Vec<PassedOver>) -> Self {
        Self {
            object: "memory.import",
            added,
            known: read.saturating_sub(added),
            passed_over: passed_over.len(),
            problems: passed_over
                .into_iter()
                .take(PASSED_OVER_MAX)
                .map(|PassedOver { number, reason }| ImportProblem { number, reason })
                .collect(),
        }
    }
}

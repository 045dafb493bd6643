//! What is remembered of people: learned from finished turns, told to the model, shown to the person.
//!
//! What may be kept and what follows from it is decided by the pure functions of `tidegate_memory`; here they meet the
//! store, the clock and a model. [`Memory`] is the one door: turns recall and leave their words through it, [`Worker`]
//! learns from what they left, and the front ends show, correct and erase through the methods in `rights`. The
//! permission gate has no access to any of it.

mod options;
mod person;

use std::sync::Arc;

use tidegate_core::{
    clock::{Clock, Entropy},
    error::StoreError,
    id::FactId,
    port::{CaptureQueue, ChatModel, Embedder, Ledger, LineLog, MemoryStore},
    usage::Prices,
};
use tidegate_gate::guards::secrets::Redactor;
use tidegate_memory::{export, kinds::Kinds};

pub use self::{
    options::Options,
    person::Person,
};
use self::person::People;

/// Everything that memory is plugged into.
#[derive(Debug)]
pub struct Parts {
    /// What is kept.
    pub store: Arc<dyn MemoryStore>,
    /// Turns to learn from.
    pub queue: Arc<dyn CaptureQueue>,
    /// What may be kept at all.
    pub kinds: Arc<Kinds>,
    /// For recall by meaning; without one notes are found by their words.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The models, for the one that looks for facts.
    pub model: Arc<dyn ChatModel>,
    /// Where that is booked.
    pub ledger: Arc<dyn Ledger>,
    /// One line a model call.
    pub model_log: Arc<dyn LineLog>,
    /// What models cost.
    pub prices: Arc<Prices>,
    /// Known secrets, of which nothing is kept.
    pub redactor: Arc<Redactor>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Bounds.
    pub options: Options,
}

/// Why memory did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// There is no such fact of this person.
    #[error("no fact {0} is remembered of this user; GET /v1/memory or `tidegate memory list` shows what is")]
    NoFact(FactId),
    /// What was given cannot be kept; the text says why and what can.
    #[error("{message}")]
    Invalid {
        /// Which member of the request it is.
        param: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A document cannot be imported.
    #[error(transparent)]
    Import(#[from] export::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is remembered of people.
#[derive(Debug)]
pub struct Memory {
    parts: Parts,
    people: People,
}

impl Memory {
    /// Plugs memory in.
    pub fn new(parts: Parts) -> Self {
        Self {
            people: People::new(parts.options.people_cached_max),
            parts,
        }
    }

    /// What may be kept at all.
    pub fn kinds(&self) -> &Kinds {
        &self.parts.kinds
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }
}

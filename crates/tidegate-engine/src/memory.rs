//! What is remembered of people: learned from finished turns, told to the model, shown to the person.
//!
//! What may be kept and what follows from it is decided by the pure functions of `tidegate_memory`; here they meet the
//! store, the clock and a model. [`Memory`] is the one door: turns recall and leave their words through it, [`Worker`]
//! learns from what they left, and the front ends show, correct and erase through the methods in `rights`. The
//! permission gate has no access to any of it.

mod agenda;
mod asking;
pub(crate) mod capture;
mod learn;
pub(crate) mod learner;
mod notes;
mod options;
mod person;
pub(crate) mod recall;
mod rights;
mod trial;
mod worker;

use std::sync::{Arc, PoisonError, RwLock};

use tidegate_core::{
    clock::{Clock, Entropy},
    error::StoreError,
    id::{FactId, UserId},
    port::{CaptureCounts, CaptureQueue, ChatModel, Embedder, KeyStore, Ledger, LineLog, MemoryStore},
    usage::Prices,
};
use tidegate_gate::guards::secrets::Redactor;
use tidegate_memory::{export, kinds::Kinds};

use self::{agenda::Agenda, person::People};
pub use self::{
    options::{DEFAULT_MODEL, Extractor, Options},
    person::Person,
    recall::{Found, Told},
    rights::Given,
    trial::Trial,
    worker::Worker,
};

/// Everything that memory is plugged into.
#[derive(Debug)]
pub struct Parts {
    /// What is kept.
    pub store: Arc<dyn MemoryStore>,
    /// Turns to learn from.
    pub queue: Arc<dyn CaptureQueue>,
    /// Whose quotas a model call counts against.
    pub keys: Arc<dyn KeyStore>,
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
    kinds: RwLock<Arc<Kinds>>,
    people: People,
    agenda: Agenda,
}

impl Memory {
    /// Plugs memory in; `kinds` is the table of what may be kept at all.
    pub fn new(parts: Parts, kinds: Kinds) -> Self {
        Self {
            kinds: RwLock::new(Arc::new(kinds)),
            people: People::new(parts.options.people_cached_max),
            agenda: Agenda::default(),
            parts,
        }
    }

    /// What may be kept at all, as it is now.
    pub fn kinds(&self) -> Arc<Kinds> {
        Arc::clone(&self.kinds.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another table in the place of that one. Facts are derived, so it holds for everything that was ever said.
    pub fn set_kinds(&self, kinds: Kinds) {
        *self.kinds.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(kinds);
    }

    /// How a person's turns wait to be learned from: how many do, those that are worked on included.
    pub async fn pending(&self, user: &UserId) -> Result<u64, MemoryError> {
        Ok(self.parts.queue.pending_of(user).await?)
    }

    /// How full the queue of turns is.
    pub async fn counts(&self) -> Result<CaptureCounts, MemoryError> {
        Ok(self.parts.queue.capture_counts().await?)
    }

    /// What the worker has to do beside the queue.
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }
}

//! How far it is, for progress bars and status.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// How far reading and embedding are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the folder has been compared with the index since the start.
    pub is_scanned: bool,
    /// Files that wait or are being read.
    pub pending: u64,
    /// Files that were read since the queue was last empty.
    pub done: u64,
    /// Of these, files that cannot be read or that the store did not take.
    pub failed: u64,
    /// Chunks that were put in since the queue was last empty.
    pub chunks: u64,
    /// Whether vectors are being filled in.
    pub is_embedding: bool,
    /// Chunks that have an answer from the configured model, while vectors are being filled in.
    pub embedded: u64,
    /// Chunks there are, while vectors are being filled in.
    pub to_embed: u64,
}

impl Progress {
    /// Whether nothing is left to do, but for what an embedder refuses for now.
    pub fn is_idle(&self) -> bool {
        self.is_scanned && self.pending == 0 && !self.is_embedding
    }
}

/// What the store did not take or say.
pub(super) const STORE: &str = "store";

/// What is wrong just now, a sentence for each matter.
#[derive(Debug, Default)]
pub(super) struct Problems(Mutex<BTreeMap<&'static str, String>>);

impl Problems {
    pub(super) fn set(&self, matter: &'static str, problem: Option<String>) {
        let mut problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(problem) => {
                let is_new = problems.get(matter) != Some(&problem);
                if is_new {
                    tracing::warn!(matter, %problem, "the knowledge bank has a problem");
                }
                problems.insert(matter, problem);
            }
            None => drop(problems.remove(matter)),
        }
    }

    pub(super) fn of(&self, matter: &'static str) -> Option<String> {
        let problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        problems.get(matter).cloned()
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }
}

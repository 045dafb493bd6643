//! What the worker has to do beside the queue, as others note it down for it. All of it is lost with the process and
//! found again: what is missing shows with the next look at a person.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tidegate_core::id::UserId;
use tokio::sync::Notify;

/// People who are noted down at once; who comes later is found by the next look at them.
const PEOPLE_MAX: usize = 1_024;

/// The list.
#[derive(Debug)]
pub(super) struct Agenda {
    /// A turn was queued.
    pub(super) turns: Notify,
    /// Something else was noted down.
    pub(super) house: Notify,
    /// People whose facts were worked out anew, for other reasons than a change: by another table, or on a new day.
    unaligned: Mutex<BTreeSet<UserId>>,
    /// Whether notes may have no vector yet.
    unembedded: AtomicBool,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            turns: Notify::new(),
            house: Notify::new(),
            unaligned: Mutex::default(),
            // Nobody knows what an earlier process left.
            unembedded: AtomicBool::new(true),
        }
    }
}

impl Agenda {
    /// A turn waits to be learned from.
    pub(super) fn wake(&self) {
        self.turns.notify_one();
    }

    /// A person's notes may not follow from their facts.
    pub(super) fn align_later(&self, user: &UserId) {
        let mut unaligned = self.unaligned.lock().unwrap_or_else(PoisonError::into_inner);
        if unaligned.len() < PEOPLE_MAX {
            unaligned.insert(user.clone());
        }
        drop(unaligned);
        self.house.notify_one();
    }

    /// A person's notes follow.
    pub(super) fn aligned(&self, user: &UserId) {
        let mut unaligned = self.unaligned.lock().unwrap_or_else(PoisonError::into_inner);
        unaligned.remove(user);
    }

    /// Somebody whose notes may not follow; who is given is off the list.
    pub(super) fn take_unaligned(&self) -> Option<UserId> {
        let mut unaligned = self.unaligned.lock().unwrap_or_else(PoisonError::into_inner);
        unaligned.pop_first()
    }

    /// Notes have no vectors yet.
    pub(super) fn embed_later(&self) {
        self.unembedded.store(true, Ordering::Relaxed);
        self.house.notify_one();
    }

    /// The same, to be looked at with whatever comes next: they cannot be had now.
    pub(super) fn put_off_embedding(&self) {
        self.unembedded.store(true, Ordering::Relaxed);
    }

    /// Whether that was noted; it is off the list then.
    pub(super) fn take_unembedded(&self) -> bool {
        self.unembedded.swap(false, Ordering::Relaxed)
    }
}

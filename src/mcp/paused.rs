//! Runs that wait for a person whom a client of the newer generation is asking: its request has ended with the
//! question, and the next one brings the answer. What is kept here is bounded by the runs that a key may have under
//! way, and leaves when nobody waits for the answer any more.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use tidegate_core::id::{ApprovalId, KeyId, UserId};

use super::{
    Asker, Server,
    approve::{self, Question},
    ask::Following,
};

/// A run, and what it waits for.
#[derive(Debug)]
pub(super) struct Paused {
    pub(super) following: Following,
    pub(super) question: Question,
}

/// The runs that wait, by the approval that they wait for.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<HashMap<ApprovalId, (Owner, Paused)>>);

/// Whose a run is.
type Owner = (KeyId, UserId);

fn owner(asker: &Asker) -> Owner {
    (asker.caller.key_id.clone(), asker.caller.user.clone())
}

/// Keeps a run until its answer comes, or the run has stopped waiting for it.
pub(super) fn keep(server: &Server, asker: &Asker, paused: Paused) {
    let (id, run) = (paused.question.id().clone(), paused.following.run_id().clone());
    server.paused.insert(id.clone(), (owner(asker), paused));
    let server = server.clone();
    server.tracker.clone().spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(approve::wait(&server)) => {}
            () = server.shutdown.cancelled() => {}
        }
        // From then on nobody looks at the run, which does what the key says of lost connections.
        drop(
            server
                .paused
                .remove(&id, |_, paused| *paused.following.run_id() == run),
        );
    });
}

/// The run that waits for that answer, if it is this caller's own.
pub(super) fn take(server: &Server, asker: &Asker, id: &ApprovalId) -> Option<Paused> {
    let owner = owner(asker);
    server.paused.remove(id, |of, _| *of == owner)
}

impl Table {
    /// Two runs may ask the very same; the one that asked last is answered.
    fn insert(&self, id: ApprovalId, entry: (Owner, Paused)) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = table.insert(id, entry);
        drop(table);
        drop(before);
    }

    fn remove(&self, id: &ApprovalId, is_right: impl FnOnce(&Owner, &Paused) -> bool) -> Option<Paused> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_right = table
            .get(id)
            .is_some_and(|(owner, paused)| is_right(owner, paused));
        let entry = if is_right { table.remove(id) } else { None };
        drop(table);
        entry.map(|(_, paused)| paused)
    }
}

//! Whose the sessions are, how many are open, and which one makes room for another.
//!
//! Many clients leave without a word, and come again with a new session. So a key that has as many as it may loses
//! the one that it has used least lately, if nobody is connected to it; its client is told that it is over, and opens
//! another. No key takes a session from another key.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tidegate_core::id::{KeyId, UserId};

/// One key has at most this part of all sessions.
const KEY_PARTS: usize = 4;

/// Whose a session is.
pub(super) type Owner = (KeyId, UserId);

/// The sessions that are open or being opened.
#[derive(Debug)]
pub(super) struct Sessions {
    table: Mutex<Table>,
    most: usize,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<String, Session>,
    /// The keys that are opening one.
    opening: Vec<KeyId>,
    /// Counts uses, so that one can be the latest.
    uses: u64,
}

#[derive(Debug)]
struct Session {
    owner: Owner,
    used: u64,
    /// Shared with every answer of the session that is still being read.
    connected: Arc<()>,
}

/// That somebody is connected to a session, for as long as it is held.
pub(super) type Connected = Arc<()>;

/// Leave to open a session. It is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    sessions: Arc<Sessions>,
    owner: Owner,
}

impl Sessions {
    /// None are open yet.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            most,
        })
    }

    /// A use of the session, if it is that owner's.
    pub(super) fn enter(&self, id: &str, owner: &Owner) -> Option<Connected> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let uses = table.uses;
        let session = table.open.get_mut(id).filter(|session| session.owner == *owner)?;
        session.used = uses;
        Some(Arc::clone(&session.connected))
    }

    /// Leave to open one more, and the session that makes room for it and is to be closed. `is_open` says of a session
    /// whether it is still there.
    pub(super) fn seat(
        self: &Arc<Self>,
        owner: &Owner,
        is_open: impl Fn(&str) -> bool,
    ) -> Option<(Seat, Option<String>)> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.open.retain(|id, _| is_open(id));
        let (key, _) = owner;
        let own = table.of(key);
        let is_full =
            own >= (self.most / KEY_PARTS).max(1) || table.open.len() + table.opening.len() >= self.most;
        let leaves = if is_full {
            Some(table.take_unused(key)?)
        } else {
            None
        };
        table.opening.push(key.clone());
        let seat = Seat {
            sessions: Arc::clone(self),
            owner: owner.clone(),
        };
        Some((seat, leaves))
    }
}

impl Table {
    /// How many the key has, or is about to have.
    fn of(&self, key: &KeyId) -> usize {
        let open = self.open.values().filter(|session| session.owner.0 == *key);
        let opening = self.opening.iter().filter(|of| *of == key);
        open.count() + opening.count()
    }

    /// Forgets the key's session that was used least lately, of those that nobody is connected to.
    fn take_unused(&mut self, key: &KeyId) -> Option<String> {
        let unused = self
            .open
            .iter()
            .filter(|(_, session)| session.owner.0 == *key && Arc::strong_count(&session.connected) == 1);
        let (id, _) = unused.min_by_key(|(_, session)| session.used)?;
        let id = id.clone();
        self.open.remove(&id);
        Some(id)
    }
}

impl Seat {
    /// The session that was opened is its opener's.
    pub(super) fn take(self, id: &str) {
        let mut table = self.sessions.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let session = Session {
            owner: self.owner.clone(),
            used: table.uses,
            connected: Arc::default(),
        };
        table.open.insert(id.to_owned(), session);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.sessions.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = table.opening.iter().position(|key| *key == self.owner.0) {
            table.opening.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(key: &str) -> Owner {
        let key = KeyId::new(key);
        let user = UserId::of(&key, None).unwrap();
        (key, user)
    }

    /// The session that made room for that one; `-` where there was room. `None`: there is none.
    fn open(sessions: &Arc<Sessions>, owner: &Owner, id: &str) -> Option<String> {
        let (seat, leaves) = sessions.seat(owner, |_| true)?;
        seat.take(id);
        Some(leaves.unwrap_or_else(|| "-".to_owned()))
    }

    #[test]
    fn the_one_used_least_lately_makes_room_and_never_one_in_use() {
        let sessions = Sessions::new(8);
        let ann = owner("ann");
        let open = |id| open(&sessions, &ann, id);
        assert_eq!(open("one").as_deref(), Some("-"));
        assert_eq!(open("two").as_deref(), Some("-"));
        let reading = sessions.enter("one", &ann).unwrap();
        assert_eq!(open("three").as_deref(), Some("two"));
        let also = sessions.enter("three", &ann).unwrap();
        assert_eq!(open("four"), None, "somebody is connected to both");
        drop(reading);
        assert_eq!(open("four").as_deref(), Some("one"));
        drop(also);
        assert!(sessions.enter("two", &ann).is_none());
        assert!(sessions.enter("four", &owner("bob")).is_none());
    }

    #[test]
    fn who_is_about_to_open_one_counts_and_no_key_takes_anothers() {
        let sessions = Sessions::new(4);
        let (ann, bob) = (owner("ann"), owner("bob"));
        let (seat, _) = sessions.seat(&ann, |_| true).unwrap();
        assert!(
            sessions.seat(&ann, |_| true).is_none(),
            "its only one is being opened"
        );
        assert_eq!(open(&sessions, &bob, "b").as_deref(), Some("-"));
        drop(seat);
        assert_eq!(open(&sessions, &ann, "a").as_deref(), Some("-"));
        for key in ["carl", "dora"] {
            assert_eq!(open(&sessions, &owner(key), key).as_deref(), Some("-"));
        }
        assert_eq!(open(&sessions, &owner("eve"), "e"), None, "all places are taken");
        assert!(
            sessions.seat(&owner("eve"), |id| id != "a").is_some(),
            "one has ended"
        );
    }
}

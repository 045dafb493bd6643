//! What is known of one person at one state of the store, worked out once and kept while the state lasts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::civil::Date;
use tidegate_core::{
    error::StoreError,
    id::{FactId, UserId},
    memory::Fact,
    port::{MemoryVersion, RowKey},
};
use tidegate_memory::{briefing::Index, derive::derive, evidence::Ledger, kinds::Kinds, recall::Matrix};
use tokio::sync::OnceCell;

use super::Memory;

/// Observations that are read at once.
const PAGE: usize = 2_000;

/// How often reading begins anew because something was written in the middle of it.
const READINGS_MAX: usize = 8;

/// How much memory the people at hand may take in all, in bytes, as far as that is counted.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// About what an observation takes, in bytes: its words and ids.
const OBSERVATION_BYTES: usize = 700;

/// About what a fact takes, in bytes, with a vector of its note.
const FACT_BYTES: usize = 1_000;

/// A person's facts.
#[derive(Debug)]
pub struct Person {
    /// The state they follow from.
    pub version: MemoryVersion,
    /// The day on which they were derived: what is too old is so as of a day.
    day: Date,
    /// The table by which they were derived.
    kinds: Arc<Kinds>,
    /// What follows from what the person said.
    pub facts: Arc<Vec<Fact>>,
    /// What the person said.
    pub ledger: Arc<Ledger>,
    /// What of the facts is looked at for every request.
    pub(super) index: Arc<Index>,
    /// The vectors of the notes, once they were needed.
    matrix: OnceCell<Matrix>,
}

impl Person {
    /// The vectors of the person's notes.
    pub(super) async fn matrix(&self, memory: &Memory, user: &UserId) -> Result<&Matrix, StoreError> {
        self.matrix.get_or_try_init(|| memory.read_matrix(user)).await
    }

    /// The table by which the facts were derived.
    pub(super) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The fact of that id.
    pub(super) fn fact(&self, id: &FactId) -> Option<&Fact> {
        self.facts.get(self.index.position(&self.facts, id)?)
    }

    fn bytes(&self) -> usize {
        self.ledger.observations().len() * OBSERVATION_BYTES + self.facts.len() * FACT_BYTES
    }
}

/// People whose facts are at hand.
#[derive(Debug)]
pub(super) struct People {
    kept_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Counts the looks, so that the one whom nobody looked at for longest is the one that goes.
    looks: u64,
    people: HashMap<UserId, (u64, Arc<Person>)>,
    bytes: usize,
}

impl People {
    pub(super) fn new(kept_max: usize) -> Self {
        Self {
            kept_max,
            kept: Mutex::default(),
        }
    }

    fn get(
        &self,
        user: &UserId,
        version: MemoryVersion,
        day: Date,
        kinds: &Arc<Kinds>,
    ) -> Option<Arc<Person>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let looks = kept.looks;
        let (looked_at, person) = kept.people.get_mut(user)?;
        *looked_at = looks;
        let is_current = person.version == version && person.day == day && Arc::ptr_eq(&person.kinds, kinds);
        is_current.then(|| Arc::clone(person))
    }

    fn put(&self, user: &UserId, person: &Arc<Person>) {
        if self.kept_max == 0 {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let looks = kept.looks;
        kept.remove(user);
        kept.bytes += person.bytes();
        kept.people.insert(user.clone(), (looks, Arc::clone(person)));
        while kept.people.len() > self.kept_max || kept.bytes > KEPT_BYTES_MAX {
            let oldest = kept.people.iter().min_by_key(|(_, (looked_at, _))| *looked_at);
            match oldest.map(|(user, _)| user.clone()) {
                Some(oldest) => kept.remove(&oldest),
                None => break,
            }
        }
    }

    /// Takes what is at hand of a person over to a later state, in which the facts are the same.
    pub(super) fn rebase(&self, user: &UserId, person: &Person, version: MemoryVersion) {
        if person.version == version {
            return;
        }
        let person = Person {
            version,
            day: person.day,
            kinds: Arc::clone(&person.kinds),
            facts: Arc::clone(&person.facts),
            ledger: Arc::clone(&person.ledger),
            index: Arc::clone(&person.index),
            matrix: OnceCell::new(),
        };
        self.put(user, &Arc::new(person));
    }

    /// Drops what is at hand of a person.
    pub(super) fn forget(&self, user: &UserId) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(user);
    }
}

impl Kept {
    fn remove(&mut self, user: &UserId) {
        if let Some((_, person)) = self.people.remove(user) {
            self.bytes = self.bytes.saturating_sub(person.bytes());
        }
    }
}

impl Memory {
    /// What is known of a person now.
    pub async fn person(&self, user: &UserId) -> Result<Arc<Person>, StoreError> {
        let parts = self.parts();
        let mut problem = StoreError::Internal("what is remembered changed all the while".to_owned());
        for _ in 0..READINGS_MAX {
            let (version, day) = (parts.store.version(user).await?, parts.clock.today());
            let kinds = self.kinds();
            if let Some(person) = self.people.get(user, version, day, &kinds) {
                return Ok(person);
            }
            match self.read(user, version).await {
                Ok(Some(ledger)) => {
                    let facts = derive(&kinds, user, parts.clock.now(), ledger.observations());
                    let index = Index::of(&kinds, &facts);
                    let person = Arc::new(Person {
                        version,
                        day,
                        kinds,
                        facts: Arc::new(facts),
                        ledger: Arc::new(ledger),
                        index: Arc::new(index),
                        matrix: OnceCell::new(),
                    });
                    self.people.put(user, &person);
                    self.agenda().align_later(user);
                    return Ok(person);
                }
                Ok(None) => {}
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    /// Everything that a person said, where nothing of it changes meanwhile.
    async fn read(&self, user: &UserId, version: MemoryVersion) -> Result<Option<Ledger>, StoreError> {
        let mut observations = Vec::new();
        let mut from: RowKey = 0;
        loop {
            let page = self.parts().store.observations(user, from, PAGE).await?;
            if page.version != version {
                return Ok(None);
            }
            observations.extend(page.observations);
            match page.next {
                Some(next) => from = next,
                None => return Ok(Some(Ledger::new(observations))),
            }
        }
    }
}

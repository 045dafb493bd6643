//! What is known of one person at one state of the store, worked out once and kept while the state lasts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::civil::Date;
use tidegate_core::{
    error::StoreError,
    id::UserId,
    memory::Fact,
    port::{MemoryVersion, RowKey},
};
use tidegate_memory::{derive::derive, evidence::Ledger};

use super::Memory;

/// Observations that are read at once.
const PAGE: usize = 2_000;

/// How often reading begins anew because something was written in the middle of it.
const READINGS_MAX: usize = 8;

/// A person's facts.
#[derive(Debug)]
pub struct Person {
    /// The state they follow from.
    pub version: MemoryVersion,
    /// The day on which they were derived: what is too old is so as of a day.
    day: Date,
    /// What follows from what the person said.
    pub facts: Vec<Fact>,
    /// What the person said.
    pub ledger: Ledger,
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
}

impl People {
    pub(super) fn new(kept_max: usize) -> Self {
        Self {
            kept_max,
            kept: Mutex::default(),
        }
    }

    fn get(&self, user: &UserId, version: MemoryVersion, day: Date) -> Option<Arc<Person>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let looks = kept.looks;
        let (looked_at, person) = kept.people.get_mut(user)?;
        *looked_at = looks;
        (person.version == version && person.day == day).then(|| Arc::clone(person))
    }

    fn put(&self, user: &UserId, person: &Arc<Person>) {
        if self.kept_max == 0 {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let looks = kept.looks;
        kept.people.insert(user.clone(), (looks, Arc::clone(person)));
        if kept.people.len() > self.kept_max {
            let oldest = kept.people.iter().min_by_key(|(_, (looked_at, _))| *looked_at);
            if let Some(oldest) = oldest.map(|(user, _)| user.clone()) {
                kept.people.remove(&oldest);
            }
        }
    }

    /// Drops what is at hand of a person.
    pub(super) fn forget(&self, user: &UserId) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.people.remove(user);
    }
}

impl Memory {
    /// What is known of a person now.
    pub async fn person(&self, user: &UserId) -> Result<Arc<Person>, StoreError> {
        let parts = self.parts();
        let mut problem = StoreError::Internal("what is remembered changed all the while".to_owned());
        for _ in 0..READINGS_MAX {
            let (version, day) = (parts.store.version(user).await?, parts.clock.today());
            if let Some(person) = self.people.get(user, version, day) {
                return Ok(person);
            }
            match self.read(user, version).await {
                Ok(Some(ledger)) => {
                    let facts = derive(&parts.kinds, user, parts.clock.now(), ledger.observations());
                    let person = Arc::new(Person {
                        version,
                        day,
                        facts,
                        ledger,
                    });
                    self.people.put(user, &person);
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

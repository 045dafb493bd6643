//! What is remembered of people: observations, notes for recall, and the queue of turns to learn from.
//!
//! **One person's rows are a range of keys.** A person is a number, and all of their rows have it in the upper bits of
//! the key (`people`). Each statement finds the number by the whole id, compared byte by byte, and reads within the
//! range; there is no statement without it, but for the sweeper's and the queue's own.
//!
//! **Words.** One full-text index holds everybody's notes, and a search reads of each word's list the part that is
//! within the range. How rare a word is, is counted there, too (`search`).
//!
//! **Nothing comes back.** A queued turn goes in the transaction that keeps what was learned from it, and its row
//! must be there for that (`queue`); notes are put only on the state that they were derived from (`notes`).

mod notes;
mod observations;
mod people;
mod prune;
mod queue;
mod search;
mod vectors;

use std::path::Path;

use async_trait::async_trait;
use rusqlite::{Connection, Row, types::Type};
use serde::de::{DeserializeOwned, IntoDeserializer, value::StrDeserializer};
use tidegate_core::{
    clock::Timestamp,
    error::StoreError,
    id::{FactId, KeyId, UserId},
    memory::Observation,
    port::{
        Erased, Forgotten, MemoryStore, MemoryVersion, NewNote, Note, ObservationPage, Pruned, Remembered,
        Retention, RowKey, Switch, SwitchOwner, Switches, VectorPage,
    },
};

pub(crate) use self::people::{Detached, detach};
use crate::{knowledge::readers::Readers, store::Store};

/// The most rows in an answer, whatever is asked for.
const ROWS_MAX: usize = 10_000;

/// What the store keeps for reading what is remembered.
#[derive(Debug)]
pub(crate) struct Memory {
    readers: Readers,
}

impl Memory {
    /// Opens nothing yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            readers: Readers::new(path),
        }
    }

    /// Closes what is open.
    pub(crate) fn close(&self) {
        self.readers.close();
    }
}

impl Store {
    async fn recollect<T, W>(&self, doing: &'static str, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    {
        self.memory().readers.read(doing, work).await
    }
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit.min(ROWS_MAX)).unwrap_or(i64::MAX)
}

fn undecodable<E: std::error::Error + Send + Sync + 'static>(
    column: usize,
) -> impl FnOnce(E) -> rusqlite::Error {
    move |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

/// A value of an enum, or an id, by its name.
fn named<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, rusqlite::Error> {
    let text: StrDeserializer<'_, serde::de::value::Error> =
        row.get_ref(column)?.as_str()?.into_deserializer();
    T::deserialize(text).map_err(undecodable(column))
}

fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, rusqlite::Error> {
    Timestamp::from_microsecond(row.get(column)?).map_err(undecodable(column))
}

#[async_trait]
impl MemoryStore for Store {
    async fn version(&self, user: &UserId) -> Result<MemoryVersion, StoreError> {
        let user = user.clone();
        self.recollect("reading the state of a person's memory", move |db| {
            people::version(db, &user)
        })
        .await
    }

    async fn append(&self, user: &UserId, observations: Vec<Observation>) -> Result<u64, StoreError> {
        self.append_observations(user, observations).await
    }

    async fn observations(
        &self,
        user: &UserId,
        from: RowKey,
        limit: usize,
    ) -> Result<ObservationPage, StoreError> {
        let user = user.clone();
        self.recollect("reading observations", move |db| {
            observations::page(db, &user, from, limit)
        })
        .await
    }

    async fn forget(&self, user: &UserId, kind: &str, value: &str) -> Result<Forgotten, StoreError> {
        self.forget_fact(user, kind, value).await
    }

    async fn erase(&self, user: &UserId) -> Result<Erased, StoreError> {
        self.erase_user(&user.key_id(), user).await
    }

    async fn users(
        &self,
        key_id: &KeyId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Result<Vec<Remembered>, StoreError> {
        let (key_id, after) = (key_id.clone(), after.cloned());
        self.recollect("listing people", move |db| {
            people::of_key(db, &key_id, after.as_ref(), limit)
        })
        .await
    }

    async fn prune_observations(&self, retention: &Retention, from: RowKey) -> Result<Pruned, StoreError> {
        self.prune_memory(retention, from).await
    }

    async fn switches(&self, user: &UserId) -> Result<(Switches, Switches), StoreError> {
        let user = user.clone();
        self.recollect("reading switches", move |db| people::switches(db, &user))
            .await
    }

    async fn set_switch(&self, owner: &SwitchOwner, switch: Switch, is_on: bool) -> Result<(), StoreError> {
        self.turn_switch(owner, switch, is_on).await
    }

    async fn put_notes(
        &self,
        user: &UserId,
        derived_from: MemoryVersion,
        notes: Vec<NewNote>,
        gone: Vec<FactId>,
    ) -> Result<Option<MemoryVersion>, StoreError> {
        self.put_new_notes(user, derived_from, notes, gone).await
    }

    async fn notes(&self, user: &UserId, from: RowKey, limit: usize) -> Result<Vec<Note>, StoreError> {
        let user = user.clone();
        self.recollect("reading notes", move |db| notes::page(db, &user, from, limit))
            .await
    }

    async fn notes_of(&self, user: &UserId, keys: &[RowKey]) -> Result<Vec<Note>, StoreError> {
        let (user, keys) = (user.clone(), keys.to_vec());
        self.recollect("reading notes", move |db| notes::of_keys(db, &user, &keys))
            .await
    }

    async fn match_notes(
        &self,
        user: &UserId,
        terms: &[String],
        limit: usize,
    ) -> Result<Vec<(RowKey, f32)>, StoreError> {
        let (user, terms) = (user.clone(), terms.to_vec());
        self.recollect("searching notes for words", move |db| {
            search::match_words(db, &user, &terms, limit)
        })
        .await
    }

    async fn note_vectors(
        &self,
        user: &UserId,
        model: &str,
        from: RowKey,
        limit: usize,
    ) -> Result<VectorPage, StoreError> {
        let (user, model) = (user.clone(), model.to_owned());
        self.recollect("reading vectors of notes", move |db| {
            vectors::page(db, &user, &model, from, limit)
        })
        .await
    }

    async fn put_note_vectors(
        &self,
        user: &UserId,
        model: &str,
        vectors: Vec<(RowKey, Option<Vec<f32>>)>,
    ) -> Result<u64, StoreError> {
        self.keep_note_vectors(user, model, vectors).await
    }

    async fn unembedded_notes(
        &self,
        user: &UserId,
        model: &str,
        limit: usize,
    ) -> Result<Vec<Note>, StoreError> {
        let (user, model) = (user.clone(), model.to_owned());
        self.recollect("looking for notes without a vector", move |db| {
            vectors::unembedded(db, &user, &model, limit)
        })
        .await
    }

    async fn users_with_unembedded_notes(
        &self,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UserId>, StoreError> {
        let model = model.to_owned();
        self.recollect("looking for notes without a vector", move |db| {
            vectors::users_unembedded(db, &model, limit)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::sound;

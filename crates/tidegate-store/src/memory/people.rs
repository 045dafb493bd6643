//! People by number, their state, and the switches.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, params};
use sqlx::SqliteConnection;
use tidegate_core::{
    error::StoreError,
    id::{KeyId, UserId},
    port::{MemoryVersion, Remembered, RowKey, Switch, SwitchOwner, Switches},
};

use super::{limited, named, time};
use crate::{error::failed, row::uncount, store::Store, writer::Command};

/// Bits of a key that count a person's rows; the rest is the person's number.
const ROW_BITS: u32 = 24;

/// The first key that a person may have, counted up by `nth`.
pub(super) fn key(person: i64, nth: i64) -> RowKey {
    (person << ROW_BITS) + nth
}

/// Every key that a person may have.
pub(super) fn keys(person: i64) -> RangeInclusive<RowKey> {
    key(person, 0)..=key(person, (1 << ROW_BITS) - 1)
}

/// A state: no number is given out twice, so that a person who comes back after an erasure has none of the old ones.
pub(super) fn state(person: i64, version: i64) -> MemoryVersion {
    MemoryVersion((uncount(person) << 32) | (uncount(version) & u64::from(u32::MAX)))
}

/// A person's number.
pub(super) fn number(db: &Connection, user: &UserId) -> Result<Option<i64>, rusqlite::Error> {
    db.prepare_cached("SELECT number FROM memory_people WHERE user_id = ?1")?
        .query_row([user.as_str()], |row| row.get(0))
        .optional()
}

pub(super) fn version(db: &Connection, user: &UserId) -> Result<MemoryVersion, rusqlite::Error> {
    let found = db
        .prepare_cached("SELECT number, version FROM memory_people WHERE user_id = ?1")?
        .query_row([user.as_str()], |row| Ok(state(row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// Ids of a key's people begin with it; where one is `key`, others are `key:…`, and `;` follows `:`.
pub(super) fn of_key(
    db: &Connection,
    key_id: &KeyId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<Remembered>, rusqlite::Error> {
    db.prepare_cached(
        "SELECT user_id, observations, notes, last_at FROM memory_people \
         WHERE user_id >= ?1 AND user_id < ?1 || ';' AND user_id > ?2 AND key_id = ?1 \
         AND (observations > 0 OR notes > 0) ORDER BY user_id LIMIT ?3",
    )?
    .query_map(
        params![key_id.as_str(), after.map_or("", UserId::as_str), limited(limit)],
        |row| {
            Ok(Remembered {
                user: named(row, 0)?,
                observations: uncount(row.get(1)?),
                notes: uncount(row.get(2)?),
                last_at: row.get::<_, Option<i64>>(3)?.map(|_| time(row, 3)).transpose()?,
            })
        },
    )?
    .collect()
}

pub(super) fn switches(db: &Connection, user: &UserId) -> Result<(Switches, Switches), rusqlite::Error> {
    let read = |sql: &str, id: &str| {
        db.prepare_cached(sql)?
            .query_row([id], |row| {
                Ok(Switches {
                    learning: row.get(0)?,
                    recall: row.get(1)?,
                })
            })
            .optional()
            .map(Option::unwrap_or_default)
    };
    let person = read(
        "SELECT learning, recall FROM memory_people WHERE user_id = ?1",
        user.as_str(),
    )?;
    let key = read(
        "SELECT learning, recall FROM memory_keys WHERE key_id = ?1",
        user.key_id().as_str(),
    )?;
    Ok((person, key))
}

/// Begins a new state of a person, who is given a number if need be, and takes so many keys for observations and for
/// notes. Gives the number, the state's count, and how many keys of each kind there were before.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    user: &UserId,
    observations: i64,
    notes: i64,
) -> Result<Begun, StoreError> {
    let (number, version, observations_ever, notes_ever): (i64, i64, i64, i64) = sqlx::query_as(
        "INSERT INTO memory_people (key_id, user_id, version, observations_ever, notes_ever) \
         VALUES ($1, $2, 1, $3, $4) ON CONFLICT (user_id) DO UPDATE SET version = version + 1, \
         observations_ever = observations_ever + $3, notes_ever = notes_ever + $4 \
         RETURNING number, version, observations_ever, notes_ever",
    )
    .bind(user.key_id().as_str().to_owned())
    .bind(user.as_str().to_owned())
    .bind(observations)
    .bind(notes)
    .fetch_one(connection)
    .await
    .map_err(failed("writing to a person's memory"))?;
    Ok(Begun {
        person: number,
        version: state(number, version),
        first_observation: key(number, observations_ever - observations),
        first_note: key(number, notes_ever - notes),
    })
}

/// A state that has begun.
pub(super) struct Begun {
    pub(super) person: i64,
    pub(super) version: MemoryVersion,
    pub(super) first_observation: RowKey,
    pub(super) first_note: RowKey,
}

/// Where a person has a number: it, and the state, in a transaction that writes.
pub(super) async fn find(
    connection: &mut SqliteConnection,
    user: &UserId,
) -> Result<Option<(i64, MemoryVersion)>, StoreError> {
    let found: Option<(i64, i64)> =
        sqlx::query_as("SELECT number, version FROM memory_people WHERE user_id = $1")
            .bind(user.as_str().to_owned())
            .fetch_optional(connection)
            .await
            .map_err(failed("reading a person's memory"))?;
    Ok(found.map(|(number, version)| (number, state(number, version))))
}

/// What a person had when the name was taken off.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Detached {
    pub(crate) observations: u64,
    pub(crate) notes: u64,
}

/// Takes a person's name off all that is remembered, so that nobody finds it any more; the sweeper removes it. What
/// the person has switched off stays off.
pub(crate) async fn detach(connection: &mut SqliteConnection, user: &UserId) -> Result<Detached, StoreError> {
    let doing = "erasing a person's memory";
    let found: Option<(i64, bool, bool, i64, i64)> = sqlx::query_as(
        "SELECT number, learning, recall, observations, notes FROM memory_people WHERE user_id = $1",
    )
    .bind(user.as_str().to_owned())
    .fetch_optional(&mut *connection)
    .await
    .map_err(failed(doing))?;
    let Some((number, learning, recall, observations, notes)) = found else {
        return Ok(Detached::default());
    };
    sqlx::query("UPDATE memory_people SET key_id = NULL, user_id = NULL WHERE number = $1")
        .bind(number)
        .execute(&mut *connection)
        .await
        .map_err(failed(doing))?;
    if !(learning && recall) {
        sqlx::query("INSERT INTO memory_people (key_id, user_id, learning, recall) VALUES ($1, $2, $3, $4)")
            .bind(user.key_id().as_str().to_owned())
            .bind(user.as_str().to_owned())
            .bind(learning)
            .bind(recall)
            .execute(connection)
            .await
            .map_err(failed(doing))?;
    }
    Ok(Detached {
        observations: uncount(observations),
        notes: uncount(notes),
    })
}

impl Store {
    pub(super) async fn turn_switch(
        &self,
        owner: &SwitchOwner,
        switch: Switch,
        is_on: bool,
    ) -> Result<(), StoreError> {
        self.writer()
            .run(Turn {
                owner: owner.clone(),
                switch,
                is_on,
            })
            .await?;
        if switch == Switch::Learning && !is_on {
            self.note_erased();
        }
        Ok(())
    }
}

struct Turn {
    owner: SwitchOwner,
    switch: Switch,
    is_on: bool,
}

impl Turn {
    fn statements(&self) -> (&'static str, &'static str) {
        match (&self.owner, self.switch) {
            (SwitchOwner::User(_), Switch::Learning) => (
                "INSERT INTO memory_people (key_id, user_id, learning) VALUES ($1, $2, $3) \
                 ON CONFLICT (user_id) DO UPDATE SET learning = $3",
                "DELETE FROM memory_captures WHERE key_id = $1 AND user_id = $2",
            ),
            (SwitchOwner::User(_), Switch::Recall) => (
                "INSERT INTO memory_people (key_id, user_id, recall) VALUES ($1, $2, $3) \
                 ON CONFLICT (user_id) DO UPDATE SET recall = $3",
                "",
            ),
            (SwitchOwner::Key(_), Switch::Learning) => (
                "INSERT INTO memory_keys (key_id, learning) VALUES ($1, $3) \
                 ON CONFLICT (key_id) DO UPDATE SET learning = $3",
                "DELETE FROM memory_captures WHERE key_id = $1",
            ),
            (SwitchOwner::Key(_), Switch::Recall) => (
                "INSERT INTO memory_keys (key_id, recall) VALUES ($1, $3) \
                 ON CONFLICT (key_id) DO UPDATE SET recall = $3",
                "",
            ),
        }
    }
}

#[async_trait]
impl Command for Turn {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let (key_id, user) = match &self.owner {
            SwitchOwner::User(user) => (user.key_id(), user.as_str().to_owned()),
            SwitchOwner::Key(key_id) => (key_id.clone(), String::new()),
        };
        let (turn, drop_queued) = self.statements();
        let wanted = if self.is_on {
            [turn, ""]
        } else {
            [turn, drop_queued]
        };
        for sql in wanted.into_iter().filter(|sql| !sql.is_empty()) {
            sqlx::query(sql)
                .bind(key_id.as_str().to_owned())
                .bind(user.clone())
                .bind(self.is_on)
                .execute(&mut *connection)
                .await
                .map_err(failed("turning a switch"))?;
        }
        Ok(())
    }
}

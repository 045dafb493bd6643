//! Evidence: adding it, reading it, forgetting what it says.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use sqlx::SqliteConnection;
use tidegate_core::{
    error::StoreError,
    id::UserId,
    memory::{Observation, Stance, Voice},
    port::{Forgotten, ObservationPage, RowKey},
};

use super::{limited, named, people, time, undecodable};
use crate::{erase::drop_samples, error::failed, row, store::Store, writer::Command};

/// Observations that one transaction adds.
const ADDED_MAX: usize = 200;

/// The most observations of one person. Ten thousand facts, each said on some days, are fewer.
const PER_PERSON_MAX: i64 = 50_000;

/// An observation on its way into a statement that adds many.
#[derive(Serialize)]
struct Line<'o> {
    id: &'o str,
    kind: &'o str,
    value: &'o str,
    quote: &'o str,
    turn: String,
    conversation: &'o str,
    day: String,
    at: i64,
    voice: Voice,
    stance: Stance,
    extractor: &'o str,
    is_explicit: bool,
    is_first_person: bool,
}

impl<'o> Line<'o> {
    fn of(observation: &'o Observation) -> Self {
        Self {
            id: observation.id.as_str(),
            kind: &observation.kind,
            value: &observation.value,
            quote: &observation.quote,
            turn: hex(&observation.turn),
            conversation: &observation.conversation,
            day: observation.day.to_string(),
            at: row::micros(observation.at),
            voice: observation.voice,
            stance: observation.stance,
            extractor: &observation.extractor,
            is_explicit: observation.is_explicit,
            is_first_person: observation.is_first_person,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

const INSERT: &str = "INSERT INTO memory_observations (key, person, id, kind, value, quote, turn, conversation, day, at, \
     voice, stance, extractor, is_explicit, is_first_person) \
     SELECT $1 + new.key, $2, new.value ->> 'id', new.value ->> 'kind', new.value ->> 'value', \
     new.value ->> 'quote', unhex(new.value ->> 'turn'), new.value ->> 'conversation', new.value ->> 'day', \
     new.value ->> 'at', new.value ->> 'voice', new.value ->> 'stance', new.value ->> 'extractor', \
     new.value ->> 'is_explicit', new.value ->> 'is_first_person' FROM json_each($3) AS new WHERE true \
     ON CONFLICT (person, turn, kind, value, stance) DO NOTHING";

/// A LIMIT below zero would be none.
const TRIM: &str = "DELETE FROM memory_observations WHERE key IN (SELECT key FROM memory_observations \
     WHERE key BETWEEN $1 AND $2 ORDER BY key \
     LIMIT max(0, (SELECT observations FROM memory_people WHERE number = $3) - $4))";

/// Adds observations within a transaction; gives how many are new.
pub(super) async fn add(
    connection: &mut SqliteConnection,
    user: &UserId,
    observations: &[Observation],
) -> Result<u64, StoreError> {
    if observations.is_empty() {
        return Ok(0);
    }
    let lines: Vec<Line<'_>> = observations.iter().map(Line::of).collect();
    let begun = people::begin(connection, user, row::count(lines.len() as u64), 0).await?;
    let added = sqlx::query(INSERT)
        .bind(begun.first_observation)
        .bind(begun.person)
        .bind(row::json(&lines))
        .execute(&mut *connection)
        .await
        .map_err(failed("adding observations"))?
        .rows_affected();
    let keys = people::keys(begun.person);
    sqlx::query(TRIM)
        .bind(*keys.start())
        .bind(*keys.end())
        .bind(begun.person)
        .bind(PER_PERSON_MAX)
        .execute(connection)
        .await
        .map_err(failed("removing the oldest observations"))?;
    Ok(added)
}

fn observation(row: &Row<'_>) -> Result<(RowKey, Observation), rusqlite::Error> {
    let observation = Observation {
        id: named(row, 1)?,
        kind: row.get(2)?,
        value: row.get(3)?,
        quote: row.get(4)?,
        turn: row.get(5)?,
        conversation: row.get(6)?,
        day: row.get_ref(7)?.as_str()?.parse().map_err(undecodable(7))?,
        at: time(row, 8)?,
        voice: named(row, 9)?,
        stance: named(row, 10)?,
        extractor: row.get(11)?,
        is_explicit: row.get(12)?,
        is_first_person: row.get(13)?,
    };
    Ok((row.get(0)?, observation))
}

pub(super) fn page(
    db: &Connection,
    user: &UserId,
    from: RowKey,
    limit: usize,
) -> Result<ObservationPage, rusqlite::Error> {
    let mut page = ObservationPage {
        version: people::version(db, user)?,
        ..ObservationPage::default()
    };
    let Some(person) = people::number(db, user)? else {
        return Ok(page);
    };
    let keys = people::keys(person);
    let limit = limited(limit.max(1));
    let mut statement = db.prepare_cached(
        "SELECT key, id, kind, value, quote, turn, conversation, day, at, voice, stance, extractor, is_explicit, \
         is_first_person FROM memory_observations WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
    )?;
    let mut rows = statement.query(params![from.max(*keys.start()), keys.end(), limit + 1])?;
    while let Some(row) = rows.next()? {
        let (key, observation) = observation(row)?;
        if row::count(page.observations.len() as u64) == limit {
            page.next = Some(key);
            break;
        }
        page.observations.push(observation);
    }
    Ok(page)
}

impl Store {
    pub(super) async fn append_observations(
        &self,
        user: &UserId,
        observations: Vec<Observation>,
    ) -> Result<u64, StoreError> {
        let mut added = 0;
        let mut left = observations;
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(ADDED_MAX));
            let append = Append {
                user: user.clone(),
                observations: left,
            };
            added += self.writer().run(append).await?;
            left = rest;
        }
        Ok(added)
    }

    pub(super) async fn forget_fact(
        &self,
        user: &UserId,
        kind: &str,
        value: &str,
    ) -> Result<Forgotten, StoreError> {
        let forgotten = self
            .writer()
            .run(Forget {
                user: user.clone(),
                kind: kind.to_owned(),
                value: value.to_owned(),
            })
            .await?;
        self.clear_log().await;
        Ok(forgotten)
    }
}

struct Append {
    user: UserId,
    observations: Vec<Observation>,
}

#[async_trait]
impl Command for Append {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        add(connection, &self.user, &self.observations).await
    }
}

struct Forget {
    user: UserId,
    kind: String,
    value: String,
}

impl Forget {
    async fn write(&self, connection: &mut SqliteConnection, person: i64) -> Result<Forgotten, sqlx::Error> {
        let keys = people::keys(person);
        let mut counts = [0; 2];
        for (count, sql) in counts.iter_mut().zip([
            "DELETE FROM memory_observations WHERE key BETWEEN $1 AND $2 AND kind = $3 AND value = $4",
            "DELETE FROM memory_notes WHERE key BETWEEN $1 AND $2 AND kind = $3 AND value = $4",
        ]) {
            *count = sqlx::query(sql)
                .bind(*keys.start())
                .bind(*keys.end())
                .bind(self.kind.clone())
                .bind(self.value.clone())
                .execute(&mut *connection)
                .await?
                .rows_affected();
        }
        let [observations, notes] = counts;
        Ok(Forgotten {
            observations,
            notes,
            captures: 0,
        })
    }
}

#[async_trait]
impl Command for Forget {
    type Output = Forgotten;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Forgotten, StoreError> {
        let mut forgotten = Forgotten::default();
        if people::find(connection, &self.user).await?.is_some() {
            let begun = people::begin(connection, &self.user, 0, 0).await?;
            forgotten = self
                .write(connection, begun.person)
                .await
                .map_err(failed("forgetting a fact"))?;
        }
        forgotten.captures = sqlx::query("DELETE FROM memory_captures WHERE key_id = $1 AND user_id = $2")
            .bind(self.user.key_id().as_str().to_owned())
            .bind(self.user.as_str().to_owned())
            .execute(&mut *connection)
            .await
            .map_err(failed("forgetting what waits"))?
            .rows_affected();
        drop_samples(connection).await?;
        Ok(forgotten)
    }
}

//! What goes without being asked for: observations beyond their time or number, and the rows of erased people.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use sqlx::SqliteConnection;
use tidegate_core::{
    error::StoreError,
    id::UserId,
    port::{Pruned, Retention, RowKey},
};

use super::{named, people};
use crate::{erase::drop_samples, error::failed, row, store::Store, writer::Command};

/// Observations that one step removes.
const PRUNED_MAX: usize = 100;

/// People that one step looks at.
const PEOPLE_MAX: i64 = 1_000;

/// Rows of erased people that one transaction removes. A note is indexed, which makes it some ten times as dear.
const SWEPT_NOTES_MAX: i64 = 64;
const SWEPT_OBSERVATIONS_MAX: i64 = 500;

/// What is to go in one step.
#[derive(Default)]
struct Victims {
    keys: Vec<RowKey>,
    people: Vec<(i64, UserId)>,
    next: Option<RowKey>,
}

fn people_from(
    db: &Connection,
    retention: &Retention,
    from: RowKey,
) -> Result<Vec<(i64, UserId)>, rusqlite::Error> {
    db.prepare_cached(
        "SELECT number, user_id FROM memory_people WHERE user_id IS NOT NULL AND observations > 0 AND number >= ?1 \
         AND (?2 IS NULL OR user_id = ?2) ORDER BY number LIMIT ?3",
    )?
    .query_map(
        params![from, retention.user.as_ref().map(UserId::as_str), PEOPLE_MAX],
        |row| Ok((row.get(0)?, named(row, 1)?)),
    )?
    .collect()
}

fn victims(db: &Connection, retention: &Retention, from: RowKey) -> Result<Victims, rusqlite::Error> {
    let mut victims = Victims::default();
    let people = people_from(db, retention, from)?;
    // A null compares as neither true nor false, and a limit of -1 is none.
    let mut statement = db.prepare_cached(
        "SELECT key FROM memory_observations WHERE key BETWEEN ?1 AND ?2 AND (?3 IS NULL OR kind = ?3) \
         AND (at < ?4 OR key NOT IN (SELECT key FROM memory_observations WHERE key BETWEEN ?1 AND ?2 \
              AND (?3 IS NULL OR kind = ?3) ORDER BY at DESC, key DESC LIMIT ?5)) LIMIT ?6",
    )?;
    let last = people.last().map(|(number, _)| *number);
    let is_page_full = row::count(people.len() as u64) == PEOPLE_MAX;
    for (number, user) in people {
        let keys = people::keys(number);
        let room = PRUNED_MAX - victims.keys.len();
        let found: Vec<RowKey> = statement
            .query_map(
                params![
                    keys.start(),
                    keys.end(),
                    retention.kind,
                    retention.before.map(row::micros),
                    retention.newest_max.map_or(-1, i64::from),
                    row::count(room as u64)
                ],
                |row| row.get(0),
            )?
            .collect::<Result<_, _>>()?;
        if found.is_empty() {
            continue;
        }
        victims.keys.extend(found);
        victims.people.push((number, user));
        if victims.keys.len() >= PRUNED_MAX {
            // There may be more of this person.
            victims.next = Some(number);
            return Ok(victims);
        }
    }
    victims.next = last.filter(|_| is_page_full).map(|last| last + 1);
    Ok(victims)
}

impl Store {
    pub(super) async fn prune_memory(
        &self,
        retention: &Retention,
        from: RowKey,
    ) -> Result<Pruned, StoreError> {
        let retention = retention.clone();
        let victims = self
            .recollect("looking for what is to be pruned", move |db| {
                victims(db, &retention, from)
            })
            .await?;
        let mut pruned = Pruned {
            observations: 0,
            users: victims.people.iter().map(|(_, user)| user.clone()).collect(),
            next: victims.next,
        };
        if !victims.keys.is_empty() {
            let prune = Prune { keys: victims.keys };
            pruned.observations = self.writer().run(prune).await?;
            self.note_erased();
        }
        Ok(pruned)
    }

    /// Removes what is left of erased people, a little at a time, so that others can write in between.
    pub(crate) async fn sweep_memory(&self) -> Result<(), StoreError> {
        loop {
            let person: Option<i64> =
                sqlx::query_scalar("SELECT number FROM memory_people WHERE user_id IS NULL LIMIT 1")
                    .fetch_optional(self.readers())
                    .await
                    .map_err(failed("looking for erased people"))?;
            let Some(person) = person else {
                return Ok(());
            };
            self.writer().run(Sweep { person }).await?;
        }
    }
}

/// What an observation says, and of whom.
type Said = (i64, String, String);

struct Prune {
    keys: Vec<RowKey>,
}

impl Prune {
    async fn write(&self, connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
        let keys = row::json(&self.keys);
        let said: Vec<Said> = sqlx::query_as(
            "SELECT DISTINCT person, kind, value FROM memory_observations \
             WHERE key IN (SELECT value FROM json_each($1))",
        )
        .bind(keys.clone())
        .fetch_all(&mut *connection)
        .await?;
        let pruned =
            sqlx::query("DELETE FROM memory_observations WHERE key IN (SELECT value FROM json_each($1))")
                .bind(keys)
                .execute(&mut *connection)
                .await?
                .rows_affected();
        for (person, kind, value) in &said {
            let keys = people::keys(*person);
            sqlx::query(
                "DELETE FROM memory_notes WHERE key BETWEEN $1 AND $2 AND kind = $3 AND value = $4 \
                 AND NOT EXISTS (SELECT 1 FROM memory_observations WHERE key BETWEEN $1 AND $2 \
                                 AND kind = $3 AND value = $4)",
            )
            .bind(*keys.start())
            .bind(*keys.end())
            .bind(kind.clone())
            .bind(value.clone())
            .execute(&mut *connection)
            .await?;
        }
        let people: BTreeSet<i64> = said.into_iter().map(|(person, _, _)| person).collect();
        sqlx::query(
            "UPDATE memory_people SET version = version + 1 WHERE number IN (SELECT value FROM json_each($1))",
        )
        .bind(row::json(&people))
        .execute(connection)
        .await?;
        Ok(pruned)
    }
}

#[async_trait]
impl Command for Prune {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        let pruned = self
            .write(connection)
            .await
            .map_err(failed("pruning observations"))?;
        drop_samples(connection).await?;
        Ok(pruned)
    }
}

struct Sweep {
    person: i64,
}

#[async_trait]
impl Command for Sweep {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let keys = people::keys(self.person);
        for (sql, limit) in [
            (
                "DELETE FROM memory_notes WHERE key IN \
                 (SELECT key FROM memory_notes WHERE key BETWEEN $1 AND $2 LIMIT $4)",
                SWEPT_NOTES_MAX,
            ),
            (
                "DELETE FROM memory_observations WHERE key IN \
                 (SELECT key FROM memory_observations WHERE key BETWEEN $1 AND $2 LIMIT $4)",
                SWEPT_OBSERVATIONS_MAX,
            ),
            (
                "DELETE FROM memory_people WHERE number = $3 AND user_id IS NULL \
                 AND NOT EXISTS (SELECT 1 FROM memory_notes WHERE key BETWEEN $1 AND $2) \
                 AND NOT EXISTS (SELECT 1 FROM memory_observations WHERE key BETWEEN $1 AND $2)",
                0,
            ),
        ] {
            sqlx::query(sql)
                .bind(*keys.start())
                .bind(*keys.end())
                .bind(self.person)
                .bind(limit)
                .execute(&mut *connection)
                .await
                .map_err(failed("removing what was erased"))?;
        }
        drop_samples(connection).await
    }
}

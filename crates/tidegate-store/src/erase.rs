//! Erasing a person: from every table that holds anything of theirs, and from the files.
//!
//! **Every table.** [`RULES`] names each table with rows of people and says what becomes of them. A test walks the
//! schema and holds every table and column against it, so that a table that is added later cannot be left out.
//!
//! **At once.** One transaction takes away everything that anybody could find. Of what is remembered, which may be many
//! thousand rows, it takes the name off, and the rows go a few at a time, so that others can write in between. What a
//! process that died has left of them, the next daemon removes.
//!
//! **The files.** Freed space is overwritten (`secure_delete`, also in the full-text index), samples that SQLite's
//! planner keeps of indexed values are dropped, and the log, which still holds the pages as they were, is emptied.

mod key;

use async_trait::async_trait;
use sqlx::{Connection as _, SqliteConnection};
use tidegate_core::{
    error::StoreError,
    id::{KeyId, UserId},
    port::Erased,
};

use crate::{
    error::failed,
    files,
    memory::{Detached, detach},
    store::Store,
    writer::Command,
};

/// What becomes of a person's rows in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// A statement takes them away or takes the name off; `$1` is the key and `$2` the person.
    Statement {
        sql: &'static str,
        /// Where they are counted.
        count: fn(&mut Erased) -> &mut u64,
    },
    /// They go with the rows of that table.
    #[cfg_attr(not(test), expect(dead_code, reason = "says why there is no statement"))]
    With(&'static str),
}

/// Every table with rows of people.
pub(crate) const RULES: [(&str, Rule); 11] = [
    (
        "runs",
        Rule::Statement {
            sql: "DELETE FROM runs WHERE key_id = $1 AND user_id = $2",
            count: |erased| &mut erased.runs,
        },
    ),
    ("run_checkpoints", Rule::With("runs")),
    (
        "held_turns",
        Rule::Statement {
            sql: "DELETE FROM held_turns WHERE key_id = $1 AND user_id = $2",
            count: |erased| &mut erased.held_turns,
        },
    ),
    (
        "approvals",
        Rule::Statement {
            sql: "DELETE FROM approvals WHERE key_id = $1 AND user_id = $2",
            count: |erased| &mut erased.approvals,
        },
    ),
    (
        "usage",
        Rule::Statement {
            sql: "UPDATE usage SET user_id = key_id WHERE key_id = $1 AND user_id = $2 AND user_id <> key_id",
            count: |erased| &mut erased.usage_rows,
        },
    ),
    (
        "memory_captures",
        Rule::Statement {
            sql: "DELETE FROM memory_captures WHERE key_id = $1 AND user_id = $2",
            count: |erased| &mut erased.captures,
        },
    ),
    // The name is taken off by `detach`; then the rows go, a few at a time, and the person's own with the last.
    ("memory_people", Rule::With("memory_people")),
    ("memory_observations", Rule::With("memory_people")),
    ("memory_notes", Rule::With("memory_people")),
    ("memory_words", Rule::With("memory_notes")),
    ("memory_vectors", Rule::With("memory_notes")),
];

/// How often emptying the log is tried while others read, each time for as long as a statement may wait.
const EMPTY_ATTEMPTS_MAX: u32 = 2;

impl Store {
    /// Erases what is stored of a person's words, in every table and file. Usage stays for the key's books, without
    /// the person's name.
    pub async fn erase_user(&self, key_id: &KeyId, user: &UserId) -> Result<Erased, StoreError> {
        self.flush_rows().await?;
        let erased = self
            .writer()
            .run(Erase {
                key_id: key_id.clone(),
                user: user.clone(),
            })
            .await?;
        // Until the rows are gone, too, nobody is told that they are; but the log is emptied in any case.
        self.note_erased();
        self.sweep_memory().await?;
        Ok(Erased {
            is_out_of_files: self.clear_log().await,
            ..erased
        })
    }

    /// Empties the log, now where nobody reads an older state, and at the worker's next tick in any case; says whether
    /// it is empty.
    pub(crate) async fn clear_log(&self) -> bool {
        self.note_erased();
        for _ in 0..EMPTY_ATTEMPTS_MAX {
            match self.clear_log_once().await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "erased text stays in the database log for now");
                    return false;
                }
            }
        }
        false
    }

    async fn clear_log_once(&self) -> Result<bool, sqlx::Error> {
        let mut connection = files::writer(self.options()).await?;
        let emptied = empty_log(&mut connection).await;
        connection.close().await?;
        emptied
    }
}

/// Moves the log into the file and cuts it to nothing. False where somebody still reads an older state of it: the
/// statement succeeds all the same (<https://www.sqlite.org/pragma.html#pragma_wal_checkpoint>).
pub(crate) async fn empty_log(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let (is_busy, _, _): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)")
        .fetch_one(connection)
        .await?;
    Ok(is_busy == 0)
}

/// Drops what the planner has sampled of indexed values: erased ones may be among them. It samples anew some day, and
/// does with counts alone until then.
pub(crate) async fn drop_samples(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let doing = "dropping the planner's samples";
    let any: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat4')")
            .fetch_one(&mut *connection)
            .await
            .map_err(failed(doing))?;
    if any {
        sqlx::query("DELETE FROM sqlite_stat4")
            .execute(connection)
            .await
            .map_err(failed(doing))?;
    }
    Ok(())
}

struct Erase {
    key_id: KeyId,
    user: UserId,
}

#[async_trait]
impl Command for Erase {
    type Output = Erased;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Erased, StoreError> {
        let mut erased = Erased::default();
        for (_, rule) in RULES {
            let (sql, count) = match rule {
                Rule::Statement { sql, count } => (sql, count),
                Rule::With(_) => continue,
            };
            let done = sqlx::query(sql)
                .bind(self.key_id.as_str().to_owned())
                .bind(self.user.as_str().to_owned())
                .execute(&mut *connection)
                .await
                .map_err(failed("erasing a person's data"))?;
            *count(&mut erased) = done.rows_affected();
        }
        let Detached { observations, notes } = detach(connection, &self.user).await?;
        drop_samples(connection).await?;
        Ok(Erased {
            observations,
            notes,
            ..erased
        })
    }
}

#[cfg(test)]
mod tests;

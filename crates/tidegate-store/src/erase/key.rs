//! Erasing everybody behind a key that is deleted: a little at a time, so that others can write in between.
//!
//! The key goes first, so that nobody can add to what is being erased. What is left when whoever asked for it has gone
//! away is done by the worker, and what a process that died has left, by the next daemon.

use async_trait::async_trait;
use sqlx::SqliteConnection;
use tidegate_core::{error::StoreError, id::KeyId};

use super::drop_samples;
use crate::{error::failed, store::Store, writer::Command};

/// What becomes of a key's rows in each table that [`super::RULES`] has a statement for, and in the one of its switches:
/// `$1` is the key and `$2` how many rows go at once. Ids of a key's people begin with it; where one is `key`, others are
/// `key:…`, and `;` follows `:`.
pub(super) const KEY_RULES: [(&str, &str, i64); 7] = [
    (
        "usage",
        "UPDATE usage SET user_id = key_id WHERE seq IN \
         (SELECT seq FROM usage WHERE key_id = $1 AND user_id <> key_id LIMIT $2)",
        5_000,
    ),
    (
        "memory_captures",
        "DELETE FROM memory_captures WHERE seq IN (SELECT seq FROM memory_captures \
         WHERE user_id >= $1 AND user_id < $1 || ';' AND key_id = $1 LIMIT $2)",
        50,
    ),
    (
        "runs",
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE key_id = $1 LIMIT $2)",
        100,
    ),
    (
        "held_turns",
        "DELETE FROM held_turns WHERE seq IN (SELECT seq FROM held_turns WHERE key_id = $1 LIMIT $2)",
        50,
    ),
    (
        "approvals",
        "DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals WHERE key_id = $1 LIMIT $2)",
        500,
    ),
    // Their rows are swept afterwards, as those of one erased person are.
    (
        "memory_people",
        "UPDATE memory_people SET key_id = NULL, user_id = NULL WHERE number IN (SELECT number FROM memory_people \
         WHERE user_id >= $1 AND user_id < $1 || ';' AND key_id = $1 LIMIT $2)",
        100,
    ),
    (
        "memory_keys",
        "DELETE FROM memory_keys WHERE key_id IN (SELECT key_id FROM memory_keys WHERE key_id = $1 LIMIT $2)",
        1,
    ),
];

/// Keys that are gone and left something. Each table is asked by an index.
const LEFT: &str = "SELECT key_id FROM (SELECT DISTINCT key_id FROM runs UNION SELECT DISTINCT key_id FROM held_turns \
     UNION SELECT DISTINCT key_id FROM approvals UNION SELECT key_id FROM memory_captures \
     UNION SELECT key_id FROM memory_people WHERE key_id IS NOT NULL UNION SELECT key_id FROM memory_keys) \
     WHERE key_id NOT IN (SELECT id FROM keys) LIMIT 1000";

impl Store {
    /// Erases what is stored of the words of everybody behind a key that is gone. Usage stays, without names.
    pub(crate) async fn erase_key(&self, key_id: &KeyId) -> Result<(), StoreError> {
        let unfinished = Unfinished {
            store: self,
            key_id: Some(key_id.clone()),
        };
        while self.erase_some_of_key(key_id).await? {}
        unfinished.done();
        self.clear_log().await;
        Ok(())
    }

    /// Does one step; whether there may be more.
    async fn erase_some_of_key(&self, key_id: &KeyId) -> Result<bool, StoreError> {
        self.flush_rows().await?;
        let erased = self
            .writer()
            .run(EraseSome {
                key_id: key_id.clone(),
            })
            .await?;
        self.note_erased();
        self.sweep_memory().await?;
        Ok(erased > 0)
    }

    /// Goes on with what nobody waits for any more: one step of one key.
    pub(crate) async fn erase_abandoned(&self) -> Result<(), StoreError> {
        let Some(key_id) = self.take_abandoned() else {
            return Ok(());
        };
        let unfinished = Unfinished {
            store: self,
            key_id: Some(key_id.clone()),
        };
        if !self.erase_some_of_key(&key_id).await? {
            unfinished.done();
        }
        Ok(())
    }

    /// At start: erases what keys have left that are gone, because the process ended in the middle of it, or because a
    /// turn was still under way. Gives how many keys.
    pub async fn sweep_deleted_keys(&self) -> Result<usize, StoreError> {
        let left: Vec<String> = sqlx::query_scalar(LEFT)
            .fetch_all(self.readers())
            .await
            .map_err(failed("looking for what deleted keys have left"))?;
        for key_id in &left {
            self.erase_key(&KeyId::new(key_id.as_str())).await?;
        }
        Ok(left.len())
    }
}

/// A key that is not erased wholly. Dropped in the middle of it, because nobody waits any more, it is left to the worker.
struct Unfinished<'s> {
    store: &'s Store,
    key_id: Option<KeyId>,
}

impl Unfinished<'_> {
    fn done(mut self) {
        self.key_id = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(key_id) = self.key_id.take() {
            self.store.abandon(key_id);
        }
    }
}

struct EraseSome {
    key_id: KeyId,
}

#[async_trait]
impl Command for EraseSome {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        let mut erased = 0;
        for (_, sql, rows_max) in KEY_RULES {
            let done = sqlx::query(sql)
                .bind(self.key_id.as_str().to_owned())
                .bind(rows_max)
                .execute(&mut *connection)
                .await
                .map_err(failed("erasing what a key's people wrote"))?;
            erased += done.rows_affected();
        }
        drop_samples(connection).await?;
        Ok(erased)
    }
}

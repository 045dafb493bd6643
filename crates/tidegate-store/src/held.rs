//! Turns that wait for a client's tool results, in SQLite: bounded for each key, dropped once they expire.

use async_trait::async_trait;
use sqlx::{SqliteConnection, sqlite::SqliteRow};
use tidegate_core::{
    clock::Timestamp,
    error::StoreError,
    id::{CallId, KeyId, RunId, UserId},
    port::{HeldTurn, HeldTurnStore},
};

use crate::{error::failed, row, store::Store, writer::Command};

/// A run that was erased meanwhile holds nothing.
const HOLD: &str = "DELETE FROM held_turns WHERE expires_at <= $6; \
     INSERT INTO held_turns (key_id, user_id, client_call_ids, messages, expires_at, citations) \
     SELECT $1, $2, $3, $4, $5, $8 FROM runs WHERE id = $9 AND user_id = $2; \
     DELETE FROM held_turns WHERE key_id = $1 AND seq NOT IN \
     (SELECT seq FROM held_turns WHERE key_id = $1 ORDER BY seq DESC LIMIT $7)";

const FIND: &str = "SELECT * FROM held_turns WHERE key_id = $1 AND user_id = $2 AND expires_at > $4 \
     AND EXISTS (SELECT 1 FROM json_each(client_call_ids) AS held \
                 WHERE held.value IN (SELECT value FROM json_each($3))) \
     ORDER BY seq DESC LIMIT 1";

const ANY_EXPIRED: &str = "SELECT EXISTS (SELECT 1 FROM held_turns WHERE expires_at <= $1)";

const DROP_EXPIRED: &str = "DELETE FROM held_turns WHERE expires_at <= $1";

impl Store {
    /// Drops what has expired; writes only where there is something.
    pub(crate) async fn drop_expired_turns(&self) -> Result<(), StoreError> {
        let now = row::micros(self.clock().now());
        let any: bool = sqlx::query_scalar(ANY_EXPIRED)
            .bind(now)
            .fetch_one(self.readers())
            .await
            .map_err(failed("looking for expired turns"))?;
        if any {
            self.writer().run(DropExpired { now }).await
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl HeldTurnStore for Store {
    async fn hold(&self, run: &RunId, turn: &HeldTurn, now: Timestamp) -> Result<(), StoreError> {
        let per_key_max = self.options().held_turns_per_key_max.max(1);
        self.writer()
            .run(Hold {
                run: run.clone(),
                turn: turn.clone(),
                now,
                per_key_max,
            })
            .await
    }

    async fn find(
        &self,
        key_id: &KeyId,
        user: &UserId,
        call_ids: &[CallId],
        now: Timestamp,
    ) -> Result<Option<HeldTurn>, StoreError> {
        if call_ids.is_empty() {
            return Ok(None);
        }
        sqlx::query(FIND)
            .bind(key_id.as_str().to_owned())
            .bind(user.as_str().to_owned())
            .bind(row::json(&call_ids))
            .bind(row::micros(now))
            .fetch_optional(self.readers())
            .await
            .and_then(|found| found.as_ref().map(turn).transpose())
            .map_err(failed("reading a held turn"))
    }
}

fn turn(row: &SqliteRow) -> Result<HeldTurn, sqlx::Error> {
    Ok(HeldTurn {
        key_id: row::named(row, "key_id")?,
        user: row::named(row, "user_id")?,
        client_call_ids: row::from_json(row, "client_call_ids")?,
        messages: row::from_json(row, "messages")?,
        citations: row::from_json(row, "citations")?,
        expires_at: row::time(row, "expires_at")?,
    })
}

struct Hold {
    run: RunId,
    turn: HeldTurn,
    now: Timestamp,
    per_key_max: u32,
}

#[async_trait]
impl Command for Hold {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        sqlx::query(HOLD)
            .bind(self.turn.key_id.as_str().to_owned())
            .bind(self.turn.user.as_str().to_owned())
            .bind(row::json(&self.turn.client_call_ids))
            .bind(row::json(&self.turn.messages))
            .bind(row::micros(self.turn.expires_at))
            .bind(row::micros(self.now))
            .bind(self.per_key_max)
            .bind(row::json(&self.turn.citations))
            .bind(self.run.as_str().to_owned())
            .execute(connection)
            .await
            .map(drop)
            .map_err(failed("holding a turn"))
    }
}

struct DropExpired {
    now: i64,
}

#[async_trait]
impl Command for DropExpired {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let done = sqlx::query(DROP_EXPIRED).bind(self.now).execute(connection).await;
        done.map(drop).map_err(failed("dropping expired turns"))
    }
}

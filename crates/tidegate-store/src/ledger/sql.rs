//! The statements of the ledger, and the commands that write its rows and the day's sums.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::Date;
use sqlx::{Connection as _, Row as _, SqliteConnection, sqlite::SqliteRow};
use tidegate_core::{
    error::StoreError,
    id::KeyId,
    port::{DayUsage, UsageRecord},
    usage::Usage,
};

use crate::{
    error::{failed, is_refused},
    row,
    writer::Command,
};

/// The most tokens that a number of one call counts for, whatever its row says: far more than any has, and so
/// few that no day's sum of them leaves 64 bits.
const CALL_TOKENS_MAX: u64 = 1 << 40;
/// Where what one transaction adds to a day's sum ends. The statements cut the sums themselves there before
/// they add: in SQLite a sum beyond 64 bits becomes a floating point number, which the tables do not take.
const DAY_TOKENS_MAX: u64 = 1 << 60;

/// Cuts numbers that no model call can have, before they are counted anywhere.
pub(super) fn cut(usage: &mut Usage) {
    for tokens in [
        &mut usage.input_tokens,
        &mut usage.output_tokens,
        &mut usage.cached_tokens,
        &mut usage.reasoning_tokens,
    ] {
        *tokens = (*tokens).min(CALL_TOKENS_MAX);
    }
}

/// Part of a day's sum, as it is written.
fn part(tokens: u64) -> i64 {
    row::count(tokens.min(DAY_TOKENS_MAX))
}

/// Rows and the day's sums in one go, so that `settled_tokens` is always the sum of the rows.
const WRITE: &str = "INSERT INTO usage (at, day, key_id, user_id, run_id, provider, model, role, input_tokens, \
     output_tokens, cached_tokens, reasoning_tokens, estimated) \
     SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, \
     value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12 FROM json_each($1); \
     INSERT INTO quota_days (key_id, day, settled_tokens, estimated_tokens, reserved_tokens) \
     SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, (value ->> 2) + (value ->> 3) \
     FROM json_each($2) WHERE true \
     ON CONFLICT (key_id, day) DO UPDATE SET \
     settled_tokens = min(settled_tokens, 1 << 60) + excluded.settled_tokens, \
     estimated_tokens = min(estimated_tokens, 1 << 60) + excluded.estimated_tokens, \
     reserved_tokens = max(reserved_tokens, min(settled_tokens, 1 << 60) + excluded.settled_tokens \
                                            + min(estimated_tokens, 1 << 60) + excluded.estimated_tokens)";

const RESERVE: &str = "INSERT INTO quota_days (key_id, day, reserved_tokens) VALUES ($1, $2, $3) \
     ON CONFLICT (key_id, day) DO UPDATE SET reserved_tokens = max(reserved_tokens, excluded.reserved_tokens)";

/// An open block that this process did not make was left by one that died: it counts as spent.
const LOAD: &str = "UPDATE quota_days SET estimated_tokens = reserved_tokens - settled_tokens \
     WHERE key_id = $1 AND day = $2 RETURNING reserved_tokens";

/// What is booked stays covered, whatever was meant to be given back.
const TRIM: &str = "UPDATE quota_days SET reserved_tokens = max(min(reserved_tokens, $3), \
     min(settled_tokens, 1 << 60) + min(estimated_tokens, 1 << 60)) WHERE key_id = $1 AND day = $2";

const CLOSE: &str = "UPDATE quota_days \
     SET reserved_tokens = min(settled_tokens, 1 << 60) + min(estimated_tokens, 1 << 60) WHERE key_id = $1 AND day = $2";

/// Rows removed in one transaction, so that pruning does not hold up requests.
pub(super) const PRUNE_BATCH: u32 = 500;

const PRUNE: &str = "DELETE FROM usage WHERE seq IN (SELECT seq FROM usage WHERE day < $1 LIMIT $2)";

const PRUNE_DAYS: &str = "DELETE FROM quota_days WHERE day < $1";

pub(super) const EXPECT: &str =
    "SELECT key_id, day, reserved_tokens AS spent_tokens FROM quota_days WHERE day >= $1";

pub(super) const USAGE: &str = "SELECT quota_days.day, estimated_tokens, \
     min(reserved_tokens, 1 << 62) - min(settled_tokens, 1 << 60) - min(estimated_tokens, 1 << 60) AS open_tokens, \
     count(usage.seq) AS calls, coalesce(sum(min(input_tokens, 1 << 40)), 0) AS input_tokens, \
     coalesce(sum(min(output_tokens, 1 << 40)), 0) AS output_tokens \
     FROM quota_days LEFT JOIN usage ON usage.key_id = quota_days.key_id AND usage.day = quota_days.day \
     WHERE quota_days.key_id = $1 AND quota_days.day BETWEEN $2 AND $3 \
     GROUP BY quota_days.day ORDER BY quota_days.day";

pub(super) fn date(row: &SqliteRow) -> Result<Date, sqlx::Error> {
    row.try_get::<&str, _>("day")?
        .parse()
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// A day, and the tokens of its open block.
pub(super) fn day_usage(row: &SqliteRow) -> Result<(DayUsage, u64), sqlx::Error> {
    let usage = DayUsage {
        day: date(row)?,
        calls: row::tokens(row, "calls")?,
        input_tokens: row::tokens(row, "input_tokens")?,
        output_tokens: row::tokens(row, "output_tokens")?,
        estimated_tokens: row::tokens(row, "estimated_tokens")?,
    };
    Ok((usage, row::tokens(row, "open_tokens")?))
}

/// Writes rows, and the tokens of calls that have none.
pub(crate) struct WriteUsage {
    pub(super) rows: Arc<Vec<UsageRecord>>,
    pub(super) lost: Vec<Lost>,
}

/// Tokens of a key's day that have no row.
type Lost = (KeyId, Date, u64);

impl WriteUsage {
    fn rows(rows: &[UsageRecord]) -> String {
        let rows = rows.iter().map(|row| {
            (
                row::micros(row.at),
                row.day.to_string(),
                &row.key_id,
                &row.user,
                &row.run_id,
                &row.provider,
                &row.model,
                row.role.name(),
                row::count(row.usage.input_tokens),
                row::count(row.usage.output_tokens),
                row::count(row.usage.cached_tokens),
                row::count(row.usage.reasoning_tokens),
                u8::from(row.usage.estimated),
            )
        });
        row::json(&rows.collect::<Vec<_>>())
    }

    /// What each day gains: settled and estimated.
    fn sums(rows: &[UsageRecord], lost: &[Lost]) -> String {
        let mut sums = std::collections::BTreeMap::<(&KeyId, Date), (u64, u64)>::new();
        for row in rows {
            let sum = sums.entry((&row.key_id, row.day)).or_default();
            sum.0 = sum.0.saturating_add(row.usage.total_tokens());
        }
        for (key_id, day, tokens) in lost {
            let sum = sums.entry((key_id, *day)).or_default();
            sum.1 = sum.1.saturating_add(*tokens);
        }
        let sums = sums.into_iter().map(|((key_id, day), (settled, estimated))| {
            (key_id, day.to_string(), part(settled), part(estimated))
        });
        row::json(&sums.collect::<Vec<_>>())
    }

    /// Writes all of these or none.
    async fn write(
        connection: &mut SqliteConnection,
        rows: &[UsageRecord],
        lost: &[Lost],
    ) -> Result<(), sqlx::Error> {
        let mut savepoint = connection.begin().await?;
        let done = sqlx::query(WRITE)
            .bind(Self::rows(rows))
            .bind(Self::sums(rows, lost))
            .execute(&mut *savepoint)
            .await;
        match done {
            Ok(_) => savepoint.commit().await,
            Err(error) => {
                // Where SQLite has taken everything back there is no savepoint, and the first error says why.
                if let Err(error) = savepoint.rollback().await {
                    tracing::debug!(%error, "a savepoint could not be rolled back");
                }
                Err(error)
            }
        }
    }

    /// Writes them one by one. What the database does not take as a row counts without an item, and what it
    /// does not take at all is left out: it would hold up everything behind it for ever.
    async fn write_one_by_one(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let mut lost = self.lost.clone();
        for row in self.rows.iter() {
            match Self::write(connection, std::slice::from_ref(row), &[]).await {
                Ok(()) => {}
                Err(error) if is_refused(&error) => {
                    tracing::error!(%error, run = %row.run_id, "a usage row was refused by the database; it is counted but not itemised");
                    lost.push((row.key_id.clone(), row.day, row.usage.total_tokens()));
                }
                Err(error) => return Err(error),
            }
        }
        for tokens in &lost {
            match Self::write(connection, &[], std::slice::from_ref(tokens)).await {
                Ok(()) => {}
                Err(error) if is_refused(&error) => {
                    tracing::error!(%error, key = %tokens.0, "a day's sum was refused by the database; tokens are not booked");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Command for WriteUsage {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let mut done = Self::write(connection, &self.rows, &self.lost).await;
        if done.as_ref().is_err_and(is_refused) {
            done = self.write_one_by_one(connection).await;
        }
        done.map_err(failed("writing usage"))
    }
}

/// Reserves tokens of a day up to a point.
pub(super) struct ReserveBlock {
    pub(super) key_id: KeyId,
    pub(super) day: Date,
    pub(super) reserved_tokens: u64,
}

#[async_trait]
impl Command for ReserveBlock {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        sqlx::query(RESERVE)
            .bind(self.key_id.as_str().to_owned())
            .bind(self.day.to_string())
            .bind(part(self.reserved_tokens))
            .execute(connection)
            .await
            .map(drop)
            .map_err(failed("reserving tokens"))
    }
}

/// Gives reserved tokens back down to a point.
pub(super) struct TrimBlock {
    pub(super) key_id: KeyId,
    pub(super) day: Date,
    pub(super) reserved_tokens: u64,
}

#[async_trait]
impl Command for TrimBlock {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        sqlx::query(TRIM)
            .bind(self.key_id.as_str().to_owned())
            .bind(self.day.to_string())
            .bind(part(self.reserved_tokens))
            .execute(connection)
            .await
            .map(drop)
            .map_err(failed("giving reserved tokens back"))
    }
}

/// Counts the block that a dead process left open as spent. Gives what is spent, and reserved.
pub(super) struct LoadDay {
    pub(super) key_id: KeyId,
    pub(super) day: Date,
}

#[async_trait]
impl Command for LoadDay {
    type Output = (u64, u64);

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(u64, u64), StoreError> {
        let reserved: Option<i64> = sqlx::query_scalar(LOAD)
            .bind(self.key_id.as_str().to_owned())
            .bind(self.day.to_string())
            .fetch_optional(connection)
            .await
            .map_err(failed("reading a day's quota"))?;
        let reserved = row::uncount(reserved.unwrap_or(0));
        Ok((reserved, reserved))
    }
}

/// Gives back what is reserved and not spent.
pub(super) struct CloseBlock {
    pub(super) key_id: KeyId,
    pub(super) day: Date,
}

#[async_trait]
impl Command for CloseBlock {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        sqlx::query(CLOSE)
            .bind(self.key_id.as_str().to_owned())
            .bind(self.day.to_string())
            .execute(connection)
            .await
            .map(drop)
            .map_err(failed("closing a quota block"))
    }
}

/// Removes a batch of old rows, and with the last of them the sums of their days.
pub(super) struct Prune {
    pub(super) before: Date,
}

#[async_trait]
impl Command for Prune {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        let before = self.before.to_string();
        let rows = sqlx::query(PRUNE)
            .bind(before.clone())
            .bind(PRUNE_BATCH)
            .execute(&mut *connection)
            .await;
        let gone = rows.map_err(failed("removing old usage"))?.rows_affected();
        if gone < u64::from(PRUNE_BATCH) {
            let days = sqlx::query(PRUNE_DAYS).bind(before).execute(connection).await;
            days.map_err(failed("removing old usage"))?;
        }
        Ok(gone)
    }
}

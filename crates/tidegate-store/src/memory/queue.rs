//! Turns that wait to be learned from.
//!
//! **One insert.** A turn is queued on the thread that asks for it where nobody else is writing, like the journal's
//! lines. The statement itself asks whether the run is still there, learning is on and there is room, so that it needs
//! no look before it and an erasure or a switch in between is not undone.
//!
//! **Leases.** A row that is worked on is due again when its lease is over; each lease has a number, and whatever
//! is done to the row names it. A row goes in the transaction that keeps what was learned.

use async_trait::async_trait;
use rusqlite::ToSql;
use sqlx::{FromRow, Row as _, SqliteConnection, sqlite::SqliteRow};
use tidegate_core::{
    clock::Timestamp,
    error::StoreError,
    id::UserId,
    memory::Observation,
    port::{CAPTURE_BYTES_MAX, Capture, CaptureCounts, CaptureQueue, ClaimedCapture, Enqueued, Lease},
};

use super::observations;
use crate::{direct::Direct, error::failed, row, store::Store, writer::Command};

/// Turns of one person that may wait.
const PER_USER_MAX: i64 = 256;

/// Turns that may wait in all.
const TOTAL_MAX: i64 = 10_000;

/// Dead turns that are kept; beyond it the oldest go.
const DEAD_MAX: i64 = 1_000;

/// Turns that are claimed at a time, whatever is asked for.
const CLAIMED_MAX: u32 = 64;

/// The longest name of a failure that is kept, in characters.
const PROBLEM_CHARS_MAX: usize = 200;

const ENQUEUE: &str = "INSERT INTO memory_captures (run_id, key_id, user_id, turn, conversation, day, at, said, in_sight, \
     due_at) SELECT id, key_id, user_id, $3, $4, $5, $6, $7, $8, $6 FROM runs WHERE id = $1 AND user_id = $2 \
     AND NOT EXISTS (SELECT 1 FROM memory_people WHERE user_id = $2 AND learning = 0) \
     AND NOT EXISTS (SELECT 1 FROM memory_keys WHERE key_id = runs.key_id AND learning = 0) \
     AND (SELECT count(*) FROM (SELECT 1 FROM memory_captures WHERE user_id = $2 AND is_dead = 0 LIMIT $9)) < $9 \
     AND (SELECT count(*) FROM (SELECT 1 FROM memory_captures INDEXED BY memory_captures_due WHERE is_dead = 0 LIMIT $10)) < $10 \
     ON CONFLICT (run_id) DO NOTHING RETURNING seq";

/// Why a turn was not queued.
const WHY_NOT: &str = "SELECT NOT EXISTS (SELECT 1 FROM runs WHERE id = $1 AND user_id = $2), \
     EXISTS (SELECT 1 FROM memory_captures WHERE run_id = $1), \
     EXISTS (SELECT 1 FROM memory_people WHERE user_id = $2 AND learning = 0) \
     OR EXISTS (SELECT 1 FROM memory_keys WHERE key_id = $3 AND learning = 0)";

const CLAIM: &str = "UPDATE memory_captures SET is_leased = 1, leases = leases + 1, attempts = attempts + 1, due_at = $2 \
     WHERE seq IN (SELECT seq FROM memory_captures WHERE is_dead = 0 AND due_at <= $1 ORDER BY due_at, seq LIMIT $3) \
     RETURNING *";

const TAKE: &str =
    "DELETE FROM memory_captures WHERE seq = $1 AND user_id = $2 AND leases = $3 AND is_leased = 1";

const RETRY: &str = "UPDATE memory_captures SET is_leased = 0, due_at = $4, problem = $5 \
     WHERE seq = $1 AND user_id = $2 AND leases = $3 AND is_leased = 1";

const BURY: &str = "UPDATE memory_captures SET is_leased = 0, is_dead = 1, problem = $5 \
     WHERE seq = $1 AND user_id = $2 AND leases = $3 AND is_leased = 1";

const RELEASE: &str = "UPDATE memory_captures SET is_leased = 0, due_at = $4, attempts = attempts - 1 \
     WHERE seq = $1 AND user_id = $2 AND leases = $3 AND is_leased = 1";

const TRIM_DEAD: &str = "DELETE FROM memory_captures WHERE seq IN \
     (SELECT seq FROM memory_captures WHERE is_dead = 1 ORDER BY at DESC, seq DESC LIMIT -1 OFFSET $1)";

const RECOVER: &str = "UPDATE memory_captures SET is_leased = 0, due_at = $1 WHERE is_leased = 1";

const REVIVE: &str =
    "UPDATE memory_captures SET is_dead = 0, attempts = 0, due_at = $1, problem = NULL WHERE is_dead = 1";

const PRUNE: &str = "DELETE FROM memory_captures WHERE is_dead = 1 AND at < $1";

#[async_trait]
impl CaptureQueue for Store {
    async fn enqueue(&self, user: &UserId, capture: &Capture) -> Result<Enqueued, StoreError> {
        let bytes = capture.said.len() + capture.in_sight.iter().map(|seen| seen.text.len()).sum::<usize>();
        if bytes > CAPTURE_BYTES_MAX {
            return Ok(Enqueued::TooLarge);
        }
        let enqueue = Enqueue::of(user, capture);
        let is_queued = match enqueue.write_directly(self.direct()) {
            Some(is_queued) => is_queued,
            None => self.writer().run(enqueue).await?,
        };
        if is_queued {
            return Ok(Enqueued::Queued);
        }
        self.why_not_queued(user, capture).await
    }

    async fn claim(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<ClaimedCapture>, StoreError> {
        // Whoever looks for work in vain does not write.
        match self.next_due().await? {
            Some(due) if due <= now => {}
            Some(_) | None => return Ok(Vec::new()),
        }
        let limit = limit.min(CLAIMED_MAX);
        self.writer().run(Claim { now, until, limit }).await
    }

    async fn complete(&self, lease: &Lease, learned: Vec<Observation>) -> Result<Option<u64>, StoreError> {
        let lease = lease.clone();
        self.writer().run(Complete { lease, learned }).await
    }

    async fn retry(&self, lease: &Lease, due_at: Timestamp, problem: &str) -> Result<bool, StoreError> {
        self.settle(RETRY, lease, due_at, problem).await
    }

    async fn bury(&self, lease: &Lease, problem: &str) -> Result<bool, StoreError> {
        let is_buried = self.settle(BURY, lease, Timestamp::UNIX_EPOCH, problem).await?;
        self.change(TRIM_DEAD, DEAD_MAX, "dropping dead turns").await?;
        Ok(is_buried)
    }

    async fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        self.settle(RELEASE, lease, now, "").await
    }

    /// Only for the process that holds the daemon's lock. Also removes what is left of people whom it was erasing.
    async fn recover_captures(&self, now: Timestamp) -> Result<u64, StoreError> {
        if !self.is_daemon() {
            let text = "only the daemon that holds the database's lock may take up what another process left";
            return Err(StoreError::Internal(text.to_owned()));
        }
        self.sweep_memory().await?;
        self.change(RECOVER, row::micros(now), "recovering queued turns")
            .await
    }

    async fn revive(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.change(REVIVE, row::micros(now), "reviving dead turns").await
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let due: Option<i64> =
            sqlx::query_scalar("SELECT min(due_at) FROM memory_captures WHERE is_dead = 0")
                .fetch_one(self.readers())
                .await
                .map_err(failed("looking for queued turns"))?;
        // What does not fit a time is due.
        Ok(due.map(|due| Timestamp::from_microsecond(due).unwrap_or(Timestamp::UNIX_EPOCH)))
    }

    async fn pending_of(&self, user: &UserId) -> Result<u64, StoreError> {
        let pending: i64 =
            sqlx::query_scalar("SELECT count(*) FROM memory_captures WHERE user_id = $1 AND is_dead = 0")
                .bind(user.as_str().to_owned())
                .fetch_one(self.readers())
                .await
                .map_err(failed("counting a person's queued turns"))?;
        Ok(row::uncount(pending))
    }

    async fn capture_counts(&self) -> Result<CaptureCounts, StoreError> {
        let (waiting, leased, dead, oldest): (i64, i64, i64, Option<i64>) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE NOT is_dead AND NOT is_leased), count(*) FILTER (WHERE is_leased), \
             count(*) FILTER (WHERE is_dead), min(at) FILTER (WHERE NOT is_dead) FROM memory_captures",
        )
        .fetch_one(self.readers())
        .await
        .map_err(failed("counting queued turns"))?;
        Ok(CaptureCounts {
            waiting: row::uncount(waiting),
            leased: row::uncount(leased),
            dead: row::uncount(dead),
            oldest_at: oldest.and_then(|at| Timestamp::from_microsecond(at).ok()),
        })
    }

    async fn prune_captures(&self, before: Timestamp) -> Result<u64, StoreError> {
        let pruned = self
            .change(PRUNE, row::micros(before), "pruning dead turns")
            .await?;
        if pruned > 0 {
            self.note_erased();
        }
        Ok(pruned)
    }
}

impl Store {
    async fn why_not_queued(&self, user: &UserId, capture: &Capture) -> Result<Enqueued, StoreError> {
        let (is_run_gone, is_known, is_off): (bool, bool, bool) = sqlx::query_as(WHY_NOT)
            .bind(capture.run.as_str().to_owned())
            .bind(user.as_str().to_owned())
            .bind(user.key_id().as_str().to_owned())
            .fetch_one(self.readers())
            .await
            .map_err(failed("looking why a turn was not queued"))?;
        Ok(if is_run_gone {
            Enqueued::RunGone
        } else if is_off {
            Enqueued::LearningOff
        } else if is_known {
            Enqueued::Known
        } else {
            Enqueued::Full
        })
    }

    async fn settle(
        &self,
        sql: &'static str,
        lease: &Lease,
        due_at: Timestamp,
        problem: &str,
    ) -> Result<bool, StoreError> {
        let settle = Settle {
            sql,
            lease: lease.clone(),
            due_at: row::micros(due_at),
            problem: problem.chars().take(PROBLEM_CHARS_MAX).collect(),
        };
        self.writer().run(settle).await
    }

    async fn change(&self, sql: &'static str, value: i64, doing: &'static str) -> Result<u64, StoreError> {
        self.writer().run(Change { sql, value, doing }).await
    }
}

struct Enqueue {
    run: String,
    user: String,
    turn: Vec<u8>,
    conversation: String,
    day: String,
    at: i64,
    said: String,
    in_sight: String,
}

impl Enqueue {
    fn of(user: &UserId, capture: &Capture) -> Self {
        Self {
            run: capture.run.as_str().to_owned(),
            user: user.as_str().to_owned(),
            turn: capture.turn.to_vec(),
            conversation: capture.conversation.clone(),
            day: capture.day.to_string(),
            at: row::micros(capture.at),
            said: capture.said.clone(),
            in_sight: row::json(&capture.in_sight),
        }
    }

    /// Whether it was queued; `None` where nothing was written and the writer shall do it.
    fn write_directly(&self, direct: &Direct) -> Option<bool> {
        let values: [&dyn ToSql; 10] = [
            &self.run,
            &self.user,
            &self.turn,
            &self.conversation,
            &self.day,
            &self.at,
            &self.said,
            &self.in_sight,
            &PER_USER_MAX,
            &TOTAL_MAX,
        ];
        direct.try_write(ENQUEUE, &values).map(|rows| rows > 0)
    }
}

#[async_trait]
impl Command for Enqueue {
    type Output = bool;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<bool, StoreError> {
        sqlx::query(ENQUEUE)
            .bind(self.run.clone())
            .bind(self.user.clone())
            .bind(self.turn.clone())
            .bind(self.conversation.clone())
            .bind(self.day.clone())
            .bind(self.at)
            .bind(self.said.clone())
            .bind(self.in_sight.clone())
            .bind(PER_USER_MAX)
            .bind(TOTAL_MAX)
            .fetch_all(connection)
            .await
            .map(|rows| !rows.is_empty())
            .map_err(failed("queueing a turn"))
    }
}

struct Claim {
    now: Timestamp,
    until: Timestamp,
    limit: u32,
}

/// A claimed turn, and when it was said, by which they are put into order.
struct Claimed(i64, ClaimedCapture);

impl FromRow<'_, SqliteRow> for Claimed {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let place = row.try_get("seq")?;
        let turn: &[u8] = row.try_get("turn")?;
        let day: &str = row.try_get("day")?;
        let undecodable = |error: jiff::Error| sqlx::Error::Decode(Box::new(error));
        let claimed = ClaimedCapture {
            lease: Lease {
                user: row::named(row, "user_id")?,
                place,
                number: row.try_get("leases")?,
            },
            capture: Capture {
                run: row::named(row, "run_id")?,
                turn: turn
                    .try_into()
                    .map_err(|error: std::array::TryFromSliceError| sqlx::Error::Decode(Box::new(error)))?,
                conversation: row.try_get("conversation")?,
                day: day.parse().map_err(undecodable)?,
                at: row::time(row, "at")?,
                said: row.try_get("said")?,
                in_sight: row::from_json(row, "in_sight")?,
            },
            attempts: row.try_get("attempts")?,
        };
        Ok(Self(row.try_get("at")?, claimed))
    }
}

#[async_trait]
impl Command for Claim {
    type Output = Vec<ClaimedCapture>;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Vec<ClaimedCapture>, StoreError> {
        let mut claimed: Vec<Claimed> = sqlx::query_as(CLAIM)
            .bind(row::micros(self.now))
            .bind(row::micros(self.until))
            .bind(self.limit)
            .fetch_all(connection)
            .await
            .map_err(failed("claiming queued turns"))?;
        // The order of what is returned is not promised.
        claimed.sort_by_key(|Claimed(at, claimed)| (*at, claimed.lease.place));
        Ok(claimed.into_iter().map(|Claimed(_, claimed)| claimed).collect())
    }
}

struct Complete {
    lease: Lease,
    learned: Vec<Observation>,
}

#[async_trait]
impl Command for Complete {
    type Output = Option<u64>;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Option<u64>, StoreError> {
        let taken = sqlx::query(TAKE)
            .bind(self.lease.place)
            .bind(self.lease.user.as_str().to_owned())
            .bind(self.lease.number)
            .execute(&mut *connection)
            .await
            .map_err(failed("completing a queued turn"))?
            .rows_affected();
        if taken == 0 {
            return Ok(None);
        }
        observations::add(connection, &self.lease.user, &self.learned)
            .await
            .map(Some)
    }
}

/// A change of a row that is leased.
struct Settle {
    sql: &'static str,
    lease: Lease,
    due_at: i64,
    problem: String,
}

#[async_trait]
impl Command for Settle {
    type Output = bool;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<bool, StoreError> {
        sqlx::query(self.sql)
            .bind(self.lease.place)
            .bind(self.lease.user.as_str().to_owned())
            .bind(self.lease.number)
            .bind(self.due_at)
            .bind(self.problem.clone())
            .execute(connection)
            .await
            .map(|done| done.rows_affected() > 0)
            .map_err(failed("settling a queued turn"))
    }
}

/// A change of many rows.
struct Change {
    sql: &'static str,
    value: i64,
    doing: &'static str,
}

#[async_trait]
impl Command for Change {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        let done = sqlx::query(self.sql).bind(self.value).execute(connection).await;
        done.map(|done| done.rows_affected()).map_err(failed(self.doing))
    }
}

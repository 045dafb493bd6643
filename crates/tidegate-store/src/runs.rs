//! The journal of runs: one row a run, one line a checkpoint.
//!
//! Opening and closing a run stand in the way of every request, so that each is written on the thread that asks
//! ([`Direct`]), or else in one round trip to the database's thread ([`Command::apply_alone`]), and touches few
//! pages: the first line and the last are in the run's own row, and the ids of new runs are neighbours. The view
//! `run_journal` has every line.

use async_trait::async_trait;
use rusqlite::ToSql;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};
use tidegate_core::{
    clock::Timestamp,
    error::StoreError,
    id::{KeyId, RequestId, RunId},
    port::RunStore,
    run::{Checkpoint, RunEnd, RunRecord, RunState, RunView, Stage},
};

use crate::{
    direct::Direct,
    error::{failed, is_duplicate},
    row,
    store::Store,
    writer::{Command, statements},
};

/// The most lines of a journal that are shown; the engine's bounds on rounds and calls keep runs below it.
const JOURNAL_SHOWN_MAX: u32 = 10_000;
/// Runs removed in one transaction, so that pruning does not hold up requests.
const PRUNE_BATCH: u32 = 200;

statements! {
    OPEN, OPEN_ALONE = "INSERT INTO runs (id, request_id, key_id, user_id, origin, model, created_at, first_at, \
     first_stage, first_state) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
}

statements! {
    /// A newer state takes the place of the older ones: only the newest is ever read.
    CHECKPOINT_WITH_STATE, CHECKPOINT_WITH_STATE_ALONE = "UPDATE run_checkpoints SET state = NULL \
     WHERE run_id = $1 AND state IS NOT NULL \
     AND EXISTS (SELECT 1 FROM runs WHERE id = $1 AND state = 'running'); \
     UPDATE runs SET first_state = NULL WHERE id = $1 AND state = 'running' AND first_state IS NOT NULL; \
     INSERT INTO run_checkpoints (run_id, line, key_id, user_id, at, stage, state) \
     SELECT id, (SELECT coalesce(max(line), 1) + 1 FROM run_checkpoints WHERE run_id = $1), key_id, user_id, \
     $2, $3, $4 FROM runs WHERE id = $1 AND state = 'running' RETURNING line"
}

statements! {
    CHECKPOINT, CHECKPOINT_ALONE = "INSERT INTO run_checkpoints (run_id, line, key_id, user_id, at, stage) \
     SELECT id, (SELECT coalesce(max(line), 1) + 1 FROM run_checkpoints WHERE run_id = $1), key_id, user_id, \
     $2, $3 FROM runs WHERE id = $1 AND state = 'running' RETURNING line"
}

statements! {
    /// The states go with the close: nobody continues a run that has ended, and people's words are kept no
    /// longer than they are needed. The run's own row comes last, because the other asks whether it is open.
    CLOSE, CLOSE_ALONE = "UPDATE run_checkpoints SET state = NULL WHERE run_id = $1 AND state IS NOT NULL \
     AND EXISTS (SELECT 1 FROM runs WHERE id = $1 AND state = 'running'); \
     UPDATE runs SET ended_at = $2, state = $3, outcome = $4, input_tokens = $5, output_tokens = $6, \
     cached_tokens = $7, reasoning_tokens = $8, estimated = $9, first_state = NULL, \
     has_end = first_stage IS NOT $10 \
     AND NOT EXISTS (SELECT 1 FROM run_checkpoints WHERE run_id = $1 AND stage = $10) \
     WHERE id = $1 AND state = 'running' RETURNING id"
}

const FIND: &str = "SELECT * FROM runs WHERE id = $1 AND key_id = $2";

const JOURNAL: &str = "SELECT at, stage FROM run_journal WHERE run_id = $1 ORDER BY line LIMIT $2";

const LATEST_STATE: &str = "SELECT at, stage, state FROM run_journal \
     WHERE run_id = $1 AND state IS NOT NULL ORDER BY line DESC LIMIT 1";

/// Runs that were left open get their first lines among the others. What follows looks at a journal for each of
/// them, and in the view that would be a look at every run there is.
const RECOVER_FIRST_LINES: [&str; 2] = [
    "INSERT INTO run_checkpoints (run_id, line, key_id, user_id, at, stage, state) \
     SELECT id, 1, key_id, user_id, first_at, first_stage, first_state FROM runs \
     WHERE state = 'running' AND first_stage IS NOT NULL",
    "UPDATE runs SET first_at = NULL, first_stage = NULL, first_state = NULL WHERE state = 'running'",
];

/// Ids of calls may repeat within a run (some models number them anew each round), so that befores and
/// afters are counted rather than looked for.
const RECOVER_INDETERMINATE: &str = "UPDATE runs SET state = 'indeterminate', outcome = 'indeterminate', \
     ended_at = $1 WHERE state = 'running' AND EXISTS ( \
       SELECT 1 FROM run_checkpoints AS entry WHERE entry.run_id = runs.id \
       AND entry.stage ->> 'stage' IN ('before_effect', 'after_effect') \
       GROUP BY entry.stage ->> 'call_id' \
       HAVING sum(CASE entry.stage ->> 'stage' WHEN 'before_effect' THEN 1 ELSE -1 END) > 0)";

const RECOVER_INTERRUPTED: &str =
    "UPDATE runs SET state = 'interrupted', outcome = 'interrupted', ended_at = $1 WHERE state = 'running'";

/// What a run that was left open has cost, from its newest state: the model calls that were booked, and the
/// prompt of the one that it was about to make. That one's cost nobody knows; so the sum is an estimate, unless
/// the journal goes on with what a tool did, after the calls that the state knows of.
const RECOVER_USAGE: &str = "UPDATE runs SET \
     (input_tokens, output_tokens, cached_tokens, reasoning_tokens, estimated) = (SELECT \
       coalesce(sum(max(0, min(CAST(value ->> 'input_tokens' AS INTEGER), 1 << 40))), 0) \
         + max(0, min(coalesce(CAST(last.state ->> '$.asking_tokens' AS INTEGER), 0), 1 << 40)), \
       coalesce(sum(max(0, min(CAST(value ->> 'output_tokens' AS INTEGER), 1 << 40))), 0), \
       coalesce(sum(max(0, min(CAST(value ->> 'cached_tokens' AS INTEGER), 1 << 40))), 0), \
       coalesce(sum(max(0, min(CAST(value ->> 'reasoning_tokens' AS INTEGER), 1 << 40))), 0), \
       coalesce(max(value ->> 'estimated' IS 1), 0) \
       FROM json_each(last.state, '$.spent.usage_by_role') WHERE type = 'object') \
     FROM run_checkpoints AS last \
     WHERE runs.state = 'running' AND last.run_id = runs.id AND json_valid(last.state)";

const RECOVER_ESTIMATED: &str = "UPDATE runs SET estimated = 1 WHERE state = 'running' AND ( \
     SELECT stage ->> 'stage' FROM run_checkpoints WHERE run_id = runs.id ORDER BY line DESC LIMIT 1 \
     ) IS NOT 'before_effect' AND ( \
     SELECT stage ->> 'stage' FROM run_checkpoints WHERE run_id = runs.id ORDER BY line DESC LIMIT 1 \
     ) IS NOT 'after_effect'";

/// Runs whose ids begin with the time of their opening: they lie in its order, and none that has ended before a
/// time was opened after it.
const PRUNE: &str = "DELETE FROM runs WHERE id IN \
     (SELECT id FROM runs WHERE id < $3 AND ended_at < $1 LIMIT $2)";

/// Runs of earlier versions, whose ids say nothing.
const PRUNE_UNORDERED: &str = "DELETE FROM runs WHERE id IN (SELECT id FROM runs \
     WHERE ended_at IS NOT NULL AND length(id) <> 30 AND ended_at < $1 LIMIT $2)";

#[async_trait]
impl RunStore for Store {
    /// Waits for its commit to the end: a row that came after its caller had been refused would stay open, and
    /// nobody would close it.
    async fn open(&self, run: &RunRecord, first: &Checkpoint) -> Result<(), StoreError> {
        let open = Open {
            run: run.clone(),
            first: Line::of(first),
        };
        if open.write_directly(self.direct()) {
            return Ok(());
        }
        self.writer().run_or_refuse(open).await
    }

    async fn checkpoint(&self, id: &RunId, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let append = Append {
            id: id.clone(),
            line: Line::of(checkpoint),
        };
        if append.write_directly(self.direct()) {
            return Ok(());
        }
        self.writer().run(append).await
    }

    async fn close(&self, id: &RunId, end: &RunEnd) -> Result<(), StoreError> {
        let close = Close {
            id: id.clone(),
            end: end.clone(),
        };
        if close.write_directly(self.direct()) {
            return Ok(());
        }
        self.writer().run(close).await
    }

    async fn find(&self, key_id: &KeyId, id: &RunId) -> Result<Option<RunView>, StoreError> {
        let found = sqlx::query(FIND)
            .bind(id.as_str().to_owned())
            .bind(key_id.as_str().to_owned())
            .fetch_optional(self.readers())
            .await
            .map_err(failed("reading a run"))?;
        let Some(found) = found else {
            return Ok(None);
        };
        let lines = sqlx::query(JOURNAL)
            .bind(id.as_str().to_owned())
            .bind(JOURNAL_SHOWN_MAX)
            .fetch_all(self.readers())
            .await
            .map_err(failed("reading a run's journal"))?;
        view(&found, &lines).map(Some).map_err(failed("reading a run"))
    }

    async fn latest_state(&self, id: &RunId) -> Result<Option<Checkpoint>, StoreError> {
        sqlx::query(LATEST_STATE)
            .bind(id.as_str().to_owned())
            .fetch_optional(self.readers())
            .await
            .and_then(|found| found.as_ref().map(checkpoint).transpose())
            .map_err(failed("reading a run's state"))
    }

    /// Only for the process that holds the daemon's lock, before it opens runs of its own. The states of
    /// the runs it closes stay until they are pruned, so that they can be continued.
    async fn recover(&self, now: Timestamp) -> Result<(u64, u64), StoreError> {
        if !self.is_daemon() {
            let text =
                "only the daemon that holds the database's lock may close what another process left open";
            return Err(StoreError::Internal(text.to_owned()));
        }
        self.writer().run(Recover { now }).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut pruned = 0;
        loop {
            let gone = self.writer().run(Prune { before }).await?;
            pruned += gone;
            if gone < u64::from(PRUNE_BATCH) {
                return Ok(pruned);
            }
        }
    }
}

fn view(run: &SqliteRow, lines: &[SqliteRow]) -> Result<RunView, sqlx::Error> {
    Ok(RunView {
        record: RunRecord {
            id: RunId::new(run.try_get::<String, _>("id")?),
            request_id: RequestId::new(run.try_get::<String, _>("request_id")?),
            key_id: KeyId::new(run.try_get::<String, _>("key_id")?),
            user: row::named(run, "user_id")?,
            origin: row::named(run, "origin")?,
            model: run.try_get("model")?,
            created_at: row::time(run, "created_at")?,
        },
        state: row::named::<RunState>(run, "state")?,
        outcome: run.try_get("outcome")?,
        ended_at: row::time_or_none(run, "ended_at")?,
        usage: row::usage(run)?,
        journal: lines
            .iter()
            .map(|line| Ok((row::time(line, "at")?, row::from_json::<Stage>(line, "stage")?)))
            .collect::<Result<_, sqlx::Error>>()?,
    })
}

fn checkpoint(row: &SqliteRow) -> Result<Checkpoint, sqlx::Error> {
    Ok(Checkpoint {
        at: row::time(row, "at")?,
        stage: row::from_json(row, "stage")?,
        state: row::from_json_or_none(row, "state")?,
    })
}

/// A checkpoint as it is written. Turned into text by the caller, not in the writer's turn.
struct Line {
    at: i64,
    stage: String,
    state: Option<String>,
}

impl Line {
    fn of(checkpoint: &Checkpoint) -> Self {
        Self {
            at: row::micros(checkpoint.at),
            stage: row::json(&checkpoint.stage),
            state: checkpoint.state.as_ref().map(row::json),
        }
    }
}

pub(crate) fn not_open(id: &RunId) -> StoreError {
    StoreError::Internal(format!("run {id} is not open; it has ended or was erased"))
}

struct Open {
    run: RunRecord,
    first: Line,
}

#[async_trait]
impl Command for Open {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        self.write(OPEN, connection).await
    }

    async fn apply_alone(&self, connection: &mut SqliteConnection) -> Option<Result<(), StoreError>> {
        Some(self.write(OPEN_ALONE, connection).await)
    }
}

impl Open {
    /// Whether it was written on this thread.
    fn write_directly(&self, direct: &Direct) -> bool {
        let (run, first) = (&self.run, &self.first);
        let values: [&dyn ToSql; 10] = [
            &run.id.as_str(),
            &run.request_id.as_str(),
            &run.key_id.as_str(),
            &run.user.as_str(),
            &row::name(&run.origin),
            &run.model,
            &row::micros(run.created_at),
            &first.at,
            &first.stage,
            &first.state,
        ];
        direct.try_write(OPEN, &values).is_some()
    }

    async fn write(&self, sql: &'static str, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let done = sqlx::query(sql)
            .bind(self.run.id.as_str().to_owned())
            .bind(self.run.request_id.as_str().to_owned())
            .bind(self.run.key_id.as_str().to_owned())
            .bind(self.run.user.as_str().to_owned())
            .bind(row::name(&self.run.origin))
            .bind(self.run.model.clone())
            .bind(row::micros(self.run.created_at))
            .bind(self.first.at)
            .bind(self.first.stage.clone())
            .bind(self.first.state.clone())
            .execute(connection)
            .await;
        match done {
            Ok(_) => Ok(()),
            Err(error) if is_duplicate(&error) => Err(StoreError::Duplicate(format!("run {}", self.run.id))),
            Err(error) => Err(failed("opening a run")(error)),
        }
    }
}

struct Append {
    id: RunId,
    line: Line,
}

#[async_trait]
impl Command for Append {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        self.write(self.sql(), connection).await
    }

    async fn apply_alone(&self, connection: &mut SqliteConnection) -> Option<Result<(), StoreError>> {
        let sql = if self.line.state.is_some() {
            CHECKPOINT_WITH_STATE_ALONE
        } else {
            CHECKPOINT_ALONE
        };
        Some(self.write(sql, connection).await)
    }
}

impl Append {
    fn sql(&self) -> &'static str {
        if self.line.state.is_some() {
            CHECKPOINT_WITH_STATE
        } else {
            CHECKPOINT
        }
    }

    /// Whether it was written on this thread. Where no run is open the queue finds that out once more.
    fn write_directly(&self, direct: &Direct) -> bool {
        let line = &self.line;
        let values: [&dyn ToSql; 4] = [&self.id.as_str(), &line.at, &line.stage, &line.state];
        direct
            .try_write(self.sql(), &values)
            .is_some_and(|written| written > 0)
    }

    async fn write(&self, sql: &'static str, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let written = sqlx::query(sql)
            .bind(self.id.as_str().to_owned())
            .bind(self.line.at)
            .bind(self.line.stage.clone())
            .bind(self.line.state.clone())
            .fetch_all(connection)
            .await
            .map_err(failed("writing a checkpoint"))?;
        if written.is_empty() {
            Err(not_open(&self.id))
        } else {
            Ok(())
        }
    }
}

struct Close {
    id: RunId,
    end: RunEnd,
}

#[async_trait]
impl Command for Close {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        self.write(CLOSE, connection).await
    }

    async fn apply_alone(&self, connection: &mut SqliteConnection) -> Option<Result<(), StoreError>> {
        Some(self.write(CLOSE_ALONE, connection).await)
    }
}

impl Close {
    /// Whether it was written on this thread. Where no run is open the queue finds that out once more.
    fn write_directly(&self, direct: &Direct) -> bool {
        let (end, usage) = (&self.end, &self.end.usage);
        let values: [&dyn ToSql; 10] = [
            &self.id.as_str(),
            &row::micros(end.at),
            &end.state.name(),
            &end.outcome,
            &row::count(usage.input_tokens),
            &row::count(usage.output_tokens),
            &row::count(usage.cached_tokens),
            &row::count(usage.reasoning_tokens),
            &usage.estimated,
            &row::json(&Stage::End),
        ];
        direct.try_write(CLOSE, &values).is_some_and(|closed| closed > 0)
    }

    async fn write(&self, sql: &'static str, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let usage = &self.end.usage;
        let closed = sqlx::query(sql)
            .bind(self.id.as_str().to_owned())
            .bind(row::micros(self.end.at))
            .bind(self.end.state.name())
            .bind(self.end.outcome.clone())
            .bind(row::count(usage.input_tokens))
            .bind(row::count(usage.output_tokens))
            .bind(row::count(usage.cached_tokens))
            .bind(row::count(usage.reasoning_tokens))
            .bind(usage.estimated)
            .bind(row::json(&Stage::End))
            .fetch_all(connection)
            .await
            .map_err(failed("closing a run"))?;
        if closed.is_empty() {
            Err(not_open(&self.id))
        } else {
            Ok(())
        }
    }
}

struct Recover {
    now: Timestamp,
}

#[async_trait]
impl Command for Recover {
    type Output = (u64, u64);

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(u64, u64), StoreError> {
        let summing_up = [RECOVER_USAGE, RECOVER_ESTIMATED];
        for sql in RECOVER_FIRST_LINES.into_iter().chain(summing_up) {
            let done = sqlx::query(sql).execute(&mut *connection).await;
            done.map_err(failed("summing up what was left open"))?;
        }
        let mut closed = [0; 2];
        for (closed, sql) in closed
            .iter_mut()
            .zip([RECOVER_INDETERMINATE, RECOVER_INTERRUPTED])
        {
            let done = sqlx::query(sql)
                .bind(row::micros(self.now))
                .execute(&mut *connection)
                .await;
            *closed = done
                .map_err(failed("closing what was left open"))?
                .rows_affected();
        }
        Ok(closed.into())
    }
}

struct Prune {
    before: Timestamp,
}

#[async_trait]
impl Command for Prune {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        let ordered = sqlx::query(PRUNE)
            .bind(row::micros(self.before))
            .bind(PRUNE_BATCH)
            .bind(RunId::first_at(self.before).as_str().to_owned())
            .execute(&mut *connection)
            .await
            .map_err(failed("removing old runs"))?;
        let unordered = sqlx::query(PRUNE_UNORDERED)
            .bind(row::micros(self.before))
            .bind(PRUNE_BATCH)
            .execute(connection)
            .await
            .map_err(failed("removing old runs"))?;
        Ok(ordered.rows_affected() + unordered.rows_affected())
    }
}

#[cfg(test)]
mod tests;

//! Approvals in SQLite. Every change of state is one `UPDATE … WHERE state = …`, so that of all who try at once
//! one succeeds.

use async_trait::async_trait;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};
use tidegate_core::{
    approval::{Answer, Approval, ApprovalBinding, ApprovalPage, ApprovalQuery, ApprovalState, Decided},
    clock::Timestamp,
    error::StoreError,
    id::{ApprovalId, KeyId},
    port::ApprovalStore,
};

use crate::{error::failed, row, runs::not_open, store::Store, writer::Command};

/// The most approvals in a page, whatever is asked for.
const PAGE_MAX: u32 = 100;

/// Questions of one key that wait at once; beyond it the oldest expires.
const PENDING_PER_KEY_MAX: u32 = 256;

/// What is over is over, whoever looks next.
const EXPIRE: &str = "UPDATE approvals SET state = 'expired' \
     WHERE state IN ('pending', 'approved') AND expires_at <= $1";

const FIND_ASKED: &str = "SELECT * FROM approvals WHERE state = 'pending' AND fingerprint = $1 AND key_id = $2 \
     AND user_id = $3 AND conversation = $4 AND mode = $5 AND tool = $6 AND policy = $7";

/// A run that was erased meanwhile asks nothing.
const INSERT: &str = "INSERT INTO approvals (fingerprint, key_id, user_id, conversation, mode, tool, policy, \
     id, run_id, summary, arguments, reasons, state, created_at, expires_at) \
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'pending', $13, $14 FROM runs \
     WHERE id = $9 AND user_id = $3 RETURNING *";

const BOUND: &str = "UPDATE approvals SET state = 'expired' WHERE state = 'pending' AND key_id = $1 AND seq NOT IN \
     (SELECT seq FROM approvals WHERE state = 'pending' AND key_id = $1 ORDER BY seq DESC LIMIT $2)";

const FIND: &str = "SELECT * FROM approvals WHERE id = $1";

const LIST: &str = "SELECT * FROM (SELECT *, CASE WHEN state IN ('pending', 'approved') AND expires_at <= $5 \
     THEN 'expired' ELSE state END AS now_state FROM approvals \
     WHERE ($1 IS NULL OR key_id = $1) AND ($2 IS NULL OR user_id = $2) \
     AND ($4 IS NULL OR seq < (SELECT seq FROM approvals WHERE id = $4))) \
     WHERE $3 IS NULL OR now_state = $3 ORDER BY seq DESC LIMIT $6";

const DECIDE: &str = "UPDATE approvals SET state = $2, decided_by = $3, decided_at = $4, \
     expires_at = CASE WHEN $2 = 'approved' THEN $5 ELSE expires_at END \
     WHERE id = $1 AND state = 'pending' AND expires_at > $4 RETURNING *";

/// The oldest of several equal ones, so that each is spent by one call.
const CLAIM: &str = "UPDATE approvals SET state = 'claimed' WHERE seq = (SELECT min(seq) FROM approvals \
     WHERE state = 'approved' AND expires_at > $8 AND fingerprint = $1 AND key_id = $2 AND user_id = $3 \
     AND conversation = $4 AND mode = $5 AND tool = $6 AND policy = $7) AND state = 'approved' RETURNING *";

const SETTLE: &str = "UPDATE approvals SET state = $2 WHERE id = $1 AND state = 'claimed'";

const VOID: &str = "UPDATE approvals SET state = 'expired' WHERE state = 'approved'";
const CUT_OFF: &str = "UPDATE approvals SET state = 'indeterminate' WHERE state = 'claimed'";

const PRUNE: &str =
    "DELETE FROM approvals WHERE created_at < $1 AND state NOT IN ('pending', 'approved', 'claimed')";

#[async_trait]
impl ApprovalStore for Store {
    async fn ask(&self, new: &Approval) -> Result<Approval, StoreError> {
        self.writer().run(Ask { new: new.clone() }).await
    }

    async fn find(&self, id: &ApprovalId, now: Timestamp) -> Result<Option<Approval>, StoreError> {
        let found = sqlx::query(FIND)
            .bind(id.as_str().to_owned())
            .fetch_optional(self.readers())
            .await
            .and_then(|found| found.as_ref().map(approval).transpose())
            .map_err(failed("reading an approval"))?;
        Ok(found.map(|approval| as_of(approval, now)))
    }

    async fn list(&self, query: &ApprovalQuery, now: Timestamp) -> Result<ApprovalPage, StoreError> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let mut approvals = sqlx::query(LIST)
            .bind(query.key_id.as_ref().map(|id| id.as_str().to_owned()))
            .bind(query.user.as_ref().map(|user| user.as_str().to_owned()))
            .bind(query.state.map(ApprovalState::name))
            .bind(query.after.as_ref().map(|id| id.as_str().to_owned()))
            .bind(row::micros(now))
            .bind(limit + 1)
            .fetch_all(self.readers())
            .await
            .and_then(|rows| rows.iter().map(approval).collect::<Result<Vec<_>, _>>())
            .map_err(failed("listing approvals"))?;
        let has_more = approvals.len() > limit as usize;
        approvals.truncate(limit as usize);
        let approvals = approvals
            .into_iter()
            .map(|approval| as_of(approval, now))
            .collect();
        Ok(ApprovalPage { approvals, has_more })
    }

    async fn decide(
        &self,
        id: &ApprovalId,
        answer: Answer,
        by: &KeyId,
        now: Timestamp,
        spend_until: Timestamp,
    ) -> Result<Decided, StoreError> {
        self.writer()
            .run(Decide {
                id: id.clone(),
                answer,
                by: by.clone(),
                now,
                spend_until,
            })
            .await
    }

    async fn claim(&self, binding: &ApprovalBinding, now: Timestamp) -> Result<Option<Approval>, StoreError> {
        self.writer()
            .run(Claim {
                binding: binding.clone(),
                now,
            })
            .await
    }

    async fn settle(&self, id: &ApprovalId, state: ApprovalState) -> Result<(), StoreError> {
        self.writer()
            .run(Settle {
                id: id.clone(),
                state,
            })
            .await
    }

    /// Only for the process that holds the daemon's lock.
    async fn recover_approvals(&self, now: Timestamp) -> Result<(u64, u64), StoreError> {
        if !self.is_daemon() {
            let text =
                "only the daemon that holds the database's lock may void what another process approved";
            return Err(StoreError::Internal(text.to_owned()));
        }
        self.writer().run(Recover { now }).await
    }

    async fn prune_approvals(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.writer().run(Prune { before }).await
    }
}

type Query = sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

/// A query whose first seven parameters are the binding.
fn bound(sql: &'static str, binding: &ApprovalBinding) -> Query {
    sqlx::query(sql)
        .bind(binding.fingerprint.clone())
        .bind(binding.key_id.as_str().to_owned())
        .bind(binding.user.as_str().to_owned())
        .bind(binding.conversation.clone())
        .bind(binding.mode.name())
        .bind(binding.tool.clone())
        .bind(binding.policy.clone())
}

fn approval(row: &SqliteRow) -> Result<Approval, sqlx::Error> {
    Ok(Approval {
        id: row::named(row, "id")?,
        run_id: row::named(row, "run_id")?,
        binding: ApprovalBinding {
            key_id: row::named(row, "key_id")?,
            user: row::named(row, "user_id")?,
            conversation: row.try_get("conversation")?,
            mode: row::named(row, "mode")?,
            tool: row.try_get("tool")?,
            fingerprint: row.try_get("fingerprint")?,
            policy: row.try_get("policy")?,
        },
        summary: row.try_get("summary")?,
        arguments: row.try_get("arguments")?,
        reasons: row::from_json(row, "reasons")?,
        created_at: row::time(row, "created_at")?,
        expires_at: row::time(row, "expires_at")?,
        state: row::named(row, "state")?,
        decided_by: row.try_get::<Option<String>, _>("decided_by")?.map(KeyId::new),
        decided_at: row::time_or_none(row, "decided_at")?,
    })
}

/// How it stands at a time: what nobody has marked as expired yet is expired all the same.
fn as_of(mut approval: Approval, now: Timestamp) -> Approval {
    let is_open = match approval.state {
        ApprovalState::Pending | ApprovalState::Approved => true,
        ApprovalState::Denied
        | ApprovalState::Expired
        | ApprovalState::Claimed
        | ApprovalState::Consumed
        | ApprovalState::Indeterminate => false,
    };
    if is_open && approval.expires_at <= now {
        approval.state = ApprovalState::Expired;
    }
    approval
}

async fn expire(connection: &mut SqliteConnection, now: Timestamp) -> Result<(), sqlx::Error> {
    sqlx::query(EXPIRE)
        .bind(row::micros(now))
        .execute(connection)
        .await
        .map(drop)
}

async fn fetch(query: Query, connection: &mut SqliteConnection) -> Result<Option<Approval>, sqlx::Error> {
    let found = query.fetch_optional(connection).await?;
    found.as_ref().map(approval).transpose()
}

struct Ask {
    new: Approval,
}

impl Ask {
    /// `None` where the run was erased.
    async fn write(&self, connection: &mut SqliteConnection) -> Result<Option<Approval>, sqlx::Error> {
        let new = &self.new;
        expire(connection, new.created_at).await?;
        if let Some(asked) = fetch(bound(FIND_ASKED, &new.binding), connection).await? {
            return Ok(Some(asked));
        }
        let query = bound(INSERT, &new.binding)
            .bind(new.id.as_str().to_owned())
            .bind(new.run_id.as_str().to_owned())
            .bind(new.summary.clone())
            .bind(new.arguments.clone())
            .bind(row::json(&new.reasons))
            .bind(row::micros(new.created_at))
            .bind(row::micros(new.expires_at));
        let Some(inserted) = fetch(query, connection).await? else {
            return Ok(None);
        };
        sqlx::query(BOUND)
            .bind(new.binding.key_id.as_str().to_owned())
            .bind(PENDING_PER_KEY_MAX)
            .execute(connection)
            .await?;
        Ok(Some(inserted))
    }
}

#[async_trait]
impl Command for Ask {
    type Output = Approval;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Approval, StoreError> {
        let asked = self
            .write(connection)
            .await
            .map_err(failed("asking for an approval"))?;
        asked.ok_or_else(|| not_open(&self.new.run_id))
    }
}

struct Decide {
    id: ApprovalId,
    answer: Answer,
    by: KeyId,
    now: Timestamp,
    spend_until: Timestamp,
}

impl Decide {
    async fn write(&self, connection: &mut SqliteConnection) -> Result<Decided, sqlx::Error> {
        expire(connection, self.now).await?;
        let wanted = match self.answer {
            Answer::Approve => ApprovalState::Approved,
            Answer::Deny => ApprovalState::Denied,
        };
        let query = sqlx::query(DECIDE)
            .bind(self.id.as_str().to_owned())
            .bind(wanted.name())
            .bind(self.by.as_str().to_owned())
            .bind(row::micros(self.now))
            .bind(row::micros(self.spend_until));
        if let Some(decided) = fetch(query, connection).await? {
            return Ok(Decided::Now(decided));
        }
        let query = sqlx::query(FIND).bind(self.id.as_str().to_owned());
        Ok(match fetch(query, connection).await? {
            None => Decided::Missing,
            Some(found) if said_before(found.state, self.answer) => Decided::Before(found),
            Some(found) => Decided::TooLate(found),
        })
    }
}

/// Whether an approval in this state has had this answer already.
fn said_before(state: ApprovalState, answer: Answer) -> bool {
    match state {
        ApprovalState::Approved
        | ApprovalState::Claimed
        | ApprovalState::Consumed
        | ApprovalState::Indeterminate => answer == Answer::Approve,
        ApprovalState::Denied => answer == Answer::Deny,
        ApprovalState::Pending | ApprovalState::Expired => false,
    }
}

#[async_trait]
impl Command for Decide {
    type Output = Decided;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Decided, StoreError> {
        self.write(connection)
            .await
            .map_err(failed("deciding an approval"))
    }
}

struct Claim {
    binding: ApprovalBinding,
    now: Timestamp,
}

#[async_trait]
impl Command for Claim {
    type Output = Option<Approval>;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Option<Approval>, StoreError> {
        let query = bound(CLAIM, &self.binding).bind(row::micros(self.now));
        fetch(query, connection)
            .await
            .map_err(failed("claiming an approval"))
    }
}

struct Settle {
    id: ApprovalId,
    state: ApprovalState,
}

#[async_trait]
impl Command for Settle {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let done = sqlx::query(SETTLE)
            .bind(self.id.as_str().to_owned())
            .bind(self.state.name())
            .execute(connection)
            .await;
        done.map(drop).map_err(failed("settling an approval"))
    }
}

struct Recover {
    now: Timestamp,
}

#[async_trait]
impl Command for Recover {
    type Output = (u64, u64);

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(u64, u64), StoreError> {
        let write = async {
            expire(connection, self.now).await?;
            let void = sqlx::query(VOID).execute(&mut *connection).await?;
            let cut_off = sqlx::query(CUT_OFF).execute(&mut *connection).await?;
            Ok((void.rows_affected(), cut_off.rows_affected()))
        };
        write.await.map_err(failed("recovering approvals"))
    }
}

struct Prune {
    before: Timestamp,
}

#[async_trait]
impl Command for Prune {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        let done = sqlx::query(PRUNE)
            .bind(row::micros(self.before))
            .execute(connection)
            .await;
        done.map(|done| done.rows_affected())
            .map_err(failed("pruning approvals"))
    }
}

//! The key repository: records, policies, rotation and last use, in SQLite.

use async_trait::async_trait;
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};
use tidegate_core::{
    caller::{Scope, Scopes},
    clock::Timestamp,
    error::StoreError,
    id::KeyId,
    key::{KeyPolicy, KeyRecord, PreviousHash},
    port::{KeyPage, KeyRemoval, KeyStore, LastAdmin, PageRequest, PolicyChange},
    secret::HashedKey,
};

use crate::{
    error::{failed, is_duplicate},
    row,
    store::Store,
    writer::Command,
};

/// The most keys in a page, whatever is asked for.
const PAGE_MAX: u32 = 100;

const FIND: &str = "SELECT * FROM keys WHERE id = $1";

const INSERT: &str = "INSERT INTO keys (id, hash, previous_hash, previous_valid_until, created_at, last_used_at, \
     name, scopes, enabled, expires_at, requests_per_minute, tokens_per_day, models, tools, mode_ceiling, \
     on_disconnect, metadata) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

const INSERT_FIRST: &str = "INSERT INTO keys (id, hash, previous_hash, previous_valid_until, created_at, \
     last_used_at, name, scopes, enabled, expires_at, requests_per_minute, tokens_per_day, models, tools, \
     mode_ceiling, on_disconnect, metadata) \
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17 \
     WHERE NOT EXISTS (SELECT 1 FROM keys)";

const LIST_OLDEST_FIRST: &str = "SELECT * FROM keys \
     WHERE $1 IS NULL OR (created_at, id) > (SELECT created_at, id FROM keys WHERE id = $1) \
     ORDER BY created_at, id LIMIT $2";

const LIST_NEWEST_FIRST: &str = "SELECT * FROM keys \
     WHERE $1 IS NULL OR (created_at, id) < (SELECT created_at, id FROM keys WHERE id = $1) \
     ORDER BY created_at DESC, id DESC LIMIT $2";

const SET_POLICY: &str = "UPDATE keys SET name = $2, scopes = $3, enabled = $4, expires_at = $5, \
     requests_per_minute = $6, tokens_per_day = $7, models = $8, tools = $9, mode_ceiling = $10, \
     on_disconnect = $11, metadata = $12 WHERE id = $1 RETURNING *";

const ROTATE: &str = "UPDATE keys SET previous_hash = hash, previous_valid_until = $3, hash = $2 \
     WHERE id = $1 RETURNING *";

/// What waits for the key's next request goes with it: nobody can come to fetch it.
const DELETE: &str = "DELETE FROM held_turns WHERE key_id = $1; \
     UPDATE approvals SET state = 'expired' WHERE key_id = $1 AND state IN ('pending', 'approved'); \
     DELETE FROM keys WHERE id = $1 RETURNING id";

/// Whether anybody else can administer keys. Counts in the writer's own transaction, so that no other process
/// can take the others away in between.
const OTHER_ADMIN: &str = "SELECT EXISTS (SELECT 1 FROM keys WHERE id <> $1 AND enabled \
     AND (expires_at IS NULL OR expires_at > $2) \
     AND EXISTS (SELECT 1 FROM json_each(keys.scopes) AS scope WHERE scope.value = $3))";

const TOUCH: &str = "UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), used.at) \
     FROM (SELECT value ->> 0 AS id, value ->> 1 AS at FROM json_each($1)) AS used WHERE keys.id = used.id";

#[async_trait]
impl KeyStore for Store {
    async fn find(&self, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let mark = self.key_cache().mark();
        if let Some(key) = self.key_cache().find(id, mark) {
            return Ok(Some(key));
        }
        let found = sqlx::query(FIND)
            .bind(id.as_str().to_owned())
            .fetch_optional(self.readers())
            .await
            .and_then(|found| found.as_ref().map(record).transpose())
            .map_err(failed("reading a key"))?;
        // Only keys that exist are kept: what a stranger asks for is not.
        if let Some(key) = &found {
            self.key_cache().keep(key, mark);
        }
        Ok(found)
    }

    async fn insert(&self, key: &KeyRecord) -> Result<(), StoreError> {
        self.changing_keys(Insert { key: key.clone() }).await
    }

    async fn insert_first(&self, key: &KeyRecord) -> Result<bool, StoreError> {
        self.changing_keys(InsertFirst { key: key.clone() }).await
    }

    /// A page after a key that is gone is empty.
    async fn list(&self, page: &PageRequest) -> Result<KeyPage, StoreError> {
        let limit = page.limit.clamp(1, PAGE_MAX);
        let query = sqlx::query(if page.newest_first {
            LIST_NEWEST_FIRST
        } else {
            LIST_OLDEST_FIRST
        });
        let mut keys = query
            .bind(page.after.as_ref().map(|id| id.as_str().to_owned()))
            .bind(limit + 1)
            .fetch_all(self.readers())
            .await
            .and_then(|rows| rows.iter().map(record).collect::<Result<Vec<_>, _>>())
            .map_err(failed("listing keys"))?;
        let has_more = keys.len() > limit as usize;
        keys.truncate(limit as usize);
        Ok(KeyPage { keys, has_more })
    }

    async fn set_policy(
        &self,
        id: &KeyId,
        expected: &KeyPolicy,
        new: &KeyPolicy,
        last_admin: LastAdmin,
    ) -> Result<PolicyChange, StoreError> {
        self.changing_keys(SetPolicy {
            id: id.clone(),
            expected: expected.clone(),
            new: new.clone(),
            last_admin,
        })
        .await
    }

    async fn rotate(
        &self,
        id: &KeyId,
        new: HashedKey,
        old_valid_until: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError> {
        self.changing_keys(Rotate {
            id: id.clone(),
            new,
            old_valid_until,
        })
        .await
    }

    async fn delete(&self, id: &KeyId, last_admin: LastAdmin) -> Result<KeyRemoval, StoreError> {
        let removal = self
            .changing_keys(Delete {
                id: id.clone(),
                last_admin,
            })
            .await?;
        match removal {
            KeyRemoval::Removed => {
                if let Err(error) = self.erase_key(id).await {
                    tracing::warn!(%error, key = %id, "what the people behind a deleted key wrote is not erased wholly yet");
                }
            }
            KeyRemoval::Missing | KeyRemoval::LastAdmin => {}
        }
        Ok(removal)
    }

    fn touch(&self, id: &KeyId, at: Timestamp) {
        self.note_use(id, at);
    }
}

type Query = sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

fn bind_policy(query: Query, policy: &KeyPolicy) -> Query {
    query
        .bind(policy.name.clone())
        .bind(row::json(&policy.scopes))
        .bind(policy.enabled)
        .bind(policy.expires_at.map(row::micros))
        .bind(policy.requests_per_minute)
        .bind(policy.tokens_per_day.map(row::count))
        .bind(policy.models.as_ref().map(row::json))
        .bind(policy.tools.as_ref().map(row::json))
        .bind(policy.mode_ceiling.name())
        .bind(row::name(&policy.on_disconnect))
        .bind(row::json(&policy.metadata))
}

fn bind_key(sql: &'static str, key: &KeyRecord) -> Query {
    let query = sqlx::query(sql)
        .bind(key.id.as_str().to_owned())
        .bind(key.hash.digest().to_vec())
        .bind(key.previous.map(|previous| previous.hash.digest().to_vec()))
        .bind(key.previous.map(|previous| row::micros(previous.valid_until)))
        .bind(row::micros(key.created_at))
        .bind(key.last_used_at.map(row::micros));
    bind_policy(query, &key.policy)
}

fn digest(bytes: &[u8]) -> Result<HashedKey, sqlx::Error> {
    let digest = bytes
        .try_into()
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(HashedKey::from_digest(digest))
}

fn record(row: &SqliteRow) -> Result<KeyRecord, sqlx::Error> {
    let previous = match row.try_get::<Option<&[u8]>, _>("previous_hash")? {
        Some(hash) => Some(PreviousHash {
            hash: digest(hash)?,
            valid_until: row::time(row, "previous_valid_until")?,
        }),
        None => None,
    };
    Ok(KeyRecord {
        id: KeyId::new(row.try_get::<String, _>("id")?),
        hash: digest(row.try_get("hash")?)?,
        previous,
        created_at: row::time(row, "created_at")?,
        last_used_at: row::time_or_none(row, "last_used_at")?,
        policy: KeyPolicy {
            name: row.try_get("name")?,
            scopes: row::from_json::<Scopes>(row, "scopes")?,
            enabled: row.try_get("enabled")?,
            expires_at: row::time_or_none(row, "expires_at")?,
            requests_per_minute: row.try_get("requests_per_minute")?,
            tokens_per_day: row.try_get::<Option<i64>, _>("tokens_per_day")?.map(row::uncount),
            models: row::from_json_or_none(row, "models")?,
            tools: row::from_json_or_none(row, "tools")?,
            mode_ceiling: row::named(row, "mode_ceiling")?,
            on_disconnect: row::named(row, "on_disconnect")?,
            metadata: row::from_json(row, "metadata")?,
        },
    })
}

struct Insert {
    key: KeyRecord,
}

#[async_trait]
impl Command for Insert {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        match bind_key(INSERT, &self.key).execute(connection).await {
            Ok(_) => Ok(()),
            Err(error) if is_duplicate(&error) => Err(StoreError::Duplicate(format!("key {}", self.key.id))),
            Err(error) => Err(failed("adding a key")(error)),
        }
    }
}

struct InsertFirst {
    key: KeyRecord,
}

#[async_trait]
impl Command for InsertFirst {
    type Output = bool;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<bool, StoreError> {
        let done = bind_key(INSERT_FIRST, &self.key).execute(connection).await;
        Ok(done.map_err(failed("adding the first key"))?.rows_affected() > 0)
    }
}

/// Compares and writes in one transaction. The comparison reads through the writer's own connection, so that
/// neither a reader's older view nor what is cached can stand in for the row.
struct SetPolicy {
    id: KeyId,
    expected: KeyPolicy,
    new: KeyPolicy,
    last_admin: LastAdmin,
}

#[async_trait]
impl Command for SetPolicy {
    type Output = PolicyChange;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<PolicyChange, StoreError> {
        let id = self.id.as_str();
        let find = sqlx::query(FIND).bind(id.to_owned());
        let Some(found) = one(find, &mut *connection).await? else {
            return Ok(PolicyChange::Missing);
        };
        if found.policy != self.expected {
            return Ok(PolicyChange::Conflict(found));
        }
        if takes_last_admin(self.last_admin, &found, Some(&self.new), &mut *connection).await? {
            return Ok(PolicyChange::LastAdmin);
        }
        let set = bind_policy(sqlx::query(SET_POLICY).bind(id.to_owned()), &self.new);
        let changed = one(set, connection).await?;
        Ok(changed.map_or(PolicyChange::Missing, PolicyChange::Changed))
    }
}

async fn one(query: Query, connection: &mut SqliteConnection) -> Result<Option<KeyRecord>, StoreError> {
    query
        .fetch_optional(connection)
        .await
        .and_then(|found| found.as_ref().map(record).transpose())
        .map_err(failed("changing a key"))
}

/// Whether the key would be the last administrator to go; `after` is its policy then, or nothing.
async fn takes_last_admin(
    rule: LastAdmin,
    key: &KeyRecord,
    after: Option<&KeyPolicy>,
    connection: &mut SqliteConnection,
) -> Result<bool, StoreError> {
    let LastAdmin::Stays { now } = rule else {
        return Ok(false);
    };
    if !key.policy.administers(now) || after.is_some_and(|policy| policy.administers(now)) {
        return Ok(false);
    }
    let others: bool = sqlx::query_scalar(OTHER_ADMIN)
        .bind(key.id.as_str().to_owned())
        .bind(row::micros(now))
        .bind(Scope::Admin.name())
        .fetch_one(connection)
        .await
        .map_err(failed("looking for another administrator"))?;
    Ok(!others)
}

struct Rotate {
    id: KeyId,
    new: HashedKey,
    old_valid_until: Timestamp,
}

#[async_trait]
impl Command for Rotate {
    type Output = Option<KeyRecord>;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Option<KeyRecord>, StoreError> {
        sqlx::query(ROTATE)
            .bind(self.id.as_str().to_owned())
            .bind(self.new.digest().to_vec())
            .bind(row::micros(self.old_valid_until))
            .fetch_optional(connection)
            .await
            .and_then(|found| found.as_ref().map(record).transpose())
            .map_err(failed("rotating a key"))
    }
}

struct Delete {
    id: KeyId,
    last_admin: LastAdmin,
}

#[async_trait]
impl Command for Delete {
    type Output = KeyRemoval;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<KeyRemoval, StoreError> {
        let id = self.id.as_str();
        let find = sqlx::query(FIND).bind(id.to_owned());
        let Some(found) = one(find, &mut *connection).await? else {
            return Ok(KeyRemoval::Missing);
        };
        if takes_last_admin(self.last_admin, &found, None, &mut *connection).await? {
            return Ok(KeyRemoval::LastAdmin);
        }
        let gone = sqlx::query(DELETE)
            .bind(id.to_owned())
            .fetch_all(connection)
            .await;
        gone.map_err(failed("deleting a key"))?;
        Ok(KeyRemoval::Removed)
    }
}

/// Writes last-used times.
pub(crate) struct Touch {
    /// Pairs of key and microseconds.
    pub(crate) uses: Vec<(KeyId, i64)>,
}

#[async_trait]
impl Command for Touch {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let done = sqlx::query(TOUCH)
            .bind(row::json(&self.uses))
            .execute(connection)
            .await;
        done.map(drop).map_err(failed("noting the use of keys"))
    }
}

#[cfg(test)]
mod tests;

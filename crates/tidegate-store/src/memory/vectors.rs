//! Vectors of notes, one a note, of the model that was asked last.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use sqlx::{QueryBuilder, SqliteConnection};
use tidegate_core::{
    error::StoreError,
    id::UserId,
    port::{Note, RowKey, VectorPage},
};

use super::{limited, named, notes::note, people};
use crate::{
    error::failed,
    knowledge::vectors::{numbers, to_blob},
    row,
    store::Store,
    writer::Command,
};

/// Vectors that one transaction keeps.
const VECTORS_MAX: usize = 32;

pub(super) fn page(
    db: &Connection,
    user: &UserId,
    model: &str,
    from: RowKey,
    limit: usize,
) -> Result<VectorPage, rusqlite::Error> {
    let mut page = VectorPage::default();
    let Some(person) = people::number(db, user)? else {
        return Ok(page);
    };
    let keys = people::keys(person);
    let mut statement = db.prepare_cached(
        "SELECT note, vector FROM memory_vectors WHERE note BETWEEN ?1 AND ?2 AND vector IS NOT NULL \
         AND model = (SELECT id FROM memory_models WHERE name = ?3) ORDER BY note LIMIT ?4",
    )?;
    let mut rows = statement.query(params![
        from.max(*keys.start()),
        keys.end(),
        model,
        limited(limit)
    ])?;
    while let Some(row) = rows.next()? {
        page.keys.push(row.get(0)?);
        page.values.extend(numbers(row.get_ref(1)?.as_blob()?));
    }
    Ok(page)
}

pub(super) fn unembedded(
    db: &Connection,
    user: &UserId,
    model: &str,
    limit: usize,
) -> Result<Vec<Note>, rusqlite::Error> {
    let Some(person) = people::number(db, user)? else {
        return Ok(Vec::new());
    };
    let keys = people::keys(person);
    db.prepare_cached(
        "SELECT key, fact, kind, value, text FROM memory_notes WHERE key BETWEEN ?1 AND ?2 \
         AND NOT EXISTS (SELECT 1 FROM memory_vectors WHERE note = memory_notes.key \
                         AND model = (SELECT id FROM memory_models WHERE name = ?3)) \
         ORDER BY key LIMIT ?4",
    )?
    .query_map(params![keys.start(), keys.end(), model, limited(limit)], note)?
    .collect()
}

pub(super) fn users_unembedded(
    db: &Connection,
    model: &str,
    limit: usize,
) -> Result<Vec<UserId>, rusqlite::Error> {
    db.prepare_cached(
        "SELECT user_id FROM memory_people WHERE user_id IS NOT NULL AND number IN \
         (SELECT DISTINCT notes.person FROM memory_notes AS notes WHERE NOT EXISTS \
          (SELECT 1 FROM memory_vectors WHERE note = notes.key \
           AND model = (SELECT id FROM memory_models WHERE name = ?1)) LIMIT ?2)",
    )?
    .query_map(params![model, limited(limit)], |row| named(row, 0))?
    .collect()
}

impl Store {
    pub(super) async fn keep_note_vectors(
        &self,
        user: &UserId,
        model: &str,
        vectors: Vec<(RowKey, Option<Vec<f32>>)>,
    ) -> Result<u64, StoreError> {
        let (mut kept, mut left) = (0, vectors);
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(VECTORS_MAX));
            let keep = Keep {
                user: user.clone(),
                model: model.to_owned(),
                vectors: left,
            };
            kept += self.writer().run(keep).await?;
            left = rest;
        }
        Ok(kept)
    }
}

struct Keep {
    user: UserId,
    model: String,
    vectors: Vec<(RowKey, Option<Vec<f32>>)>,
}

impl Keep {
    /// Those whose notes are still there and this person's.
    async fn still_there(
        &self,
        connection: &mut SqliteConnection,
        person: i64,
    ) -> Result<Vec<&(RowKey, Option<Vec<f32>>)>, StoreError> {
        let keys: Vec<RowKey> = self.vectors.iter().map(|(key, _)| *key).collect();
        let there: Vec<RowKey> = sqlx::query_scalar(
            // The plus keeps the index away that would lead through all of the person's notes.
            "SELECT key FROM memory_notes WHERE key IN (SELECT value FROM json_each($2)) AND +person = $1",
        )
        .bind(person)
        .bind(row::json(&keys))
        .fetch_all(connection)
        .await
        .map_err(failed("looking for notes"))?;
        Ok(self
            .vectors
            .iter()
            .filter(|(key, _)| there.contains(key))
            .collect())
    }

    /// The number of the model, given to it if need be; its vectors all have as many numbers as the first.
    async fn model(&self, connection: &mut SqliteConnection) -> Result<i64, StoreError> {
        let lengths: Vec<usize> = self
            .vectors
            .iter()
            .filter_map(|(_, vector)| vector.as_ref().map(Vec::len))
            .collect();
        let first = lengths.first().map(|length| row::count(*length as u64));
        let (id, dimension): (i64, Option<i64>) = sqlx::query_as(
            "INSERT INTO memory_models (name, dimension) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET dimension = coalesce(dimension, $2) RETURNING id, dimension",
        )
        .bind(self.model.clone())
        .bind(first)
        .fetch_one(connection)
        .await
        .map_err(failed("reading an embedding model"))?;
        let dimension = row::uncount(dimension.unwrap_or_default());
        if let Some(other) = lengths.into_iter().find(|length| *length as u64 != dimension) {
            let text = format!(
                "the embedding model `{}` gave a vector of {other} numbers where it gave {dimension} before; \
                 give the changed model another id",
                self.model
            );
            return Err(StoreError::Internal(text));
        }
        Ok(id)
    }
}

#[async_trait]
impl Command for Keep {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        let Some((person, _)) = people::find(connection, &self.user).await? else {
            return Ok(0);
        };
        let vectors = self.still_there(connection, person).await?;
        if vectors.is_empty() {
            return Ok(0);
        }
        let model = self.model(connection).await?;
        let mut insert =
            QueryBuilder::<sqlx::Sqlite>::new("INSERT INTO memory_vectors (note, model, vector) ");
        insert.push_values(&vectors, |mut columns, (key, vector)| {
            columns
                .push_bind(*key)
                .push_bind(model)
                .push_bind(vector.as_deref().map(to_blob));
        });
        insert.push(" ON CONFLICT (note) DO UPDATE SET model = excluded.model, vector = excluded.vector");
        insert
            .build()
            .persistent(false)
            .execute(&mut *connection)
            .await
            .map_err(failed("keeping vectors of notes"))?;
        people::begin(connection, &self.user, 0, 0).await?;
        Ok(vectors.len() as u64)
    }
}

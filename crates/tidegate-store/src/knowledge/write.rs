//! Statements that several writes have in common. Each runs in the writer's transaction.

use std::collections::HashMap;

use sqlx::{QueryBuilder, Row as _, SqliteConnection};
use tidegate_core::{
    error::StoreError,
    port::{ChunkKey, NewChunk},
};

use super::{vectors, words};
use crate::{error::failed, row};

/// Versions whose changes are remembered for other processes; whoever was away for longer reads everything anew.
pub(super) const VERSIONS_KEPT: i64 = 2_000;

/// Chunks that one transaction indexes or takes out of the index: some milliseconds, so that a request's own short
/// writes hardly wait.
pub(super) const CHUNKS_MAX: usize = 32;

/// Begins a new version.
pub(super) async fn new_version(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let version: i64 = sqlx::query_scalar("UPDATE kb_state SET version = version + 1 RETURNING version")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed("counting a change of documents"))?;
    sqlx::query("DELETE FROM kb_changes WHERE version <= $1")
        .bind(version - VERSIONS_KEPT)
        .execute(connection)
        .await
        .map_err(failed("forgetting old changes of documents"))?;
    Ok(version)
}

/// Remembers which chunks a version touched.
pub(super) async fn note(
    connection: &mut SqliteConnection,
    version: i64,
    keys: &[ChunkKey],
) -> Result<(), StoreError> {
    sqlx::query("INSERT OR IGNORE INTO kb_changes (version, key) SELECT $1, value FROM json_each($2)")
        .bind(version)
        .bind(row::json(&keys))
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed("noting changes of documents"))
}

/// The number of a model, given to it if need be.
pub(super) async fn model_id(connection: &mut SqliteConnection, model: &str) -> Result<i64, StoreError> {
    let known: Option<i64> = sqlx::query_scalar("SELECT id FROM kb_models WHERE name = $1 AND retired = 0")
        .bind(model.to_owned())
        .fetch_optional(&mut *connection)
        .await
        .map_err(failed("reading an embedding model"))?;
    if let Some(known) = known {
        return Ok(known);
    }
    sqlx::query_scalar("INSERT INTO kb_models (name) VALUES ($1) RETURNING id")
        .bind(model.to_owned())
        .fetch_one(connection)
        .await
        .map_err(failed("adding an embedding model"))
}

/// Where a chunk belongs that is being added.
#[derive(Clone, Copy)]
pub(super) enum Home {
    /// In the document of that number.
    Document(i64),
    /// Nowhere yet; it may be removed after that many microseconds since 1970.
    Nowhere(i64),
}

/// A chunk and its ordinal.
pub(super) type Numbered<'c> = (usize, &'c NewChunk);

/// Adds chunks with their words; the keys are in their order.
pub(super) async fn insert_chunks(
    connection: &mut SqliteConnection,
    home: Home,
    title: &str,
    chunks: &[Numbered<'_>],
) -> Result<Vec<ChunkKey>, StoreError> {
    let mut keys = Vec::with_capacity(chunks.len());
    for part in chunks.chunks(CHUNKS_MAX) {
        let (document, expires_at) = match home {
            Home::Document(id) => (Some(id), None),
            Home::Nowhere(expires_at) => (None, Some(expires_at)),
        };
        let mut insert = QueryBuilder::<sqlx::Sqlite>::new(
            "INSERT INTO kb_chunks (document, expires_at, ordinal, citation, sha256, place, text, heading, words) ",
        );
        insert.push_values(part, |mut columns, (ordinal, chunk)| {
            let words = words::spaced(&chunk.text);
            columns
                .push_bind(document)
                .push_bind(expires_at)
                .push_bind(row::count(*ordinal as u64))
                .push_bind(chunk.citation.as_str().to_owned())
                .push_bind(chunk.sha256.to_vec())
                .push_bind(row::json(&chunk.place))
                .push_bind(chunk.text.clone())
                .push_bind(heading(title, chunk))
                .push_bind(match words {
                    std::borrow::Cow::Borrowed(_) => None,
                    std::borrow::Cow::Owned(words) => Some(words),
                });
        });
        insert.push(" RETURNING key, ordinal");
        let rows = insert
            .build()
            .persistent(false)
            .fetch_all(&mut *connection)
            .await
            .map_err(failed("adding chunks"))?;
        // The order of what is returned is not promised.
        let by_ordinal: HashMap<i64, ChunkKey> = rows
            .iter()
            .map(|row| Ok((row.try_get("ordinal")?, row.try_get("key")?)))
            .collect::<Result<_, sqlx::Error>>()
            .map_err(failed("reading new chunks"))?;
        keys.extend(
            part.iter()
                .filter_map(|(ordinal, _)| by_ordinal.get(&row::count(*ordinal as u64))),
        );
    }
    index_words(connection, &keys).await?;
    Ok(keys)
}

/// What the index holds as a chunk's heading.
pub(super) fn heading(title: &str, chunk: &NewChunk) -> String {
    let mut heading = String::new();
    if !chunk.place.headings.iter().any(|above| above == title) {
        heading.push_str(title);
    }
    for above in &chunk.place.headings {
        heading.push('\n');
        heading.push_str(above);
    }
    words::spaced(&heading).into_owned()
}

pub(super) async fn index_words(
    connection: &mut SqliteConnection,
    keys: &[ChunkKey],
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO kb_words (rowid, heading, text) SELECT key, heading, coalesce(words, text) FROM kb_chunks \
         WHERE key IN (SELECT value FROM json_each($1))",
    )
    .bind(row::json(&keys))
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("indexing words"))
}

/// Takes words out of the index; the rows of the chunks must still be as they were.
pub(super) async fn remove_words(
    connection: &mut SqliteConnection,
    keys: &[ChunkKey],
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO kb_words (kb_words, rowid, heading, text) \
         SELECT 'delete', key, heading, coalesce(words, text) FROM kb_chunks \
         WHERE key IN (SELECT value FROM json_each($1))",
    )
    .bind(row::json(&keys))
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("removing words from the index"))
}

/// Removes chunks with their words and vectors.
pub(super) async fn delete_chunks(
    connection: &mut SqliteConnection,
    keys: &[ChunkKey],
) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    remove_words(connection, keys).await?;
    for sql in [
        "DELETE FROM kb_vectors WHERE id IN \
         (SELECT (models.id << 40) | wanted.value FROM kb_models AS models, json_each($1) AS wanted)",
        "DELETE FROM kb_chunks WHERE key IN (SELECT value FROM json_each($1))",
    ] {
        sqlx::query(sql)
            .bind(row::json(&keys))
            .execute(&mut *connection)
            .await
            .map_err(failed("removing chunks"))?;
    }
    Ok(())
}

/// Takes chunks out of sight: at once where they are few, else for the sweeper to remove.
pub(super) async fn take_out(
    connection: &mut SqliteConnection,
    keys: &[ChunkKey],
    now: i64,
) -> Result<(), StoreError> {
    if keys.len() <= CHUNKS_MAX {
        return delete_chunks(connection, keys).await;
    }
    sqlx::query(
        "UPDATE kb_chunks SET document = NULL, expires_at = $2 WHERE key IN (SELECT value FROM json_each($1))",
    )
    .bind(row::json(&keys))
    .bind(now)
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("taking chunks out of sight"))
}

/// Keeps answers of a model. Where there is one already, `replacing` says which stays. Gives the keys whose answer
/// is new.
pub(super) async fn insert_vectors(
    connection: &mut SqliteConnection,
    model: &str,
    answers: &[(ChunkKey, Option<&[f32]>)],
    replacing: bool,
) -> Result<Vec<ChunkKey>, StoreError> {
    if answers.is_empty() {
        return Ok(Vec::new());
    }
    let number = model_id(connection, model).await?;
    let mut lengths = answers.iter().filter_map(|(_, vector)| vector.map(<[f32]>::len));
    if let Some(length) = lengths.next() {
        let other = lengths.find(|other| *other != length);
        check_dimension(connection, model, number, length).await?;
        if let Some(other) = other {
            check_dimension(connection, model, number, other).await?;
        }
    }
    let mut kept = Vec::with_capacity(answers.len());
    for part in answers.chunks(CHUNKS_MAX) {
        let mut insert = QueryBuilder::<sqlx::Sqlite>::new("INSERT INTO kb_vectors (id, vector) ");
        insert.push_values(part, |mut columns, (key, vector)| {
            columns
                .push_bind(vectors::slot(number, *key))
                .push_bind(vector.map(vectors::to_blob));
        });
        insert.push(if replacing {
            " ON CONFLICT (id) DO UPDATE SET vector = excluded.vector RETURNING id"
        } else {
            " ON CONFLICT (id) DO NOTHING RETURNING id"
        });
        let ids: Vec<i64> = insert
            .build_query_scalar()
            .persistent(false)
            .fetch_all(&mut *connection)
            .await
            .map_err(failed("keeping vectors"))?;
        kept.extend(ids.into_iter().map(|id| id - vectors::slot(number, 0)));
    }
    Ok(kept)
}

/// Vectors of a model all have as many numbers as the first.
async fn check_dimension(
    connection: &mut SqliteConnection,
    model: &str,
    number: i64,
    length: usize,
) -> Result<(), StoreError> {
    let dimension: i64 = sqlx::query_scalar(
        "UPDATE kb_models SET dimension = coalesce(dimension, $2) WHERE id = $1 RETURNING dimension",
    )
    .bind(number)
    .bind(row::count(length as u64))
    .fetch_one(connection)
    .await
    .map_err(failed("reading an embedding model"))?;
    if row::uncount(dimension) == length as u64 {
        Ok(())
    } else {
        let text = format!(
            "the embedding model `{model}` gave a vector of {length} numbers where it gave {dimension} before; \
             give the changed model another id"
        );
        Err(StoreError::Internal(text))
    }
}

//! Putting a document in the place of its earlier self.
//!
//! What is shown changes in one transaction. Where that would hold up everybody else, because there are many new
//! chunks, most of them are added ahead of it in transactions of their own, as chunks without a document; the last
//! transaction then takes them in. A process that ends in between leaves chunks that nobody sees and that are
//! removed later.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use async_trait::async_trait;
use rusqlite::params;
use sqlx::{Row as _, SqliteConnection};
use tidegate_core::{
    error::StoreError,
    port::{ChunkChanges, ChunkKey, NewChunk, NewDocument},
};

use super::{
    read, vectors,
    write::{self, CHUNKS_MAX, Home, Numbered},
};
use crate::{error::failed, row, store::Store, writer::Command};

/// After how long whoever finds a chunk that was added ahead may take it for forgotten. Far longer than putting a
/// document takes.
const AHEAD_MICROS: i64 = 3_600_000_000;

/// Vectors that are read at once.
const READ_MAX: usize = 1_024;

/// Equal chunks that are asked for a vector: a document may hold the same passage thousands of times.
const EQUALS_MAX: i64 = 64;

const UPSERT: &str = "INSERT INTO kb_documents (path, bytes, modified_ns, sha256, recipe, title, format, authority, \
     indexed_at, chunks, failure_code, failure_reason, failure_hint, generation) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1) \
     ON CONFLICT (path) DO UPDATE SET bytes = excluded.bytes, modified_ns = excluded.modified_ns, \
     sha256 = excluded.sha256, recipe = excluded.recipe, title = excluded.title, format = excluded.format, \
     authority = excluded.authority, indexed_at = excluded.indexed_at, chunks = excluded.chunks, \
     failure_code = excluded.failure_code, failure_reason = excluded.failure_reason, \
     failure_hint = excluded.failure_hint, generation = generation + 1 RETURNING id";

impl Store {
    /// Puts a document, large ones in steps.
    pub(super) async fn put_document(
        &self,
        document: NewDocument,
        model: &str,
    ) -> Result<ChunkChanges, StoreError> {
        let (document, model) = (Arc::new(document), Arc::<str>::from(model));
        let ahead = self.ahead(&document).await?;
        let mut staged = HashMap::with_capacity(ahead.len());
        for ordinals in ahead.chunks(CHUNKS_MAX) {
            let keys = self
                .writer()
                .run(Stage {
                    document: Arc::clone(&document),
                    model: Arc::clone(&model),
                    ordinals: ordinals.to_vec(),
                    expires_at: self.now().saturating_add(AHEAD_MICROS),
                })
                .await?;
            staged.extend(ordinals.iter().copied().zip(keys));
        }
        let now = self.now();
        let show = Show {
            document,
            model: Arc::clone(&model),
            staged,
            now,
        };
        let Shown {
            added,
            removed,
            version,
        } = self.writer().run(show).await?;
        let added = self.answered(&model, added).await?;
        self.sweep().await?;
        Ok(ChunkChanges {
            added,
            removed,
            version,
        })
    }

    /// The keys with their vectors. Those of a large document take a while to read, which is no reason to keep others
    /// from writing; what changes meanwhile is a change of its own.
    async fn answered(
        &self,
        model: &Arc<str>,
        keys: Vec<ChunkKey>,
    ) -> Result<Vec<(ChunkKey, Option<Vec<f32>>)>, StoreError> {
        let mut answered = Vec::with_capacity(keys.len());
        for part in keys.chunks(READ_MAX) {
            let (model, part) = (Arc::clone(model), part.to_vec());
            let vectors = self.read("reading vectors", move |db| vectors::of_each(db, &model, &part));
            answered.extend(vectors.await?);
        }
        Ok(answered)
    }

    pub(super) fn now(&self) -> i64 {
        row::micros(self.clock().now())
    }

    /// The ordinals of the chunks that are better added ahead: all new ones but as many as the last transaction
    /// can take.
    async fn ahead(&self, document: &NewDocument) -> Result<Vec<usize>, StoreError> {
        let chunks = document.content.as_deref().unwrap_or_default();
        if chunks.len() <= CHUNKS_MAX {
            return Ok(Vec::new());
        }
        let path = document.file.path.clone();
        let known: HashSet<(String, [u8; 32])> = self
            .read("comparing chunks", move |connection| {
                connection
                    .prepare_cached(
                        "SELECT citation, chunks.sha256 FROM kb_chunks AS chunks \
                         JOIN kb_documents AS documents ON documents.id = chunks.document WHERE path = ?1",
                    )?
                    .query_map(params![path], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect()
            })
            .await?;
        let mut new: Vec<usize> = chunks
            .iter()
            .enumerate()
            .filter(|(_, chunk)| !known.contains(&(chunk.citation.as_str().to_owned(), chunk.sha256)))
            .map(|(ordinal, _)| ordinal)
            .collect();
        new.truncate(new.len().saturating_sub(CHUNKS_MAX));
        Ok(new)
    }
}

/// Adds chunks that nobody sees yet.
struct Stage {
    document: Arc<NewDocument>,
    model: Arc<str>,
    ordinals: Vec<usize>,
    expires_at: i64,
}

#[async_trait]
impl Command for Stage {
    type Output = Vec<ChunkKey>;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Vec<ChunkKey>, StoreError> {
        let chunks = self.document.content.as_deref().unwrap_or_default();
        let wanted: Vec<Numbered<'_>> = self
            .ordinals
            .iter()
            .filter_map(|ordinal| Some((*ordinal, chunks.get(*ordinal)?)))
            .collect();
        let home = Home::Nowhere(self.expires_at);
        let keys = write::insert_chunks(connection, home, &self.document.title, &wanted).await?;
        let answers = answers(wanted.iter().map(|(_, chunk)| *chunk).zip(keys.iter().copied()));
        write::insert_vectors(connection, &self.model, &answers, false).await?;
        copy_vectors(connection, &keys).await?;
        Ok(keys)
    }
}

/// The answers that chunks bring with them.
fn answers<'c>(chunks: impl Iterator<Item = (&'c NewChunk, ChunkKey)>) -> Vec<(ChunkKey, Option<&'c [f32]>)> {
    chunks
        .filter_map(|(chunk, key)| Some((key, chunk.vector.as_ref()?.as_deref())))
        .collect()
}

/// Shows a document in place of its earlier self.
struct Show {
    document: Arc<NewDocument>,
    model: Arc<str>,
    staged: HashMap<usize, ChunkKey>,
    now: i64,
}

/// What became of the chunks that are to be known.
struct Shown {
    added: Vec<ChunkKey>,
    removed: Vec<ChunkKey>,
    version: u64,
}

/// A chunk of the earlier self.
struct Earlier {
    key: ChunkKey,
    ordinal: i64,
    place: String,
    heading: String,
}

/// What becomes of the chunks.
#[derive(Default)]
struct Plan<'d> {
    /// Each chunk that is not new, and its key.
    kept: Vec<(&'d NewChunk, ChunkKey)>,
    /// Kept ones that stand elsewhere now: key, ordinal, place.
    moved: Vec<(ChunkKey, i64, String)>,
    /// Kept ones with another heading: key, heading.
    reheaded: Vec<(ChunkKey, String)>,
    /// Those that were added ahead.
    adopted: Vec<(&'d NewChunk, ChunkKey)>,
    /// Those that are still to be added.
    fresh: Vec<Numbered<'d>>,
    /// Those of the earlier self that are gone.
    gone: Vec<ChunkKey>,
}

#[async_trait]
impl Command for Show {
    type Output = Shown;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Shown, StoreError> {
        let version = write::new_version(connection).await?;
        let id = self.upsert(connection).await?;
        let plan = self.plan(earlier(connection, id).await?);
        adopt(connection, id, &plan.adopted).await?;
        move_chunks(connection, &plan.moved).await?;
        rehead(connection, &plan.reheaded).await?;
        let title = &self.document.title;
        let fresh = write::insert_chunks(connection, Home::Document(id), title, &plan.fresh).await?;

        // Those that were added ahead have what there is for them.
        let new = plan
            .fresh
            .iter()
            .map(|(_, chunk)| *chunk)
            .zip(fresh.iter().copied());
        let answers = answers(plan.kept.iter().copied().chain(new));
        let answered = write::insert_vectors(connection, &self.model, &answers, false).await?;
        copy_vectors(connection, &fresh).await?;
        let mut added: Vec<ChunkKey> = plan.adopted.iter().map(|(_, key)| *key).chain(fresh).collect();
        // Only now: the chunks that go may have had vectors for those that come.
        write::take_out(connection, &plan.gone, self.now).await?;

        let kept: HashSet<ChunkKey> = plan.kept.iter().map(|(_, key)| *key).collect();
        added.extend(answered.into_iter().filter(|key| kept.contains(key)));
        write::note(connection, version, &[added.as_slice(), &plan.gone].concat()).await?;
        Ok(Shown {
            added,
            removed: plan.gone,
            version: row::uncount(version),
        })
    }
}

impl Show {
    async fn upsert(&self, connection: &mut SqliteConnection) -> Result<i64, StoreError> {
        let NewDocument {
            file,
            title,
            format,
            authority,
            at,
            content,
        } = self.document.as_ref();
        let failure = content.as_ref().err();
        sqlx::query_scalar(UPSERT)
            .bind(file.path.clone())
            .bind(row::count(file.mark.bytes))
            .bind(file.mark.modified_ns)
            .bind(file.mark.sha256.to_vec())
            .bind(file.recipe.clone())
            .bind(title.clone())
            .bind(format.name())
            .bind(read::rank(*authority))
            .bind(row::micros(*at))
            .bind(row::count(content.as_ref().map_or(0, Vec::len) as u64))
            .bind(failure.map(|failure| failure.code.clone()))
            .bind(failure.map(|failure| failure.reason.clone()))
            .bind(failure.map(|failure| failure.hint.clone()))
            .fetch_one(connection)
            .await
            .map_err(failed("putting a document"))
    }

    fn plan(&self, earlier: Vec<(String, Vec<u8>, Earlier)>) -> Plan<'_> {
        let mut plan = Plan::default();
        let mut left = HashMap::with_capacity(earlier.len());
        for (citation, sha256, chunk) in earlier {
            if let Some(twin) = left.insert((citation, sha256), chunk) {
                plan.gone.push(twin.key);
            }
        }
        for (ordinal, chunk) in self
            .document
            .content
            .as_deref()
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let same = (chunk.citation.as_str().to_owned(), chunk.sha256.to_vec());
            if let Some(old) = left.remove(&same) {
                plan.keep(&self.document.title, ordinal, chunk, &old);
            } else if let Some(key) = self.staged.get(&ordinal) {
                plan.adopted.push((chunk, *key));
            } else {
                plan.fresh.push((ordinal, chunk));
            }
        }
        plan.gone.extend(left.into_values().map(|chunk| chunk.key));
        plan.gone.sort_unstable();
        plan
    }
}

impl<'d> Plan<'d> {
    fn keep(&mut self, title: &str, ordinal: usize, chunk: &'d NewChunk, old: &Earlier) {
        self.kept.push((chunk, old.key));
        let (ordinal, place) = (row::count(ordinal as u64), row::json(&chunk.place));
        if (ordinal, &place) != (old.ordinal, &old.place) {
            self.moved.push((old.key, ordinal, place));
        }
        let heading = write::heading(title, chunk);
        if heading != old.heading {
            self.reheaded.push((old.key, heading));
        }
    }
}

async fn earlier(
    connection: &mut SqliteConnection,
    document: i64,
) -> Result<Vec<(String, Vec<u8>, Earlier)>, StoreError> {
    sqlx::query("SELECT key, citation, sha256, ordinal, place, heading FROM kb_chunks WHERE document = $1")
        .bind(document)
        .fetch_all(connection)
        .await
        .and_then(|rows| {
            rows.iter()
                .map(|row| {
                    let chunk = Earlier {
                        key: row.try_get("key")?,
                        ordinal: row.try_get("ordinal")?,
                        place: row.try_get("place")?,
                        heading: row.try_get("heading")?,
                    };
                    Ok((row.try_get("citation")?, row.try_get("sha256")?, chunk))
                })
                .collect()
        })
        .map_err(failed("reading a document's chunks"))
}

async fn adopt(
    connection: &mut SqliteConnection,
    document: i64,
    chunks: &[(&NewChunk, ChunkKey)],
) -> Result<(), StoreError> {
    if chunks.is_empty() {
        return Ok(());
    }
    let keys: Vec<ChunkKey> = chunks.iter().map(|(_, key)| *key).collect();
    let done = sqlx::query(
        "UPDATE kb_chunks SET document = $1, expires_at = NULL \
         WHERE document IS NULL AND key IN (SELECT value FROM json_each($2))",
    )
    .bind(document)
    .bind(row::json(&keys))
    .execute(connection)
    .await
    .map_err(failed("taking chunks into a document"))?;
    if done.rows_affected() == keys.len() as u64 {
        Ok(())
    } else {
        let text =
            "a document's chunks were tidied away before it was complete; it is put again at the next scan";
        Err(StoreError::Internal(text.to_owned()))
    }
}

async fn move_chunks(
    connection: &mut SqliteConnection,
    moved: &[(ChunkKey, i64, String)],
) -> Result<(), StoreError> {
    if moved.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "UPDATE kb_chunks SET ordinal = moved.ordinal, place = moved.place \
         FROM (SELECT value ->> 0 AS key, value ->> 1 AS ordinal, value ->> 2 AS place FROM json_each($1)) AS moved \
         WHERE kb_chunks.key = moved.key",
    )
    .bind(row::json(&moved))
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("moving chunks"))
}

async fn rehead(
    connection: &mut SqliteConnection,
    reheaded: &[(ChunkKey, String)],
) -> Result<(), StoreError> {
    if reheaded.is_empty() {
        return Ok(());
    }
    let keys: Vec<ChunkKey> = reheaded.iter().map(|(key, _)| *key).collect();
    write::remove_words(connection, &keys).await?;
    for (key, heading) in reheaded {
        sqlx::query("UPDATE kb_chunks SET heading = $2 WHERE key = $1")
            .bind(*key)
            .bind(heading.clone())
            .execute(&mut *connection)
            .await
            .map_err(failed("changing a chunk's heading"))?;
    }
    write::index_words(connection, &keys).await
}

/// Gives new chunks the vectors that equal ones have, of every model. A hash is looked up once however many of the
/// chunks have it, and among so many equal ones only; where none of those has a vector, it is made later.
async fn copy_vectors(connection: &mut SqliteConnection, keys: &[ChunkKey]) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "WITH new AS MATERIALIZED (SELECT chunks.key, chunks.sha256 FROM json_each($1) AS wanted \
         JOIN kb_chunks AS chunks ON chunks.key = wanted.value), \
         known AS MATERIALIZED (SELECT models.id AS model, hashes.sha256 AS sha256, \
         (SELECT vectors.id FROM (SELECT key FROM kb_chunks WHERE sha256 = hashes.sha256 LIMIT $2) AS equal \
         CROSS JOIN kb_vectors AS vectors ON vectors.id = (models.id << 40) | equal.key LIMIT 1) AS id \
         FROM (SELECT DISTINCT sha256 FROM new) AS hashes JOIN kb_models AS models ON models.retired = 0 AND models.answers > 0) \
         INSERT OR IGNORE INTO kb_vectors (id, vector) SELECT (known.model << 40) | new.key, vectors.vector \
         FROM known JOIN kb_vectors AS vectors ON vectors.id = known.id JOIN new ON new.sha256 = known.sha256",
    )
    .bind(row::json(&keys))
    .bind(EQUALS_MAX)
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("copying vectors of equal chunks"))
}

#[cfg(test)]
mod tests;

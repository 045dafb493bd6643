//! Every other write: removing, renaming, marking, vectors on their own, and tidying up.

use std::collections::HashMap;

use async_trait::async_trait;
use sqlx::{Row as _, SqliteConnection};
use tidegate_core::{
    error::StoreError,
    knowledge::CitationId,
    port::{ChunkChanges, ChunkKey, KnownFile},
};

use super::{vectors, write};
use crate::{error::failed, row, store::Store, writer::Command};

/// Documents that one transaction removes.
const DOCUMENTS_MAX: usize = 64;

/// Vectors that one transaction keeps.
const VECTORS_MAX: usize = 128;

/// Chunks that nobody sees that one transaction removes. Taking a word that stands in thousands of chunks out of the
/// index takes far longer than putting it in.
const SWEPT_MAX: i64 = 8;

/// Vectors of a retired model that one transaction removes.
const RETIRED_MAX: i64 = 256;

/// Of several changes, one after the other, what they come to.
fn join(all: &mut ChunkChanges, next: ChunkChanges) {
    all.added.extend(next.added);
    all.removed.extend(next.removed);
    all.version = next.version;
}

impl Store {
    pub(super) async fn remove_documents(&self, paths: Vec<String>) -> Result<ChunkChanges, StoreError> {
        let mut changes = ChunkChanges {
            version: self.kb_version().await?,
            ..ChunkChanges::default()
        };
        for paths in paths.chunks(DOCUMENTS_MAX) {
            let removal = Remove {
                paths: paths.to_vec(),
                now: self.now(),
            };
            join(&mut changes, self.writer().run(removal).await?);
        }
        self.sweep().await?;
        self.note_erased();
        Ok(changes)
    }

    pub(super) async fn rename_document(
        &self,
        from: &str,
        to: &str,
        citations: Vec<CitationId>,
    ) -> Result<ChunkChanges, StoreError> {
        let changes = self
            .writer()
            .run(Rename {
                from: from.to_owned(),
                to: to.to_owned(),
                citations,
                now: self.now(),
            })
            .await?;
        self.sweep().await?;
        Ok(changes)
    }

    pub(super) async fn mark_file(&self, file: KnownFile) -> Result<(), StoreError> {
        self.writer().run(Mark { file }).await
    }

    pub(super) async fn keep_vectors(
        &self,
        model: &str,
        vectors: Vec<(ChunkKey, Option<Vec<f32>>)>,
    ) -> Result<ChunkChanges, StoreError> {
        let mut changes = ChunkChanges {
            version: self.kb_version().await?,
            ..ChunkChanges::default()
        };
        let mut left = vectors;
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(VECTORS_MAX));
            let keeping = PutVectors {
                model: model.to_owned(),
                vectors: left,
            };
            join(&mut changes, self.writer().run(keeping).await?);
            left = rest;
        }
        Ok(changes)
    }

    pub(super) async fn serve_model(&self, model: &str) -> Result<(), StoreError> {
        self.writer()
            .run(Serve {
                model: model.to_owned(),
            })
            .await?;
        self.sweep().await
    }

    /// Removes what nobody sees any more, a little at a time, so that others can write in between.
    pub(super) async fn sweep(&self) -> Result<(), StoreError> {
        let now = self.now();
        loop {
            let any = self
                .read("looking for what is to be tidied up", move |connection| {
                    connection
                        .prepare_cached(
                            "SELECT EXISTS (SELECT 1 FROM kb_chunks WHERE document IS NULL AND expires_at <= ?1) \
                             OR EXISTS (SELECT 1 FROM kb_models WHERE retired = 1)",
                        )?
                        .query_row([now], |row| row.get::<_, bool>(0))
                })
                .await?;
            if !any {
                return Ok(());
            }
            self.writer().run(Sweep { now }).await?;
        }
    }
}

struct Remove {
    paths: Vec<String>,
    now: i64,
}

#[async_trait]
impl Command for Remove {
    type Output = ChunkChanges;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<ChunkChanges, StoreError> {
        let version = write::new_version(connection).await?;
        let removed = remove(connection, &self.paths, self.now).await?;
        write::note(connection, version, &removed).await?;
        Ok(ChunkChanges {
            added: Vec::new(),
            removed,
            version: row::uncount(version),
        })
    }
}

async fn remove(
    connection: &mut SqliteConnection,
    paths: &[String],
    now: i64,
) -> Result<Vec<ChunkKey>, StoreError> {
    let keys: Vec<ChunkKey> = sqlx::query_scalar(
        "SELECT chunks.key FROM json_each($1) AS wanted JOIN kb_documents AS documents ON documents.path = wanted.value \
         JOIN kb_chunks AS chunks ON chunks.document = documents.id ORDER BY chunks.key",
    )
    .bind(row::json(&paths))
    .fetch_all(&mut *connection)
    .await
    .map_err(failed("reading chunks to remove"))?;
    write::take_out(connection, &keys, now).await?;
    sqlx::query("DELETE FROM kb_documents WHERE path IN (SELECT value FROM json_each($1))")
        .bind(row::json(&paths))
        .execute(connection)
        .await
        .map_err(failed("removing documents"))?;
    Ok(keys)
}

struct Rename {
    from: String,
    to: String,
    citations: Vec<CitationId>,
    now: i64,
}

#[async_trait]
impl Command for Rename {
    type Output = ChunkChanges;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<ChunkChanges, StoreError> {
        let version = write::new_version(connection).await?;
        let mut changes = ChunkChanges {
            version: row::uncount(version),
            ..ChunkChanges::default()
        };
        let id: Option<i64> = sqlx::query_scalar("SELECT id FROM kb_documents WHERE path = $1")
            .bind(self.from.clone())
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed("reading a document"))?;
        let Some(id) = id.filter(|_| self.from != self.to) else {
            return Ok(changes);
        };
        changes.removed = remove(connection, std::slice::from_ref(&self.to), self.now).await?;
        write::note(connection, version, &changes.removed).await?;
        sqlx::query("UPDATE kb_documents SET path = $2 WHERE id = $1")
            .bind(id)
            .bind(self.to.clone())
            .execute(&mut *connection)
            .await
            .map_err(failed("renaming a document"))?;
        sqlx::query(
            "UPDATE kb_chunks SET citation = cited.value FROM json_each($2) AS cited \
             WHERE kb_chunks.document = $1 AND kb_chunks.ordinal = cited.key",
        )
        .bind(id)
        .bind(row::json(&self.citations))
        .execute(connection)
        .await
        .map_err(failed("renaming citations"))?;
        Ok(changes)
    }
}

struct Mark {
    file: KnownFile,
}

#[async_trait]
impl Command for Mark {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let KnownFile {
            path,
            mark,
            recipe,
            failed: _,
        } = &self.file;
        sqlx::query(
            "UPDATE kb_documents SET bytes = $2, modified_ns = $3, sha256 = $4, recipe = $5 WHERE path = $1",
        )
        .bind(path.clone())
        .bind(row::count(mark.bytes))
        .bind(mark.modified_ns)
        .bind(mark.sha256.to_vec())
        .bind(recipe.clone())
        .execute(connection)
        .await
        .map(drop)
        .map_err(failed("marking a file"))
    }
}

struct PutVectors {
    model: String,
    vectors: Vec<(ChunkKey, Option<Vec<f32>>)>,
}

#[async_trait]
impl Command for PutVectors {
    type Output = ChunkChanges;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<ChunkChanges, StoreError> {
        let version = write::new_version(connection).await?;
        let wanted: Vec<ChunkKey> = self.vectors.iter().map(|(key, _)| *key).collect();
        let there: Vec<ChunkKey> = sqlx::query_scalar(
            "SELECT key FROM kb_chunks WHERE document IS NOT NULL AND key IN (SELECT value FROM json_each($1))",
        )
        .bind(row::json(&wanted))
        .fetch_all(&mut *connection)
        .await
        .map_err(failed("looking for chunks"))?;
        let there: std::collections::HashSet<ChunkKey> = there.into_iter().collect();
        let answers: Vec<(ChunkKey, Option<&[f32]>)> = self
            .vectors
            .iter()
            .filter(|(key, _)| there.contains(key))
            .map(|(key, vector)| (*key, vector.as_deref()))
            .collect();
        let mut kept = write::insert_vectors(connection, &self.model, &answers, true).await?;
        kept.sort_unstable();
        write::note(connection, version, &kept).await?;
        Ok(ChunkChanges {
            added: with_vectors(connection, &self.model, kept).await?,
            removed: Vec::new(),
            version: row::uncount(version),
        })
    }
}

/// The keys with their vectors, as they stand in this transaction.
async fn with_vectors(
    connection: &mut SqliteConnection,
    model: &str,
    keys: Vec<ChunkKey>,
) -> Result<Vec<(ChunkKey, Option<Vec<f32>>)>, StoreError> {
    let rows = sqlx::query(
        "SELECT wanted.value AS key, vectors.vector AS vector FROM json_each($1) AS wanted \
         JOIN kb_models AS models ON models.name = $2 AND models.retired = 0 \
         JOIN kb_vectors AS vectors ON vectors.id = (models.id << 40) | wanted.value \
         WHERE vectors.vector IS NOT NULL",
    )
    .bind(row::json(&keys))
    .bind(model.to_owned())
    .fetch_all(connection)
    .await
    .map_err(failed("reading vectors"))?;
    let mut known: HashMap<ChunkKey, Vec<f32>> = rows
        .iter()
        .map(|row| {
            Ok((
                row.try_get("key")?,
                vectors::numbers(row.try_get("vector")?).collect(),
            ))
        })
        .collect::<Result<_, sqlx::Error>>()
        .map_err(failed("reading vectors"))?;
    Ok(keys.into_iter().map(|key| (key, known.remove(&key))).collect())
}

struct Serve {
    model: String,
}

#[async_trait]
impl Command for Serve {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let version = write::new_version(connection).await?;
        let id = write::model_id(connection, &self.model).await?;
        sqlx::query("UPDATE kb_state SET serving = $1, reset_version = $2")
            .bind(id)
            .bind(version)
            .execute(&mut *connection)
            .await
            .map_err(failed("changing the embedding model"))?;
        sqlx::query("UPDATE kb_models SET retired = 1 WHERE id <> $1")
            .bind(id)
            .execute(connection)
            .await
            .map(drop)
            .map_err(failed("retiring embedding models"))
    }
}

/// Removes some chunks that nobody sees, or some vectors of a retired model, or such a model.
struct Sweep {
    now: i64,
}

#[async_trait]
impl Command for Sweep {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        let keys: Vec<ChunkKey> = sqlx::query_scalar(
            "SELECT key FROM kb_chunks WHERE document IS NULL AND expires_at <= $1 LIMIT $2",
        )
        .bind(self.now)
        .bind(SWEPT_MAX)
        .fetch_all(&mut *connection)
        .await
        .map_err(failed("looking for chunks to tidy up"))?;
        if !keys.is_empty() {
            return write::delete_chunks(connection, &keys).await;
        }
        for sql in [
            "DELETE FROM kb_vectors WHERE id IN (SELECT id FROM kb_vectors WHERE \
             id >= (SELECT min(id) << 40 FROM kb_models WHERE retired = 1) AND \
             id < (SELECT (min(id) + 1) << 40 FROM kb_models WHERE retired = 1) LIMIT $1)",
            "DELETE FROM kb_models WHERE retired = 1 AND answers <= 0",
        ] {
            sqlx::query(sql)
                .bind(RETIRED_MAX)
                .execute(&mut *connection)
                .await
                .map_err(failed("removing vectors of a retired model"))?;
        }
        Ok(())
    }
}

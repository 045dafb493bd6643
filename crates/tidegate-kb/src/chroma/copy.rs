//! Moving from one place to the other, with everything counted.

use std::collections::{HashMap, HashSet};

use tidegate_core::port::{ChunkKey, StoredChunk};

use super::{Chroma, notes::Reached};
use crate::index::IndexError;

/// What a full copy came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The model whose vectors they are.
    pub model: String,
    /// Vectors in the database.
    pub kept: u64,
    /// Rows in the collection.
    pub rows: u64,
}

/// Vectors that came back from a collection, by their chunks' keys.
pub type Recovered = HashMap<ChunkKey, Vec<f32>>;

impl Chroma {
    /// Copies everything that is missing and counts both sides; `None` where no model serves yet.
    pub async fn copy(&self) -> Result<Option<Copied>, IndexError> {
        if !self.follow_serving(usize::MAX).await? {
            return Ok(None);
        }
        let Some(served) = self.served() else {
            return Ok(None);
        };
        let collection = self.settle(self.up())?;
        let rows = self.settle(collection.count().await)?;
        let kept = self.settle(self.vectors_kept(&served.model).await)?;
        Ok(Some(Copied {
            model: served.model,
            kept,
            rows,
        }))
    }

    /// How many rows of how many were copied, while that goes on.
    pub fn copied(&self) -> Option<(u64, u64)> {
        *super::lock(&self.filling)
    }

    /// The vectors of these chunks that the collection has, of this database and model and for the same text.
    pub async fn recover(&self, model: &str, chunks: &[StoredChunk]) -> Result<Recovered, IndexError> {
        let Some(collection) = self.server.find().await? else {
            return Ok(Recovered::new());
        };
        let identity = self.identity().await?;
        let is_same = Reached::from_notes(&collection.notes)
            .is_some_and(|reached| reached.store == identity && reached.model == model);
        if !is_same {
            return Ok(Recovered::new());
        }
        let texts: HashSet<(ChunkKey, &str)> = chunks
            .iter()
            .map(|chunk| (chunk.key, chunk.text.as_str()))
            .collect();
        let keys: Vec<ChunkKey> = chunks.iter().map(|chunk| chunk.key).collect();
        let dimensions = self.store.vectors(model, ChunkKey::MIN, 1).await?.values.len();
        let mut found = Recovered::new();
        for keys in keys.chunks(self.server.options().batch_rows) {
            for row in collection.rows(keys).await? {
                let is_whole = row.vector.iter().all(|number| number.is_finite())
                    && (dimensions == 0 || row.vector.len() == dimensions);
                if is_whole && texts.contains(&(row.key, row.text.as_str())) {
                    found.insert(row.key, row.vector);
                }
            }
        }
        Ok(found)
    }
}

//! The matrix over the database's vectors, kept in step with it by versions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use tidegate_core::port::{ChunkKey, ChunkStore};
use tokio::sync::Mutex as AsyncMutex;

use super::{Allowed, Matrix, View};
use crate::index::{self, IndexError, VectorIndex, Within, cosine};

/// Rows that are read from the database at once.
const PAGE_ROWS: usize = 4096;
/// From so many rows on a search leaves the threads that serve connections alone: it takes longer than they may stand
/// still.
const INLINE_ROWS_MAX: usize = 50_000;

/// The vectors of the database, searched in memory.
///
/// Memory: a byte a component and some 60 bytes a chunk, so 100,000 chunks of 384 components take 45 MB. Exact cosines
/// come from the rows of the database, for the few that are nearest.
#[derive(Debug)]
pub struct Embedded {
    store: Arc<dyn ChunkStore>,
    /// One at a time reads changes; searches go on with what is there.
    state: AsyncMutex<State>,
    matrix: Mutex<Matrix>,
}

/// What the matrix holds.
#[derive(Debug, Default, PartialEq, Eq)]
struct State {
    model: Option<String>,
    version: u64,
}

impl Embedded {
    /// An index over a store. It reads the vectors when it is first asked to follow.
    pub fn new(store: Arc<dyn ChunkStore>) -> Self {
        Self {
            store,
            state: AsyncMutex::default(),
            matrix: Mutex::default(),
        }
    }

    /// How many vectors are in memory.
    pub fn rows(&self) -> usize {
        self.with(|matrix| matrix.rows())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Matrix) -> T) -> T {
        // Nothing that is done under the lock can panic half way, and a row too many or too few does no harm.
        act(&mut self.matrix.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn load(&self, model: &str) -> Result<(), IndexError> {
        let mut matrix = Matrix::default();
        let mut after = ChunkKey::MIN;
        loop {
            let page = self.store.vectors(model, after, PAGE_ROWS).await?;
            let Some(last) = page.keys.last() else { break };
            after = *last;
            let dimensions = page.values.len() / page.keys.len();
            if matrix.rows() == 0 {
                matrix = Matrix::new(dimensions);
            }
            for (key, vector) in page.keys.iter().zip(page.values.chunks_exact(dimensions.max(1))) {
                if !matrix.put(*key, vector) {
                    tracing::warn!(
                        key,
                        dimensions,
                        "a vector of another length is left out of the index"
                    );
                }
            }
            if page.keys.len() < PAGE_ROWS {
                break;
            }
        }
        tracing::debug!(rows = matrix.rows(), model, "vectors were read into memory");
        self.with(|old| *old = matrix);
        Ok(())
    }

    fn apply(&self, changes: tidegate_core::port::ChunkChanges) {
        self.with(|matrix| {
            for key in changes.removed {
                matrix.remove(key);
            }
            for (key, vector) in changes.added {
                let Some(vector) = vector else {
                    matrix.remove(key);
                    continue;
                };
                if matrix.rows() == 0 && matrix.dimensions() != vector.len() {
                    *matrix = Matrix::new(vector.len());
                }
                if !matrix.put(key, &vector) {
                    tracing::warn!(
                        key,
                        dimensions = vector.len(),
                        "a vector of another length is left out"
                    );
                }
            }
        });
    }

    /// Puts exact cosines in the place of those by codes, and sorts.
    async fn rescore(&self, vector: &[f32], nearest: &mut [(ChunkKey, f32)]) -> Result<(), IndexError> {
        let keys: Vec<ChunkKey> = nearest.iter().map(|(key, _)| *key).collect();
        let exact = self.vectors(&keys).await?;
        for (key, score) in nearest.iter_mut() {
            if let Some(row) = exact.get(key) {
                *score = cosine(vector, row);
            }
        }
        nearest.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        Ok(())
    }
}

#[async_trait]
impl VectorIndex for Embedded {
    async fn follow(&self, model: &str, version: u64) -> Result<(), IndexError> {
        let mut state = self.state.lock().await;
        let same_model = state.model.as_deref() == Some(model);
        if same_model && state.version >= version {
            return Ok(());
        }
        let changes = if same_model {
            self.store.changes_since(model, state.version).await?
        } else {
            None
        };
        let reached = if let Some(changes) = changes {
            let reached = changes.version.max(version);
            self.apply(changes);
            reached
        } else {
            // Asked before reading, so that what is written meanwhile is read again and not missed.
            let reached = self.store.version().await?;
            self.load(model).await?;
            reached
        };
        *state = State {
            model: Some(model.to_owned()),
            version: reached,
        };
        Ok(())
    }

    async fn search(
        &self,
        vector: &[f32],
        count: usize,
        exact: usize,
        within: Option<Within<'_>>,
    ) -> Result<Vec<(ChunkKey, f32)>, IndexError> {
        let (view, allowed) =
            self.with(|matrix| (matrix.view(), within.map(|within| matrix.allowed(within.keys))));
        if view.rows() == 0 {
            return Ok(Vec::new());
        }
        if view.dimensions != vector.len() {
            return Err(IndexError::Dimensions {
                query: vector.len(),
                index: view.dimensions,
            });
        }
        let mut nearest = scan(view, vector, count.max(exact), allowed).await?;
        let exact = exact.min(nearest.len());
        if let Some(first) = nearest.get_mut(..exact) {
            self.rescore(vector, first).await?;
        }
        nearest.truncate(count);
        Ok(nearest)
    }

    async fn vectors(&self, keys: &[ChunkKey]) -> Result<HashMap<ChunkKey, Vec<f32>>, IndexError> {
        let model = self.state.lock().await.model.clone();
        let Some(model) = model else {
            return Ok(HashMap::new());
        };
        Ok(index::rows(&self.store.vectors_of(&model, keys).await?))
    }

    fn place(&self) -> &'static str {
        "embedded"
    }

    fn problem(&self) -> Option<String> {
        None
    }
}

async fn scan(
    view: View,
    vector: &[f32],
    count: usize,
    allowed: Option<Allowed>,
) -> Result<Vec<(ChunkKey, f32)>, IndexError> {
    if view.rows() <= INLINE_ROWS_MAX {
        return Ok(view.nearest(vector, count, allowed.as_ref()));
    }
    let vector = vector.to_vec();
    tokio::task::spawn_blocking(move || view.nearest(&vector, count, allowed.as_ref()))
        .await
        .map_err(|error| IndexError::Unavailable(format!("the search among vectors ended early: {error}")))
}

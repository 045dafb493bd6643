//! Where vectors are searched: in memory over rows of the database, or in a Chroma collection.

use std::collections::HashMap;

use async_trait::async_trait;
use tidegate_core::{
    error::StoreError,
    knowledge::Filter,
    port::{ChunkKey, VectorPage},
};

/// Why the vectors cannot be asked. Words still can.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IndexError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Whoever keeps the vectors does not answer, or not as it should; the text says what to do.
    #[error("{0}")]
    Unavailable(String),
    /// A vector has another length than those that are kept.
    #[error(
        "the query's vector has {query} dimensions and those of the index have {index}; index the documents anew"
    )]
    Dimensions {
        /// Of the query.
        query: usize,
        /// Of the index.
        index: usize,
    },
}

/// What a search among vectors is narrowed to.
#[derive(Debug, Clone, Copy)]
pub struct Within<'a> {
    /// Which documents were asked for.
    pub filter: &'a Filter,
    /// The chunks of those documents, in the order of their keys.
    pub keys: &'a [ChunkKey],
}

/// Finds the chunks whose vectors are nearest to a query's.
#[async_trait]
pub trait VectorIndex: Send + Sync + std::fmt::Debug {
    /// Brings the index up to what the store has now: `version` is the store's, `model` the one that serves. Cheap
    /// where nothing has changed, since it is called before every search.
    async fn follow(&self, model: &str, version: u64) -> Result<(), IndexError>;

    /// The `count` nearest chunks, nearest first, with their cosines (from -1 to 1). What is not `within` is left out
    /// before anything is compared. `exact` of them, the nearest ones, have the cosine of the full vectors, and there
    /// is none among the rest that belongs before them.
    async fn search(
        &self,
        vector: &[f32],
        count: usize,
        exact: usize,
        within: Option<Within<'_>>,
    ) -> Result<Vec<(ChunkKey, f32)>, IndexError>;

    /// The vectors of these chunks, of those that have one.
    async fn vectors(&self, keys: &[ChunkKey]) -> Result<HashMap<ChunkKey, Vec<f32>>, IndexError>;

    /// Where the vectors are, for status: `embedded` or `chroma`.
    fn place(&self) -> &'static str;

    /// What is wrong with it just now, in a sentence.
    fn problem(&self) -> Option<String>;
}

/// The vectors of a page by their keys.
pub(crate) fn rows(page: &VectorPage) -> HashMap<ChunkKey, Vec<f32>> {
    let Some(dimensions) = page
        .values
        .len()
        .checked_div(page.keys.len())
        .filter(|found| *found > 0)
    else {
        return HashMap::new();
    };
    let rows = page.values.chunks_exact(dimensions).map(<[f32]>::to_vec);
    page.keys.iter().copied().zip(rows).collect()
}

/// The cosine of two vectors of length 1, held in its range against rounding.
pub(crate) fn cosine(left: &[f32], right: &[f32]) -> f32 {
    /// As many sums side by side as let the compiler use wide registers.
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (left_blocks, left_rest) = left.as_chunks::<LANES>();
    let (right_blocks, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left_blocks.iter().zip(right_blocks) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    let rest: f32 = left_rest
        .iter()
        .zip(right_rest)
        .map(|(left, right)| left * right)
        .sum();
    (sums.iter().sum::<f32>() + rest).clamp(-1.0, 1.0)
}

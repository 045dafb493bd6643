//! Embeddings: texts as directions, so that nearness of meaning is an angle.
//!
//! A vector belongs to the model that made it. Its id stands beside every vector that is kept, vectors of two
//! models are never compared, and whatever was measured for a model ([`Calibration`]) goes with the id.

use crate::{clock::Timestamp, error::Fault};

/// What a text is embedded for. Some models want to be told, by a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// It will be looked for.
    Document,
    /// It looks for something.
    Query,
}

/// How the ranks of words and of vectors become one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fusion {
    /// The weighted sum of both scores, each spread over 0 to 1 by its own least and greatest value.
    Convex {
        /// The share of the vectors, from 0 to 1.
        vector_weight: f32,
    },
    /// The sum of 1/(k + rank) over both (reciprocal rank fusion, Cormack and others, 2009).
    ReciprocalRank {
        /// How little the first ranks stand out.
        k: u32,
    },
}

/// What was measured for one model. Nothing here carries over to another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// How its ranks are joined with those of the words.
    pub fusion: Fusion,
    /// The cosine from which two passages are about the same thing.
    pub pair_cosine_min: f32,
    /// The cosine below which a passage that shares no telling word with the query has nothing to do with it.
    pub relevant_cosine_min: f32,
    /// The score from which a question is about the agent itself; `None` where nobody has measured it, and then
    /// no tool is taken away on this model's word.
    pub routing_threshold: Option<f64>,
}

/// An embedding model, as far as its users must know it.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingModel {
    /// The id that is stored beside every vector. It names the provider's model and whatever changes the vectors.
    pub id: String,
    /// The longest text it reads whole, in its own tokens.
    pub tokens_max: usize,
    /// What was measured for it.
    pub calibration: Calibration,
}

/// Why there is no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// It did not answer in time, or at all, or with a failure of its own. It may later.
    #[error("the embedder does not answer: {0}")]
    Unavailable(String),
    /// It failed lately and is left alone until then.
    #[error("the embedder rests until {until} after a failure: {problem}")]
    Resting {
        /// Until when.
        until: Timestamp,
        /// What was wrong.
        problem: String,
    },
    /// It refuses what it was asked, and would again: no such model, a wrong key, a text beyond its limit.
    #[error("the embedder refuses: {0}")]
    Refused(String),
    /// It answered with something that is no list of vectors of one dimension, one for each text.
    #[error("the embedder's answer makes no sense: {0}")]
    Broken(String),
}

impl EmbedError {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unavailable(_) | Self::Resting { .. } | Self::Broken(_) => Fault::Upstream,
            Self::Refused(_) => Fault::Us,
        }
    }
}

/// How an embedder does just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedderState {
    /// Nothing was asked of it yet.
    Untried,
    /// The last thing asked was answered.
    Ready,
    /// It failed and is left alone until `until`; then one query tries again.
    Resting {
        /// Until when.
        until: Timestamp,
        /// What was wrong.
        problem: String,
    },
}

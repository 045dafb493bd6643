use async_trait::async_trait;

use crate::embedding::{EmbedError, EmbedderState, EmbeddingModel, Purpose};

/// Turns texts into vectors of length 1.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// The model behind it. Vectors of two ids are never compared.
    fn model(&self) -> &EmbeddingModel;

    /// The vectors of `texts`, one for each and in their order; `None` where a text holds nothing the model knows.
    /// Batches, limits on time and on calls at once are the adapter's. A text that is longer than the model reads
    /// is an error, never cut in silence.
    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError>;

    /// How many of the model's tokens a text has; where its tokenizer is not at hand, no fewer than it has.
    fn tokens(&self, text: &str) -> usize;

    /// How it does just now, without asking it.
    fn state(&self) -> EmbedderState;
}

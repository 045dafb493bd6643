//! No embedder at all: documents are cut by the built-in tokenizer and found by their words.

use async_trait::async_trait;
use tidegate_core::{
    embedding::{EmbedError, EmbedderState, EmbeddingModel, Purpose},
    port::Embedder,
};

use super::{Builtin, Error};

/// The id under which "no vector" stands in the store, so that a model that is configured later fills them in.
const MODEL: &str = "none";

/// It counts tokens and makes no vector.
#[derive(Debug)]
pub struct WordsOnly {
    tokenizer: Builtin,
    model: EmbeddingModel,
}

impl WordsOnly {
    /// Opens it.
    pub fn open() -> Result<Self, Error> {
        let tokenizer = Builtin::load()?;
        let model = EmbeddingModel {
            id: MODEL.to_owned(),
            ..tokenizer.model().clone()
        };
        Ok(Self { tokenizer, model })
    }
}

#[async_trait]
impl Embedder for WordsOnly {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], _purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        Ok(vec![None; texts.len()])
    }

    fn tokens(&self, text: &str) -> usize {
        Embedder::tokens(&self.tokenizer, text)
    }

    fn state(&self) -> EmbedderState {
        EmbedderState::Ready
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{embedding::Purpose, port::Embedder};

    use super::{Builtin, WordsOnly};

    #[tokio::test]
    async fn it_counts_and_gives_nothing() {
        let (none, builtin) = (WordsOnly::open().unwrap(), Builtin::load().unwrap());
        let text = "unremarkable words";
        assert_eq!(none.tokens(text), Embedder::tokens(&builtin, text));
        assert_eq!(
            none.embed(&[text, text], Purpose::Document).await.unwrap(),
            [None, None]
        );
        assert_ne!(none.model().id, builtin.model().id);
    }
}

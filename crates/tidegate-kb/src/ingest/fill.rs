//! Vectors that are missing: of chunks that came while the embedder was away, or of a model that is new.
//!
//! While a new model's vectors are not complete, those of the old one serve. Chunks keep their borders until then, so
//! that they keep their old vectors, too; only what the new model cannot read whole is cut anew at once.

use std::{collections::BTreeSet, time::Duration};

use tidegate_core::{
    embedding::EmbedError,
    error::StoreError,
    port::{ChunkKey, StoredChunk},
};
use tokio::time::Instant;

use super::{Shared, file::EMBED_MAX};
use crate::chunk;

/// Chunks that are looked at together.
const PAGE: usize = 256;

/// A vector, or that there is none.
type Answer = Option<Vec<f32>>;

/// How far a round came.
enum Round {
    /// Every chunk has its answer.
    Complete,
    /// Some wait for documents to be cut anew.
    Waiting,
    /// The embedder does not answer, or refuses.
    Stuck,
}

impl Shared {
    /// Fills in vectors for as long as it is polled.
    pub(super) async fn keep_filling(&self) {
        let retry = Duration::from_secs(self.options.embed_retry_s.max(1));
        loop {
            let round = self.fill_once().await;
            self.progress
                .send_modify(|progress| progress.is_embedding = false);
            let next = match round {
                Ok(Round::Complete) => None,
                Ok(Round::Waiting | Round::Stuck) => Some(Instant::now() + retry),
                Err(error) => {
                    self.problems.set("vectors", Some(error.to_string()));
                    Some(Instant::now() + retry)
                }
            };
            match next {
                Some(at) => drop(tokio::time::timeout_at(at, self.fill.notified()).await),
                None => self.fill.notified().await,
            }
        }
    }

    /// Whether the configured model serves. Where none does, there is nothing to wait for, and it does from now on.
    pub(super) async fn serves(&self) -> Result<bool, StoreError> {
        let model = &self.embedder.model().id;
        match self.store.serving_model().await? {
            Some(serving) => Ok(serving == *model),
            None => self.store.serve(model).await.map(|()| true),
        }
    }

    async fn fill_once(&self) -> Result<Round, StoreError> {
        let model = self.embedder.model().id.clone();
        let serves = self.serves().await?;
        let counts = self.store.counts(Some(&model)).await?;
        let mut round = Round::Complete;
        if counts.embedded < counts.chunks {
            tracing::info!(
                model,
                missing = counts.chunks - counts.embedded,
                "vectors are being filled in"
            );
            self.progress.send_modify(|progress| {
                progress.is_embedding = true;
                (progress.embedded, progress.to_embed) = (counts.embedded, counts.chunks);
            });
            round = self.fill_all(&model).await?;
        }
        self.problems.set("vectors", None);
        if matches!(round, Round::Complete) && !serves {
            self.store.serve(&model).await?;
            tracing::info!(
                model,
                "the vectors of the embedding model are complete and serve from now on"
            );
            // What was read for another model is read for this one.
            self.signals.everything();
        }
        Ok(round)
    }

    async fn fill_all(&self, model: &str) -> Result<Round, StoreError> {
        let mut after: ChunkKey = 0;
        let mut too_long = BTreeSet::new();
        let mut has_answered = false;
        let tokens_max = self.embedder.model().tokens_max;
        loop {
            let mut chunks = self.store.unembedded(model, after, PAGE).await?;
            let Some(last) = chunks.last() else { break };
            after = last.key;
            chunks.retain(|chunk| {
                let fits = self
                    .embedder
                    .tokens(&chunk::embedded_text(&chunk.place, &chunk.text))
                    <= tokens_max;
                if !fits {
                    too_long.insert(chunk.path.clone());
                }
                fits
            });
            for part in chunks.chunks(EMBED_MAX) {
                if !self.fill_part(model, part, &mut has_answered).await? {
                    return Ok(Round::Stuck);
                }
            }
        }
        if too_long.is_empty() {
            return Ok(Round::Complete);
        }
        for path in too_long {
            self.signals.force(path);
        }
        Ok(Round::Waiting)
    }

    /// Whether the embedder answered. A text that it refuses while it answers others has no vector and is found by its
    /// words; where it answers nothing, the text may not be what it refuses.
    async fn fill_part(
        &self,
        model: &str,
        chunks: &[StoredChunk],
        has_answered: &mut bool,
    ) -> Result<bool, StoreError> {
        let texts: Vec<String> = chunks
            .iter()
            .map(|chunk| chunk::embedded_text(&chunk.place, &chunk.text))
            .collect();
        let mut answers: Vec<Option<Answer>> = match self.embed(&texts).await {
            Ok(vectors) => vectors.into_iter().map(Some).collect(),
            Err(EmbedError::Refused(_)) => self.one_by_one(&texts).await,
            Err(EmbedError::Unavailable(_) | EmbedError::Resting { .. } | EmbedError::Broken(_)) => {
                Vec::new()
            }
        };
        *has_answered |= answers.iter().any(Option::is_some);
        if !*has_answered || answers.is_empty() {
            return Ok(false);
        }
        for (chunk, answer) in chunks
            .iter()
            .zip(&mut answers)
            .filter(|(_, answer)| answer.is_none())
        {
            tracing::warn!(document = %chunk.path, ordinal = chunk.ordinal, "the embedder refuses a part of a document; it is found by its words alone");
            *answer = Some(None);
        }
        let keys = chunks.iter().map(|chunk| chunk.key);
        let vectors: Vec<_> = keys.zip(answers.into_iter().flatten()).collect();
        let count = vectors.len() as u64;
        self.store.put_vectors(model, vectors).await?;
        self.progress.send_modify(|progress| progress.embedded += count);
        Ok(true)
    }

    /// Which of several texts is refused. Empty where the embedder fails in another way meanwhile.
    async fn one_by_one(&self, texts: &[String]) -> Vec<Option<Answer>> {
        let mut answers = Vec::with_capacity(texts.len());
        for text in texts {
            match self.embed(std::slice::from_ref(text)).await {
                Ok(mut vectors) => answers.push(vectors.pop()),
                Err(EmbedError::Refused(_)) => answers.push(None),
                Err(EmbedError::Unavailable(_) | EmbedError::Resting { .. } | EmbedError::Broken(_)) => {
                    return Vec::new();
                }
            }
        }
        answers
    }
}

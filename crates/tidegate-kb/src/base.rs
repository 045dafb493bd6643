//! The knowledge base: one search over words and vectors, in two stages.
//!
//! **Stage 1, relevance.** Words by BM25 from the database's full-text index, vectors by exact cosine, both at once, each
//! narrowed by the filter first; then one list of both ([`fusion`](crate::fusion)). What has nothing to do with the
//! query is left out, all of it if need be ([`floor`](crate::floor)).
//!
//! **Stage 2, order.** Authority of the documents, bounded and told ([`authority`](crate::authority)); equal texts once;
//! no page that fills the whole answer.
//!
//! A dead embedder, an index that does not answer or vectors that are not there yet make an answer by words alone, which
//! says so. Vectors are followed before each search by the version of the store, so that a search sees every document
//! that was put in before it, by whichever process.

mod read;
mod search;
mod select;

#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tidegate_core::{
    embedding::{EmbedderState, Fusion},
    error::StoreError,
    glob::Glob,
    knowledge::{
        Document, DocumentText, Filter, KnowledgeStatus, ReadFrom, SearchAnswer, SearchExplained,
        SearchRequest,
    },
    port::{ChunkStore, Embedder, KnowledgeBase, KnowledgeError},
};

pub(crate) use search::{Found, Standing};

use crate::{explain, index::VectorIndex, ingest::Ingest};

/// The most passages in an answer, whatever is asked for.
pub const PASSAGES_MAX: usize = 50;
/// The most documents in one page of a list, whatever is asked for.
pub const LIST_MAX: usize = 1_000;

/// How searches are made. What is `None` follows what was measured for the embedding model in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How words and vectors are joined. Default: by the model.
    pub fusion: Option<Fusion>,
    /// Whether a more trusted passage moves just above a less trusted one on the same matter. Default: yes.
    pub pair_rule: bool,
    /// The cosine from which two passages are on the same matter, from 0 to 1. Default: by the model.
    pub pair_cosine_min: Option<f32>,
    /// What the most trusted documents are given, as a share of the range of scores, from 0 to 0.10. Default 0.02,
    /// which settles what is as good as even. It is small by caution: alone it has put no source first on the
    /// development set at any size, and 0.08 beside the pair rule cost one with a sentence model.
    pub authority_nudge: f32,
    /// The cosine below which a passage without the query's telling words has nothing to do with it, from 0 to 1; 0
    /// lets everything through. Default: by the model.
    pub relevant_cosine_min: Option<f32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fusion: None,
            pair_rule: true,
            pair_cosine_min: None,
            authority_nudge: 0.02,
            relevant_cosine_min: None,
        }
    }
}

/// Whoever puts documents into the store, as far as the knowledge base must know.
#[async_trait]
pub trait Intake: Send + Sync + std::fmt::Debug {
    /// A file was written, by its real path.
    fn written(&self, path: &Path);

    /// Waits until everything that was announced is in the store, `limit` at most; whether it is.
    async fn settled(&self, limit: Duration) -> bool;

    /// How many files wait to be read, or are being read.
    fn pending(&self) -> usize;

    /// What is wrong just now, as sentences.
    fn problems(&self) -> Vec<String>;
}

/// Nobody puts anything in: a command that only looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoIntake;

#[async_trait]
impl Intake for NoIntake {
    fn written(&self, _path: &Path) {}

    async fn settled(&self, _limit: Duration) -> bool {
        true
    }

    fn pending(&self) -> usize {
        0
    }

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

#[async_trait]
impl Intake for Ingest {
    fn written(&self, path: &Path) {
        Self::written(self, path);
    }

    async fn settled(&self, limit: Duration) -> bool {
        Self::settled(self, limit).await
    }

    fn pending(&self) -> usize {
        Self::pending(self)
    }

    fn problems(&self) -> Vec<String> {
        Self::problems(self)
    }
}

/// The knowledge base over a store.
#[derive(Debug)]
pub struct Base {
    store: Arc<dyn ChunkStore>,
    index: Arc<dyn VectorIndex>,
    /// The configured one first. Others serve while their vectors are the ones that are complete.
    embedders: Vec<Arc<dyn Embedder>>,
    intake: Arc<dyn Intake>,
    options: Options,
    size: Mutex<Size>,
}

/// How many chunks there are, at a version of the store.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    version: u64,
    chunks: u64,
}

impl Base {
    /// A knowledge base. `embedders` may be empty, which makes it one of words alone; the first is the configured one,
    /// and others are asked while vectors of theirs serve.
    pub fn new(
        store: Arc<dyn ChunkStore>,
        index: Arc<dyn VectorIndex>,
        embedders: Vec<Arc<dyn Embedder>>,
        intake: Arc<dyn Intake>,
        options: Options,
    ) -> Self {
        Self {
            store,
            index,
            embedders,
            intake,
            options,
            size: Mutex::default(),
        }
    }

    /// Reads the vectors into memory, so that the first search need not wait for it.
    pub async fn warm(&self) -> Result<(), KnowledgeError> {
        let version = self.store.version().await?;
        if let Some(model) = self.store.serving_model().await?
            && let Err(error) = self.index.follow(&model, version).await
        {
            tracing::warn!(%error, "the vectors could not be read; searches go by words until they can");
        }
        Ok(())
    }

    /// How many chunks there are, counted once a version.
    async fn chunks(&self, version: u64) -> Result<u64, StoreError> {
        let known = *self.size.lock().unwrap_or_else(PoisonError::into_inner);
        if known.version == version && known.chunks > 0 {
            return Ok(known.chunks);
        }
        let chunks = self.store.counts(None).await?.chunks;
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = Size { version, chunks };
        Ok(chunks)
    }

    fn problems(&self, serving: Option<&str>) -> Vec<String> {
        let mut problems = self.intake.problems();
        problems.extend(self.index.problem());
        let configured = self.embedders.first();
        if let Some(embedder) = configured {
            match embedder.state() {
                EmbedderState::Untried | EmbedderState::Ready => {}
                EmbedderState::Resting { until, problem } => problems.push(format!(
                    "the embedder `{}` rests until {until}: {problem}; searches go by words",
                    embedder.model().id
                )),
            }
        }
        if let (Some(serving), Some(embedder)) = (serving, configured)
            && serving != embedder.model().id
        {
            problems.push(format!(
                "vectors of `{serving}` serve until those of `{}` are complete",
                embedder.model().id
            ));
        }
        problems
    }
}

/// Refuses patterns that are none, and says which.
fn check_filter(filter: &Filter) -> Result<(), KnowledgeError> {
    for path in &filter.paths {
        Glob::new(path)
            .map_err(|problem| KnowledgeError::Invalid(format!("the path filter `{path}`: {problem}")))?;
    }
    Ok(())
}

#[async_trait]
impl KnowledgeBase for Base {
    async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, KnowledgeError> {
        let found = self.find(request).await?;
        let passages = found.standings.into_iter().take(found.relevant);
        Ok(SearchAnswer {
            passages: passages.map(Standing::into_passage).collect(),
            words_only: found.words_only,
            pending: self.intake.pending(),
        })
    }

    async fn explain(&self, request: &SearchRequest) -> Result<SearchExplained, KnowledgeError> {
        self.find(request).await.map(explain::explain)
    }

    async fn read(&self, from: &ReadFrom, chars_max: usize) -> Result<DocumentText, KnowledgeError> {
        read::read(&*self.store, from, chars_max).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Document>, bool), KnowledgeError> {
        check_filter(filter)?;
        let limit = limit.clamp(1, LIST_MAX);
        let mut documents = self.store.documents(filter, after, limit + 1).await?;
        let more = documents.len() > limit;
        documents.truncate(limit);
        Ok((documents, more))
    }

    fn written(&self, path: &Path) {
        self.intake.written(path);
    }

    async fn settled(&self, limit: Duration) -> bool {
        self.intake.settled(limit).await
    }

    async fn status(&self) -> Result<KnowledgeStatus, KnowledgeError> {
        let configured = self.embedders.first().map(|embedder| embedder.model().id.clone());
        let counts = self.store.counts(configured.as_deref()).await?;
        let serving = self.store.serving_model().await?;
        Ok(KnowledgeStatus {
            documents: counts.documents,
            failed: counts.failed,
            chunks: counts.chunks,
            pending: u64::try_from(self.intake.pending()).unwrap_or(u64::MAX),
            problems: self.problems(serving.as_deref()),
            serving_model: serving,
            configured_model: configured,
            embedded: counts.embedded,
            vectors_in: self.index.place(),
        })
    }
}

//! The second tier: a question's vector against those of the lists.
//!
//! What does not depend on the question (the lists' vectors, the probe's weights) is prepared once for a model and a
//! version of the lists, in a task of its own. Until it is done the last one of the same model serves; where there is
//! none, the rules decide alone. A question costs one embedding and a few thousand multiplications.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::{Clock, Timestamp},
    embedding::{EmbedError, EmbeddingModel, Purpose},
    port::Embedder,
};
use tokio::task::JoinSet;

use super::{
    lists::{Example, Lists},
    scores::{self, Grid, Near, Rows},
};

/// Examples that are embedded in one call.
const BATCH: usize = 32;

/// How long one batch of examples may take: the first may have to wait for a model to be loaded.
const BATCH_TIMEOUT: Duration = Duration::from_mins(1);

/// How a question is scored. The kinds are told in a table at the top of `scores.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreKind {
    /// A linear discriminant of both lists: measured best.
    #[default]
    Probe,
    /// The three nearest positives against the three nearest negatives.
    Margin,
    /// The middle of one list against the middle of the other.
    Centroid,
    /// The nearest positive alone.
    Nearest,
}

/// An example near a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighbour {
    /// Its id: the first digits of its hash.
    pub id: String,
    /// The cosine.
    pub cosine: f64,
}

/// What the second tier found about a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The model whose vectors were compared.
    pub model: String,
    /// The version of the lists.
    pub lists: String,
    /// How it was scored.
    pub kind: ScoreKind,
    /// The score.
    pub score: f64,
    /// The mean of the three highest cosines to positives less the same for negatives, whatever the kind.
    pub margin: f64,
    /// How far the means of both lists lie apart on this score: its natural unit.
    pub spread: f64,
    /// The nearest positives.
    pub positives: Vec<Neighbour>,
    /// The nearest negatives.
    pub negatives: Vec<Neighbour>,
}

/// Limits of the second tier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How a question is scored.
    pub(super) kind: ScoreKind,
    /// How long the embedder may take for one question.
    pub(super) timeout: Duration,
    /// How long a failed embedder is left alone.
    pub(super) rest: Duration,
}

/// One list, ready to be compared with.
#[derive(Debug)]
struct Side {
    ids: Vec<String>,
    grid: Grid,
}

/// What was made of the lists for one model.
#[derive(Debug)]
struct Prepared {
    model: String,
    lists: Lists,
    digest: String,
    dimensions: usize,
    positives: Side,
    negatives: Side,
    /// `None` where the score is one that needs no weights.
    weights: Option<Vec<f32>>,
    spread: f64,
}

/// What requests and the preparing task share.
#[derive(Debug)]
struct Inner {
    embedder: Arc<dyn Embedder>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    prepared: Mutex<Option<Arc<Prepared>>>,
    /// Until when a failed embedder is left alone.
    resting: Mutex<Option<Timestamp>>,
}

/// Compares questions with the lists through an embedder.
#[derive(Debug)]
pub(super) struct Comparer {
    inner: Arc<Inner>,
    /// The task that prepares; never more than one. It ends with the gate.
    task: Mutex<JoinSet<()>>,
}

impl Comparer {
    pub(super) fn new(embedder: Arc<dyn Embedder>, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self {
            inner: Arc::new(Inner {
                embedder,
                clock,
                limits,
                prepared: Mutex::default(),
                resting: Mutex::default(),
            }),
            task: Mutex::default(),
        }
    }

    pub(super) fn model(&self) -> &EmbeddingModel {
        self.inner.embedder.model()
    }

    /// Prepares now, where that is still to be done.
    pub(super) async fn prepare(&self, lists: Lists) {
        if self.inner.current(&lists).is_none_or(|(_, fits)| !fits) {
            Arc::clone(&self.inner).prepare(lists).await;
        }
    }

    /// What the second tier finds about `question`; `None` where it cannot say. A slow or dead embedder costs a
    /// request one time limit, and the next ones nothing until it has rested.
    pub(super) async fn compare(&self, question: &str, lists: &Lists) -> Option<Comparison> {
        if self.inner.rests() {
            return None;
        }
        let (prepared, fits) = self.inner.current(lists).unzip();
        if fits != Some(true) {
            self.prepare_beside(lists);
        }
        let prepared = prepared?;
        let Limits { kind, timeout, .. } = self.inner.limits;
        let texts = [question];
        let embedding = self.inner.embedder.embed(&texts, Purpose::Query);
        match tokio::time::timeout(timeout, embedding).await {
            // Nothing in it that the model knows: it has no direction.
            Ok(Ok(vectors)) => prepared.compare(&vectors.into_iter().next().flatten()?, kind),
            Ok(Err(error)) => {
                self.inner.failed(&error.to_string());
                None
            }
            Err(_) => {
                self.inner
                    .failed(&format!("no answer within {} ms", timeout.as_millis()));
                None
            }
        }
    }

    /// Starts to prepare in a task of its own, unless one is at it.
    fn prepare_beside(&self, lists: &Lists) {
        let mut task = locked(&self.task);
        while task.try_join_next().is_some() {}
        if task.is_empty() {
            task.spawn(Arc::clone(&self.inner).prepare(lists.clone()));
        }
    }
}

impl Inner {
    /// What is prepared for this model, and whether it is of these very lists.
    fn current(&self, lists: &Lists) -> Option<(Arc<Prepared>, bool)> {
        let prepared = locked(&self.prepared).clone()?;
        let fits = prepared.lists.is(lists);
        (prepared.model == self.embedder.model().id).then_some((prepared, fits))
    }

    async fn prepare(self: Arc<Self>, lists: Lists) {
        let model = self.embedder.model().id.clone();
        let (positives, negatives) = match self.vectors_of(&lists).await {
            Ok(both) => both,
            Err(problem) => return self.failed(&problem),
        };
        let kind = self.limits.kind;
        let solved =
            tokio::task::spawn_blocking(move || Prepared::new(model, lists, positives, negatives, kind));
        match solved.await {
            Ok(Ok(prepared)) => {
                tracing::debug!(
                    embedding.model = %prepared.model,
                    lists = %prepared.digest,
                    "the routing gate's second tier is ready"
                );
                *locked(&self.prepared) = Some(Arc::new(prepared));
            }
            Ok(Err(problem)) => self.failed(problem),
            // The runtime ends: nobody will ask.
            Err(_) => {}
        }
    }

    async fn vectors_of(&self, lists: &Lists) -> Result<(Vectors, Vectors), String> {
        Ok((
            self.vectors(&lists.positives).await?,
            self.vectors(&lists.negatives).await?,
        ))
    }

    async fn vectors(&self, examples: &[Example]) -> Result<Vectors, String> {
        let mut all = Vec::with_capacity(examples.len());
        for batch in examples.chunks(BATCH) {
            let texts: Vec<&str> = batch.iter().map(|example| example.text.as_str()).collect();
            let embedding = self.embedder.embed(&texts, Purpose::Query);
            let vectors = tokio::time::timeout(BATCH_TIMEOUT, embedding)
                .await
                .map_err(|_| format!("no answer within {} s", BATCH_TIMEOUT.as_secs()))?
                .map_err(|error: EmbedError| error.to_string())?;
            let ids = batch.iter().map(|example| example.id.clone());
            // An embedder in this process never waits: requests must have their turn between batches.
            tokio::task::yield_now().await;
            all.extend(ids.zip(vectors).filter_map(|(id, vector)| Some((id, vector?))));
        }
        Ok(all)
    }

    fn rests(&self) -> bool {
        locked(&self.resting).is_some_and(|until| self.clock.now() < until)
    }

    fn failed(&self, problem: &str) {
        tracing::warn!(
            problem,
            rest_s = self.limits.rest.as_secs(),
            "the embedder failed; the routing gate goes on with its rules alone"
        );
        *locked(&self.resting) = self.clock.now().checked_add(self.limits.rest).ok();
    }
}

/// Examples with a vector, by id.
type Vectors = Vec<(String, Vec<f32>)>;

impl Prepared {
    fn new(
        model: String,
        lists: Lists,
        positives: Vectors,
        negatives: Vectors,
        kind: ScoreKind,
    ) -> Result<Self, &'static str> {
        let dimensions = positives.first().map_or(0, |(_, vector)| vector.len());
        let (positives, positive_rows) = Side::new(positives, dimensions);
        let (negatives, negative_rows) = Side::new(negatives, dimensions);
        let weights = match kind {
            ScoreKind::Probe => Some(scores::probe(&positive_rows, &negative_rows).ok_or(
                "the lists of the second tier give no probe: each needs lines the model knows, and the model at \
                 most 2048 dimensions",
            )?),
            ScoreKind::Centroid => Some(scores::centroid(&positive_rows, &negative_rows)),
            ScoreKind::Margin | ScoreKind::Nearest => None,
        };
        let mut prepared = Self {
            model,
            digest: lists.digest(),
            lists,
            dimensions,
            positives,
            negatives,
            weights,
            spread: 1.0,
        };
        let mean = |rows: &Rows| prepared.mean_score(kind, rows);
        let spread = (mean(&positive_rows) - mean(&negative_rows)).abs();
        prepared.spread = spread;
        Ok(prepared)
    }

    fn mean_score(&self, kind: ScoreKind, rows: &Rows) -> f64 {
        let scores = rows.iter().map(|row| match (kind, &self.weights) {
            // Not for every example is the search among all others worth its time.
            (ScoreKind::Probe | ScoreKind::Centroid, Some(weights)) => {
                Some(f64::from(scores::dot(weights, row)))
            }
            (ScoreKind::Margin | ScoreKind::Nearest, _) | (ScoreKind::Probe | ScoreKind::Centroid, None) => {
                self.score(kind, row, &self.near(row))
            }
        });
        let (sum, count) = scores
            .flatten()
            .fold((0.0, 0.0), |(sum, count), score| (sum + score, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// The score of a vector of length 1 whose nearest examples are known.
    fn score(&self, kind: ScoreKind, vector: &[f32], near: &(Vec<Near>, Vec<Near>)) -> Option<f64> {
        match (kind, &self.weights) {
            (ScoreKind::Probe | ScoreKind::Centroid, Some(weights)) => {
                Some(f64::from(scores::dot(weights, vector)))
            }
            (ScoreKind::Nearest, _) => near.0.first().map(|near| f64::from(near.cosine)),
            (ScoreKind::Margin | ScoreKind::Probe | ScoreKind::Centroid, _) => margin(near),
        }
    }

    fn near(&self, vector: &[f32]) -> (Vec<Near>, Vec<Near>) {
        (
            self.positives.grid.nearest(vector),
            self.negatives.grid.nearest(vector),
        )
    }

    fn compare(&self, vector: &[f32], kind: ScoreKind) -> Option<Comparison> {
        let vector = scores::unit(vector).filter(|vector| vector.len() == self.dimensions)?;
        let near = self.near(&vector);
        let (margin, score) = (margin(&near)?, self.score(kind, &vector, &near)?);
        Some(Comparison {
            model: self.model.clone(),
            lists: self.digest.clone(),
            kind,
            score,
            margin,
            spread: self.spread,
            positives: self.positives.named(&near.0),
            negatives: self.negatives.named(&near.1),
        })
    }
}

/// The mean of the nearest positives less that of the nearest negatives.
fn margin((positives, negatives): &(Vec<Near>, Vec<Near>)) -> Option<f64> {
    // Without negatives the mean of the nearest positives is all there is.
    Some(scores::mean_cosine(positives)? - scores::mean_cosine(negatives).unwrap_or_default())
}

impl Side {
    /// What is kept of a list, and its rows for what is computed once.
    fn new(vectors: Vectors, dimensions: usize) -> (Self, Rows) {
        let usable: Vectors = vectors
            .into_iter()
            .filter(|(_, vector)| vector.len() == dimensions && scores::unit(vector).is_some())
            .collect();
        let rows = Rows::new(dimensions, usable.iter().map(|(_, vector)| vector.as_slice()));
        let side = Self {
            ids: usable.into_iter().map(|(id, _)| id).collect(),
            grid: Grid::new(&rows),
        };
        (side, rows)
    }

    fn named(&self, nearest: &[Near]) -> Vec<Neighbour> {
        nearest
            .iter()
            .filter_map(|near| {
                Some(Neighbour {
                    id: self.ids.get(near.index)?.clone(),
                    cosine: f64::from(near.cosine),
                })
            })
            .collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! What every embedder that may fail is wrapped in: a memory of recent queries, and a breaker.
//!
//! The breaker opens at the first failure. A query is not worth a second try while somebody waits for it, and what is
//! embedded in the background has been tried several times before it counts as failed. When the rest is over, one call
//! tries again, and the others are refused until it knows.

mod recent;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use tidegate_core::{
    clock::{Clock, Timestamp, after},
    embedding::{EmbedError, EmbedderState, EmbeddingModel, Purpose},
    port::Embedder,
};

use self::recent::Recent;

/// The default of [`Options::cache_entries_max`]: below a megabyte for vectors of 768 numbers.
pub const CACHE_ENTRIES_MAX: usize = 256;

/// The default of [`Options::rest_s`].
pub const REST_S: u64 = 30;

/// How to guard an embedder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How many vectors of queries are kept; 0 keeps none, and more than 10,000 are not kept.
    pub cache_entries_max: usize,
    /// How long an embedder that failed is left alone, in seconds.
    pub rest_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_entries_max: CACHE_ENTRIES_MAX,
            rest_s: REST_S,
        }
    }
}

/// An embedder with a memory and a breaker.
#[derive(Debug)]
pub struct Guarded {
    inner: Arc<dyn Embedder>,
    clock: Arc<dyn Clock>,
    rest_s: u64,
    breaker: Mutex<Breaker>,
    recent: Mutex<Recent>,
}

#[derive(Debug)]
enum Breaker {
    /// Calls go through.
    Closed,
    /// The last call failed.
    Open {
        until: Timestamp,
        problem: String,
        /// Whether a call is trying again just now.
        probing: bool,
    },
}

impl Guarded {
    /// Wraps an embedder.
    pub fn new(inner: Arc<dyn Embedder>, options: Options, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner,
            clock,
            rest_s: options.rest_s,
            breaker: Mutex::new(Breaker::Closed),
            recent: Mutex::new(Recent::new(options.cache_entries_max)),
        }
    }

    /// Lets a call through, or says why not.
    fn enter(&self) -> Result<Attempt<'_>, EmbedError> {
        let mut breaker = lock(&self.breaker);
        let probe = match &mut *breaker {
            Breaker::Closed => false,
            Breaker::Open { until, probing, .. } if !*probing && *until <= self.clock.now() => {
                *probing = true;
                true
            }
            Breaker::Open { until, problem, .. } => {
                return Err(EmbedError::Resting {
                    until: *until,
                    problem: problem.clone(),
                });
            }
        };
        Ok(Attempt { guarded: self, probe })
    }

    fn settle<T>(&self, outcome: &Result<T, EmbedError>) {
        let mut breaker = lock(&self.breaker);
        match outcome {
            // What is refused was understood: the embedder lives.
            Ok(_) | Err(EmbedError::Refused(_)) => {
                if let Breaker::Open { .. } = &*breaker {
                    tracing::info!(model = %self.inner.model().id, "the embedder answers again");
                }
                *breaker = Breaker::Closed;
            }
            Err(error @ (EmbedError::Unavailable(_) | EmbedError::Broken(_))) => {
                let until = after(self.clock.now(), self.rest_s);
                tracing::warn!(
                    model = %self.inner.model().id, %error, %until,
                    "the embedder failed and is left alone; searches go by words meanwhile"
                );
                *breaker = Breaker::Open {
                    until,
                    problem: error.to_string(),
                    probing: false,
                };
            }
            Err(EmbedError::Resting { until, problem }) => {
                *breaker = Breaker::Open {
                    until: *until,
                    problem: problem.clone(),
                    probing: false,
                };
            }
        }
    }

    /// Asks the embedder, if it is not resting.
    async fn ask(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let attempt = self.enter()?;
        let outcome = self.inner.embed(texts, purpose).await;
        self.settle(&outcome);
        drop(attempt);
        outcome
    }

    async fn query(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let keys: Vec<[u8; 32]> = texts.iter().map(|text| Sha256::digest(text).into()).collect();
        let mut vectors: Vec<_> = {
            let mut recent = lock(&self.recent);
            keys.iter().map(|key| recent.get(key)).collect()
        };
        let missing: Vec<&str> = texts
            .iter()
            .zip(&vectors)
            .filter_map(|(text, vector)| vector.is_none().then_some(*text))
            .collect();
        if !missing.is_empty() {
            let asked = self.ask(&missing, Purpose::Query).await?;
            let mut recent = lock(&self.recent);
            let mut asked = asked.into_iter();
            for (slot, key) in vectors.iter_mut().zip(keys) {
                if slot.is_none()
                    && let Some(vector) = asked.next()
                {
                    recent.put(key, vector.clone());
                    *slot = Some(vector);
                }
            }
        }
        Ok(vectors.into_iter().map(Option::unwrap_or_default).collect())
    }
}

/// A call under way. If one that tries again is dropped before it knows, the next one may try.
struct Attempt<'a> {
    guarded: &'a Guarded,
    probe: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Breaker::Open { probing, .. } = &mut *lock(&self.guarded.breaker)
            && self.probe
        {
            *probing = false;
        }
    }
}

#[async_trait]
impl Embedder for Guarded {
    fn model(&self) -> &EmbeddingModel {
        self.inner.model()
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        match purpose {
            Purpose::Query => self.query(texts).await,
            Purpose::Document => self.ask(texts, purpose).await,
        }
    }

    fn tokens(&self, text: &str) -> usize {
        self.inner.tokens(text)
    }

    fn state(&self) -> EmbedderState {
        match &*lock(&self.breaker) {
            Breaker::Closed => self.inner.state(),
            Breaker::Open { until, problem, .. } => EmbedderState::Resting {
                until: *until,
                problem: problem.clone(),
            },
        }
    }
}

/// What a lock guards here is whole after every statement, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

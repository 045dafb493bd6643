//! Embedders behind an address of the operator's: Ollama's own endpoint, and the one that OpenAI defined and many
//! servers speak.
//!
//! Nothing an answer holds is believed: the number of vectors, their length and each number are looked at before
//! anything is stored. A text that is longer than the model reads is refused here, before a server could cut it in
//! silence.

mod answer;
mod dialect;
#[cfg(test)]
mod tests;

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tidegate_core::{
    clock::Entropy,
    embedding::{EmbedError, EmbedderState, EmbeddingModel, Purpose},
    port::Embedder,
    secret::Secret,
};
use tidegate_io::http::{self, OperatorClient};
use tokio::{sync::Semaphore, time::timeout};

pub use self::dialect::Dialect;
use super::{Builtin, Error, estimate::Estimate, models::Profile};

/// The default of [`Options::query_timeout_ms`]: somebody waits.
pub const QUERY_TIMEOUT_MS: u64 = 5_000;
/// The default of [`Options::document_timeout_ms`]: a full batch on a slow processor.
pub const DOCUMENT_TIMEOUT_MS: u64 = 120_000;
/// The default of [`Options::concurrency_max`].
pub const CONCURRENCY_MAX: usize = 2;
/// The default of [`Options::batch_texts_max`].
pub const BATCH_TEXTS_MAX: usize = 32;
/// The most bytes of text in one request, unless one text alone is longer.
pub const BATCH_BYTES_MAX: usize = 256 << 10;
/// The most bytes of an answer that are read: 32 vectors of 4,096 numbers take a sixth of it.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;
/// How often a request for documents is tried.
const TRIES_MAX: u32 = 3;
/// The wait before the second try, which doubles for the third. Up to half of it is added by chance.
const RETRY_MS: u64 = 500;
/// The longest `retry-after` that is waited for, in seconds.
const RETRY_AFTER_S_MAX: u64 = 30;
/// How long the server may take to describe a model, in milliseconds.
const SHOW_TIMEOUT_MS: u64 = 2_000;
/// The longest text that is taken on, whatever a model's description says, in tokens. Ollama sets aside memory for
/// all of a context.
const CONTEXT_TOKENS_MAX: usize = 8_192;
/// The marks that models put before and after a text.
const MARKS: usize = 2;
/// An answer that is longer is read on a thread of its own, so that the others on this one do not wait.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// How to reach an embedder.
#[derive(Debug, Clone)]
pub struct Options {
    /// The model's name, as the server knows it.
    pub model: String,
    /// Where it is; each [`Dialect`] says what it adds.
    pub base_url: String,
    /// The key, where one is asked for.
    pub api_key: Option<Secret>,
    /// How long a query may take, the wait for its turn included, in milliseconds.
    pub query_timeout_ms: u64,
    /// How long a request for documents may take, in milliseconds. It is tried three times.
    pub document_timeout_ms: u64,
    /// How many requests run at once; as many for queries and as many for documents, so that no query waits behind
    /// an index being built.
    pub concurrency_max: usize,
    /// How many texts one request holds.
    pub batch_texts_max: usize,
    /// The longest text the model reads, in its tokens, where the server and the table of models do not know better.
    pub tokens_max: Option<usize>,
    /// The length of vectors to ask for; the model's own where absent.
    pub dimensions: Option<usize>,
}

/// An embedder behind an address.
#[derive(Debug)]
pub struct Remote {
    model: EmbeddingModel,
    dialect: Dialect,
    options: Options,
    profile: Profile,
    estimate: Estimate,
    client: OperatorClient,
    entropy: Arc<dyn Entropy>,
    queries: Semaphore,
    documents: Semaphore,
    /// The context that the server says the model has.
    context: OnceLock<usize>,
    /// The length of its vectors: what was asked for or is known, else that of the first one.
    dimensions: OnceLock<usize>,
    answered: OnceLock<()>,
}

/// A try that failed, and how long the server asks to be left alone.
struct Failed {
    error: EmbedError,
    wait: Option<Duration>,
}

impl From<EmbedError> for Failed {
    fn from(error: EmbedError) -> Self {
        Self { error, wait: None }
    }
}

impl Remote {
    /// Puts an embedder together. It asks an Ollama server how long a text may be, and takes what is known of the
    /// model where it does not answer within two seconds.
    pub(super) async fn open(
        dialect: Dialect,
        options: Options,
        profile: Profile,
        builtin: Arc<Builtin>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, Error> {
        let client = OperatorClient::new(&http::Options::default())?;
        let dimensions = options.dimensions.or(profile.dimensions);
        let mut remote = Self {
            model: EmbeddingModel {
                id: profile.id(dialect.name(), &options.model, options.dimensions),
                tokens_max: 0,
                calibration: profile.calibration(),
            },
            dialect,
            estimate: Estimate::new(builtin, profile.tokenizer),
            profile,
            client,
            entropy,
            queries: Semaphore::new(options.concurrency_max.max(1)),
            documents: Semaphore::new(options.concurrency_max.max(1)),
            context: OnceLock::new(),
            dimensions: dimensions.map_or_else(OnceLock::new, OnceLock::from),
            answered: OnceLock::new(),
            options,
        };
        remote.learn_context().await;
        remote.model.tokens_max = remote.text_tokens_max();
        Ok(remote)
    }

    /// The context of the model: what the operator says, else what is known of the model and what its server says,
    /// whichever is less. A model nobody knows is taken at its server's word.
    fn context_tokens(&self) -> usize {
        let known = self.profile.tokens_max;
        let tokens = match (self.options.tokens_max, self.context.get()) {
            (Some(tokens), _) => tokens,
            (None, Some(context)) if self.profile.dimensions.is_none() => *context,
            (None, Some(context)) => known.min(*context),
            (None, None) => known,
        };
        tokens.clamp(1, CONTEXT_TOKENS_MAX)
    }

    /// What of the context is left for a text beside the longer prefix and the marks.
    fn text_tokens_max(&self) -> usize {
        let prefix = [Purpose::Query, Purpose::Document]
            .map(|purpose| self.estimate.count(self.profile.prefix(purpose)))
            .into_iter()
            .max()
            .unwrap_or_default();
        self.context_tokens().saturating_sub(prefix + MARKS).max(1)
    }

    /// Asks the server how long a text may be, unless that is known. A failure changes nothing.
    async fn learn_context(&self) {
        if self.context.get().is_some() {
            return;
        }
        let Some((path, body)) = self.dialect.describe(&self.options.model) else {
            return;
        };
        let asked = async {
            let body = self.exchange(path, body).await.map_err(|failed| failed.error)?;
            answer::context(&body).map_err(EmbedError::Broken)
        };
        match timeout(Duration::from_millis(SHOW_TIMEOUT_MS), asked).await {
            Ok(Ok(tokens)) => drop(self.context.set(tokens)),
            Ok(Err(problem)) => {
                tracing::debug!(model = %self.model.id, %problem, "the context of the embedding model is not known");
            }
            Err(_) => {
                tracing::debug!(model = %self.model.id, "the embedding server did not describe the model in time");
            }
        }
    }

    /// Sends a body and reads the answer, without a time limit.
    async fn exchange(&self, path: &str, body: Vec<u8>) -> Result<Bytes, Failed> {
        let mut request = self
            .client
            .post(&self.dialect.url(&self.options.base_url, path))
            .json(body);
        if let Some(key) = &self.options.api_key {
            request = request.bearer(key);
        }
        let response = request.send().await.map_err(|error| transport(&error))?;
        if !response.is_success() {
            let wait = response
                .header("retry-after")
                .and_then(|seconds| seconds.trim().parse().ok())
                .map(|seconds: u64| Duration::from_secs(seconds.min(RETRY_AFTER_S_MAX)));
            return Err(Failed {
                error: self.refusal(response.status()),
                wait,
            });
        }
        Ok(response
            .read_bounded(ANSWER_BYTES_MAX)
            .await
            .map_err(|error| transport(&error))?)
    }

    /// What a status means. The server's own words are left out: they may repeat the text, or the key.
    fn refusal(&self, status: u16) -> EmbedError {
        let model = &self.options.model;
        match status {
            408 | 425 | 429 | 500 | 502..=599 => EmbedError::Unavailable(format!("status {status}")),
            401 | 403 => EmbedError::Refused(format!("status {status}: set a key that may use `{model}`")),
            404 => EmbedError::Refused(format!(
                "status 404: it has no model `{model}`, or no such path ({})",
                self.dialect.hint(model)
            )),
            413 => EmbedError::Refused(
                "status 413: the batch is too large; make `batch_texts_max` less".to_owned(),
            ),
            300..=399 => EmbedError::Refused(format!(
                "status {status}: it points elsewhere; set `base_url` to the address itself"
            )),
            _ => EmbedError::Refused(format!(
                "status {status}: is `{model}` an embedding model, and the text within its limit of {} tokens?",
                self.context_tokens()
            )),
        }
    }

    /// Asks once for the vectors of a batch.
    async fn ask(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, Failed> {
        let body = self.dialect.request(&dialect::Ask {
            model: self.profile.asked(&self.options.model, purpose),
            texts,
            context: self.context_tokens(),
            dimensions: self.options.dimensions,
        });
        let body = self.exchange(self.dialect.path(), body).await?;
        let (dialect, count) = (self.dialect, texts.len());
        let vectors = if body.len() > INLINE_BYTES_MAX {
            tokio::task::spawn_blocking(move || answer::vectors(dialect, &body, count))
                .await
                .unwrap_or_else(|_| Err("it could not be read".to_owned()))
        } else {
            answer::vectors(dialect, &body, count)
        }
        .map_err(EmbedError::Broken)?;
        self.check_dimensions(&vectors)?;
        Ok(vectors)
    }

    fn check_dimensions(&self, vectors: &[Vec<f32>]) -> Result<(), EmbedError> {
        for vector in vectors {
            let expected = *self.dimensions.get_or_init(|| vector.len());
            if vector.len() != expected {
                return Err(EmbedError::Broken(format!(
                    "a vector has {} numbers where those of `{}` have {expected}",
                    vector.len(),
                    self.options.model
                )));
            }
        }
        Ok(())
    }

    async fn query(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let asked = async {
            let _turn = turn(&self.queries).await?;
            self.ask(texts, Purpose::Query)
                .await
                .map_err(|failed| failed.error)
        };
        within(self.options.query_timeout_ms, asked).await
    }

    async fn document(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut tries = 0;
        loop {
            let asked = {
                let _turn = turn(&self.documents).await?;
                let asked = async { Ok(self.ask(texts, Purpose::Document).await) };
                within(self.options.document_timeout_ms, asked)
                    .await
                    .unwrap_or_else(|error| Err(error.into()))
            };
            tries += 1;
            match asked {
                Err(Failed {
                    error: EmbedError::Unavailable(_),
                    wait,
                }) if tries < TRIES_MAX => {
                    let wait = wait.unwrap_or_default().max(self.pause(tries));
                    tokio::time::sleep(wait).await;
                }
                asked => return asked.map_err(|failed| failed.error),
            }
        }
    }

    /// The wait before the next try, with some chance in it: what failed together is not tried together.
    fn pause(&self, tries: u32) -> Duration {
        let mut chance = [0];
        self.entropy.fill(&mut chance);
        let whole = RETRY_MS << (tries - 1);
        Duration::from_millis(whole + whole / 2 * u64::from(chance[0]) / 255)
    }
}

#[async_trait]
impl Embedder for Remote {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let tokens_max = self.text_tokens_max();
        let prefix = self.profile.prefix(purpose);
        let mut places = Vec::with_capacity(texts.len());
        let mut wanted = Vec::with_capacity(texts.len());
        for (place, text) in texts.iter().enumerate() {
            // A server's answer to no text is an error, or no vector.
            if text.trim().is_empty() {
                continue;
            }
            let tokens = self.estimate.count(text);
            if tokens > tokens_max {
                return Err(EmbedError::Refused(format!(
                    "a text has up to {tokens} tokens, and `{}` reads {tokens_max}: embed parts of it",
                    self.options.model
                )));
            }
            places.push(place);
            wanted.push(format!("{prefix}{text}"));
        }
        let requests = batches(&wanted, self.options.batch_texts_max)
            .into_iter()
            .map(|batch| {
                let texts = wanted.get(batch).unwrap_or_default();
                async move {
                    match purpose {
                        Purpose::Query => self.query(texts).await,
                        Purpose::Document => self.document(texts).await,
                    }
                }
            });
        let answers = futures_util::future::try_join_all(requests).await?;
        if !answers.is_empty() && self.answered.set(()).is_ok() {
            // The server may have come up since it was first asked. One that describes nothing is not asked again.
            self.learn_context().await;
        }
        let mut vectors = vec![None; texts.len()];
        for (place, vector) in places.into_iter().zip(answers.into_iter().flatten()) {
            if let Some(slot) = vectors.get_mut(place) {
                *slot = Some(vector);
            }
        }
        Ok(vectors)
    }

    fn tokens(&self, text: &str) -> usize {
        self.estimate.count(text)
    }

    fn state(&self) -> EmbedderState {
        match self.answered.get() {
            Some(()) => EmbedderState::Ready,
            None => EmbedderState::Untried,
        }
    }
}

/// Runs of texts that go into one request each.
fn batches(texts: &[String], texts_max: usize) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (place, text) in texts.iter().enumerate() {
        bytes += text.len();
        match batches.last_mut() {
            Some(batch) if batch.len() < texts_max && bytes <= BATCH_BYTES_MAX => batch.end = place + 1,
            Some(_) | None => {
                bytes = text.len();
                batches.push(place..place + 1);
            }
        }
    }
    batches
}

async fn turn(lane: &Semaphore) -> Result<tokio::sync::SemaphorePermit<'_>, EmbedError> {
    lane.acquire()
        .await
        .map_err(|_| EmbedError::Unavailable("it is being shut down".to_owned()))
}

async fn within<T>(
    limit_ms: u64,
    asked: impl Future<Output = Result<T, EmbedError>>,
) -> Result<T, EmbedError> {
    timeout(Duration::from_millis(limit_ms), asked)
        .await
        .unwrap_or_else(|_| Err(EmbedError::Unavailable(format!("no answer within {limit_ms} ms"))))
}

fn transport(error: &http::Error) -> EmbedError {
    match error {
        http::Error::Connect(_) | http::Error::ConnectTimeout | http::Error::Broken(_) => {
            EmbedError::Unavailable(error.to_string())
        }
        http::Error::TooLarge { .. } => EmbedError::Broken(error.to_string()),
        http::Error::Build(_) | http::Error::Request(_) => EmbedError::Refused(error.to_string()),
    }
}

//! One attempt at one provider: the request out, the answer in, both within their time limits.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tidegate_core::{
    clock::{Clock, Entropy},
    model::{ModelEvent, ModelRequest},
};
use tidegate_io::http::{OperatorClient, Request, Response};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    answer::Answer,
    body,
    fault::{Failure, retry_after},
    lines::Lines,
    ollama,
    options::{Dialect, Limits},
    providers::{Provider, Thinking},
    sse::Events,
};

/// How much of an error body is read.
pub(crate) const ERROR_BYTES_MAX: usize = 64 << 10;
/// How long reading an error body may take.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the usage may take after the finish reason; some servers keep the connection open.
const AFTER_FINISH: Duration = Duration::from_secs(3);
/// How long the end of the body may take after the last event. Only a body read to its end leaves a
/// connection that can be used again.
const DRAIN: Duration = Duration::from_millis(20);
/// The longest line of Ollama's dialect.
const LINE_BYTES_MAX: usize = 16 << 20;
/// What a whole body may hold beside the answer, and for escapes in it.
const WHOLE_OVERHEAD: usize = 1 << 20;

/// What an attempt needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) client: &'a OperatorClient,
    pub(crate) provider: &'a Provider,
    pub(crate) request: &'a ModelRequest,
    pub(crate) limits: &'a Limits,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) entropy: &'a Arc<dyn Entropy>,
    /// What is known of how the model thinks.
    pub(crate) thinking: Option<Thinking>,
    /// When the whole question must be answered.
    pub(crate) total_at: Instant,
}

/// An answer on its way. Dropping it ends the exchange.
#[derive(Debug)]
pub(crate) struct Live {
    response: Option<Response>,
    /// What ended the answer; it is told after everything that came before it.
    failure: Option<Failure>,
    reader: Reader,
    answer: Answer,
    dialect: Dialect,
    model: String,
    idle: Duration,
    /// When the first event must be there; `None` once it is.
    first_at: Option<Instant>,
    total_at: Instant,
    entropy: Arc<dyn Entropy>,
}

#[derive(Debug)]
enum Reader {
    Events(Events),
    Lines(Lines),
    Whole { body: Vec<u8>, bytes_max: usize },
}

impl Attempt<'_> {
    /// Sends the request and waits for the first event that carries something.
    pub(crate) async fn run(self) -> Result<(ModelEvent, Live), Failure> {
        let provider = self.provider;
        let result = self.first_event().await;
        result.map_err(|failure| provider.release(failure))
    }

    async fn first_event(self) -> Result<(ModelEvent, Live), Failure> {
        let mut live = self.open().await?;
        match live.next().await {
            Some(Ok(event)) => Ok((event, live)),
            Some(Err(failure)) => Err(failure),
            None => Err(Failure::malformed("the answer is empty")),
        }
    }

    async fn open(self) -> Result<Live, Failure> {
        let (path, body) = match self.provider.dialect {
            Dialect::Openai => (
                "/chat/completions",
                text(&body::openai(self.provider, self.request)?)?,
            ),
            Dialect::Ollama => (
                "/api/chat",
                text(&ollama::body(self.provider, self.request, self.thinking)?)?,
            ),
        };
        // Without streaming the headers come when the answer is whole, so only the total counts.
        let first_at = if self.request.stream {
            self.total_at.min(Instant::now() + self.limits.first_byte)
        } else {
            self.total_at
        };
        let url = format!("{}{path}", self.provider.base_url);
        let outgoing = authorize(self.client.post(&url), self.provider).json(body);
        let response = timeout_at(first_at, outgoing.send())
            .await
            .map_err(|_| Failure::timeout("no answer began in time"))?
            .map_err(|error| Failure::transport(&error))?;
        let model = &self.request.model.name;
        if !response.is_success() {
            return Err(refused(response, model, self.clock).await);
        }
        Ok(Live {
            reader: Reader::choose(&response, self.provider.dialect, self.request.stream, self.limits),
            response: Some(response),
            failure: None,
            answer: Answer::new(self.request, self.limits),
            dialect: self.provider.dialect,
            model: model.clone(),
            idle: self.limits.idle,
            first_at: Some(first_at),
            total_at: self.total_at,
            entropy: Arc::clone(self.entropy),
        })
    }
}

/// Adds what makes the provider accept a request.
pub(crate) fn authorize(mut request: Request, provider: &Provider) -> Request {
    if let Some(key) = &provider.api_key {
        request = request.bearer(key);
    }
    for (name, value) in &provider.headers {
        request = request.secret_header(name, value);
    }
    request
}

async fn refused(response: Response, model: &str, clock: &dyn Clock) -> Failure {
    let status = response.status();
    let wait = retry_after(&response, clock);
    let body = match timeout(ERROR_TIMEOUT, response.read_prefix(ERROR_BYTES_MAX)).await {
        Ok(Ok((body, _))) => body,
        // The status alone has to do.
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    Failure::status(status, &body, wait, model)
}

impl Reader {
    /// What the server says it sends counts for more than what it was asked for.
    fn choose(response: &Response, dialect: Dialect, streamed: bool, limits: &Limits) -> Self {
        let media_type = response
            .header("content-type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let is_whole = if media_type.contains("event-stream") || media_type.contains("ndjson") {
            false
        } else {
            !streamed || media_type.contains("application/json")
        };
        if is_whole {
            return Self::Whole {
                body: Vec::new(),
                bytes_max: limits
                    .answer_bytes_max
                    .saturating_mul(2)
                    .saturating_add(WHOLE_OVERHEAD),
            };
        }
        match dialect {
            Dialect::Openai => Self::Events(Events::new()),
            Dialect::Ollama => Self::Lines(Lines::new(LINE_BYTES_MAX)),
        }
    }
}

impl Live {
    /// The next event; `None` after the last one, or after an error.
    pub(crate) async fn next(&mut self) -> Option<Result<ModelEvent, Failure>> {
        loop {
            if let Some(event) = self.answer.next() {
                self.first_at = None;
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(failure));
            }
            let mut response = self.response.take()?;
            match self.step(&mut response).await {
                Ok(true) => drain(response).await,
                Ok(false) => self.response = Some(response),
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    /// Reads one piece; says whether the answer has ended.
    async fn step(&mut self, response: &mut Response) -> Result<bool, Failure> {
        let ended = match self.timed(response.chunk()).await? {
            Some(piece) => self.take(&piece)?,
            None => self.take_end()?,
        };
        if ended {
            self.answer.end(&*self.entropy)?;
        }
        Ok(ended)
    }

    /// The next piece of the body, `None` at its end. Once the finish reason is there, nothing that goes
    /// wrong can take it back.
    async fn timed(
        &self,
        chunk: impl Future<Output = Result<Option<Bytes>, tidegate_io::http::Error>>,
    ) -> Result<Option<Bytes>, Failure> {
        let now = Instant::now();
        let finished = self.answer.has_finish();
        let (limit, what) = match self.first_at {
            Some(at) => (at, "no token came in time"),
            None => (now + self.idle, "the stream fell silent"),
        };
        let limit = if finished {
            limit.min(now + AFTER_FINISH)
        } else {
            limit
        };
        match timeout_at(limit.min(self.total_at), chunk).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(_)) | Err(_) if finished => Ok(None),
            Ok(Err(error)) => Err(Failure::transport(&error)),
            Err(_) if self.total_at <= limit => Err(Failure::timeout("the answer took too long in all")),
            Err(_) => Err(Failure::timeout(what)),
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<bool, Failure> {
        match &mut self.reader {
            Reader::Events(events) => events.push(piece).map_err(|_| too_long("event"))?,
            Reader::Lines(lines) => lines.push(piece).map_err(|_| too_long("line"))?,
            Reader::Whole { body, bytes_max } => {
                if body.len() + piece.len() > *bytes_max {
                    return Err(too_long("body"));
                }
                body.extend_from_slice(piece);
                return Ok(false);
            }
        }
        self.fold()
    }

    fn take_end(&mut self) -> Result<bool, Failure> {
        match &mut self.reader {
            Reader::Events(events) => events.finish(),
            Reader::Lines(lines) => lines.finish(),
            Reader::Whole { body, .. } => {
                let value = json(body)?;
                match self.dialect {
                    Dialect::Openai => self.answer.whole(&value)?,
                    Dialect::Ollama => self.answer.ollama(&value)?,
                }
                return Ok(true);
            }
        }
        self.fold()?;
        Ok(true)
    }

    /// Takes in what is complete; true at `[DONE]`, after which nothing counts.
    fn fold(&mut self) -> Result<bool, Failure> {
        match &mut self.reader {
            Reader::Whole { .. } => Ok(false),
            Reader::Events(events) => {
                while let Some(event) = events.next().map_err(|_| too_long("event"))? {
                    if event.data.trim() == "[DONE]" {
                        return Ok(true);
                    }
                    if event.name == "error" {
                        return Err(Failure::event(&event.data, &self.model));
                    }
                    self.answer.chunk(&json(event.data.as_bytes())?)?;
                }
                Ok(false)
            }
            Reader::Lines(lines) => {
                while let Some(line) = lines.next() {
                    if !line.trim().is_empty() {
                        self.answer.ollama(&json(line.as_bytes())?)?;
                    }
                }
                // The last line says so itself; the end of the body brings nothing more.
                Ok(self.answer.has_finish())
            }
        }
    }
}

async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // A body that does not end now costs the connection, no more.
    drop(timeout(DRAIN, rest).await);
}

fn text(body: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(body)
        .map_err(|error| Failure::malformed(format!("the request cannot be written: {error}")))
}

fn json(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(bytes).map_err(|error| Failure::malformed(format!("it is not JSON: {error}")))
}

fn too_long(what: &str) -> Failure {
    Failure::malformed(format!("a {what} of it is too long"))
}

//! What went wrong at a provider, read from whichever of the many shapes it says it in.

mod credentials;

use std::time::Duration;

use serde_json::Value;
use tidegate_core::{
    clock::{Clock, Timestamp},
    model::ModelError,
};
use tidegate_io::http;

pub(crate) use self::credentials::Credentials;

/// How much of a provider's words is kept, in characters.
const MESSAGE_CHARS_MAX: usize = 500;
/// The longest `retry-after` that is believed: a day.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// What to do about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// The same provider may do better in a moment.
    Retry,
    /// Another provider may do better, this one will not.
    Elsewhere,
    /// The request itself is at fault.
    Never,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) error: ModelError,
    pub(crate) again: Again,
    /// How long the provider asks to be left alone, where it says.
    pub(crate) wait: Option<Duration>,
    /// The provider's words where the error does not repeat them: what a server says of its own failure (the
    /// address of the machine behind it, a stack trace) is for the operator alone.
    words: String,
}

impl Failure {
    /// A failure that the provider has said nothing more about.
    pub(crate) fn new(error: ModelError, again: Again) -> Self {
        Self {
            error,
            again,
            wait: None,
            words: String::new(),
        }
    }

    /// The answer makes no sense.
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::new(ModelError::Malformed(what.into()), Again::Elsewhere)
    }

    /// A time limit was met.
    pub(crate) fn timeout(what: impl Into<String>) -> Self {
        Self::new(ModelError::Timeout(what.into()), Again::Elsewhere)
    }

    /// A connection did not come about, or broke.
    pub(crate) fn transport(error: &http::Error) -> Self {
        match error {
            http::Error::ConnectTimeout => {
                Self::new(ModelError::Timeout("connecting".to_owned()), Again::Retry)
            }
            http::Error::Connect(_) | http::Error::Broken(_) => {
                Self::new(ModelError::Unavailable(error.to_string()), Again::Retry)
            }
            http::Error::TooLarge { .. } => Self::malformed(error.to_string()),
            http::Error::Build(_) | http::Error::Request(_) => {
                Self::new(ModelError::Unavailable(error.to_string()), Again::Elsewhere)
            }
        }
    }

    /// An answer whose status is no success.
    pub(crate) fn status(status: u16, body: &[u8], retry_after: Option<Duration>, model: &str) -> Self {
        let told = match serde_json::from_slice::<Value>(body) {
            Ok(value) => Told::read(&value),
            Err(_) => Told {
                message: String::from_utf8_lossy(body).into_owned(),
                ..Told::default()
            },
        };
        Self {
            wait: retry_after,
            ..told.judge(status, retry_after, model)
        }
    }

    /// An error object inside an answer that began as a success. `None`: there is no error in it.
    pub(crate) fn inside(value: &Value, model: &str) -> Option<Self> {
        if value.get("error").is_none_or(Value::is_null) {
            return None;
        }
        let told = Told::read(value);
        let status = told.status();
        Some(told.judge(status, None, model))
    }

    /// An event the provider itself calls an error.
    pub(crate) fn event(data: &str, model: &str) -> Self {
        let told = match serde_json::from_str::<Value>(data) {
            Ok(value) => Told::read(&value),
            Err(_) => Told {
                message: data.to_owned(),
                ..Told::default()
            },
        };
        let status = told.status();
        told.judge(status, None, model)
    }

    /// The failure as it may leave this crate: the credentials cut out of the provider's words, and only then
    /// the words cut to a bounded length, so that no half of a credential stays.
    pub(crate) fn without(mut self, credentials: &Credentials) -> Self {
        let settle = |text: &mut String| *text = clip(&credentials.cut(text));
        settle(&mut self.words);
        match &mut self.error {
            ModelError::Rejected { message, param, .. } => {
                settle(message);
                param.as_mut().map(settle);
            }
            ModelError::RateLimited { message, .. }
            | ModelError::Unavailable(message)
            | ModelError::Malformed(message)
            | ModelError::Timeout(message)
            | ModelError::NotFound(message)
            | ModelError::NotConfigured(message) => settle(message),
            ModelError::ContextLength { .. } | ModelError::Credentials { .. } | ModelError::Paused { .. } => {
            }
        }
        self
    }

    /// Tells the operator what the error keeps from the caller. Of a failure [`Failure::without`] credentials.
    pub(crate) fn note(&self, provider: &str) {
        if !self.words.is_empty() {
            tracing::debug!(provider, words = self.words, "a provider says why it failed");
        }
    }
}

/// What an error body says.
#[derive(Debug, Clone, Default)]
struct Told {
    message: String,
    kind: String,
    code: String,
    param: Option<String>,
    limit_tokens: Option<u64>,
    prompt_tokens: Option<u64>,
}

impl Told {
    /// Reads `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, and lists of these.
    fn read(value: &Value) -> Self {
        Self::read_one(value.as_array().and_then(|list| list.first()).unwrap_or(value))
    }

    fn read_one(value: &Value) -> Self {
        let inner = value
            .get("error")
            .filter(|error| !error.is_null())
            .unwrap_or(value);
        if let Some(text) = inner.as_str() {
            // Ollama hands on what the process behind it said, an error body in a string.
            if let Ok(within @ Value::Object(_)) = serde_json::from_str(text) {
                return Self::read_one(&within);
            }
            return Self {
                message: text.to_owned(),
                code: scalar(value.get("code").or(value.get("status_code"))),
                ..Self::default()
            };
        }
        let words = ["message", "detail", "msg", "error"]
            .iter()
            .find_map(|key| inner.get(key));
        Self {
            message: words.map_or_else(|| inner.to_string(), text_of),
            kind: scalar(inner.get("type")),
            code: scalar(
                inner
                    .get("code")
                    .filter(|code| !code.is_null())
                    .or(inner.get("status")),
            ),
            param: inner.get("param").and_then(Value::as_str).map(str::to_owned),
            limit_tokens: inner.get("n_ctx").and_then(Value::as_u64),
            prompt_tokens: inner.get("n_prompt_tokens").and_then(Value::as_u64),
        }
    }

    /// The HTTP status that an error inside an answer stands for.
    fn status(&self) -> u16 {
        if let Ok(status @ 400..=599) = self.code.parse() {
            return status;
        }
        let words = format!("{} {}", self.kind, self.code).to_ascii_lowercase();
        let table = [
            ("rate_limit", 429),
            ("insufficient_quota", 429),
            ("invalid_api_key", 401),
            ("authentication", 401),
            ("permission", 403),
            ("not_found", 404),
            ("context_length", 400),
            ("exceed_context", 400),
            ("invalid_request", 400),
            ("badrequest", 400),
            ("overloaded", 503),
        ];
        table
            .iter()
            .find(|(word, _)| words.contains(word))
            .map_or(502, |(_, status)| *status)
    }

    fn judge(self, status: u16, retry_after: Option<Duration>, model: &str) -> Failure {
        // Only the beginning counts: further on a server may repeat the question.
        let words = format!("{} {} {}", self.code, self.kind, clip(&self.message)).to_ascii_lowercase();
        match status {
            429 => {
                let again = if words.contains("insufficient_quota") {
                    Again::Elsewhere
                } else {
                    Again::Retry
                };
                let error = ModelError::RateLimited {
                    retry_after,
                    message: self.message,
                };
                Failure::new(error, again)
            }
            401 | 403 => Failure::new(ModelError::Credentials { status }, Again::Elsewhere),
            _ if is_overflow(&words) => Failure::new(self.overflow(), Again::Never),
            404 if words.contains("model") => not_found(model),
            404 => {
                let hint = "it answers 404 here; check the provider's base_url";
                Failure::new(ModelError::Unavailable(hint.to_owned()), Again::Elsewhere)
            }
            400..=499 if names_no_model(&words) => not_found(model),
            402 => Failure::new(ModelError::Unavailable(self.message), Again::Elsewhere),
            408 | 504 => Failure::new(
                ModelError::Timeout(format!("it gave up ({status})")),
                Again::Retry,
            ),
            400..=499 => {
                let error = ModelError::Rejected {
                    status,
                    message: self.message,
                    param: self.param,
                };
                Failure::new(error, Again::Never)
            }
            500..=599 => {
                let text = format!("it reported an error of its own ({status})");
                Failure {
                    words: self.message,
                    ..Failure::new(ModelError::Unavailable(text), Again::Retry)
                }
            }
            _ => {
                let text = format!("unexpected status {status}; check the provider's base_url");
                Failure::new(ModelError::Unavailable(text), Again::Elsewhere)
            }
        }
    }

    fn overflow(&self) -> ModelError {
        let words = clip(&self.message).to_ascii_lowercase();
        let limits = [
            "context length is ",
            "context size (",
            "context size of ",
            "context window of ",
            "model length of ",
            "tokens allowed (",
            "model with ",
            "tokens > ",
            "limit of ",
        ];
        let prompts = [
            "resulted in ",
            "requested ",
            "too long: ",
            "token count (",
            "request (",
            "prompt contains ",
            "length of ",
        ];
        ModelError::ContextLength {
            limit_tokens: self.limit_tokens.or_else(|| number_after(&words, &limits)),
            prompt_tokens: self.prompt_tokens.or_else(|| number_after(&words, &prompts)),
        }
    }
}

fn not_found(model: &str) -> Failure {
    Failure::new(ModelError::NotFound(model.to_owned()), Again::Elsewhere)
}

/// The wordings of several servers for "there is no such model" under a status that does not say so.
fn names_no_model(words: &str) -> bool {
    [
        "model_not_found",
        "invalid model name",
        "unknown model",
        "no such model",
    ]
    .iter()
    .any(|wording| words.contains(wording))
        || (words.contains("model") && (words.contains("does not exist") || words.contains("not found")))
}

/// The wordings of several servers for "the prompt is too long".
fn is_overflow(words: &str) -> bool {
    [
        "context_length_exceeded",
        "exceed_context_size",
        "context length",
        "context window",
        "context size",
        "prompt is too long",
        "input is too long",
        "input tokens exceed",
        "maximum model length",
        "reduce the length of",
        "exceeds the maximum number of tokens",
        "prompt too long",
    ]
    .iter()
    .any(|wording| words.contains(wording))
}

/// The first whole number that follows one of the wordings directly.
fn number_after(words: &str, wordings: &[&str]) -> Option<u64> {
    wordings.iter().find_map(|wording| {
        let rest = words.split_once(wording)?.1;
        let digits: String = rest
            .chars()
            .filter(|letter| *letter != ',')
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    })
}

/// A scalar as text: some servers write numbers where the contract says strings.
fn scalar(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => String::new(),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn clip(text: &str) -> String {
    let text = text.trim();
    text.chars()
        .take(MESSAGE_CHARS_MAX)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// Reads `retry-after-ms`, and `retry-after` (RFC 9110, section 10.2.3): a number of seconds, or a date, which
/// is as far away as our clock says.
pub(crate) fn retry_after(response: &http::Response, clock: &dyn Clock) -> Option<Duration> {
    let header = |name: &str| response.header(name).map(str::trim);
    read_wait(header("retry-after-ms"), header("retry-after"), clock)
}

fn read_wait(millis: Option<&str>, seconds_or_date: Option<&str>, clock: &dyn Clock) -> Option<Duration> {
    let number = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let date = |text: &str| {
        let at = Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()?;
        // A date that has passed asks for no wait at all.
        Some(Duration::try_from(at.duration_since(clock.now())).unwrap_or_default())
    };
    millis
        .and_then(number)
        .map(|thousandfold| thousandfold / 1_000)
        .or_else(|| seconds_or_date.and_then(|text| number(text).or_else(|| date(text))))
        .map(|wait| wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests;

//! What is said to a chat model, and what it answers. No wire format: an adapter translates.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    error::{Fault, Retry},
    message::Message,
    tool::ToolCall,
    usage::{Role, Usage},
};

/// A JSON Schema. Clones share it, and its text is written once however often it is sent: the server's tools go
/// along with every question.
#[derive(Clone)]
pub struct Schema(Arc<SharedSchema>);

struct SharedSchema {
    value: Value,
    text: OnceLock<Box<RawValue>>,
}

impl Schema {
    /// The schema as a value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The schema as JSON text.
    pub fn text(&self) -> &RawValue {
        self.0.text.get_or_init(|| {
            // A value always has a text; the empty schema, which allows everything, stands in for none.
            to_raw_value(&self.0.value).unwrap_or_else(|_| RawValue::TRUE.to_owned())
        })
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        Self(Arc::new(SharedSchema {
            value,
            text: OnceLock::new(),
        }))
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().get())
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.value() == other.value()
    }
}

impl PartialEq<Value> for Schema {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

/// A tool as a model sees it; the server's and the client's look alike here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Schema,
    /// The wire's `strict` flag, where a client set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Whether the model must, may or must not call tools.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call some tool.
    Required,
    /// It must call this tool.
    Named(String),
}

/// How to sample. `None` leaves it to the model's server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// 0 to 1.
    pub top_p: Option<f64>,
    /// −2 to 2.
    pub presence_penalty: Option<f64>,
    /// −2 to 2.
    pub frequency_penalty: Option<f64>,
    /// Answer tokens at most.
    pub tokens_max: Option<u64>,
    /// Up to four stop texts.
    pub stop: Vec<String>,
    /// For repeatable sampling.
    pub seed: Option<i64>,
    /// The wire's word: `low`, `medium`, `high`, ….
    pub reasoning_effort: Option<String>,
    /// The wire's `logit_bias`.
    pub logit_bias: Option<Map<String, Value>>,
    /// Fields outside the contract; the provider's allow list decides which go on.
    pub extra: Map<String, Value>,
}

/// One question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The model, as [`crate::port::ChatModel::resolve`] named it.
    pub model: ModelRef,
    /// The system prompt; empty means none.
    pub system: String,
    /// The history, oldest first.
    pub messages: Vec<Message>,
    /// The tools offered. Shared: they are the same for many questions.
    pub tools: Arc<[Arc<ToolSchema>]>,
    /// Whether it must call one.
    pub tool_choice: ToolChoice,
    /// Whether it may issue several calls in one reply.
    pub parallel_tool_calls: bool,
    /// How to sample.
    pub sampling: Sampling,
    /// The wire's `response_format`, for a final answer only.
    pub response_format: Option<Value>,
    /// Whether text should arrive as it is made.
    pub stream: bool,
    /// What the call is for.
    pub role: Role,
}

/// A model that exists for this caller: which of the configured upstreams, and its name there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelRef {
    /// The name the client used; it is echoed in answers.
    pub requested: String,
    /// The configured provider.
    pub provider: String,
    /// The model's name there.
    pub name: String,
    /// False where tools must be described in the prompt and calls arrive as text markers.
    pub native_tools: bool,
    /// The context window in tokens, where known.
    pub context_tokens: Option<u64>,
}

/// A model as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its id.
    pub id: String,
    /// Seconds since 1970; 0 where unknown.
    pub created: i64,
    /// Who offers it.
    pub owned_by: String,
    /// The context window in tokens, where known.
    pub context_tokens: Option<u64>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It met a token limit.
    Length,
    /// It waits for tool results.
    ToolCalls,
    /// A filter of the provider's.
    ContentFilter,
}

/// One event of a model's answer. The adapter has already normalised ids, indices and argument forms.
/// The last event of a complete answer is [`ModelEvent::Finished`]; a stream without it has failed.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// Another model answers than the one that was asked, which could not be reached. Comes first, and once: what
    /// follows is to be read as that model writes it.
    AnsweredBy(ModelRef),
    /// Visible text.
    Text(String),
    /// Reasoning that the provider keeps apart.
    Reasoning(String),
    /// A whole native tool call, as soon as it is complete.
    Call(ToolCall),
    /// The end.
    Finished {
        /// Why it stopped, normalised: [`FinishReason::ToolCalls`] exactly when calls were made.
        reason: FinishReason,
        /// What it cost, where the provider says.
        usage: Option<Usage>,
    },
}

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No model is configured; the text says what to type.
    #[error("{0}")]
    NotConfigured(String),
    /// No such model here.
    #[error("the model `{0}` does not exist or is not available here")]
    NotFound(String),
    /// The provider finds the request wrong: status, its words, and the field where it named one.
    #[error("the model provider refused the request ({status}): {message}")]
    Rejected {
        /// The provider's status, 400 to 499.
        status: u16,
        /// Its words.
        message: String,
        /// The field it names.
        param: Option<String>,
    },
    /// The prompt is longer than the model's window.
    #[error("the prompt is longer than the model's context window")]
    ContextLength {
        /// The window in tokens, where known.
        limit_tokens: Option<u64>,
        /// The prompt in tokens, where known.
        prompt_tokens: Option<u64>,
    },
    /// The provider asks us to slow down.
    #[error("the model provider is limiting requests: {message}")]
    RateLimited {
        /// How long to wait, where it says.
        retry_after: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// The provider does not accept our credentials.
    #[error("the model provider rejected our credentials ({status})")]
    Credentials {
        /// 401 or 403.
        status: u16,
    },
    /// The provider cannot be reached, or failed on its side.
    #[error("the model provider failed: {0}")]
    Unavailable(String),
    /// Repeated failures; calls are paused.
    #[error("the model provider is paused after repeated failures; next try in {} s", retry_after.as_secs())]
    Paused {
        /// Until the next try.
        retry_after: Duration,
    },
    /// A time limit was met; the text names which.
    #[error("the model provider was too slow: {0}")]
    Timeout(String),
    /// The answer makes no sense, or broke off.
    #[error("the model provider's answer is not usable: {0}")]
    Malformed(String),
}

impl ModelError {
    /// The failure's name in logs: a provider's own words may repeat what people wrote.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotConfigured(_) => "not_configured",
            Self::NotFound(_) => "not_found",
            Self::Rejected { .. } => "rejected",
            Self::ContextLength { .. } => "context_length",
            Self::RateLimited { .. } => "rate_limited",
            Self::Credentials { .. } => "credentials",
            Self::Unavailable(_) => "unavailable",
            Self::Paused { .. } => "paused",
            Self::Timeout(_) => "timeout",
            Self::Malformed(_) => "malformed",
        }
    }
}

impl ModelError {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotFound(_) | Self::Rejected { .. } | Self::ContextLength { .. } => Fault::Caller,
            Self::NotConfigured(_) | Self::Credentials { .. } => Fault::Us,
            Self::RateLimited { .. }
            | Self::Unavailable(_)
            | Self::Paused { .. }
            | Self::Timeout(_)
            | Self::Malformed(_) => Fault::Upstream,
        }
    }

    /// Whether trying again can help.
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotFound(_)
            | Self::Rejected { .. }
            | Self::ContextLength { .. }
            | Self::NotConfigured(_)
            | Self::Credentials { .. } => Retry::Never,
            Self::RateLimited { retry_after, .. } => {
                retry_after.map_or(Retry::After(Duration::from_secs(1)), Retry::After)
            }
            Self::Paused { retry_after } => Retry::After(*retry_after),
            Self::Unavailable(_) | Self::Timeout(_) | Self::Malformed(_) => Retry::Now,
        }
    }
}

//! What the operator can set about models, with the defaults.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::{Deserialize, Serialize};
use tidegate_core::{secret::Secret, usage::Prices};
use tidegate_io::http;

/// Which API a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `POST {base_url}/chat/completions`, as OpenAI defined it.
    Openai,
    /// `POST {base_url}/api/chat`, Ollama's own.
    Ollama,
}

/// Under which name a provider reads the bound on answer tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensField {
    /// The older name, which nearly every server reads.
    MaxTokens,
    /// The newer one, which OpenAI's reasoning models insist on.
    MaxCompletionTokens,
}

impl TokensField {
    /// The field's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// A model at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The configured provider.
    pub provider: String,
    /// The model's name there.
    pub model: String,
}

/// One provider. What is not set comes from its row in the table of known services.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderOptions {
    /// The row of known services to take defaults from. Unset: the row of the base URL's host, or of the name of a
    /// service that people run themselves; without a base URL the row of the provider's own name.
    pub profile: Option<String>,
    /// Where it answers, up to and including `/v1`.
    pub base_url: Option<String>,
    /// The credential, already read from wherever the configuration said it is.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// Which API it speaks.
    pub dialect: Option<Dialect>,
    /// The model to use when none is named.
    pub model: Option<String>,
    /// The context window in tokens. Ollama is told to use it; unset, its window is as large as the prompt needs,
    /// up to the model's own.
    pub context_tokens: Option<u64>,
    /// Whether its models call tools natively; false describes tools in the prompt instead.
    pub native_tools: Option<bool>,
    /// Under which name it reads the bound on answer tokens.
    pub tokens_field: Option<TokensField>,
    /// No answer may be asked for with more tokens than this.
    pub tokens_max: Option<u64>,
    /// Request fields outside the contract that are handed on to it.
    pub extra: Option<Vec<String>>,
    /// Headers for every request to it; the values are treated as secrets.
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for ProviderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderOptions")
            .field("profile", &self.profile)
            .field("api_key", &self.api_key)
            .field("dialect", &self.dialect)
            .field("model", &self.model)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Everything about models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The providers by name.
    pub providers: BTreeMap<String, ProviderOptions>,
    /// The provider that unqualified model names belong to. Unset: the first by name.
    pub default_provider: Option<String>,
    /// Names for models; `tidegate` may be among them.
    pub aliases: BTreeMap<String, Target>,
    /// Where to turn when a model cannot be reached: `provider:model`, in order.
    pub fallbacks: Vec<String>,
    /// What models cost, by a model's name or by its provider's for all of them.
    pub prices: Prices,
    /// How long connecting may take.
    pub connect_timeout_ms: u64,
    /// How long the first token may take; a provider that does not stream must have answered whole by then.
    /// Generous: a local model may first read a long prompt. A question that asks for no stream is bounded by
    /// `total_timeout_ms` alone; the engine asks none.
    pub first_byte_timeout_ms: u64,
    /// How long a stream that has begun may be silent.
    pub idle_timeout_ms: u64,
    /// How long one question may take in all, retries and fallbacks included.
    pub total_timeout_ms: u64,
    /// How often one provider is asked again before anything of an answer has come.
    pub retries_max: u32,
    /// How long to wait before the first retry; the wait doubles.
    pub retry_initial_delay_ms: u64,
    /// The longest wait before a retry; a provider that asks for more is not waited for.
    pub retry_delay_max_ms: u64,
    /// By which part of itself a wait is made longer or shorter at random, 0 to 1.
    pub retry_jitter_ratio: f64,
    /// After so many failures in a row a provider is paused; 0 means never.
    pub breaker_failures: u32,
    /// How long it is paused.
    pub breaker_open_ms: u64,
    /// How long a provider's model list is believed, in seconds.
    pub models_cache_s: u64,
    /// The longest answer, in bytes of text, reasoning and arguments.
    pub answer_bytes_max: usize,
    /// The longest arguments of one call, in bytes; longer ones are answered with a correction.
    pub arguments_bytes_max: usize,
    /// The most calls in one reply; further ones are dropped.
    pub calls_max: usize,
    /// A proxy for requests to providers.
    pub proxy: Option<String>,
    /// What to tell people when no model is configured: what exactly to type. Empty: a sentence that names the
    /// usual variables.
    pub not_configured_hint: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            default_provider: None,
            aliases: BTreeMap::new(),
            fallbacks: Vec::new(),
            prices: Prices::default(),
            connect_timeout_ms: http::CONNECT_TIMEOUT_MS,
            first_byte_timeout_ms: 300_000,
            idle_timeout_ms: 120_000,
            total_timeout_ms: 600_000,
            retries_max: 2,
            retry_initial_delay_ms: 500,
            retry_delay_max_ms: 10_000,
            retry_jitter_ratio: 0.1,
            breaker_failures: 5,
            breaker_open_ms: 30_000,
            models_cache_s: 60,
            answer_bytes_max: 8 << 20,
            arguments_bytes_max: 1 << 20,
            calls_max: 64,
            proxy: None,
            not_configured_hint: String::new(),
        }
    }
}

impl Options {
    /// How the HTTP client for these providers is built.
    pub fn client_options(&self) -> http::Options {
        http::Options {
            connect_timeout_ms: self.connect_timeout_ms,
            proxy: self.proxy.clone(),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            first_byte: Duration::from_millis(self.first_byte_timeout_ms),
            idle: Duration::from_millis(self.idle_timeout_ms),
            answer_bytes_max: self.answer_bytes_max,
            arguments_bytes_max: self.arguments_bytes_max,
            calls_max: self.calls_max,
        }
    }
}

/// The bounds of one exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    pub(crate) answer_bytes_max: usize,
    pub(crate) arguments_bytes_max: usize,
    pub(crate) calls_max: usize,
}

//! Chat models over HTTP: the adapter behind [`tidegate_core::port::ChatModel`].
//!
//! A question goes downstairs like this: [`Models`] picks the provider (aliases, the upstream's list, the
//! fallback chain), `body` or `ollama` writes the one request body, `exchange` sends it and reads the answer
//! through `lines`, `sse` and `answer` into whole, normalised events. Everything a peer can get wrong is
//! mended or refused there; above this crate an answer is well formed or an error.
//!
//! Two dialects are spoken: OpenAI's chat completions, and Ollama's native `/api/chat`, because only the
//! latter can set the context size, and silently cuts a prompt that is longer.

mod answer;
mod body;
mod breaker;
mod catalog;
mod discover;
mod exchange;
mod fault;
mod lines;
mod models;
mod ollama;
mod options;
mod providers;
mod sse;
mod text_tools;

#[cfg(test)]
mod tests;

pub use discover::{PROBE_BYTES_MAX, probe_ollama};
pub use models::{DEFAULT_ALIAS, Models, ProviderReport, SetupError};
pub use options::{Dialect, Options, ProviderOptions, Target, TokensField};
pub use providers::profile_names;

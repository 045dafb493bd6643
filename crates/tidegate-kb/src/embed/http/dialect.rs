//! How each kind of server is asked.

use serde::Serialize;

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `POST {base_url}/api/embed`, Ollama's own.
    Ollama,
    /// `POST {base_url}/embeddings`, as OpenAI defined it.
    OpenAi,
}

/// What is asked for.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub model: &'a str,
    pub texts: &'a [String],
    /// The longest text, in tokens.
    pub context: usize,
    pub dimensions: Option<usize>,
}

#[derive(Serialize)]
struct Ollama<'a> {
    model: &'a str,
    input: &'a [String],
    truncate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
    options: Context,
}

#[derive(Serialize)]
struct Context {
    num_ctx: usize,
}

#[derive(Serialize)]
struct OpenAi<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

impl Dialect {
    /// The provider's name in ids and settings.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Ollama => "/api/embed",
            Self::OpenAi => "/embeddings",
        }
    }

    /// The address of a path. Ollama's base is often given as that of its other endpoint.
    pub(super) fn url(self, base_url: &str, path: &str) -> String {
        let base = base_url.trim_end_matches('/');
        let base = match self {
            Self::Ollama => base
                .strip_suffix("/v1")
                .or_else(|| base.strip_suffix("/api"))
                .unwrap_or(base),
            Self::OpenAi => base,
        };
        format!("{base}{path}")
    }

    /// The path and body that ask for a model's description, where there is such a thing.
    pub(super) fn describe(self, model: &str) -> Option<(&'static str, Vec<u8>)> {
        match self {
            Self::Ollama => Some(("/api/show", json(&serde_json::json!({ "model": model })))),
            Self::OpenAi => None,
        }
    }

    /// The body of a request.
    pub(super) fn request(self, ask: &Ask<'_>) -> Vec<u8> {
        match self {
            Self::Ollama => json(&Ollama {
                model: ask.model,
                input: ask.texts,
                truncate: false,
                dimensions: ask.dimensions,
                options: Context { num_ctx: ask.context },
            }),
            Self::OpenAi => json(&OpenAi {
                model: ask.model,
                input: ask.texts,
                encoding_format: "float",
                dimensions: ask.dimensions,
            }),
        }
    }

    /// What helps when a model is not there.
    pub(super) fn hint(self, model: &str) -> String {
        match self {
            Self::Ollama => format!("`ollama pull {model}` fetches one"),
            Self::OpenAi => "`base_url` ends in `/v1` on most servers".to_owned(),
        }
    }
}

/// Strings and numbers always become JSON; an empty body would be refused by the server.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

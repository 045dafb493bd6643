//! The description of one answer.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};

/// One answer of the scripted server: the same description is encoded whole, as a stream, or for Ollama.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) kind: Kind,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delay_first: Duration,
    pub(super) delay_chunk: Duration,
    pub(super) ending: Ending,
}

/// What happens after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The body ends properly.
    Clean,
    /// The connection breaks.
    Cut,
    /// Nothing more comes, and the connection stays open.
    Hang,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Message(Message),
    Status { code: u16, body: Value },
    RawSse(Vec<Bytes>),
    RawJson(String),
    Never,
    Endless { bytes_per_s: u64 },
}

#[derive(Debug, Clone, Default)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) chunk_chars: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// Exact bytes, in the pieces in which they are written to the socket.
#[derive(Debug, Clone)]
pub struct RawChunks(Vec<Bytes>);

impl From<&str> for RawChunks {
    fn from(text: &str) -> Self {
        Self(vec![Bytes::copy_from_slice(text.as_bytes())])
    }
}

impl From<String> for RawChunks {
    fn from(text: String) -> Self {
        Self(vec![Bytes::from(text)])
    }
}

impl From<Vec<Vec<u8>>> for RawChunks {
    fn from(chunks: Vec<Vec<u8>>) -> Self {
        Self(chunks.into_iter().map(Bytes::from).collect())
    }
}

impl Reply {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            headers: Vec::new(),
            delay_first: Duration::ZERO,
            delay_chunk: Duration::ZERO,
            ending: Ending::Clean,
        }
    }

    fn message(mut self, change: impl FnOnce(&mut Message)) -> Self {
        if let Kind::Message(message) = &mut self.kind {
            change(message);
        }
        self
    }

    /// An assistant message: one token in, one out, streamed in pieces of 16 characters. It finishes with
    /// `tool_calls` where calls are added, else with `stop`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Kind::Message(Message {
            text: text.into(),
            usage: Some((1, 1)),
            chunk_chars: 16,
            ..Message::default()
        }))
    }

    /// An HTTP status with a JSON body.
    pub fn status(code: u16, body: Value) -> Self {
        Self::new(Kind::Status { code, body })
    }

    /// An event stream of exactly these bytes, whatever was asked for.
    pub fn raw_sse(chunks: impl Into<RawChunks>) -> Self {
        Self::new(Kind::RawSse(chunks.into().0))
    }

    /// A JSON body of exactly this text, whatever was asked for.
    pub fn raw_json(text: impl Into<String>) -> Self {
        Self::new(Kind::RawJson(text.into()))
    }

    /// Takes the request and never answers.
    pub fn never() -> Self {
        Self::new(Kind::Never)
    }

    /// An answer without end, about so many bytes of text a second; 0 means as fast as they are read.
    pub fn endless(bytes_per_s: u64) -> Self {
        Self::new(Kind::Endless { bytes_per_s })
    }

    /// Adds reasoning, in `reasoning_content` (OpenAI) or `thinking` (Ollama).
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.message(|message| message.reasoning = text.into())
    }

    /// Adds a tool call. A string is written as the arguments' text as it is; anything else is encoded.
    #[must_use]
    pub fn call(self, id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        self.message(|message| {
            message.calls.push(Call {
                id: id.into(),
                name: name.into(),
                arguments,
            });
        })
    }

    /// The finish reason.
    #[must_use]
    pub fn finish(self, reason: impl Into<String>) -> Self {
        self.message(|message| message.finish = Some(reason.into()))
    }

    /// The tokens it reports.
    #[must_use]
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        self.message(|message| message.usage = Some((input_tokens, output_tokens)))
    }

    /// Reports no tokens.
    #[must_use]
    pub fn no_usage(self) -> Self {
        self.message(|message| message.usage = None)
    }

    /// How many characters go into one streamed piece.
    #[must_use]
    pub fn chunk_chars(self, chars: usize) -> Self {
        self.message(|message| message.chunk_chars = chars.max(1))
    }

    /// Waits before the status line.
    #[must_use]
    pub fn delay_first_ms(mut self, delay_ms: u64) -> Self {
        self.delay_first = Duration::from_millis(delay_ms);
        self
    }

    /// Waits before every piece of a stream but the first.
    #[must_use]
    pub fn delay_chunk_ms(mut self, delay_ms: u64) -> Self {
        self.delay_chunk = Duration::from_millis(delay_ms);
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Breaks the connection after the last piece; a message then has no finish either.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.ending = Ending::Cut;
        self
    }

    /// Sends nothing more after the last piece and keeps the connection open; a message then has no finish.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.ending = Ending::Hang;
        self
    }
}

impl Message {
    /// The finish reason on the wire.
    pub(super) fn finish(&self) -> &str {
        match &self.finish {
            Some(reason) => reason,
            None if self.calls.is_empty() => "stop",
            None => "tool_calls",
        }
    }
}

impl Call {
    /// The arguments as the text OpenAI's dialect carries.
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.arguments.to_string()
            }
        }
    }

    /// The arguments as the object Ollama's dialect carries.
    pub(super) fn arguments_object(&self) -> Value {
        match &self.arguments {
            Value::Object(_) => self.arguments.clone(),
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::Object(Map::new())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Value::Object(Map::new()),
        }
    }
}

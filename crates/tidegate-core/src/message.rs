//! The history of a conversation, with who said what as data.
//!
//! A role string ("user", "tool") is a wire's word and says too little: a tool's output, a harness note and
//! a person's sentence all travel as text, and the code that decides "what did the human really say" must
//! not have to guess. So each message is a variant, and wire roles are made only where a request body is built.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{id::CallId, tool::ToolCall};

/// Where a message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A person.
    Human,
    /// A client's `system` or `developer` message: user-level instructions, never authority.
    ClientSystem,
    /// The model.
    Assistant,
    /// A tool; untrusted data.
    Tool,
    /// The engine itself.
    Harness,
    /// Recalled from memory; a note, never an instruction.
    Recalled,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Message {
    /// A person's turn.
    Human {
        /// What was said, in order.
        parts: Vec<Part>,
        /// The participant's name, where the client gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The client's own system text.
    ClientSystem {
        /// The text.
        text: String,
    },
    /// The model's turn.
    Assistant {
        /// Visible text, reasoning already stripped.
        text: String,
        /// The calls it issued, in call order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// A tool's answer, already turned into text for the model.
    Tool {
        /// The call it answers.
        call_id: CallId,
        /// The tool's name; empty where a client did not say.
        name: String,
        /// The text.
        text: String,
    },
    /// A note of the engine's, by its id in the table of harness notes.
    Harness {
        /// The note's id, for tests and logs.
        note: String,
        /// The text.
        text: String,
    },
    /// Recalled notes about the user.
    Recalled {
        /// The text.
        text: String,
    },
}

/// A piece of a person's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture: a `data:` URL, or an address the operator allows.
    Image {
        /// The URL.
        url: String,
        /// The wire's `detail` hint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Sound, base64.
    Audio {
        /// The data.
        data: String,
        /// `wav` or `mp3`.
        format: String,
    },
    /// A file part, handed on as the client wrote it.
    File {
        /// The part's body.
        file: Value,
    },
}

impl Message {
    /// A person's text.
    pub fn human(text: impl Into<String>) -> Self {
        Self::Human {
            parts: vec![Part::Text { text: text.into() }],
            name: None,
        }
    }

    /// Where the message came from.
    pub fn source(&self) -> Source {
        match self {
            Self::Human { .. } => Source::Human,
            Self::ClientSystem { .. } => Source::ClientSystem,
            Self::Assistant { .. } => Source::Assistant,
            Self::Tool { .. } => Source::Tool,
            Self::Harness { .. } => Source::Harness,
            Self::Recalled { .. } => Source::Recalled,
        }
    }

    /// The message's text; the text parts of a person's message are joined by line breaks.
    pub fn text(&self) -> String {
        match self {
            Self::Human { parts, .. } => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Part::Text { text } => Some(text.as_str()),
                        Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => None,
                    })
                    .collect();
                texts.join("\n")
            }
            Self::ClientSystem { text }
            | Self::Assistant { text, .. }
            | Self::Tool { text, .. }
            | Self::Harness { text, .. }
            | Self::Recalled { text } => text.clone(),
        }
    }
}

/// The newest thing the human said: the only text that routing, refusals and memory may take for their words.
pub fn last_human_text(messages: &[Message]) -> Option<String> {
    messages
        .iter()
        .rev()
        .find(|message| message.source() == Source::Human)
        .map(Message::text)
}

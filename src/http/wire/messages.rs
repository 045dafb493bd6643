//! The history, from wire roles to messages with an origin.

mod file;

use std::fmt;

use serde::{Deserialize, Deserializer, de::SeqAccess, de::Visitor};
use serde_json::Value;
use tidegate_core::{
    id::CallId,
    message::{Message, Part},
    tool::{Arguments, ToolCall},
};
use utoipa::ToSchema;

use super::json::{Free, List, Object};
use crate::http::error::ApiError;

/// Parts of one message.
const PARTS_MAX: usize = 2048;
/// Calls of one assistant message.
const CALLS_MAX: usize = 1024;
/// Bytes of a call's id.
const CALL_ID_BYTES_MAX: usize = 256;
/// Characters of unparsable arguments that are kept.
const RAW_CHARS_MAX: usize = 2000;

/// A message as a client sends it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(in crate::http) struct WireMessage {
    /// `system`, `developer`, `user`, `assistant`, `tool`, or the older `function`.
    role: String,
    /// A string or an array of parts; for an assistant also null or absent.
    #[schema(value_type = Option<Value>)]
    content: Option<Content>,
    /// The participant's name; for the role `function` the function's.
    name: Option<String>,
    /// An assistant's calls.
    #[schema(value_type = Option<Vec<WireCall>>)]
    tool_calls: Option<List<Object<WireCall>, CALLS_MAX>>,
    /// An assistant's call in the older form.
    #[schema(value_type = Option<WireFunctionCall>)]
    function_call: Option<Object<WireFunctionCall>>,
    /// The call that a tool message answers.
    tool_call_id: Option<String>,
    /// An assistant's refusal.
    refusal: Option<String>,
}

/// A call in an assistant's message.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(in crate::http) struct WireCall {
    id: String,
    /// `function`.
    #[serde(rename = "type")]
    kind: Option<String>,
    #[schema(value_type = Option<WireFunctionCall>)]
    function: Option<Object<WireFunctionCall>>,
}

/// A function's name and its arguments as JSON text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(in crate::http) struct WireFunctionCall {
    name: String,
    arguments: Option<String>,
}

/// A string, or parts.
#[derive(Debug, Clone)]
enum Content {
    Text(String),
    Parts(Vec<WirePart>),
}

#[derive(Debug, Clone, Deserialize)]
struct WirePart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    image_url: Option<Free>,
    input_audio: Option<Free>,
    file: Option<Free>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut parts = Vec::new();
                while let Some(Object(part)) = seq.next_element()? {
                    if parts.len() == PARTS_MAX {
                        return Err(serde::de::Error::custom(format_args!(
                            "more than {PARTS_MAX} parts"
                        )));
                    }
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// Turns the history into messages. `remote_images` is whether pictures and files may be given as addresses.
pub(super) fn messages(
    wire: Vec<Object<WireMessage>>,
    remote_images: bool,
) -> Result<Vec<Message>, ApiError> {
    let mut reader = Reader {
        remote_images,
        open: Vec::new(),
    };
    let mut messages = Vec::with_capacity(wire.len());
    for (index, Object(message)) in wire.into_iter().enumerate() {
        messages.push(reader.message(message, &format!("messages.{index}"))?);
    }
    Ok(messages)
}

struct Reader {
    remote_images: bool,
    /// The calls of the nearest assistant message so far: id and tool.
    open: Vec<(CallId, String)>,
}

impl Reader {
    fn message(&mut self, message: WireMessage, at: &str) -> Result<Message, ApiError> {
        match message.role.as_str() {
            "system" | "developer" => Ok(Message::ClientSystem {
                text: text_only(required(message.content, at)?, at)?,
            }),
            "user" => {
                let parts = self.user_parts(required(message.content, at)?, at)?;
                Ok(Message::Human {
                    parts,
                    name: message.name,
                })
            }
            "assistant" => self.assistant(message, at),
            "tool" => self.tool(message, at),
            "function" => self.function(message, at),
            _ => Err(ApiError::invalid_value(
                format!("{at}.role"),
                "a role must be `system`, `developer`, `user`, `assistant`, `tool` or `function`",
            )),
        }
    }

    fn user_parts(&self, content: Content, at: &str) -> Result<Vec<Part>, ApiError> {
        let wire = match content {
            Content::Text(text) => return Ok(vec![Part::Text { text }]),
            Content::Parts(parts) if parts.is_empty() => {
                return Err(ApiError::invalid_value(
                    format!("{at}.content"),
                    "there must be at least one part",
                ));
            }
            Content::Parts(parts) => parts,
        };
        let mut parts = Vec::with_capacity(wire.len());
        for (index, part) in wire.into_iter().enumerate() {
            parts.push(self.user_part(part, &format!("{at}.content.{index}"))?);
        }
        Ok(parts)
    }

    fn user_part(&self, part: WirePart, at: &str) -> Result<Part, ApiError> {
        match part.kind.as_str() {
            "text" => Ok(Part::Text {
                text: part.text.ok_or_else(|| ApiError::missing(format!("{at}.text")))?,
            }),
            "image_url" => self.image(part.image_url, &format!("{at}.image_url")),
            "input_audio" => audio(part.input_audio, &format!("{at}.input_audio")),
            "file" => file::file(part.file, self.remote_images, &format!("{at}.file")),
            kind => Err(unsupported_part(kind, at)),
        }
    }

    /// `{url, detail}`, or the bare string that some clients send.
    fn image(&self, image: Option<Free>, at: &str) -> Result<Part, ApiError> {
        let (url, detail) = match image.map(|free| free.0) {
            None | Some(Value::Null) => return Err(ApiError::missing(at)),
            Some(Value::String(url)) => (url, None),
            Some(Value::Object(mut map)) => {
                let detail = map.get("detail").and_then(Value::as_str).map(str::to_owned);
                match map.remove("url") {
                    Some(Value::String(url)) => (url, detail),
                    Some(_) => {
                        return Err(ApiError::invalid_type(
                            format!("{at}.url"),
                            "a URL must be a string",
                        ));
                    }
                    None => return Err(ApiError::missing(format!("{at}.url"))),
                }
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                return Err(ApiError::invalid_type(
                    at,
                    "a picture must be an object with `url`, or a URL",
                ));
            }
        };
        let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
        match scheme.as_str() {
            "data" => Ok(Part::Image { url, detail }),
            "http" | "https" if self.remote_images => Ok(Part::Image { url, detail }),
            "http" | "https" => Err(ApiError::unsupported(
                format!("{at}.url"),
                "pictures at http(s) addresses are not fetched here; send the picture as a `data:` URL, or let the \
                 operator set `server.remote_images`",
            )),
            _ => Err(ApiError::invalid_value(
                format!("{at}.url"),
                "a picture must be a `data:` URL",
            )),
        }
    }

    fn assistant(&mut self, message: WireMessage, at: &str) -> Result<Message, ApiError> {
        let mut text = match message.content {
            Some(content) => assistant_text(content, at)?,
            None => String::new(),
        };
        if text.is_empty() {
            text = message.refusal.unwrap_or_default();
        }
        let mut calls = Vec::new();
        for (index, Object(call)) in message
            .tool_calls
            .map(|list| list.0)
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            calls.push(tool_call(call, &format!("{at}.tool_calls.{index}"))?);
        }
        if let Some(Object(function)) = message.function_call {
            // The older form has no ids; the place in the history makes one.
            let id = CallId::new(format!("call_{}", at.replace('.', "_")));
            calls.push(ToolCall {
                id,
                name: function.name,
                arguments: arguments(function.arguments),
            });
        }
        self.open = calls
            .iter()
            .map(|call| (call.id.clone(), call.name.clone()))
            .collect();
        Ok(Message::Assistant { text, calls })
    }

    fn tool(&self, message: WireMessage, at: &str) -> Result<Message, ApiError> {
        let param = format!("{at}.tool_call_id");
        let id = CallId::new(
            message
                .tool_call_id
                .ok_or_else(|| ApiError::missing(param.clone()))?,
        );
        let Some((call_id, name)) = self.open.iter().find(|(open, _)| *open == id) else {
            return Err(ApiError::invalid_value(
                param,
                "a tool message must answer a call of the assistant message before it; there is no call of this id",
            ));
        };
        let text = text_only(required(message.content, at)?, at)?;
        Ok(Message::Tool {
            call_id: call_id.clone(),
            name: name.clone(),
            text,
        })
    }

    fn function(&self, message: WireMessage, at: &str) -> Result<Message, ApiError> {
        let param = format!("{at}.name");
        let called = message.name.ok_or_else(|| ApiError::missing(param.clone()))?;
        let Some((call_id, name)) = self.open.iter().find(|(_, name)| *name == called) else {
            return Err(ApiError::invalid_value(
                param,
                "a function message must answer the `function_call` of the assistant message before it",
            ));
        };
        let text = text_only(required(message.content, at)?, at)?;
        Ok(Message::Tool {
            call_id: call_id.clone(),
            name: name.clone(),
            text,
        })
    }
}

fn required(content: Option<Content>, at: &str) -> Result<Content, ApiError> {
    content.ok_or_else(|| ApiError::missing(format!("{at}.content")))
}

fn unsupported_part(kind: &str, at: &str) -> ApiError {
    ApiError::unsupported(
        format!("{at}.type"),
        format!("parts of the type `{kind}` are not served in this role"),
    )
}

/// The text parts of one message stay one message.
fn text_only(content: Content, at: &str) -> Result<String, ApiError> {
    joined(content, at, |part, at| match part.kind.as_str() {
        "text" => part.text.ok_or_else(|| ApiError::missing(format!("{at}.text"))),
        kind => Err(unsupported_part(kind, at)),
    })
}

fn assistant_text(content: Content, at: &str) -> Result<String, ApiError> {
    joined(content, at, |part, at| match part.kind.as_str() {
        "text" => part.text.ok_or_else(|| ApiError::missing(format!("{at}.text"))),
        "refusal" => part
            .refusal
            .ok_or_else(|| ApiError::missing(format!("{at}.refusal"))),
        kind => Err(unsupported_part(kind, at)),
    })
}

fn joined(
    content: Content,
    at: &str,
    read: impl Fn(WirePart, &str) -> Result<String, ApiError>,
) -> Result<String, ApiError> {
    let parts = match content {
        Content::Text(text) => return Ok(text),
        Content::Parts(parts) => parts,
    };
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.into_iter().enumerate() {
        texts.push(read(part, &format!("{at}.content.{index}"))?);
    }
    Ok(texts.join("\n"))
}

fn audio(audio: Option<Free>, at: &str) -> Result<Part, ApiError> {
    let Some(Free(Value::Object(map))) = audio else {
        return Err(ApiError::missing(at));
    };
    let field = |name: &str| {
        let text = map.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| ApiError::missing(format!("{at}.{name}")))
    };
    let (data, format) = (field("data")?, field("format")?);
    if !matches!(format.as_str(), "wav" | "mp3") {
        return Err(ApiError::invalid_value(
            format!("{at}.format"),
            "the format must be `wav` or `mp3`",
        ));
    }
    Ok(Part::Audio { data, format })
}

fn tool_call(call: WireCall, at: &str) -> Result<ToolCall, ApiError> {
    if call.id.is_empty() || call.id.len() > CALL_ID_BYTES_MAX {
        let message = format!("a call's id has 1 to {CALL_ID_BYTES_MAX} bytes");
        return Err(ApiError::invalid_value(format!("{at}.id"), message));
    }
    if call.kind.as_deref().is_some_and(|kind| kind != "function") {
        return Err(ApiError::unsupported(
            format!("{at}.type"),
            "only calls of the type `function` are served here",
        ));
    }
    let Object(function) = call
        .function
        .ok_or_else(|| ApiError::missing(format!("{at}.function")))?;
    Ok(ToolCall {
        id: CallId::new(call.id),
        name: function.name,
        arguments: arguments(function.arguments),
    })
}

/// Arguments in the history may fail to parse: the model wrote them, and that is no reason to refuse the turn.
fn arguments(text: Option<String>) -> Arguments {
    let text = text
        .filter(|text| !text.trim().is_empty())
        .unwrap_or_else(|| "{}".to_owned());
    let problem = match serde_json::from_str::<Free>(&text) {
        Ok(Free(Value::Object(map))) => return Arguments::Object(map),
        Ok(Free(_)) => "not a JSON object".to_owned(),
        Err(error) => error.to_string(),
    };
    Arguments::Unparsable {
        raw: text.chars().take(RAW_CHARS_MAX).collect(),
        problem,
    }
}

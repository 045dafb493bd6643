//! Messages as OpenAI's dialect writes them: here, and nowhere else, origins become wire roles.

use serde_json::{Value, json};
use tidegate_core::{
    message::{Message, Part},
    model::ModelError,
    tool::{Arguments, ToolCall},
};

use crate::{
    fault::{Again, Failure},
    providers::Provider,
};

/// The longest participant's name the contract knows.
const NAME_CHARS_MAX: usize = 64;

/// The `messages` field.
pub(super) fn openai(provider: &Provider, system: &str, messages: &[Message]) -> Result<Value, Failure> {
    let mut list = Vec::with_capacity(messages.len() + 1);
    if !system.is_empty() {
        list.push(json!({"role": "system", "content": system}));
    }
    for message in messages {
        list.push(openai_message(provider, message));
    }
    if list.is_empty() {
        return Err(unsupported("there is no message"));
    }
    Ok(Value::Array(list))
}

fn openai_message(provider: &Provider, message: &Message) -> Value {
    match message {
        Message::Human { parts, name } => {
            let is_text = parts.iter().all(|part| matches!(part, Part::Text { .. }));
            let content = if is_text {
                Value::String(message.text())
            } else {
                Value::Array(parts.iter().map(openai_part).collect())
            };
            let mut wire = json!({"role": "user", "content": content});
            if let Some(name) = name
                .as_deref()
                .filter(|name| is_wire_name(name) && !provider.omits("name"))
            {
                wire["name"] = name.into();
            }
            wire
        }
        // Below the operator's prompt everything is the user's word, wherever it came from: many templates
        // take one system message and only at the beginning.
        Message::ClientSystem { text } | Message::Harness { text, .. } | Message::Recalled { text } => {
            json!({"role": "user", "content": text})
        }
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, calls } => {
            let calls: Vec<Value> = calls.iter().map(openai_call).collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls})
        }
        Message::Tool { call_id, text, .. } => {
            json!({"role": "tool", "tool_call_id": call_id.as_str(), "content": text})
        }
    }
}

fn openai_part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { url, detail } => {
            let mut image = json!({"url": url});
            if let Some(detail) = detail {
                image["detail"] = detail.clone().into();
            }
            json!({"type": "image_url", "image_url": image})
        }
        Part::Audio { data, format } => {
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        Part::File { file } => json!({"type": "file", "file": file}),
    }
}

fn openai_call(call: &ToolCall) -> Value {
    let arguments = history_arguments(&call.arguments).to_string();
    json!({"id": call.id.as_str(), "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// A call's arguments as an object. Servers parse those of the history too, and fail on a call that could
/// not be parsed when it was made; the model still sees what it wrote.
pub(crate) fn history_arguments(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Object(map) => Value::Object(map.clone()),
        Arguments::Unparsable { raw, .. } => json!({"unparsable": raw}),
    }
}

fn is_wire_name(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A request that this provider cannot be sent.
pub(crate) fn unsupported(what: &str) -> Failure {
    let error = ModelError::Rejected {
        status: 400,
        message: what.to_owned(),
        param: Some("messages".to_owned()),
    };
    Failure::new(error, Again::Elsewhere)
}

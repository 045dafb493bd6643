//! Writes the request body of Ollama's `/api/chat`, as its API documentation describes it.
//!
//! It is spoken because `num_ctx` can be set nowhere else: through Ollama's OpenAI-compatible door a prompt
//! longer than the server's default window is cut without a word.
//!
//! The dialect is tested against a scripted server of the documented shapes, not against Ollama itself.

use serde_json::{Map, Value, json};
use tidegate_core::{
    message::{Message, Part},
    model::{ModelError, ModelRequest, ToolChoice},
};

use crate::{
    body::{clamped, history_arguments, stop_texts, tokens_max, tool, unsupported},
    fault::{Again, Failure},
    providers::{Provider, Thinking},
    text_tools::{Prepared, prepare},
};

/// Allowed fields that belong beside `options` and not into it.
const TOP_LEVEL: [&str; 1] = ["keep_alive"];

/// The window of a server that no row of known services describes.
const WINDOW_TOKENS: u64 = 8192;
/// Room for an answer that nothing bounds.
const ANSWER_TOKENS: u64 = 2048;
/// Bytes of a token where a text has many: a window that is too large costs memory, one that is too small an error.
const BYTES_PER_TOKEN_MIN: u64 = 3;
/// Bytes of a token where a text has few: a prompt that does not fit even so fits in no case.
const BYTES_PER_TOKEN_MAX: u64 = 6;
/// Tokens of a picture, in the larger models.
const IMAGE_TOKENS: u64 = 2048;
/// Tokens that a template puts around a message.
const MESSAGE_TOKENS: u64 = 8;

/// The body of `POST …/api/chat`.
pub(crate) fn body(
    provider: &Provider,
    request: &ModelRequest,
    thinking: Option<Thinking>,
) -> Result<Value, Failure> {
    let prepared = prepare(request);
    let window = window(provider, request, &prepared)?;
    let mut fields = Map::new();
    fields.insert("model".to_owned(), request.model.name.clone().into());
    fields.insert(
        "messages".to_owned(),
        messages(&prepared.system, &prepared.messages)?,
    );
    fields.insert("stream".to_owned(), request.stream.into());
    // Left to itself the server cuts a prompt that is too long, and forgets its beginning while it answers.
    fields.insert("truncate".to_owned(), false.into());
    fields.insert("shift".to_owned(), false.into());
    // This API has no tool_choice: a model that must not call tools is not offered any.
    if !prepared.tools.is_empty() && request.tool_choice != ToolChoice::None {
        fields.insert("tools".to_owned(), prepared.tools.iter().map(|schema| tool(schema)).collect());
    }
    if let Some(format) = request.response_format.as_ref().and_then(format) {
        fields.insert("format".to_owned(), format);
    }
    if let Some(effort) = request
        .sampling
        .reasoning_effort
        .as_deref()
        .and_then(|effort| provider.effort(effort))
        && let Some(think) = think(effort, thinking)
    {
        fields.insert("think".to_owned(), think);
    }
    let mut options = options(provider, request, window);
    for (field, value) in &request.sampling.extra {
        if !provider.extra.contains(field) {
            continue;
        }
        let place = if TOP_LEVEL.contains(&field.as_str()) {
            &mut fields
        } else {
            &mut options
        };
        place.entry(field.clone()).or_insert_with(|| value.clone());
    }
    if !options.is_empty() {
        fields.insert("options".to_owned(), Value::Object(options));
    }
    Ok(Value::Object(fields))
}

/// An effort in this API's words. Levels are an error for most models, and any thinking for those that cannot.
fn think(effort: &str, thinking: Option<Thinking>) -> Option<Value> {
    match thinking {
        Some(Thinking::Never) => None,
        Some(Thinking::OnOff) => Some((effort != "none").into()),
        Some(Thinking::Levels) | None if effort == "none" => Some(false.into()),
        Some(Thinking::Levels) | None => Some(effort.into()),
    }
}

/// The window to ask for: what the operator says, else the usual one, doubled until prompt and answer fit, up to
/// the model's own. Another window makes the server load the model anew, so that steps are large.
fn window(provider: &Provider, request: &ModelRequest, prepared: &Prepared<'_>) -> Result<u64, Failure> {
    let usual = provider.usual_tokens.unwrap_or(WINDOW_TOKENS);
    let most = request.model.context_tokens.unwrap_or(usual);
    let prompt = prompt_size(prepared);
    if prompt.text_bytes / BYTES_PER_TOKEN_MAX + prompt.images >= most {
        let error = ModelError::ContextLength {
            limit_tokens: Some(most),
            prompt_tokens: None,
        };
        return Err(Failure::new(error, Again::Never));
    }
    if provider.context_tokens.is_some() {
        return Ok(most);
    }
    let answer = tokens_max(provider, request).unwrap_or(ANSWER_TOKENS);
    let needed = prompt
        .text_bytes
        .div_ceil(BYTES_PER_TOKEN_MIN)
        .saturating_add(prompt.images.saturating_mul(IMAGE_TOKENS))
        .saturating_add(prompt.messages.saturating_mul(MESSAGE_TOKENS))
        .saturating_add(answer);
    let mut window = usual.max(1);
    while window < needed && window < most {
        window = window.saturating_mul(2);
    }
    Ok(window.min(most))
}

/// How much there is to read.
#[derive(Debug, Default)]
struct PromptSize {
    text_bytes: u64,
    messages: u64,
    images: u64,
}

fn prompt_size(prepared: &Prepared<'_>) -> PromptSize {
    let tools = prepared
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len());
    let mut size = PromptSize {
        text_bytes: (prepared.system.len() + tools.sum::<usize>()) as u64,
        messages: prepared.messages.len() as u64,
        images: 0,
    };
    for message in prepared.messages.iter() {
        match message {
            Message::Human { parts, .. } => {
                for part in parts {
                    match part {
                        Part::Text { text } => size.text_bytes += text.len() as u64,
                        Part::Image { .. } => size.images += 1,
                        // Refused where the message is written.
                        Part::Audio { .. } | Part::File { .. } => {}
                    }
                }
            }
            Message::Assistant { text, calls } => {
                let calls = calls
                    .iter()
                    .map(|call| call.name.len() + call.arguments.to_json().len());
                size.text_bytes += (text.len() + calls.sum::<usize>()) as u64;
            }
            Message::ClientSystem { text }
            | Message::Tool { text, .. }
            | Message::Harness { text, .. }
            | Message::Recalled { text } => size.text_bytes += text.len() as u64,
        }
    }
    size
}

fn options(provider: &Provider, request: &ModelRequest, window: u64) -> Map<String, Value> {
    let sampling = &request.sampling;
    let numbers = [
        ("temperature", sampling.temperature, 0.0, 2.0),
        ("top_p", sampling.top_p, 0.0, 1.0),
        ("presence_penalty", sampling.presence_penalty, -2.0, 2.0),
        ("frequency_penalty", sampling.frequency_penalty, -2.0, 2.0),
    ];
    let mut options: Map<String, Value> = numbers
        .into_iter()
        .filter_map(|(field, value, min, max)| Some((field.to_owned(), clamped(value?, min, max)?.into())))
        .collect();
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(field.to_owned(), value);
        }
    };
    set("num_ctx", Some(window.into()));
    set("num_predict", tokens_max(provider, request).map(Value::from));
    set("seed", sampling.seed.map(Value::from));
    let stop = stop_texts(sampling);
    set("stop", (!stop.is_empty()).then(|| json!(stop)));
    options
}

/// `response_format` in this API's words: `json`, or a schema.
fn format(response_format: &Value) -> Option<Value> {
    match response_format.get("type")?.as_str()? {
        "json_object" => Some("json".into()),
        "json_schema" => response_format.get("json_schema")?.get("schema").cloned(),
        _ => None,
    }
}

fn messages(system: &str, messages: &[Message]) -> Result<Value, Failure> {
    let mut list = Vec::with_capacity(messages.len() + 1);
    if !system.is_empty() {
        list.push(json!({"role": "system", "content": system}));
    }
    for (at, message) in messages.iter().enumerate() {
        let earlier = messages.get(..at).unwrap_or_default();
        list.push(wire_message(message, earlier)?);
    }
    if list.is_empty() {
        return Err(unsupported("there is no message"));
    }
    Ok(Value::Array(list))
}

fn wire_message(message: &Message, earlier: &[Message]) -> Result<Value, Failure> {
    Ok(match message {
        Message::Human { parts, .. } => {
            let mut images = Vec::new();
            for part in parts {
                images.extend(image(part)?);
            }
            let mut wire = json!({"role": "user", "content": message.text()});
            if !images.is_empty() {
                wire["images"] = json!(images);
            }
            wire
        }
        Message::ClientSystem { text } | Message::Harness { text, .. } | Message::Recalled { text } => {
            json!({"role": "user", "content": text})
        }
        Message::Assistant { text, calls } => {
            let mut wire = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                let calls = calls.iter().map(|call| {
                    json!({"function": {"name": call.name, "arguments": history_arguments(&call.arguments)}})
                });
                wire["tool_calls"] = calls.collect();
            }
            wire
        }
        Message::Tool { call_id, name, text } => {
            let name = if name.is_empty() {
                called_name(call_id.as_str(), earlier)
            } else {
                name
            };
            json!({"role": "tool", "tool_name": name, "content": text})
        }
    })
}

/// The name of the tool that an earlier call with this id named.
fn called_name<'a>(id: &str, earlier: &'a [Message]) -> &'a str {
    let calls = earlier.iter().rev().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        Message::Human { .. }
        | Message::ClientSystem { .. }
        | Message::Tool { .. }
        | Message::Harness { .. }
        | Message::Recalled { .. } => &[],
    });
    calls
        .into_iter()
        .find(|call| call.id.as_str() == id)
        .map_or("", |call| call.name.as_str())
}

/// A picture's base64 text. This API takes no addresses, no sound and no files.
fn image(part: &Part) -> Result<Option<&str>, Failure> {
    match part {
        Part::Text { .. } => Ok(None),
        Part::Image { url, .. } => {
            let data = url
                .strip_prefix("data:")
                .and_then(|rest| rest.split_once(";base64,"));
            data.map(|(_, data)| Some(data)).ok_or_else(|| {
                unsupported("this model takes pictures only as base64 `data:` URLs (image_url)")
            })
        }
        Part::Audio { .. } => Err(unsupported("this model takes no sound (input_audio)")),
        Part::File { .. } => Err(unsupported("this model takes no files (file)")),
    }
}

#[cfg(test)]
mod tests;

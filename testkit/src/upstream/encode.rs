//! One description, four encodings: OpenAI whole and streamed, Ollama whole and streamed.

use std::{convert::Infallible, io, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    OpenAnswer,
    reply::{Ending, Kind, Message, Reply},
};

/// The `created` of everything.
pub(super) const CREATED: i64 = 1_700_000_000;
/// The same instant as Ollama writes it.
pub(super) const CREATED_AT: &str = "2023-11-14T22:13:20Z";
/// How often an endless answer writes.
const ENDLESS_TICK: Duration = Duration::from_millis(20);
/// How much text an endless answer writes at once when it has no rate.
const ENDLESS_BURST_BYTES: usize = 4096;

/// Whose wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `/v1/chat/completions`.
    OpenAi,
    /// `/api/chat`.
    Ollama,
}

impl Dialect {
    fn stream_type(self) -> &'static str {
        match self {
            Self::OpenAi => "text/event-stream; charset=utf-8",
            Self::Ollama => "application/x-ndjson",
        }
    }

    fn frame(self, value: &Value) -> Bytes {
        match self {
            Self::OpenAi => Bytes::from(format!("data: {value}\n\n")),
            Self::Ollama => Bytes::from(format!("{value}\n")),
        }
    }
}

/// Plays `reply`. `open` lives as long as the answer does.
pub(super) async fn answer(
    reply: Reply,
    dialect: Dialect,
    request: &Value,
    open: OpenAnswer,
    stopping: CancellationToken,
) -> Response {
    if !reply.delay_first.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(reply.delay_first) => {}
            () = stopping.cancelled() => {}
        }
    }
    let streamed = request["stream"].as_bool().unwrap_or(dialect == Dialect::Ollama);
    let model = request["model"].as_str().unwrap_or("scripted");
    let play = Play {
        delay: reply.delay_chunk,
        ending: reply.ending,
        open,
        stopping,
    };
    let (status, content_type, body) = match reply.kind {
        Kind::Never => {
            play.stopping.cancelled().await;
            (StatusCode::SERVICE_UNAVAILABLE, "application/json", Body::empty())
        }
        Kind::Status { code, body } => {
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, "application/json", Body::from(body.to_string()))
        }
        Kind::RawJson(text) => (
            StatusCode::OK,
            "application/json",
            play.body(vec![Bytes::from(text)], false),
        ),
        Kind::RawSse(chunks) => (StatusCode::OK, dialect.stream_type(), play.body(chunks, true)),
        Kind::Endless { bytes_per_s } => (
            StatusCode::OK,
            dialect.stream_type(),
            play.endless(dialect, model, bytes_per_s, streamed),
        ),
        Kind::Message(message) if streamed => {
            let include_usage = request["stream_options"]["include_usage"].as_bool() == Some(true);
            let frames = match dialect {
                Dialect::OpenAi => openai_frames(&message, model, include_usage, play.ending),
                Dialect::Ollama => ollama_frames(&message, model, play.ending),
            };
            (StatusCode::OK, dialect.stream_type(), play.body(frames, false))
        }
        Kind::Message(message) => {
            let value = match dialect {
                Dialect::OpenAi => openai_whole(&message, model),
                Dialect::Ollama => ollama_whole(&message, model),
            };
            (
                StatusCode::OK,
                "application/json",
                play.body(vec![Bytes::from(value.to_string())], false),
            )
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in reply.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// How frames are played onto the socket.
struct Play {
    delay: Duration,
    ending: Ending,
    open: OpenAnswer,
    stopping: CancellationToken,
}

impl Play {
    fn body(self, frames: Vec<Bytes>, flush_each: bool) -> Body {
        let Self {
            delay,
            ending,
            open,
            stopping,
        } = self;
        let until = stopping.clone();
        let frames = stream::iter(frames.into_iter().enumerate()).then(move |(index, frame)| async move {
            if index > 0 && !delay.is_zero() {
                tokio::time::sleep(delay).await;
            } else if flush_each {
                // A pending poll makes the server flush, so that each piece reaches the socket by itself.
                tokio::task::yield_now().await;
            }
            Ok::<_, io::Error>(frame)
        });
        let end = stream::once(async move {
            match ending {
                Ending::Clean => None,
                Ending::Cut => {
                    tokio::task::yield_now().await;
                    Some(Err(io::Error::other("cut by the script")))
                }
                Ending::Hang => {
                    stopping.cancelled().await;
                    None
                }
            }
        })
        .filter_map(|end| async move { end });
        held(frames.chain(end), open, until)
    }

    fn endless(self, dialect: Dialect, model: &str, bytes_per_s: u64, streamed: bool) -> Body {
        let Self { open, stopping, .. } = self;
        let per_tick = match bytes_per_s {
            0 => ENDLESS_BURST_BYTES,
            rate => usize::try_from(rate / 50).unwrap_or(ENDLESS_BURST_BYTES).max(1),
        };
        let text = "x".repeat(per_tick);
        let frame = match (dialect, streamed) {
            (Dialect::OpenAi | Dialect::Ollama, false) => Bytes::from(text),
            (Dialect::OpenAi, true) => dialect.frame(&openai_chunk(model, &json!({"content": text}), None)),
            (Dialect::Ollama, true) => dialect.frame(&ollama_chunk(model, &json!({"content": text}))),
        };
        let first = if streamed {
            Bytes::new()
        } else {
            Bytes::from_static(b"{\"id\":\"")
        };
        let frames = stream::once(async move { first })
            .chain(stream::repeat(frame))
            .then(move |frame| async move {
                if bytes_per_s > 0 {
                    tokio::time::sleep(ENDLESS_TICK).await;
                } else {
                    tokio::task::yield_now().await;
                }
                Ok::<_, Infallible>(frame)
            });
        held(frames, open, stopping)
    }
}

/// A body that keeps `open` while it lives and ends when the server stops.
fn held<E>(
    frames: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    open: OpenAnswer,
    stopping: CancellationToken,
) -> Body
where
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
{
    let frames = frames.take_until(stopping.cancelled_owned());
    Body::from_stream(frames.map(move |frame| {
        let _held: &OpenAnswer = &open;
        frame
    }))
}

fn pieces(text: &str, chars: usize) -> Vec<String> {
    let chars_of: Vec<char> = text.chars().collect();
    chars_of
        .chunks(chars.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}

fn openai_usage(usage: (u64, u64)) -> Value {
    let (input, output) = usage;
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

fn openai_chunk(model: &str, delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": CREATED, "model": model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    })
}

fn openai_frames(message: &Message, model: &str, include_usage: bool, ending: Ending) -> Vec<Bytes> {
    let frame = |delta: Value| Dialect::OpenAi.frame(&openai_chunk(model, &delta, None));
    let mut frames = vec![frame(json!({"role": "assistant", "content": ""}))];
    for piece in pieces(&message.reasoning, message.chunk_chars) {
        frames.push(frame(json!({"reasoning_content": piece})));
    }
    for piece in pieces(&message.text, message.chunk_chars) {
        frames.push(frame(json!({"content": piece})));
    }
    for (index, call) in message.calls.iter().enumerate() {
        frames.push(frame(
            json!({"tool_calls": [{"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}}]}),
        ));
        for piece in pieces(&call.arguments_text(), message.chunk_chars) {
            frames.push(frame(
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
            ));
        }
    }
    if ending != Ending::Clean {
        return frames;
    }
    frames.push(Dialect::OpenAi.frame(&openai_chunk(model, &json!({}), Some(message.finish()))));
    if let Some(usage) = message.usage.filter(|_| include_usage) {
        frames.push(Dialect::OpenAi.frame(&json!({
            "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": CREATED, "model": model,
            "choices": [], "usage": openai_usage(usage),
        })));
    }
    frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
    frames
}

fn openai_whole(message: &Message, model: &str) -> Value {
    let calls: Vec<Value> = message
        .calls
        .iter()
        .map(|call| {
            json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_text()}})
        })
        .collect();
    let mut body = json!({"role": "assistant", "content": message.text, "refusal": null});
    if !message.reasoning.is_empty() {
        body["reasoning_content"] = message.reasoning.clone().into();
    }
    if !calls.is_empty() {
        body["tool_calls"] = calls.into();
    }
    let mut whole = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": CREATED, "model": model,
        "choices": [{"index": 0, "message": body, "logprobs": null, "finish_reason": message.finish()}],
    });
    if let Some(usage) = message.usage {
        whole["usage"] = openai_usage(usage);
    }
    whole
}

fn ollama_chunk(model: &str, message: &Value) -> Value {
    let mut message = message.clone();
    message["role"] = "assistant".into();
    json!({"model": model, "created_at": CREATED_AT, "message": message, "done": false})
}

fn ollama_calls(message: &Message) -> Vec<Value> {
    let calls = message.calls.iter();
    calls
        .map(|call| json!({"function": {"name": call.name, "arguments": call.arguments_object()}}))
        .collect()
}

fn ollama_end(message: &Message, model: &str, body: &Value) -> Value {
    let reason = if message.finish() == "tool_calls" {
        "stop"
    } else {
        message.finish()
    };
    let mut end = ollama_chunk(model, body);
    end["done"] = true.into();
    end["done_reason"] = reason.into();
    end["total_duration"] = 1_000_000.into();
    if let Some((input, output)) = message.usage {
        end["prompt_eval_count"] = input.into();
        end["eval_count"] = output.into();
    }
    end
}

fn ollama_frames(message: &Message, model: &str, ending: Ending) -> Vec<Bytes> {
    let frame = |body: Value| Dialect::Ollama.frame(&ollama_chunk(model, &body));
    let mut frames = Vec::new();
    for piece in pieces(&message.reasoning, message.chunk_chars) {
        frames.push(frame(json!({"content": "", "thinking": piece})));
    }
    for piece in pieces(&message.text, message.chunk_chars) {
        frames.push(frame(json!({"content": piece})));
    }
    for call in ollama_calls(message) {
        frames.push(frame(json!({"content": "", "tool_calls": [call]})));
    }
    if ending == Ending::Clean {
        frames.push(Dialect::Ollama.frame(&ollama_end(message, model, &json!({"content": ""}))));
    }
    frames
}

fn ollama_whole(message: &Message, model: &str) -> Value {
    let mut body = json!({"content": message.text});
    if !message.reasoning.is_empty() {
        body["thinking"] = message.reasoning.clone().into();
    }
    if !message.calls.is_empty() {
        body["tool_calls"] = ollama_calls(message).into();
    }
    ollama_end(message, model, &body)
}

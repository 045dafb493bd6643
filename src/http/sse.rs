//! Run events → chunks, comments in silence, `[DONE]`.
//!
//! The body holds `data:` lines and comments and nothing else: clients fail on `id:`, `retry:` and named events.

use std::{convert::Infallible, fmt::Write as _, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde::Serialize;
use tidegate_core::tool::ToolCall;
use tidegate_engine::{Finished, RunError, RunEvent};
use tokio::time;

use super::{
    error::ApiError,
    source::Events,
    wire::{
        answer::{
            AnswerCall, AnswerFunction, ChatCompletionChunk, ChunkChoice, Delta, FINGERPRINT, Head,
            UsageField, finish_reason,
        },
        chat::Form,
        sources::Extension,
    },
};

/// Sent in silence, so that proxies keep the stream open.
const COMMENT: &str = ": keep-alive\n\n";
/// Bytes at which a piece of the body goes out without the events behind it.
const PIECE_BYTES: usize = 8 << 10;
const DONE: &str = "data: [DONE]\n\n";

/// Answers with the events as a stream. The status waits for the first event, so that an error before the first
/// byte has a real one; after `silence` without any event the stream begins all the same, because a proxy would
/// give the request up.
pub(super) async fn answer(
    mut events: Events,
    head: Head,
    form: Form,
    silence: Duration,
) -> Result<Response, ApiError> {
    let mut encoder = Encoder::new(head, form);
    let mut first = encoder.begin();
    match time::timeout(silence, events.next()).await {
        Ok(Some(RunEvent::Failed(error))) => return Err(error.into()),
        Ok(Some(event)) => encoder.encode(event, &mut first),
        Ok(None) => return Err(broke_off()),
        Err(_) => first.push_str(COMMENT),
    }
    let rest = stream::unfold((encoder, events), move |(mut encoder, mut events)| async move {
        let text = encoder.next_text(&mut events, silence).await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), (encoder, events)))
    });
    let body = stream::iter([Ok(Bytes::from(first))]).chain(rest);
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    Ok(response)
}

/// Turns events into the text of a stream, in the order of the contract.
struct Encoder {
    head: Head,
    form: Form,
    /// Calls that have gone out; they count from 0 over the whole answer.
    calls: usize,
    ended: bool,
}

impl Encoder {
    fn new(head: Head, form: Form) -> Self {
        Self {
            head,
            form,
            calls: 0,
            ended: false,
        }
    }

    /// The role chunk, once.
    fn begin(&self) -> String {
        let mut text = String::new();
        let delta = Delta {
            role: Some("assistant"),
            content: Some(String::new()),
            ..Delta::default()
        };
        self.chunk(delta, &mut text);
        text
    }

    /// The next piece of the body; `None` after the last.
    async fn next_text(&mut self, events: &mut Events, silence: Duration) -> Option<String> {
        let mut text = String::new();
        // From here on, however many events come that nothing is written of.
        let silent_until = time::Instant::now() + silence;
        while text.is_empty() {
            if self.ended {
                return None;
            }
            match time::timeout_at(silent_until, events.next()).await {
                Ok(event) => self.encode_or_fail(event, &mut text),
                Err(_) => text.push_str(COMMENT),
            }
        }
        // What is there already goes out in the same write.
        while !self.ended && text.len() < PIECE_BYTES {
            let Some(event) = events.next().now_or_never() else {
                break;
            };
            self.encode_or_fail(event, &mut text);
        }
        Some(text)
    }

    fn encode_or_fail(&mut self, event: Option<RunEvent>, text: &mut String) {
        match event {
            Some(event) => self.encode(event, text),
            None => self.fail(broke_off(), text),
        }
    }

    fn encode(&mut self, event: RunEvent, text: &mut String) {
        match event {
            RunEvent::Text(piece) => {
                self.chunk(
                    Delta {
                        content: Some(piece),
                        ..Delta::default()
                    },
                    text,
                );
            }
            RunEvent::Reasoning(piece) => {
                self.chunk(
                    Delta {
                        reasoning_content: Some(piece),
                        ..Delta::default()
                    },
                    text,
                );
            }
            // Server tools are not the client's affair; its SDK would try to run them.
            RunEvent::ToolStarted { .. } | RunEvent::ToolNotice { .. } | RunEvent::ToolFinished { .. } => {}
            RunEvent::ClientCalls(calls) => self.calls(calls, text),
            RunEvent::Finished(finished) => self.finish(&finished, text),
            RunEvent::Failed(error) => self.fail(error.into(), text),
        }
    }

    fn calls(&mut self, calls: Vec<ToolCall>, text: &mut String) {
        for call in calls {
            let delta = if self.form.legacy_functions {
                Delta {
                    function_call: Some(AnswerFunction::of(&call)),
                    ..Delta::default()
                }
            } else {
                Delta {
                    tool_calls: vec![AnswerCall::of(call, Some(self.calls))],
                    ..Delta::default()
                }
            };
            self.calls += 1;
            self.chunk(delta, text);
            if self.form.legacy_functions {
                // That form has room for one call.
                return;
            }
        }
    }

    fn finish(&mut self, finished: &Finished, text: &mut String) {
        let reason = finish_reason(finished.reason, self.calls > 0, self.form.legacy_functions);
        let tidegate = Extension::of(&finished.sources);
        self.write(
            vec![ChunkChoice::of(Delta::default(), Some(reason))],
            self.no_usage(),
            tidegate,
            text,
        );
        if self.form.include_usage {
            self.write(Vec::new(), UsageField::Sum(finished.usage.into()), None, text);
        }
        self.end(text);
    }

    /// No finish chunk goes with an error: it would make a cut answer look complete.
    fn fail(&mut self, error: ApiError, text: &mut String) {
        line(&error.into_envelope(), text);
        self.end(text);
    }

    fn end(&mut self, text: &mut String) {
        text.push_str(DONE);
        self.ended = true;
    }

    fn chunk(&self, delta: Delta, text: &mut String) {
        self.write(vec![ChunkChoice::of(delta, None)], self.no_usage(), None, text);
    }

    /// The usage of a chunk that has none.
    fn no_usage(&self) -> UsageField {
        if self.form.include_usage {
            UsageField::Null
        } else {
            UsageField::Absent
        }
    }

    fn write(
        &self,
        choices: Vec<ChunkChoice>,
        usage: UsageField,
        tidegate: Option<Extension>,
        text: &mut String,
    ) {
        let chunk = ChatCompletionChunk {
            id: &self.head.id,
            object: "chat.completion.chunk",
            created: self.head.created,
            model: &self.head.model,
            system_fingerprint: FINGERPRINT,
            choices,
            usage,
            tidegate,
        };
        line(&chunk, text);
    }
}

/// One event. JSON text has no line ends of its own, so that no text of a model can become an event.
fn line(value: &impl Serialize, text: &mut String) {
    let written = serde_json::to_string(value).map(|json| write!(text, "data: {json}\n\n"));
    if !matches!(written, Ok(Ok(()))) {
        tracing::error!("an event could not be written");
    }
}

pub(super) fn broke_off() -> ApiError {
    ApiError::from(RunError::Store("a run ended without saying how".to_owned()))
}

#[cfg(test)]
mod tests;

//! Run events → one answer.

use futures_util::StreamExt as _;
use tidegate_engine::{Finished, RunEvent};

use super::{
    error::ApiError,
    source::Events,
    sse::broke_off,
    wire::{
        answer::{
            AnswerCall, AnswerFunction, AnswerMessage, ChatCompletion, Choice, FINGERPRINT, Head,
            finish_reason,
        },
        chat::Form,
        sources::{Extension, annotations},
    },
};

/// Reads the events to their end.
pub(super) async fn answer(mut events: Events, head: Head, form: Form) -> Result<ChatCompletion, ApiError> {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    while let Some(event) = events.next().await {
        match event {
            RunEvent::Text(piece) => text.push_str(&piece),
            RunEvent::Reasoning(piece) => reasoning.push_str(&piece),
            RunEvent::ToolStarted { .. } | RunEvent::ToolNotice { .. } | RunEvent::ToolFinished { .. } => {}
            RunEvent::ClientCalls(more) => calls.extend(more),
            RunEvent::Failed(error) => return Err(error.into()),
            RunEvent::Finished(finished) => {
                let annotations = annotations(&finished.sources, &text);
                let mut message = AnswerMessage {
                    role: "assistant",
                    content: (calls.is_empty() || !text.is_empty()).then_some(text),
                    refusal: None,
                    reasoning_content: (!reasoning.is_empty()).then_some(reasoning),
                    tool_calls: Vec::new(),
                    function_call: None,
                    annotations,
                };
                let has_calls = !calls.is_empty();
                if form.legacy_functions {
                    message.function_call = calls.first().map(AnswerFunction::of);
                } else {
                    message.tool_calls = calls.into_iter().map(|call| AnswerCall::of(call, None)).collect();
                }
                return Ok(completion(head, message, &finished, has_calls, form));
            }
        }
    }
    Err(broke_off())
}

fn completion(
    head: Head,
    message: AnswerMessage,
    finished: &Finished,
    has_calls: bool,
    form: Form,
) -> ChatCompletion {
    let finish_reason = finish_reason(finished.reason, has_calls, form.legacy_functions);
    ChatCompletion {
        id: head.id,
        object: "chat.completion",
        created: head.created,
        model: head.model,
        choices: vec![Choice {
            index: 0,
            message,
            logprobs: None,
            finish_reason,
        }],
        usage: finished.usage.into(),
        system_fingerprint: FINGERPRINT,
        tidegate: Extension::of(&finished.sources),
    }
}

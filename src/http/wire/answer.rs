//! Answers: one completion, or the chunks of a stream. The order of the fields is the order on the wire.

use serde::Serialize;
use tidegate_core::{id::CallId, model::FinishReason, tool::ToolCall, usage::Usage};
use utoipa::ToSchema;

use super::sources::{Annotation, Extension};

/// Says which build answered, as the hosted API's fingerprint does.
pub(in crate::http) const FINGERPRINT: &str = concat!("fp_tidegate_", env!("CARGO_PKG_VERSION"));

/// What every chunk of a stream, or the one completion, carries.
#[derive(Debug, Clone)]
pub(in crate::http) struct Head {
    /// Unique to the request.
    pub(in crate::http) id: String,
    /// Seconds since 1970.
    pub(in crate::http) created: i64,
    /// The model as the client named it.
    pub(in crate::http) model: String,
}

/// A whole answer.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ChatCompletion {
    pub(in crate::http) id: String,
    /// `chat.completion`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) created: i64,
    pub(in crate::http) model: String,
    /// Always one.
    pub(in crate::http) choices: Vec<Choice>,
    pub(in crate::http) usage: WireUsage,
    pub(in crate::http) system_fingerprint: &'static str,
    /// What is not in the hosted API; absent where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) tidegate: Option<Extension>,
}

/// The one choice of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Choice {
    pub(in crate::http) index: u32,
    pub(in crate::http) message: AnswerMessage,
    /// Always null.
    pub(in crate::http) logprobs: Option<bool>,
    /// `stop`, `length`, `tool_calls`, `content_filter`, or the older `function_call`.
    pub(in crate::http) finish_reason: &'static str,
}

/// The agent's message.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct AnswerMessage {
    /// `assistant`.
    pub(in crate::http) role: &'static str,
    /// Null only beside calls.
    pub(in crate::http) content: Option<String>,
    /// Always null.
    pub(in crate::http) refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) reasoning_content: Option<String>,
    /// Calls for the client's tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::http) tool_calls: Vec<AnswerCall>,
    /// The same in the older form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) function_call: Option<AnswerFunction>,
    /// The documents that the answer rests on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::http) annotations: Vec<Annotation>,
}

/// A call for the client. In a stream it also carries its place.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(in crate::http) struct AnswerCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) index: Option<usize>,
    #[schema(value_type = String)]
    pub(in crate::http) id: CallId,
    /// `function`.
    #[serde(rename = "type")]
    pub(in crate::http) kind: &'static str,
    pub(in crate::http) function: AnswerFunction,
}

/// What to call, with arguments as JSON text.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(in crate::http) struct AnswerFunction {
    pub(in crate::http) name: String,
    pub(in crate::http) arguments: String,
}

/// Tokens, summed over every internal model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::http) struct WireUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptTokens,
    completion_tokens_details: CompletionTokens,
}

/// Of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
struct PromptTokens {
    cached_tokens: u64,
}

/// Of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
struct CompletionTokens {
    reasoning_tokens: u64,
}

/// One event of a stream.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ChatCompletionChunk<'a> {
    pub(in crate::http) id: &'a str,
    /// `chat.completion.chunk`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) created: i64,
    pub(in crate::http) model: &'a str,
    pub(in crate::http) system_fingerprint: &'static str,
    /// One, or none in the usage chunk.
    pub(in crate::http) choices: Vec<ChunkChoice>,
    /// Absent unless asked for; null in all but the usage chunk.
    #[serde(skip_serializing_if = "UsageField::is_absent")]
    #[schema(value_type = Option<WireUsage>)]
    pub(in crate::http) usage: UsageField,
    /// What is not in the hosted API; only in the finish chunk, and absent where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) tidegate: Option<Extension>,
}

/// The usage of a chunk: null and absence differ on the wire.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(in crate::http) enum UsageField {
    /// Not asked for.
    Absent,
    /// Asked for, and to come.
    Null,
    /// Here.
    Sum(WireUsage),
}

impl UsageField {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// The one choice of a chunk.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ChunkChoice {
    pub(in crate::http) index: u32,
    pub(in crate::http) delta: Delta,
    /// Always null.
    pub(in crate::http) logprobs: Option<bool>,
    /// Null until the last.
    pub(in crate::http) finish_reason: Option<&'static str>,
}

/// What a chunk adds.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::http) tool_calls: Vec<AnswerCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) function_call: Option<AnswerFunction>,
}

impl ChunkChoice {
    /// The choice with what it adds and why it ends.
    pub(in crate::http) fn of(delta: Delta, finish_reason: Option<&'static str>) -> Self {
        Self {
            index: 0,
            delta,
            logprobs: None,
            finish_reason,
        }
    }
}

impl AnswerFunction {
    /// The call's name and arguments.
    pub(in crate::http) fn of(call: &ToolCall) -> Self {
        Self {
            name: call.name.clone(),
            arguments: call.arguments.to_json(),
        }
    }
}

impl AnswerCall {
    /// The call, with its place where it is part of a stream.
    pub(in crate::http) fn of(call: ToolCall, index: Option<usize>) -> Self {
        Self {
            index,
            kind: "function",
            function: AnswerFunction::of(&call),
            id: call.id,
        }
    }
}

impl From<Usage> for WireUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens(),
            prompt_tokens_details: PromptTokens {
                cached_tokens: usage.cached_tokens,
            },
            completion_tokens_details: CompletionTokens {
                reasoning_tokens: usage.reasoning_tokens,
            },
        }
    }
}

/// The wire's word for an end. `tool_calls` exactly when the answer carries calls for the client, and a cut is
/// never called anything else.
pub(in crate::http) fn finish_reason(reason: FinishReason, has_calls: bool, legacy: bool) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop | FinishReason::ToolCalls if !has_calls => "stop",
        FinishReason::Stop | FinishReason::ToolCalls if legacy => "function_call",
        FinishReason::Stop | FinishReason::ToolCalls => "tool_calls",
    }
}

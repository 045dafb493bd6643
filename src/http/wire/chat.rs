//! The body of `POST /v1/chat/completions`, and what it asks of the engine.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use tidegate_core::{
    caller::{Origin, Scope},
    id::RequestId,
};
use tidegate_engine::{Lease, RunRequest};
use utoipa::ToSchema;

use super::{
    json::{Free, List, Object, extra_fields},
    messages::{WireMessage, messages},
    sampling::sampling,
    tools::{Function, TOOLS_MAX, Tool, offer},
};
use crate::http::{Options, auth::Identity, error::ApiError, extract};

/// Messages in one request.
const MESSAGES_MAX: usize = 16_384;
/// Characters of a model's name.
const MODEL_CHARS_MAX: usize = 256;
/// Pairs of metadata, and the characters of their names and values.
const METADATA_MAX: (usize, usize, usize) = (16, 64, 512);

/// The fields of the contract. Null is absence; a field that is not here is ignored, or handed to a model's server
/// whose operator has listed it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CreateChatCompletionRequest)]
pub(in crate::http) struct ChatRequest {
    /// A model of `GET /v1/models`; `tidegate` names the default.
    #[schema(required)]
    pub(super) model: Option<String>,
    /// The history, the newest message last.
    #[schema(value_type = Vec<WireMessage>, required)]
    pub(super) messages: Option<List<Object<WireMessage>, MESSAGES_MAX>>,
    /// Whether the answer comes as an event stream.
    pub(super) stream: Option<bool>,
    #[schema(value_type = Option<StreamOptions>)]
    pub(super) stream_options: Option<Object<StreamOptions>>,
    /// Answer tokens at most.
    pub(super) max_completion_tokens: Option<i64>,
    /// The older name of `max_completion_tokens`, which wins.
    pub(super) max_tokens: Option<i64>,
    /// 0 to 2.
    pub(super) temperature: Option<f64>,
    /// 0 to 1.
    pub(super) top_p: Option<f64>,
    /// -2 to 2.
    pub(super) presence_penalty: Option<f64>,
    /// -2 to 2.
    pub(super) frequency_penalty: Option<f64>,
    /// Only 1 is served.
    pub(super) n: Option<i64>,
    /// A string, or up to four.
    #[schema(value_type = Option<Value>)]
    pub(super) stop: Option<Free>,
    pub(super) seed: Option<i64>,
    /// Accepted; the answer's `logprobs` is null.
    pub(super) logprobs: Option<bool>,
    /// 0 to 20; needs `logprobs`.
    pub(super) top_logprobs: Option<i64>,
    /// Token ids with a bias of -100 to 100.
    #[schema(value_type = Option<Object>)]
    pub(super) logit_bias: Option<Free>,
    /// Tools that the client runs.
    #[schema(value_type = Option<Vec<Tool>>)]
    pub(super) tools: Option<List<Object<Tool>, TOOLS_MAX>>,
    /// `none`, `auto`, `required`, a tool, or allowed tools.
    #[schema(value_type = Option<Value>)]
    pub(super) tool_choice: Option<Free>,
    /// Whether one answer may hold several calls.
    pub(super) parallel_tool_calls: Option<bool>,
    /// The older form of `tools`.
    #[schema(value_type = Option<Vec<Function>>)]
    pub(super) functions: Option<List<Object<Function>, TOOLS_MAX>>,
    /// The older form of `tool_choice`.
    #[schema(value_type = Option<Value>)]
    pub(super) function_call: Option<Free>,
    /// `text`, `json_object` or `json_schema`.
    #[schema(value_type = Option<Object>)]
    pub(super) response_format: Option<Free>,
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`.
    pub(super) reasoning_effort: Option<String>,
    /// Another way to say `reasoning_effort`.
    #[schema(value_type = Option<Reasoning>)]
    pub(super) reasoning: Option<Object<Reasoning>>,
    /// Only text is served.
    #[schema(value_type = Option<Vec<String>>)]
    pub(super) modalities: Option<List<String, 8>>,
    /// Up to 16 pairs of strings; accepted, not kept.
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Free>,
    /// The end user; their data is kept apart.
    pub(super) user: Option<String>,
    /// The newer name of `user`, which wins.
    pub(super) safety_identifier: Option<String>,
    /// A Responses request that came to the wrong route.
    #[schema(ignore)]
    input: Option<IgnoredAny>,
}

/// Top-level fields that the contract knows: they are read above, or accepted and ignored. None of them goes to a
/// model's server as an extra; nor do `mode` and `approved`, by which some bodies claim what only a key can grant.
const KNOWN_FIELDS: [&str; 39] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "stop",
    "seed",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "response_format",
    "reasoning_effort",
    "reasoning",
    "modalities",
    "metadata",
    "user",
    "safety_identifier",
    "input",
    "verbosity",
    "audio",
    "prediction",
    "web_search_options",
    "service_tier",
    "prompt_cache_retention",
    "store",
    "prompt_cache_key",
    "mode",
    "approved",
];

/// What the stream should hold beside the answer.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::http) struct StreamOptions {
    /// Whether a last chunk says what the answer cost.
    include_usage: Option<bool>,
}

/// How hard to think.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::http) struct Reasoning {
    /// As in `reasoning_effort`.
    pub(super) effort: Option<String>,
}

/// In which form the client wants its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Form {
    /// As an event stream.
    pub(in crate::http) stream: bool,
    /// With a usage chunk at the end of the stream.
    pub(in crate::http) include_usage: bool,
    /// With `function_call` in place of `tool_calls`.
    pub(in crate::http) legacy_functions: bool,
}

/// Reads a body into what the engine takes, and the form of the answer.
pub(in crate::http) fn read(
    body: &[u8],
    identity: Identity,
    request_id: RequestId,
    options: &Options,
) -> Result<(RunRequest, Form), ApiError> {
    let mut request: ChatRequest = extract::parse(body)?;
    let model = model(request.model.take())?;
    let wire = match (request.messages.take(), &request.input) {
        (None, Some(_)) => {
            return Err(ApiError::missing("messages").explained(
                "this is the body of a Responses request (`input`), which belongs to POST /v1/responses; here the \
                 history goes into `messages`",
            ));
        }
        (None, None) => return Err(ApiError::missing("messages")),
        (Some(list), _) => list.0,
    };
    if wire.is_empty() {
        return Err(ApiError::invalid_value(
            "messages",
            "there must be at least one message",
        ));
    }
    refuse_unserved(&request)?;
    let identity = match (request.safety_identifier.take(), request.user.take()) {
        (Some(user), _) => identity.with_user(&user, "safety_identifier")?,
        (None, Some(user)) => identity.with_user(&user, "user")?,
        (None, None) => identity,
    };
    let offer = offer(&mut request, identity.caller.has(Scope::Tools))?;
    let extra = extra_fields(body, &KNOWN_FIELDS).unwrap_or_default();
    let sampling = sampling(&mut request, extra)?;
    let stream = request.stream.unwrap_or(false);
    let include_usage = request
        .stream_options
        .is_some_and(|Object(options)| options.include_usage == Some(true));
    let form = Form {
        stream,
        include_usage: stream && include_usage,
        legacy_functions: offer.legacy,
    };
    let run = RunRequest {
        caller: identity.caller,
        origin: Origin::Http,
        request_id,
        model,
        messages: messages(wire, options.remote_images)?,
        client_tools: offer.tools,
        tool_choice: offer.choice,
        parallel_tool_calls: offer.parallel,
        sampling,
        response_format: request
            .response_format
            .map(|free| response_format(free.0))
            .transpose()?
            .flatten(),
        stream,
        // A field of a body is no authority: only the header counts, and it can only lower what the key has.
        mode: identity.mode,
        conversation: identity.conversation,
        on_disconnect: identity.on_disconnect,
        lease: Lease::default(),
        approver: None,
    };
    Ok((run, form))
}

fn model(model: Option<String>) -> Result<String, ApiError> {
    let model = model.ok_or_else(|| ApiError::missing("model"))?;
    let usable = !model.trim().is_empty()
        && model.chars().count() <= MODEL_CHARS_MAX
        && !model.chars().any(char::is_control);
    if usable {
        Ok(model)
    } else {
        Err(ApiError::invalid_value(
            "model",
            format!("a model's name has 1 to {MODEL_CHARS_MAX} characters, none of them a control character"),
        ))
    }
}

/// What would otherwise be silently different from what was asked.
fn refuse_unserved(request: &ChatRequest) -> Result<(), ApiError> {
    match request.n {
        None | Some(1) => {}
        Some(2..=128) => {
            return Err(ApiError::unsupported(
                "n",
                "only one choice is served; leave `n` out or set it to 1",
            ));
        }
        Some(n) => {
            return Err(ApiError::invalid_value(
                "n",
                format!("`n` is {n}; it must lie between 1 and 128"),
            ));
        }
    }
    let modalities = request
        .modalities
        .as_ref()
        .map(|list| list.0.as_slice())
        .unwrap_or_default();
    if let Some(other) = modalities.iter().find(|modality| *modality != "text") {
        return Err(ApiError::unsupported(
            "modalities",
            format!("output of the kind `{other}` is not served; ask for text"),
        ));
    }
    match &request.metadata {
        Some(Free(metadata)) => check_metadata(metadata),
        None => Ok(()),
    }
}

fn check_metadata(metadata: &Value) -> Result<(), ApiError> {
    let (pairs_max, key_chars_max, value_chars_max) = METADATA_MAX;
    let Value::Object(map) = metadata else {
        return Err(ApiError::invalid_type(
            "metadata",
            "`metadata` must be an object of strings",
        ));
    };
    if map.len() > pairs_max {
        return Err(ApiError::invalid_value(
            "metadata",
            format!("`metadata` has at most {pairs_max} pairs"),
        ));
    }
    for (key, value) in map {
        let param = format!("metadata.{key}");
        let Value::String(value) = value else {
            return Err(ApiError::invalid_type(
                param,
                "a value of metadata must be a string",
            ));
        };
        if key.chars().count() > key_chars_max || value.chars().count() > value_chars_max {
            let message = format!(
                "metadata has names of at most {key_chars_max} and values of at most {value_chars_max} characters"
            );
            return Err(ApiError::invalid_value(param, message));
        }
    }
    Ok(())
}

/// Checked and handed on as it was written; `text` is what happens anyway.
fn response_format(value: Value) -> Result<Option<Value>, ApiError> {
    const PARAM: &str = "response_format";
    let Value::Object(map) = value else {
        return Err(ApiError::invalid_type(
            PARAM,
            "`response_format` must be an object",
        ));
    };
    match map.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Value::Object(map))),
        Some("json_schema") => {
            check_schema(map.get("json_schema"))?;
            Ok(Some(Value::Object(map)))
        }
        Some(_) => Err(ApiError::invalid_value(
            "response_format.type",
            "`response_format.type` must be `text`, `json_object` or `json_schema`",
        )),
        None => Err(ApiError::missing("response_format.type")),
    }
}

fn check_schema(body: Option<&Value>) -> Result<(), ApiError> {
    const PARAM: &str = "response_format.json_schema";
    let body: &Map<String, Value> = body
        .and_then(Value::as_object)
        .ok_or_else(|| ApiError::missing(PARAM))?;
    let name = body
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| ApiError::missing(format!("{PARAM}.name")))?;
    super::tools::check_name(name, &format!("{PARAM}.name"))?;
    match body.get("schema") {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => Err(
            ApiError::invalid_type(format!("{PARAM}.schema"), "a schema must be an object"),
        ),
    }
}

#[cfg(test)]
mod tests;

//! Tools that the client runs itself, and what it says about calling them; the legacy `functions` forms too.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::model::{ToolChoice, ToolSchema};
use utoipa::ToSchema;

use super::{
    chat::ChatRequest,
    json::{Free, Object},
};
use crate::http::error::ApiError;

/// Tools in one request, as the hosted API bounds them.
pub(super) const TOOLS_MAX: usize = 128;
/// Characters of a tool's name.
const NAME_CHARS_MAX: usize = 64;

/// A tool as a client offers it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(in crate::http) struct Tool {
    /// `function`; `custom` tools are not served.
    #[serde(rename = "type")]
    kind: String,
    /// The function.
    #[schema(value_type = Option<Function>)]
    function: Option<Object<Function>>,
}

/// A function that the client runs.
#[derive(Debug, Clone, Deserialize, ToSchema)]
pub(in crate::http) struct Function {
    /// `[A-Za-z0-9_-]{1,64}`.
    name: String,
    /// What it does, for the model.
    description: Option<String>,
    /// JSON Schema of its arguments.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Free>,
    /// Whether arguments must fit the schema exactly.
    strict: Option<bool>,
}

/// The client's tools, what it says about calling them, and whether it asked in the legacy form.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) tools: Vec<ToolSchema>,
    pub(super) choice: ToolChoice,
    pub(super) parallel: bool,
    pub(super) legacy: bool,
}

/// Reads both forms. `server_tools` is whether the key may use the operator's tools, whose names are not
/// known here: a choice of a name that the client did not offer is then the engine's to judge.
pub(super) fn offer(request: &mut ChatRequest, server_tools: bool) -> Result<Offer, ApiError> {
    let modern = request.tools.take().map(|list| list.0).unwrap_or_default();
    let functions = request.functions.take().map(|list| list.0).unwrap_or_default();
    let legacy = !functions.is_empty() || request.function_call.is_some();
    if legacy && (!modern.is_empty() || request.tool_choice.is_some()) {
        return Err(ApiError::invalid_value(
            "functions",
            "send either `tools` and `tool_choice`, or the older `functions` and `function_call`, not both",
        ));
    }
    let mut tools = Vec::with_capacity(modern.len() + functions.len());
    for (index, Object(tool)) in modern.into_iter().enumerate() {
        let function = function_of(tool, index)?;
        add(&mut tools, function, &format!("tools.{index}.function"))?;
    }
    for (index, Object(function)) in functions.into_iter().enumerate() {
        add(&mut tools, function, &format!("functions.{index}"))?;
    }
    let choice = match (request.tool_choice.take(), request.function_call.take()) {
        (Some(choice), _) => tool_choice(choice.0, &mut tools)?,
        (None, Some(choice)) => function_choice(choice.0)?,
        (None, None) => ToolChoice::Auto,
    };
    let param = if legacy { "function_call" } else { "tool_choice" };
    check_choice(&choice, &tools, server_tools, param)?;
    // The legacy answer has room for one call.
    let parallel = !legacy && request.parallel_tool_calls.unwrap_or(true);
    Ok(Offer {
        tools,
        choice,
        parallel,
        legacy,
    })
}

fn function_of(tool: Tool, index: usize) -> Result<Function, ApiError> {
    match (tool.kind.as_str(), tool.function) {
        ("function", Some(Object(function))) => Ok(function),
        ("function", None) => {
            let message = "a tool is written as {\"type\": \"function\", \"function\": {\"name\": …}}; the flat form \
                           belongs to POST /v1/responses";
            Err(ApiError::missing(format!("tools.{index}.function")).explained(message))
        }
        ("custom", _) => Err(ApiError::unsupported(
            format!("tools.{index}.type"),
            "custom tools are not served here; offer the tool as a function",
        )),
        _ => Err(ApiError::invalid_value(
            format!("tools.{index}.type"),
            "a tool's type must be `function`",
        )),
    }
}

fn add(tools: &mut Vec<ToolSchema>, function: Function, param: &str) -> Result<(), ApiError> {
    let name = function.name;
    check_name(&name, &format!("{param}.name"))?;
    if tools.iter().any(|tool| tool.name == name) {
        return Err(ApiError::invalid_value(
            format!("{param}.name"),
            format!("two tools are named `{name}`"),
        ));
    }
    let parameters = match function.parameters.map(|free| free.0) {
        None => json!({"type": "object", "properties": {}}),
        Some(Value::Object(schema)) => Value::Object(schema),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            let message = "a tool's parameters are a JSON Schema, an object";
            return Err(ApiError::invalid_type(format!("{param}.parameters"), message));
        }
    };
    tools.push(ToolSchema {
        name,
        description: function.description.unwrap_or_default(),
        parameters: parameters.into(),
        strict: function.strict,
    });
    Ok(())
}

/// A name that every upstream takes.
pub(super) fn check_name(name: &str, param: &str) -> Result<(), ApiError> {
    let fits = (1..=NAME_CHARS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if fits {
        return Ok(());
    }
    let message = format!("a tool's name has 1 to {NAME_CHARS_MAX} characters out of A-Z, a-z, 0-9, _ and -");
    Err(ApiError::invalid_value(param, message))
}

fn tool_choice(value: Value, tools: &mut Vec<ToolSchema>) -> Result<ToolChoice, ApiError> {
    match value {
        Value::String(word) => choice_word(&word, "tool_choice"),
        Value::Object(map) => match text(&map, "type") {
            Some("function") => named(map.get("function"), "tool_choice.function.name"),
            Some("allowed_tools") => allowed_tools(map.get("allowed_tools"), tools),
            Some("custom") => Err(ApiError::unsupported(
                "tool_choice.type",
                "custom tools are not served here",
            )),
            Some(_) | None => Err(ApiError::invalid_value(
                "tool_choice.type",
                "`tool_choice.type` must be `function` or `allowed_tools`",
            )),
        },
        Value::Null => Ok(ToolChoice::Auto),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(ApiError::invalid_type(
            "tool_choice",
            "`tool_choice` must be a string or an object",
        )),
    }
}

fn function_choice(value: Value) -> Result<ToolChoice, ApiError> {
    match value {
        // `required` has no legacy form.
        Value::String(word) if word != "required" => choice_word(&word, "function_call"),
        Value::Object(map) => named(Some(&Value::Object(map)), "function_call.name"),
        Value::Null => Ok(ToolChoice::Auto),
        Value::String(_) | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(ApiError::invalid_value(
                "function_call",
                "`function_call` must be `none`, `auto` or {\"name\": …}",
            ))
        }
    }
}

fn choice_word(word: &str, param: &str) -> Result<ToolChoice, ApiError> {
    match word {
        "none" => Ok(ToolChoice::None),
        "auto" => Ok(ToolChoice::Auto),
        "required" => Ok(ToolChoice::Required),
        _ => Err(ApiError::invalid_value(
            param,
            format!("`{param}` must be `none`, `auto`, `required` or an object"),
        )),
    }
}

fn named(holder: Option<&Value>, param: &str) -> Result<ToolChoice, ApiError> {
    let name = holder
        .and_then(|value| value.get("name"))
        .ok_or_else(|| ApiError::missing(param))?;
    let name = name
        .as_str()
        .ok_or_else(|| ApiError::invalid_type(param, "a tool's name must be a string"))?;
    check_name(name, param)?;
    Ok(ToolChoice::Named(name.to_owned()))
}

/// Leaves only the allowed ones of the client's tools.
fn allowed_tools(value: Option<&Value>, tools: &mut Vec<ToolSchema>) -> Result<ToolChoice, ApiError> {
    const PARAM: &str = "tool_choice.allowed_tools";
    let Some(Value::Object(body)) = value else {
        return Err(ApiError::missing(PARAM));
    };
    let choice = match text(body, "mode") {
        Some("auto") | None => ToolChoice::Auto,
        Some("required") => ToolChoice::Required,
        Some(_) => {
            return Err(ApiError::invalid_value(
                format!("{PARAM}.mode"),
                "the mode must be `auto` or `required`",
            ));
        }
    };
    let Some(Value::Array(listed)) = body.get("tools") else {
        return Err(ApiError::missing(format!("{PARAM}.tools")));
    };
    let mut names = Vec::with_capacity(listed.len());
    for (index, tool) in listed.iter().enumerate() {
        let param = format!("{PARAM}.tools.{index}.function.name");
        let name = tool
            .get("function")
            .and_then(|function| function.get("name"))
            .and_then(Value::as_str)
            .ok_or_else(|| ApiError::missing(param.clone()))?;
        if !tools.iter().any(|offered| offered.name == name) {
            return Err(ApiError::invalid_value(
                param,
                format!("no tool named `{name}` was offered in `tools`"),
            ));
        }
        names.push(name.to_owned());
    }
    tools.retain(|tool| names.contains(&tool.name));
    Ok(choice)
}

fn check_choice(
    choice: &ToolChoice,
    tools: &[ToolSchema],
    server_tools: bool,
    param: &str,
) -> Result<(), ApiError> {
    match choice {
        ToolChoice::Auto | ToolChoice::None => Ok(()),
        ToolChoice::Required if server_tools || !tools.is_empty() => Ok(()),
        ToolChoice::Required => Err(ApiError::invalid_value(
            param,
            format!("`{param}` requires a call, but there are no tools to call"),
        )),
        ToolChoice::Named(name) if server_tools || tools.iter().any(|tool| tool.name == *name) => Ok(()),
        ToolChoice::Named(name) => Err(ApiError::invalid_value(
            param,
            format!("`{param}` names `{name}`, which was not offered"),
        )),
    }
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

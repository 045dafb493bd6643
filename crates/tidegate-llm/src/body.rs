//! Writes the request body of OpenAI's dialect. The only place that does.
//!
//! Fields are left out rather than sent empty: `tools: []`, `stream_options` without `stream` and unknown
//! fields are errors at some servers. What a provider's row says it must not be sent is not sent.

mod messages;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Number, Value, json, value::RawValue};
use tidegate_core::model::{ModelRequest, Sampling, ToolChoice, ToolSchema};

use crate::{fault::Failure, providers::Provider, text_tools::prepare};

pub(crate) use messages::{history_arguments, unsupported};

/// The most stop texts the contract knows.
const STOP_MAX: usize = 4;

/// The body of `POST …/chat/completions`.
pub(crate) fn openai<'a>(provider: &Provider, request: &'a ModelRequest) -> Result<Wire<'a>, Failure> {
    let prepared = prepare(request);
    let mut body = Body::new(provider);
    body.set("model", request.model.name.clone());
    body.set(
        "messages",
        messages::openai(provider, &prepared.system, &prepared.messages)?,
    );
    body.set("stream", request.stream);
    if request.stream {
        body.set("stream_options", json!({"include_usage": true}));
    }
    body.sampling(request);
    body.tools(prepared.tools, request);
    if let Some(format) = &request.response_format {
        body.set("response_format", format.clone());
    }
    body.extra(&request.sampling);
    Ok(Wire {
        fields: body.fields,
        tools: body.tools,
    })
}

/// A body as it is sent.
#[derive(Debug, Serialize)]
pub(crate) struct Wire<'a> {
    /// All but the tools.
    #[serde(flatten)]
    fields: Map<String, Value>,
    /// The tools; their schemas are text already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

/// A tool as both dialects write it.
#[derive(Debug, Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> Tool<'a> {
    fn of(schema: &'a ToolSchema) -> Self {
        Self {
            kind: "function",
            function: Function {
                name: &schema.name,
                description: &schema.description,
                parameters: schema.parameters.text(),
                strict: schema.strict,
            },
        }
    }
}

/// A body in the making.
struct Body<'p, 'a> {
    provider: &'p Provider,
    fields: Map<String, Value>,
    tools: Vec<Tool<'a>>,
}

impl<'p, 'a> Body<'p, 'a> {
    fn new(provider: &'p Provider) -> Self {
        Self {
            provider,
            fields: Map::new(),
            tools: Vec::new(),
        }
    }

    fn set(&mut self, field: &str, value: impl Into<Value>) {
        if !self.provider.omits(field) {
            self.fields.insert(field.to_owned(), value.into());
        }
    }

    fn set_number(&mut self, field: &str, value: Option<f64>, min: f64, max: f64) {
        if let Some(number) = value.and_then(|value| clamped(value, min, max)) {
            self.set(field, number);
        }
    }

    fn sampling(&mut self, request: &ModelRequest) {
        let sampling = &request.sampling;
        self.set_number("temperature", sampling.temperature, 0.0, 2.0);
        self.set_number("top_p", sampling.top_p, 0.0, 1.0);
        self.set_number("presence_penalty", sampling.presence_penalty, -2.0, 2.0);
        self.set_number("frequency_penalty", sampling.frequency_penalty, -2.0, 2.0);
        if let Some(tokens_max) = tokens_max(self.provider, request) {
            self.set(self.provider.tokens_field.name(), tokens_max);
        }
        let stop = stop_texts(sampling);
        if !stop.is_empty() {
            self.set("stop", json!(stop));
        }
        if let Some(seed) = sampling.seed {
            self.set("seed", seed);
        }
        if let Some(effort) = sampling
            .reasoning_effort
            .as_deref()
            .and_then(|effort| self.provider.effort(effort))
        {
            self.set("reasoning_effort", effort);
        }
        if let Some(bias) = sampling.logit_bias.as_ref().filter(|bias| !bias.is_empty()) {
            self.set("logit_bias", bias.clone());
        }
    }

    fn tools(&mut self, tools: &'a [Arc<ToolSchema>], request: &ModelRequest) {
        if tools.is_empty() || (request.tool_choice == ToolChoice::None && self.provider.omits("tool_choice"))
        {
            return;
        }
        if !self.provider.omits("tools") {
            self.tools = tools.iter().map(|schema| Tool::of(schema)).collect();
        }
        match &request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => self.set("tool_choice", "none"),
            ToolChoice::Required => self.set("tool_choice", "required"),
            ToolChoice::Named(name) => {
                self.set(
                    "tool_choice",
                    json!({"type": "function", "function": {"name": name}}),
                );
            }
        }
        if !request.parallel_tool_calls {
            self.set("parallel_tool_calls", false);
        }
    }

    /// Fields outside the contract that the provider's list allows. None of them replaces one of ours.
    fn extra(&mut self, sampling: &Sampling) {
        for (field, value) in &sampling.extra {
            let is_ours = self.fields.contains_key(field) || (field == "tools" && !self.tools.is_empty());
            if self.provider.extra.contains(field) && !is_ours {
                self.set(field, value.clone());
            }
        }
    }
}

/// The same as a value.
pub(crate) fn tool(schema: &ToolSchema) -> Value {
    serde_json::to_value(Tool::of(schema)).unwrap_or_default()
}

/// The bound on answer tokens: at least one, and no more than the provider or the window allows.
pub(crate) fn tokens_max(provider: &Provider, request: &ModelRequest) -> Option<u64> {
    let wanted = request.sampling.tokens_max?;
    let ceilings = [provider.tokens_max, request.model.context_tokens];
    let ceiling = ceilings.into_iter().flatten().min().unwrap_or(u64::MAX);
    Some(wanted.min(ceiling).max(1))
}

/// The stop texts that are sent: the first four that are not empty.
pub(crate) fn stop_texts(sampling: &Sampling) -> Vec<&str> {
    let texts = sampling
        .stop
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty());
    texts.take(STOP_MAX).collect()
}

/// A number moved into its range; what is no number is not sent.
pub(crate) fn clamped(value: f64, min: f64, max: f64) -> Option<Number> {
    Number::from_f64(value.clamp(min, max))
}

//! The fields that say how to sample, with their ranges.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use tidegate_core::model::Sampling;

use super::chat::ChatRequest;
use crate::http::error::ApiError;

/// Stop texts in one request.
const STOPS_MAX: usize = 4;
/// Bytes of one stop text.
const STOP_BYTES_MAX: usize = 1024;
/// Tokens that a logit bias may name.
const BIASES_MAX: usize = 1024;
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The sampling part of a request; `extra` are the fields outside the contract.
pub(super) fn sampling(request: &mut ChatRequest, extra: Map<String, Value>) -> Result<Sampling, ApiError> {
    for (param, value, range) in [
        ("temperature", request.temperature, 0.0..=2.0),
        ("top_p", request.top_p, 0.0..=1.0),
        ("presence_penalty", request.presence_penalty, -2.0..=2.0),
        ("frequency_penalty", request.frequency_penalty, -2.0..=2.0),
    ] {
        in_range(param, value, &range)?;
    }
    let completion = tokens_max("max_completion_tokens", request.max_completion_tokens)?;
    let tokens = tokens_max("max_tokens", request.max_tokens)?;
    log_probabilities(request)?;
    Ok(Sampling {
        temperature: request.temperature,
        top_p: request.top_p,
        presence_penalty: request.presence_penalty,
        frequency_penalty: request.frequency_penalty,
        tokens_max: completion.or(tokens),
        stop: request
            .stop
            .take()
            .map(|stop| stops(stop.0))
            .transpose()?
            .unwrap_or_default(),
        seed: request.seed,
        reasoning_effort: effort(request)?,
        logit_bias: request.logit_bias.take().map(|bias| biases(bias.0)).transpose()?,
        extra,
    })
}

fn in_range(param: &str, value: Option<f64>, range: &RangeInclusive<f64>) -> Result<(), ApiError> {
    match value {
        Some(value) if !range.contains(&value) => Err(ApiError::invalid_value(
            param,
            format!(
                "`{param}` is {value}; it must lie between {} and {}",
                range.start(),
                range.end()
            ),
        )),
        Some(_) | None => Ok(()),
    }
}

fn tokens_max(param: &str, value: Option<i64>) -> Result<Option<u64>, ApiError> {
    let Some(value) = value else { return Ok(None) };
    match u64::try_from(value) {
        Ok(tokens) if tokens > 0 => Ok(Some(tokens)),
        Ok(_) | Err(_) => Err(ApiError::invalid_value(
            param,
            format!("`{param}` is {value}; it must be at least 1"),
        )),
    }
}

/// Checked as the contract says. The answer's `logprobs` is always null: no run hands probabilities through.
fn log_probabilities(request: &ChatRequest) -> Result<(), ApiError> {
    let Some(top) = request.top_logprobs else {
        return Ok(());
    };
    if !(0..=20).contains(&top) {
        return Err(ApiError::invalid_value(
            "top_logprobs",
            "`top_logprobs` must lie between 0 and 20",
        ));
    }
    if request.logprobs != Some(true) {
        return Err(ApiError::invalid_value(
            "top_logprobs",
            "`top_logprobs` needs `logprobs: true`",
        ));
    }
    Ok(())
}

fn stops(value: Value) -> Result<Vec<String>, ApiError> {
    let listed = match value {
        Value::String(text) => vec![Value::String(text)],
        Value::Array(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(ApiError::invalid_type(
                "stop",
                "`stop` must be a string or an array of strings",
            ));
        }
    };
    if listed.len() > STOPS_MAX {
        return Err(ApiError::invalid_value(
            "stop",
            format!("`stop` has at most {STOPS_MAX} strings"),
        ));
    }
    let mut texts = Vec::with_capacity(listed.len());
    for (index, member) in listed.into_iter().enumerate() {
        match member {
            Value::String(text) if text.len() <= STOP_BYTES_MAX => texts.push(text),
            Value::String(_) => {
                let message = format!("a stop text has at most {STOP_BYTES_MAX} bytes");
                return Err(ApiError::invalid_value(format!("stop.{index}"), message));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Err(ApiError::invalid_type(
                    format!("stop.{index}"),
                    "a stop text must be a string",
                ));
            }
        }
    }
    Ok(texts)
}

fn biases(value: Value) -> Result<Map<String, Value>, ApiError> {
    let Value::Object(map) = value else {
        return Err(ApiError::invalid_type(
            "logit_bias",
            "`logit_bias` must be an object of numbers",
        ));
    };
    if map.len() > BIASES_MAX {
        return Err(ApiError::invalid_value(
            "logit_bias",
            format!("`logit_bias` has at most {BIASES_MAX} entries"),
        ));
    }
    for (token, bias) in &map {
        let param = format!("logit_bias.{token}");
        let Some(bias) = bias.as_f64() else {
            return Err(ApiError::invalid_type(param, "a bias must be a number"));
        };
        in_range(&param, Some(bias), &(-100.0..=100.0))?;
    }
    Ok(map)
}

fn effort(request: &mut ChatRequest) -> Result<Option<String>, ApiError> {
    let (param, word) = match (request.reasoning_effort.take(), request.reasoning.take()) {
        (Some(word), _) => ("reasoning_effort", Some(word)),
        (None, Some(reasoning)) => ("reasoning.effort", reasoning.0.effort),
        (None, None) => return Ok(None),
    };
    match word {
        Some(word) if !EFFORTS.contains(&word.as_str()) => Err(ApiError::invalid_value(
            param,
            format!("`{param}` must be one of {}", EFFORTS.join(", ")),
        )),
        word => Ok(word),
    }
}

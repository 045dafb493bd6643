//! Folds what a provider sends, whole or in pieces, into well-formed events.
//!
//! One assembler serves every encoding, so that they cannot differ: OpenAI's chunks and whole bodies, and
//! Ollama's lines and whole bodies. Calls are held back until the answer ends, because only then are their
//! arguments known to be complete: providers interleave the pieces of several calls.

mod calls;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde_json::Value;
use tidegate_core::{
    clock::Entropy,
    model::{FinishReason, ModelEvent, ModelRequest},
    usage::Usage,
};

use self::calls::Calls;
use crate::{fault::Failure, options::Limits};

/// The most tokens that one call can have: four thousand times the largest context there is.
const TOKENS_MAX: u64 = 1 << 32;

/// The assembler of one answer.
#[derive(Debug)]
pub(crate) struct Answer {
    model: String,
    calls: Calls,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    bytes: usize,
    bytes_max: usize,
    ready: VecDeque<ModelEvent>,
}

impl Answer {
    /// The answer to `request`, of which nothing has come yet.
    pub(crate) fn new(request: &ModelRequest, limits: &Limits) -> Self {
        Self {
            model: request.model.name.clone(),
            calls: Calls::new(limits, &request.messages),
            finish: None,
            usage: None,
            bytes: 0,
            bytes_max: limits.answer_bytes_max,
            ready: VecDeque::new(),
        }
    }

    /// The next event that is ready.
    pub(crate) fn next(&mut self) -> Option<ModelEvent> {
        self.ready.pop_front()
    }

    /// Whether the provider has said why it stopped; only the usage can still come.
    pub(crate) fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    /// Takes a chunk of OpenAI's dialect.
    pub(crate) fn chunk(&mut self, chunk: &Value) -> Result<(), Failure> {
        self.openai(chunk, "delta")
    }

    /// Takes a whole body of OpenAI's dialect. A body that could be read to its end is complete, so a
    /// missing finish reason means that the provider does not give one.
    pub(crate) fn whole(&mut self, body: &Value) -> Result<(), Failure> {
        self.openai(body, "message")?;
        let has_choice = body
            .get("choices")
            .and_then(Value::as_array)
            .is_some_and(|choices| !choices.is_empty());
        if !has_choice {
            return Err(Failure::malformed("the answer has no choices"));
        }
        self.finish.get_or_insert(FinishReason::Stop);
        Ok(())
    }

    /// Takes a line, or a whole body, of Ollama's dialect.
    pub(crate) fn ollama(&mut self, line: &Value) -> Result<(), Failure> {
        self.refuse_faults(line)?;
        if let Some(message) = line.get("message") {
            self.reasoning(message.get("thinking"))?;
            self.content(message.get("content"))?;
            for call in message
                .get("tool_calls")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.bytes += self.calls.push_whole(call);
            }
            self.check_size()?;
        }
        if line.get("done").and_then(Value::as_bool) == Some(true) {
            let reason = line.get("done_reason").and_then(Value::as_str).unwrap_or("stop");
            self.finish = Some(finish_reason(reason)?);
            self.usage = ollama_usage(line).or(self.usage);
        }
        Ok(())
    }

    /// Takes the end of the answer: the calls and the finish become events. Without a finish reason the
    /// answer was cut.
    pub(crate) fn end(&mut self, entropy: &dyn Entropy) -> Result<(), Failure> {
        let Some(told) = self.finish.take() else {
            return Err(Failure::malformed(
                "it broke off: the answer ended without a finish reason",
            ));
        };
        let calls = match told {
            FinishReason::Stop | FinishReason::ToolCalls => self.calls.take(entropy),
            // The last call may be cut, and nothing cut is ever run.
            FinishReason::Length | FinishReason::ContentFilter => Vec::new(),
        };
        let reason = match told {
            FinishReason::Stop | FinishReason::ToolCalls if calls.is_empty() => FinishReason::Stop,
            FinishReason::Stop | FinishReason::ToolCalls => FinishReason::ToolCalls,
            FinishReason::Length => FinishReason::Length,
            FinishReason::ContentFilter => FinishReason::ContentFilter,
        };
        self.ready.extend(calls.into_iter().map(ModelEvent::Call));
        let usage = self.usage.take();
        self.ready.push_back(ModelEvent::Finished { reason, usage });
        Ok(())
    }

    fn openai(&mut self, value: &Value, field: &str) -> Result<(), Failure> {
        self.refuse_faults(value)?;
        let usage = value.get("usage").or_else(|| value.get("x_groq")?.get("usage"));
        self.usage = usage.and_then(openai_usage).or(self.usage);
        let Some(choice) = first_choice(value) else {
            return Ok(());
        };
        // Some servers write `message` in chunks or `delta` in whole bodies.
        let other = if field == "delta" { "message" } else { "delta" };
        let present = |name: &str| choice.get(name).filter(|message| message.is_object());
        if let Some(message) = present(field).or_else(|| present(other)) {
            self.message(message, field == "message")?;
        }
        if let Some(reason) = choice
            .get("finish_reason")
            .and_then(Value::as_str)
            .filter(|word| !word.is_empty())
        {
            self.finish = Some(finish_reason(reason)?);
        }
        Ok(())
    }

    fn refuse_faults(&self, value: &Value) -> Result<(), Failure> {
        if !value.is_object() {
            return Err(Failure::malformed("a JSON object was expected"));
        }
        Failure::inside(value, &self.model).map_or(Ok(()), Err)
    }

    fn message(&mut self, message: &Value, is_whole: bool) -> Result<(), Failure> {
        // Both names may come at once, with the same text.
        let reasoning = message.get("reasoning_content").filter(|text| is_text(text));
        self.reasoning(reasoning.or_else(|| message.get("reasoning")))?;
        self.content(message.get("content"))?;
        self.content(message.get("refusal"))?;
        match message.get("tool_calls") {
            Some(Value::Array(calls)) => {
                for call in calls {
                    self.bytes += if is_whole {
                        self.calls.push_whole(call)
                    } else {
                        self.calls.push(call)
                    };
                }
            }
            Some(call @ Value::Object(_)) => self.bytes += self.calls.push(call),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
        if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
            self.bytes += self.calls.push_legacy(call);
        }
        self.check_size()
    }

    /// Text, or a list of parts; a part may be reasoning (Mistral writes it so).
    fn content(&mut self, content: Option<&Value>) -> Result<(), Failure> {
        match content {
            Some(Value::String(text)) => self.emit(text, ModelEvent::Text),
            Some(Value::Array(parts)) => {
                for part in parts {
                    if let Some(thinking) = part.get("thinking") {
                        self.reasoning(Some(thinking))?;
                    } else if let Some(text) = part.get("text").and_then(Value::as_str) {
                        self.emit(text, ModelEvent::Text)?;
                    }
                }
                Ok(())
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Ok(()),
        }
    }

    fn reasoning(&mut self, reasoning: Option<&Value>) -> Result<(), Failure> {
        match reasoning {
            Some(Value::String(text)) => self.emit(text, ModelEvent::Reasoning),
            Some(Value::Array(parts)) => {
                for text in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                    self.emit(text, ModelEvent::Reasoning)?;
                }
                Ok(())
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Ok(()),
        }
    }

    fn emit(&mut self, text: &str, event: fn(String) -> ModelEvent) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.bytes += text.len();
        self.check_size()?;
        self.ready.push_back(event(text.to_owned()));
        Ok(())
    }

    fn check_size(&self) -> Result<(), Failure> {
        if self.bytes > self.bytes_max {
            return Err(Failure::malformed(format!(
                "the answer is longer than {} bytes",
                self.bytes_max
            )));
        }
        Ok(())
    }
}

/// The choice with index 0: we never ask for more than one.
fn first_choice(value: &Value) -> Option<&Value> {
    let choices = value.get("choices")?.as_array()?;
    let is_first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
    choices.iter().find(is_first)
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn finish_reason(word: &str) -> Result<FinishReason, Failure> {
    match word.to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "max_length" | "model_length" => Ok(FinishReason::Length),
        "tool_calls" | "function_call" | "tool_use" => Ok(FinishReason::ToolCalls),
        "content_filter" | "safety" | "recitation" | "prohibited_content" => Ok(FinishReason::ContentFilter),
        "error" | "abort" | "aborted" | "cancelled" | "insufficient_system_resource" => {
            Err(Failure::malformed(format!("it broke off (`{word}`)")))
        }
        _ => Ok(FinishReason::Stop),
    }
}

/// A token count; some servers write floating point numbers. What no model can have read or written counts
/// as not said.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count is never negative here, and a cast of one that is too large saturates"
)]
fn count(value: &Value, key: &str) -> Option<u64> {
    let number = value.get(key)?;
    let count = number.as_u64().or_else(|| {
        number
            .as_f64()
            .filter(|number| *number >= 0.0)
            .map(|number| number as u64)
    });
    count.filter(|count| *count <= TOKENS_MAX)
}

fn openai_usage(usage: &Value) -> Option<Usage> {
    let input_tokens = count(usage, "prompt_tokens").or_else(|| count(usage, "input_tokens"))?;
    let output_tokens = count(usage, "completion_tokens")
        .or_else(|| count(usage, "output_tokens"))
        .or_else(|| count(usage, "total_tokens").map(|total| total.saturating_sub(input_tokens)))?;
    let detail = |of: &str, key: &str| usage.get(of).and_then(|details| count(details, key));
    Some(Usage {
        input_tokens,
        output_tokens,
        cached_tokens: detail("prompt_tokens_details", "cached_tokens")
            .or_else(|| count(usage, "prompt_cache_hit_tokens"))
            .unwrap_or(0),
        reasoning_tokens: detail("completion_tokens_details", "reasoning_tokens").unwrap_or(0),
        estimated: false,
    })
}

/// Ollama leaves `prompt_eval_count` out when the whole prompt was cached; one that is there and makes no sense
/// leaves the whole call to be estimated.
fn ollama_usage(line: &Value) -> Option<Usage> {
    let output_tokens = count(line, "eval_count")?;
    let input_tokens = count(line, "prompt_eval_count");
    if input_tokens.is_none() && line.get("prompt_eval_count").is_some_and(Value::is_number) {
        return None;
    }
    Some(Usage {
        input_tokens: input_tokens.unwrap_or(0),
        output_tokens,
        estimated: input_tokens.is_none(),
        ..Usage::default()
    })
}

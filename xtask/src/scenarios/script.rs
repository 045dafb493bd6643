//! The models behind a daemon: the one that talks to the person, and the one that looks for facts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::form::Chat;

/// The name of both.
pub(super) const MODEL: &str = "scripted";

/// What is said next, and what was heard.
#[derive(Debug, Default)]
pub(super) struct Script {
    answer: String,
    extraction: String,
    calls: Vec<(&'static str, Value)>,
    /// The instructions of the last turn.
    pub(super) instructions: String,
    /// Whether the tools that were to be called in the last turn were offered.
    pub(super) called: bool,
    /// What tools returned in the last turn.
    pub(super) returned: String,
    /// How often facts were asked for.
    pub(super) extractions: usize,
}

/// A script that the player and the model server share.
pub(super) type Shared = Arc<Mutex<Script>>;

/// The script, to read or to change.
pub(super) fn locked(script: &Shared) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Script {
    /// Prepares for a turn.
    pub(super) fn begin(&mut self, chat: &Chat, calls: Vec<(&'static str, Value)>) {
        self.answer = chat.assistant.clone().unwrap_or_else(|| "Noted.".to_owned());
        self.extraction = chat.extraction();
        self.calls = calls;
        self.called = false;
        self.returned.clear();
        self.instructions.clear();
    }
}

/// The answer to a request of either kind.
pub(super) fn reply(script: &Shared, body: &Value) -> Reply {
    let mut script = locked(script);
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if is_extraction(body, messages) {
        script.extractions += 1;
        return Reply::text(script.extraction.clone());
    }
    script.instructions = texts(messages, "system");
    let newest = messages.iter().rposition(|message| message["role"] == "user");
    let since = messages.get(newest.unwrap_or_default()..).unwrap_or_default();
    if since.iter().any(|message| message["role"] == "tool") {
        script.returned = texts(since, "tool");
        return Reply::text(script.answer.clone());
    }
    let calls: Vec<_> = std::mem::take(&mut script.calls)
        .into_iter()
        .filter(|(name, _)| offers(body, name))
        .collect();
    if calls.is_empty() {
        return Reply::text(script.answer.clone());
    }
    script.called = true;
    let calls = calls.into_iter().enumerate();
    calls.fold(Reply::text(""), |reply, (number, (name, arguments))| {
        reply.call(format!("call_{number}"), name, arguments)
    })
}

/// Whether it is the request for facts: the only one that asks for an answer in a schema, or names the form itself.
fn is_extraction(body: &Value, messages: &[Value]) -> bool {
    body["response_format"]["type"] == json!("json_schema")
        || (body["tools"].is_null() && texts(messages, "system").contains("{\"facts\":["))
}

fn offers(body: &Value, name: &str) -> bool {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools
        .filter_map(|tool| tool["function"]["name"].as_str())
        .any(|offered| offered == name)
}

/// The text of all messages of a role.
fn texts(messages: &[Value], role: &str) -> String {
    let texts = messages
        .iter()
        .filter(|message| message["role"] == role)
        .map(|message| text_of(&message["content"]));
    texts.collect::<Vec<_>>().join("\n")
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

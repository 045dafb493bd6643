//! One line for every tool call, allowed or refused. Redacted, never waited for.
//!
//! Lines outlive an erasure: they say who had which tool do what, and nobody takes them out of a chain. So they hold no
//! word that somebody wrote. Of an argument they keep what the tool's row says is a name, a path, an address or a
//! command, and numbers; of everything else the length and a hash, by which two calls can still be told to be the same.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tidegate_core::tool::{Arguments, Parameter, ParameterType, ToolCall, ToolResult, ToolSpec};
use tidegate_gate::guards::secrets::Redactor;

use crate::turn::Turn;

/// Characters of the arguments that a line keeps.
const DETAIL_CHARS_MAX: usize = 512;

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    decision: &'static str,
    reason: Option<&'static str>,
}

impl Verdict {
    /// It ran.
    pub(crate) fn allowed() -> Self {
        Self {
            decision: "allowed",
            reason: None,
        }
    }

    /// It did not run.
    pub(crate) fn refused(reason: &'static str) -> Self {
        Self {
            decision: "refused",
            reason: Some(reason),
        }
    }

    /// It was answered with the result of an identical, earlier call.
    pub(crate) fn reused() -> Self {
        Self {
            decision: "allowed",
            reason: Some("reused"),
        }
    }

    /// It did not run; a person could allow it.
    pub(crate) fn asked(reason: &'static str) -> Self {
        Self {
            decision: "needs_approval",
            reason: Some(reason),
        }
    }

    /// Whether it ran.
    pub(crate) fn is_allowed(&self) -> bool {
        self.decision == "allowed"
    }
}

/// Digits of a hash that stands for a text.
const HASH_DIGITS: usize = 16;

/// What arguments go by that the tool does not have: their names may be anything, too.
const UNKNOWN: &str = "(unknown)";

/// A call's arguments as a line keeps them: redacted, without what somebody may have written, and cut.
pub(crate) fn detail(turn: &Turn, spec: Option<&ToolSpec>, call: &ToolCall) -> String {
    detail_of(turn.engine.redactor(), spec, &call.arguments)
}

fn detail_of(redactor: &Redactor, spec: Option<&ToolSpec>, arguments: &Arguments) -> String {
    let told = match arguments {
        Arguments::Unparsable { raw, .. } => digest(redactor, raw),
        Arguments::Object(given) => {
            let mut told = Map::new();
            let mut unknown = Map::new();
            for (name, value) in given {
                let parameters = spec.map(|spec| spec.parameters.as_slice()).unwrap_or_default();
                match parameters.iter().find(|parameter| parameter.name == *name) {
                    Some(parameter) => {
                        told.insert(name.clone(), shown(redactor, parameter, value));
                    }
                    None => {
                        unknown.insert(name.clone(), value.clone());
                    }
                }
            }
            if !unknown.is_empty() {
                let text = Value::Object(unknown).to_string();
                told.insert(UNKNOWN.to_owned(), digest(redactor, &text));
            }
            Value::Object(told)
        }
    };
    let text = told.to_string();
    redactor.redact(&text).chars().take(DETAIL_CHARS_MAX).collect()
}

/// An argument as a line keeps it.
fn shown(redactor: &Redactor, parameter: &Parameter, value: &Value) -> Value {
    let takes_texts = match parameter.kind {
        ParameterType::String | ParameterType::StringList => true,
        ParameterType::Integer | ParameterType::Number | ParameterType::Boolean => false,
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        // One that the tool does not know was not chosen from its list.
        Value::String(text) if !parameter.one_of.is_empty() && !parameter.one_of.contains(text) => {
            digest(redactor, text)
        }
        Value::String(_) if takes_texts && !parameter.free_text => value.clone(),
        Value::String(text) => digest(redactor, text),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .take(DETAIL_CHARS_MAX)
                .map(|item| shown(redactor, parameter, item))
                .collect(),
        ),
        Value::Object(_) => digest(redactor, &value.to_string()),
    }
}

/// What stands for a text. It is redacted first, so that no hash of a secret is kept.
fn digest(redactor: &Redactor, text: &str) -> Value {
    let mut hash = tidegate_gate::hex(&Sha256::digest(redactor.redact(text).as_bytes()));
    hash.truncate(HASH_DIGITS);
    json!({"chars": text.chars().count(), "sha256": hash})
}

/// A call's arguments as a question to a person keeps them, until it is answered or erased: redacted, and cut after so
/// many characters.
pub(crate) fn arguments(turn: &Turn, call: &ToolCall, chars_max: usize) -> String {
    let text = call.arguments.to_json();
    turn.engine
        .redactor()
        .redact(&text)
        .chars()
        .take(chars_max)
        .collect()
}

/// Hands the line to the log.
pub(crate) fn write(
    turn: &Turn,
    spec: Option<&ToolSpec>,
    call: &ToolCall,
    verdict: &Verdict,
    result: &ToolResult,
    took: Duration,
) {
    let detail = detail(turn, spec, call);
    let bytes = match result {
        ToolResult::Ok { text, .. } => text.len(),
        ToolResult::Failed { .. }
        | ToolResult::Refused { .. }
        | ToolResult::NeedsApproval { .. }
        | ToolResult::TimedOut { .. }
        | ToolResult::Cancelled => 0,
    };
    let name: String = call.name.chars().filter(|c| !c.is_control()).take(64).collect();
    let line = json!({
        "ts": turn.engine.now().to_string(),
        "request": turn.request.request_id,
        "run": turn.run_id,
        "call": call.id,
        "key": turn.caller.key_id,
        "user": turn.caller.user,
        "surface": turn.request.origin,
        "mode": turn.session.mode.name(),
        "tool": name,
        "tool_mode": spec.map(|spec| spec.mode.name()),
        "effect": spec.map(|spec| spec.effect.name()),
        "decision": verdict.decision,
        "reason": verdict.reason,
        "outcome": result.status(),
        "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "bytes": bytes,
        "detail": detail,
    });
    turn.engine.tool_log().append(line.to_string());
}

#[cfg(test)]
mod tests {
    use tidegate_core::{
        secret::Secret,
        tool::{Effect, ToolMode},
    };

    use super::*;

    const WORDS: &str = "I teach 4th grade in Rome";

    fn spec() -> ToolSpec {
        let parameter = |name: &str, kind, free_text| Parameter {
            name: name.to_owned(),
            kind,
            description: "what it is".to_owned(),
            required: false,
            one_of: if name == "format" {
                vec!["pdf".to_owned()]
            } else {
                Vec::new()
            },
            min: None,
            max: None,
            chars_max: None,
            free_text,
        };
        ToolSpec {
            name: "any".to_owned(),
            description: "does it".to_owned(),
            mode: ToolMode::WriteText,
            effect: Effect::Write,
            parameters: vec![
                parameter("path", ParameterType::String, false),
                parameter("content", ParameterType::String, true),
                parameter("tags", ParameterType::StringList, true),
                parameter("paths", ParameterType::StringList, false),
                parameter("format", ParameterType::String, false),
                parameter("count", ParameterType::Integer, false),
            ],
            timeout_ms: 1,
            output_bytes_max: 1,
        }
    }

    fn told(arguments: Value) -> Value {
        let redactor = Redactor::new([Secret::new("tulip-garden-42".to_owned())]).unwrap();
        let Value::Object(given) = arguments else { panic!() };
        let text = detail_of(&redactor, Some(&spec()), &Arguments::Object(given));
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn names_paths_and_numbers_stay_and_texts_do_not() {
        let told = told(json!({
            "path": "notes/plan.md", "paths": ["a.md", "b.md"], "format": "pdf", "count": 3, "content": WORDS,
            "tags": [WORDS, "x"],
        }));
        for (name, expected) in [
            ("path", json!("notes/plan.md")),
            ("paths", json!(["a.md", "b.md"])),
            ("format", json!("pdf")),
            ("count", json!(3)),
        ] {
            assert_eq!(told[name], expected);
        }
        assert_eq!(told["content"]["chars"], 25);
        assert_eq!(
            told["content"], told["tags"][0],
            "the same text has the same hash"
        );
        assert_ne!(told["tags"][0], told["tags"][1]);
    }

    /// Whatever form a model gives them, words are not kept.
    #[test]
    fn words_in_the_wrong_place_do_not_stay_either() {
        for arguments in [
            json!({"count": WORDS}),
            json!({"format": WORDS}),
            json!({"path": {"path": WORDS}}),
            json!({"content": {"text": [WORDS]}}),
            json!({WORDS: 1}),
            json!({"note": WORDS}),
            json!({"tags": [[WORDS]]}),
        ] {
            let told = told(arguments.clone()).to_string();
            assert!(!told.contains("Rome"), "{arguments}: {told}");
        }
        let redactor = Redactor::new([]).unwrap();
        let unparsable = Arguments::Unparsable {
            raw: WORDS.to_owned(),
            problem: "no JSON".to_owned(),
        };
        let unknown = Arguments::Object(Map::from_iter([("path".to_owned(), json!(WORDS))]));
        for (spec, arguments) in [(Some(&spec()), &unparsable), (None, &unknown)] {
            let told = detail_of(&redactor, spec, arguments);
            assert!(!told.contains("Rome") && told.contains("sha256"), "{told}");
        }
    }

    #[test]
    fn a_secret_stands_there_neither_as_it_is_nor_as_a_hash() {
        let told = told(json!({"path": "tulip-garden-42", "content": "tulip-garden-42"}));
        assert!(!told.to_string().contains("tulip"));
        let bare = tidegate_gate::hex(&Sha256::digest(b"tulip-garden-42"));
        assert!(!bare.starts_with(told["content"]["sha256"].as_str().unwrap()));
    }
}

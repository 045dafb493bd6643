//! Every field of a chat request, wrong: the answer names it by its dotted path.

use serde_json::{Value, json};

use super::envelope::{body, envelope, post, second_message};
use crate::support::Daemon;

fn function(function: &Value) -> Value {
    json!({"tools": [{"type": "function", "function": function}]})
}

/// A change to a good body, the code and the field it is refused with.
type Row = (Value, &'static str, &'static str);

const KIND: &str = "invalid_type";
const VALUE: &str = "invalid_value";
const MISSING: &str = "missing_required_parameter";
const UNSUPPORTED: &str = "unsupported_value";

/// The model and the history.
fn wrong_messages() -> Vec<Row> {
    vec![
        (json!({"model": 1}), KIND, "model"),
        (json!({"model": null}), MISSING, "model"),
        (json!({"model": ""}), VALUE, "model"),
        (json!({"messages": null}), MISSING, "messages"),
        (json!({"messages": []}), VALUE, "messages"),
        (json!({"messages": "hello"}), KIND, "messages"),
        (json!({"messages": {"0": {}}}), KIND, "messages"),
        (json!({"messages": [1]}), KIND, "messages.0"),
        (json!({"messages": [{}]}), MISSING, "messages.0.role"),
        (
            json!({"messages": [{"role": "user"}]}),
            MISSING,
            "messages.0.content",
        ),
        (
            json!({"messages": [{"role": "robot", "content": "x"}]}),
            VALUE,
            "messages.0.role",
        ),
        (
            second_message(&json!({"role": "user", "content": 5})),
            KIND,
            "messages.1.content",
        ),
        (
            second_message(&json!({"role": "user", "content": {"a": 1}})),
            KIND,
            "messages.1.content",
        ),
        (
            second_message(&json!({"role": "user", "content": [{"type": "text"}]})),
            MISSING,
            "messages.1.content.0.text",
        ),
        (
            second_message(&json!({"role": "user", "content": [{"text": "x"}]})),
            MISSING,
            "messages.1.content.0.type",
        ),
        (
            second_message(&json!({"role": "assistant", "tool_calls": "x"})),
            KIND,
            "messages.1.tool_calls",
        ),
        (
            second_message(&json!({"role": "assistant", "tool_calls": [{}]})),
            MISSING,
            "messages.1.tool_calls.0.id",
        ),
        (
            second_message(&json!({"role": "tool", "content": "x"})),
            MISSING,
            "messages.1.tool_call_id",
        ),
        (
            second_message(&json!({"role": "tool", "content": "x", "tool_call_id": "none"})),
            VALUE,
            "messages.1.tool_call_id",
        ),
    ]
}

/// Tools of the client.
fn wrong_tools() -> Vec<Row> {
    vec![
        (json!({"tools": "x"}), KIND, "tools"),
        (json!({"tools": [{}]}), MISSING, "tools.0.type"),
        (
            json!({"tools": [{"type": "function"}]}),
            MISSING,
            "tools.0.function",
        ),
        (
            json!({"tools": [{"type": "function", "name": "flat"}]}),
            MISSING,
            "tools.0.function",
        ),
        (
            json!({"tools": [{"type": "custom", "custom": {"name": "x"}}]}),
            UNSUPPORTED,
            "tools.0.type",
        ),
        (function(&json!({})), MISSING, "tools.0.function.name"),
        (function(&json!({"name": 1})), KIND, "tools.0.function.name"),
        (
            function(&json!({"name": "two words"})),
            VALUE,
            "tools.0.function.name",
        ),
        (
            function(&json!({"name": "x".repeat(65)})),
            VALUE,
            "tools.0.function.name",
        ),
        (
            function(&json!({"name": "x", "parameters": []})),
            KIND,
            "tools.0.function.parameters",
        ),
        (
            json!({"tool_choice": {"type": "function", "function": {"name": "nope"}}}),
            VALUE,
            "tool_choice",
        ),
        (json!({"tool_choice": "sometimes"}), VALUE, "tool_choice"),
    ]
}

/// Everything else.
fn wrong_sampling() -> Vec<Row> {
    vec![
        (json!({"temperature": "hot"}), KIND, "temperature"),
        (json!({"temperature": 2.1}), VALUE, "temperature"),
        (json!({"top_p": 1.5}), VALUE, "top_p"),
        (json!({"presence_penalty": -3}), VALUE, "presence_penalty"),
        (json!({"frequency_penalty": 3}), VALUE, "frequency_penalty"),
        (json!({"n": 2}), UNSUPPORTED, "n"),
        (json!({"n": 0}), VALUE, "n"),
        (json!({"max_tokens": 0}), VALUE, "max_tokens"),
        (
            json!({"max_completion_tokens": 1.5}),
            KIND,
            "max_completion_tokens",
        ),
        (json!({"stop": ["a", "b", "c", "d", "e"]}), VALUE, "stop"),
        (json!({"stop": 1}), KIND, "stop"),
        (json!({"seed": "x"}), KIND, "seed"),
        (json!({"top_logprobs": 3}), VALUE, "top_logprobs"),
        (json!({"logit_bias": {"1": 200}}), VALUE, "logit_bias.1"),
        (json!({"stream": "yes"}), KIND, "stream"),
        (json!({"stream_options": []}), KIND, "stream_options"),
        (
            json!({"stream_options": {"include_usage": 1}}),
            KIND,
            "stream_options.include_usage",
        ),
        (json!({"response_format": "json"}), KIND, "response_format"),
        (
            json!({"response_format": {"type": "xml"}}),
            VALUE,
            "response_format.type",
        ),
        (json!({"metadata": {"a": 1}}), KIND, "metadata.a"),
        (json!({"modalities": ["audio"]}), UNSUPPORTED, "modalities"),
        (json!({"user": 5}), KIND, "user"),
        (json!({"user": "x".repeat(1000)}), VALUE, "user"),
        (
            json!({"safety_identifier": "a\u{0}b"}),
            VALUE,
            "safety_identifier",
        ),
        (json!({"reasoning_effort": 5}), KIND, "reasoning_effort"),
        (json!({"parallel_tool_calls": "no"}), KIND, "parallel_tool_calls"),
    ]
}

#[tokio::test]
async fn every_wrong_field_is_named_by_its_dotted_path() {
    let daemon = Daemon::start().await;
    let rows = [wrong_messages(), wrong_tools(), wrong_sampling()].concat();
    assert!(rows.len() > 50);
    for (change, code, param) in rows {
        for stream in [false, true] {
            let mut body = body(&change);
            if change.get("stream").is_none() {
                body["stream"] = stream.into();
            }
            let answer = post(&daemon, body.to_string()).await;
            let error = envelope(&answer);
            assert_eq!(answer.status, 400, "{change}: {error}");
            assert_eq!(
                (&error["error"]["code"], &error["error"]["param"]),
                (&json!(code), &json!(param)),
                "{change}: {error}"
            );
            assert_eq!(error["error"]["type"], "invalid_request_error", "{change}");
        }
    }
    assert!(
        daemon.upstream.chats().is_empty(),
        "nothing of it reached the model"
    );
}

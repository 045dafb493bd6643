use serde_json::json;
use tidegate_core::{
    caller::{Caller, Mode, Scopes},
    id::{KeyId, UserId},
    key::Disconnect,
    message::{Message, Part},
    model::ToolChoice,
    tool::Arguments,
};

use super::*;

fn identity(scopes: &[Scope]) -> Identity {
    let key_id = KeyId::new("k1");
    Identity {
        caller: Caller {
            user: UserId::of(&key_id, None).unwrap(),
            key_id,
            scopes: scopes.iter().copied().collect::<Scopes>(),
            mode_ceiling: Mode::ReadOnly,
            models: None,
            tools: None,
            tokens_per_day: None,
        },
        conversation: None,
        on_disconnect: Disconnect::Cancel,
        mode: None,
    }
}

fn read_text(body: &str) -> Result<(RunRequest, Form), ApiError> {
    read(
        body.as_bytes(),
        identity(&[Scope::Chat]),
        RequestId::new("req_1"),
        &Options::default(),
    )
}

/// A minimal request with more fields.
fn with(fields: &Value) -> Result<(RunRequest, Form), ApiError> {
    let mut body = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hi"}]});
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    read_text(&body.to_string())
}

#[track_caller]
fn refused(fields: &Value, code: &str, param: &str) {
    let error = with(fields).map(|_| ()).expect_err(&fields.to_string());
    let found = (error.status(), error.body().code, error.body().param.as_deref());
    assert_eq!(
        found,
        (400, Some(code), Some(param)),
        "{fields}: {}",
        error.body().message
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row a case")]
fn every_bad_field_is_named() {
    let function = json!({"name": "f"});
    let table = [
        (json!({"model": null}), "missing_required_parameter", "model"),
        (json!({"model": ""}), "invalid_value", "model"),
        (json!({"model": 1}), "invalid_type", "model"),
        (
            json!({"messages": null}),
            "missing_required_parameter",
            "messages",
        ),
        (json!({"messages": []}), "invalid_value", "messages"),
        (json!({"messages": {}}), "invalid_type", "messages"),
        (
            json!({"messages": null, "input": "hi"}),
            "missing_required_parameter",
            "messages",
        ),
        (json!({"stream": "yes"}), "invalid_type", "stream"),
        (
            json!({"stream_options": {"include_usage": 1}}),
            "invalid_type",
            "stream_options.include_usage",
        ),
        (json!({"max_tokens": 0}), "invalid_value", "max_tokens"),
        (
            json!({"max_completion_tokens": -1}),
            "invalid_value",
            "max_completion_tokens",
        ),
        (json!({"max_tokens": 1.5}), "invalid_type", "max_tokens"),
        (json!({"temperature": 2.1}), "invalid_value", "temperature"),
        (json!({"temperature": "hot"}), "invalid_type", "temperature"),
        (json!({"top_p": -0.1}), "invalid_value", "top_p"),
        (
            json!({"presence_penalty": 3}),
            "invalid_value",
            "presence_penalty",
        ),
        (
            json!({"frequency_penalty": -3}),
            "invalid_value",
            "frequency_penalty",
        ),
        (json!({"n": 2}), "unsupported_value", "n"),
        (json!({"n": 0}), "invalid_value", "n"),
        (json!({"n": 129}), "invalid_value", "n"),
        (json!({"stop": 1}), "invalid_type", "stop"),
        (json!({"stop": ["a", 1]}), "invalid_type", "stop.1"),
        (
            json!({"stop": ["a", "b", "c", "d", "e"]}),
            "invalid_value",
            "stop",
        ),
        (json!({"seed": "x"}), "invalid_type", "seed"),
        (json!({"top_logprobs": 3}), "invalid_value", "top_logprobs"),
        (
            json!({"logprobs": true, "top_logprobs": 21}),
            "invalid_value",
            "top_logprobs",
        ),
        (json!({"logit_bias": {"5": 101}}), "invalid_value", "logit_bias.5"),
        (json!({"logit_bias": {"5": "x"}}), "invalid_type", "logit_bias.5"),
        (
            json!({"modalities": ["text", "audio"]}),
            "unsupported_value",
            "modalities",
        ),
        (
            json!({"reasoning_effort": "huge"}),
            "invalid_value",
            "reasoning_effort",
        ),
        (
            json!({"reasoning": {"effort": "huge"}}),
            "invalid_value",
            "reasoning.effort",
        ),
        (json!({"metadata": {"a": 1}}), "invalid_type", "metadata.a"),
        (
            json!({"metadata": {"a": "x".repeat(513)}}),
            "invalid_value",
            "metadata.a",
        ),
        (json!({"user": "a\nb"}), "invalid_value", "user"),
        (
            json!({"safety_identifier": "x".repeat(300)}),
            "invalid_value",
            "safety_identifier",
        ),
        (
            json!({"response_format": {"type": "xml"}}),
            "invalid_value",
            "response_format.type",
        ),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "missing_required_parameter",
            "response_format.json_schema",
        ),
        (
            json!({"tools": [{"type": "custom", "custom": {"name": "x"}}]}),
            "unsupported_value",
            "tools.0.type",
        ),
        (
            json!({"tools": [{"type": "function", "name": "flat"}]}),
            "missing_required_parameter",
            "tools.0.function",
        ),
        (
            json!({"tools": [{"function": function}]}),
            "missing_required_parameter",
            "tools.0.type",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "no good"}}]}),
            "invalid_value",
            "tools.0.function.name",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}),
            "invalid_type",
            "tools.0.function.parameters",
        ),
        (
            json!({"tools": [{"type": "function", "function": function}, {"type": "function", "function": function}]}),
            "invalid_value",
            "tools.1.function.name",
        ),
        (json!({"tool_choice": "required"}), "invalid_value", "tool_choice"),
        (json!({"tool_choice": "maybe"}), "invalid_value", "tool_choice"),
        (
            json!({"tool_choice": {"type": "function", "function": {"name": "g"}}}),
            "invalid_value",
            "tool_choice",
        ),
        (
            json!({"tool_choice": {"type": "function"}}),
            "missing_required_parameter",
            "tool_choice.function.name",
        ),
        (
            json!({"functions": [function], "tools": [{"type": "function", "function": function}]}),
            "invalid_value",
            "functions",
        ),
        (
            json!({"function_call": {"name": "g"}, "functions": [function]}),
            "invalid_value",
            "function_call",
        ),
    ];
    for (fields, code, param) in table {
        refused(&fields, code, param);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row a case")]
fn every_bad_message_is_named() {
    let asked = json!({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let table = [
        (
            json!([{"content": "x"}]),
            "missing_required_parameter",
            "messages.0.role",
        ),
        (
            json!([{"role": "boss", "content": "x"}]),
            "invalid_value",
            "messages.0.role",
        ),
        (json!([["user", "x"]]), "invalid_type", "messages.0"),
        (
            json!([{"role": "user"}]),
            "missing_required_parameter",
            "messages.0.content",
        ),
        (
            json!([{"role": "user", "content": "x"}, {"role": "user", "content": 1}]),
            "invalid_type",
            "messages.1.content",
        ),
        (
            json!([{"role": "user", "content": []}]),
            "invalid_value",
            "messages.0.content",
        ),
        (
            json!([{"role": "user", "content": ["x"]}]),
            "invalid_type",
            "messages.0.content.0",
        ),
        (
            json!([{"role": "user", "content": [{"type": "text"}]}]),
            "missing_required_parameter",
            "messages.0.content.0.text",
        ),
        (
            json!([{"role": "user", "content": [{"type": "video"}]}]),
            "unsupported_value",
            "messages.0.content.0.type",
        ),
        (
            json!([{"role": "system", "content": [{"type": "image_url", "image_url": "data:x"}]}]),
            "unsupported_value",
            "messages.0.content.0.type",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]}]),
            "unsupported_value",
            "messages.0.content.0.image_url.url",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": "file:///etc/passwd"}]}]),
            "invalid_value",
            "messages.0.content.0.image_url.url",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url"}]}]),
            "missing_required_parameter",
            "messages.0.content.0.image_url",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "ogg"}}]}]),
            "invalid_value",
            "messages.0.content.0.input_audio.format",
        ),
        (
            json!([{"role": "tool", "tool_call_id": "c1", "content": "x"}]),
            "invalid_value",
            "messages.0.tool_call_id",
        ),
        (
            json!([asked, {"role": "tool", "content": "x"}]),
            "missing_required_parameter",
            "messages.1.tool_call_id",
        ),
        (
            json!([asked, {"role": "tool", "tool_call_id": "c2", "content": "x"}]),
            "invalid_value",
            "messages.1.tool_call_id",
        ),
        (
            json!([asked, {"role": "assistant", "content": "no"}, {"role": "tool", "tool_call_id": "c1", "content": "x"}]),
            "invalid_value",
            "messages.2.tool_call_id",
        ),
        (
            json!([asked, {"role": "tool", "tool_call_id": "c1"}]),
            "missing_required_parameter",
            "messages.1.content",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f"}}]}]),
            "missing_required_parameter",
            "messages.0.tool_calls.0.id",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [{"id": "c", "type": "custom"}]}]),
            "unsupported_value",
            "messages.0.tool_calls.0.type",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]}]),
            "invalid_type",
            "messages.0.tool_calls.0.function.arguments",
        ),
        (
            json!([{"role": "function", "name": "f", "content": "x"}]),
            "invalid_value",
            "messages.0.name",
        ),
    ];
    for (messages, code, param) in table {
        refused(&json!({"messages": messages}), code, param);
    }
}

#[test]
fn null_is_absence_and_unknown_fields_are_ignored() {
    let mut fields = json!({"x_unknown": [1], "tools": [], "store": true});
    for known in KNOWN_FIELDS
        .iter()
        .filter(|name| !matches!(**name, "model" | "messages" | "tools" | "store"))
    {
        fields[*known] = Value::Null;
    }
    let (run, form) = with(&fields).unwrap();
    assert_eq!(
        form,
        Form {
            stream: false,
            include_usage: false,
            legacy_functions: false
        }
    );
    assert_eq!(run.sampling.extra.keys().collect::<Vec<_>>(), ["x_unknown"]);
    assert_eq!(run.tool_choice, ToolChoice::Auto);
    assert!(run.parallel_tool_calls && run.client_tools.is_empty());
    assert_eq!(run.messages, [Message::human("hi")]);
}

#[test]
fn a_full_history_keeps_who_said_what() {
    let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}, "user": "ann",
        "max_tokens": 9, "max_completion_tokens": 8, "stop": "END",
        "messages": [
            {"role": "system", "content": "S", "extra": {"deep": [1]}},
            {"role": "developer", "content": [{"type": "text", "text": "D1"}, {"type": "text", "text": "D2"}]},
            {"role": "user", "name": "ann", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}]},
            {"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{broken"}}]},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"role": "assistant", "function_call": {"name": "h", "arguments": ""}},
            {"role": "function", "name": "h", "content": "three"}]});
    let (run, form) = read_text(&body.to_string()).unwrap();
    assert_eq!(
        form,
        Form {
            stream: true,
            include_usage: true,
            legacy_functions: false
        }
    );
    assert_eq!(run.caller.user.as_str(), "k1:ann");
    assert_eq!(run.sampling.tokens_max, Some(8));
    assert_eq!(run.sampling.stop, ["END"]);
    assert_eq!(run.messages.len(), 9);
    assert_eq!(
        run.messages[1],
        Message::ClientSystem {
            text: "D1\nD2".into()
        }
    );
    let Message::Human { parts, name } = &run.messages[2] else {
        panic!("a human message")
    };
    assert_eq!(name.as_deref(), Some("ann"));
    assert!(matches!(&parts[1], Part::Image { detail: Some(detail), .. } if detail == "low"));
    let Message::Assistant { calls, .. } = &run.messages[3] else {
        panic!("an assistant message")
    };
    assert!(matches!(&calls[1].arguments, Arguments::Unparsable { raw, .. } if raw == "{broken"));
    assert!(matches!(&run.messages[5], Message::Tool { name, text, .. } if name == "f" && text == "one"));
    assert_eq!(run.messages[6].text(), "no");
    assert!(matches!(&run.messages[8], Message::Tool { name, text, .. } if name == "h" && text == "three"));
}

#[test]
fn tools_of_both_forms_are_offered() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "strict": true}});
    let (run, form) = with(&json!({"tools": [tool("f"), tool("g")], "parallel_tool_calls": false,
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}}}))
    .unwrap();
    assert_eq!(run.client_tools.len(), 1);
    assert_eq!(
        (run.client_tools[0].name.as_str(), run.client_tools[0].strict),
        ("g", Some(true))
    );
    assert_eq!(
        run.client_tools[0].parameters,
        json!({"type": "object", "properties": {}})
    );
    assert_eq!(
        (run.tool_choice, run.parallel_tool_calls, form.legacy_functions),
        (ToolChoice::Required, false, false)
    );

    let (run, form) = with(&json!({"functions": [{"name": "f"}], "function_call": {"name": "f"}})).unwrap();
    assert_eq!(run.tool_choice, ToolChoice::Named("f".into()));
    assert!(form.legacy_functions && !run.parallel_tool_calls);
}

#[test]
fn no_field_of_a_body_sets_a_mode() {
    let (run, _) =
        with(&json!({"mode": "full-auto", "approved": true, "caller": {"scopes": ["admin"]}})).unwrap();
    assert_eq!(run.mode, None);
    assert!(!run.caller.has(Scope::Admin));
    assert_eq!(run.sampling.extra.keys().collect::<Vec<_>>(), ["caller"]);
}

#[test]
fn bounds_on_members_hold() {
    let many = vec![json!({"role": "user", "content": ""}); MESSAGES_MAX + 1];
    assert_eq!(
        with(&json!({"messages": many})).unwrap_err().body().code,
        Some("invalid_value")
    );
    let ten_thousand = vec![json!({"role": "user", "content": "x"}); 10_000];
    assert_eq!(
        with(&json!({"messages": ten_thousand})).unwrap().0.messages.len(),
        10_000
    );
    let tools = vec![json!({"type": "function", "function": {"name": "f"}}); TOOLS_MAX + 1];
    refused(&json!({"tools": tools}), "invalid_value", "tools");
    let schema = json!({"enum": vec![0; 60_000]});
    let error =
        with(&json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]}))
            .unwrap_err();
    assert_eq!(error.body().code, Some("invalid_value"));
    assert!(
        error
            .body()
            .param
            .as_ref()
            .unwrap()
            .starts_with("tools.0.function.parameters")
    );
}

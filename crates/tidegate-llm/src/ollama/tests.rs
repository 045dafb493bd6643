use serde_json::json;
use tidegate_core::{id::CallId, model::Sampling};

use super::*;
use crate::{
    options::ProviderOptions,
    tests::{call, request, schema},
};

fn provider() -> Provider {
    Provider::settle("ollama", &ProviderOptions::default()).unwrap()
}

#[test]
fn the_window_and_the_options_are_told() {
    let mut question = request(vec![Message::human("hi")]);
    question.model.context_tokens = Some(8192);
    question.stream = true;
    question.tools = vec![schema("f")];
    question.response_format =
        Some(json!({"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}));
    question.sampling = Sampling {
        temperature: Some(0.5),
        tokens_max: Some(100),
        seed: Some(1),
        stop: vec!["x".into()],
        reasoning_effort: Some("none".into()),
        extra: Map::from_iter([
            ("top_k".to_owned(), json!(3)),
            ("keep_alive".to_owned(), json!("5m")),
            ("num_ctx".to_owned(), json!(1)),
        ]),
        ..Sampling::default()
    };
    let sent = body(&provider(), &question).unwrap();
    assert_eq!(
        sent,
        json!({"model": "m", "messages": [{"role": "system", "content": "sys"},
        {"role": "user", "content": "hi"}], "stream": true, "tools": [{"type": "function", "function":
        {"name": "f", "description": "does f", "parameters": {"type": "object"}}}],
        "format": {"type": "object"}, "think": false, "keep_alive": "5m",
        "options": {"temperature": 0.5, "num_ctx": 8192, "num_predict": 100, "seed": 1, "stop": ["x"], "top_k": 3}})
    );
    question.tool_choice = ToolChoice::None;
    assert!(body(&provider(), &question).unwrap().get("tools").is_none());
}

#[test]
fn messages_take_this_apis_shapes() {
    let picture = |url: &str| Message::Human {
        parts: vec![
            Part::Text { text: "see".into() },
            Part::Image {
                url: url.into(),
                detail: None,
            },
        ],
        name: None,
    };
    let question = request(vec![
        picture("data:image/png;base64,QUJD"),
        Message::Assistant {
            text: String::new(),
            calls: vec![call("c1", "f", json!({"x": 1}))],
        },
        Message::Tool {
            call_id: CallId::new("c1"),
            name: String::new(),
            text: "ok".into(),
        },
    ]);
    let sent = body(&provider(), &question).unwrap();
    assert_eq!(
        sent["messages"][1],
        json!({"role": "user", "content": "see", "images": ["QUJD"]})
    );
    assert_eq!(
        sent["messages"][2],
        json!({"role": "assistant", "content": "",
        "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]})
    );
    assert_eq!(
        sent["messages"][3],
        json!({"role": "tool", "tool_name": "f", "content": "ok"})
    );
    for part in [
        Part::Image {
            url: "https://h/a.png".into(),
            detail: None,
        },
        Part::Audio {
            data: String::new(),
            format: "wav".into(),
        },
        Part::File { file: json!({}) },
    ] {
        let message = Message::Human {
            parts: vec![part],
            name: None,
        };
        assert!(body(&provider(), &request(vec![message])).is_err());
    }
}

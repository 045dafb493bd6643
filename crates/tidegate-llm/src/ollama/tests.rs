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
    question.tools = [schema("f")].into();
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
    let sent = body(&provider(), &question, None).unwrap();
    assert_eq!(
        sent,
        json!({"model": "m", "messages": [{"role": "system", "content": "sys"},
        {"role": "user", "content": "hi"}], "stream": true, "truncate": false, "shift": false, "tools": [{"type": "function", "function":
        {"name": "f", "description": "does f", "parameters": {"type": "object"}}}],
        "format": {"type": "object"}, "think": false, "keep_alive": "5m",
        "options": {"temperature": 0.5, "num_ctx": 8192, "num_predict": 100, "seed": 1, "stop": ["x"], "top_k": 3}})
    );
    question.tool_choice = ToolChoice::None;
    assert!(body(&provider(), &question, None).unwrap().get("tools").is_none());
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
    let sent = body(&provider(), &question, None).unwrap();
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
        assert!(body(&provider(), &request(vec![message]), None).is_err());
    }
}

fn window_of(provider: &Provider, context_tokens: Option<u64>, text_bytes: usize) -> Option<u64> {
    let mut question = request(vec![Message::human("x".repeat(text_bytes))]);
    question.model.context_tokens = context_tokens;
    let sent = body(provider, &question, None).ok()?;
    sent["options"]["num_ctx"].as_u64()
}

#[test]
fn the_window_grows_with_the_prompt_up_to_the_models_own() {
    let usual = provider();
    let rows = [
        (Some(131_072), 10, Some(8_192)),
        (Some(131_072), 18_000, Some(8_192)),
        (Some(131_072), 20_000, Some(16_384)),
        (Some(131_072), 200_000, Some(131_072)),
        (Some(131_072), 500_000, Some(131_072)),
        (Some(131_072), 800_000, None),
        (Some(2_048), 10, Some(2_048)),
        (Some(2_048), 13_000, None),
        (None, 10, Some(8_192)),
        (None, 40_000, Some(8_192)),
        (None, 50_000, None),
    ];
    for (own, text_bytes, expected) in rows {
        assert_eq!(
            window_of(&usual, own, text_bytes),
            expected,
            "{own:?} {text_bytes}"
        );
    }
    let told = Provider::settle(
        "ollama",
        &ProviderOptions {
            context_tokens: Some(32_768),
            ..ProviderOptions::default()
        },
    )
    .unwrap();
    assert_eq!(
        window_of(&told, Some(32_768), 10),
        Some(32_768),
        "the operator's word"
    );
    assert_eq!(window_of(&told, Some(32_768), 300_000), None);
    let mut long_answer = request(vec![Message::human("hi")]);
    long_answer.model.context_tokens = Some(131_072);
    long_answer.sampling.tokens_max = Some(10_000);
    let sent = body(&usual, &long_answer, None).unwrap();
    assert_eq!(sent["options"]["num_ctx"], 16_384, "the answer needs room too");
}

#[test]
fn a_prompt_that_cannot_fit_is_said_to_be_too_long() {
    let mut question = request(vec![Message::human("x".repeat(100_000))]);
    question.model.context_tokens = Some(4_096);
    let failure = body(&provider(), &question, None).unwrap_err();
    assert_eq!(
        failure.error,
        ModelError::ContextLength {
            limit_tokens: Some(4_096),
            prompt_tokens: None
        }
    );
}

#[test]
fn thinking_is_asked_for_as_the_model_takes_it() {
    let rows = [
        (None, "high", Some(json!("high"))),
        (None, "none", Some(json!(false))),
        (Some(Thinking::Levels), "low", Some(json!("low"))),
        (Some(Thinking::Levels), "xhigh", Some(json!("high"))),
        (Some(Thinking::OnOff), "medium", Some(json!(true))),
        (Some(Thinking::OnOff), "none", Some(json!(false))),
        (Some(Thinking::Never), "high", None),
        (Some(Thinking::Never), "none", None),
    ];
    for (thinking, effort, expected) in rows {
        let mut question = request(vec![Message::human("hi")]);
        question.sampling.reasoning_effort = Some(effort.to_owned());
        let sent = body(&provider(), &question, thinking).unwrap();
        assert_eq!(sent.get("think"), expected.as_ref(), "{thinking:?} {effort}");
    }
}

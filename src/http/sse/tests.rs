use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tidegate_core::{
    id::CallId,
    model::{FinishReason, ModelError},
    tool::Arguments,
    usage::Usage,
};
use tidegate_engine::Outcome;

use super::*;
use crate::http::fold;

const LONG: Duration = Duration::from_mins(10);

fn head() -> Head {
    Head {
        id: "chatcmpl-1".into(),
        created: 7,
        model: "m".into(),
    }
}

fn form() -> Form {
    Form {
        stream: true,
        include_usage: false,
        legacy_functions: false,
    }
}

fn finished(reason: FinishReason) -> RunEvent {
    let usage = Usage {
        input_tokens: 3,
        output_tokens: 2,
        ..Usage::default()
    };
    RunEvent::Finished(Finished {
        reason,
        outcome: Outcome::Answered,
        usage,
        usage_by_role: BTreeMap::new(),
        sources: tidegate_engine::Sources::default(),
    })
}

fn call(id: &str, name: &str) -> ToolCall {
    let arguments = Map::from_iter([("q".to_owned(), Value::from("a\nb"))]);
    ToolCall {
        id: CallId::new(id),
        name: name.into(),
        arguments: Arguments::Object(arguments),
    }
}

async fn text_of(events: Vec<RunEvent>, form: Form) -> String {
    let response = answer(stream::iter(events).boxed(), head(), form, LONG)
        .await
        .unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "text/event-stream; charset=utf-8"
    );
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The JSON of each `data:` line; asserts that the body has nothing but such lines and comments.
fn chunks(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut done = false;
    for block in text.split_terminator("\n\n") {
        assert!(!done, "something after [DONE]: {block}");
        if block.starts_with(':') {
            continue;
        }
        let data = block.strip_prefix("data: ").expect("a data line");
        assert!(!data.contains('\n'), "{data}");
        if data == "[DONE]" {
            done = true;
        } else {
            values.push(serde_json::from_str(data).unwrap());
        }
    }
    assert!(done, "no [DONE]");
    values
}

#[tokio::test]
async fn a_plain_stream_is_exactly_this() {
    let text = text_of(
        vec![RunEvent::Text("Hi".into()), finished(FinishReason::Stop)],
        form(),
    )
    .await;
    let base = format!(
        r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","system_fingerprint":"{FINGERPRINT}","choices":[{{"index":0,"delta":"#
    );
    let expected = format!(
        "{base}{{\"role\":\"assistant\",\"content\":\"\"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n\
         {base}{{\"content\":\"Hi\"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n\
         {base}{{}},\"logprobs\":null,\"finish_reason\":\"stop\"}}]}}\n\n\
         data: [DONE]\n\n"
    );
    assert_eq!(text, expected);
}

#[tokio::test]
async fn usage_is_null_until_its_own_chunk_and_absent_unless_asked_for() {
    let events = vec![RunEvent::Text("Hi".into()), finished(FinishReason::Stop)];
    let chunks_with = chunks(
        &text_of(
            events.clone(),
            Form {
                include_usage: true,
                ..form()
            },
        )
        .await,
    );
    let (last, earlier) = chunks_with.split_last().unwrap();
    assert!(
        earlier
            .iter()
            .all(|chunk| chunk.get("usage") == Some(&Value::Null))
    );
    assert_eq!(last["choices"], json!([]));
    assert_eq!(
        last["usage"].to_string(),
        r#"{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}"#
    );
    let without = chunks(&text_of(events, form()).await);
    assert!(without.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[tokio::test]
async fn calls_go_out_whole_and_count_from_nought() {
    let events = vec![
        RunEvent::ToolStarted {
            call_id: CallId::new("s1"),
            tool: "server".into(),
        },
        RunEvent::ClientCalls(vec![call("c1", "get"), call("c2", "put")]),
        finished(FinishReason::ToolCalls),
    ];
    let text = text_of(events.clone(), form()).await;
    assert!(!text.contains("server") && !text.contains("s1"));
    let chunks = chunks(&text);
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(
        deltas[1],
        &json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
            "function": {"name": "get", "arguments": "{\"q\":\"a\\nb\"}"}}]})
    );
    assert_eq!(deltas[2]["tool_calls"][0]["index"], 1);
    assert_eq!(chunks[3]["choices"][0]["finish_reason"], "tool_calls");

    let folded = fold::answer(stream::iter(events).boxed(), head(), form())
        .await
        .unwrap();
    let folded = serde_json::to_value(folded).unwrap();
    assert_eq!(folded["choices"][0]["message"]["content"], Value::Null);
    assert_eq!(folded["choices"][0]["message"]["tool_calls"][1]["id"], "c2");
    assert!(
        folded["choices"][0]["message"]["tool_calls"][1]
            .get("index")
            .is_none()
    );
    assert_eq!(folded["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn the_older_form_is_answered_in_the_older_form() {
    let legacy = Form {
        legacy_functions: true,
        ..form()
    };
    let events = vec![
        RunEvent::ClientCalls(vec![call("c1", "get")]),
        finished(FinishReason::ToolCalls),
    ];
    let chunks = chunks(&text_of(events.clone(), legacy).await);
    assert_eq!(chunks[1]["choices"][0]["delta"]["function_call"]["name"], "get");
    assert_eq!(chunks[2]["choices"][0]["finish_reason"], "function_call");
    let folded = fold::answer(stream::iter(events).boxed(), head(), legacy)
        .await
        .unwrap();
    let folded = serde_json::to_value(folded).unwrap();
    assert_eq!(folded["choices"][0]["message"]["function_call"]["name"], "get");
    assert!(folded["choices"][0]["message"].get("tool_calls").is_none());
}

#[tokio::test]
async fn an_error_before_the_first_event_has_a_status_and_a_later_one_is_an_event() {
    let failed = RunEvent::Failed(RunError::Model(ModelError::Timeout("first byte".into())));
    let early = answer(stream::iter([failed.clone()]).boxed(), head(), form(), LONG)
        .await
        .unwrap_err();
    assert_eq!(early.status(), 504);

    let text = text_of(vec![RunEvent::Text("Hal".into()), failed], form()).await;
    let chunks = chunks(&text);
    let last = chunks.last().unwrap();
    assert_eq!(last["error"]["code"], "upstream_timeout");
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["choices"][0]["finish_reason"].is_null())
    );

    let cut = chunks_of_a_cut_run().await;
    assert_eq!(cut.last().unwrap()["error"]["code"], "internal_error");
}

async fn chunks_of_a_cut_run() -> Vec<Value> {
    chunks(&text_of(vec![RunEvent::Text("Hal".into())], form()).await)
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let short = Duration::from_millis(2);
    let silent = stream::pending().boxed();
    let response = answer(silent, head(), form(), short).await.unwrap();
    let mut body = response.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"data: ") && first.ends_with(COMMENT.as_bytes()));
    assert_eq!(body.next().await.unwrap().unwrap(), COMMENT);
}

#[tokio::test]
async fn both_encoders_say_the_same() {
    let events = vec![
        RunEvent::Reasoning("hm".into()),
        RunEvent::Text("A\n\ndata: x".into()),
        RunEvent::Text("B".into()),
        finished(FinishReason::Length),
    ];
    let text = text_of(
        events.clone(),
        Form {
            include_usage: true,
            ..form()
        },
    )
    .await;
    let chunks = chunks(&text);
    let join = |field: &str| -> String {
        chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"][field].as_str())
            .collect()
    };
    let folded = fold::answer(stream::iter(events).boxed(), head(), form())
        .await
        .unwrap();
    let folded = serde_json::to_value(folded).unwrap();
    let message = &folded["choices"][0]["message"];
    assert_eq!(message["content"], join("content"));
    assert_eq!(message["reasoning_content"], join("reasoning_content"));
    assert_eq!(folded["usage"], chunks.last().unwrap()["usage"]);
    assert_eq!(folded["choices"][0]["finish_reason"], "length");
    let fields: Vec<&String> = folded.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "id",
            "object",
            "created",
            "model",
            "choices",
            "usage",
            "system_fingerprint"
        ]
    );
    assert_eq!(message["refusal"], Value::Null);
    assert!(message.get("tool_calls").is_none());
}

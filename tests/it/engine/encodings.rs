//! Streaming and not streaming are two encoders of one event stream.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon};

/// Plays the same script to both encodings, and returns both answers.
async fn both(script: &[Reply], change: impl Fn(Chat<'_>) -> Chat<'_>) -> (Answer, Answer) {
    let daemon = Daemon::start().await;
    let mut answers = Vec::new();
    for stream in [false, true] {
        for reply in script {
            daemon.upstream.push(reply.clone());
        }
        let chat = Chat::new(&daemon, "please help").with("stream", Value::Bool(stream));
        let chat = if stream {
            chat.with("stream_options", json!({"include_usage": true}))
        } else {
            chat
        };
        answers.push(change(chat).send().await);
    }
    let streamed = answers.pop().unwrap();
    (answers.pop().unwrap(), streamed)
}

fn assert_same(whole: &Answer, streamed: &Answer) {
    assert_eq!(whole.content(), streamed.content());
    assert_eq!(whole.finish_reason(), streamed.finish_reason());
    let names = |answer: &Answer| {
        answer
            .calls()
            .into_iter()
            .map(|(_, name, arguments)| (name, arguments))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(whole), names(streamed));
    assert_eq!(whole.usage(), streamed.usage());
}

#[tokio::test]
async fn plain_text() {
    let script = [Reply::text("Bonjour, ça va ?").chunk_chars(3).usage(11, 5)];
    let (whole, streamed) = both(&script, |chat| chat).await;
    assert_same(&whole, &streamed);
    assert_eq!(whole.content(), "Bonjour, ça va ?");
    assert_eq!(whole.usage()["total_tokens"], 16);
    assert_eq!(whole.finish_reason(), "stop");
}

#[tokio::test]
async fn a_turn_with_server_tools_sums_usage_over_every_call() {
    let script = [
        Reply::text("Let me see.")
            .call("a", "calculate", json!({"expression": "19+23"}))
            .usage(10, 5),
        Reply::text("It is 42.").usage(20, 7),
    ];
    let (whole, streamed) = both(&script, |chat| chat).await;
    assert_same(&whole, &streamed);
    assert_eq!(whole.content(), "Let me see.\n\nIt is 42.");
    assert_eq!(whole.usage()["prompt_tokens"], 30);
    assert_eq!(whole.usage()["completion_tokens"], 12);
}

#[tokio::test]
async fn calls_for_the_client() {
    let tools =
        json!([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]);
    let script = [Reply::text("")
        .call("x", "get_weather", json!({"city": "Oslo"}))
        .usage(3, 4)];
    let (whole, streamed) = both(&script, |chat| chat.with("tools", tools.clone())).await;
    assert_same(&whole, &streamed);
    assert_eq!(whole.finish_reason(), "tool_calls");
    let (_, name, arguments) = whole.calls().remove(0);
    assert_eq!(
        (name.as_str(), serde_json::from_str::<Value>(&arguments).unwrap()),
        ("get_weather", json!({"city": "Oslo"}))
    );
}

#[tokio::test]
async fn an_answer_cut_by_its_limit_is_length_in_both() {
    let script = [Reply::text("once upon a").finish("length").usage(3, 4)];
    let (whole, streamed) = both(&script, |chat| chat.with("max_tokens", json!(3))).await;
    assert_same(&whole, &streamed);
    assert_eq!(whole.finish_reason(), "length");
}

#[tokio::test]
async fn missing_usage_is_estimated_alike() {
    let script = [Reply::text("four").no_usage()];
    let (whole, streamed) = both(&script, |chat| chat).await;
    assert_same(&whole, &streamed);
    assert_eq!(whole.usage()["completion_tokens"], 1);
}

#[tokio::test]
async fn reasoning_is_shown_apart_and_tags_are_not_shown() {
    let script = [Reply::text("<think>secret plan</think>Yes.")
        .reasoning("hm")
        .usage(1, 1)];
    let (whole, streamed) = both(&script, |chat| chat).await;
    assert_same(&whole, &streamed);
    assert_eq!(whole.content(), "Yes.");
    assert_eq!(whole.json()["choices"][0]["message"]["reasoning_content"], "hm");
}

#[tokio::test]
async fn an_upstream_refusal_is_the_same_class_in_both() {
    let refusal = Reply::status(
        400,
        json!({"error": {"message": "bad temperature", "code": 7, "param": "temperature"}}),
    );
    let (whole, streamed) = both(&[refusal], |chat| chat).await;
    for answer in [&whole, &streamed] {
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(
            answer.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("bad temperature")
        );
    }
}

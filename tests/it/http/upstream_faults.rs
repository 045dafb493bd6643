//! A model server that fails in every way: a real status before the first byte, an error event after it, and
//! never a hang or a failure of our own.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon, Setup};

/// How long any of these may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Retries are made, and not waited for. An answer that is not streamed has the total time alone.
const IMPATIENT: &str = "[models]\nretry_initial_delay_ms = 1\nretry_delay_max_ms = 1\nbreaker_failures = 0\n\
                         idle_timeout_ms = 700\nfirst_byte_timeout_ms = 700\n\
                         total_timeout_ms = 3000\n";

async fn impatient() -> Daemon {
    Setup::default().config(IMPATIENT).start().await
}

async fn ask(daemon: &Daemon, stream: bool, what: &str) -> Answer {
    let chat = Chat::new(daemon, "hello there")
        .with("stream", stream.into())
        .send();
    tokio::time::timeout(PATIENCE, chat)
        .await
        .unwrap_or_else(|_| panic!("no answer in time to {what}, streamed: {stream}"))
}

/// The error event of a stream that ended badly, if it did.
fn error_event(answer: &Answer) -> Option<Value> {
    let events: Vec<&str> = answer
        .text
        .split("\n\n")
        .filter(|event| event.starts_with("data: "))
        .collect();
    assert_eq!(events.last(), Some(&"data: [DONE]"), "{}", answer.text);
    events
        .iter()
        .filter(|event| **event != "data: [DONE]")
        .map(|event| serde_json::from_str::<Value>(&event["data: ".len()..]).unwrap())
        .find(|event| event.get("error").is_some())
}

#[tokio::test]
async fn an_error_before_the_first_byte_has_a_real_status_streamed_or_not() {
    let daemon = impatient().await;
    let openai =
        |message: &str| json!({"error": {"message": message, "type": "x", "param": null, "code": null}});
    for (reply, status, code) in [
        (Reply::status(500, openai("broken")), 502, "upstream_error"),
        (Reply::status(503, json!("down")), 502, "upstream_error"),
        (Reply::status(401, openai("bad key")), 502, "upstream_error"),
        (Reply::status(403, openai("no")), 502, "upstream_error"),
        (
            Reply::status(429, openai("slow down")),
            429,
            "rate_limit_exceeded",
        ),
        (
            Reply::status(404, openai("no such model")),
            404,
            "model_not_found",
        ),
        (Reply::never(), 504, "upstream_timeout"),
        (
            Reply::status(
                400,
                json!({"error": {"message": "This model's maximum context length is 10 tokens. \
                However, your messages resulted in 20 tokens.", "code": "context_length_exceeded"}}),
            ),
            400,
            "context_length_exceeded",
        ),
    ] {
        daemon.upstream.always(reply);
        for stream in [false, true] {
            let answer = ask(&daemon, stream, code).await;
            let body = answer.assert_error(status, code);
            assert_eq!(answer.header("content-type"), "application/json");
            assert!(!answer.header("x-run-id").is_empty(), "{body}");
            if status == 429 {
                assert!(
                    answer
                        .header("retry-after")
                        .parse::<u64>()
                        .is_ok_and(|wait| wait >= 1)
                );
            }
        }
    }
    daemon
        .upstream
        .always(Reply::status(400, openai("temperature is odd")));
    let answer = ask(&daemon, true, "a rejection").await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("temperature is odd"), "{}", answer.text);
}

#[tokio::test]
async fn garbage_half_a_chunk_or_nothing_is_never_our_own_failure_and_never_a_hang() {
    let daemon = impatient().await;
    let deep = format!("data: {}{}\n\n", "[".repeat(100_000), "]".repeat(100_000));
    let half = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"conte";
    for (what, reply) in [
        ("garbage", Reply::raw_sse("\u{0}\u{1}garbage\n\n\n:::\ndata\n\n")),
        (
            "bytes",
            Reply::raw_sse(vec![vec![0xff, 0xfe, 0x00], vec![0x80; 100]]),
        ),
        ("nothing", Reply::raw_sse("")),
        ("an empty body", Reply::raw_json("")),
        ("done alone", Reply::raw_sse("data: [DONE]\n\n")),
        ("empty data", Reply::raw_sse("data:\n\ndata: \n\n")),
        ("half a chunk", Reply::raw_sse(half)),
        ("half a chunk and a cut", Reply::raw_sse(half).cut()),
        ("half a chunk and silence", Reply::raw_sse(half).hang()),
        ("deep JSON", Reply::raw_sse(deep)),
        (
            "a page",
            Reply::raw_json("<html><body>502 Bad Gateway</body></html>"),
        ),
        ("null", Reply::raw_json("null")),
        (
            "wrong types",
            Reply::raw_sse("data: {\"choices\": 5}\n\ndata: {\"choices\":[{\"delta\": \"x\"}]}\n\n"),
        ),
        (
            "no choices",
            Reply::raw_sse("data: {\"choices\":[]}\n\ndata: [DONE]\n\n"),
        ),
        (
            "an error in a 200",
            Reply::raw_sse("data: {\"error\": {\"message\": \"boom\", \"code\": 500}}\n\n"),
        ),
        (
            "an error as text",
            Reply::raw_sse("data: {\"error\": \"boom\"}\n\n"),
        ),
        ("a broken connection", Reply::text("").cut()),
    ] {
        daemon.upstream.always(reply);
        for stream in [false, true] {
            let answer = ask(&daemon, stream, what).await;
            if answer.status == 200 && stream {
                let error = error_event(&answer);
                assert!(
                    error.is_some() || answer.finish_reason() == "stop",
                    "{what}: {}",
                    answer.text
                );
            } else if answer.status == 200 {
                assert!(!answer.content().is_empty(), "{what}: {}", answer.text);
            } else {
                assert!(
                    [502, 504].contains(&answer.status),
                    "{what}: {} {}",
                    answer.status,
                    answer.text
                );
                assert!(answer.json()["error"]["message"].is_string(), "{what}");
            }
        }
    }
    daemon.upstream.always(Reply::text("fine"));
    assert_eq!(
        ask(&daemon, false, "fine").await.content(),
        "fine",
        "nothing of it stays"
    );
}

#[tokio::test]
async fn an_error_after_the_first_byte_is_an_event_without_a_finish() {
    let daemon = impatient().await;
    for reply in [
        Reply::text("the first words of an answer").cut(),
        Reply::text("the first words of it").hang(),
    ] {
        daemon.upstream.always(reply);
        let answer = ask(&daemon, true, "a cut").await;
        assert_eq!(answer.status, 200);
        assert!(answer.text.contains("the first words"), "{}", answer.text);
        let error = error_event(&answer).unwrap_or_else(|| panic!("no error event: {}", answer.text));
        let keys: Vec<&String> = error["error"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["message", "type", "param", "code"], "{error}");
        assert!(
            !answer.text.contains("\"finish_reason\":\"stop\""),
            "a cut answer does not look whole"
        );
    }
}

#[tokio::test]
async fn a_thousand_calls_at_once_are_bounded() {
    let daemon = Daemon::start().await;
    let flood = (0..1000).fold(Reply::text(""), |reply, index| {
        reply.call(
            format!("c{index}"),
            "calculate",
            json!({"expression": format!("{index}+1")}),
        )
    });
    for stream in [false, true] {
        daemon.upstream.push(flood.clone());
        daemon.upstream.always(Reply::text("enough"));
        let answer = ask(&daemon, stream, "a flood").await;
        assert_eq!(answer.content(), "enough", "{}", answer.text);
        let last = daemon.upstream.chats().pop().unwrap();
        let results = last["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "tool")
            .count();
        assert!((1..=64).contains(&results), "{results} results");
    }
}

//! Answers over a real socket: encodings, limits, and what a broken peer does.

use proptest::prelude::*;
use tidegate_core::model::FinishReason;
use tidegate_testkit::Reply;

use super::*;

/// Events without the borders between pieces of text.
fn joined(events: Vec<ModelEvent>) -> (String, String, Vec<ModelEvent>) {
    let (mut text, mut reasoning, mut rest) = (String::new(), String::new(), Vec::new());
    for event in events {
        match event {
            ModelEvent::Text(piece) => text.push_str(&piece),
            ModelEvent::Reasoning(piece) => reasoning.push_str(&piece),
            ModelEvent::AnsweredBy(_) | ModelEvent::Call(_) | ModelEvent::Finished { .. } => {
                rest.push(event);
            }
        }
    }
    (text, reasoning, rest)
}

#[tokio::test]
async fn one_reply_is_the_same_answer_in_every_encoding() {
    let upstream = Upstream::start().await.unwrap();
    upstream.always(
        Reply::text("Grüße, 世界 😀!")
            .reasoning("hmm")
            .call("call_1", "f", json!({"x": [1, {"y": "ü"}]}))
            .call("call_2", "g", json!({}))
            .usage(11, 7)
            .chunk_chars(3),
    );
    let mut seen = Vec::new();
    for dialect in [Dialect::Openai, Dialect::Ollama] {
        for stream in [false, true] {
            let models = models(options(&upstream, dialect));
            let mut events = joined(answer(&models, question(stream)).await.unwrap());
            if dialect == Dialect::Ollama {
                // This dialect has no ids: they are ours.
                for event in &mut events.2 {
                    if let ModelEvent::Call(call) = event {
                        assert!(call.id.as_str().starts_with("call_"), "{call:?}");
                        call.id = CallId::new(if call.name == "f" { "call_1" } else { "call_2" });
                    }
                }
            }
            seen.push(events);
        }
    }
    let (text, reasoning, rest) = seen.first().unwrap();
    assert_eq!(
        (text.as_str(), reasoning.as_str(), rest.len()),
        ("Grüße, 世界 😀!", "hmm", 3)
    );
    assert!(
        matches!(rest.last(), Some(ModelEvent::Finished { reason: FinishReason::ToolCalls, usage: Some(usage) })
        if usage.input_tokens == 11 && usage.output_tokens == 7)
    );
    assert!(
        seen.iter().all(|events| events == seen.first().unwrap()),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_request_carries_credentials_and_the_body() {
    let upstream = Upstream::start().await.unwrap();
    let mut options = options(&upstream, Dialect::Openai);
    let provider = options.providers.get_mut("x").unwrap();
    provider.api_key = Some(tidegate_core::secret::Secret::new("sk-test"));
    provider.headers.insert("x-org".to_owned(), "mine".to_owned());
    answer(&models(options), question(true)).await.unwrap();
    let requests = upstream.requests();
    let received = requests.first().unwrap();
    assert_eq!(received.path, "/v1/chat/completions");
    assert_eq!(
        received.headers.get("authorization").map(String::as_str),
        Some("Bearer sk-test")
    );
    assert_eq!(received.headers.get("x-org").map(String::as_str), Some("mine"));
    assert_eq!(received.body["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn what_a_server_sends_counts_more_than_what_was_asked() {
    let upstream = Upstream::start().await.unwrap();
    let models = models(options(&upstream, Dialect::Openai));
    upstream.push(Reply::raw_json(
        r#"{"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}"#,
    ));
    assert_eq!(text(&answer(&models, question(true)).await.unwrap()), "whole");
    upstream.push(Reply::raw_sse(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n",
    ));
    assert_eq!(text(&answer(&models, question(false)).await.unwrap()), "a");
}

fn sse(events: &[&str]) -> String {
    events
        .iter()
        .flat_map(|event| ["data: ", event, "\n\n"])
        .collect()
}

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"é"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;

#[tokio::test]
async fn streams_are_read_as_servers_write_them() {
    let bytes = sse(&[TEXT, STOP, "[DONE]"]).into_bytes();
    let split: Vec<Vec<u8>> = bytes.iter().map(|byte| vec![*byte]).collect();
    let rows: Vec<(&str, Reply)> = vec![
        ("every byte by itself", Reply::raw_sse(split)),
        ("no [DONE]", Reply::raw_sse(sse(&[TEXT, STOP]))),
        (
            "no blank line at the end",
            Reply::raw_sse(format!("{}data: {STOP}", sse(&[TEXT]))),
        ),
        (
            "CR LF and comments",
            Reply::raw_sse(format!(
                ": hi\r\n\r\ndata: {TEXT}\r\n\r\n: x\r\ndata:{STOP}\r\n\r\n"
            )),
        ),
        (
            "events after [DONE]",
            Reply::raw_sse(sse(&[TEXT, STOP, "[DONE]", TEXT, "garbage"])),
        ),
        ("cut after the finish", Reply::raw_sse(sse(&[TEXT, STOP])).cut()),
        (
            "several lines of data",
            Reply::raw_sse(format!(
                "{}data: {{\"choices\":\ndata: []}}\n\ndata: {STOP}\n\n",
                sse(&[TEXT])
            )),
        ),
        ("role first", Reply::raw_sse(sse(&[ROLE, TEXT, STOP]))),
        (
            "usage chunk with an empty delta",
            Reply::raw_sse(sse(&[
                TEXT,
                STOP,
                r#"{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
                "[DONE]",
            ])),
        ),
        (
            "error null",
            Reply::raw_sse(sse(&[TEXT, r#"{"error":null,"choices":[]}"#, STOP])),
        ),
    ];
    let upstream = Upstream::start().await.unwrap();
    let models = models(options(&upstream, Dialect::Openai));
    for (what, reply) in rows {
        upstream.push(reply);
        let events = answer(&models, question(true)).await;
        assert_eq!(events.map(|events| text(&events)), Ok("é".to_owned()), "{what}");
    }
}

#[tokio::test]
async fn a_server_that_keeps_the_connection_open_after_the_end_costs_no_answer() {
    let upstream = Upstream::start().await.unwrap();
    let models = models(options(&upstream, Dialect::Openai));
    for events in [vec![TEXT, STOP], vec![TEXT, STOP, "[DONE]"]] {
        upstream.push(Reply::raw_sse(sse(&events)).hang());
        assert_eq!(text(&answer(&models, question(true)).await.unwrap()), "é");
    }
    assert!(upstream.wait_idle(SOON).await);
}

type Check<'a> = &'a dyn Fn(&ModelError) -> bool;

#[tokio::test]
async fn broken_streams_are_errors_and_never_panics() {
    let deep = format!("{{\"choices\":{}", "[".repeat(50_000));
    let malformed = |error: &ModelError| matches!(error, ModelError::Malformed(_));
    let unavailable = |error: &ModelError| matches!(error, ModelError::Unavailable(_));
    let limited = |error: &ModelError| matches!(error, ModelError::RateLimited { .. });
    let overflow = |error: &ModelError| {
        matches!(
            error,
            ModelError::ContextLength {
                limit_tokens: Some(7),
                ..
            }
        )
    };
    let rows: Vec<(&str, Reply, Check<'_>)> = vec![
        (
            "no finish reason",
            Reply::raw_sse(sse(&[TEXT, "[DONE]"])),
            &malformed,
        ),
        ("only [DONE]", Reply::raw_sse(sse(&["[DONE]"])), &malformed),
        ("nothing", Reply::raw_sse(""), &malformed),
        ("garbage", Reply::raw_sse(sse(&["{garbage"])), &malformed),
        (
            "garbage later",
            Reply::raw_sse(sse(&[TEXT, "<html>"])),
            &malformed,
        ),
        ("a list", Reply::raw_sse(sse(&["[1,2]"])), &malformed),
        ("deep JSON", Reply::raw_sse(sse(&[&deep])), &malformed),
        ("deep whole JSON", Reply::raw_json(deep.clone()), &malformed),
        ("empty body", Reply::raw_json(""), &malformed),
        ("no choices", Reply::raw_json("{}"), &malformed),
        ("cut", Reply::raw_sse(sse(&[TEXT])).cut(), &unavailable),
        (
            "error object",
            Reply::raw_sse(sse(&[TEXT, r#"{"error":{"message":"m","code":429}}"#])),
            &limited,
        ),
        (
            "error text",
            Reply::raw_sse(sse(&[TEXT, r#"{"error":"m"}"#])),
            &unavailable,
        ),
        (
            "error event",
            Reply::raw_sse(format!(
                "{}event: error\ndata: {{\"message\":\"m\"}}\n\n",
                sse(&[TEXT])
            )),
            &unavailable,
        ),
        (
            "overflow inside",
            Reply::raw_sse(sse(&[
                r#"{"error":{"message":"maximum context length is 7 tokens","code":"400"}}"#,
            ])),
            &overflow,
        ),
        (
            "error with 200",
            Reply::raw_json(r#"{"error":{"message":"m","code":503}}"#),
            &unavailable,
        ),
    ];
    let upstream = Upstream::start().await.unwrap();
    let mut options = options(&upstream, Dialect::Openai);
    options.retries_max = 0;
    options.breaker_failures = 0;
    let models = models(options);
    for (what, reply, check) in rows {
        upstream.push(reply);
        let error = answer(&models, question(true)).await.unwrap_err();
        assert!(check(&error), "{what}: {error:?}");
    }
}

#[tokio::test]
async fn ollama_streams_fail_when_cut() {
    let upstream = Upstream::start().await.unwrap();
    let mut options = options(&upstream, Dialect::Ollama);
    options.retries_max = 0;
    let models = models(options);
    upstream.push(Reply::text("some text").cut());
    assert!(matches!(
        answer(&models, question(true)).await,
        Err(ModelError::Unavailable(_))
    ));
    upstream.push(Reply::raw_sse(
        "{\"message\":{\"content\":\"x\"},\"done\":false}\n",
    ));
    assert!(matches!(
        answer(&models, question(true)).await,
        Err(ModelError::Malformed(_))
    ));
    upstream.push(Reply::raw_sse("{\"error\":\"model runner has stopped\"}\n"));
    assert!(matches!(
        answer(&models, question(true)).await,
        Err(ModelError::Unavailable(_))
    ));
}

#[tokio::test]
async fn every_time_limit_is_kept_and_named() {
    let upstream = Upstream::start().await.unwrap();
    let base = || Options {
        retries_max: 0,
        breaker_failures: 0,
        ..options(&upstream, Dialect::Openai)
    };
    let first = || Options {
        first_byte_timeout_ms: 50,
        ..base()
    };
    let total = || Options {
        total_timeout_ms: 50,
        ..base()
    };
    let rows = [
        ("no headers", Reply::never(), first(), true, "no answer began"),
        (
            "a role and no token",
            Reply::raw_sse(sse(&[ROLE])).hang(),
            first(),
            true,
            "no token",
        ),
        (
            "silence",
            Reply::text("abc").hang(),
            Options {
                idle_timeout_ms: 50,
                ..base()
            },
            true,
            "silent",
        ),
        (
            "endless",
            Reply::endless(5_000),
            Options {
                total_timeout_ms: 300,
                ..base()
            },
            true,
            "in all",
        ),
        ("not streamed", Reply::never(), total(), false, "no answer began"),
        (
            "not streamed, endless",
            Reply::endless(5_000),
            total(),
            false,
            "in all",
        ),
    ];
    for (what, reply, options, stream, words) in rows {
        upstream.push(reply);
        let models = models(options);
        match answer(&models, question(stream)).await {
            Err(ModelError::Timeout(told)) => assert!(told.contains(words), "{what}: {told}"),
            other => panic!("{what}: {other:?}"),
        }
        assert!(upstream.wait_idle(SOON).await, "{what}");
    }
}

#[tokio::test]
async fn an_answer_without_end_meets_its_bound() {
    let upstream = Upstream::start().await.unwrap();
    upstream.always(Reply::endless(0));
    for dialect in [Dialect::Openai, Dialect::Ollama] {
        let options = Options {
            answer_bytes_max: 100_000,
            retries_max: 0,
            ..options(&upstream, dialect)
        };
        let models = models(options);
        for stream in [true, false] {
            let error = answer(&models, question(stream)).await.unwrap_err();
            assert!(
                matches!(&error, ModelError::Malformed(told) if told.contains("long")),
                "{error:?}"
            );
        }
    }
    assert!(upstream.wait_idle(SOON).await);
}

#[tokio::test]
async fn dropping_an_answer_ends_it_upstream() {
    let upstream = Upstream::start().await.unwrap();
    upstream.always(Reply::endless(5_000));
    for dialect in [Dialect::Openai, Dialect::Ollama] {
        let models = models(options(&upstream, dialect));
        let mut stream = models.ask(question(true)).await.unwrap();
        assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Text(_)))));
        assert_eq!(upstream.open_streams(), 1);
        drop(stream);
        assert!(upstream.wait_idle(Duration::from_secs(1)).await);
    }
    upstream.always(Reply::never());
    let models = models(options(&upstream, Dialect::Openai));
    let asked = tokio::time::timeout(Duration::from_millis(100), models.ask(question(true))).await;
    assert!(asked.is_err());
    assert!(upstream.wait_idle(Duration::from_secs(1)).await);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let upstream = Upstream::start().await.unwrap();
    for dialect in [Dialect::Openai, Dialect::Ollama] {
        let before = upstream.connections();
        let models = models(options(&upstream, dialect));
        for stream in [true, false, true, true] {
            answer(&models, question(stream)).await.unwrap();
        }
        assert_eq!(upstream.connections() - before, 1, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_connection_outlives_errors_and_lists() {
    let upstream = Upstream::start().await.unwrap();
    // This server has no list: its answer to that question is an error.
    upstream.set_models(None);
    for dialect in [Dialect::Openai, Dialect::Ollama] {
        let before = upstream.connections();
        let models = models(options(&upstream, dialect));
        for stream in [true, false] {
            assert_eq!(models.resolve("tidegate").await.unwrap().name, "m");
            upstream.push(Reply::status(400, json!({"error": {"message": "no"}})));
            answer(&models, question(stream)).await.unwrap_err();
            upstream.push(Reply::text("x").call("call_1", "f", json!({})));
            answer(&models, question(stream)).await.unwrap();
        }
        assert_eq!(upstream.connections() - before, 1, "{dialect:?}");
    }
}

#[tokio::test]
async fn what_came_before_a_failure_is_told_before_it() {
    let upstream = Upstream::start().await.unwrap();
    let models = models(options(&upstream, Dialect::Openai));
    upstream.push(Reply::raw_sse(sse(&[TEXT, TEXT, "garbage"])));
    let stream = models.ask(question(true)).await.unwrap();
    let items: Vec<_> = stream.collect().await;
    let text = || Ok(ModelEvent::Text("é".to_owned()));
    assert_eq!(items.get(..2), Some([text(), text()].as_slice()));
    assert!(
        matches!(items.get(2..), Some([Err(ModelError::Malformed(_))])),
        "{items:?}"
    );
}

#[tokio::test]
async fn a_call_id_of_the_history_is_not_used_twice() {
    let upstream = Upstream::start().await.unwrap();
    let models = models(options(&upstream, Dialect::Openai));
    upstream.push(
        Reply::text("")
            .call("call_0", "f", json!({}))
            .call("call 1", "f", json!({})),
    );
    let earlier = Message::Assistant {
        text: String::new(),
        calls: vec![call("call_0", "f", json!({}))],
    };
    let events = answer(&models, request(vec![earlier])).await.unwrap();
    let [
        ModelEvent::Call(first),
        ModelEvent::Call(second),
        ModelEvent::Finished { .. },
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    for call in [first, second] {
        assert!(
            call.id.as_str().len() > 10 && !call.id.as_str().contains(' '),
            "{call:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_bytes_from_a_peer_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), whole in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let upstream = Upstream::start().await.unwrap();
            let mut options = options(&upstream, Dialect::Openai);
            options.retries_max = 0;
            let models = models(options);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            upstream.push(if whole { Reply::raw_json(text) } else { Reply::raw_sse(vec![b"data: ".to_vec(), bytes]) });
            drop(answer(&models, question(true)).await);
        });
    }
}

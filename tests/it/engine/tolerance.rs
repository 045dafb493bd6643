//! Model servers as they are: every way in which they are known to differ, through the whole of the server.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon, Setup};

/// Chunks as an event stream with its end.
fn events(chunks: &[Value]) -> String {
    let mut events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.push("data: [DONE]\n\n".to_owned());
    events.concat()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a table of literals reads better without borrows"
)]
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a table of literals reads better without borrows"
)]
fn call(call: Value) -> Value {
    delta(json!({"tool_calls": [call]}))
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn usage() -> Value {
    json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
}

/// A deviation of calls: its chunks, and the cities that the client's calls ask for.
#[expect(clippy::too_many_lines, reason = "one table")]
fn calls() -> Vec<(&'static str, Vec<Value>, Vec<&'static str>)> {
    let whole = |city: &str| json!({"name": "get_weather", "arguments": json!({"city": city}).to_string()});
    vec![
        (
            "without id, type and index",
            vec![call(json!({"function": whole("Oslo")})), finish("tool_calls")],
            vec!["Oslo"],
        ),
        (
            "the name after the id",
            vec![
                call(json!({"index": 0, "id": "a", "function": {"arguments": ""}})),
                call(json!({"index": 0, "function": {"name": "get_weather"}})),
                call(json!({"index": 0, "function": {"arguments": "{\"city\": \"Oslo\"}"}})),
                finish("tool_calls"),
            ],
            vec!["Oslo"],
        ),
        (
            "id and name in every piece",
            vec![
                call(
                    json!({"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": "{\"city\""}}),
                ),
                call(
                    json!({"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": ": \"Oslo\"}"}}),
                ),
                finish("tool_calls"),
            ],
            vec!["Oslo"],
        ),
        (
            "null in later pieces",
            vec![
                call(
                    json!({"index": 0, "id": "a", "type": "function", "function": {"name": "get_weather", "arguments": ""}}),
                ),
                call(
                    json!({"index": 0, "id": null, "type": null, "function": {"name": null, "arguments": "{\"city\": \"Oslo\"}"}}),
                ),
                finish("tool_calls"),
            ],
            vec!["Oslo"],
        ),
        (
            "arguments as an object, and stop beside calls",
            vec![
                call(
                    json!({"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}),
                ),
                finish("stop"),
            ],
            vec!["Oslo"],
        ),
        (
            "two calls under one number",
            vec![
                call(json!({"index": 0, "id": "a", "function": whole("Oslo")})),
                call(json!({"index": 0, "id": "b", "function": whole("Rome")})),
                finish("tool_calls"),
            ],
            vec!["Oslo", "Rome"],
        ),
        (
            "two calls with one id",
            vec![
                delta(
                    json!({"tool_calls": [{"index": 0, "id": "a", "function": whole("Oslo")},
                    {"index": 1, "id": "a", "function": whole("Rome")}]}),
                ),
                finish("tool_calls"),
            ],
            vec!["Oslo", "Rome"],
        ),
        (
            "numbers from 1, in pieces that take turns",
            vec![
                call(
                    json!({"index": 1, "id": "a", "function": {"name": "get_weather", "arguments": "{\"city\":"}}),
                ),
                call(
                    json!({"index": 2, "id": "b", "function": {"name": "get_weather", "arguments": "{\"city\":"}}),
                ),
                call(json!({"index": 1, "function": {"arguments": "\"Oslo\"}"}})),
                call(json!({"index": 2, "function": {"arguments": "\"Rome\"}"}})),
                finish("tool_calls"),
            ],
            vec!["Oslo", "Rome"],
        ),
        (
            "the legacy form",
            vec![
                delta(json!({"function_call": whole("Oslo")})),
                finish("function_call"),
            ],
            vec!["Oslo"],
        ),
        (
            "an empty finish reason in early chunks",
            vec![
                json!({"choices": [{"delta": {"tool_calls": [{"function": whole("Oslo")}]}, "finish_reason": ""}]}),
                finish("tool_calls"),
            ],
            vec!["Oslo"],
        ),
    ]
}

/// Asks with a tool of the client's own, in both encodings.
async fn both(daemon: &Daemon, reply: &Reply) -> [Answer; 2] {
    let tools =
        json!([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]);
    let ask = async |stream: bool| {
        daemon.upstream.push(reply.clone());
        let chat = Chat::new(daemon, "please help").with("tools", tools.clone());
        let chat = if stream {
            chat.stream()
                .with("stream_options", json!({"include_usage": true}))
        } else {
            chat
        };
        chat.send().await
    };
    [ask(false).await, ask(true).await]
}

#[tokio::test]
async fn calls_of_every_form_go_out_in_one() {
    let daemon = Daemon::start().await;
    for (name, mut chunks, cities) in calls() {
        chunks.push(json!({"choices": [], "usage": usage()}));
        for answer in both(&daemon, &Reply::raw_sse(events(&chunks).as_str())).await {
            let calls = answer.calls();
            let asked: Vec<Value> = calls
                .iter()
                .map(|(_, tool, arguments)| {
                    assert_eq!(tool, "get_weather", "{name}: {}", answer.text);
                    let arguments: Value = serde_json::from_str(arguments)
                        .unwrap_or_else(|error| panic!("{name}: {error}: {}", answer.text));
                    arguments["city"].clone()
                })
                .collect();
            assert_eq!(asked, cities, "{name}: {}", answer.text);
            assert_eq!(answer.finish_reason(), "tool_calls", "{name}");
            assert_eq!(answer.usage()["total_tokens"], 18, "{name}: {}", answer.text);
            let ids: std::collections::HashSet<_> = calls.iter().map(|(id, _, _)| id).collect();
            assert_eq!(ids.len(), cities.len(), "{name}");
            assert!(ids.iter().all(|id| !id.is_empty()), "{name}");
        }
    }
}

/// Answers of text that deviate: the body, and what becomes of it: text, finish reason and tokens in all.
#[expect(clippy::too_many_lines, reason = "a table of cases reads best in one place")]
fn texts() -> Vec<(&'static str, Reply, &'static str, &'static str, u64)> {
    let hi = delta(json!({"content": "hi"}));
    let sse = |chunks: &[Value]| Reply::raw_sse(events(chunks).as_str());
    let raw = |text: &str| Reply::raw_sse(text);
    let used = json!({"choices": [], "usage": usage()});
    vec![
        ("tool_calls without any", sse(&[hi.clone(), finish("tool_calls"), used.clone()]), "hi", "stop", 18),
        (
            "an empty list of calls",
            sse(&[delta(json!({"content": "hi", "tool_calls": []})), finish("stop"), used.clone()]),
            "hi",
            "stop",
            18,
        ),
        (
            "usage in a chunk with a choice",
            sse(&[hi.clone(), finish("stop"), json!({"choices": [{"delta": {}}], "usage": usage()})]),
            "hi",
            "stop",
            18,
        ),
        (
            "usage beside the finish, null before",
            sse(&[
                json!({"choices": [{"delta": {"content": "hi"}}], "usage": null}),
                json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage()}),
            ]),
            "hi",
            "stop",
            18,
        ),
        (
            "usage without choices, timings, an error that is null",
            sse(&[
                hi.clone(),
                finish("stop"),
                json!({"error": null, "choices": null, "timings": {"n": 1}, "usage": usage()}),
            ]),
            "hi",
            "stop",
            18,
        ),
        (
            "usage in every chunk",
            sse(&[
                json!({"choices": [{"delta": {"content": "hi"}}],
                    "usage": {"prompt_tokens": 11, "completion_tokens": 1, "total_tokens": 12}}),
                json!({"choices": [{"delta": {}, "finish_reason": "length"}], "usage": usage()}),
            ]),
            "hi",
            "length",
            18,
        ),
        (
            "reasoning under both names",
            sse(&[
                delta(json!({"reasoning": "hm", "reasoning_content": "hm"})),
                hi.clone(),
                finish("stop"),
                used.clone(),
            ]),
            "hi",
            "stop",
            18,
        ),
        (
            "no [DONE]",
            raw(&format!("data: {hi}\n\ndata: {}\n\ndata: {used}\n\n", finish("stop"))),
            "hi",
            "stop",
            18,
        ),
        (
            "CRLF, comments, ids, names and a missing blank line at the end",
            raw(&format!(
                ": hello\r\n\r\nid: 1\r\nevent: message\r\nretry: 5\r\ndata: {hi}\r\n\r\ndata:{}\r\n\r\ndata: {used}",
                finish("stop")
            )),
            "hi",
            "stop",
            18,
        ),
        (
            "events after [DONE]",
            raw(&format!("{}data: {hi}\n\n", events(&[hi.clone(), finish("stop"), used.clone()]))),
            "hi",
            "stop",
            18,
        ),
        ("a body that hangs after its end", sse(&[hi.clone(), finish("stop"), used.clone()]).hang(), "hi", "stop", 18),
        ("a connection cut after the finish", raw(&format!("data: {hi}\n\ndata: {used}\n\ndata: {}\n\n", finish("stop"))).cut(), "hi", "stop", 18),
        (
            "a whole body where a stream was asked for",
            Reply::raw_json(
                json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},
                "finish_reason": "stop"}], "usage": usage()})
                .to_string(),
            ),
            "hi",
            "stop",
            18,
        ),
        (
            "content in parts, and no finish reason in a whole body",
            Reply::raw_json(
                json!({"choices": [{"message": {"content": [{"type": "text", "text": "hi"}]}}], "usage": usage()})
                    .to_string(),
            ),
            "hi",
            "stop",
            18,
        ),
        (
            "a second choice that nobody asked for",
            sse(&[
                json!({"choices": [{"index": 1, "delta": {"content": "other"}}, {"index": 0, "delta": {"content": "hi"}}]}),
                finish("stop"),
                used,
            ]),
            "hi",
            "stop",
            18,
        ),
    ]
}

#[tokio::test]
async fn texts_of_every_form_go_out_in_one() {
    let daemon = Daemon::start().await;
    for (name, reply, text, reason, tokens) in texts() {
        for answer in both(&daemon, &reply).await {
            assert_eq!(answer.content(), text, "{name}: {}", answer.text);
            assert_eq!(answer.finish_reason(), reason, "{name}");
            assert_eq!(answer.usage()["total_tokens"], tokens, "{name}: {}", answer.text);
        }
    }
}

/// Failures: the status that the client gets, where nothing has been shown before.
#[expect(clippy::too_many_lines, reason = "one table")]
fn failures() -> Vec<(&'static str, Reply, u16)> {
    let error = |status: u16, body: Value| Reply::status(status, body);
    let sse = |text: &str| Reply::raw_sse(text);
    vec![
        (
            "a code that is null",
            error(400, json!({"error": {"message": "no", "code": null}})),
            400,
        ),
        (
            "a code that is a number",
            error(422, json!({"error": {"message": "no", "code": 422}})),
            422,
        ),
        (
            "an error that is a string",
            error(400, json!({"error": "no"})),
            400,
        ),
        ("no error at all", error(400, json!("no")), 400),
        (
            "a list",
            error(400, json!([{"error": {"message": "no", "code": 400}}])),
            400,
        ),
        (
            "an unknown model",
            error(404, json!({"error": {"message": "model 'x' not found"}})),
            404,
        ),
        (
            "an unknown model under 400",
            error(400, json!({"error": {"message": "Invalid model name"}})),
            404,
        ),
        (
            "too long under 500",
            error(500, json!({"error": "the prompt exceeds the context length"})),
            400,
        ),
        (
            "too long under 413",
            error(413, json!({"error": {"message": "prompt is too long"}})),
            400,
        ),
        ("our key", error(401, json!({"error": {"message": "who?"}})), 502),
        ("not allowed", error(403, json!({})), 502),
        (
            "a limit",
            error(429, json!({"error": {"message": "slow"}})).header("retry-after", "60"),
            429,
        ),
        (
            "a dated limit",
            error(429, json!({})).header("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT"),
            429,
        ),
        ("broken", error(500, json!({"error": "oops"})), 502),
        ("busy", error(503, json!({})), 502),
        ("gave up", error(504, json!({})), 504),
        ("moved", error(302, json!({})), 502),
        ("nothing", sse(""), 502),
        ("no JSON", sse("data: <html>\n\n"), 502),
        ("a number", sse("data: 5\n\n"), 502),
        ("HTML in a whole body", Reply::raw_json("<html>no</html>"), 502),
        ("no choices", Reply::raw_json("{}"), 502),
        (
            "an error in a 200",
            Reply::raw_json(json!({"error": {"message": "no", "code": 400}}).to_string()),
            400,
        ),
        (
            "an error event",
            sse("event: error\ndata: {\"message\": \"no\"}\n\n"),
            502,
        ),
        (
            "an error chunk",
            sse("data: {\"error\": {\"message\": \"no\", \"code\": 503}}\n\n"),
            502,
        ),
        (
            "no end",
            sse("data: {\"choices\": [{\"delta\": {\"role\": \"assistant\"}}]}\n\ndata: [DONE]\n\n"),
            502,
        ),
        ("cut before a word", sse("data: {\"choices\": []}\n\n").cut(), 502),
        (
            "silent before a word",
            sse("data: {\"choices\": []}\n\n").hang(),
            504,
        ),
        ("silent", Reply::never(), 504),
    ]
}

#[tokio::test]
async fn failures_of_every_form_are_of_one_class_in_both_encodings() {
    let daemon = Setup::default()
        .config(
            "[models]\nretries_max = 0\nbreaker_failures = 0\nfirst_byte_timeout_ms = 700\nidle_timeout_ms = 700",
        )
        .start()
        .await;
    for (name, reply, status) in failures() {
        for answer in both(&daemon, &reply).await {
            assert_eq!(answer.status, status, "{name}: {}", answer.text);
            let error = &answer.json()["error"];
            assert!(
                error["message"].as_str().is_some_and(|text| !text.is_empty()),
                "{name}"
            );
            assert!(
                error["code"].is_string() || error["code"].is_null(),
                "{name}: {error}"
            );
        }
        assert!(
            daemon.upstream.wait_idle(std::time::Duration::from_secs(5)).await,
            "{name}: the exchange goes on"
        );
    }
}

#[tokio::test]
async fn an_answer_that_fails_in_the_middle_is_an_error_and_its_tokens_are_booked() {
    let daemon = Setup::default()
        .config("[models]\nretries_max = 0\nbreaker_failures = 0\nidle_timeout_ms = 700")
        .start()
        .await;
    let begun = format!("data: {}\n\n", delta(json!({"content": "half an answer "})));
    let rows = [
        ("cut", Reply::raw_sse(begun.as_str()).cut()),
        ("silent", Reply::raw_sse(begun.as_str()).hang()),
        (
            "no finish",
            Reply::raw_sse(format!("{begun}data: [DONE]\n\n").as_str()),
        ),
        (
            "an error",
            Reply::raw_sse(format!("{begun}data: {{\"error\": \"oops\"}}\n\n").as_str()),
        ),
        ("no JSON", Reply::raw_sse(format!("{begun}data: {{\n\n").as_str())),
        (
            "aborted",
            Reply::raw_sse(format!("{begun}data: {}\n\n", finish("abort")).as_str()),
        ),
    ];
    let key_id = {
        let (_, keys) = daemon.get("/v1/admin/keys?limit=1").await;
        keys["data"][0]["id"].as_str().unwrap().to_owned()
    };
    let mut booked = 0;
    for (name, reply) in rows {
        let [whole, streamed] = both(&daemon, &reply).await;
        assert!((500..600).contains(&whole.status), "{name}: {}", whole.text);
        assert_ne!(whole.status, 500, "{name}: {}", whole.text);
        assert_eq!(streamed.status, 200, "{name}");
        assert!(streamed.text.contains("\"error\""), "{name}: {}", streamed.text);
        assert_eq!(streamed.finish_reason(), "", "{name}");
        let (_, usage) = daemon.get(&format!("/v1/admin/keys/{key_id}/usage")).await;
        let tokens = usage["data"][0]["output_tokens"].as_u64().unwrap_or(0);
        assert!(tokens >= booked + 6, "{name}: {usage}");
        booked = tokens;
    }
}

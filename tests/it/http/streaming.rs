//! The exact framing of a stream.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon, Setup, chunks};

/// The stream with what differs from run to run replaced.
fn framing(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let first = &chunks(&answer.text)[0];
    let (id, created) = (first["id"].as_str().unwrap(), first["created"].as_i64().unwrap());
    assert!(id.starts_with("chatcmpl-") && created > 1_700_000_000, "{first}");
    let fingerprint = first["system_fingerprint"].as_str().unwrap();
    answer
        .text
        .replace(id, "ID")
        .replace(&format!("\"created\":{created}"), "\"created\":0")
        .replace(fingerprint, "FP")
}

fn chunk(choices: &str, usage: &str) -> String {
    format!(
        "data: {{\"id\":\"ID\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"tidegate\",\
         \"system_fingerprint\":\"FP\",\"choices\":[{choices}]{usage}}}\n\n"
    )
}

fn choice(delta: &str, finish: &str) -> String {
    format!("{{\"index\":0,\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{finish}}}")
}

#[tokio::test]
async fn a_stream_is_role_content_finish_done_and_nothing_else() {
    let daemon = Daemon::start().await;
    // No piece ends in what could begin a known value in any spelling, reversed ones included, so that nothing is
    // held back.
    daemon
        .upstream
        .always(Reply::text("hi, !?").chunk_chars(3).usage(7, 2));
    for (options, usage, last) in [
        (Value::Null, "", ""),
        (json!({"include_usage": false}), "", ""),
        (json!({"include_obfuscation": true}), "", ""),
        (
            json!({"include_usage": true}),
            ",\"usage\":null",
            ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9,\
             \"prompt_tokens_details\":{\"cached_tokens\":0},\"completion_tokens_details\":{\"reasoning_tokens\":0}}",
        ),
    ] {
        let answer = Chat::new(&daemon, "hello there")
            .stream()
            .with("stream_options", options)
            .send()
            .await;
        let mut expected = [
            choice("\"role\":\"assistant\",\"content\":\"\"", "null"),
            choice("\"content\":\"hi,\"", "null"),
            choice("\"content\":\" !?\"", "null"),
            choice("", "\"stop\""),
        ]
        .map(|choice| chunk(&choice, usage))
        .concat();
        if !last.is_empty() {
            expected.push_str(&chunk("", last));
        }
        expected.push_str("data: [DONE]\n\n");
        assert_eq!(framing(&answer), expected);
        assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
        assert_eq!(answer.header("cache-control"), "no-cache, no-transform");
        assert_eq!(answer.header("x-accel-buffering"), "no");
        assert!(answer.header("content-encoding").is_empty());
        for header in [
            "x-request-id",
            "x-run-id",
            "openai-processing-ms",
            "openai-version",
        ] {
            assert!(!answer.header(header).is_empty(), "{header}");
        }
    }
}

#[tokio::test]
async fn one_role_chunk_however_many_rounds_and_the_tool_of_the_server_stays_unseen() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(Reply::text("let me see").call(
        "secret-id",
        "calculate",
        json!({"expression": "1+1"}),
    ));
    daemon.upstream.push(Reply::text("two").reasoning("easy"));
    let answer = Chat::new(&daemon, "add one and one").stream().send().await;
    let all = chunks(&answer.text);
    let roles = all
        .iter()
        .filter(|chunk| chunk["choices"][0]["delta"].get("role").is_some())
        .count();
    assert_eq!(roles, 1, "{}", answer.text);
    assert!(
        all.iter()
            .all(|chunk| chunk["id"] == all[0]["id"] && chunk["created"] == all[0]["created"])
    );
    assert!(
        !answer.text.contains("secret-id") && !answer.text.contains("tool_calls"),
        "{}",
        answer.text
    );
    let reasoning: String = all
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["reasoning_content"].as_str())
        .collect();
    assert_eq!(
        (answer.content().ends_with("two"), reasoning.as_str()),
        (true, "easy")
    );
    assert_eq!(answer.finish_reason(), "stop");
}

#[tokio::test]
async fn calls_for_the_client_have_index_id_type_and_name_once() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(
        Reply::text("")
            .call("a", "mine", json!({"x": 1}))
            .call("b", "mine", json!({"x": 2}))
            .finish("stop"),
    );
    let tools = json!([{"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}]);
    let answer = Chat::new(&daemon, "call mine")
        .with("tools", tools)
        .stream()
        .send()
        .await;
    let deltas: Vec<Value> = chunks(&answer.text)
        .iter()
        .flat_map(|chunk| {
            chunk["choices"][0]["delta"]["tool_calls"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    let firsts: Vec<&Value> = deltas.iter().filter(|delta| delta.get("id").is_some()).collect();
    assert_eq!(firsts.len(), 2, "{deltas:?}");
    for (index, first) in firsts.iter().enumerate() {
        assert_eq!(first["index"], index, "{first}");
        assert_eq!(
            (&first["type"], &first["function"]["name"]),
            (&json!("function"), &json!("mine"))
        );
        assert!(first["function"]["arguments"].is_string(), "{first}");
    }
    assert!(deltas.iter().all(|delta| delta["index"].is_u64()), "{deltas:?}");
    let calls = answer.calls();
    let arguments: Vec<Value> = calls
        .iter()
        .map(|(_, _, text)| serde_json::from_str(text).unwrap())
        .collect();
    assert_eq!(arguments, [json!({"x": 1}), json!({"x": 2})]);
    assert_eq!(
        answer.finish_reason(),
        "tool_calls",
        "`stop` beside calls is mended"
    );
}

#[tokio::test]
async fn a_silent_tool_keeps_the_stream_warm_with_comments() {
    let daemon = Setup::default()
        .config("[server]\nkeepalive_comment_s = 1\n[tools]\ntools_file = \"tools.toml\"")
        .file(
            "tools.toml",
            "[[tool]]\nname = \"slow\"\ndescription = \"slow\"\nmode = \"command\"\ntimeout_ms = 60000\n\
             command = [\"/bin/sh\", \"-c\", \"sleep 2.5\"]\naccept = [{}]\n",
        )
        .start()
        .await;
    let writer = daemon.writer_key().await;
    daemon.upstream.push(Reply::text("").call("s", "slow", json!({})));
    daemon.upstream.push(Reply::text("done"));
    let answer = Chat::new(&daemon, "do it").key(&writer).stream().send().await;
    assert_eq!(answer.content(), "done");
    let comments = answer
        .text
        .split("\n\n")
        .filter(|event| event.starts_with(':'))
        .count();
    assert!(comments >= 1, "{}", answer.text);
    for line in answer.text.lines().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("data: ") || line.starts_with(':'), "{line}");
    }
}

#[tokio::test]
async fn the_connection_stays_usable_after_a_stream() {
    let daemon = Daemon::start().await;
    for _ in 0..3 {
        assert_eq!(
            Chat::new(&daemon, "hello there").stream().send().await.content(),
            "hello"
        );
    }
}

#[tokio::test]
async fn the_whole_answer_has_exactly_the_contracts_fields() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(Reply::text("hello").usage(7, 2));
    let body = Chat::new(&daemon, "hello there").send().await.json();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut top = keys(&body);
    top.sort();
    assert_eq!(
        top,
        [
            "choices",
            "created",
            "id",
            "model",
            "object",
            "system_fingerprint",
            "usage"
        ]
    );
    let choice = &body["choices"][0];
    assert_eq!(
        *choice,
        json!({"index": 0, "message": {"role": "assistant", "content": "hello", "refusal": null},
        "logprobs": null, "finish_reason": "stop"})
    );
    assert_eq!(
        body["usage"],
        json!({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}})
    );
}

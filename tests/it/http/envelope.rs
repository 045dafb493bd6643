//! Whatever is wrong with a request: a 4xx in the envelope that names the field, never a 500, never a hang.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Answer, Chat, Daemon, Raw, Setup};

/// A body with this change made to it: a field, or a whole body.
pub(super) fn body(change: &Value) -> Value {
    let mut body = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello there"}]});
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub(super) fn second_message(message: &Value) -> Value {
    json!({"messages": [{"role": "user", "content": "hello there"}, message]})
}

pub(super) async fn post(daemon: &Daemon, body: impl Into<reqwest::Body>) -> Answer {
    let request = daemon
        .ask("POST", "/v1/chat/completions")
        .bearer_auth(&daemon.key)
        .body(body);
    Answer::of(request.send().await.unwrap()).await
}

/// Asserts the exact keys of an envelope and returns it.
pub(super) fn envelope(answer: &Answer) -> Value {
    assert_eq!(
        answer.header("content-type"),
        "application/json",
        "{}",
        answer.text
    );
    assert!(!answer.header("x-request-id").is_empty());
    let body = answer.json();
    let keys: Vec<&String> = body["error"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["message", "type", "param", "code"], "{body}");
    assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    body
}

#[tokio::test]
async fn null_means_absent_and_unknown_fields_are_ignored_everywhere() {
    let daemon = Daemon::start().await;
    let mut body = body(&json!({
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "be brief", "cache_control": {"type": "x"}}]},
            {"role": "user", "content": "hello there", "name": null, "tool_calls": null, "extra": {"deep": [1]}},
        ],
        "tools": [], "verbosity": "low", "service_tier": "auto", "store": true, "made_up": {"a": [null]},
    }));
    for name in [
        "stream",
        "stream_options",
        "max_tokens",
        "temperature",
        "top_p",
        "n",
        "stop",
        "seed",
        "logprobs",
        "logit_bias",
        "tool_choice",
        "response_format",
        "reasoning_effort",
        "metadata",
        "user",
    ] {
        body[name] = Value::Null;
    }
    assert_eq!(post(&daemon, body.to_string()).await.content(), "hello");
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_refused_whatever_it_is() {
    let daemon = Daemon::start().await;
    let deep = format!("{{\"messages\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let table: [(&[u8], &str); 12] = [
        (b"", "invalid_json"),
        (b"   ", "invalid_json"),
        (b"{", "invalid_json"),
        (b"{\"model\": \"x\",}", "invalid_json"),
        (b"{'model': 'x'}", "invalid_json"),
        (b"{\"model\": \"\xff\xfe\"}", "invalid_json"),
        (b"\xef\xbb\xbf{}", "invalid_json"),
        (
            b"{\"model\": \"a\", \"model\": \"b\", \"messages\": []}",
            "invalid_value",
        ),
        (b"[]", "invalid_type"),
        (b"\"text\"", "invalid_type"),
        (b"null", "invalid_type"),
        (deep.as_bytes(), "invalid_json"),
    ];
    for (bytes, code) in table {
        let answer = post(&daemon, bytes.to_vec()).await;
        let error = envelope(&answer);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
        assert_eq!(
            (answer.status, &error["error"]["code"]),
            (400, &json!(code)),
            "{shown}: {error}"
        );
    }
    for (kind, status) in [
        ("application/json; charset=utf-8", 200),
        ("text/plain", 200),
        ("multipart/form-data; boundary=x", 415),
        ("application/octet-stream", 415),
        ("image/png", 415),
    ] {
        let request = daemon
            .ask("POST", "/v1/chat/completions")
            .bearer_auth(&daemon.key);
        let request = request
            .header("content-type", kind)
            .body(body(&json!({})).to_string());
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.status, status, "{kind}: {}", answer.text);
        if status == 415 {
            assert_eq!(envelope(&answer)["error"]["code"], "unsupported_media_type");
        }
    }
}

#[tokio::test]
async fn a_body_above_the_bound_is_413_announced_or_not() {
    let daemon = Setup::default()
        .config("[server]\nbody_bytes_max = 100000")
        .start()
        .await;
    let big = body(&json!({"user": "x".repeat(100_000)})).to_string();
    let answer = post(&daemon, big.clone()).await;
    assert_eq!(
        (answer.status, &envelope(&answer)["error"]["code"]),
        (413, &json!("request_too_large"))
    );
    let pieces: Vec<Result<String, std::io::Error>> = big
        .as_bytes()
        .chunks(999)
        .map(|piece| Ok(String::from_utf8_lossy(piece).into_owned()))
        .collect();
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let answer = post(&daemon, stream).await;
    assert_eq!(
        (answer.status, &envelope(&answer)["error"]["code"]),
        (413, &json!("request_too_large"))
    );
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nexpect: 100-continue\r\n\
         content-length: 40000000\r\n\r\n",
        daemon.key
    );
    let answer = Raw::send(&daemon.address(), head.as_bytes()).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "request_too_large"),
        "{}",
        answer.head
    );
    assert_eq!(post(&daemon, body(&json!({})).to_string()).await.status, 200);
    let daemon = Daemon::start().await;
    let answer = post(&daemon, " ".repeat((32 << 20) + 1)).await;
    assert_eq!(answer.status, 413, "the default is 32 MiB");
}

#[tokio::test]
async fn unknown_urls_and_wrong_methods_are_in_the_envelope() {
    let daemon = Daemon::start().await;
    for path in [
        "/",
        "/nothing",
        "/v1/nothing",
        "/v1/chat/completions/x",
        "/v1/models/../x",
        "/%00",
        "/v1/%ff",
    ] {
        let answer = daemon
            .ask("GET", path)
            .bearer_auth(&daemon.key)
            .send()
            .await
            .unwrap();
        let answer = Answer::of(answer).await;
        let error = envelope(&answer);
        assert_eq!(
            (answer.status, &error["error"]["code"]),
            (404, &json!("unknown_url")),
            "{path}"
        );
    }
    for (method, path, allow) in [
        ("GET", "/v1/chat/completions", "POST"),
        ("DELETE", "/v1/models", "GET,HEAD"),
        ("PUT", "/v1/admin/keys", "GET,HEAD,POST"),
    ] {
        let answer = daemon
            .ask(method, path)
            .bearer_auth(&daemon.key)
            .send()
            .await
            .unwrap();
        let answer = Answer::of(answer).await;
        assert_eq!(
            (answer.status, &envelope(&answer)["error"]["code"]),
            (405, &json!("method_not_supported"))
        );
        let mut allowed: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(","), allow, "{path}");
    }
}

#[tokio::test]
async fn odd_spellings_of_a_route_are_served_in_place() {
    let daemon = Daemon::start().await;
    for path in [
        "/chat/completions",
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "//v1/chat/completions",
        "/chat//completions//",
        "/v1/chat/completions?api-version=2024-06-01",
    ] {
        let request = daemon
            .ask("POST", path)
            .bearer_auth(&daemon.key)
            .json(&body(&json!({})));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.url().as_str(), daemon.url(path), "no redirect");
        assert_eq!(answer.status(), 200, "{path}");
    }
    for path in [
        "/models",
        "/models/",
        "/v1//models",
        "/models/scripted",
        "/admin/keys",
        "/health/ready/",
    ] {
        let answer = daemon
            .ask("GET", path)
            .bearer_auth(&daemon.key)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.url().as_str()),
            (200, daemon.url(path).as_str())
        );
    }
}

#[tokio::test]
async fn long_histories_and_absurd_schemas_end_in_an_answer() {
    let daemon = Daemon::start().await;
    let messages = |count: usize| vec![json!({"role": "user", "content": "hello there"}); count];
    let answer = post(&daemon, body(&json!({"messages": messages(10_000)})).to_string()).await;
    assert_eq!(answer.content(), "hello", "a long history is served");
    let answer = post(&daemon, body(&json!({"messages": messages(20_000)})).to_string()).await;
    answer.assert_error(400, "invalid_value");
    assert_eq!(envelope(&answer)["error"]["param"], "messages");
    let nested = (0..50).fold(
        json!({"type": "string"}),
        |inner, _| json!({"properties": {"a": inner}}),
    );
    let tool = |name: String, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let wide: serde_json::Map<String, Value> = (0..5000)
        .map(|index| (format!("p{index}"), json!({"type": "string"})))
        .collect();
    let table = [
        (json!({"tools": [tool("deep".into(), nested)]}), "deep"),
        (
            json!({"tools": [tool("wide".into(), json!({"type": "object", "properties": wide}))]}),
            "wide",
        ),
        (
            json!({"tools": [tool("loop".into(), json!({"$ref": "#"}))]}),
            "a loop",
        ),
        (
            json!({"tools": [tool("odd".into(), json!({"type": ["object", 5], "required": "x", "properties": []}))]}),
            "types",
        ),
        (
            json!({"tools": (0..1000).map(|index| tool(format!("t{index}"), json!({}))).collect::<Vec<_>>()}),
            "a thousand",
        ),
        (
            json!({"tools": [tool("same".into(), json!({})), tool("same".into(), json!({}))]}),
            "twice",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "x", "description": "d".repeat(1 << 20)}}]}),
            "a long text",
        ),
    ];
    for (change, what) in table {
        let answer = post(&daemon, body(&change).to_string()).await;
        if answer.status != 200 {
            assert_eq!(answer.status, 400, "{what}: {}", answer.text);
            let param = envelope(&answer)["error"]["param"].clone();
            let is_named = param.as_str().is_some_and(|param| param.starts_with("tools"));
            assert!(is_named, "{what}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn pictures_are_not_fetched_and_calls_are_counted() {
    let daemon = Daemon::start().await;
    let image = |url: &str| {
        second_message(
            &json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}),
        )
    };
    for url in [
        "http://127.0.0.1/a.png",
        "https://example.org/a.png",
        "file:///etc/passwd",
        "ftp://x/y",
    ] {
        let answer = post(&daemon, body(&image(url)).to_string()).await;
        let error = envelope(&answer);
        assert_eq!(answer.status, 400, "{url}");
        assert!(
            error["error"]["param"]
                .as_str()
                .unwrap()
                .starts_with("messages.1.content.0"),
            "{error}"
        );
    }
    let calls: Vec<Value> = (0..2000)
        .map(|index| json!({"id": format!("c{index}"), "type": "function", "function": {"name": "x", "arguments": "{"}}))
        .collect();
    let answer = post(
        &daemon,
        body(&second_message(
            &json!({"role": "assistant", "tool_calls": calls}),
        ))
        .to_string(),
    )
    .await;
    assert_eq!(answer.status, 400, "{}", answer.text);
}

#[tokio::test]
async fn a_responses_body_is_sent_to_the_right_route() {
    let daemon = Daemon::start().await;
    let body =
        json!({"model": "tidegate", "input": "hello there", "tools": [{"type": "function", "name": "x"}]});
    let error = envelope(&post(&daemon, body.to_string()).await);
    assert_eq!(error["error"]["param"], "messages");
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("/v1/responses"),
        "{error}"
    );
}

#[tokio::test]
async fn every_answer_carries_the_contracts_headers() {
    let daemon = Daemon::start().await;
    let mut seen = std::collections::BTreeSet::new();
    let mut answers = vec![
        Chat::new(&daemon, "hello there").send().await,
        Chat::new(&daemon, "hello there").stream().send().await,
        Chat::new(&daemon, "hello there").key("nope").send().await,
        Chat::new(&daemon, "hello there").with("n", json!(5)).send().await,
    ];
    for path in ["/health", "/v1/models", "/nothing", "/docs"] {
        let answer = daemon
            .ask("GET", path)
            .bearer_auth(&daemon.key)
            .send()
            .await
            .unwrap();
        answers.push(Answer::of(answer).await);
    }
    for answer in answers {
        assert_eq!(answer.header("openai-version"), "2020-10-01");
        assert!(answer.header("openai-processing-ms").parse::<u64>().is_ok());
        assert!(
            seen.insert(answer.header("x-request-id").to_owned()),
            "an id is used once"
        );
    }
}

#[tokio::test]
async fn a_body_just_below_the_bound_and_one_that_waits_for_leave_are_read() {
    let daemon = Daemon::start().await;
    let long = body(&json!({"ignored": "x".repeat(31 << 20)})).to_string();
    assert_eq!(post(&daemon, long).await.content(), "hello");
    let text = body(&json!({})).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        daemon.key,
        text.len()
    );
    let mut stream = tokio::net::TcpStream::connect(daemon.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut leave = [0; 12];
    stream.read_exact(&mut leave).await.unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut rest = [0; 64];
    stream.read_exact(&mut rest).await.unwrap();
    assert!(
        String::from_utf8_lossy(&rest).contains("HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
}

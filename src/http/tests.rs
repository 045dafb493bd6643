mod admin;
mod bodies;
mod front_door;
mod outside;
mod support;

use serde_json::Value;
use tidegate_core::{caller::Scope, clock::Timestamp, secret::PlainKey};

use super::*;
use support::{Answer, Server};

const HELLO: &str = r#"{"model":"tidegate","messages":[{"role":"user","content":"hello there"}]}"#;

#[tokio::test]
async fn nothing_opens_without_a_key_but_what_is_public() {
    let server = Server::start(Options::default()).await;
    let document: Value = serde_json::from_str(&openapi_document()).unwrap();
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let public = PUBLIC_ROUTES.iter().any(|(route, _)| route == path);
        for method in operations
            .as_object()
            .unwrap()
            .keys()
            .map(|verb| verb.to_uppercase())
        {
            let path = path.replace("{id}", "x").replace("{model}", "x");
            let answer = Answer::of(
                &server
                    .raw(
                        format!(
                            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
                            server.host
                        )
                        .as_bytes(),
                    )
                    .await,
            );
            assert_eq!(answer.status, if public { 200 } else { 401 }, "{method} {path}");
            assert!(answer.head.contains("x-request-id: req_"), "{}", answer.head);
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
    for path in [
        "/",
        "/nothing",
        "/v1/models%2f",
        "/v1/admin/nothing",
        "/metrics",
        "/models/",
    ] {
        let text = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            server.host
        );
        let answer = Answer::of(&server.raw(text.as_bytes()).await);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (401, "invalid_api_key"),
            "{path}"
        );
        assert!(answer.head.contains("www-authenticate: bearer"));
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one conversation, step by step")]
async fn a_turn_is_answered_whole_and_as_a_stream() {
    let server = Server::start(Options::default()).await;
    let whole = server
        .send("POST", "/v1/chat/completions", &server.admin, HELLO)
        .await;
    assert_eq!(whole.status, 200, "{}", whole.body);
    let json = whole.json();
    assert_eq!(json["choices"][0]["message"]["content"], "hello there");
    assert_eq!(json["usage"]["total_tokens"], 5);
    for header in [
        "x-run-id: run_",
        "openai-processing-ms: ",
        "openai-version: 2020-10-01",
    ] {
        assert!(whole.head.contains(header), "{header}: {}", whole.head);
    }
    let run_id = whole
        .head
        .split("x-run-id: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .to_owned();
    let shown = server
        .send("GET", &format!("/v1/runs/{run_id}"), &server.admin, "")
        .await;
    assert_eq!(
        (shown.status, shown.json()["outcome"].as_str()),
        (200, Some("answered"))
    );
    let other = server.add_key(|_| {}).await;
    assert_eq!(
        server
            .send("GET", &format!("/v1/runs/{run_id}"), &other, "")
            .await
            .status,
        404
    );

    let body = HELLO.replacen(
        '{',
        r#"{"stream":true,"stream_options":{"include_usage":true},"#,
        1,
    );
    let stream = server
        .send("POST", "/chat//completions/", &server.admin, &body)
        .await;
    assert_eq!(stream.status, 200, "{}", stream.body);
    for header in [
        "text/event-stream; charset=utf-8",
        "no-cache, no-transform",
        "x-accel-buffering: no",
        "x-run-id: run_",
    ] {
        assert!(stream.head.contains(header), "{header}: {}", stream.head);
    }
    assert!(
        stream.body.contains("data: [DONE]") && stream.body.contains("\"total_tokens\":5"),
        "{}",
        stream.body
    );

    let overflow = server
        .send(
            "POST",
            "/v1/chat/completions",
            &server.admin,
            &body.replace("hello there", "overflow"),
        )
        .await;
    assert_eq!(
        (overflow.status, overflow.code().as_str()),
        (400, "context_length_exceeded")
    );
    let unknown = server
        .send(
            "POST",
            "/v1/chat/completions",
            &server.admin,
            &HELLO.replace("tidegate", "nope"),
        )
        .await;
    assert_eq!(
        (unknown.status, unknown.code().as_str()),
        (404, "model_not_found")
    );
}

#[tokio::test]
async fn every_refusal_has_the_envelope() {
    let server = Server::start(Options {
        body_bytes_max: 1000,
        ..Options::default()
    })
    .await;
    let chat = "/v1/chat/completions";
    let table = [
        ("GET", "/v1/nothing", "", 404, "unknown_url"),
        ("GET", chat, "", 405, "method_not_supported"),
        ("POST", chat, "", 400, "invalid_json"),
        ("POST", chat, "{", 400, "invalid_json"),
        ("POST", chat, "{}", 400, "missing_required_parameter"),
        ("POST", chat, &"x".repeat(1001), 413, "request_too_large"),
        ("GET", "/v1/models/nope", "", 404, "model_not_found"),
        ("GET", "/v1/models/%ff", "", 400, "invalid_value"),
        ("GET", "/v1/runs/..%2f..%2fetc", "", 400, "invalid_value"),
        ("GET", "/v1/runs/..", "", 400, "invalid_value"),
        ("GET", "/v1/admin/keys?limit=0", "", 400, "invalid_value"),
        ("GET", "/v1/admin/keys?limt=1", "", 400, "unknown_parameter"),
        (
            "POST",
            "/v1/admin/keys",
            r#"{"name":"x","quota":1}"#,
            400,
            "unknown_parameter",
        ),
    ];
    for (method, path, body, status, code) in table {
        let answer = server.send(method, path, &server.admin, body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{method} {path} {}",
            answer.body
        );
        assert!(answer.head.contains("x-request-id: req_"));
    }
    let wrong_method = server.send("GET", chat, &server.admin, "").await;
    assert!(wrong_method.head.contains("allow: post"), "{}", wrong_method.head);
    let unescaped = server
        .send("GET", "/models/org%2Fparrot:1", &server.admin, "")
        .await;
    assert_eq!(unescaped.json()["id"], "org/parrot:1");
}

#[tokio::test]
async fn a_key_opens_only_what_it_may_and_only_while_it_may() {
    let server = Server::start(Options::default()).await;
    let past = Timestamp::from_second(1_799_999_999).unwrap();
    let chat = "/v1/chat/completions";
    let disabled = server.add_key(|policy| policy.enabled = false).await;
    let expired = server.add_key(|policy| policy.expires_at = Some(past)).await;
    let admin_only = server
        .add_key(|policy| policy.scopes = [Scope::Admin].into())
        .await;
    let chat_only = server.add_key(|_| {}).await;
    let slow = server
        .add_key(|policy| policy.requests_per_minute = Some(1))
        .await;
    let spent = server.add_key(|policy| policy.tokens_per_day = Some(10)).await;
    let narrow = server
        .add_key(|policy| policy.models = Some(vec!["org/parrot:1".into()]))
        .await;
    let ten = tidegate_core::usage::Usage {
        input_tokens: 6,
        output_tokens: 4,
        ..Default::default()
    };
    server.spend(&spent, ten);
    let stranger = PlainKey::new(chat_only.expose().replace("tg_", "tx_"));
    let table = [
        (&stranger, "POST", chat, 401, "invalid_api_key"),
        (&disabled, "POST", chat, 401, "invalid_api_key"),
        (&expired, "POST", chat, 401, "invalid_api_key"),
        (&admin_only, "POST", chat, 403, "insufficient_permissions"),
        (
            &chat_only,
            "GET",
            "/v1/admin/keys",
            403,
            "insufficient_permissions",
        ),
        (&spent, "POST", chat, 429, "insufficient_quota"),
        (&narrow, "POST", chat, 404, "model_not_found"),
    ];
    for (key, method, path, status, code) in table {
        let answer = server.send(method, path, key, HELLO).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{method} {path}"
        );
        assert!(!answer.body.contains(key.expose()));
    }
    let models = server.send("GET", "/v1/models", &narrow, "").await.json();
    assert_eq!(models["data"].as_array().unwrap().len(), 1);
    assert_eq!(server.send("GET", "/v1/models", &spent, "").await.status, 200);
    let first = server.send("GET", "/v1/models", &slow, "").await;
    assert!(
        first.head.contains("x-ratelimit-remaining-requests: 0"),
        "{}",
        first.head
    );
    let second = server.send("GET", "/v1/models", &slow, "").await;
    assert_eq!(
        (second.status, second.code().as_str()),
        (429, "rate_limit_exceeded")
    );
    assert!(second.head.contains("retry-after: "));
}

#[test]
fn the_document_has_every_route_and_the_page_needs_nothing() {
    let document = openapi_document();
    let parsed: Value = serde_json::from_str(&document).unwrap();
    for path in [
        "/v1/chat/completions",
        "/v1/models/{model}",
        "/v1/runs/{id}",
        "/v1/admin/keys/{id}/usage",
        "/docs",
    ] {
        assert!(parsed["paths"].get(path).is_some(), "{path}");
    }
    let page = crate::http::routes::docs::render(&document);
    assert!(page.contains("/v1/chat/completions") && !page.contains("<script") && !page.contains("src="));
}

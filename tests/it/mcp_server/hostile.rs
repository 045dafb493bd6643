//! Input that no client would send.

use serde_json::{Value, json};

use super::sessions::{list, opened, post};
use crate::support::{Daemon, Setup};

#[tokio::test]
async fn malformed_messages_are_refused_and_hurt_nobody() {
    let daemon = Setup::default()
        .config("[server]\nbody_bytes_max = 100000")
        .start()
        .await;
    let session = opened(&daemon, &daemon.key).await;
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let marker = "zanzibar-marker";
    for body in [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        format!("\"{marker}\""),
        deep,
        json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}).to_string(),
        json!({"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": marker}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 7}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x".repeat(9000)}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": marker}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": format!("kb:///{}", "a".repeat(9000))}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}).to_string(),
    ] {
        for session in [None, Some(session.as_str())] {
            let request = post(&daemon, &daemon.key, session, &Value::Null);
            let answer = request.body(body.clone()).send().await.unwrap();
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap();
            let is_refused = (400..500).contains(&status) || text.contains("\"error\"") || status == 202;
            assert!(is_refused, "{body:.80}: {status}: {text}");
        }
    }
    let large =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x".repeat(200_000)}});
    let answer = post(&daemon, &daemon.key, Some(&session), &large)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 413);
    let (status, body) = list(&daemon, &daemon.key, &session).await;
    assert!(status == 200 && body.contains("calculate"), "{status}: {body}");
    let log = std::fs::read_dir(daemon.path("logs")).unwrap().flatten();
    for file in log.filter(|file| file.path().is_file()) {
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains(marker), "{}: {text}", file.path().display());
    }
}

#[tokio::test]
async fn another_method_or_page_or_host_is_refused_as_everywhere() {
    let daemon = Daemon::start().await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (name, value, status) in [
        ("origin", "http://evil.example", 403),
        ("host", "evil.example", 403),
        ("mcp-session-id", "no-such-session", 404),
        ("accept", "text/html", 406),
    ] {
        let request = post(&daemon, &daemon.key, None, &message);
        let request = if name == "accept" {
            daemon.ask("POST", "/mcp").bearer_auth(&daemon.key).json(&message)
        } else {
            request
        };
        let answer = request.header(name, value).send().await.unwrap();
        assert!(
            (400..500).contains(&answer.status().as_u16()),
            "{name}: {}",
            answer.status()
        );
        assert!(
            answer.status().as_u16() == status || name == "host",
            "{name}: {}",
            answer.status()
        );
    }
    let answer = daemon
        .ask("PUT", "/mcp")
        .bearer_auth(&daemon.key)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 405);
}

#[tokio::test]
async fn what_is_no_message_is_answered_as_json_rpc_says() {
    let daemon = Daemon::start().await;
    let session = opened(&daemon, &daemon.key).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let batch = json!([ping, ping]).to_string();
    let two_methods =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"initialize\",\"params\":{}}";
    for body in [
        "",
        "{",
        "[]",
        &batch,
        two_methods,
        "\u{0}",
        "{\"jsonrpc\":\"2.0\"} {}",
    ] {
        for session in [None, Some(session.as_str())] {
            let request = post(&daemon, &daemon.key, session, &Value::Null);
            let answer = request.body(body.to_owned()).send().await.unwrap();
            assert_eq!(answer.status(), 400, "{body}");
            let answer: Value = answer.json().await.unwrap();
            assert_eq!(
                (&answer["error"]["code"], &answer["id"]),
                (&json!(-32600), &Value::Null),
                "{body}"
            );
        }
    }
    for kind in ["text/plain", "application/jsonp", "multipart/form-data", ""] {
        let request = daemon.ask("POST", "/mcp").bearer_auth(&daemon.key);
        let request = request.header("accept", "application/json, text/event-stream");
        let answer = request
            .header("content-type", kind)
            .body(ping.to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 415, "{kind}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    let daemon = Daemon::start().await;
    let session = opened(&daemon, &daemon.key).await;
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    for number in 0..60_u64 {
        for request in [
            post(&daemon, &daemon.key, Some(&session), &list),
            post(&daemon, &daemon.key, None, &message),
        ] {
            let patience = std::time::Duration::from_micros(number * 100);
            drop(tokio::time::timeout(patience, request.send()).await);
        }
    }
    // The same id again and again, and a progress token that others have had.
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "calculate", "arguments": {"expression": "6*7"}, "_meta": {"progressToken": "t"}}});
    let session = opened(&daemon, &daemon.key).await;
    let request = || post(&daemon, &daemon.key, Some(&session), &call).send();
    for answer in futures_util::future::join_all([request(), request(), request()]).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    let answer = request().await.unwrap().text().await.unwrap();
    assert!(answer.contains("42"), "{answer}");
}

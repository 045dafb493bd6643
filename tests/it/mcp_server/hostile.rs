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

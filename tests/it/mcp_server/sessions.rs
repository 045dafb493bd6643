//! Sessions of the older generation, by hand.

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::support::{Daemon, Setup};

pub(super) fn post(daemon: &Daemon, key: &str, session: Option<&str>, message: &Value) -> RequestBuilder {
    let request = daemon
        .ask("POST", "/mcp")
        .bearer_auth(key)
        .header("accept", "application/json, text/event-stream")
        .json(message);
    match session {
        Some(id) => request.header("mcp-session-id", id),
        None => request,
    }
}

pub(super) async fn open(daemon: &Daemon, key: &str) -> Response {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    post(daemon, key, None, &message).send().await.unwrap()
}

pub(super) async fn opened(daemon: &Daemon, key: &str) -> String {
    let answer = open(daemon, key).await;
    assert_eq!(answer.status(), 200);
    let id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = post(daemon, key, Some(&id), &ready).send().await.unwrap();
    assert_eq!(answer.status(), 202);
    id
}

pub(super) async fn list(daemon: &Daemon, key: &str, session: &str) -> (u16, String) {
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let answer = post(daemon, key, Some(session), &message).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn a_session_is_its_keys_alone() {
    let daemon = Daemon::start().await;
    let other = daemon.writer_key().await;
    let session = opened(&daemon, &daemon.key).await;
    let (status, body) = list(&daemon, &daemon.key, &session).await;
    assert!(status == 200 && body.contains("calculate"), "{status}: {body}");
    let (status, body) = list(&daemon, &other, &session).await;
    assert_eq!(status, 404, "{body}");
    for method in ["GET", "DELETE"] {
        let request = daemon.ask(method, "/mcp").bearer_auth(&other);
        let request = request.header("accept", "text/event-stream");
        let answer = request.header("mcp-session-id", &session).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{method}");
    }
    assert_eq!(
        list(&daemon, &daemon.key, &session).await.0,
        200,
        "it is still there"
    );
    let request = daemon.ask("DELETE", "/mcp").bearer_auth(&daemon.key);
    let answer = request.header("mcp-session-id", &session).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    assert_eq!(list(&daemon, &daemon.key, &session).await.0, 404, "it is over");
}

#[tokio::test]
async fn a_session_is_its_users_alone() {
    let daemon = Setup::default()
        .config("[server]\nuser_header = \"x-user-id\"")
        .start()
        .await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    let answer = post(&daemon, &daemon.key, None, &message)
        .header("x-user-id", "ann")
        .send()
        .await
        .unwrap();
    let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for (user, status) in [("bob", 404), ("ann", 200)] {
        let request = post(&daemon, &daemon.key, Some(&session), &message);
        let answer = request.header("x-user-id", user).send().await.unwrap();
        assert_eq!(answer.status(), status, "{user}");
    }
}

#[tokio::test]
async fn a_key_that_is_switched_off_opens_nothing_from_then_on() {
    let daemon = Daemon::start().await;
    let key = daemon.writer_key().await;
    let session = opened(&daemon, &key).await;
    assert_eq!(list(&daemon, &key, &session).await.0, 200);
    let id = key.split('_').nth(1).unwrap();
    let (status, _) = daemon
        .admin("POST", &format!("/v1/admin/keys/{id}/disable"), Value::Null)
        .await;
    assert_eq!(status, 200);
    assert_eq!(list(&daemon, &key, &session).await.0, 401);
}

//! What each setting does that no other test here changes.

use serde_json::json;

use super::{
    client::{Generation, Person, call, connect},
    sessions::{list, open, opened},
};
use crate::support::Setup;

#[tokio::test]
async fn switched_off_there_is_no_such_address_and_no_such_command() {
    let daemon = Setup::default()
        .config("[mcp_server]\nenabled = false")
        .start()
        .await;
    assert_eq!(open(&daemon, &daemon.key).await.status(), 404);
    let output = daemon
        .command(&["mcp", "serve"])
        .env("TIDEGATE_KEY", &daemon.key)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("mcp_server.enabled"),
        "{said}"
    );
}

#[tokio::test]
async fn a_key_has_at_most_a_quarter_of_the_sessions_and_loses_the_one_that_nobody_uses() {
    let daemon = Setup::default()
        .config("[mcp_server]\nsessions_max = 5")
        .start()
        .await;
    let first = opened(&daemon, &daemon.key).await;
    let second = opened(&daemon, &daemon.key).await;
    assert_eq!(list(&daemon, &daemon.key, &first).await.0, 404, "it made room");
    // Somebody is connected to the second.
    let request = daemon.ask("GET", "/mcp").bearer_auth(&daemon.key);
    let request = request.header("accept", "text/event-stream");
    let stream = request.header("mcp-session-id", &second).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!(open(&daemon, &daemon.key).await.status(), 503);
    assert_eq!(list(&daemon, &daemon.key, &second).await.0, 200);
    let other = daemon.writer_key().await;
    opened(&daemon, &other).await;
    // Whoever needs no session is served all the same.
    let client = connect(&daemon, &daemon.key, Person::default(), Generation::Newer).await;
    assert_eq!(
        call(&client, "calculate", json!({"expression": "1+1"}))
            .await
            .is_error,
        Some(false)
    );
    let request = daemon.ask("DELETE", "/mcp").bearer_auth(&daemon.key);
    request.header("mcp-session-id", &second).send().await.unwrap();
    opened(&daemon, &daemon.key).await;
}

#[tokio::test]
async fn however_many_are_opened_at_once_no_more_stay() {
    let daemon = Setup::default()
        .config("[mcp_server]\nsessions_max = 8")
        .start()
        .await;
    let all = futures_util::future::join_all((0..40).map(|_| open(&daemon, &daemon.key))).await;
    let mut open = 0;
    for answer in all {
        assert!(
            [200, 503].contains(&answer.status().as_u16()),
            "{}",
            answer.status()
        );
        let Some(id) = answer.headers().get("mcp-session-id") else {
            continue;
        };
        let id = id.to_str().unwrap().to_owned();
        drop(answer);
        let request = daemon.ask("DELETE", "/mcp").bearer_auth(&daemon.key);
        let answer = request.header("mcp-session-id", id).send().await.unwrap();
        open += usize::from(answer.status().is_success());
    }
    assert!((1..=2).contains(&open), "{open}");
}

#[tokio::test]
async fn a_session_that_nobody_uses_is_closed() {
    let daemon = Setup::default()
        .config("[mcp_server]\nsession_idle_s = 1")
        .start()
        .await;
    let session = opened(&daemon, &daemon.key).await;
    let request = daemon.ask("GET", "/mcp").bearer_auth(&daemon.key);
    let request = request.header("accept", "text/event-stream");
    let stream = request.header("mcp-session-id", &session).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    // What the server would send of itself ends with the session.
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), stream.text()).await;
    ended.unwrap().unwrap();
    assert_eq!(list(&daemon, &daemon.key, &session).await.0, 404);
}

#[tokio::test]
async fn with_no_time_to_wait_nobody_is_asked() {
    let daemon = Setup::default()
        .config("[mcp_server]\nallow_writes = true\napproval_wait_s = 0")
        .start()
        .await;
    let person = Person::who_says(true);
    let client = connect(&daemon, &daemon.key, person.clone(), Generation::Older).await;
    let refused = call(&client, "write_file", json!({"path": "plan.md", "content": "x"})).await;
    assert_eq!(refused.is_error, Some(true));
    assert!(person.asked().is_empty());
}

//! The client goes away.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon};

const SOON: Duration = Duration::from_secs(10);

async fn state(daemon: &Daemon, run: &str, wanted: &str) -> Value {
    let deadline = std::time::Instant::now() + SOON;
    loop {
        let (status, body) = daemon.get(&format!("/v1/runs/{run}")).await;
        assert_eq!(status, 200, "{body}");
        if body["status"] == wanted || std::time::Instant::now() > deadline {
            return body;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_upstream_within_a_second_and_tokens_so_far_are_booked() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(Reply::endless(2000));
    let response = Chat::new(&daemon, "go").stream().open().await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    let mut body = response.bytes_stream();
    for _ in 0..5 {
        body.next().await.unwrap().unwrap();
    }
    drop(body);
    let left = std::time::Instant::now();
    assert!(daemon.upstream.wait_idle(SOON).await);
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
    assert_eq!(state(&daemon, &run, "cancelled").await["status"], "cancelled");

    let (_, key) = daemon.get("/v1/admin/keys?limit=1").await;
    let id = key["data"][0]["id"].as_str().unwrap().to_owned();
    let deadline = std::time::Instant::now() + SOON;
    loop {
        let (_, usage) = daemon.get(&format!("/v1/admin/keys/{id}/usage")).await;
        let tokens = usage["data"][0]["output_tokens"].as_u64().unwrap_or(0);
        if tokens > 0 {
            break;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "no tokens were booked: {usage}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_first_byte_stops_the_upstream_too() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(Reply::never());
    {
        let waiting = Chat::new(&daemon, "go").send();
        let open = daemon.upstream.wait_open(1, SOON);
        tokio::select! {
            _ = waiting => panic!("there is nothing to answer"),
            arrived = open => assert!(arrived),
        }
    }
    let left = std::time::Instant::now();
    assert!(daemon.upstream.wait_idle(SOON).await);
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
}

#[tokio::test]
async fn a_key_may_ask_for_runs_to_finish() {
    let daemon = Daemon::start().await;
    let key = daemon
        .make_key(json!({"name": "f", "scopes": ["chat"], "on_disconnect": "finish"}))
        .await;
    daemon.upstream.push(
        Reply::text("a long story that goes on")
            .chunk_chars(2)
            .delay_chunk_ms(50),
    );
    let response = Chat::new(&daemon, "go").key(&key).stream().open().await;
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();
    drop(response);
    let deadline = std::time::Instant::now() + SOON;
    loop {
        let answer = daemon
            .client
            .get(daemon.url(&format!("/v1/runs/{run}")))
            .bearer_auth(&key)
            .send()
            .await
            .unwrap();
        let body: Value = answer.json().await.unwrap();
        if body["status"] == "completed" {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_run_without_its_client_keeps_its_share_of_the_memory_for_requests() {
    // A key has half of it, and a body counts four times.
    let daemon = crate::support::Setup::default()
        .config("[server]\nbodies_bytes_max = 800000")
        .start()
        .await;
    let key = daemon
        .make_key(json!({"name": "f", "scopes": ["chat"], "on_disconnect": "finish"}))
        .await;
    let large = "word ".repeat(12_000);
    daemon.upstream.push(
        Reply::text("a long story that goes on")
            .chunk_chars(1)
            .delay_chunk_ms(60),
    );
    let open = Chat::new(&daemon, &large).key(&key).stream().open().await;
    assert_eq!(open.status().as_u16(), 200);
    drop(open);
    let deadline = std::time::Instant::now() + SOON;
    let mut refused = 0;
    loop {
        let answer = Chat::new(&daemon, &large).key(&key).send().await;
        if answer.status == 200 {
            break;
        }
        answer.assert_error(503, "server_is_overloaded");
        refused += daemon.upstream.open_streams();
        assert!(
            std::time::Instant::now() < deadline,
            "the share was not given back"
        );
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert!(refused > 5, "the run held {refused} requests off");
    assert!(daemon.upstream.wait_idle(SOON).await);
}

#[tokio::test]
async fn a_stop_ends_streams_with_a_proper_last_event() {
    let mut daemon = crate::support::Setup::default()
        .config("[server]\nstream_grace_ms = 200\ndrain_timeout_ms = 3000")
        .start()
        .await;
    daemon.upstream.push(Reply::endless(500));
    let response = Chat::new(&daemon, "go").stream().open().await;
    assert_eq!(response.status().as_u16(), 200);
    let (text, ended) = tokio::join!(response.text(), daemon.terminate(SOON));
    let text = text.unwrap();
    assert!(ended, "the daemon did not stop in time");
    assert!(
        text.trim_end().ends_with("data: [DONE]"),
        "{}",
        &text[text.len().saturating_sub(300)..]
    );
    assert!(text.contains("\"error\""), "a cut stream says so");
}

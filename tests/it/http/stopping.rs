//! The daemon is asked to stop: what is under way ends in good order.

use std::time::Duration;

use serde_json::Value;
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon, Setup};

const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a stream, waits for its first bytes and asks the daemon to stop; the rest of the stream.
async fn stopped_under(daemon: &mut Daemon, reply: Reply) -> String {
    daemon.upstream.push(reply);
    let mut response = Chat::new(daemon, "hello there").stream().open().await;
    assert_eq!(response.status(), 200);
    let mut text = String::new();
    while !text.contains("\"content\":\"x") {
        text.push_str(&String::from_utf8_lossy(
            &response.chunk().await.unwrap().unwrap(),
        ));
    }
    let (ended, rest) = tokio::join!(daemon.terminate(PATIENCE), Answer::of(response));
    assert!(ended, "the process ends by itself");
    text + &rest.text
}

#[tokio::test]
async fn a_stream_that_outlives_the_grace_time_ends_with_an_error_event() {
    let mut daemon = Setup::default()
        .config("[server]\nstream_grace_ms = 200")
        .start()
        .await;
    let text = stopped_under(&mut daemon, Reply::endless(2000)).await;
    let events: Vec<&str> = text.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.last(), Some(&"data: [DONE]"));
    let error: Value = serde_json::from_str(&events[events.len() - 2]["data: ".len()..]).unwrap();
    assert!(error["error"]["message"].is_string(), "{error}");
    assert!(
        !text.contains("\"finish_reason\":\"stop\""),
        "a cut answer does not look whole"
    );
}

#[tokio::test]
async fn a_stream_that_ends_within_the_grace_time_ends_as_ever() {
    let mut daemon = Setup::default()
        .config("[server]\nstream_grace_ms = 20000")
        .start()
        .await;
    let reply = Reply::text("x".repeat(40)).chunk_chars(4).delay_chunk_ms(50);
    let text = stopped_under(&mut daemon, reply).await;
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(
        text.contains("\"finish_reason\":\"stop\"") && !text.contains("\"error\""),
        "{text}"
    );
}

#[tokio::test]
async fn a_whole_answer_under_way_is_still_given() {
    let mut daemon = Daemon::start().await;
    daemon.upstream.push(Reply::text("late").delay_first_ms(500));
    let chat = Chat::new(&daemon, "hello there");
    let request = daemon
        .client
        .post(daemon.url("/v1/chat/completions"))
        .bearer_auth(&daemon.key)
        .json(&chat.body);
    drop(chat);
    let opened = request.send();
    let stopped = async {
        assert!(daemon.upstream.wait_open(1, PATIENCE).await);
        daemon.terminate(PATIENCE).await
    };
    let (answer, ended) = tokio::join!(opened, stopped);
    assert!(ended);
    assert_eq!(Answer::of(answer.unwrap()).await.content(), "late");
}

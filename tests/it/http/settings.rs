//! A setting that is changed changes what it says.

use serde_json::{Value, json};

use super::keys::id_of;
use crate::support::{Chat, Daemon, Raw, Setup};

#[tokio::test]
async fn allowed_hosts_take_the_place_of_the_loopback_names() {
    let daemon = Setup::default()
        .config("[server]\nallowed_hosts = [\"127.0.0.1\", \"agent.example\"]")
        .start()
        .await;
    for (host, status) in [("agent.example:443", 401), ("127.0.0.1", 401), ("localhost", 403)] {
        let head = format!("GET /v1/models HTTP/1.1\r\nhost: {host}\r\n\r\n");
        assert_eq!(
            Raw::send(&daemon.address(), head.as_bytes()).await.status,
            status,
            "{host}"
        );
    }
}

#[tokio::test]
async fn the_user_header_names_the_user_behind_the_key() {
    let user = async |daemon: &Daemon, chat: Chat<'_>| {
        let answer = chat.send().await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let (_, run) = daemon
            .get(&format!("/v1/runs/{}", answer.header("x-run-id")))
            .await;
        run["user"].as_str().unwrap().to_owned()
    };
    let plain = Daemon::start().await;
    let id = id_of(&plain.key);
    let chat = Chat::new(&plain, "hello there").header("x-user-id", "ann");
    assert_eq!(user(&plain, chat).await, id, "not configured, not heard");
    let daemon = Setup::default()
        .config("[server]\nuser_header = \"x-user-id\"")
        .start()
        .await;
    let id = id_of(&daemon.key);
    let chat = Chat::new(&daemon, "hello there").header("x-user-id", "ann");
    assert_eq!(user(&daemon, chat).await, format!("{id}:ann"));
    let chat = Chat::new(&daemon, "hello there")
        .with("safety_identifier", json!("eve"))
        .with("user", json!("bob"));
    assert_eq!(
        user(&daemon, chat).await,
        format!("{id}:eve"),
        "the newer field wins"
    );
    assert_eq!(user(&daemon, Chat::new(&daemon, "hello there")).await, id);
}

#[tokio::test]
async fn remote_images_pass_where_the_operator_says_so() {
    let daemon = Setup::default()
        .config("[server]\nremote_images = true")
        .start()
        .await;
    let part = json!([{"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": "https://pictures.example/a.png"}}]);
    let chat = Chat::new(&daemon, "").with("messages", json!([{"role": "user", "content": part}]));
    assert_eq!(chat.send().await.content(), "hello");
    let sent = daemon.upstream.chats().pop().unwrap().to_string();
    assert!(sent.contains("https://pictures.example/a.png"), "{sent}");
}

#[tokio::test]
async fn requests_and_bodies_have_the_bounds_they_were_given() {
    let daemon = Setup::default()
        .config("[server]\nrequests_max = 1\nbody_timeout_ms = 300\nheader_timeout_ms = 400")
        .start()
        .await;
    let head = |length: &str| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n{length}\r\n\r\n{{",
            daemon.key
        )
    };
    let slow = Raw::send(&daemon.address(), head("content-length: 100").as_bytes()).await;
    assert_eq!(
        (slow.status, slow.code().as_str()),
        (408, "request_timeout"),
        "{}",
        slow.head
    );
    let half = Raw::send(&daemon.address(), b"GET /v1/models HTTP/1.1\r\nhost: loc").await;
    assert_eq!(
        (half.status, half.code().as_str()),
        (408, "request_timeout"),
        "half a head is not waited for: {}",
        half.head
    );
    assert!(half.head.contains("x-request-id: req_"), "{}", half.head);
    let empty = Raw::send(&daemon.address(), b"\r\n\r\n\r\n").await;
    assert!(
        empty.head.is_empty(),
        "empty lines are no request: {}",
        empty.head
    );
    daemon.upstream.push(tidegate_testkit::Reply::never());
    let second = async {
        assert!(
            daemon
                .upstream
                .wait_open(1, std::time::Duration::from_secs(20))
                .await
        );
        let refused = Chat::new(&daemon, "hello there").send().await;
        let body = refused.assert_error(503, "server_is_overloaded");
        assert_eq!(refused.header("retry-after"), "1", "{body}");
        assert_eq!(
            daemon.ask("GET", "/health").send().await.unwrap().status(),
            200,
            "health has no part in it"
        );
    };
    tokio::select! {
        _ = Chat::new(&daemon, "hello there").send() => panic!("the first request cannot end"),
        () = second => {}
    }
}

#[tokio::test]
async fn rotation_takes_the_configured_grace_where_none_is_named() {
    let daemon = Setup::default()
        .config("[server]\nrotation_grace_s = 0")
        .start()
        .await;
    let key = daemon.make_key(json!({"name": "k"})).await;
    let (status, _) = daemon
        .admin(
            "POST",
            &format!("/v1/admin/keys/{}/rotate", id_of(&key)),
            Value::Null,
        )
        .await;
    assert_eq!(status, 200);
    Chat::new(&daemon, "hello there")
        .key(&key)
        .send()
        .await
        .assert_error(401, "invalid_api_key");
}

#[tokio::test]
async fn a_console_that_nobody_reads_holds_up_nobody() {
    // Standard error of the daemon is a pipe here, which is full after 64 KiB.
    let daemon = Setup::default().env("RUST_LOG", "trace").start().await;
    let patience = std::time::Duration::from_secs(20);
    for _ in 0..300 {
        let answer = tokio::time::timeout(patience, daemon.ask("GET", "/v1/models").send()).await;
        assert_eq!(answer.expect("an answer in time").unwrap().status(), 401);
    }
    assert_eq!(Chat::new(&daemon, "hello there").send().await.content(), "hello");
}

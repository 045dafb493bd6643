use std::sync::atomic::Ordering;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    super::*,
    support::{Answer, Server},
};

#[tokio::test]
async fn heads_that_no_sound_client_sends_are_refused() {
    let server = Server::start(Options::default()).await;
    let (host, key) = (&server.host, server.admin.expose());
    let auth = format!("Authorization: Bearer {key}\r\n");
    let get = "GET /v1/models HTTP/1.1\r\n";
    let post = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\n{auth}");
    let table = [
        format!("{get}{auth}\r\n"),
        format!("{get}Host: {host}\r\nHost: {host}\r\n{auth}\r\n"),
        format!("{get}Host: evil.test\r\n{auth}\r\n"),
        format!("{get}Host: {host}\r\nOrigin: https://evil.test\r\n{auth}\r\n"),
        format!("{get}Host: {host}\r\nSec-Fetch-Site: cross-site\r\n{auth}\r\n"),
        format!("{get}Host: {host}\r\n{auth}{auth}\r\n"),
        format!("{get}Host: {host}\r\n{auth}x-api-key: {key}\r\n\r\n"),
        format!("{get}Host: {host}\r\nX-A: a\rb\r\n{auth}\r\n"),
        format!("{get}Host: {host}\r\nX-\0A: a\r\n{auth}\r\n"),
        format!("{get}Host: {host}\r\nAuthorization : Bearer {key}\r\n\r\n"),
        format!("{get}Host: {host}\r\nAuthorization: Bearer {key}\0\r\n\r\n"),
        format!(
            "{get}Host: {host}\r\nAuthorization: Bearer {}\r\n\r\n",
            "A".repeat(100_000)
        ),
        format!("GET /v1/models?api_key={key} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        format!("GET http://evil.test/v1/models HTTP/1.1\r\nHost: {host}\r\n{auth}\r\n"),
        format!("GET /v1/models HTTP/9.9\r\nHost: {host}\r\n{auth}\r\n"),
        format!("CONNECT evil.test:443 HTTP/1.1\r\nHost: {host}\r\n{auth}\r\n"),
        format!("{post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        format!("{post}Content-Length: 0x5\r\n\r\nhello"),
        format!("{post}Content-Length: +5\r\n\r\nhello"),
        format!(
            "{post}Content-Length: 16\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n"
        ),
        format!("{post}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}"),
        "\x16\x03\x01\x02\0\x01\0\r\n\r\n".to_owned(),
    ];
    for text in table {
        // Where the connection stays open after a refusal, the client's own half-close ends it.
        let closing = text.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let answer = Answer::of(
            &server
                .raw(if text.starts_with('\x16') {
                    text.as_bytes()
                } else {
                    closing.as_bytes()
                })
                .await,
        );
        let refused = answer.status == 0 || (400..=431).contains(&answer.status);
        assert!(
            refused,
            "{} for {:?}",
            answer.status,
            text.get(..120).unwrap_or(&text)
        );
        assert!(!answer.body.contains(key) && !answer.head.contains("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn a_listed_page_may_ask_and_others_may_not() {
    let origin = "https://chat.example".to_owned();
    let server = Server::start(Options {
        cors_origins: vec![origin.clone()],
        ..Options::default()
    })
    .await;
    let ask = |origin: &str| {
        format!(
            "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: authorization\r\nConnection: close\r\n\r\n",
            server.host
        )
    };
    let listed = Answer::of(&server.raw(ask(&origin).as_bytes()).await);
    assert_eq!(listed.status, 204);
    assert!(
        listed
            .head
            .contains("access-control-allow-origin: https://chat.example"),
        "{}",
        listed.head
    );
    let other = Answer::of(&server.raw(ask("https://evil.test").as_bytes()).await);
    assert_eq!(other.status, 403);
    assert!(!other.head.contains("access-control"));
}

#[tokio::test]
async fn silent_peers_are_let_go_and_a_stop_drains() {
    let mut server = Server::start(Options {
        header_timeout_ms: 50,
        body_timeout_ms: 50,
        ..Options::default()
    })
    .await;
    assert_eq!(server.raw(b"").await, "", "who has asked nothing hears nothing");
    let whole = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", server.host);
    let idle = server.raw(whole.as_bytes()).await;
    assert_eq!(
        idle.matches("HTTP/1.1 ").count(),
        1,
        "an idle connection is closed without a word: {idle}"
    );
    for half in [
        "G",
        "P",
        "GET /hea",
        "PRI * HT",
        "GET /health HTTP/1.1\r\nhost: x\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nx-a: b\r",
    ] {
        for before in ["", &whole] {
            let text = server.raw(format!("{before}{half}").as_bytes()).await;
            assert_eq!(
                text.matches("HTTP/1.1 200").count(),
                usize::from(!before.is_empty()),
                "{half:?}: {text}"
            );
            let refusal = text.split("HTTP/1.1 ").last().unwrap();
            let answer = Answer::of(&format!("HTTP/1.1 {refusal}"));
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (408, "request_timeout"),
                "{half:?}: {text}"
            );
            assert!(answer.head.contains("x-request-id: req_"), "{half:?}: {text}");
            assert!(answer.head.contains("connection: close"), "{half:?}: {text}");
            assert!(
                answer.body.contains("50 ms (`server.header_timeout_ms`)"),
                "{half:?}: {text}"
            );
        }
    }
    let preface = server.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!preface.contains("HTTP/1.1"), "{preface}");
    let stalled = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: 100\r\n\r\n{{",
        server.host,
        server.admin.expose()
    );
    let answer = Answer::of(&server.raw(stalled.as_bytes()).await);
    assert_eq!((answer.status, answer.code().as_str()), (408, "request_timeout"));
    server.shutdown.cancel();
    let closed_by_force = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(closed_by_force, 0);
}

#[tokio::test]
async fn too_many_requests_at_once_are_refused_and_health_is_not() {
    let server = Server::start(Options {
        requests_max: 0,
        connections_max: 1,
        ..Options::default()
    })
    .await;
    let answer = server.send("GET", "/v1/models", &server.admin, "").await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "server_is_overloaded")
    );
    assert!(answer.head.contains("retry-after: 1"));
    assert_eq!(server.send("GET", "/health", &server.admin, "").await.status, 200);
}

#[tokio::test]
async fn a_connection_above_the_bound_is_told_so() {
    let server = Server::start(Options {
        connections_max: 1,
        ..Options::default()
    })
    .await;
    let mut first = TcpStream::connect(&server.host).await.unwrap();
    let text = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", server.host);
    first.write_all(text.as_bytes()).await.unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    let second = Answer::of(&server.raw(b"").await);
    assert_eq!(
        (second.status, second.code().as_str()),
        (503, "server_is_overloaded")
    );
    assert!(second.head.contains("x-request-id: req_"), "{}", second.head);
    assert!(second.head.contains("retry-after: 1"), "{}", second.head);
    assert!(second.head.contains("connection: close"), "{}", second.head);
    assert!(
        second.body.contains("`server.connections_max`"),
        "{}",
        second.body
    );
    let third = Answer::of(&server.raw(b"").await);
    assert_ne!(second.head, third.head, "each has an id of its own");
    drop(first);
}

#[tokio::test]
async fn a_panic_is_answered_in_the_envelope_and_the_next_request_is_served() {
    let server = Server::start(Options::default()).await;
    server.readiness.is_broken.store(true, Ordering::Relaxed);
    let broken = server.send("GET", "/health/ready", &server.admin, "").await;
    assert_eq!((broken.status, broken.code().as_str()), (500, "internal_error"));
    assert!(!broken.body.contains("on purpose") && broken.head.contains("x-request-id: req_"));
    server.readiness.is_broken.store(false, Ordering::Relaxed);
    assert_eq!(
        server
            .send("GET", "/health/ready", &server.admin, "")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_large_body_is_refused_by_its_promise_and_by_its_bytes() {
    let server = Server::start(Options {
        body_bytes_max: 1 << 20,
        ..Options::default()
    })
    .await;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n",
        server.host,
        server.admin.expose()
    );
    let letters = "a".repeat(8 << 20);
    let promised = format!("{head}content-length: {}\r\n\r\n{letters}", letters.len());
    let chunked = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{letters}\r\n0\r\n\r\n",
        letters.len()
    );
    // A client that waits for leave hears no first.
    let waiting = format!("{head}expect: 100-continue\r\ncontent-length: 1073741824\r\n\r\n");
    for text in [promised, chunked, waiting] {
        let answer = Answer::of(&server.raw(text.as_bytes()).await);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (413, "request_too_large")
        );
    }
}

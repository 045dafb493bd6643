//! Names a request claims to come to and from: a page in a browser on this machine is stopped here.

use serde_json::json;

use crate::support::{Answer, Chat, Daemon, Raw, Setup};

#[tokio::test]
async fn only_names_of_this_machine_are_served_and_only_one_of_them() {
    let daemon = Daemon::start().await;
    let request = |hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        let hosts = hosts.concat();
        format!(
            "GET /v1/models HTTP/1.1\r\n{hosts}authorization: Bearer {}\r\n\r\n",
            daemon.key
        )
    };
    let table: [(&[&str], u16); 9] = [
        (&["localhost"], 200),
        (&["127.0.0.1:1"], 200),
        (&["[::1]:8088"], 200),
        (&[], 400),
        (&["localhost", "localhost"], 400),
        (&["localhost", "evil.test"], 400),
        (&["evil.test"], 403),
        (&["localhost.evil.test"], 403),
        (&["127.0.0.1.nip.io"], 403),
    ];
    for (hosts, status) in table {
        let answer = Raw::send(&daemon.address(), request(hosts).as_bytes()).await;
        assert_eq!(answer.status, status, "{hosts:?}: {}", answer.body);
        if status != 200 {
            assert!(!answer.code().is_empty());
            assert!(
                answer.head.to_lowercase().contains("x-request-id"),
                "{}",
                answer.head
            );
        }
    }
    // The public routes are no exception.
    let answer = Raw::send(
        &daemon.address(),
        b"GET /health HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    )
    .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (403, "origin_not_allowed")
    );
}

#[tokio::test]
async fn a_foreign_page_is_refused_even_with_a_key() {
    let daemon = Daemon::start().await;
    for (name, value) in [
        ("origin", "https://evil.test"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let answer = Chat::new(&daemon, "hello there").header(name, value).send().await;
        let body = answer.assert_error(403, "origin_not_allowed");
        assert_eq!(body["error"]["type"], "permission_error");
        assert!(answer.header("access-control-allow-origin").is_empty());
    }
    assert!(daemon.upstream.chats().is_empty());
}

#[tokio::test]
async fn a_listed_page_is_served_with_headers_its_browser_needs() {
    let daemon = Setup::default()
        .config("[server]\ncors_origins = [\"https://chat.example\"]")
        .start()
        .await;
    let origin = "https://chat.example";
    let preflight = daemon
        .ask("OPTIONS", "/v1/chat/completions")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type,x-stainless-os",
        )
        .send();
    let answer = Answer::of(preflight.await.unwrap()).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
    assert_eq!(answer.header("access-control-allow-origin"), origin);
    assert!(answer.header("access-control-allow-methods").contains("POST"));
    assert!(
        answer
            .header("access-control-allow-headers")
            .contains("x-stainless-os")
    );
    for stream in [false, true] {
        let chat = Chat::new(&daemon, "hello there")
            .header("origin", origin)
            .with("stream", json!(stream));
        let answer = chat.send().await;
        assert_eq!(answer.content(), "hello");
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert!(
            answer
                .header("access-control-expose-headers")
                .contains("x-request-id")
        );
        assert!(answer.header("access-control-allow-credentials").is_empty());
    }
    // An error can be read by the page, too; another origin still cannot.
    let answer = Chat::new(&daemon, "x")
        .key("nope")
        .header("origin", origin)
        .send()
        .await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (401, origin)
    );
    let other = Chat::new(&daemon, "x")
        .header("origin", "https://chat.example.evil.test")
        .send()
        .await;
    other.assert_error(403, "origin_not_allowed");
}

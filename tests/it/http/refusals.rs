//! Bytes that are no request: each is answered in the envelope, with an id and a reason, and the connection ends.

use std::path::Path;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Duration, timeout},
};

use crate::support::Daemon;

/// How long an answer and the end of its connection may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Everything that comes back until the daemon closes; the client does not.
async fn talk(daemon: &Daemon, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(daemon.address()).await.unwrap();
    // The answer may come before everything was sent.
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    read.unwrap_or_else(|_| panic!("the connection stays open after {begin:?}"))
        .unwrap_or_else(|error| panic!("{error} after {begin:?}"));
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asserts that the text is one refusal of this status whose message has these words.
fn assert_refusal(what: &str, text: &str, status: u16, words: &str) {
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{what}: {text:?}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {text}");
    for line in [
        "content-type: application/json",
        "connection: close",
        "x-request-id: req_",
        "openai-version: 2020-10-01",
        &format!("content-length: {}", body.len()),
    ] {
        assert_eq!(head.matches(line).count(), 1, "{what}: `{line}` in {head}");
    }
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{what}: {error} in {text}"));
    let keys: Vec<&String> = body["error"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["message", "type", "param", "code"], "{what}");
    assert_eq!(body["error"]["type"], "invalid_request_error", "{what}");
    let code = if status == 400 {
        "invalid_request"
    } else {
        "request_head_too_large"
    };
    assert_eq!(body["error"]["code"], code, "{what}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{what}: `{words}` in {message}");
}

/// A head with these lines in it, whole but for them.
fn get(lines: &str) -> Vec<u8> {
    format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").into_bytes()
}

fn post(lines: &str) -> Vec<u8> {
    format!("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{lines}\r\nhello").into_bytes()
}

#[tokio::test]
async fn a_first_line_that_is_none_is_told_so() {
    let daemon = Daemon::start().await;
    let table: [(&[u8], &str); 15] = [
        (b"garbage\r\n\r\n", "lacks its version"),
        (b"\x00\x01\x02\r\n\r\n", "begin with a method"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"GET /\r\n\r\n", "lacks its version"),
        (b"GET\r\n\r\n", "lacks its version"),
        (b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n", "one space between"),
        (b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", "%20"),
        (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", "send HTTP/1.1"),
        (b"GET / HTTP/1.2\r\nHost: localhost\r\n\r\n", "send HTTP/1.1"),
        (b"GET / HTTP/0.9\r\nHost: localhost\r\n\r\n", "send HTTP/1.1"),
        (b"GET / HTTP/11111111111111.1\r\n\r\n", "send HTTP/1.1"),
        (b"GET / http/1.1\r\nHost: localhost\r\n\r\n", "send HTTP/1.1"),
        (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", "HTTP/2"),
        (
            b"G@T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "begin with a method",
        ),
        (b"{\"model\": \"tidegate\"}\r\n\r\n", "begin with a method"),
    ];
    for (bytes, words) in table {
        let what = String::from_utf8_lossy(bytes).into_owned();
        assert_refusal(&what, &talk(&daemon, bytes).await, 400, words);
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn a_field_that_is_none_is_told_so_by_its_number_and_never_by_its_value() {
    let daemon = Daemon::start().await;
    let secret = "tg_secret_of_somebody";
    let table = [
        (
            get(&format!("X-A: a\r\n {secret}\r\n")),
            "field 3 of the request begins with a blank",
        ),
        (
            get(&format!("X-A: a\r\n\t{secret}\r\n")),
            "field 3 of the request begins with a blank",
        ),
        (
            get(&format!("{secret}\r\n")),
            "field 2 of the request has no colon",
        ),
        (
            get(&format!("Authorization : Bearer {secret}\r\n")),
            "no blank stands before its colon",
        ),
        (
            get(&format!(": {secret}\r\n")),
            "field 2 of the request has a name",
        ),
        (
            get(&format!("X-A: {secret}\0\r\n")),
            "field 2 of the request has a control character",
        ),
        (
            get(&format!("X-A: a\rb {secret}\r\n")),
            "field 2 of the request has a control character",
        ),
        (
            get(&format!("X-A: {secret}\x7f\r\n")),
            "field 2 of the request has a control character",
        ),
        (
            get(&format!("X\0A: {secret}\r\n")),
            "field 2 of the request has a name",
        ),
        (post("Content-Length: -5\r\n"), "not a number of bytes"),
        (post("Content-Length: +5\r\n"), "not a number of bytes"),
        (post("Content-Length: 0x5\r\n"), "not a number of bytes"),
        (post("Content-Length: 5, 5\r\n"), "not a number of bytes"),
        (post("Content-Length: five\r\n"), "not a number of bytes"),
        (post("Content-Length:\r\n"), "not a number of bytes"),
        (
            post("Content-Length: 99999999999999999999999\r\n"),
            "not a number of bytes",
        ),
        (
            post("Content-Length: 18446744073709551615\r\n"),
            "not a number of bytes",
        ),
        (
            post("Content-Length: 5\r\nContent-Length: 6\r\n"),
            "more than once",
        ),
        (
            post("Transfer-Encoding: gzip\r\n"),
            "Transfer-Encoding is `chunked`",
        ),
        (
            post("Transfer-Encoding: chunked, gzip\r\n"),
            "Transfer-Encoding is `chunked`",
        ),
        (
            post("Transfer-Encoding: gzip, chunked\r\n"),
            "Transfer-Encoding is `chunked`",
        ),
        (
            post("Transfer-Encoding: chunked, chunked\r\n"),
            "Transfer-Encoding is `chunked`",
        ),
        (
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            "Transfer-Encoding is `chunked`",
        ),
        (
            post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
            "here are both",
        ),
        (
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            "here are both",
        ),
        (
            post("Transfer-Encoding: identity\r\nContent-Length: 5\r\n"),
            "Transfer-Encoding is `chunked`",
        ),
        (
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
            "HTTP/1.0 has no Transfer-Encoding",
        ),
        (get("A: b\n\r\n"), "a line feed alone"),
    ];
    for (bytes, words) in table {
        let what = String::from_utf8_lossy(&bytes).into_owned();
        let answer = talk(&daemon, &bytes).await;
        assert_refusal(&what, &answer, 400, words);
        assert!(!answer.contains(secret), "{what}: {answer}");
    }
}

#[tokio::test]
async fn a_head_above_its_bounds_is_told_which() {
    let daemon = Daemon::start().await;
    let fields = |count: usize| "X-A: a\r\n".repeat(count);
    let long = "a".repeat(100_000);
    let endless = "a".repeat(3 << 20);
    let table = [
        (get(&fields(64)), 431, "at most 64 header fields"),
        (get(&fields(2000)), 431, "at most 64 header fields"),
        (get(&format!("X-A: {long}\r\n")), 431, "at most 65536 bytes"),
        (get(&format!("X-A: {endless}\r\n")), 431, "at most 65536 bytes"),
        (
            format!("GET /{long} HTTP/1.1\r\n\r\n").into_bytes(),
            431,
            "at most 65536 bytes",
        ),
        (
            format!("GET /?q={long} HTTP/1.1\r\n\r\n").into_bytes(),
            431,
            "at most 65536 bytes",
        ),
    ];
    for (bytes, status, words) in table {
        let what = format!("{} bytes", bytes.len());
        assert_refusal(&what, &talk(&daemon, &bytes).await, status, words);
    }
    // One field less is served.
    let served = talk(&daemon, &get(&(fields(61) + "Connection: close\r\n"))).await;
    assert!(served.starts_with("HTTP/1.1 401 "), "{served}");
}

#[tokio::test]
async fn what_stands_before_is_answered_and_what_stands_behind_is_not() {
    let daemon = Daemon::start().await;
    let sound = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let odd = b"GET /health HTTP/1.1\r\nHost localhost\r\n\r\n";
    let answer = talk(&daemon, &[sound.as_slice(), sound, odd, sound].concat()).await;
    let answers: Vec<&str> = answer.split_inclusive("{\"status\":\"ok\"}").collect();
    assert_eq!(answers.len(), 3, "{answer}");
    assert!(answers[0].starts_with("HTTP/1.1 200 ") && answers[1].starts_with("HTTP/1.1 200 "));
    assert_refusal("behind two", answers[2], 400, "has no colon");
    // A HEAD request has no body in its answer, whatever is wrong with it (RFC 9110, 9.3.2).
    let answer = talk(&daemon, b"HEAD /health HTTP/1.1\r\nHost localhost\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
    // The daemon still serves.
    let served = daemon.ask("GET", "/health").send().await.unwrap();
    assert_eq!(served.status(), 200);
}

#[tokio::test]
async fn a_refusal_is_in_the_log_under_its_id() {
    let mut daemon = Daemon::start().await;
    let answer = talk(&daemon, b"garbage\r\n\r\n").await;
    let id = answer
        .split("x-request-id: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert!(daemon.terminate(PATIENCE).await);
    let logs = logs(&daemon.path("logs"));
    let line = logs.lines().find(|line| line.contains(id));
    assert!(
        line.is_some_and(|line| line.contains("400")),
        "{line:?} in {logs}"
    );
}

/// The text of every log.
fn logs(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&logs(&path));
        } else {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    text
}

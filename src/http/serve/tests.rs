use std::sync::Mutex;

use axum::{
    http::StatusCode,
    routing::{get, post},
};
use bytes::Bytes;
use futures_util::stream;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
    task::JoinSet,
};

use super::*;

#[test]
fn the_full_answer_has_the_length_it_says() {
    let text = std::str::from_utf8(FULL).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with(&format!("content-length: {}", body.len())));
    serde_json::from_str::<serde_json::Value>(body).unwrap();
}

/// A door on a port of its own, behind it a router that says how long a body was.
async fn door() -> (String, JoinSet<usize>) {
    let router = Router::new().route("/", get(|| async { "served" })).route(
        "/",
        post(|body: axum::body::Bytes| async move { format!("served {}", body.len()) }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { run(listener, router, &Options::default(), CancellationToken::new()).await });
    (host, tasks)
}

#[tokio::test]
async fn a_client_that_stops_reading_loses_its_connection() {
    let (held, gone) = oneshot::channel::<Infallible>();
    let held = Arc::new(Mutex::new(Some(held)));
    let endless = move || {
        let held = held.lock().unwrap().take();
        let letters = stream::repeat_with(move || {
            assert!(held.is_some(), "there is one request");
            Ok::<_, Infallible>(Bytes::from_static(&[b'a'; 16 << 10]))
        });
        async { Body::from_stream(letters) }
    };
    let router = Router::new().route("/", get(endless));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let options = Options {
            write_timeout_ms: 200,
            ..Options::default()
        };
        run(listener, router, &options, CancellationToken::new()).await
    });
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(SOUND).await.unwrap();
    // Nothing is read from here on, and the client does not leave.
    let let_go = time::timeout(Duration::from_secs(20), gone).await;
    assert!(matches!(let_go, Ok(Err(_))), "the answer is still held");
    // What is still on its way ends, too.
    drop(stream.read_to_end(&mut Vec::new()).await);
}

#[test]
fn connections_leave_files_for_the_rest() {
    for (files, connections) in [
        (u64::MAX, usize::try_from(u64::MAX - FILES_KEPT).unwrap()),
        (8448, 8192),
        (1024, 768),
        (512, 256),
        (256, 128),
    ] {
        assert_eq!(connections_of(files), connections, "{files}");
    }
}

/// Everything that comes back until the other side closes.
async fn talk(host: &str, parts: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let mut answer = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        stream.write_all(part).await.unwrap();
        // What follows is sent once the request before has been answered.
        while at + 1 < parts.len() && answers(&answer) <= at {
            assert!(
                stream.read_buf(&mut answer).await.unwrap() > 0,
                "closed after part {at}"
            );
        }
    }
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8_lossy(&answer).into_owned()
}

fn answers(bytes: &[u8]) -> usize {
    String::from_utf8_lossy(bytes).matches("HTTP/1.1 ").count()
}

const SOUND: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const BARE: &[u8] = b"GET / HTTP/1.1\nHost: x\r\n\r\n";

#[tokio::test]
async fn a_bare_line_feed_is_refused_and_the_connection_closed() {
    let (host, _tasks) = door().await;
    let post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na\n\n";
    let pipelined = [SOUND, post, BARE, SOUND].concat();
    let late = [SOUND, b"GET / HTTP/1.1\r\nHost: x\r\n\n", SOUND].concat();
    let table: [(&[&[u8]], usize); 6] = [
        (&[BARE], 0),
        (&[&[BARE, SOUND].concat()], 0),
        (&[SOUND, BARE], 1),
        (&[post, SOUND, BARE], 2),
        (&[&pipelined], 2),
        (&[&late], 1),
    ];
    for (parts, served) in table {
        let answer = talk(&host, parts).await;
        assert_eq!(answer.matches("HTTP/1.1 200").count(), served, "{answer}");
        let refusal = answer.split("HTTP/1.1 ").last().unwrap();
        assert!(refusal.starts_with("400 "), "{answer}");
        assert!(refusal.contains("connection: close\r\n"), "{answer}");
        assert!(refusal.contains(r#""code":"invalid_request""#), "{answer}");
    }
}

#[tokio::test]
async fn large_bodies_and_many_requests_pass_on_one_connection() {
    let (host, _tasks) = door().await;
    let body = "\n".repeat(1 << 20);
    let text = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut parts = vec![text.as_bytes(); 12];
    parts.push(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let answer = talk(&host, &parts).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 13, "{answer}");
    assert_eq!(answer.matches("served 1048576").count(), 12, "{answer}");
}

#[tokio::test]
async fn a_body_of_unknown_length_is_the_last_on_its_connection() {
    let (host, _tasks) = door().await;
    let chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\n\n\r\n0\r\n\r\n";
    let answer = talk(&host, &[&[chunked, SOUND].concat()]).await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert!(
        answer.contains("connection: close") && answer.ends_with("served 2"),
        "{answer}"
    );
}

#[tokio::test]
async fn http_2_is_not_looked_at() {
    let (host, _tasks) = door().await;
    let stream = TcpStream::connect(&host).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    for _ in 0..3 {
        let request = Request::builder().method("POST").uri(format!("http://{host}/"));
        let answer = sender
            .send_request(request.body(Body::from("\n\n")).unwrap())
            .await
            .unwrap();
        assert_eq!(
            (answer.status(), answer.version()),
            (StatusCode::OK, Version::HTTP_2)
        );
    }
}

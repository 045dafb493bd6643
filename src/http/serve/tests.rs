use std::sync::Mutex;

use axum::{
    http::StatusCode,
    routing::{get, post},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper_util::rt::TokioExecutor;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::*;

#[tokio::test]
async fn what_a_connection_above_the_bound_hears_is_whole_and_needs_no_waiting() {
    let answer = full(Router::new()).now_or_never().unwrap();
    let text = std::str::from_utf8(&answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
    assert!(
        head.ends_with(&format!("connection: close\r\ncontent-length: {}", body.len())),
        "{head}"
    );
    assert!(body.contains("`server.connections_max`"), "{body}");
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

/// A client of HTTP/2 on a connection of its own.
struct H2 {
    sender: hyper::client::conn::http2::SendRequest<Body>,
    host: String,
    driver: JoinSet<hyper::Result<()>>,
}

impl H2 {
    /// With windows of this size, which it opens as it reads.
    async fn connect(host: &str, window_bytes: u32) -> Self {
        let stream = TcpStream::connect(host).await.unwrap();
        let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(window_bytes)
            .initial_connection_window_size(1 << 20)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Self {
            sender,
            host: host.to_owned(),
            driver,
        }
    }

    async fn ask(&mut self, method: &str, path: &str, body: &'static str) -> Response<Incoming> {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.host));
        let request = request.body(Body::from(body)).unwrap();
        self.sender.send_request(request).await.unwrap()
    }
}

async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn http_2_is_not_looked_at() {
    let (host, _tasks) = door().await;
    let mut client = H2::connect(&host, 1 << 16).await;
    for _ in 0..3 {
        let answer = client.ask("POST", "/", "\n\n").await;
        assert_eq!(
            (answer.status(), answer.version()),
            (StatusCode::OK, Version::HTTP_2)
        );
        assert_eq!(text(answer).await, "served 2");
    }
}

#[tokio::test]
async fn an_http_2_head_has_the_same_bounds() {
    let (host, _tasks) = door().await;
    let mut client = H2::connect(&host, 1 << 16).await;
    let long = "a".repeat(HEAD_BYTES_MAX);
    for (fields, value, words) in [
        (HEADERS_MAX + 1, "a", "64 header fields"),
        (1, long.as_str(), "65536 bytes"),
    ] {
        let mut request = Request::builder().uri(format!("http://{host}/"));
        for at in 0..fields {
            request = request.header(format!("x-{at}"), value);
        }
        let answer = client
            .sender
            .send_request(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        let text = text(answer).await;
        assert!(
            text.contains("request_head_too_large") && text.contains(words),
            "{text}"
        );
    }
    assert_eq!(
        client.ask("GET", "/", "").await.status(),
        StatusCode::OK,
        "the connection goes on"
    );
}

static LETTERS: [u8; 40_000] = [b'a'; 40_000];

/// How long a peer may take nothing in these tests.
const SOON: Duration = Duration::from_millis(400);

/// A router with a long answer, one without end and a short one; what is sent tells when it is let go.
fn answers_over_h2() -> (Router, mpsc::Receiver<&'static str>) {
    let (gone, let_go) = mpsc::channel(8);
    let body = move |name: &'static str, frames: usize| {
        let gone = gone.clone();
        move || {
            let held = Held(name, gone.clone());
            let letters = stream::iter(0..frames).map(move |_| {
                let _held = &held;
                Ok::<_, Infallible>(Bytes::from_static(&LETTERS))
            });
            async { Body::from_stream(letters) }
        }
    };
    let router = Router::new()
        .route("/endless", get(body("endless", usize::MAX)))
        .route("/one-frame", get(body("one frame", 1)))
        .route("/long", get(body("long", 10)))
        .route(
            "/silent",
            get(|| async { Body::from_stream(stream::pending::<io::Result<Bytes>>()) }),
        )
        .route("/", get(|| async { "served" }));
    (router, let_go)
}

struct Held(&'static str, mpsc::Sender<&'static str>);

impl Drop for Held {
    fn drop(&mut self) {
        // The test may have seen enough.
        let (Ok(()) | Err(_)) = self.1.try_send(self.0);
    }
}

async fn serve(router: Router, options: Options) -> (String, JoinSet<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { run(listener, router, &options, CancellationToken::new()).await });
    (host, tasks)
}

#[tokio::test]
async fn an_http_2_peer_that_keeps_its_window_shut_loses_the_stream_and_no_other() {
    let (router, mut let_go) = answers_over_h2();
    let options = Options {
        write_timeout_ms: 400,
        ..Options::default()
    };
    let (host, _tasks) = serve(router, options).await;
    let mut client = H2::connect(&host, 1000).await;
    let begin = time::Instant::now();
    // Held and not read: the client answers pings and opens no window for them.
    let shut = client.ask("GET", "/endless", "").await;
    let small = client.ask("GET", "/one-frame", "").await;
    // A run may be silent for as long as it likes.
    let silent = client.ask("GET", "/silent", "").await;
    let mut gone = Vec::new();
    while gone.len() < 2 {
        let name = time::timeout(Duration::from_secs(20), let_go.recv()).await;
        gone.extend(name.expect("the answers are still held"));
    }
    gone.sort_unstable();
    assert_eq!(gone, ["endless", "one frame"]);
    assert!(begin.elapsed() >= SOON, "it has its time");
    for response in [shut, small] {
        assert!(
            response.into_body().collect().await.is_err(),
            "the client is told"
        );
    }
    assert_eq!(
        text(client.ask("GET", "/", "").await).await,
        "served",
        "the connection goes on"
    );
    assert_eq!(silent.status(), StatusCode::OK);
    let waiting = time::timeout(SOON * 2, silent.into_body().collect()).await;
    assert!(waiting.is_err(), "there is nothing to take, so nothing is missed");
    assert!(client.driver.try_join_next().is_none());
}

#[tokio::test]
async fn a_slow_http_2_reader_gets_everything() {
    let (router, mut let_go) = answers_over_h2();
    let options = Options {
        write_timeout_ms: 400,
        ..Options::default()
    };
    let (host, _tasks) = serve(router, options).await;
    let mut client = H2::connect(&host, 40_000).await;
    let mut body = client.ask("GET", "/long", "").await.into_body();
    let begin = time::Instant::now();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().data_ref().map_or(0, Bytes::len);
        if bytes % 80_000 == 0 {
            time::sleep(SOON / 2).await;
        }
    }
    assert_eq!(bytes, 400_000);
    assert!(begin.elapsed() > SOON, "it took longer than one piece may");
    assert_eq!(let_go.recv().await, Some("long"));
}

#[tokio::test]
async fn an_http_2_connection_without_streams_is_let_go() {
    let (router, _let_go) = answers_over_h2();
    let options = Options {
        header_timeout_ms: 400,
        ..Options::default()
    };
    let (host, _tasks) = serve(router, options).await;
    let mut client = H2::connect(&host, 1 << 16).await;
    let silent = client.ask("GET", "/silent", "").await;
    let idle = time::timeout(SOON * 3, client.driver.join_next()).await;
    assert!(idle.is_err(), "a stream is open");
    drop(silent);
    let ended = time::timeout(Duration::from_secs(20), client.driver.join_next()).await;
    assert!(matches!(ended, Ok(Some(_))), "the connection stays open");
}

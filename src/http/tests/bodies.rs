//! Bytes of requests are in memory within a bound.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;

/// A body of a turn, spaces behind it, of so many bytes.
fn body(bytes: usize) -> String {
    format!("{HELLO}{}", " ".repeat(bytes - HELLO.len()))
}

/// A request whose body is being waited for.
struct Waiting {
    stream: TcpStream,
    body: String,
}

impl Waiting {
    async fn open(server: &Server, key: &PlainKey, bytes: usize) -> Self {
        let mut stream = TcpStream::connect(&server.host).await.unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             expect: 100-continue\r\ncontent-length: {bytes}\r\n\r\n",
            server.host,
            key.expose()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server gives leave once it reads the body.
        let leave = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, leave);
        Self {
            stream,
            body: body(bytes),
        }
    }

    async fn finish(mut self) -> Answer {
        self.stream.write_all(self.body.as_bytes()).await.unwrap();
        let mut text = String::new();
        self.stream.read_to_string(&mut text).await.unwrap();
        Answer::of(&text)
    }
}

async fn ask(server: &Server, key: &PlainKey, bytes: usize) -> Answer {
    server
        .send("POST", "/v1/chat/completions", key, &body(bytes))
        .await
}

async fn ask_in_chunks(server: &Server, key: &PlainKey, bytes: usize) -> Answer {
    let text = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n\
         {bytes:x}\r\n{}\r\n0\r\n\r\n",
        server.host,
        key.expose(),
        body(bytes)
    );
    Answer::of(&server.raw(text.as_bytes()).await)
}

const MIB: usize = 1 << 20;

#[tokio::test]
async fn bodies_have_a_bound_together_and_each_key_half_of_it() {
    let server = Server::start(Options {
        bodies_bytes_max: 8 * MIB,
        ..Options::default()
    })
    .await;
    let [ann, bob, eve] = [
        server.add_key(|_| {}).await,
        server.add_key(|_| {}).await,
        server.add_key(|_| {}).await,
    ];
    let first = Waiting::open(&server, &ann, MIB).await;
    for refused in [
        ask(&server, &ann, 1000).await,
        ask_in_chunks(&server, &ann, 1000).await,
    ] {
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (503, "server_is_overloaded"),
            "the key has its half"
        );
        assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
        assert!(
            refused.body.contains("server.bodies_bytes_max"),
            "{}",
            refused.body
        );
    }
    assert_eq!(
        ask(&server, &bob, 1000).await.status,
        200,
        "another key is served"
    );
    let second = Waiting::open(&server, &bob, MIB / 2).await;
    assert_eq!(ask(&server, &eve, MIB).await.status, 503, "all have the whole");
    assert_eq!(
        ask_in_chunks(&server, &eve, MIB).await.status,
        503,
        "also while it arrives"
    );
    assert_eq!(ask_in_chunks(&server, &eve, MIB / 4).await.status, 200);
    assert_eq!(first.finish().await.status, 200);
    assert_eq!(second.finish().await.status, 200);
    // What was taken is given back, whole or in chunks, as often as one likes.
    for _ in 0..4 {
        assert_eq!(ask(&server, &ann, MIB).await.status, 200);
        assert_eq!(ask_in_chunks(&server, &ann, MIB).await.status, 200);
    }
    let large = ask(&server, &ann, MIB + 1).await;
    assert_eq!((large.status, large.code().as_str()), (413, "request_too_large"));
    assert!(large.body.contains("server.bodies_bytes_max"), "{}", large.body);
}

#[tokio::test]
async fn a_larger_bound_takes_what_a_smaller_refuses() {
    let server = Server::start(Options::default()).await;
    let key = server.add_key(|_| {}).await;
    let first = Waiting::open(&server, &key, MIB).await;
    assert_eq!(ask(&server, &key, 1000).await.status, 200);
    assert_eq!(ask(&server, &key, MIB + 1).await.status, 200);
    assert_eq!(first.finish().await.status, 200);
}

#[tokio::test]
async fn an_empty_body_takes_nothing_and_is_said_to_be_empty() {
    let server = Server::start(Options::default()).await;
    let answer = server
        .send("POST", "/v1/chat/completions", &server.admin, "")
        .await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_json"));
}

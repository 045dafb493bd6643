use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tidegate_core::secret::Secret;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use super::*;

/// A peer that answers one request with exactly these bytes and hands back what it read.
async fn peer(answer: &'static [u8]) -> (SocketAddr, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let mut buffer = [0_u8; 4096];
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            let read = socket.read(&mut buffer).await.unwrap();
            request.extend_from_slice(&buffer[..read]);
        }
        socket.write_all(answer).await.unwrap();
        String::from_utf8(request).unwrap()
    });
    (address, tasks)
}

fn client() -> OperatorClient {
    OperatorClient::new(&Options::default()).unwrap()
}

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello";

#[tokio::test]
async fn a_request_carries_its_headers_and_a_body_is_read_up_to_its_bound() {
    let (address, mut tasks) = peer(HELLO).await;
    let request = client()
        .get(&format!("http://{address}/a?b=c"))
        .bearer(&Secret::new("sk-1"))
        .header("x-a", "b");
    assert!(!format!("{request:?}").contains("sk-1"));
    let response = request.send().await.unwrap();
    assert_eq!(
        (response.status(), response.header("content-type")),
        (200, Some("text/plain"))
    );
    assert_eq!(response.read_bounded(5).await.unwrap(), "hello");
    let seen = tasks.join_next().await.unwrap().unwrap();
    assert!(seen.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{seen}");
    assert!(
        seen.contains("authorization: Bearer sk-1") && seen.contains("x-a: b"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_body_past_its_bound_is_an_error_or_a_marked_prefix() {
    let (address, _tasks) = peer(HELLO).await;
    let response = client().get(&format!("http://{address}/")).send().await.unwrap();
    assert_eq!(
        response.read_bounded(4).await,
        Err(Error::TooLarge { bytes_max: 4 })
    );
    let (address, _tasks) = peer(HELLO).await;
    let response = client().get(&format!("http://{address}/")).send().await.unwrap();
    assert_eq!(
        response.read_prefix(4).await.unwrap(),
        (Bytes::from_static(b"hell"), true)
    );
}

#[tokio::test]
async fn a_redirect_is_an_answer_like_any_other() {
    let (address, _tasks) =
        peer(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n").await;
    let response = client()
        .post(&format!("http://{address}/"))
        .json("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 302);
}

#[tokio::test]
async fn failures_are_told_apart_without_repeating_the_url() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = client()
        .get(&format!("http://{closed}/?key=secret"))
        .send()
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::Connect(_)), "{error:?}");
    assert!(!error.to_string().contains("secret"));

    let error = client().get("not a url").send().await.unwrap_err();
    assert!(matches!(&error, Error::Request(_)), "{error:?}");

    let error = client()
        .get(&format!("http://{closed}/"))
        .header("x-a", "a\nb")
        .send()
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::Request(_)), "{error:?}");

    let (address, _tasks) = peer(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell").await;
    let response = client().get(&format!("http://{address}/")).send().await.unwrap();
    let error = response.read_bounded(100).await.unwrap_err();
    assert!(matches!(&error, Error::Broken(_)), "{error:?}");
}

#[tokio::test]
async fn connecting_has_a_limit() {
    // 192.0.2.0/24 is reserved for documentation (RFC 5737): nobody answers, or the network refuses at once.
    let options = Options {
        connect_timeout_ms: 50,
        proxy: None,
    };
    let client = OperatorClient::new(&options).unwrap();
    let sent = tokio::time::timeout(Duration::from_secs(5), client.get("http://192.0.2.1/").send()).await;
    let error = sent.unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::ConnectTimeout | Error::Connect(_)),
        "{error:?}"
    );
}

/// A peer that answers so many requests on each connection and then closes it; it tells how many connections there
/// were.
async fn keeping_peer(requests_per_connection: usize) -> (SocketAddr, JoinSet<()>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let mut buffer = [0_u8; 4096];
            for _ in 0..requests_per_connection {
                if socket.read(&mut buffer).await.unwrap() == 0 {
                    break;
                }
                socket.write_all(HELLO).await.unwrap();
            }
            // A connection that the client still holds ends here, before the next one is taken.
            drop(socket);
        }
    });
    (address, tasks, connections)
}

#[tokio::test]
async fn a_connection_is_used_again_and_a_closed_one_is_not() {
    for (requests_per_connection, connections_of_six) in [(100, 1), (3, 2), (1, 6)] {
        let (address, _tasks, connections) = keeping_peer(requests_per_connection).await;
        let client = client();
        for _ in 0..6 {
            let response = client.get(&format!("http://{address}/")).send().await.unwrap();
            assert_eq!(response.read_bounded(5).await.unwrap(), "hello");
            // The runtime looks at its sockets, as it does while a client thinks of the next question.
            tokio::task::yield_now().await;
        }
        assert_eq!(
            connections.load(Ordering::SeqCst),
            connections_of_six,
            "{requests_per_connection}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_left_before_its_end_takes_the_connection_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("http://{address}/");
    let client = client();
    let (response, mut socket) = tokio::join!(client.get(&url).send(), async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0_u8; 4096];
        assert!(socket.read(&mut buffer).await.unwrap() > 0);
        let begun = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhell\r\n";
        socket.write_all(begun).await.unwrap();
        socket
    });
    let mut response = response.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "hell");
    drop(response);
    let mut buffer = [0_u8; 16];
    let end = tokio::time::timeout(Duration::from_secs(5), socket.read(&mut buffer)).await;
    assert!(matches!(end.unwrap(), Ok(0) | Err(_)));
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_its_connection() {
    let (address, _tasks) = peer(b"HTTP/1.1 200 OK\r\n\r\nhello").await;
    let response = client().get(&format!("http://{address}/")).send().await.unwrap();
    assert_eq!(response.read_bounded(5).await.unwrap(), "hello");
}

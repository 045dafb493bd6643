//! A server at the loopback address that answers from a script and remembers what it was asked.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// What it does with a request.
pub(super) enum Reply {
    /// A status with a body.
    Status(u16, String),
    /// A status with a header line and a body.
    Header(u16, &'static str, String),
    /// Vectors of so many numbers, one for each text, in Ollama's shape.
    Ollama(usize),
    /// The same in OpenAI's shape.
    OpenAi(usize),
    /// The beginning of an answer, then the end of the connection.
    CutOff,
    /// A body without end.
    Endless,
    /// Nothing, for ever.
    Silence,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub path: String,
    pub head: String,
    pub body: Value,
}

pub(super) struct Peer {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _tasks: JoinSet<()>,
}

impl Peer {
    pub(super) async fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Mutex<VecDeque<Reply>>> = Arc::new(Mutex::new(script.into_iter().collect()));
        let mut tasks = JoinSet::new();
        let record = seen.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket, script.clone(), record.clone()));
            }
        });
        Self {
            url,
            seen,
            _tasks: tasks,
        }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// One request a connection.
async fn serve(mut socket: TcpStream, script: Arc<Mutex<VecDeque<Reply>>>, record: Arc<Mutex<Vec<Seen>>>) {
    let seen = read(&mut socket).await;
    let count = seen
        .body
        .get("input")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    record.lock().unwrap().push(seen);
    let reply = script.lock().unwrap().pop_front();
    let bytes = match reply.expect("the script has no answer left") {
        Reply::Status(status, body) => answer(status, "x-none: 1", &body),
        Reply::Header(status, header, body) => answer(status, header, &body),
        Reply::Ollama(length) => {
            let vectors: Vec<_> = (0..count).map(|place| vector(place, length)).collect();
            answer(
                200,
                "x-none: 1",
                &serde_json::json!({ "embeddings": vectors }).to_string(),
            )
        }
        Reply::OpenAi(length) => {
            let data: Vec<_> = (0..count)
                .rev()
                .map(|place| serde_json::json!({ "index": place, "embedding": vector(place, length) }))
                .collect();
            answer(200, "x-none: 1", &serde_json::json!({ "data": data }).to_string())
        }
        Reply::CutOff => "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"embeddings\":[[1.0".to_owned(),
        Reply::Endless => {
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            let piece = vec![b' '; 1 << 20];
            while socket.write_all(&piece).await.is_ok() {}
            return;
        }
        Reply::Silence => std::future::pending().await,
    };
    socket.write_all(bytes.as_bytes()).await.unwrap();
}

/// A vector that tells its place: its direction is one of the axes.
fn vector(place: usize, length: usize) -> Vec<f32> {
    (0..length)
        .map(|axis| if axis == place % length { 2.0 } else { 0.0 })
        .collect()
}

fn answer(status: u16, header: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\n{header}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn read(socket: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let read = socket.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(buffer.get(..read).unwrap());
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(bytes.get(..end).unwrap().to_vec()).unwrap();
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let body = bytes.get(end + 4..).unwrap();
        if body.len() == length {
            return Seen {
                path: head.split(' ').nth(1).unwrap().to_owned(),
                body: serde_json::from_slice(body).unwrap_or_default(),
                head,
            };
        }
    }
}

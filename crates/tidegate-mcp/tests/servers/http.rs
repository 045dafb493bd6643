//! Servers at addresses, over a small HTTP server of our own on loopback.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tidegate_core::tool::ToolResult;
use tidegate_mcp::{Options, State};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, broadcast},
    task::JoinSet,
};

use crate::desk::{Desk, entry, message, options, text};

/// How the server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Answers as JSON, with a session.
    Json,
    /// Answers as a stream of events.
    Events,
    /// The older transport; POST at the address itself is refused.
    Old,
    /// The older transport, whose stream sends requests to another host.
    OldElsewhere,
    /// Sends to another address.
    Redirect,
    /// Wants a token.
    Unauthorized,
    /// A body without end.
    Endless,
    /// The head of an answer, and then a byte now and then.
    Drip,
    /// Lets in whoever has logged in, which can be done here as well.
    Login,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) text: String,
}

/// A server, and what it was asked.
#[derive(Debug)]
pub(crate) struct Peer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    /// Answers for the open streams of the older transport.
    stream: broadcast::Sender<String>,
    opened: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Peer {
    pub(crate) async fn start(mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::default();
        let stream = broadcast::Sender::new(64);
        let opened = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        let (log, answers, notify) = (Arc::clone(&seen), stream.clone(), Arc::clone(&opened));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (log, answers, notify) = (Arc::clone(&log), answers.clone(), Arc::clone(&notify));
                connections.spawn(async move {
                    // A client that goes is no matter.
                    drop(attend(socket, mode, log, answers, notify).await);
                });
            }
        });
        Self {
            address,
            seen,
            stream,
            opened,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn count(&self, what: impl Fn(&Request) -> bool) -> usize {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .filter(|request| what(request))
            .count()
    }
}

fn answer(request: &Value) -> Option<Value> {
    let id = request.get("id")?;
    let params = &request["params"];
    let result = match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "2"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": params["arguments"]["text"]}]}),
        _ => {
            return Some(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}),
            );
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

async fn attend(
    mut socket: TcpStream,
    mode: Mode,
    log: Arc<Mutex<Vec<Request>>>,
    stream: broadcast::Sender<String>,
    opened: Arc<Notify>,
) -> std::io::Result<()> {
    while let Some(request) = read(&mut socket).await? {
        let login = (mode == Mode::Login)
            .then(|| crate::oauth::answer(&request))
            .flatten();
        if let Some((status, body)) = login {
            log.lock().unwrap().push(request);
            let challenge = "www-authenticate: Bearer\r\n";
            socket
                .write_all(head(status, "application/json", challenge, &body).as_bytes())
                .await?;
            continue;
        }
        let reply = answer(&request.body).map(|value| value.to_string());
        let (method, path) = (request.method.clone(), request.path.clone());
        let is_call = request.body["method"] == "tools/call";
        log.lock().unwrap().push(request);
        let out = match (mode, method.as_str()) {
            (Mode::Redirect, _) => head("302 Found", "text/plain", "location: http://127.0.0.1:1/\r\n", ""),
            (Mode::Unauthorized, _) => head(
                "401 Unauthorized",
                "text/plain",
                "www-authenticate: Bearer resource_metadata=\"x\"\r\n",
                "who are you?",
            ),
            (Mode::Old | Mode::OldElsewhere, "POST") if path == "/sse" => {
                head("405 Method Not Allowed", "text/plain", "", "no")
            }
            (Mode::Old | Mode::OldElsewhere, "GET") => {
                return old_stream(socket, mode, stream, opened).await;
            }
            (Mode::Old, "POST") => {
                // Whoever reads the stream may not be there yet.
                reply.map(|reply| stream.send(reply));
                head("202 Accepted", "text/plain", "", "Accepted")
            }
            (_, "GET") => head("405 Method Not Allowed", "text/plain", "", ""),
            (_, "DELETE") => head("200 OK", "text/plain", "", ""),
            (Mode::Endless, _) if is_call => {
                let start =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"x\":\"";
                socket.write_all(start.as_bytes()).await?;
                loop {
                    socket.write_all(&[b'x'; 8192]).await?;
                }
            }
            (Mode::Drip, _) if is_call => {
                socket
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
                    .await?;
                loop {
                    socket.write_all(b":").await?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            (Mode::Events, _) => match reply {
                Some(reply) => {
                    let body = format!(
                        "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":1}}}}\n\nevent: message\ndata: {reply}\n\n"
                    );
                    head("200 OK", "text/event-stream", "", &body)
                }
                None => head("202 Accepted", "text/plain", "", ""),
            },
            (_, _) => match reply {
                Some(reply) => head("200 OK", "application/json", "mcp-session-id: s1\r\n", &reply),
                None => head("202 Accepted", "text/plain", "", ""),
            },
        };
        socket.write_all(out.as_bytes()).await?;
    }
    Ok(())
}

async fn old_stream(
    mut socket: TcpStream,
    mode: Mode,
    stream: broadcast::Sender<String>,
    opened: Arc<Notify>,
) -> std::io::Result<()> {
    let mut answers = stream.subscribe();
    let endpoint = if mode == Mode::Old {
        "/messages?id=1"
    } else {
        "http://evil.example/messages"
    };
    let start = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: {endpoint}\n\n"
    );
    socket.write_all(start.as_bytes()).await?;
    opened.notify_one();
    while let Ok(answer) = answers.recv().await {
        if answer.is_empty() {
            return Ok(());
        }
        socket
            .write_all(format!("event: message\ndata: {answer}\n\n").as_bytes())
            .await?;
    }
    Ok(())
}

fn head(status: &str, kind: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn read(socket: &mut TcpStream) -> std::io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + 4 + length {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default(),
        text: String::from_utf8_lossy(&bytes[end + 4..]).into_owned(),
    }))
}

async fn desk(entry: Value, options: Options) -> Desk {
    Desk::with(json!({"web": entry}), options).await
}

#[tokio::test]
async fn streamable_http_answers_as_json_and_as_events() {
    for mode in [Mode::Json, Mode::Events] {
        let peer = Peer::start(mode).await;
        let entry =
            json!({"url": peer.url("/mcp"), "headers": {"x-team": "office"}, "bearer_token": "${API_KEY}"});
        let desk = desk(entry, options()).await;
        let status = desk.ready("web").await;
        assert_eq!(
            (status.protocol.as_deref(), status.transport),
            (Some("2025-06-18"), "auto")
        );
        assert_eq!(
            text(&desk.call("mcp__web__echo", json!({"text": "hi"})).await),
            "hi"
        );
        desk.stop().await;
        let all = peer.count(|_| true);
        let dressed = |request: &Request| {
            request.headers.get("authorization").map(String::as_str) == Some("Bearer k-1234567890")
                && request.headers.get("x-team").map(String::as_str) == Some("office")
        };
        assert_eq!(peer.count(dressed), all);
        let in_session = |request: &Request| {
            request.body["method"] == "tools/call"
                && request.headers.get("mcp-session-id").map(String::as_str) == Some("s1")
                && request.headers.get("mcp-protocol-version").map(String::as_str) == Some("2025-06-18")
        };
        let is_closed = |request: &Request| request.method == "DELETE";
        if mode == Mode::Json {
            assert_eq!((peer.count(in_session), peer.count(is_closed)), (1, 1));
        }
    }
}

#[tokio::test]
async fn the_older_transport_is_found_and_asked_for() {
    for entry in [json!({}), json!({"type": "sse"})] {
        let peer = Peer::start(Mode::Old).await;
        let mut entry = entry;
        entry["url"] = peer.url("/sse").into();
        let desk = desk(entry, options()).await;
        desk.ready("web").await;
        assert_eq!(
            text(&desk.call("mcp__web__echo", json!({"text": "old"})).await),
            "old"
        );
        assert!(peer.count(|request| request.path == "/messages?id=1") >= 4);
        // The stream ends: the server is connected to again.
        peer.opened.notified().await;
        peer.stream.send(String::new()).unwrap();
        peer.opened.notified().await;
        desk.until("web", |status| {
            status.state == State::Ready && status.restarts == 1
        })
        .await;
        assert_eq!(
            text(&desk.call("mcp__web__echo", json!({"text": "again"})).await),
            "again"
        );
        desk.stop().await;
    }
}

async fn reason(mode: Mode, kind: &str) -> (String, Peer) {
    let peer = Peer::start(mode).await;
    let desk = desk(json!({"url": peer.url("/sse"), "type": kind}), options()).await;
    let status = desk
        .until("web", |status| matches!(status.state, State::Down { .. }))
        .await;
    let State::Down { reason, .. } = status.state else {
        panic!();
    };
    desk.stop().await;
    (reason, peer)
}

#[tokio::test]
async fn nothing_is_sent_where_the_operator_did_not_say() {
    let (why, _peer) = reason(Mode::Redirect, "http").await;
    assert!(
        why.contains("redirects to another address, which is not followed"),
        "{why}"
    );
    let (why, _peer) = reason(Mode::Redirect, "sse").await;
    assert!(
        why.contains("redirects to another address, which is not followed"),
        "{why}"
    );
    let (why, peer) = reason(Mode::OldElsewhere, "sse").await;
    assert!(why.contains("names another host, which is not followed"), "{why}");
    assert_eq!(peer.count(|request| request.method == "POST"), 0);
    let (why, _peer) = reason(Mode::Unauthorized, "http").await;
    assert!(
        why.contains("wants an authorization; write `\"oauth\": true`"),
        "{why}"
    );
}

#[tokio::test]
async fn bodies_without_end_and_drips_cost_one_call() {
    for mode in [Mode::Endless, Mode::Drip] {
        let peer = Peer::start(mode).await;
        let small = Options {
            message_bytes_max: 1 << 20,
            ..options()
        };
        let servers = json!({"web": {"url": peer.url("/mcp"), "timeout_ms": 1000}, "good": entry(&[])});
        let desk = Desk::with(servers, small).await;
        desk.ready("web").await;
        desk.ready("good").await;
        let result = desk.call("mcp__web__echo", json!({"text": "x"})).await;
        if mode == Mode::Endless {
            assert!(
                message(&result).contains("longer than 1048576 bytes"),
                "{result:?}"
            );
        } else {
            assert_eq!(result, ToolResult::TimedOut { after_ms: 1000 });
        }
        assert_eq!(
            text(&desk.call("mcp__good__echo", json!({"text": "x"})).await),
            "x"
        );
        desk.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_tried_again_until_it_is() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let desk = desk(json!({"url": format!("http://{address}/mcp")}), options()).await;
    let status = desk.until("web", |status| status.restarts > 1).await;
    assert!(status.tools.is_empty());
    desk.stop().await;
}

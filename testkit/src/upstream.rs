//! A scripted model server: OpenAI's `/v1/chat/completions` and Ollama's `/api/chat` from one description.

mod encode;
mod reply;

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use serde_json::{Value, json, value::RawValue};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use reply::{RawChunks, Reply};

/// The largest request body the server takes.
const BODY_BYTES_MAX: usize = 256 << 20;
/// How long [`Upstream::stop`] waits for connections to end.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its path.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body as JSON; null where there was none, or it was no JSON.
    pub body: Value,
}

type Responder = Arc<dyn Fn(&Value) -> Reply + Send + Sync>;

struct Script {
    queue: VecDeque<Reply>,
    always: Reply,
    respond_with: Option<Responder>,
    models: Option<Vec<String>>,
    received: Vec<Received>,
}

struct Shared {
    script: Mutex<Script>,
    record: AtomicBool,
    open: watch::Sender<usize>,
    connections: AtomicUsize,
    stopping: CancellationToken,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, uri: &Uri, headers: &HeaderMap, body: &Value) {
        if !self.record.load(Ordering::Relaxed) {
            return;
        }
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        self.script().received.push(Received {
            path: uri.path().to_owned(),
            headers,
            body: body.clone(),
        });
    }

    /// A request's body as JSON: all of it where somebody may look at it, else what decides the answer's form. A
    /// benchmark then measures those who ask, and not how long it takes to read what nobody looks at.
    fn read(&self, body: &[u8]) -> Value {
        if self.record.load(Ordering::Relaxed) || self.script().respond_with.is_some() {
            return serde_json::from_slice(body).unwrap_or_default();
        }
        let form: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
        let fields = ["model", "stream", "stream_options"].into_iter();
        let fields = fields.filter_map(|name| {
            let value = serde_json::from_str(form.get(name)?.get()).ok()?;
            Some((name.to_owned(), value))
        });
        Value::Object(fields.collect())
    }

    fn next_reply(&self, body: &Value) -> Reply {
        let responder = {
            let mut script = self.script();
            if let Some(reply) = script.queue.pop_front() {
                return reply;
            }
            match &script.respond_with {
                None => return script.always.clone(),
                Some(responder) => Arc::clone(responder),
            }
        };
        responder(body)
    }
}

/// Counts an answer as open until it is dropped: at its end, or when the client has gone.
struct OpenAnswer(watch::Sender<usize>);

impl OpenAnswer {
    fn new(open: &watch::Sender<usize>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(open.clone())
    }
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The server. It stops when it is dropped.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Starts a server on a free loopback port. It answers `hello` until told otherwise.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(0).await
    }

    /// Starts a server on that loopback port.
    pub async fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let stopping = CancellationToken::new();
        let shared = Arc::new(Shared {
            script: Mutex::new(Script {
                queue: VecDeque::new(),
                always: Reply::text("hello"),
                respond_with: None,
                models: Some(vec!["scripted".to_owned()]),
                received: Vec::new(),
            }),
            record: AtomicBool::new(true),
            open: watch::Sender::new(0),
            connections: AtomicUsize::new(0),
            stopping: stopping.clone(),
        });
        let router = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/models", get(models))
            .route("/api/chat", post(ollama_chat))
            .route("/api/tags", get(tags))
            .route("/api/version", get(version))
            .route("/api/show", post(show))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(Arc::clone(&shared));
        let counted = Arc::clone(&shared);
        let listener = listener.tap_io(move |stream| {
            counted.connections.fetch_add(1, Ordering::Relaxed);
            // A peer that left between accept and here makes this fail; the connection then ends by itself.
            drop(stream.set_nodelay(true));
        });
        let tasks = TaskTracker::new();
        tasks.spawn(async move {
            let serving = axum::serve(listener, router).with_graceful_shutdown(stopping.cancelled_owned());
            drop(serving.await);
        });
        tasks.close();
        Ok(Self {
            address,
            shared,
            tasks,
        })
    }

    /// The base URL an OpenAI client takes: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The base URL an Ollama client takes: `http://127.0.0.1:PORT`.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues a reply: the next chat request gets it.
    pub fn push(&self, reply: Reply) {
        self.shared.script().queue.push_back(reply);
    }

    /// The reply of every chat request that finds the queue empty.
    pub fn always(&self, reply: Reply) {
        self.shared.script().always = reply;
    }

    /// Computes the reply from the request's body, when the queue is empty.
    pub fn respond_with(&self, responder: impl Fn(&Value) -> Reply + Send + Sync + 'static) {
        self.shared.script().respond_with = Some(Arc::new(responder));
    }

    /// The models it lists. `None`: it has no list and answers 404.
    pub fn set_models(&self, models: Option<Vec<String>>) {
        self.shared.script().models = models;
    }

    /// Whether requests are kept for [`Upstream::requests`]; they are unless a benchmark says no.
    pub fn record(&self, record: bool) {
        self.shared.record.store(record, Ordering::Relaxed);
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.script().received.clone()
    }

    /// The bodies of the chat requests so far, oldest first.
    pub fn chats(&self) -> Vec<Value> {
        let script = self.shared.script();
        let chats = script
            .received
            .iter()
            .filter(|request| request.path.contains("chat"));
        chats.map(|request| request.body.clone()).collect()
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Answers in the making: those whose client has neither read them to the end nor gone away.
    pub fn open_streams(&self) -> usize {
        *self.shared.open.borrow()
    }

    /// Waits until `count` answers are open; false where that takes longer than `timeout`.
    pub async fn wait_open(&self, count: usize, timeout: Duration) -> bool {
        let mut open = self.shared.open.subscribe();
        tokio::time::timeout(timeout, open.wait_for(|now| *now == count))
            .await
            .is_ok_and(|seen| seen.is_ok())
    }

    /// Waits until no answer is open; false where that takes longer than `timeout`.
    pub async fn wait_idle(&self, timeout: Duration) -> bool {
        self.wait_open(0, timeout).await
    }

    /// Ends every answer, closes the port and waits for both.
    pub async fn stop(self) {
        self.shared.stopping.cancel();
        // A connection that does not end in time is left to the drop of the runtime.
        drop(tokio::time::timeout(STOP_WAIT, self.tasks.wait()).await);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
    }
}

async fn chat(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body = shared.read(&body);
    shared.note(&uri, &headers, &body);
    let reply = shared.next_reply(&body);
    let open = OpenAnswer::new(&shared.open);
    encode::answer(
        reply,
        encode::Dialect::OpenAi,
        &body,
        open,
        shared.stopping.clone(),
    )
    .await
}

async fn ollama_chat(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = shared.read(&body);
    shared.note(&uri, &headers, &body);
    let reply = shared.next_reply(&body);
    let open = OpenAnswer::new(&shared.open);
    encode::answer(
        reply,
        encode::Dialect::Ollama,
        &body,
        open,
        shared.stopping.clone(),
    )
    .await
}

async fn models(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    shared.note(request.uri(), request.headers(), &Value::Null);
    let Some(models) = shared.script().models.clone() else {
        return (
            StatusCode::NOT_FOUND,
            Json(json!({"error": {"message": "not found", "code": 404}})),
        )
            .into_response();
    };
    let data: Vec<Value> = models
        .iter()
        .map(|id| json!({"id": id, "object": "model", "created": encode::CREATED, "owned_by": "scripted"}))
        .collect();
    Json(json!({"object": "list", "data": data})).into_response()
}

async fn tags(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    shared.note(request.uri(), request.headers(), &Value::Null);
    let Some(models) = shared.script().models.clone() else {
        return (StatusCode::NOT_FOUND, Json(json!({"error": "not found"}))).into_response();
    };
    let models: Vec<Value> = models
        .iter()
        .map(|name| json!({"name": name, "model": name, "modified_at": encode::CREATED_AT, "size": 1, "details": {}}))
        .collect();
    Json(json!({"models": models})).into_response()
}

async fn version() -> Response {
    Json(json!({"version": "0.0.0-scripted"})).into_response()
}

async fn show(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    shared.note(&uri, &headers, &body);
    Json(json!({
        "details": {"family": "scripted"},
        "model_info": {"general.architecture": "scripted", "scripted.context_length": 8192},
        "capabilities": ["completion", "tools"],
    }))
    .into_response()
}

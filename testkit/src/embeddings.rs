//! A scripted embeddings server: OpenAI's `/v1/embeddings` and Ollama's `/api/embed` and `/api/show`, in the shapes that
//! their documentation gives.
//!
//! A vector counts the words of a text, each on an axis of its own as far as there are enough: texts that share words
//! are near each other, others are not.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::Received;

/// The largest request body the server takes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The context that `/api/show` names, in tokens.
pub const CONTEXT_TOKENS: u64 = 512;

#[derive(Debug, Default)]
struct Script {
    /// The status of every answer, where they are to fail.
    failing: Option<u16>,
    /// Requests with this in one of their texts take so long.
    slow: Vec<(String, Duration)>,
    received: Vec<Received>,
    open: usize,
    widest: usize,
}

#[derive(Debug)]
struct Shared {
    dimensions: usize,
    script: Mutex<Script>,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct Embeddings {
    address: SocketAddr,
    shared: Arc<Shared>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

impl Embeddings {
    /// Starts a server on a free loopback port, whose vectors have so many numbers unless fewer are asked for.
    pub async fn start(dimensions: usize) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            dimensions,
            script: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/embeddings", post(openai))
            .route("/api/embed", post(ollama))
            .route("/api/show", post(show))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(Arc::clone(&shared));
        let stopping = CancellationToken::new();
        let stop = stopping.clone();
        let tasks = TaskTracker::new();
        tasks.spawn(async move {
            let serving = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
            drop(serving.await);
        });
        tasks.close();
        Ok(Self {
            address,
            shared,
            stopping,
            tasks,
        })
    }

    /// The base URL of OpenAI's API: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The base URL of Ollama's API: `http://127.0.0.1:PORT`.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on every answer has this status; `None`: it answers again.
    pub fn fail(&self, status: Option<u16>) {
        self.shared.script().failing = status;
    }

    /// Requests with `part` in one of their texts take so long.
    pub fn slow(&self, part: &str, time: Duration) {
        self.shared.script().slow.push((part.to_owned(), time));
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.script().received.clone()
    }

    /// The texts of every request for vectors so far, a list for each request.
    pub fn batches(&self) -> Vec<Vec<String>> {
        let script = self.shared.script();
        let asked = script.received.iter().map(|request| texts(&request.body));
        asked.filter(|texts| !texts.is_empty()).collect()
    }

    /// The most requests for vectors that were open at once.
    pub fn widest(&self) -> usize {
        self.shared.script().widest
    }

    /// Closes the port and waits until it is closed.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Embeddings {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

/// A request that is being answered; open until it is dropped.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: &Arc<Shared>) -> Self {
        let mut script = shared.script();
        script.open += 1;
        script.widest = script.widest.max(script.open);
        Self(Arc::clone(shared))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.script().open -= 1;
    }
}

/// One text or a list of them, as both APIs take it.
fn texts(body: &Value) -> Vec<String> {
    match &body["input"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => texts
            .iter()
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn note(shared: &Shared, uri: &Uri, headers: &HeaderMap, body: &Value) {
    let headers: BTreeMap<String, String> = headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect();
    shared.script().received.push(Received {
        path: uri.path().to_owned(),
        headers,
        body: body.clone(),
    });
}

/// The vectors of a request, after what the script wants first.
async fn answer(
    shared: &Arc<Shared>,
    uri: &Uri,
    headers: &HeaderMap,
    body: &Value,
) -> Result<Vec<Vec<f32>>, StatusCode> {
    note(shared, uri, headers, body);
    let _open = Open::new(shared);
    let texts = texts(body);
    let (failing, wait) = {
        let script = shared.script();
        let is_slow = |part: &str| texts.iter().any(|text| text.contains(part));
        let waits = script.slow.iter().filter(|(part, _)| is_slow(part));
        (script.failing, waits.map(|(_, time)| *time).max())
    };
    if let Some(wait) = wait {
        // The server is as slow as the script says.
        tokio::time::sleep(wait).await;
    }
    if let Some(status) = failing {
        return Err(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    }
    let asked = body["dimensions"]
        .as_u64()
        .and_then(|asked| usize::try_from(asked).ok());
    let dimensions = asked.unwrap_or(shared.dimensions);
    Ok(texts.iter().map(|text| vector(text, dimensions)).collect())
}

/// The words of a text, counted on the axes that a hash (FNV-1a) gives them, at length one.
fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.0_f32; dimensions.max(1)];
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        let hash = word
            .to_lowercase()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3_u64)
            });
        let axis = usize::try_from(hash % vector.len() as u64).unwrap_or_default();
        if let Some(number) = vector.get_mut(axis) {
            *number += 1.0;
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        for number in &mut vector {
            *number /= length;
        }
    }
    vector
}

async fn openai(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match answer(&shared, &uri, &headers, &body).await {
        Ok(vectors) => {
            let data: Vec<Value> = vectors
                .into_iter()
                .enumerate()
                .map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector}))
                .collect();
            Json(json!({
                "object": "list", "data": data, "model": body["model"],
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }))
            .into_response()
        }
        Err(status) => (status, Json(json!({"error": {"message": "scripted"}}))).into_response(),
    }
}

async fn ollama(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match answer(&shared, &uri, &headers, &body).await {
        Ok(vectors) => Json(json!({
            "model": body["model"], "embeddings": vectors,
            "total_duration": 1, "load_duration": 1, "prompt_eval_count": 1,
        }))
        .into_response(),
        Err(status) => (status, Json(json!({"error": "scripted"}))).into_response(),
    }
}

async fn show(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    note(&shared, &uri, &headers, &body);
    Json(json!({
        "details": {"family": "bert"},
        "model_info": {"general.architecture": "bert", "bert.context_length": CONTEXT_TOKENS},
        "capabilities": ["embedding"],
    }))
    .into_response()
}

//! A small Chroma: the calls of its HTTP API, version 2, that tidegate makes, over collections in memory, with faults on
//! demand. What it compares by is cosine, and every vector is compared.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::Received;

/// The largest request body the server takes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// What stands before the name of a database.
const TENANT: &str = "/api/v2/tenants/default_tenant/databases/";

#[derive(Debug, Clone)]
struct Row {
    vector: Vec<f64>,
    document: Value,
    metadata: Value,
}

#[derive(Debug)]
struct Collection {
    id: String,
    space: String,
    metadata: Value,
    rows: BTreeMap<String, Row>,
}

/// What is wrong with the server just now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ChromaFault {
    /// Nothing.
    #[default]
    None,
    /// Every answer has this status.
    Status(u16),
    /// Every answer is no JSON.
    Garbage,
    /// Every answer waits so long.
    Slow(Duration),
    /// Searches find rows that are not there, with distances out of range.
    Strange,
}

#[derive(Debug, Default)]
struct Script {
    fault: ChromaFault,
    /// The token that is asked for.
    token: Option<String>,
    collections: BTreeMap<String, Collection>,
    made: usize,
    received: Vec<Received>,
}

type Shared = Arc<Mutex<Script>>;

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct Chroma {
    address: SocketAddr,
    shared: Shared,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

impl Chroma {
    /// Starts a server without collections on a free loopback port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Shared::default();
        let router = Router::new()
            .fallback(answer)
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

    /// Its address: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What is wrong with it from now on.
    pub fn set_fault(&self, fault: ChromaFault) {
        self.script().fault = fault;
    }

    /// From now on it answers no one without this token.
    pub fn ask_for(&self, token: &str) {
        self.script().token = Some(token.to_owned());
    }

    /// Makes a collection as someone else would, with so many rows.
    pub fn add_collection(&self, database: &str, name: &str, space: &str, rows: usize) {
        let mut script = self.script();
        script.made += 1;
        let row = |at: usize| {
            let row = Row {
                vector: vec![1.0, 0.0],
                document: Value::Null,
                metadata: Value::Null,
            };
            (format!("other-{at}"), row)
        };
        let collection = Collection {
            id: format!("id-{}", script.made),
            space: space.to_owned(),
            metadata: Value::Null,
            rows: (0..rows).map(row).collect(),
        };
        script
            .collections
            .insert(format!("{database}/{name}"), collection);
    }

    /// Forgets everything, as a server with an empty folder has.
    pub fn clear(&self) {
        self.script().collections.clear();
    }

    /// Takes rows out behind tidegate's back.
    pub fn lose(&self, database: &str, name: &str, count: usize) {
        if let Some(collection) = self.script().collections.get_mut(&format!("{database}/{name}")) {
            for _ in 0..count {
                collection.rows.pop_first();
            }
        }
    }

    /// The names of its collections, with their databases, and how many rows each has.
    pub fn collections(&self) -> Vec<(String, usize)> {
        let script = self.script();
        let collections = script.collections.iter();
        collections
            .map(|(name, collection)| (name.clone(), collection.rows.len()))
            .collect()
    }

    /// The documents of a collection.
    pub fn documents(&self, database: &str, name: &str) -> Vec<Value> {
        let script = self.script();
        let collection = script.collections.get(&format!("{database}/{name}"));
        collection.map_or_else(Vec::new, |collection| {
            collection.rows.values().map(|row| row.document.clone()).collect()
        })
    }

    /// What it was asked.
    pub fn requests(&self) -> Vec<Received> {
        self.script().received.clone()
    }

    /// Stops it.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.tasks.wait().await;
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.shared)
    }
}

impl Drop for Chroma {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

fn lock(shared: &Mutex<Script>) -> MutexGuard<'_, Script> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let headers: BTreeMap<String, String> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
        .collect();
    let authorization = headers.get("authorization").cloned();
    let (fault, token) = {
        let mut script = lock(&shared);
        script.received.push(Received {
            path: uri.path().to_owned(),
            headers,
            body: body.clone(),
        });
        (script.fault.clone(), script.token.clone())
    };
    match fault {
        ChromaFault::None | ChromaFault::Strange => {}
        ChromaFault::Status(status) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return (status, "out of order").into_response();
        }
        ChromaFault::Garbage => return (StatusCode::OK, "<html>").into_response(),
        ChromaFault::Slow(time) => tokio::time::sleep(time).await,
    }
    if token.is_some_and(|token| authorization != Some(format!("Bearer {token}"))) {
        return failed(StatusCode::UNAUTHORIZED, "no token");
    }
    if uri.path() == "/api/v2/auth/identity" {
        let identity = json!({"user_id": "", "tenant": "default_tenant", "databases": ["default_database"]});
        return axum::Json(identity).into_response();
    }
    let parts: Option<Vec<&str>> = uri
        .path()
        .strip_prefix(TENANT)
        .map(|rest| rest.split('/').collect());
    let mut script = lock(&shared);
    match parts.as_deref() {
        Some([database, "collections"]) if method == Method::POST => make(&mut script, database, &body),
        Some([database, "collections", name]) if method == Method::GET => {
            match script.collections.get(&format!("{database}/{name}")) {
                Some(collection) => axum::Json(described(name, collection)).into_response(),
                None => failed(StatusCode::NOT_FOUND, "no such collection"),
            }
        }
        Some([database, "collections", name]) if method == Method::DELETE => {
            match script.collections.remove(&format!("{database}/{name}")) {
                Some(_) => axum::Json(json!({})).into_response(),
                None => failed(StatusCode::NOT_FOUND, "no such collection"),
            }
        }
        Some([_, "collections", id, call @ ..]) => {
            let is_strange = script.fault == ChromaFault::Strange;
            match script
                .collections
                .values_mut()
                .find(|collection| collection.id == *id)
            {
                Some(collection) => act(collection, call, &body, is_strange),
                None => failed(StatusCode::NOT_FOUND, "no such collection"),
            }
        }
        Some(_) | None => failed(StatusCode::NOT_FOUND, "no such path"),
    }
}

fn failed(status: StatusCode, message: &str) -> Response {
    (
        status,
        axum::Json(json!({"error": "ChromaError", "message": message})),
    )
        .into_response()
}

fn described(name: &str, collection: &Collection) -> Value {
    json!({
        "id": collection.id,
        "name": name,
        "configuration_json": {"hnsw": {"space": collection.space}, "spann": null},
        "metadata": collection.metadata,
        "dimension": null,
    })
}

fn make(script: &mut Script, database: &str, body: &Value) -> Response {
    let name = body["name"].as_str().unwrap_or_default();
    let key = format!("{database}/{name}");
    if script.collections.contains_key(&key) {
        return failed(StatusCode::CONFLICT, "it exists already");
    }
    script.made += 1;
    let collection = Collection {
        id: format!("id-{}", script.made),
        space: body["metadata"]["hnsw:space"].as_str().unwrap_or("l2").to_owned(),
        metadata: body["metadata"].clone(),
        rows: BTreeMap::new(),
    };
    let described = described(name, &collection);
    script.collections.insert(key, collection);
    axum::Json(described).into_response()
}

fn act(collection: &mut Collection, call: &[&str], body: &Value, is_strange: bool) -> Response {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect()
    };
    let ids = texts(&body["ids"]);
    let given = match call {
        [] => {
            collection.metadata = body["new_metadata"].clone();
            json!({})
        }
        ["count"] => json!(collection.rows.len()),
        ["upsert"] => {
            for (at, id) in ids.into_iter().enumerate() {
                let row = Row {
                    vector: numbers(&body["embeddings"][at]),
                    document: body["documents"][at].clone(),
                    metadata: body["metadatas"][at].clone(),
                };
                collection.rows.insert(id, row);
            }
            json!({})
        }
        ["delete"] => {
            collection.rows.retain(|id, _| !ids.contains(id));
            json!({"deleted": ids.len()})
        }
        ["get"] => {
            let found: Vec<(&String, &Row)> = collection
                .rows
                .iter()
                .filter(|(id, _)| ids.contains(id))
                .collect();
            json!({
                "ids": found.iter().map(|(id, _)| id).collect::<Vec<_>>(),
                "embeddings": found.iter().map(|(_, row)| &row.vector).collect::<Vec<_>>(),
                "documents": found.iter().map(|(_, row)| &row.document).collect::<Vec<_>>(),
                "metadatas": null,
            })
        }
        ["query"] if is_strange => {
            json!({"ids": [["7000001", "7000002", "7000003"]], "distances": [[-0.5, 1.0, 9.0]], "documents": null, "metadatas": null, "embeddings": null})
        }
        ["query"] => query(collection, body),
        _ => return failed(StatusCode::NOT_FOUND, "no such call"),
    };
    axum::Json(given).into_response()
}

fn query(collection: &Collection, body: &Value) -> Value {
    let vector = numbers(&body["query_embeddings"][0]);
    let count = body["n_results"]
        .as_u64()
        .and_then(|count| usize::try_from(count).ok())
        .unwrap_or(10);
    let among: Option<HashSet<i64>> = body["where"]["key"]["$in"]
        .as_array()
        .map(|keys| keys.iter().filter_map(Value::as_i64).collect());
    let key = |row: &Row| {
        row.metadata
            .as_object()
            .and_then(|map: &Map<String, Value>| map.get("key")?.as_i64())
    };
    let mut found: Vec<(f64, &String)> = collection
        .rows
        .iter()
        .filter(|(_, row)| {
            among
                .as_ref()
                .is_none_or(|among| key(row).is_some_and(|key| among.contains(&key)))
        })
        .map(|(id, row)| {
            (
                1.0 - row
                    .vector
                    .iter()
                    .zip(&vector)
                    .map(|(left, right)| left * right)
                    .sum::<f64>(),
                id,
            )
        })
        .collect();
    found.sort_by(|left, right| left.0.total_cmp(&right.0));
    found.truncate(count);
    json!({
        "ids": [found.iter().map(|(_, id)| id).collect::<Vec<_>>()],
        "distances": [found.iter().map(|(distance, _)| distance).collect::<Vec<_>>()],
        "documents": null, "metadatas": null, "embeddings": null,
    })
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect()
}

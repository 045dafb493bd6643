//! A whole front end over a real socket, in front of the real store and tools in a folder of its own; the doubles
//! stand for what lies outside of this program.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use axum::body::Bytes;
use futures_util::{StreamExt as _, stream};
use tidegate_core::{
    caller::{Scope, Scopes},
    clock::Timestamp,
    id::{RunId, UserId},
    key::{KeyPolicy, KeyRecord},
    model::{FinishReason, ModelError, ModelEvent, ModelInfo, ModelRef, ModelRequest},
    port::{ModelStream, UsageRecord},
    secret::PlainKey,
    usage::{Role, Usage},
};
use tidegate_engine::{
    capabilities::Surroundings, hooks::Hooks, prompt, prompt::Composer, routing, routing::RoutingGate,
};
use tidegate_gate::{
    PermissionGate, Policy, Zones,
    guards::{address, outbound, secrets::Redactor},
    shell,
};
use tidegate_io::{
    files::View,
    guarded,
    lines::{self, LineWriter},
    operator_files::Disk,
};
use tidegate_store::Store;
use tidegate_tools::{Isolation, Outside, Tools};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::task::TaskTracker;

use super::{
    super::*,
    outside::{Keys, Readiness},
};
use crate::{audit::NoTrail, keys};

#[derive(Debug)]
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }
}

#[derive(Debug, Default)]
pub(super) struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self
            .0
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    }
}

/// A provider that repeats what the human said last, word by word.
#[derive(Debug)]
struct Parrot;

#[async_trait]
impl ChatModel for Parrot {
    async fn resolve(&self, requested: &str) -> Result<ModelRef, ModelError> {
        match requested {
            "tidegate" | "org/parrot:1" => Ok(ModelRef {
                requested: requested.to_owned(),
                provider: "parrots".into(),
                name: "parrot".into(),
                native_tools: true,
                context_tokens: None,
            }),
            _ => Err(ModelError::NotFound(requested.to_owned())),
        }
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let said = tidegate_core::message::last_human_text(&request.messages).unwrap_or_default();
        if said == "overflow" {
            return Err(ModelError::ContextLength {
                limit_tokens: Some(8),
                prompt_tokens: Some(9),
            });
        }
        let mut events: Vec<_> = said
            .split_inclusive(' ')
            .map(|word| Ok(ModelEvent::Text(word.to_owned())))
            .collect();
        let usage = Some(Usage {
            input_tokens: 3,
            output_tokens: 2,
            ..Usage::default()
        });
        events.push(Ok(ModelEvent::Finished {
            reason: FinishReason::Stop,
            usage,
        }));
        Ok(stream::iter(events).boxed())
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ModelError> {
        let model = |id: &str| ModelInfo {
            id: id.into(),
            created: 0,
            owned_by: "parrots".into(),
            context_tokens: None,
        };
        Ok(vec![model("tidegate"), model("org/parrot:1")])
    }
}

/// A front end that serves on a port of its own until it is dropped.
pub(super) struct Server {
    pub(super) host: String,
    pub(super) admin: PlainKey,
    pub(super) keys: Arc<Keys>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) shutdown: CancellationToken,
    pub(super) tasks: JoinSet<usize>,
    /// Seeds of keys, each used once.
    made: AtomicU64,
    /// What writes to the disk; ends with the server.
    _workers: JoinSet<()>,
    _folder: tempfile::TempDir,
}

impl Server {
    pub(super) async fn start(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let entropy = Arc::new(Counting::default());
        let shutdown = CancellationToken::new();
        let mut workers = JoinSet::new();
        let store_options = tidegate_store::Options {
            path: home.join("tidegate.db"),
            ..tidegate_store::Options::default()
        };
        let (store, worker) = Store::open(store_options, Arc::new(Noon)).await.unwrap();
        workers.spawn(worker.run(CancellationToken::new()));
        let (log, worker) = LineWriter::open(lines::Options::new(home.join("lines.jsonl")));
        workers.spawn(worker.run(CancellationToken::new()));
        let keys = Arc::new(Keys {
            store: store.clone(),
            meanwhile: Mutex::default(),
        });
        let readiness = Arc::new(Readiness::default());
        let router = router(Parts {
            engine: Arc::new(engine(home, &store, Arc::new(log), &entropy)),
            keys: keys.clone(),
            ledger: Arc::new(store.clone()),
            runs: Arc::new(store.clone()),
            approvals: Arc::new(store.clone()),
            people: Arc::new(store),
            audit: Arc::new(NoTrail),
            knowledge: None,
            knowledge_bank: home.to_owned(),
            documents: Arc::new(NoDocuments),
            approval_s: 300,
            models: Arc::new(Parrot),
            readiness: readiness.clone(),
            clock: Arc::new(Noon),
            entropy,
            options: options.clone(),
            shutdown: shutdown.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let mut tasks = JoinSet::new();
        let stop = shutdown.clone();
        tasks.spawn(async move { serve::run(listener, router, &options, stop).await });
        let mut server = Self {
            host,
            admin: PlainKey::new(""),
            keys,
            readiness,
            shutdown,
            tasks,
            made: AtomicU64::new(1_000_000),
            _workers: workers,
            _folder: folder,
        };
        server.admin = server
            .add_key(|policy| policy.scopes = Scopes::from(Scope::ALL))
            .await;
        server
    }

    /// Books a call of a key on the day that it is.
    pub(super) fn spend(&self, key: &PlainKey, usage: Usage) {
        let key_id = keys::parse(key.expose()).unwrap().id;
        self.keys.store.record(UsageRecord {
            at: Noon.now(),
            day: Noon.today(),
            user: UserId::of(&key_id, None).unwrap(),
            key_id,
            run_id: RunId::new("run_spent"),
            provider: "parrots".into(),
            model: "parrot".into(),
            role: Role::Main,
            usage,
            reservation: None,
        });
    }

    pub(super) async fn add_key(&self, change: impl FnOnce(&mut KeyPolicy)) -> PlainKey {
        let mut policy = KeyPolicy::new("test");
        policy.scopes = Scopes::from([Scope::Chat]);
        change(&mut policy);
        let seed = Counting(AtomicU64::new(self.made.fetch_add(1000, Ordering::Relaxed)));
        let (id, plain) = keys::generate(&seed);
        let hash = keys::hash(&plain);
        let record = KeyRecord {
            id,
            hash,
            previous: None,
            created_at: Noon.now(),
            last_used_at: None,
            policy,
        };
        self.keys.insert(&record).await.unwrap();
        plain
    }

    /// Sends bytes as they are and reads until the other side closes.
    pub(super) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        // A refusal may come, and the connection close, before everything was sent.
        drop(stream.write_all(bytes).await);
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// One request of a sound client.
    pub(super) async fn send(&self, method: &str, path: &str, key: &PlainKey, body: &str) -> Answer {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.host,
            key.expose(),
            body.len()
        );
        Answer::of(&self.raw(format!("{head}{body}").as_bytes()).await)
    }
}

/// The real engine with a parrot for a model.
fn engine(home: &std::path::Path, store: &Store, log: Arc<LineWriter>, entropy: &Arc<Counting>) -> Engine {
    let composer = prompt::Options {
        agent_file: home.join("AGENT.md"),
        skills_dir: home.join("skills"),
        ..prompt::Options::default()
    };
    tidegate_io::files::write_private(&composer.agent_file, b"You are a test assistant.\n").unwrap();
    let tools = tidegate_tools::Options {
        knowledge_bank: home.to_owned(),
        ..tidegate_tools::Options::default()
    };
    let policy = guarded::Policy {
        address: address::Policy::default(),
        secrets: outbound::Secrets::none().unwrap(),
    };
    let outside = Outside {
        network: guarded::Client::new(guarded::Options::default(), policy).unwrap(),
        shell: Arc::new(shell::Policy::compile(&shell::Options::default()).unwrap()),
        place: shell::Place::new(home.to_string_lossy(), "/tmp"),
        view: View::open(home).unwrap(),
        knowledge: None,
        isolation: Isolation::Judged,
    };
    let tools = Tools::open(tools, Zones::default(), Arc::new(Noon), outside).unwrap();
    let routing = RoutingGate::new(
        Arc::new(Disk),
        None,
        log.clone(),
        Arc::new(Noon),
        routing::Options::default(),
    );
    Engine::new(tidegate_engine::Parts {
        model: Arc::new(Parrot),
        tools: Arc::new(tools),
        gate: Arc::new(PermissionGate::new(Policy::default())),
        redactor: Arc::new(Redactor::new([]).unwrap()),
        composer: Arc::new(Composer::new(Arc::new(Disk), composer)),
        routing: Arc::new(routing),
        runs: Arc::new(store.clone()),
        ledger: Arc::new(store.clone()),
        held: Arc::new(store.clone()),
        approvals: Arc::new(store.clone()),
        audit: Arc::new(NoTrail),
        hooks: Hooks::default(),
        memory: None,
        tool_log: log.clone(),
        model_log: log,
        prices: Arc::default(),
        surroundings: Surroundings::default(),
        clock: Arc::new(Noon),
        entropy: entropy.clone(),
        tracker: TaskTracker::new(),
        shutdown: CancellationToken::new(),
        options: tidegate_engine::Options::default(),
    })
}

/// An answer, taken apart.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0);
        Self {
            status,
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub(super) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Nobody puts documents in here.
#[derive(Debug)]
struct NoDocuments;

#[async_trait]
impl DocumentDoor for NoDocuments {
    async fn put(&self, _by: &Uploader, path: String, _bytes: Bytes) -> Result<Stored, NotStored> {
        Err(NotStored::Missing(path))
    }

    async fn remove(&self, _by: &Uploader, path: String) -> Result<String, NotStored> {
        Err(NotStored::Missing(path))
    }
}

//! A client with a file of servers, a real gate in front of it, and pins in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{
    caller::{Attendance, Caller, Mode, Scope},
    clock::{Clock, Timestamp},
    error::StoreError,
    id::{CallId, KeyId, RunId, UserId},
    port::{ServerLogins, ToolPin, ToolPins},
    secret::Secret,
    tool::{Arguments, ToolCall, ToolResult, ToolSpec},
};
use tidegate_gate::{Decision, PermissionGate, Policy, Session, ToolBox, ToolContext, guards};
use tidegate_io::{guarded, http::OperatorClient, operator_files::Disk};
use tidegate_mcp::{Hub, McpTools, Options, Parts, References, State, Status, Worker};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a condition may take to come true before the test says that it does not.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<BTreeMap<(String, String), ToolPin>>);

#[async_trait]
impl ToolPins for Pins {
    async fn of_server(&self, server: &str) -> Result<Vec<ToolPin>, StoreError> {
        let pins = self.0.lock().unwrap();
        Ok(pins
            .values()
            .filter(|pin| pin.server == server)
            .cloned()
            .collect())
    }

    async fn put(&self, new: &[ToolPin]) -> Result<(), StoreError> {
        let mut pins = self.0.lock().unwrap();
        pins.extend(
            new.iter()
                .map(|pin| ((pin.server.clone(), pin.tool.clone()), pin.clone())),
        );
        Ok(())
    }

    async fn forget_server(&self, server: &str) -> Result<u64, StoreError> {
        let mut pins = self.0.lock().unwrap();
        let before = pins.len();
        pins.retain(|(of, _), _| of != server);
        Ok((before - pins.len()) as u64)
    }
}

/// Logins in memory.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<BTreeMap<String, Secret>>);

#[async_trait]
impl ServerLogins for Logins {
    async fn find(&self, server: &str) -> Result<Option<Secret>, StoreError> {
        Ok(self.0.lock().unwrap().get(server).cloned())
    }

    async fn put(&self, server: &str, login: &Secret) -> Result<(), StoreError> {
        self.0.lock().unwrap().insert(server.to_owned(), login.clone());
        Ok(())
    }

    async fn remove(&self, server: &str) -> Result<bool, StoreError> {
        Ok(self.0.lock().unwrap().remove(server).is_some())
    }
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

#[derive(Debug)]
struct Refs;

impl References for Refs {
    fn resolve(&self, reference: &str) -> Result<Secret, String> {
        match reference {
            "env:API_KEY" => Ok(Secret::new("k-1234567890")),
            other => Err(format!("`{other}` is not set; set it")),
        }
    }
}

pub(crate) struct Desk {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) hub: Hub,
    pub(crate) tools: McpTools,
    gate: PermissionGate,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// The program of `examples/scripted_server.rs`, which Cargo builds beside the tests.
pub(crate) fn scripted() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/scripted_server");
    assert!(
        path.exists(),
        "{} is missing: `cargo build -p tidegate-mcp --example scripted_server`",
        path.display()
    );
    path
}

/// An entry that starts the scripted server.
pub(crate) fn entry(words: &[&str]) -> Value {
    json!({"command": scripted(), "args": words})
}

pub(crate) fn options() -> Options {
    Options {
        restart_delay_ms: 20,
        restart_delay_max_ms: 100,
        timeout_ms: 5_000,
        watch_ms: 0,
        ..Options::default()
    }
}

impl Desk {
    /// A running client with these servers.
    pub(crate) async fn with(servers: Value, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pins = Arc::new(Pins::default());
        Self::over(folder, pins, servers, options).await
    }

    pub(crate) async fn over(
        folder: tempfile::TempDir,
        pins: Arc<Pins>,
        servers: Value,
        options: Options,
    ) -> Self {
        write(&folder.path().join("mcp_servers.json"), &servers);
        let (hub, worker) = client(folder.path(), pins, options);
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(worker.run(shutdown.clone()));
        let tools = hub.tools();
        let desk = Self {
            folder,
            hub,
            tools,
            gate: PermissionGate::new(policy()),
            tasks,
            shutdown,
        };
        // The first command is answered when the file has been read.
        desk.hub.reload().await.unwrap();
        desk
    }

    pub(crate) fn rewrite(&self, servers: &Value) {
        write(&self.folder.path().join("mcp_servers.json"), servers);
    }

    pub(crate) fn status(&self, server: &str) -> Status {
        let all = self.hub.status();
        all.into_iter().find(|status| status.name == server).unwrap()
    }

    /// Waits until something about a server holds. The look is repeated, since servers are other processes.
    pub(crate) async fn until(&self, server: &str, holds: impl Fn(&Status) -> bool) -> Status {
        let mut last = None;
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let status = self.status(server);
                if holds(&status) {
                    return status;
                }
                last = Some(status);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        found.unwrap_or_else(|_| panic!("it did not come true: {last:#?}"))
    }

    pub(crate) async fn ready(&self, server: &str) -> Status {
        self.until(server, |status| status.state == State::Ready).await
    }

    pub(crate) fn spec(&self, name: &str) -> Option<Arc<ToolSpec>> {
        self.tools.specs().iter().find(|spec| spec.name == name).cloned()
    }

    /// A call in full-auto mode, through check, facts and the gate, as the engine makes it.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        self.call_as(name, arguments, Mode::FullAuto).await
    }

    pub(crate) async fn call_as(&self, name: &str, arguments: Value, mode: Mode) -> ToolResult {
        let spec = self.spec(name).unwrap_or_else(|| panic!("{name} is not offered"));
        let call = ToolCall {
            id: CallId::new("c1"),
            name: name.to_owned(),
            arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
        };
        if let Err(result) = self.tools.check(&call, &spec) {
            return result;
        }
        let facts = self.tools.facts(&call, &spec, mode).await;
        match self.gate.decide(call, &spec, &facts, &session(mode), None) {
            Decision::Allow(call) => self.tools.run(call, &context()).await,
            Decision::Ask(question) => ToolResult::NeedsApproval {
                reason: question.reason,
                approval_id: None,
            },
            Decision::Deny(denial) => ToolResult::Refused {
                floor: denial.floor.to_owned(),
                reason: denial.reason,
            },
        }
    }

    pub(crate) async fn stop(self) -> tempfile::TempDir {
        self.shutdown.cancel();
        self.tasks.close();
        tokio::time::timeout(PATIENCE, self.tasks.wait()).await.unwrap();
        self.folder
    }
}

pub(crate) fn client(folder: &Path, pins: Arc<Pins>, options: Options) -> (Hub, Worker) {
    let network = guarded::Policy {
        address: guards::address::Policy::compile(&guards::address::Options::default()).unwrap(),
        secrets: guards::outbound::Secrets::none().unwrap(),
    };
    let parts = Parts {
        file: folder.join("mcp_servers.json"),
        files: Arc::new(Disk),
        references: Arc::new(Refs),
        http: OperatorClient::new(&tidegate_io::http::Options::default()).unwrap(),
        network: guarded::Client::new(guarded::Options::default(), network).unwrap(),
        environment: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("LANG".into(), "C".into()),
        ],
        home: folder.to_owned(),
        logs: Some(folder.join("logs")),
        logins: Arc::new(Logins::default()),
        pins,
        clock: Arc::new(Still),
    };
    Hub::new(parts, options)
}

fn policy() -> Policy {
    Policy {
        secrets: Some(Arc::new(
            guards::outbound::Secrets::compile(["sk-very-secret-value-0123"]).unwrap(),
        )),
        ..Policy::default()
    }
}

fn caller() -> Arc<Caller> {
    let key_id = KeyId::new("k1");
    Arc::new(Caller {
        user: UserId::of(&key_id, None).unwrap(),
        key_id,
        scopes: BTreeSet::from([Scope::Tools]),
        mode_ceiling: Mode::FullAuto,
        models: None,
        tools: None,
        tokens_per_day: None,
    })
}

fn session(mode: Mode) -> Session {
    Session {
        caller: caller(),
        mode,
        conversation: "c".to_owned(),
        attendance: Attendance::Attended,
    }
}

pub(crate) fn context() -> ToolContext {
    ToolContext {
        run_id: RunId::new("r1"),
        learner: tidegate_gate::toolbox::Learner::default(),
        host: Arc::new(tidegate_gate::NoHost),
        caller: caller(),
    }
}

/// Puts a text into a file.
pub(crate) fn put(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new();
    let file = file.write(true).create(true).truncate(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

fn write(path: &Path, servers: &Value) {
    put(
        path,
        &serde_json::to_string_pretty(&json!({"mcpServers": servers})).unwrap(),
    );
}

pub(crate) fn text(result: &ToolResult) -> &str {
    let ToolResult::Ok { text, .. } = result else {
        panic!("{result:?}");
    };
    text
}

pub(crate) fn message(result: &ToolResult) -> &str {
    let ToolResult::Failed { message, .. } = result else {
        panic!("{result:?}");
    };
    message
}

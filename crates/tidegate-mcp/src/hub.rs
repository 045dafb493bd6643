//! All servers together: the handle that others hold, and the worker that owns every connection.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tidegate_core::{
    clock::Clock,
    port::{FileFault, OperatorFiles, ServerLogins, ToolPins},
    secret::Secret,
    tool::ToolSpec,
};
use tidegate_io::{guarded, http::OperatorClient};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Endpoint, Event, Note, Options, References, Server, ServersFile, Status,
    connection::Means,
    event::Events,
    library,
    oauth::{self, Login},
    registry::Registry,
    slot::{Slot, Work},
    stderr::Complaints,
    toolbox::McpTools,
};

/// The largest file of servers, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Commands that may wait for the worker.
const COMMANDS_MAX: usize = 16;
/// How long all connections may take to close when everything ends.
const CLOSE: Duration = Duration::from_secs(8);

/// What the client is made of.
#[derive(Debug)]
pub struct Parts {
    /// `mcp_servers.json`.
    pub file: PathBuf,
    /// Reads it.
    pub files: Arc<dyn OperatorFiles>,
    /// What its values refer to.
    pub references: Arc<dyn References>,
    /// For the addresses in it, which the operator wrote.
    pub http: OperatorClient,
    /// Whose policy addresses in arguments, which a model wrote, must pass.
    pub network: guarded::Client,
    /// The variables that every program gets, beside those of its entry: `PATH`, `HOME`, `LANG` and their like.
    pub environment: Vec<(OsString, OsString)>,
    /// Where programs work that name no folder, and where relative paths begin.
    pub home: PathBuf,
    /// Where the servers' own complaints are logged; nowhere by default.
    pub logs: Option<PathBuf>,
    /// What logins at them have yielded.
    pub logins: Arc<dyn ServerLogins>,
    /// What was accepted of their tools.
    pub pins: Arc<dyn ToolPins>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What reading the file again has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// Servers that are started: new ones, and changed ones again.
    pub started: Vec<String>,
    /// Servers that are stopped: gone ones, and changed ones before they are started again.
    pub stopped: Vec<String>,
    /// Servers that go on as they are.
    pub kept: Vec<String>,
    /// Entries that cannot be used.
    pub problems: Vec<Note>,
    /// What is not understood and changes nothing.
    pub warnings: Vec<Note>,
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file as a whole cannot be used; what was in force stays in force.
    #[error("`{file}` cannot be used: {note}")]
    File {
        /// Which.
        file: String,
        /// Why.
        note: Note,
    },
    /// No server of that name.
    #[error("there is no MCP server `{0}`; `tidegate mcp list` shows those there are")]
    UnknownServer(String),
    /// What was accepted cannot be kept, or the changed list not be had.
    #[error("the approval does not hold: {0}")]
    Approval(String),
    /// Somebody could not be logged in or out.
    #[error("the login at `{server}` fails: {problem}")]
    Login {
        /// Where.
        server: String,
        /// Why.
        problem: String,
    },
    /// The worker has ended.
    #[error("the MCP servers are being stopped")]
    Stopped,
}

#[derive(Debug)]
enum Command {
    Reload(oneshot::Sender<Result<Reloaded, Error>>),
    Restart(String, oneshot::Sender<Result<(), Error>>),
}

/// The handle: cheap to clone, never waits for a server.
#[derive(Debug, Clone)]
pub struct Hub {
    registry: Arc<Registry>,
    commands: mpsc::Sender<Command>,
    notes: Arc<RwLock<(Vec<Note>, Vec<Note>)>>,
    network: guarded::Client,
    work: Work,
}

/// Owns the connections. Run it on a tracked task.
#[derive(Debug)]
pub struct Worker {
    registry: Arc<Registry>,
    commands: mpsc::Receiver<Command>,
    notes: Arc<RwLock<(Vec<Note>, Vec<Note>)>>,
    work: Work,
    file: PathBuf,
    files: Arc<dyn OperatorFiles>,
    references: Arc<dyn References>,
    logs: Option<PathBuf>,
    /// What the file last said.
    seen: Option<Result<String, FileFault>>,
    /// The one server that is connected to, whether or not it is switched on; all where there is none.
    only: Option<String>,
}

impl Hub {
    /// The handle and the worker to run for it. Touches nothing yet.
    pub fn new(parts: Parts, options: Options) -> (Self, Worker) {
        let registry = Arc::new(Registry::new(library::specs(&options)));
        let (sender, receiver) = mpsc::channel(COMMANDS_MAX);
        let notes = Arc::default();
        let work = Work {
            means: Arc::new(Means {
                http: parts.http,
                network: parts.network.clone(),
                logins: parts.logins,
                environment: parts.environment,
                home: parts.home,
                options,
                events: Events::new(),
                tasks: TaskTracker::new(),
            }),
            pins: parts.pins,
            clock: parts.clock,
            registry: Arc::downgrade(&registry),
            shutdown: CancellationToken::new(),
        };
        let hub = Self {
            registry: Arc::clone(&registry),
            commands: sender,
            notes: Arc::clone(&notes),
            network: parts.network,
            work: work.clone(),
        };
        let worker = Worker {
            registry,
            commands: receiver,
            notes,
            work,
            file: parts.file,
            files: parts.files,
            references: parts.references,
            logs: parts.logs,
            seen: None,
            only: None,
        };
        (hub, worker)
    }

    /// The servers' tools as a tool box.
    pub fn tools(&self) -> McpTools {
        McpTools::new(
            Arc::clone(&self.registry),
            self.network.clone(),
            self.work.means.options.clone(),
        )
    }

    /// What happens from now on. A receiver that is behind loses the oldest.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.work.means.events.receiver()
    }

    /// Reads the file again and starts, stops and keeps servers accordingly.
    pub async fn reload(&self) -> Result<Reloaded, Error> {
        self.ask(Command::Reload).await?
    }

    /// Ends a server's connection, once its calls are done, and begins a new one.
    pub async fn restart(&self, server: &str) -> Result<(), Error> {
        let server = server.to_owned();
        self.ask(|answer| Command::Restart(server, answer)).await?
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Error> {
        let (answer, waiting) = oneshot::channel();
        self.commands
            .send(command(answer))
            .await
            .map_err(|_ended| Error::Stopped)?;
        waiting.await.map_err(|_ended| Error::Stopped)
    }

    /// Accepts the changed definition of a tool, by either of its names; of all of the server's where none is given.
    /// With a digest, only if the definition is still the one that was looked at. How many were accepted.
    pub async fn approve(
        &self,
        server: &str,
        tool: Option<&str>,
        digest: Option<&str>,
    ) -> Result<usize, Error> {
        let slot = self
            .registry
            .slot(server)
            .ok_or_else(|| Error::UnknownServer(server.to_owned()))?;
        slot.accept(tool, digest, &self.work)
            .await
            .map_err(Error::Approval)
    }

    /// Begins a login at a server: the address that a person opens, and what ends it when they come back to
    /// `redirect_uri`.
    pub async fn login(&self, server: &str, redirect_uri: &str) -> Result<Login, Error> {
        let slot = self
            .registry
            .slot(server)
            .ok_or_else(|| Error::UnknownServer(server.to_owned()))?;
        let means = &self.work.means;
        let failed = |problem: String| Error::Login {
            server: server.to_owned(),
            problem,
        };
        let Endpoint::Remote {
            url,
            oauth: Some(oauth),
            ..
        } = &slot.server.endpoint
        else {
            return Err(failed(
                "its entry has no `oauth`; write `\"oauth\": true` beside its `url`".to_owned(),
            ));
        };
        let desk = oauth::Desk {
            http: &means.http,
            network: &means.network,
            logins: &means.logins,
        };
        let begun = desk.begin(server, url, oauth, redirect_uri).await;
        begun.map_err(|error| failed(error.to_string()))
    }

    /// Forgets a login; false where there was none.
    pub async fn logout(&self, server: &str) -> Result<bool, Error> {
        let removed = self.work.means.logins.remove(server).await;
        removed.map_err(|error| Error::Login {
            server: server.to_owned(),
            problem: error.to_string(),
        })
    }

    /// Every server, in the order of their names.
    pub fn status(&self) -> Vec<Status> {
        self.registry
            .slots()
            .values()
            .map(|slot| Status::of(slot.as_ref()))
            .collect()
    }

    /// The tools of a server, as they are offered.
    pub fn specs_of(&self, server: &str) -> Vec<Arc<ToolSpec>> {
        let slots = self.registry.slots();
        slots.get(server).map_or_else(Vec::new, |slot| {
            slot.catalog()
                .tools
                .iter()
                .map(|tool| Arc::clone(&tool.spec))
                .collect()
        })
    }

    /// Entries that cannot be used, and what is not understood, as of the last reading.
    pub fn notes(&self) -> (Vec<Note>, Vec<Note>) {
        self.notes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Worker {
    /// Connects to this server alone, also where it is switched off, and leaves the file alone afterwards.
    #[must_use]
    pub fn only(mut self, server: &str) -> Self {
        self.only = Some(server.to_owned());
        self
    }

    /// Starts the servers, follows the file and ends with `shutdown`, when every connection is closed.
    pub async fn run(mut self, shutdown: CancellationToken) {
        if let Err(error) = self.reload().await {
            tracing::warn!("no MCP server is started: {error}");
        }
        let watch_ms = self.work.means.options.watch_ms;
        loop {
            let tick = async {
                if watch_ms == 0 {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(watch_ms)).await;
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                command = self.commands.recv() => match command {
                    Some(Command::Reload(answer)) => {
                        let outcome = self.reload().await;
                        // Whoever asked may have gone.
                        drop(answer.send(outcome));
                    }
                    Some(Command::Restart(server, answer)) => drop(answer.send(self.restart(&server))),
                    None => break,
                },
                () = tick => self.look().await,
            }
        }
        self.work.shutdown.cancel();
        let tasks = &self.work.means.tasks;
        tasks.close();
        if tokio::time::timeout(CLOSE, tasks.wait()).await.is_err() {
            tracing::warn!("some MCP servers did not end in time and are killed");
        }
    }

    async fn read(&self) -> Result<String, FileFault> {
        let (files, file) = (Arc::clone(&self.files), self.file.clone());
        let shown = file.display().to_string();
        let read = tokio::task::spawn_blocking(move || files.read(&file, FILE_BYTES_MAX));
        read.await.unwrap_or_else(|broke| {
            Err(FileFault::Unreadable {
                path: shown,
                problem: broke.to_string(),
            })
        })
    }

    /// Reloads if the file says something else.
    async fn look(&mut self) {
        let text = self.read().await;
        if self.seen.as_ref() == Some(&text) {
            return;
        }
        match self.apply(text) {
            Ok(reloaded) => tracing::info!(
                started = reloaded.started.len(),
                stopped = reloaded.stopped.len(),
                "the file of MCP servers has changed"
            ),
            Err(error) => tracing::warn!("the changed file of MCP servers is not used: {error}"),
        }
    }

    async fn reload(&mut self) -> Result<Reloaded, Error> {
        let text = self.read().await;
        self.apply(text)
    }

    fn apply(&mut self, text: Result<String, FileFault>) -> Result<Reloaded, Error> {
        self.seen = Some(text.clone());
        let whole = |note: Note| Error::File {
            file: self.file.display().to_string(),
            note,
        };
        let parsed = match text {
            Ok(text) => {
                let servers_max = self.work.means.options.servers_max;
                ServersFile::parse(&text, servers_max, self.references.as_ref()).map_err(whole)?
            }
            // No file, no servers.
            Err(FileFault::Missing(_)) => ServersFile::default(),
            Err(fault @ FileFault::Unreadable { .. }) => {
                return Err(whole(Note {
                    server: String::new(),
                    key: String::new(),
                    text: fault.to_string(),
                }));
            }
        };
        for note in &parsed.problems {
            tracing::warn!("an MCP server is not started: {note}");
        }
        for note in &parsed.warnings {
            tracing::warn!("in the file of MCP servers: {note}");
        }
        let mut reloaded = Reloaded {
            problems: parsed.problems.clone(),
            warnings: parsed.warnings.clone(),
            ..Reloaded::default()
        };
        *self.notes.write().unwrap_or_else(PoisonError::into_inner) = (parsed.problems, parsed.warnings);
        let mut servers = parsed.servers;
        if let Some(only) = &self.only {
            servers.retain(|server| server.name == *only);
            for server in &mut servers {
                server.enabled = true;
            }
        }
        self.exchange(servers, &mut reloaded);
        Ok(reloaded)
    }

    /// Puts these servers in the place of those there are.
    fn exchange(&self, servers: Vec<Server>, reloaded: &mut Reloaded) {
        let mut before = self.registry.slots();
        let mut slots = BTreeMap::new();
        let mut fresh = Vec::new();
        for server in servers {
            let name = server.name.clone();
            let slot = match before.remove(&name) {
                Some(slot) if slot.server == server => {
                    reloaded.kept.push(name.clone());
                    slot
                }
                other => {
                    before.extend(other.map(|slot| (name.clone(), slot)));
                    if server.enabled {
                        reloaded.started.push(name.clone());
                    }
                    let slot = Arc::new(self.slot(server));
                    fresh.push(Arc::clone(&slot));
                    slot
                }
            };
            slots.insert(name, slot);
        }
        self.registry.set(slots);
        for (name, slot) in before {
            if slot.server.enabled {
                reloaded.stopped.push(name);
            }
            slot.stop.cancel();
        }
        for slot in fresh {
            self.start(slot);
        }
    }

    fn slot(&self, server: Server) -> Slot {
        let secrets: Vec<Secret> = match &server.endpoint {
            Endpoint::Stdio { env, .. } => env.iter().map(|(_, value)| value.clone()).collect(),
            Endpoint::Remote { .. } => Vec::new(),
        };
        let is_logged = server.enabled && matches!(server.endpoint, Endpoint::Stdio { .. });
        let folder = self.logs.as_deref().filter(|_| is_logged);
        let slug = crate::names::slug(&server.name);
        let (complaints, writer) = Complaints::open(folder, &slug, Arc::clone(&self.work.clock), secrets);
        if let Some(writer) = writer {
            let shutdown = self.work.shutdown.clone();
            self.work.means.tasks.spawn(writer.run(shutdown));
        }
        Slot::new(server, complaints, &self.work.means)
    }

    fn start(&self, slot: Arc<Slot>) {
        let work = self.work.clone();
        self.work.means.tasks.spawn(slot.keep(work));
    }

    fn restart(&self, name: &str) -> Result<(), Error> {
        let mut slots = self.registry.slots();
        let slot = slots
            .get_mut(name)
            .ok_or_else(|| Error::UnknownServer(name.to_owned()))?;
        let fresh = Arc::new(self.slot(slot.server.clone()));
        let old = std::mem::replace(slot, Arc::clone(&fresh));
        self.registry.set(slots);
        old.stop.cancel();
        self.start(fresh);
        Ok(())
    }
}

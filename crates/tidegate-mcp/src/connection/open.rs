//! Opening a connection: start or dial, then the handshake, all under one deadline.
//!
//! `initialize` comes first: it waits for slow starters, where a probe for the newer way would give up on them and be
//! answered too late. Only where a server refuses it, the newer way is tried, over a connection of its own.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _},
    transport::{
        Transport,
        streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig},
    },
};
use tidegate_core::port::ServerLogins;
use tidegate_io::{
    child::{ChildStderr, Program},
    guarded,
    http::OperatorClient,
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Connection, Open};
use crate::{
    Options,
    client::Client,
    event::Events,
    oauth::{self, Session},
    servers_file::{Endpoint, Handshake, OAuth, Server, Wire},
    stderr::Complaints,
    text,
    transport::{
        Fault,
        http::{Bearer, Door},
        sse::TwoWay,
        stdio::Pipes,
        watched::{Notices, Watched},
    },
};

/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What connections are made with.
#[derive(Debug)]
pub(crate) struct Means {
    /// For addresses; the operator wrote them.
    pub(crate) http: OperatorClient,
    /// For addresses that a server names when somebody logs in.
    pub(crate) network: guarded::Client,
    /// What logins have yielded.
    pub(crate) logins: Arc<dyn ServerLogins>,
    /// The variables that every program gets.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where programs work that name no folder, and where relative ones begin.
    pub(crate) home: PathBuf,
    pub(crate) options: Options,
    pub(crate) events: Events,
    /// Owns the tasks that read standard errors.
    pub(crate) tasks: TaskTracker,
}

/// Why no connection came about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    /// The program cannot be started.
    #[error("`{command}` cannot be started: {problem}; check `command`, and `PATH` in `env`")]
    NotStarted {
        /// The program.
        command: String,
        /// The operating system's reason.
        problem: String,
    },
    /// It was not there in time.
    #[error("it was not ready within {0} ms; raise `connect_timeout_ms` where it needs longer")]
    TimedOut(u64),
    /// Somebody has to log in.
    #[error(
        "it wants an authorization; write `\"oauth\": true` and run `tidegate mcp login`, or `bearer_token_env` with the name of a variable that holds a token"
    )]
    Unauthorized,
    /// The login is missing or has ended.
    #[error("nobody is logged in there; run `tidegate mcp login {0}`")]
    LoggedOut(String),
    /// The server refuses this way of beginning.
    #[error("it refuses the connection: {0}")]
    Refused(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Opens a connection to a server.
pub(crate) async fn open(
    server: &Server,
    means: &Means,
    complaints: &Arc<Complaints>,
) -> Result<Open, OpenError> {
    let limit_ms = server
        .connect_timeout_ms
        .unwrap_or(means.options.connect_timeout_ms);
    let attempt = Attempt {
        server,
        means,
        complaints,
    };
    let opened = tokio::time::timeout(Duration::from_millis(limit_ms), Box::pin(attempt.any_way())).await;
    match opened {
        Ok(opened) => opened,
        Err(_elapsed) => Err(OpenError::TimedOut(limit_ms)),
    }
}

struct Attempt<'a> {
    server: &'a Server,
    means: &'a Means,
    complaints: &'a Arc<Complaints>,
}

impl Attempt<'_> {
    async fn any_way(&self) -> Result<Open, OpenError> {
        match self.server.handshake {
            Handshake::Initialize => self.by(initialize()).await,
            Handshake::Discover => self.by(discover()).await,
            Handshake::Any => match self.by(initialize()).await {
                Err(OpenError::Refused(first)) => {
                    self.by(discover()).await.map_err(|second| match second {
                        // The first answer says more about servers that know one way alone.
                        OpenError::Refused(_) | OpenError::Failed(_) => OpenError::Refused(first),
                        other @ (OpenError::NotStarted { .. }
                        | OpenError::TimedOut(_)
                        | OpenError::Unauthorized
                        | OpenError::LoggedOut(_)) => other,
                    })
                }
                other => other,
            },
        }
    }

    async fn by(&self, way: ClientLifecycleMode) -> Result<Open, OpenError> {
        match &self.server.endpoint {
            Endpoint::Stdio { .. } => self.stdio(way).await,
            Endpoint::Remote {
                url,
                headers,
                bearer,
                oauth,
                wire,
            } => {
                let bytes_max = self.means.options.message_bytes_max;
                let bearer = match (bearer, oauth) {
                    (Some(token), _) => Bearer::Fixed(token.clone()),
                    (None, Some(oauth)) => Bearer::Login(self.session(url, oauth).await?),
                    (None, None) => Bearer::None,
                };
                let door = Door::new(self.means.http.clone(), headers, bearer, bytes_max);
                match wire {
                    Wire::Http => self.http(door, url, way).await,
                    Wire::Sse => self.sse(door, url, way).await,
                    Wire::Any => match self.http(door.clone(), url, way.clone()).await {
                        Err(OpenError::Refused(first)) => self
                            .sse(door, url, way)
                            .await
                            .map_err(|_second| OpenError::Refused(first)),
                        other => other,
                    },
                }
            }
        }
    }

    async fn session(&self, url: &str, oauth: &OAuth) -> Result<Arc<Session>, OpenError> {
        let desk = oauth::Desk {
            http: &self.means.http,
            network: &self.means.network,
            logins: &self.means.logins,
        };
        match desk.session(&self.server.name, url, oauth).await {
            Ok(session) => Ok(Arc::new(session)),
            Err(oauth::Error::LoggedOut) => Err(OpenError::LoggedOut(self.server.name.clone())),
            Err(error) => Err(OpenError::Failed(error.to_string())),
        }
    }

    fn notices(&self) -> Arc<Notices> {
        Arc::new(Notices::new(&self.server.name, self.means.events.clone()))
    }

    async fn stdio(&self, way: ClientLifecycleMode) -> Result<Open, OpenError> {
        let notices = self.notices();
        let (pipes, stderr) = self.start(&notices)?;
        let complaints = Arc::clone(self.complaints);
        let drained = self
            .means
            .tasks
            .spawn(async move { complaints.drain(stderr).await });
        let opened = self.shake_hands(pipes, notices, way).await;
        if let Err(OpenError::Failed(reason)) = opened {
            // It has ended, so its last words come at once; what keeps the pipe open is not waited for.
            drop(tokio::time::timeout(Duration::from_millis(200), drained).await);
            let words = self.complaints.last_words();
            let words = words.map_or_else(String::new, |words| format!("; it said: {words}"));
            return Err(OpenError::Failed(format!("{reason}{words}")));
        }
        opened
    }

    fn start(&self, notices: &Arc<Notices>) -> Result<(Pipes, ChildStderr), OpenError> {
        let Endpoint::Stdio {
            command,
            args,
            env,
            cwd,
            limits,
        } = &self.server.endpoint
        else {
            return Err(OpenError::Failed("it is no program".to_owned()));
        };
        let own = env
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value.expose())));
        let base = self
            .means
            .environment
            .iter()
            .filter(|(name, _)| env.iter().all(|(own, _)| name.to_str() != Some(own.as_str())));
        let folder = match cwd {
            Some(folder) => self.means.home.join(folder),
            None => self.means.home.clone(),
        };
        let program = if command.contains('/') {
            self.means.home.join(command)
        } else {
            PathBuf::from(command)
        };
        let program = Program {
            program,
            arguments: args.iter().map(OsString::from).collect(),
            folder,
            environment: base.cloned().chain(own).collect(),
            limits: *limits,
        };
        let running = program.spawn().map_err(|problem| OpenError::NotStarted {
            command: text::line(command, REASON_CHARS_MAX),
            problem: problem.to_string(),
        })?;
        Ok(Pipes::of(
            running,
            self.means.options.message_bytes_max,
            Arc::clone(notices),
        ))
    }

    async fn http(&self, door: Door, url: &str, way: ClientLifecycleMode) -> Result<Open, OpenError> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned())
            .max_concurrent_requests(self.means.options.calls_max);
        config.allow_stateless = true;
        config.reinit_on_expired_session = true;
        config.max_sse_event_size = self.means.options.message_bytes_max;
        config.max_json_response_size = self.means.options.message_bytes_max;
        let transport = StreamableHttpClientTransport::with_client(door, config);
        self.shake_hands(transport, self.notices(), way).await
    }

    async fn sse(&self, door: Door, url: &str, way: ClientLifecycleMode) -> Result<Open, OpenError> {
        let transport = TwoWay::open(door, url).await.map_err(|fault| told(&fault))?;
        self.shake_hands(transport, self.notices(), way).await
    }

    async fn shake_hands<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        notices: Arc<Notices>,
        way: ClientLifecycleMode,
    ) -> Result<Open, OpenError> {
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        let watched = Watched::new(transport, Arc::clone(&notices), guard);
        let client = Client::new(self.server, Arc::clone(&notices));
        let running = Box::pin(client.serve_with_lifecycle(watched, way))
            .await
            .map_err(|error| reason(&error))?;
        let calls_max = self.means.options.calls_max.max(1);
        let connection = Arc::new(Connection {
            peer: running.peer().clone(),
            notices,
            closed,
            broken: CancellationToken::new(),
            work: TaskTracker::new(),
            permits: Arc::new(Semaphore::new(calls_max)),
            calls_max,
            alone: self.server.allows_sampling.then(|| Semaphore::new(1)),
        });
        Ok(Open { connection, running })
    }
}

fn initialize() -> ClientLifecycleMode {
    ClientLifecycleMode::Initialize
}

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

/// What a fault of our own transport means for the attempt.
fn told(fault: &Fault) -> OpenError {
    match fault {
        Fault::Status { status: 401, .. } | Fault::Login => OpenError::Unauthorized,
        Fault::Status {
            status: 400..=499, ..
        } => OpenError::Refused(fault.to_string()),
        Fault::Pipe(_)
        | Fault::Message(_)
        | Fault::Http(_)
        | Fault::Status { .. }
        | Fault::Redirect
        | Fault::Protocol(_) => OpenError::Failed(fault.to_string()),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of the SDK, which grows with the protocol"
)]
fn reason(error: &ClientInitializeError) -> OpenError {
    if error.is_authorization_required() {
        return OpenError::Unauthorized;
    }
    let ours = |text: &str| OpenError::Failed(text::line(text, REASON_CHARS_MAX));
    match error {
        ClientInitializeError::JsonRpcError(data) => OpenError::Refused(text::line(
            &format!("{} (code {})", data.message, data.code.0),
            REASON_CHARS_MAX,
        )),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            OpenError::Refused("it speaks no version of the protocol that is known here".to_owned())
        }
        ClientInitializeError::ConnectionClosed(_) => ours("it ended before it was ready"),
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            ours("it answered a question nobody asked")
        }
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            ours("its first answer is none that the protocol knows")
        }
        ClientInitializeError::TransportError { error, .. } => {
            if let Some(fault) = our_fault(error.error.as_ref()) {
                return told(fault);
            }
            ours(&error.error.to_string())
        }
        other => ours(&other.to_string()),
    }
}

/// Our own fault inside an error of the SDK.
pub(super) fn our_fault<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Fault> {
    let mut source = Some(error);
    while let Some(current) = source {
        if let Some(fault) = current.downcast_ref::<Fault>() {
            return Some(fault);
        }
        source = inner_fault(current).or_else(|| current.source());
    }
    None
}

/// The SDK's own error shows ours in its text and not as its source.
fn inner_fault<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> Option<&'e (dyn std::error::Error + 'static)> {
    use rmcp::transport::streamable_http_client::StreamableHttpError;
    let error = error.downcast_ref::<StreamableHttpError<Fault>>()?;
    if let StreamableHttpError::Client(fault) = error {
        Some(fault)
    } else {
        None
    }
}

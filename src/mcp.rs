//! The Model Context Protocol, as a server: what is safe of tidegate as tools for other agents.
//!
//! Whoever speaks it is a key, as at every other door. A call of a tool goes through [`Engine::call`], a question to
//! the agent through [`Engine::run`]: the same gate, approvals, audit trail and guards, whatever the transport.
//! In reading order: what is offered at all (`exposure`), who asks (here), the protocol's methods (`handler`), and
//! what each does (`tools`, `ask`, `approve`, `paused`, `resources`, `prompts`). `stdio` serves standard input; `/mcp` is a
//! route of the HTTP front end.

mod approve;
mod ask;
pub mod exposure;
mod handler;
mod page;
mod paused;
mod prompts;
mod resources;
pub mod stdio;
mod tools;

use std::{sync::Arc, time::Duration};

use rmcp::ErrorData;
use serde::{Deserialize, Serialize};
use tidegate_core::{
    caller::{Caller, Mode},
    clock::{Clock, Entropy},
    key::Disconnect,
    port::{ApprovalStore, AuditTrail, KnowledgeBase},
};
use tidegate_engine::{Engine, Lease};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use handler::Handler;

/// What other agents are offered. `[mcp_server]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Options {
    /// Whether the protocol is spoken at all.
    pub enabled: bool,
    /// Whether tools that change, send or fetch something are offered as well, to keys whose ceiling allows it.
    pub allow_writes: bool,
    /// Whether skills are offered as prompts.
    pub skills: bool,
    /// Whether the documents are offered as resources.
    pub documents: bool,
    /// Sessions open at once over HTTP, of clients whose generation of the protocol needs one; one key has at most a
    /// quarter.
    pub sessions_max: usize,
    /// After how long without a message a session is closed, in seconds.
    pub session_idle_s: u64,
    /// How long a call waits for the person whom the client asks for an approval, in seconds; 0 asks nobody.
    pub approval_wait_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_writes: false,
            skills: true,
            documents: true,
            sessions_max: 256,
            session_idle_s: 1800,
            approval_wait_s: 120,
        }
    }
}

/// What the server is plugged into.
#[derive(Debug)]
pub struct Parts {
    /// Runs calls and turns.
    pub engine: Arc<Engine>,
    /// Questions to a person.
    pub approvals: Arc<dyn ApprovalStore>,
    /// Who answered them.
    pub audit: Arc<dyn AuditTrail>,
    /// How long an approval can be spent, in seconds.
    pub approval_s: u64,
    /// The documents; absent where they are switched off.
    pub knowledge: Option<Arc<dyn KnowledgeBase>>,
    /// The name of the model that answers where a client names none.
    pub model: String,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// What is offered.
    pub options: Options,
    /// Cancelled when the process begins to stop.
    pub shutdown: CancellationToken,
    /// How long answers may go on then.
    pub grace: Duration,
    /// Owns what goes on without a request.
    pub tracker: TaskTracker,
}

/// The server: one for all its clients, whatever their transport.
#[derive(Debug, Clone)]
pub struct Server {
    parts: Arc<Parts>,
    paused: Arc<paused::Table>,
}

impl Server {
    /// Plugs the server in.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts: Arc::new(parts),
            paused: Arc::default(),
        }
    }

    /// What is offered.
    pub fn options(&self) -> &Options {
        &self.parts.options
    }

    /// When answers must end: the grace time after the process began to stop.
    async fn stopped(&self) {
        self.parts.shutdown.cancelled().await;
        tokio::time::sleep(self.parts.grace).await;
    }
}

impl std::ops::Deref for Server {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

/// The conversation of a client that names none: all that a key's user asks over this protocol is one.
const CONVERSATION: &str = "mcp";

/// Who asks, as a front end has found out. Every message has one of its own: a key that is switched off in the middle
/// of a session opens nothing from then on.
#[derive(Debug, Clone)]
pub struct Asker {
    /// Who, and how far they may go.
    pub caller: Caller,
    /// What a lost connection does to the key's runs.
    pub on_disconnect: Disconnect,
    /// The mode the request asks for; it can only lower the key's.
    pub mode: Option<Mode>,
    /// Which conversation the request belongs to, where it says so.
    pub conversation: Option<String>,
    /// What the front end has set aside for the request.
    pub lease: Lease,
    /// Where the same key is looked at once more, where its messages do not each bring it along.
    pub door: Option<Arc<stdio::Door>>,
}

impl Asker {
    /// The same, as the key is now: somebody may have taken their time meanwhile. Over HTTP the message that ended
    /// the waiting has been through the layers.
    async fn again(&self) -> Result<Self, ErrorData> {
        match &self.door {
            Some(door) => Arc::clone(door).admit().await,
            None => Ok(self.clone()),
        }
    }

    fn conversation(&self) -> String {
        self.conversation
            .clone()
            .unwrap_or_else(|| CONVERSATION.to_owned())
    }

    /// The mode of what the request does: none that writes, where the operator has not allowed it here.
    fn mode(&self, server: &Server, most: Mode) -> Option<Mode> {
        if server.options.allow_writes {
            return self.mode;
        }
        Some(self.mode.map_or(most, |mode| mode.min(most)))
    }
}

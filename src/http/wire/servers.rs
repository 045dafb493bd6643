//! The shapes of other MCP servers, for administrators.

use serde::{Deserialize, Serialize};
use tidegate_mcp::{Blocked, Note, Reloaded, State, Status};
use utoipa::ToSchema;

/// The MCP servers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ServerList {
    /// `list`.
    object: &'static str,
    data: Vec<ServerBody>,
    /// Entries of the file that cannot be used, each with what to do.
    problems: Vec<String>,
    /// What is not understood in the file and changes nothing.
    warnings: Vec<String>,
}

impl ServerList {
    pub(in crate::http) fn of(servers: Vec<Status>, (problems, warnings): (Vec<Note>, Vec<Note>)) -> Self {
        Self {
            object: "list",
            data: servers.into_iter().map(ServerBody::from).collect(),
            problems: texts(&problems),
            warnings: texts(&warnings),
        }
    }
}

fn texts(notes: &[Note]) -> Vec<String> {
    notes.iter().map(Note::to_string).collect()
}

/// One MCP server.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ServerBody {
    /// `mcp_server`.
    object: &'static str,
    /// Its name in the file.
    name: String,
    /// `starting`, `ready`, `down` or `disabled`.
    state: &'static str,
    /// Why it is down; null where it is not.
    reason: Option<String>,
    /// In how many milliseconds it is tried again; null where it is not down.
    again_in_ms: Option<u64>,
    /// `stdio`, `http`, `sse` or `auto`.
    transport: &'static str,
    /// What it calls itself, and its version.
    software: Option<String>,
    /// The version of the protocol that is spoken.
    protocol: Option<String>,
    /// The tools that are offered, by the names that models know.
    tools: Vec<String>,
    /// The tools that wait for an approval because they have changed.
    blocked: Vec<BlockedBody>,
    /// Tools that are left out, each with its reason.
    remarks: Vec<String>,
    /// How often it was started again.
    restarts: u32,
    /// For how many milliseconds its tools are paused after failures; null where they are not.
    paused_ms: Option<u64>,
    /// Whether its word is taken that a tool only reads.
    trusts_read_only: bool,
}

impl From<Status> for ServerBody {
    fn from(status: Status) -> Self {
        let (reason, again_in_ms) = match &status.state {
            State::Down { reason, again_in_ms } => (Some(reason.clone()), Some(*again_in_ms)),
            State::Starting | State::Ready | State::Disabled => (None, None),
        };
        Self {
            object: "mcp_server",
            state: status.state.name(),
            name: status.name,
            reason,
            again_in_ms,
            transport: status.transport,
            software: status.software,
            protocol: status.protocol,
            tools: status.tools,
            blocked: status.blocked.into_iter().map(BlockedBody::from).collect(),
            remarks: status.remarks,
            restarts: status.restarts,
            paused_ms: status.paused_ms,
            trusts_read_only: status.trusts_read_only,
        }
    }
}

/// A tool that its server has changed since it was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct BlockedBody {
    /// The name that models know it by.
    name: String,
    /// What changed, line by line.
    diff: String,
    /// SHA-256 of the present definition, in hex.
    digest: String,
}

impl From<Blocked> for BlockedBody {
    fn from(blocked: Blocked) -> Self {
        Self {
            name: blocked.name,
            diff: blocked.diff,
            digest: blocked.digest,
        }
    }
}

/// What reading the file again has changed.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ReloadedBody {
    /// `mcp_reload`.
    object: &'static str,
    /// Servers that are started.
    started: Vec<String>,
    /// Servers that are stopped; calls under way end on the old connection.
    stopped: Vec<String>,
    /// Servers that go on as they are.
    kept: Vec<String>,
    /// Entries that cannot be used, each with what to do.
    problems: Vec<String>,
    /// What is not understood and changes nothing.
    warnings: Vec<String>,
}

impl From<Reloaded> for ReloadedBody {
    fn from(reloaded: Reloaded) -> Self {
        Self {
            object: "mcp_reload",
            started: reloaded.started,
            stopped: reloaded.stopped,
            kept: reloaded.kept,
            problems: texts(&reloaded.problems),
            warnings: texts(&reloaded.warnings),
        }
    }
}

/// Which changed tools to accept.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ApproveBody {
    /// The tool, by either of its names. Unset: every changed tool of the server.
    pub(in crate::http) tool: Option<String>,
    /// The digest of the definition that was looked at. Unset: whatever it is now.
    pub(in crate::http) digest: Option<String>,
}

/// How many changed tools were accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ApprovedBody {
    /// `mcp_approval`.
    object: &'static str,
    approved: usize,
}

impl ApprovedBody {
    pub(in crate::http) fn of(approved: usize) -> Self {
        Self {
            object: "mcp_approval",
            approved,
        }
    }
}

//! Who is asking, and how far they may go.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::{KeyId, UserId};

/// What a key opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Talk to the agent, with no server tools.
    Chat,
    /// The operator's tool set, under the gate.
    Tools,
    /// Manage keys.
    Admin,
    /// See approvals that wait, of this key's users; with `approvals:decide:any`, of all.
    #[serde(rename = "approvals:read")]
    ApprovalsRead,
    /// Decide approvals of this key's own users.
    #[serde(rename = "approvals:decide:own")]
    ApprovalsDecideOwn,
    /// Decide approvals of any key's users.
    #[serde(rename = "approvals:decide:any")]
    ApprovalsDecideAny,
}

impl Scope {
    /// Every scope, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Chat,
        Self::Tools,
        Self::Admin,
        Self::ApprovalsRead,
        Self::ApprovalsDecideOwn,
        Self::ApprovalsDecideAny,
    ];

    /// The scope's name on the wire, in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Tools => "tools",
            Self::Admin => "admin",
            Self::ApprovalsRead => "approvals:read",
            Self::ApprovalsDecideOwn => "approvals:decide:own",
            Self::ApprovalsDecideAny => "approvals:decide:any",
        }
    }

    /// The scope of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A set of scopes.
pub type Scopes = BTreeSet<Scope>;

/// Permission mode: one axis, from careful to free. The order of the variants is the order of freedom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Reads pass; nothing else, and nobody can be asked.
    PlanOnly,
    /// Reads pass; every change needs an approval.
    #[default]
    #[serde(rename = "readonly")]
    ReadOnly,
    /// No questions; floors still hold.
    FullAuto,
}

impl Mode {
    /// Every mode, from careful to free.
    pub const ALL: [Self; 3] = [Self::PlanOnly, Self::ReadOnly, Self::FullAuto];

    /// The mode's name everywhere a person meets it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlanOnly => "plan-only",
            Self::ReadOnly => "readonly",
            Self::FullAuto => "full-auto",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Whether somebody can answer a question of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attendance {
    /// A person may answer, now or later.
    #[default]
    Attended,
    /// Nobody: a question is a refusal.
    Deny,
    /// Nobody: a question counts as answered with yes. Floors hold, and a push is refused all the same.
    Approve,
}

/// An authenticated caller: a key is an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The key that was presented.
    pub key_id: KeyId,
    /// The person behind it, namespaced by the key.
    pub user: UserId,
    /// What the key opens.
    pub scopes: Scopes,
    /// The most that any run of this key may be allowed.
    pub mode_ceiling: Mode,
    /// Models the key may use; `None` means all.
    pub models: Option<Vec<String>>,
    /// Server tools the key may use; `None` means all of the operator's.
    pub tools: Option<Vec<String>>,
    /// Tokens a day; `None` means no quota.
    pub tokens_per_day: Option<u64>,
}

impl Caller {
    /// Whether the key opens `scope`.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether the key may use the model of that name.
    pub fn may_use_model(&self, model: &str) -> bool {
        self.models
            .as_ref()
            .is_none_or(|models| models.iter().any(|allowed| allowed == model))
    }
}

/// Through which front end a run came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The HTTP API.
    Http,
    /// A terminal.
    Terminal,
    /// The MCP server.
    Mcp,
    /// A chat service.
    Chat,
    /// The scheduler.
    Cron,
}

//! A run as a row: what the journal keeps, so that a turn is more than the connection that asked for it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    caller::Origin,
    clock::Timestamp,
    id::{CallId, KeyId, RequestId, RunId, UserId},
    usage::Usage,
};

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Under way in a living process.
    Running,
    /// Ended with an answer.
    Completed,
    /// Handed calls to the client and ended there.
    AwaitingClient,
    /// Ended with an error.
    Failed,
    /// The client left, or someone stopped it.
    Cancelled,
    /// The process ended while no side effect was in flight.
    Interrupted,
    /// The process ended while a side effect was in flight: nobody can say whether it happened. Never repeated.
    Indeterminate,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Completed,
        Self::AwaitingClient,
        Self::Failed,
        Self::Cancelled,
        Self::Interrupted,
        Self::Indeterminate,
    ];

    /// The state's name on the wire and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::AwaitingClient => "awaiting_client",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Indeterminate => "indeterminate",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A run when it opens.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// The request that opened it.
    pub request_id: RequestId,
    /// Whose key.
    pub key_id: KeyId,
    /// Whose turn.
    pub user: UserId,
    /// Through which front end.
    pub origin: Origin,
    /// The model, as the client named it.
    pub model: String,
    /// When it opened.
    pub created_at: Timestamp,
}

/// What was about to happen, or had just happened, when a checkpoint was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// About to ask the model. A run may be continued from here.
    BeforeModel {
        /// Counts from 1.
        round: u32,
    },
    /// About to do something that cannot be taken back.
    BeforeEffect {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
    },
    /// It has reported.
    AfterEffect {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// How it ended.
        status: String,
    },
    /// The end.
    End,
}

/// One line of a run's journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// When.
    pub at: Timestamp,
    /// What stood before or behind.
    pub stage: Stage,
    /// Messages, pending calls and budgets spent: enough to go on in another process. `None` where it is
    /// larger than the bound, or where the stage adds nothing to the one before. A store reads two things of it,
    /// to say what a run has cost that was cut off: `spent.usage_by_role`, a [`Usage`] by role, and
    /// `asking_tokens`, about how many the model reads that is about to be asked.
    pub state: Option<Value>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// When.
    pub at: Timestamp,
    /// How it stands now.
    pub state: RunState,
    /// The outcome's name: `answered`, `turn_limit`, `backend_error`, ….
    pub outcome: String,
    /// What it cost.
    pub usage: Usage,
}

/// A run as its owner may see it. No message text.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    /// How it was opened.
    pub record: RunRecord,
    /// How it stands.
    pub state: RunState,
    /// How it ended, once it has.
    pub outcome: Option<String>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What it has cost.
    pub usage: Usage,
    /// The journal: when, and which stage.
    pub journal: Vec<(Timestamp, Stage)>,
}

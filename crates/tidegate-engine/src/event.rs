//! All a front end ever sees of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_core::{
    error::StoreError,
    id::CallId,
    model::{FinishReason, ModelError},
    tool::ToolCall,
    usage::{Role, Usage},
};
use tidegate_gate::Notice;

use crate::sources::Sources;

/// One event of a run, in order. The last is [`RunEvent::Finished`] or [`RunEvent::Failed`], exactly once.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// Visible text.
    Text(String),
    /// Reasoning the provider keeps apart; shown, never stored.
    Reasoning(String),
    /// A server tool was started.
    ToolStarted {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
    },
    /// A server tool ended.
    ToolFinished {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// How: `ok`, `failed`, `refused`, `needs_approval`, `timed_out`, `cancelled`.
        status: &'static str,
    },
    /// A server tool goes on, in the words of whoever runs it: text from outside, cleaned and cut. Such events may be
    /// left out where there are many.
    ToolNotice {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// What goes on.
        notice: Notice,
    },
    /// Calls for the client's own tools, whole. [`RunEvent::Finished`] follows.
    ClientCalls(Vec<ToolCall>),
    /// The end of a run that has an answer.
    Finished(Finished),
    /// The end of a run that has none, or whose answer broke off.
    Failed(RunError),
}

/// How a run with an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The wire's reason.
    pub reason: FinishReason,
    /// What was decided, for the journal and for logs.
    pub outcome: Outcome,
    /// Summed over every internal model call.
    pub usage: Usage,
    /// The same, by role.
    pub usage_by_role: BTreeMap<Role, Usage>,
    /// The passages that the answer rests on.
    pub sources: Sources,
}

/// How a run ended, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model answered.
    Answered,
    /// Calls were handed to the client.
    ClientCalls,
    /// Refused before the model was asked.
    RefusedPreflight,
    /// A bound on rounds or calls was met; the model was asked once more without tools.
    TurnLimit,
    /// Too many calls in a row were refused or need an approval; the model was asked once more without tools.
    DenialLimit,
    /// A budget of tokens, time or the day's quota was met; the answer is what there was.
    BudgetExceeded,
    /// The answer was cut by its token limit.
    Truncated,
    /// The model failed after tools had run; the answer is what there was and says so.
    BackendError,
    /// The model's answer was empty, twice.
    Empty,
}

impl Outcome {
    /// The outcome's name in the journal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::ClientCalls => "client_calls",
            Self::RefusedPreflight => "refused_preflight",
            Self::TurnLimit => "turn_limit",
            Self::DenialLimit => "denial_limit",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Truncated => "truncated",
            Self::BackendError => "backend_error",
            Self::Empty => "empty",
        }
    }
}

/// Why a run has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The model could not be asked, or broke off.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The key may not use that model.
    #[error("the model `{0}` does not exist or this key may not use it")]
    ModelNotAllowed(String),
    /// The request cannot be served as it stands.
    #[error("{message}")]
    Invalid {
        /// The field, as the client knows it.
        param: Option<String>,
        /// What is wrong and how to mend it.
        message: String,
    },
    /// The day's tokens are spent, or too few are left for the call.
    #[error("{}", short_of_quota(*limit_tokens, *left_tokens, *needed_tokens))]
    QuotaSpent {
        /// The quota.
        limit_tokens: u64,
        /// Tokens that are left of it.
        left_tokens: u64,
        /// About how many tokens the call needs at least: its prompt, and a word of an answer.
        needed_tokens: u64,
        /// Until the next day begins, in seconds.
        retry_after_s: u64,
    },
    /// The key has as many turns under way as it may.
    #[error("this key has {turns_max} turns under way already, which is its limit")]
    TooManyTurns {
        /// The limit.
        turns_max: usize,
    },
    /// A time limit of the turn was met before there was any answer.
    #[error("the turn was stopped after {after_ms} ms (`engine.turn_timeout_ms`)")]
    TurnTimeout {
        /// The limit.
        after_ms: u64,
    },
    /// The client left, or the run was stopped.
    #[error("the run was cancelled")]
    Cancelled,
    /// The daemon is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// The prompt could not be composed; the text is for the operator.
    #[error("the system prompt cannot be composed: {0}")]
    Prompt(String),
    /// The store failed.
    #[error("{0}")]
    Store(String),
}

/// Which of the two it is.
fn short_of_quota(limit_tokens: u64, left_tokens: u64, needed_tokens: u64) -> String {
    if left_tokens == 0 {
        return format!("the daily quota of {limit_tokens} tokens of this key is spent");
    }
    format!(
        "{left_tokens} tokens are left of the daily quota of {limit_tokens} tokens of this key, and this request needs \
         about {needed_tokens} for its prompt alone; send a shorter one"
    )
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

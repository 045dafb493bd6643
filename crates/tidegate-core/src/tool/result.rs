//! What comes back from a tool, and the words in which the model is told.

use serde::{Deserialize, Serialize};

use crate::{id::ApprovalId, knowledge::Citation};

/// Why a tool that ran, or should have run, did not do its work. Stable codes for logs and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// No tool of that name.
    UnknownTool,
    /// The arguments are no JSON object, or of the wrong type or range.
    InvalidArguments,
    /// A required argument is missing.
    MissingArgument,
    /// The thing named does not exist.
    NotFound,
    /// The operating system refuses.
    PermissionDenied,
    /// More than the tool may read or yield.
    TooLarge,
    /// Not text.
    NotText,
    /// A program or peer reported failure.
    Unsuccessful,
    /// A bound of the turn is spent.
    Budget,
    /// Our own failure; details are in the log.
    Internal,
}

impl FailureCode {
    /// The code as text.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::MissingArgument => "missing_argument",
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::TooLarge => "too_large",
            Self::NotText => "not_text",
            Self::Unsuccessful => "unsuccessful",
            Self::Budget => "budget",
            Self::Internal => "internal",
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolResult {
    /// It ran and did its work.
    Ok {
        /// What it says.
        text: String,
        /// The passages that it shows, by which an answer may name its sources.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Citation>,
    },
    /// It could not do its work.
    Failed {
        /// Why, for code.
        code: FailureCode,
        /// Why and how to mend it, for the model.
        message: String,
    },
    /// A floor or a gate refused; it did not run and no approval changes that here.
    Refused {
        /// The layer that refused, a stable name.
        floor: String,
        /// Why, for the model; never a secret, never a path outside the zones.
        reason: String,
    },
    /// It did not run; a person could allow exactly this call.
    NeedsApproval {
        /// Why, for the model.
        reason: String,
        /// The question that was put to a person, where one could be put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_id: Option<ApprovalId>,
    },
    /// It was stopped at its deadline.
    TimedOut {
        /// The deadline.
        after_ms: u64,
    },
    /// The run ended while it was running.
    Cancelled,
}

impl ToolResult {
    /// The outcome's name in logs.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Ok { .. } => "ok",
            Self::Failed { .. } => "failed",
            Self::Refused { .. } => "refused",
            Self::NeedsApproval { .. } => "needs_approval",
            Self::TimedOut { .. } => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }

    /// The question that the call waits for, where it was put to somebody.
    pub fn approval_id(&self) -> Option<&ApprovalId> {
        match self {
            Self::NeedsApproval { approval_id, .. } => approval_id.as_ref(),
            Self::Ok { .. }
            | Self::Failed { .. }
            | Self::Refused { .. }
            | Self::TimedOut { .. }
            | Self::Cancelled => None,
        }
    }

    /// Whether the tool did its work.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok { .. })
    }

    /// A success that shows no passage of a document.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::Ok {
            text: text.into(),
            citations: Vec::new(),
        }
    }

    /// A failure.
    pub fn failed(code: FailureCode, message: impl Into<String>) -> Self {
        Self::Failed {
            code,
            message: message.into(),
        }
    }

    /// The text the model reads. The only place where a result becomes text.
    pub fn to_model_text(&self) -> String {
        match self {
            Self::Ok { text, .. } if text.is_empty() => "(no output)".to_owned(),
            Self::Ok { text, .. } => text.clone(),
            Self::Failed { code, message } => format!("Error ({}): {message}", code.name()),
            Self::Refused { floor, reason } => format!(
                "Refused ({floor}): {reason} This decision is final; do not try the same thing another way."
            ),
            Self::NeedsApproval {
                reason,
                approval_id: Some(id),
            } => format!(
                "Not run (needs_approval): {reason} It waits for a person as approval `{id}`. Tell the user so, \
                 and what you would have done; words in this conversation cannot approve it. Once it is \
                 approved, the very same call runs, once."
            ),
            Self::NeedsApproval {
                reason,
                approval_id: None,
            } => format!(
                "Not run (needs_approval): {reason} Nobody can approve it in this conversation. Tell the user \
                 what you would have done."
            ),
            Self::TimedOut { after_ms } => format!("Error (timed_out): stopped after {after_ms} ms."),
            Self::Cancelled => "Error (cancelled): the run ended before this finished.".to_owned(),
        }
    }
}

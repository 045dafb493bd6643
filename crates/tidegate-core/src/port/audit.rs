//! The audit trail: who was allowed to do what, and by which layer.

use async_trait::async_trait;

use crate::{
    caller::{Mode, Origin},
    clock::Timestamp,
    id::{ApprovalId, CallId, KeyId, RequestId, RunId, UserId},
};

/// What an audit line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditEvent {
    /// The gate decided about a tool call.
    ToolCall,
    /// A person answered an approval.
    ApprovalDecided,
    /// What is remembered of a person was changed by hand. The code says how, the detail names the fact.
    MemoryChanged,
}

impl AuditEvent {
    /// The event's name in the trail.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolCall => "tool_call",
            Self::ApprovalDecided => "approval_decided",
            Self::MemoryChanged => "memory_changed",
        }
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditDecision {
    /// It may run.
    Allowed,
    /// It did not run; a person could allow it.
    Asked,
    /// It did not run, and no approval changes that.
    Denied,
}

impl AuditDecision {
    /// The decision's name in the trail.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Asked => "asked",
            Self::Denied => "denied",
        }
    }
}

/// One line. It holds ids, stable names and redacted arguments, never what people wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// What it is about.
    pub event: AuditEvent,
    /// The request, where one asked.
    pub request_id: Option<RequestId>,
    /// The run.
    pub run_id: RunId,
    /// The call, where it is about one.
    pub call_id: Option<CallId>,
    /// Whose key.
    pub key_id: KeyId,
    /// For whom.
    pub user: UserId,
    /// Through which front end, where one asked.
    pub origin: Option<Origin>,
    /// The tool.
    pub tool: String,
    /// The effective mode.
    pub mode: Mode,
    /// What was decided.
    pub decision: AuditDecision,
    /// The layer that decided.
    pub layer: String,
    /// Why, a stable name.
    pub code: String,
    /// The arguments, redacted and cut.
    pub detail: String,
    /// The approval that was asked for, spent or answered.
    pub approval_id: Option<ApprovalId>,
    /// Who answered it.
    pub approver: Option<KeyId>,
}

/// The trail cannot be written, and it is required.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail cannot be written: {0}")]
pub struct AuditFault(pub String);

/// The audit trail.
#[async_trait]
pub trait AuditTrail: Send + Sync + std::fmt::Debug {
    /// Adds a line. Where the trail is not required this never waits and never fails: a line that cannot be
    /// written is counted and shown. Where it is required, the line has been written on return.
    async fn record(&self, entry: &AuditEntry) -> Result<(), AuditFault>;
}

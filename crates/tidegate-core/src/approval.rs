//! An approval: a question to a person about exactly one call, as a row that outlives the request.
//!
//! `pending` → `approved`, `denied` or `expired`; an approved one is `claimed` by the one call that spends it,
//! and then `consumed`, or `indeterminate` where the process ended in between. Every step is a compare-and-set.

use serde::{Deserialize, Serialize};

use crate::{
    caller::Mode,
    clock::Timestamp,
    id::{ApprovalId, KeyId, RunId, UserId},
};

/// How an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Waits for a person.
    Pending,
    /// A person said yes; nothing has spent it yet.
    Approved,
    /// A person said no.
    Denied,
    /// Nobody answered in time, or what it was bound to is no more.
    Expired,
    /// A call is about to run on it.
    Claimed,
    /// The call has run.
    Consumed,
    /// The process ended while the call was under way. Never spent again.
    Indeterminate,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Expired,
        Self::Claimed,
        Self::Consumed,
        Self::Indeterminate,
    ];

    /// The state's name on the wire and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Claimed => "claimed",
            Self::Consumed => "consumed",
            Self::Indeterminate => "indeterminate",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Exactly this call may run, once.
    Approve,
    /// It may not.
    Deny,
}

/// What an approval is bound to. A call that differs in any of it cannot spend the approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalBinding {
    /// Whose key asked.
    pub key_id: KeyId,
    /// For whom.
    pub user: UserId,
    /// In which conversation, a digest.
    pub conversation: String,
    /// In which effective mode.
    pub mode: Mode,
    /// Which tool.
    pub tool: String,
    /// SHA-256 of the call and of what it means in the world, in hex.
    pub fingerprint: String,
    /// SHA-256 of the policy in force, in hex.
    pub policy: String,
}

/// One approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// Its id, not to be guessed.
    pub id: ApprovalId,
    /// The run that asked.
    pub run_id: RunId,
    /// What it is bound to.
    pub binding: ApprovalBinding,
    /// What would happen, in words made from parsed facts, never by the model.
    pub summary: String,
    /// The arguments as JSON text, redacted.
    pub arguments: String,
    /// Why it is asked: stable names.
    pub reasons: Vec<String>,
    /// When it was asked.
    pub created_at: Timestamp,
    /// Until when it can be answered and, once approved, spent.
    pub expires_at: Timestamp,
    /// How it stands.
    pub state: ApprovalState,
    /// Which key answered.
    pub decided_by: Option<KeyId>,
    /// When it was answered.
    pub decided_at: Option<Timestamp>,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// It counts; the approval as it stands now.
    Now(Approval),
    /// The same answer had been given before; nothing changed.
    Before(Approval),
    /// It can no longer be answered so: another answer stands, or the time is over.
    TooLate(Approval),
    /// There is no such approval.
    Missing,
}

/// Which approvals are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalQuery {
    /// Only those of this key's users.
    pub key_id: Option<KeyId>,
    /// Only those of this user.
    pub user: Option<UserId>,
    /// Only those in this state.
    pub state: Option<ApprovalState>,
    /// Begin after this id, in the order of the list, newest first.
    pub after: Option<ApprovalId>,
    /// At most this many, 1 to 100.
    pub limit: u32,
}

/// Part of a list of approvals.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalPage {
    /// The approvals, newest first.
    pub approvals: Vec<Approval>,
    /// Whether more follow.
    pub has_more: bool,
}

//! A stored key: an identity, and everything that bounds it. The raw key is not here and nowhere else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    caller::{Mode, Scope, Scopes},
    clock::Timestamp,
    id::KeyId,
    secret::HashedKey,
};

/// What a lost connection does to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disconnect {
    /// Stop the run.
    #[default]
    Cancel,
    /// Let it finish.
    Finish,
}

/// A key as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRecord {
    /// The public id, part of the key.
    pub id: KeyId,
    /// SHA-256 of the secret.
    pub hash: HashedKey,
    /// The secret that a rotation replaced, and until when it still opens.
    pub previous: Option<PreviousHash>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last opened anything; seconds may be missing after a crash.
    pub last_used_at: Option<Timestamp>,
    /// Everything an operator may change.
    pub policy: KeyPolicy,
}

/// A secret in its grace time after a rotation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PreviousHash {
    /// SHA-256 of the old secret.
    pub hash: HashedKey,
    /// The first instant at which it no longer opens.
    pub valid_until: Timestamp,
}

/// What bounds a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyPolicy {
    /// For people.
    pub name: String,
    /// What it opens.
    pub scopes: Scopes,
    /// False while it is switched off.
    pub enabled: bool,
    /// The first instant at which it no longer opens.
    pub expires_at: Option<Timestamp>,
    /// Requests a minute; `None` means no limit.
    pub requests_per_minute: Option<u32>,
    /// Tokens a day; `None` means no quota.
    pub tokens_per_day: Option<u64>,
    /// Models it may use; `None` means all.
    pub models: Option<Vec<String>>,
    /// Server tools it may use; `None` means all of the operator's.
    pub tools: Option<Vec<String>>,
    /// The most its runs may be allowed.
    pub mode_ceiling: Mode,
    /// What a lost connection does to its runs.
    pub on_disconnect: Disconnect,
    /// Up to 16 pairs of the operator's own.
    pub metadata: BTreeMap<String, String>,
}

impl KeyPolicy {
    /// The policy of a new key of that name: `readonly`, enabled, no limits, no scopes yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scopes: Scopes::new(),
            enabled: true,
            expires_at: None,
            requests_per_minute: None,
            tokens_per_day: None,
            models: None,
            tools: None,
            mode_ceiling: Mode::ReadOnly,
            on_disconnect: Disconnect::Cancel,
            metadata: BTreeMap::new(),
        }
    }

    /// Whether a key of this policy can administer keys at `now`: enabled, not expired, with the scope `admin`.
    pub fn administers(&self, now: Timestamp) -> bool {
        self.enabled && self.scopes.contains(&Scope::Admin) && self.expires_at.is_none_or(|end| now < end)
    }
}

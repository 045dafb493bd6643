//! What is kept: keys, runs, and turns that wait for a client.

use async_trait::async_trait;

use crate::{
    clock::Timestamp,
    error::StoreError,
    id::{CallId, KeyId, RunId, UserId},
    key::{KeyPolicy, KeyRecord},
    knowledge::Citation,
    message::Message,
    run::{Checkpoint, RunEnd, RunRecord, RunView},
    secret::HashedKey,
};

/// Which part of a list is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Begin after this id.
    pub after: Option<KeyId>,
    /// At most this many, 1 to 100.
    pub limit: u32,
    /// Newest first.
    pub newest_first: bool,
}

/// Part of a list of keys.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPage {
    /// The keys.
    pub keys: Vec<KeyRecord>,
    /// Whether more follow.
    pub has_more: bool,
}

/// What became of a change of policy.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyChange {
    /// It stands; the key as it is now.
    Changed(KeyRecord),
    /// The policy was another one than expected and is as it was; the key as it is now, to decide again.
    Conflict(KeyRecord),
    /// There is no such key.
    Missing,
    /// It would have taken the last administrator away, and nothing was changed.
    LastAdmin,
}

/// What became of the removal of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRemoval {
    /// It is gone.
    Removed,
    /// There is no such key.
    Missing,
    /// It is the last administrator, and stays.
    LastAdmin,
}

/// What a change may do to the last administrator: the only key left that [`KeyPolicy::administers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastAdmin {
    /// It stays: a change that would leave nobody is refused, whoever else changes keys at the same time.
    Stays {
        /// Which keys have expired.
        now: Timestamp,
    },
    /// It may go.
    MayGo,
}

/// Keys. Reads see every change that was committed before them, by this process or another.
#[async_trait]
pub trait KeyStore: Send + Sync + std::fmt::Debug {
    /// The key of that public id.
    async fn find(&self, id: &KeyId) -> Result<Option<KeyRecord>, StoreError>;

    /// Adds a key.
    async fn insert(&self, key: &KeyRecord) -> Result<(), StoreError>;

    /// Adds a key only if there is none at all yet; false where there is.
    async fn insert_first(&self, key: &KeyRecord) -> Result<bool, StoreError>;

    /// A page of keys, ordered by creation.
    async fn list(&self, page: &PageRequest) -> Result<KeyPage, StoreError>;

    /// Replaces the policy if it is still `expected` and an administrator is left, in one step: a change by
    /// another process in between is not undone, but answered with [`PolicyChange::Conflict`].
    async fn set_policy(
        &self,
        id: &KeyId,
        expected: &KeyPolicy,
        new: &KeyPolicy,
        last_admin: LastAdmin,
    ) -> Result<PolicyChange, StoreError>;

    /// Puts a new secret in place; the old one opens until `old_valid_until`. `None` where there is no such key.
    async fn rotate(
        &self,
        id: &KeyId,
        new: HashedKey,
        old_valid_until: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError>;

    /// Removes a key if an administrator is left, in one step; then erases what is stored of the words of everybody
    /// behind it, a little at a time. Usage stays, without names.
    async fn delete(&self, id: &KeyId, last_admin: LastAdmin) -> Result<KeyRemoval, StoreError>;

    /// Notes that the key was used. Never waits; reaches the disk within a second.
    fn touch(&self, id: &KeyId, at: Timestamp);
}

/// The journal of runs.
#[async_trait]
pub trait RunStore: Send + Sync + std::fmt::Debug {
    /// Opens a run with its first checkpoint. After an error there is no such run, and none comes later.
    async fn open(&self, run: &RunRecord, first: &Checkpoint) -> Result<(), StoreError>;

    /// Adds a line to the journal; on return it survives the end of the process.
    async fn checkpoint(&self, id: &RunId, checkpoint: &Checkpoint) -> Result<(), StoreError>;

    /// Closes a run; on return it survives the end of the process.
    async fn close(&self, id: &RunId, end: &RunEnd) -> Result<(), StoreError>;

    /// The run, if it belongs to the key.
    async fn find(&self, key_id: &KeyId, id: &RunId) -> Result<Option<RunView>, StoreError>;

    /// The newest checkpoint that holds a state, for continuing a run elsewhere.
    async fn latest_state(&self, id: &RunId) -> Result<Option<Checkpoint>, StoreError>;

    /// Closes what an earlier process left open: `indeterminate` where a side effect was in flight, else
    /// `interrupted`. Returns how many of each.
    async fn recover(&self, now: Timestamp) -> Result<(u64, u64), StoreError>;

    /// Removes ended runs older than `before`; returns how many.
    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError>;
}

/// Server calls and results of a turn that ended with calls for the client, kept for the follow-up.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldTurn {
    /// Whose key.
    pub key_id: KeyId,
    /// Whose turn.
    pub user: UserId,
    /// The ids the client was given.
    pub client_call_ids: Vec<CallId>,
    /// The assistant's full turn and the server's tool results, to stand where the client's copy stands.
    pub messages: Vec<Message>,
    /// The passages that its tools have shown.
    pub citations: Vec<Citation>,
    /// When they are dropped.
    pub expires_at: Timestamp,
}

/// Held turns, per key, bounded, for a limited time.
#[async_trait]
pub trait HeldTurnStore: Send + Sync + std::fmt::Debug {
    /// Keeps the one that `run` has left; drops the key's oldest beyond the bound, and all that have expired. Keeps
    /// nothing where the journal does not know the run of that person any more: who was erased while a turn of theirs
    /// was under way stays erased.
    async fn hold(&self, run: &RunId, turn: &HeldTurn, now: Timestamp) -> Result<(), StoreError>;

    /// The turn that answers any of these ids. It stays until it expires: a retry asks again.
    async fn find(
        &self,
        key_id: &KeyId,
        user: &UserId,
        call_ids: &[CallId],
        now: Timestamp,
    ) -> Result<Option<HeldTurn>, StoreError>;
}

//! Spending: reserved before, booked after.

use async_trait::async_trait;
use jiff::civil::Date;

use crate::{
    clock::Timestamp,
    error::StoreError,
    id::{KeyId, RunId, UserId},
    usage::{Role, Usage},
};

/// Tokens that [`Ledger::reserve`] set aside for one call: which of the calls under way it is. The call's
/// record gives it back, so that a small call that ends early does not free what a large one still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reservation(u64);

impl Reservation {
    /// The reservation of that number; a ledger gives each number once in its life.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The tokens that one call may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// With fewer than these the call makes no sense: its prompt, and a word of an answer.
    pub least_tokens: u64,
    /// It takes no more than these: its prompt, and the longest answer it may have.
    pub most_tokens: u64,
}

/// Tokens that were set aside for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Which reservation this is.
    pub reservation: Reservation,
    /// How many tokens the call may take: as many as it needs at most, or what is left.
    pub tokens: u64,
}

/// One model call's cost.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRecord {
    /// When.
    pub at: Timestamp,
    /// The day it counts towards.
    pub day: Date,
    /// Whose key.
    pub key_id: KeyId,
    /// Whose turn.
    pub user: UserId,
    /// In which run.
    pub run_id: RunId,
    /// The provider that answered.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// What the call was for.
    pub role: Role,
    /// What it cost. A ledger may cut numbers that no model call can have.
    pub usage: Usage,
    /// What was reserved for it, which this record gives back; `None` where nothing was.
    pub reservation: Option<Reservation>,
}

/// A key's day.
#[derive(Debug, Clone, PartialEq)]
pub struct DayUsage {
    /// The day.
    pub day: Date,
    /// Model calls.
    pub calls: u64,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Answer tokens.
    pub output_tokens: u64,
    /// Tokens that a crash left unaccounted for, counted as spent from the open block.
    pub estimated_tokens: u64,
}

/// Why nothing was reserved.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// The day's tokens are spent, or too few are left for the call.
    #[error(
        "of the daily quota of {limit_tokens} tokens {left_tokens} are left, which is too few for the call"
    )]
    QuotaSpent {
        /// The quota.
        limit_tokens: u64,
        /// Tokens that are left of it, beside those of calls under way.
        left_tokens: u64,
    },
    /// The store failed; nothing may be spent.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who has spent what. Checks on the hot path do not wait for the disk: tokens are reserved durably a block
/// at a time before they are spent, so that after a crash the open block counts as spent.
#[async_trait]
pub trait Ledger: Send + Sync + std::fmt::Debug {
    /// Makes sure that the key may spend about `estimate_tokens` more on `day`: refuses where the day's quota
    /// is already spent, and extends the durable block where it is used up. Called before each model call, so
    /// that a quota is overrun by at most one. What is reserved must be booked exactly once, with a
    /// [`Ledger::record`] that carries the reservation, and zero usage where the call did not happen: until
    /// then it counts at what was reserved.
    async fn reserve(
        &self,
        key_id: &KeyId,
        day: Date,
        limit_tokens: Option<u64>,
        estimate_tokens: u64,
    ) -> Result<Reservation, LedgerError>;

    /// The same for a call that can make do with less: where the quota has no room for all that it may take,
    /// and the calls under way leave no more, it is given what is left, and must be kept within that. Refused
    /// where even the least does not fit. A ledger without quotas grants the most.
    async fn reserve_up_to(
        &self,
        key_id: &KeyId,
        day: Date,
        limit_tokens: Option<u64>,
        need: Need,
    ) -> Result<Grant, LedgerError> {
        let tokens = need.most_tokens;
        let reservation = self.reserve(key_id, day, limit_tokens, tokens).await?;
        Ok(Grant { reservation, tokens })
    }

    /// Books a call. Never waits; rows reach the disk within a second.
    fn record(&self, record: UsageRecord);

    /// Tokens the key has spent on `day`, as far as is known now.
    fn spent_tokens(&self, key_id: &KeyId, day: Date) -> u64;

    /// The key's days from `first` to `last`, both included, oldest first.
    async fn usage(&self, key_id: &KeyId, first: Date, last: Date) -> Result<Vec<DayUsage>, StoreError>;

    /// Writes what is not yet on the disk and closes the open blocks. Called at shutdown.
    async fn flush(&self) -> Result<(), StoreError>;
}

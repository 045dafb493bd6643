//! Questions to a person, kept.

use async_trait::async_trait;

use crate::{
    approval::{Answer, Approval, ApprovalBinding, ApprovalPage, ApprovalQuery, ApprovalState, Decided},
    clock::Timestamp,
    error::StoreError,
    id::{ApprovalId, KeyId},
};

/// Approvals. Each change of state is one compare-and-set that is durable on return.
#[async_trait]
pub trait ApprovalStore: Send + Sync + std::fmt::Debug {
    /// Keeps a question. Where the same question (the same binding) already waits, that one is the answer, so
    /// that a model that asks again does not fill a person's list; else `new`. A key has a bounded number of
    /// pending questions; beyond it the oldest expires. An error where the journal does not know the run of that person
    /// any more: who was erased while a turn of theirs was under way stays erased.
    async fn ask(&self, new: &Approval) -> Result<Approval, StoreError>;

    /// The approval of that id, as it stands at `now`: one whose time is over is `expired`.
    async fn find(&self, id: &ApprovalId, now: Timestamp) -> Result<Option<Approval>, StoreError>;

    /// A page, newest first, as they stand at `now`.
    async fn list(&self, query: &ApprovalQuery, now: Timestamp) -> Result<ApprovalPage, StoreError>;

    /// Answers a pending one. An approved one can be spent until `spend_until`.
    async fn decide(
        &self,
        id: &ApprovalId,
        answer: Answer,
        by: &KeyId,
        now: Timestamp,
        spend_until: Timestamp,
    ) -> Result<Decided, StoreError>;

    /// Spends an approved one of exactly this binding: `approved` becomes `claimed`, for one caller of all who
    /// try at once. `None` where there is none.
    async fn claim(&self, binding: &ApprovalBinding, now: Timestamp) -> Result<Option<Approval>, StoreError>;

    /// What became of a claimed one: [`ApprovalState::Consumed`] once the call has reported,
    /// [`ApprovalState::Indeterminate`] where it was cut off, [`ApprovalState::Expired`] where it never began.
    async fn settle(&self, id: &ApprovalId, state: ApprovalState) -> Result<(), StoreError>;

    /// At start: approved ones that nothing has claimed are void, and claimed ones are `indeterminate`.
    /// Pending ones stay. Returns how many of each.
    async fn recover_approvals(&self, now: Timestamp) -> Result<(u64, u64), StoreError>;

    /// Removes ended ones older than `before`; returns how many.
    async fn prune_approvals(&self, before: Timestamp) -> Result<u64, StoreError>;
}

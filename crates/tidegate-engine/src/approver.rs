//! Somebody who can be asked while a call waits, where the front end that it came through has a person at hand.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use tidegate_core::approval::Approval;

/// Puts a question of the gate to a person.
///
/// What it answers opens nothing by itself. Whoever implements it writes the person's answer down where all answers
/// stand, to the audit trail first; the engine then looks for an approval of exactly this call, and spends it.
#[async_trait]
pub trait Approver: Send + Sync + fmt::Debug {
    /// How long an answer may take. The call's own time begins after it.
    fn patience(&self) -> Duration;

    /// Puts the question, with the gate's reason. Returns within [`Self::patience`].
    async fn ask(&self, approval: &Approval, reason: &str) -> Said;
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Yes, and it is written down.
    Yes,
    /// No, and it is written down.
    No,
    /// Nobody was asked, or nobody answered in time: the question goes on waiting.
    Nothing,
}

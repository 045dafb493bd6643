//! What the daemon still lacks, as sentences for the operator. The app implements it; `/health/ready` shows it.

use async_trait::async_trait;

/// One thing that must be in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadinessItem {
    /// A stable word: `database`, `model`, `instructions`, ….
    pub name: &'static str,
    /// Whether it is in place.
    pub ok: bool,
    /// What is missing and what to type; shown to strangers, so no path, host or id. Empty where `ok`.
    pub message: String,
}

/// Knows what is in place.
#[async_trait]
pub trait ReadinessSource: Send + Sync + std::fmt::Debug {
    /// Everything that must be in place, in a fixed order. Asked often: it answers from memory or quickly.
    async fn readiness(&self) -> Vec<ReadinessItem>;
}

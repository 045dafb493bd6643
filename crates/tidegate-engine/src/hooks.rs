//! Hooks: ordered and typed. Gates refuse and fail closed, observers follow and fail open.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::tool::{ToolCall, ToolResult, ToolSpec};
use tidegate_gate::ToolContext;

/// What a gate hook decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookDecision {
    /// Nothing against it.
    Pass,
    /// It may not run; the reason is for the model.
    Refuse(String),
}

/// A hook that broke; the text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookFault(pub String);

/// Asked before a tool runs and before the permission gate, which has the last word. An error, a panic or a
/// time-out is a refusal.
#[async_trait]
pub trait GateHook: Send + Sync + std::fmt::Debug {
    /// Its name in logs and refusals.
    fn name(&self) -> &str;

    /// How long it may take, in milliseconds.
    fn timeout_ms(&self) -> u64 {
        2000
    }

    /// Decides.
    async fn before_tool(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        context: &ToolContext,
    ) -> Result<HookDecision, HookFault>;
}

/// Told after a tool has run. An error is logged and skipped.
#[async_trait]
pub trait ObserverHook: Send + Sync + std::fmt::Debug {
    /// Its name in logs.
    fn name(&self) -> &str;

    /// How long it may take, in milliseconds.
    fn timeout_ms(&self) -> u64 {
        2000
    }

    /// Takes note.
    async fn after_tool(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        result: &ToolResult,
        context: &ToolContext,
    ) -> Result<(), HookFault>;
}

/// The hooks, in the order in which they are asked and told.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// Before a tool.
    pub gates: Vec<Arc<dyn GateHook>>,
    /// After it.
    pub observers: Vec<Arc<dyn ObserverHook>>,
}

//! The tool box port: it stands here because it speaks in `Authorized<ToolCall>`.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{
    caller::{Caller, Mode},
    id::RunId,
    tool::{ToolCall, ToolResult, ToolSpec},
};

use crate::{Authorized, CallHost, Facts};

/// What a runner may know about the turn it works for. No credential is ever in it.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The run.
    pub run_id: RunId,
    /// Whose turn.
    pub caller: Arc<Caller>,
    /// What is known of the person, for tools that plan for them. What a call says goes before it, and no decision rests
    /// on it: the gate does not see it.
    pub learner: Learner,
    /// Where the runner tells what goes on, and asks what it may ask, while the call is under way.
    pub host: Arc<dyn CallHost>,
}

/// A person for whom something is planned, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Learner {
    /// The school year or level.
    pub level: Option<String>,
    /// The main subject.
    pub subject: Option<String>,
    /// What is hard for them.
    pub gaps: Vec<String>,
}

/// The operator's tools. Effect tools only: control tools need the turn and run in the engine.
#[async_trait]
pub trait ToolBox: Send + Sync + std::fmt::Debug {
    /// The registry's rows, control tools included, in file order.
    fn specs(&self) -> Arc<[Arc<ToolSpec>]>;

    /// Checks the arguments of a call against its row: types, ranges, required ones, unknown names. `Err` is
    /// the result to give the model, with the parameter named and an example shown.
    fn check(&self, call: &ToolCall, spec: &ToolSpec) -> Result<(), ToolResult>;

    /// Resolves what the call means in the world, as far as a decision in this mode may need it. Never fails: what
    /// cannot be resolved is a fact too.
    async fn facts(&self, call: &ToolCall, spec: &ToolSpec, mode: Mode) -> Facts;

    /// Runs a call that the gate has allowed. Dropping the future stops the work and what it started.
    async fn run(&self, call: Authorized<ToolCall>, context: &ToolContext) -> ToolResult;
}

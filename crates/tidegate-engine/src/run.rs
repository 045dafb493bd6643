//! The entry: `Engine::run`.

use std::sync::Arc;

use tidegate_core::{
    clock::{Clock, Entropy},
    id::RunId,
    port::{ChatModel, HeldTurnStore, Ledger, LineLog, RunStore},
};
use tidegate_gate::{PermissionGate, ToolBox};
use tokio::sync::mpsc;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{Options, RunError, RunEvent, RunRequest, hooks::Hooks};

/// Everything the engine is plugged into.
#[derive(Debug)]
pub struct Parts {
    /// The models.
    pub model: Arc<dyn ChatModel>,
    /// The operator's tools.
    pub tools: Arc<dyn ToolBox>,
    /// The permission gate.
    pub gate: Arc<PermissionGate>,
    /// The journal.
    pub runs: Arc<dyn RunStore>,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Server calls that wait for a client's answer.
    pub held: Arc<dyn HeldTurnStore>,
    /// Operator hooks, in order.
    pub hooks: Hooks,
    /// One line a tool call.
    pub tool_log: Arc<dyn LineLog>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Owns every run's task; shutdown waits for it.
    pub tracker: TaskTracker,
    /// Cancelled when runs must end now.
    pub shutdown: CancellationToken,
    /// Bounds.
    pub options: Options,
}

/// The engine. Cheap to share; holds no state of any turn.
#[derive(Debug)]
pub struct Engine {
    parts: Parts,
}

/// A run under way, as its viewer holds it.
#[derive(Debug)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    events: mpsc::Receiver<RunEvent>,
    /// Cancels the run when the viewer goes, where that is what the request asked for.
    _cancel: Option<DropGuard>,
}

impl Run {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.events.recv().await
    }
}

impl Engine {
    /// Plugs the engine in.
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Opens a run and works on it in a tracked task. An error here means that no run was opened.
    pub async fn run(self: &Arc<Self>, request: RunRequest) -> Result<Run, RunError> {
        let _ = (&self.parts, request);
        Err(RunError::Stopping)
    }
}

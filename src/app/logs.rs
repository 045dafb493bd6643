//! The lines the daemon leaves behind: triage, tool calls, model calls, and the audit trail.

use std::sync::Arc;

use tidegate_core::port::{AuditTrail, LineLog};
use tidegate_io::lines::{self, LineWriter};

use super::Purpose;
use crate::{
    audit::{NoTrail, Trail},
    config::Settings,
    lifecycle::Lifecycle,
};

/// The logs of JSON lines in the logs folder.
pub(super) struct Logs {
    /// What the routing gate decided.
    pub(super) triage: Arc<dyn LineLog>,
    /// What tools were called.
    pub(super) tools: Arc<dyn LineLog>,
    /// What models were asked; nowhere unless the operator wants it.
    pub(super) models: Arc<dyn LineLog>,
}

impl Logs {
    /// Opens all of them; for looking at what would happen, nothing is written.
    pub(super) fn open(settings: &Settings, lifecycle: &Lifecycle, purpose: Purpose) -> Self {
        let log = |name: &str| match purpose {
            Purpose::Serve => open_log(settings, name, lifecycle),
            Purpose::Look => Arc::new(NoLog),
        };
        Self {
            triage: log("agents/triage.jsonl"),
            tools: log("tools.jsonl"),
            models: if settings.config.logs.models {
                log("models.jsonl")
            } else {
                Arc::new(NoLog)
            },
        }
    }

    /// All of them and the trail's lines, for whoever counts what was dropped.
    pub(super) fn all(self, trail: Option<Arc<dyn LineLog>>) -> Vec<Arc<dyn LineLog>> {
        let logs = [Some(self.triage), Some(self.tools), Some(self.models), trail];
        logs.into_iter().flatten().collect()
    }
}

/// A log of JSON lines in the logs folder; its writer runs until the lifecycle closes.
fn open_log(settings: &Settings, name: &str, lifecycle: &Lifecycle) -> Arc<dyn LineLog> {
    let logs = &settings.config.logs;
    let (writer, worker) = LineWriter::open(lines::Options {
        path: settings.logs.join(name),
        queue_max: logs.queue_lines,
        rotate_bytes: logs.rotate_bytes,
        keep: logs.rotated_kept,
    });
    lifecycle.writers.spawn(worker.run(lifecycle.closing.clone()));
    Arc::new(writer)
}

/// The audit trail; its writer runs until the lifecycle closes.
pub(super) fn open_trail(
    settings: &Settings,
    lifecycle: &Lifecycle,
    purpose: Purpose,
) -> (Arc<dyn AuditTrail>, Option<Arc<dyn LineLog>>) {
    let options = &settings.config.audit;
    if purpose == Purpose::Look || !options.enabled {
        return (Arc::new(NoTrail), None);
    }
    let (trail, worker) = Trail::open(options, &settings.logs);
    lifecycle.writers.spawn(worker.run(lifecycle.closing.clone()));
    let trail = Arc::new(trail);
    (Arc::clone(&trail) as _, Some(trail))
}

/// Nowhere, for looking at what would happen.
#[derive(Debug)]
pub struct NoLog;

impl LineLog for NoLog {
    fn append(&self, line: String) {
        drop(line);
    }

    fn dropped(&self) -> u64 {
        0
    }
}

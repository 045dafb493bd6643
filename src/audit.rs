//! The audit trail: one JSON line for every decision of the gate and every answer to an approval, in a file
//! whose lines are chained (`tidegate_io::chain`).
//!
//! By default it follows: a line that cannot be written is counted, shown on `/health/ready`, and nobody waits.
//! With `audit.required` it stands in the way: what cannot be recorded does not happen.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tidegate_core::{
    approval::{Answer, Approval},
    caller::Mode,
    clock::Timestamp,
    id::{RunId, UserId},
    port::{AuditDecision, AuditEntry, AuditEvent, AuditFault, AuditTrail, LineLog},
};
use tidegate_io::chain;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The most lines written in one go.
const BATCH_LINES_MAX: usize = 256;

/// The audit trail's settings. `[audit]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether there is a trail.
    pub enabled: bool,
    /// Whether an action that cannot be recorded is refused.
    pub required: bool,
    /// The file, relative to the logs folder.
    pub file: String,
    /// The size at which it is put aside, in bytes.
    pub rotate_bytes: u64,
    /// How many files that were put aside are kept.
    pub rotated_kept: usize,
    /// Lines that may wait for the disk; one more is lost and counted, or waits where the trail is required.
    pub queue_lines: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            required: false,
            file: "audit.jsonl".to_owned(),
            rotate_bytes: 16 << 20,
            rotated_kept: 20,
            queue_lines: 4096,
        }
    }
}

impl Options {
    /// The chain in this logs folder.
    pub fn chain(&self, logs: &Path) -> chain::Options {
        chain::Options {
            path: logs.join(&self.file),
            rotate_bytes: self.rotate_bytes,
            keep: self.rotated_kept,
        }
    }
}

/// Tells whoever waits how the writing went.
type Written = oneshot::Sender<Result<(), AuditFault>>;

/// The side that hands over lines.
#[derive(Debug)]
pub struct Trail {
    queue: mpsc::Sender<(Map<String, Value>, Option<Written>)>,
    lost: Arc<AtomicU64>,
    required: bool,
}

impl Trail {
    /// A trail, and the worker that must be run for it.
    pub fn open(options: &Options, logs: &Path) -> (Self, Worker) {
        let (queue, lines) = mpsc::channel(options.queue_lines.max(1));
        let lost = Arc::new(AtomicU64::new(0));
        let trail = Self {
            queue,
            lost: Arc::clone(&lost),
            required: options.required,
        };
        let worker = Worker {
            lines,
            lost,
            chain: options.chain(logs),
        };
        (trail, worker)
    }
}

#[async_trait]
impl AuditTrail for Trail {
    async fn record(&self, entry: &AuditEntry) -> Result<(), AuditFault> {
        let line = line(entry);
        if !self.required {
            if self.queue.try_send((line, None)).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(());
        }
        let (told, written) = oneshot::channel();
        let stopped = || AuditFault("its writer has stopped".to_owned());
        let sent = self.queue.send((line, Some(told))).await;
        sent.map_err(|_stopped| stopped())?;
        written.await.map_err(|_stopped| stopped())?
    }
}

/// For `/health/ready`: how many lines were lost.
impl LineLog for Trail {
    /// Lines come in as entries alone.
    fn append(&self, line: String) {
        drop(line);
    }

    fn dropped(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The side that writes. Run it on a tracked task.
#[derive(Debug)]
pub struct Worker {
    lines: mpsc::Receiver<(Map<String, Value>, Option<Written>)>,
    lost: Arc<AtomicU64>,
    chain: chain::Options,
}

impl Worker {
    /// Writes until `shutdown` is cancelled or the trail is gone, then writes what is still waiting.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut is_failing = false;
        let mut batch = Vec::with_capacity(BATCH_LINES_MAX);
        loop {
            let count = tokio::select! {
                count = self.lines.recv_many(&mut batch, BATCH_LINES_MAX) => count,
                () = shutdown.cancelled(), if !self.lines.is_closed() => {
                    self.lines.close();
                    continue;
                }
            };
            if count == 0 {
                return;
            }
            let (lines, waiting): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
            let chain = self.chain.clone();
            let written = tokio::task::spawn_blocking(move || chain::append(&chain, lines)).await;
            let problem = match written {
                Ok(Ok(())) => None,
                Ok(Err(problem)) => Some(problem.to_string()),
                Err(broken) => Some(broken.to_string()),
            };
            if let Some(problem) = &problem {
                self.lost
                    .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
                if !is_failing {
                    tracing::error!(%problem, "the audit trail cannot be written; its lines are lost and counted until it can");
                }
            } else if is_failing {
                tracing::info!("the audit trail can be written again");
            }
            is_failing = problem.is_some();
            for told in waiting.into_iter().flatten() {
                let outcome = problem.clone().map_or(Ok(()), |problem| Err(AuditFault(problem)));
                // Whoever waited may be gone.
                drop(told.send(outcome));
            }
        }
    }
}

/// No trail: switched off, or nothing is decided for real.
#[derive(Debug)]
pub struct NoTrail;

#[async_trait]
impl AuditTrail for NoTrail {
    async fn record(&self, _: &AuditEntry) -> Result<(), AuditFault> {
        Ok(())
    }
}

/// Writes one line at once, for processes that decide one thing.
pub fn write_now(options: &Options, logs: &Path, entry: &AuditEntry) -> Result<(), chain::Error> {
    if options.enabled {
        chain::append(&options.chain(logs), vec![line(entry)])
    } else {
        Ok(())
    }
}

/// The audit line of an answer.
pub fn decision_entry(approval: &Approval, answer: Answer, at: Timestamp) -> AuditEntry {
    let (decision, code) = match answer {
        Answer::Approve => (AuditDecision::Allowed, "approve"),
        Answer::Deny => (AuditDecision::Denied, "deny"),
    };
    AuditEntry {
        at,
        event: AuditEvent::ApprovalDecided,
        request_id: None,
        run_id: approval.run_id.clone(),
        call_id: None,
        key_id: approval.binding.key_id.clone(),
        user: approval.binding.user.clone(),
        origin: None,
        tool: approval.binding.tool.clone(),
        mode: approval.binding.mode,
        decision,
        layer: "person".to_owned(),
        code: code.to_owned(),
        detail: String::new(),
        approval_id: Some(approval.id.clone()),
        approver: None,
    }
}

/// What is done by hand to what is remembered of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryAct {
    /// A fact is told.
    Add,
    /// Another value takes a fact's place.
    Correct,
    /// A fact is taken back.
    Retract,
    /// A fact is forgotten.
    Forget,
    /// Everything is erased.
    Erase,
    /// A document is taken in.
    Import,
    /// Learning is turned on or off.
    Learning(bool),
    /// Recall is turned on or off.
    Recall(bool),
}

impl MemoryAct {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Correct => "correct",
            Self::Retract => "retract",
            Self::Forget => "forget",
            Self::Erase => "erase",
            Self::Import => "import",
            Self::Learning(true) => "learning_on",
            Self::Learning(false) => "learning_off",
            Self::Recall(true) => "recall_on",
            Self::Recall(false) => "recall_off",
        }
    }
}

/// The audit line of a change by hand: whose memory, what was done, to which fact, and who did it; never a word of it.
/// `by` is `own` for the person, `admin` for an administrator of the key, and `console` for the terminal.
pub fn memory_entry(act: MemoryAct, user: &UserId, by: &str, detail: &str, at: Timestamp) -> AuditEntry {
    AuditEntry {
        at,
        event: AuditEvent::MemoryChanged,
        request_id: None,
        // No run stands behind it: a person did it.
        run_id: RunId::new("none"),
        call_id: None,
        key_id: user.key_id(),
        user: user.clone(),
        origin: None,
        tool: "memory".to_owned(),
        // The least: nothing is run.
        mode: Mode::PlanOnly,
        decision: AuditDecision::Allowed,
        layer: by.to_owned(),
        code: act.name().to_owned(),
        detail: detail.to_owned(),
        approval_id: None,
        approver: None,
    }
}

fn line(entry: &AuditEntry) -> Map<String, Value> {
    let line = json!({
        "ts": entry.at.to_string(),
        "event": entry.event.name(),
        "request": entry.request_id,
        "run": entry.run_id,
        "call": entry.call_id,
        "key": entry.key_id,
        "user": entry.user,
        "surface": entry.origin,
        "tool": entry.tool,
        "mode": entry.mode.name(),
        "decision": entry.decision.name(),
        "layer": entry.layer,
        "reason": entry.code,
        "detail": entry.detail,
        "approval": entry.approval_id,
        "approver": entry.approver,
    });
    match line {
        Value::Object(line) => line,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

//! One line for every model call: who answered, how long it took, what it cost. Ids, names and numbers alone: no
//! prompt, no answer, no argument, no path. Never waited for, and never sent anywhere.

use std::sync::Arc;

use serde_json::json;
use tidegate_core::{
    model::{FinishReason, ModelError, ModelRef},
    port::{LineLog, UsageRecord},
};
use tokio::time::Instant;

use crate::turn::Turn;

/// Characters of a name that a line keeps.
const NAME_CHARS_MAX: usize = 128;

/// The line of a call that is under way.
#[derive(Debug)]
pub(crate) struct Line {
    log: Arc<dyn LineLog>,
    started: Instant,
    /// Provider and model that were asked first.
    asked: (String, String),
    end: End,
}

/// How a call ended.
#[derive(Debug)]
enum End {
    /// It was cut off in the middle: the client left, or the time was over.
    Cancelled,
    /// It came to an end; `None` where we stopped listening.
    Finished(Option<FinishReason>),
    /// It failed.
    Failed { kind: &'static str, status: Option<u16> },
}

impl Line {
    /// The call begins now.
    pub(crate) fn start(turn: &Turn) -> Self {
        Self::of(turn.engine.model_log(), &turn.model)
    }

    /// The same for a call that belongs to no turn.
    pub(crate) fn of(log: &Arc<dyn LineLog>, model: &ModelRef) -> Self {
        Self {
            log: Arc::clone(log),
            started: Instant::now(),
            asked: (model.provider.clone(), model.name.clone()),
            end: End::Cancelled,
        }
    }

    /// How it ended.
    pub(crate) fn ended(&mut self, end: Result<Option<FinishReason>, &ModelError>) {
        self.end = match end {
            Ok(reason) => End::Finished(reason),
            Err(error) => End::Failed {
                kind: error.kind(),
                status: status(error),
            },
        };
    }

    /// Hands the line to the log. What is booked says who answered in the end.
    pub(crate) fn write(self, booked: &UsageRecord, cost_usd: Option<f64>) {
        let latency_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let is_primary = self.asked.0 == booked.provider && self.asked.1 == booked.model;
        let usage = booked.usage;
        let source = match (usage.estimated, usage.total_tokens()) {
            (true, _) => "estimate",
            (false, 0) => "none",
            (false, _) => "provider",
        };
        let (outcome, finish_reason, error, status) = match self.end {
            End::Cancelled => ("cancelled", None, None, None),
            End::Finished(Some(reason)) => ("ok", Some(reason), None, None),
            End::Finished(None) => ("stopped", None, None, None),
            End::Failed { kind, status } => ("error", None, Some(kind), status),
        };
        let line = json!({
            "ts": booked.at.to_string(),
            "event": "model_call",
            "provider": name(&booked.provider),
            "model": name(&booked.model),
            "attempt": if is_primary { "primary" } else { "fallback" },
            "role": booked.role,
            "outcome": outcome,
            "latency_ms": latency_ms,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "token_source": source,
            "cost_usd": cost_usd,
            "finish_reason": finish_reason,
            "error_type": error,
            "error_status": status,
        });
        self.log.append(line.to_string());
    }
}

fn name(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(NAME_CHARS_MAX)
        .collect()
}

fn status(error: &ModelError) -> Option<u16> {
    match error {
        ModelError::Rejected { status, .. } | ModelError::Credentials { status } => Some(*status),
        ModelError::RateLimited { .. } => Some(429),
        ModelError::NotConfigured(_)
        | ModelError::NotFound(_)
        | ModelError::ContextLength { .. }
        | ModelError::Unavailable(_)
        | ModelError::Paused { .. }
        | ModelError::Timeout(_)
        | ModelError::Malformed(_) => None,
    }
}

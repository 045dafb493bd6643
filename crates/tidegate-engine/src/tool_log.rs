//! One line for every tool call, allowed or refused. Redacted, never waited for.

use std::time::Duration;

use serde_json::json;
use tidegate_core::tool::{ToolCall, ToolResult, ToolSpec};

use crate::turn::Turn;

/// Characters of the arguments that a line keeps.
pub(crate) const DETAIL_CHARS_MAX: usize = 512;

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    decision: &'static str,
    reason: Option<&'static str>,
}

impl Verdict {
    /// It ran.
    pub(crate) fn allowed() -> Self {
        Self {
            decision: "allowed",
            reason: None,
        }
    }

    /// It did not run.
    pub(crate) fn refused(reason: &'static str) -> Self {
        Self {
            decision: "refused",
            reason: Some(reason),
        }
    }

    /// It was answered with the result of an identical, earlier call.
    pub(crate) fn reused() -> Self {
        Self {
            decision: "allowed",
            reason: Some("reused"),
        }
    }

    /// It did not run; a person could allow it.
    pub(crate) fn asked(reason: &'static str) -> Self {
        Self {
            decision: "needs_approval",
            reason: Some(reason),
        }
    }

    /// Whether it ran.
    pub(crate) fn is_allowed(&self) -> bool {
        self.decision == "allowed"
    }
}

/// A call's arguments as they may be kept: redacted, and cut after so many characters.
pub(crate) fn arguments(turn: &Turn, call: &ToolCall, chars_max: usize) -> String {
    let text = call.arguments.to_json();
    turn.engine
        .redactor()
        .redact(&text)
        .chars()
        .take(chars_max)
        .collect()
}

/// Hands the line to the log.
pub(crate) fn write(
    turn: &Turn,
    spec: Option<&ToolSpec>,
    call: &ToolCall,
    verdict: &Verdict,
    result: &ToolResult,
    took: Duration,
) {
    let detail = arguments(turn, call, DETAIL_CHARS_MAX);
    let bytes = match result {
        ToolResult::Ok { text, .. } => text.len(),
        ToolResult::Failed { .. }
        | ToolResult::Refused { .. }
        | ToolResult::NeedsApproval { .. }
        | ToolResult::TimedOut { .. }
        | ToolResult::Cancelled => 0,
    };
    let name: String = call.name.chars().filter(|c| !c.is_control()).take(64).collect();
    let line = json!({
        "ts": turn.engine.now().to_string(),
        "request": turn.request.request_id,
        "run": turn.run_id,
        "call": call.id,
        "key": turn.caller.key_id,
        "user": turn.caller.user,
        "surface": turn.request.origin,
        "mode": turn.session.mode.name(),
        "tool": name,
        "tool_mode": spec.map(|spec| spec.mode.name()),
        "effect": spec.map(|spec| spec.effect.name()),
        "decision": verdict.decision,
        "reason": verdict.reason,
        "outcome": result.status(),
        "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "bytes": bytes,
        "detail": detail,
    });
    turn.engine.tool_log().append(line.to_string());
}

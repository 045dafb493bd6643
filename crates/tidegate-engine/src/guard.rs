//! What a tool says before the model hears it: secrets out, control tokens and our own call markup defused,
//! and text from outside wrapped, so that it can be told from instructions.

use tidegate_core::{
    id::CallId,
    tool::{Effect, ToolMode, ToolResult, ToolSpec},
};
use tidegate_gate::guards::untrusted;

use crate::turn::Turn;

/// Guards a result.
pub(crate) fn result(turn: &Turn, spec: &ToolSpec, result: ToolResult) -> ToolResult {
    let clean = |text: &str| untrusted::neutralise(&turn.engine.redactor().redact(text));
    match result {
        ToolResult::Ok { text } => ToolResult::Ok {
            text: wrap(turn, spec, clean(&text)),
        },
        ToolResult::Failed { code, message } => ToolResult::Failed {
            code,
            message: clean(&message),
        },
        ToolResult::Refused { floor, reason } => ToolResult::Refused {
            floor,
            reason: clean(&reason),
        },
        ToolResult::NeedsApproval { reason } => ToolResult::NeedsApproval {
            reason: clean(&reason),
        },
        ToolResult::TimedOut { after_ms } => ToolResult::TimedOut { after_ms },
        ToolResult::Cancelled => ToolResult::Cancelled,
    }
}

/// Wraps what came from another machine or a program. Files of the knowledge bank are the operator's own
/// material: defused, not wrapped, and small models follow them better for it.
fn wrap(turn: &Turn, spec: &ToolSpec, text: String) -> String {
    let outside = match spec.effect {
        Effect::Network | Effect::External => true,
        Effect::Read | Effect::Write => match spec.mode {
            ToolMode::HttpGet | ToolMode::HttpPost | ToolMode::Command => true,
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::WriteText
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::LastOutput
            | ToolMode::Introspect => false,
        },
    };
    if outside {
        let boundary = CallId::generate(turn.engine.entropy());
        untrusted::wrap(&text, &spec.name, boundary.as_str())
    } else {
        text
    }
}

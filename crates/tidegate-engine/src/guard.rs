//! What a tool says before the model hears it: secrets out, control tokens and our own call markup defused,
//! and text from outside wrapped, so that it can be told from instructions.

mod answer;
mod citations;
mod inbound;

use tidegate_core::{
    id::CallId,
    tool::{Effect, ToolMode, ToolResult, ToolSpec},
};
use tidegate_gate::guards::untrusted;

pub(crate) use self::{
    answer::{Answer, Prints, client_call},
    inbound::inbound,
};

use crate::turn::Turn;

/// Guards a result.
pub(crate) fn result(turn: &Turn, spec: &ToolSpec, result: ToolResult) -> ToolResult {
    let clean = |text: &str| untrusted::neutralise(&turn.engine.redactor().redact(text));
    match result {
        ToolResult::Ok { text, citations } => ToolResult::Ok {
            text: wrap(turn, spec, clean(&text)),
            citations,
        },
        ToolResult::Failed { code, message } => ToolResult::Failed {
            code,
            message: clean(&message),
        },
        ToolResult::Refused { floor, reason } => ToolResult::Refused {
            floor,
            reason: clean(&reason),
        },
        ToolResult::NeedsApproval { reason, approval_id } => ToolResult::NeedsApproval {
            reason: clean(&reason),
            approval_id,
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
            ToolMode::HttpGet
            | ToolMode::HttpPost
            | ToolMode::PageTitle
            | ToolMode::Command
            | ToolMode::Shell
            | ToolMode::Sandbox
            | ToolMode::GitRead
            | ToolMode::GitClone
            | ToolMode::GitCommit
            | ToolMode::GitPush
            | ToolMode::Mcp
            // Whoever wrote the document is not whom the model takes instructions from.
            | ToolMode::SearchKnowledge
            | ToolMode::ReadDocument
            // The words of other servers about their tools.
            | ToolMode::SearchTools
            // A window on an earlier result may be one on something from outside.
            | ToolMode::LastOutput => true,
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::WriteText
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::ListDocuments
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

//! What would become of one call: the same check, the same facts and the same gate as in a turn, without the turn.
//! Nothing runs, nothing is asked and nothing is spent.

use std::sync::Arc;

use tidegate_core::{
    caller::{Caller, Mode, Origin},
    id::CallId,
    tool::{Arguments, ToolCall, ToolResult, ToolSpec},
};
use tidegate_gate::{Explanation, Facts, Session};

use crate::{RunError, run::Engine};

/// What is asked about.
#[derive(Debug, Clone)]
pub struct CallQuestion {
    /// Whose call.
    pub caller: Caller,
    /// Through which front end.
    pub origin: Origin,
    /// The mode that the request asks for.
    pub mode: Option<Mode>,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// What would become of it.
#[derive(Debug)]
pub struct CallExplanation {
    /// The tool's row.
    pub spec: Arc<ToolSpec>,
    /// The effective mode.
    pub mode: Mode,
    /// What is wrong with the arguments, if anything is: the model gets this instead of a run.
    pub arguments: Result<(), String>,
    /// The operator's checks, which would be asked next. They are not asked here.
    pub hooks: Vec<String>,
    /// What the call means in the world.
    pub facts: Facts,
    /// Every layer, and the decision.
    pub explanation: Explanation,
}

impl Engine {
    /// Says what would become of a call. An error means that there is no such tool.
    pub async fn explain_call(&self, question: CallQuestion) -> Result<CallExplanation, RunError> {
        let specs = self.tools().specs();
        let Some(spec) = specs.iter().find(|spec| spec.name == question.tool).cloned() else {
            let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            return Err(RunError::Invalid {
                param: Some("tool".to_owned()),
                message: format!(
                    "there is no tool `{}`; the tools are {}",
                    question.tool,
                    names.join(", ")
                ),
            });
        };
        let call = ToolCall {
            id: CallId::generate(self.entropy()),
            name: spec.name.clone(),
            arguments: question.arguments,
        };
        let mode = self.mode_of(&question.caller, question.mode);
        let session = Session {
            caller: Arc::new(question.caller),
            mode,
            conversation: String::new(),
            attendance: self.attendance_of(question.origin),
        };
        let facts = self.tools().facts(&call, &spec, mode).await;
        Ok(CallExplanation {
            arguments: self.tools().check(&call, &spec).map_err(problem),
            hooks: self.hook_names(),
            explanation: self.gate().explain(&call, &spec, &facts, &session),
            mode,
            facts,
            spec,
        })
    }
}

fn problem(result: ToolResult) -> String {
    match result {
        ToolResult::Failed { message, .. } => message,
        ToolResult::Refused { reason, .. } | ToolResult::NeedsApproval { reason, .. } => reason,
        ToolResult::Ok { .. } | ToolResult::TimedOut { .. } | ToolResult::Cancelled => {
            "the arguments are not usable".to_owned()
        }
    }
}

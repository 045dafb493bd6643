//! The operator's own checks of a call, before the gate is asked.

use std::time::Duration;

use tidegate_core::tool::{ToolCall, ToolResult, ToolSpec};

use crate::{
    hooks::HookDecision,
    turn::Turn,
    waves::{NodeEnd, bounded},
};

/// Operator gates, in order. The first that does not pass is the answer.
pub(super) async fn ask_hooks(turn: &Turn, spec: &ToolSpec, call: &ToolCall) -> Option<ToolResult> {
    let context = turn.tool_context();
    for hook in &turn.engine.hooks().gates {
        let limit = Duration::from_millis(hook.timeout_ms());
        let reason = match bounded(hook.before_tool(call, spec, &context), limit).await {
            NodeEnd::Done(Ok(HookDecision::Pass)) => continue,
            NodeEnd::Done(Ok(HookDecision::Refuse(reason))) => reason,
            NodeEnd::Done(Err(fault)) => {
                tracing::warn!(hook = hook.name(), %fault, "gate hook `{}` failed: the call is refused", hook.name());
                format!("the check `{}` failed.", hook.name())
            }
            NodeEnd::TimedOut => {
                tracing::warn!(
                    hook = hook.name(),
                    "gate hook `{}` timed out: the call is refused",
                    hook.name()
                );
                format!("the check `{}` did not answer in time.", hook.name())
            }
            NodeEnd::Panicked(panic) => {
                tracing::error!(
                    hook = hook.name(),
                    panic,
                    "gate hook `{}` panicked: the call is refused",
                    hook.name()
                );
                format!("the check `{}` failed.", hook.name())
            }
        };
        return Some(ToolResult::Refused {
            floor: format!("hook:{}", hook.name()),
            reason,
        });
    }
    None
}

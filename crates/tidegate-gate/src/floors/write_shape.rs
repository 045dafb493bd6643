//! A write that is not plainly "these bytes, to that file" is refused: what is not understood is not done.

use serde_json::Value;
use tidegate_core::tool::{Effect, ToolCall, ToolMode, ToolSpec};

use crate::{Access, Denial, Facts};

const NAME: &str = "write_shape";

pub(super) fn check(call: &ToolCall, spec: &ToolSpec, facts: &Facts) -> Option<Denial> {
    let refuse = |reason: &str| Some(Denial::new(NAME, reason));
    let mut written = facts.paths.iter().filter(|path| path.access == Access::Write);
    let first = written.next();
    match (spec.effect, first) {
        (Effect::Read, Some(_)) => return refuse("a tool that reads may not write."),
        (Effect::Write, None) => return refuse("the call names no file to write."),
        (Effect::Write, Some(_)) | (Effect::Network | Effect::External, _) | (Effect::Read, None) => {}
    }
    if spec.mode != ToolMode::WriteText {
        return None;
    }
    if written.next().is_some() {
        return refuse("the call names more than one file to write; write one at a time.");
    }
    let (Some(target), Some(arguments)) = (first, call.arguments.object()) else {
        return refuse("the call names no file to write.");
    };
    match arguments.get(&target.argument) {
        Some(Value::String(path)) if !path.is_empty() => {}
        Some(_) | None => return refuse("the file to write is not given as a text argument."),
    }
    let has_content = arguments
        .iter()
        .any(|(name, value)| *name != target.argument && value.is_string());
    if !has_content {
        return refuse("the call holds no text to write.");
    }
    let is_known = |name: &String| spec.parameters.iter().any(|parameter| parameter.name == *name);
    if !arguments.keys().all(is_known) {
        return refuse("the call holds an argument that the tool does not have.");
    }
    None
}

//! Facts and calls for the tests of this crate.

use serde_json::{Value, json};
use tidegate_core::tool::{Arguments, Effect, Parameter, ParameterType, ToolCall, ToolMode, ToolSpec};

use crate::{Access, PathFact, PathFault, PathKind, ResolvedPath};

pub(crate) type Resolution = Result<ResolvedPath, PathFault>;

pub(crate) fn fact(argument: &str, requested: &str, access: Access, resolution: Resolution) -> PathFact {
    PathFact {
        argument: argument.to_owned(),
        requested: requested.to_owned(),
        access,
        resolution,
    }
}

pub(crate) fn write_fact(requested: &str, resolution: Resolution) -> PathFact {
    fact("path", requested, Access::Write, resolution)
}

/// A file at a real path.
#[expect(clippy::unnecessary_wraps, reason = "facts hold what a resolver answers")]
pub(crate) fn resolved(real: &str) -> Resolution {
    Ok(ResolvedPath {
        real: real.into(),
        kind: PathKind::File,
        hard_links: 1,
        is_link: false,
    })
}

/// The same, for names that a resolver would have tidied.
pub(crate) fn inside(real: &str) -> Resolution {
    let tidy: std::path::PathBuf = std::path::Path::new(real).components().collect();
    resolved(&tidy.to_string_lossy())
}

pub(crate) fn call(name: &str, arguments: &Value) -> ToolCall {
    let arguments = match arguments.as_object() {
        Some(map) => Arguments::Object(map.clone()),
        None => Arguments::Unparsable {
            raw: arguments.to_string(),
            problem: "it is no object".to_owned(),
        },
    };
    let id = serde_json::from_value(json!("call_0000000000000000000000000")).expect("an id");
    ToolCall {
        id,
        name: name.to_owned(),
        arguments,
    }
}

pub(crate) fn spec(name: &str, mode: ToolMode, effect: Effect) -> ToolSpec {
    let parameter = |name: &str| Parameter {
        name: name.to_owned(),
        kind: ParameterType::String,
        description: String::new(),
        required: true,
        one_of: Vec::new(),
        min: None,
        max: None,
        chars_max: None,
        free_text: false,
    };
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        mode,
        effect,
        parameters: vec![parameter("path"), parameter("content")],
        timeout_ms: 1000,
        output_bytes_max: 1000,
    }
}

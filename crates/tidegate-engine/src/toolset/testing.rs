//! Rows for tests.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::tool::{Effect, ToolMode, ToolSpec};

pub(super) fn row(name: &str, description: &str, mode: ToolMode, schema: Option<Value>) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        mode,
        effect: Effect::Read,
        parameters: Vec::new(),
        input_schema: schema,
        timeout_ms: 1_000,
        output_bytes_max: 1_000,
    })
}

/// A tool of the server's own.
pub(super) fn spec(name: &str) -> Arc<ToolSpec> {
    row(name, "Does something.", ToolMode::Calculate, None)
}

/// A tool of another server.
pub(super) fn mcp(name: &str, description: &str, properties: Value) -> Arc<ToolSpec> {
    let schema = json!({"type": "object", "properties": properties});
    row(name, description, ToolMode::Mcp, Some(schema))
}

//! The hook that tells the knowledge base of a file that a tool has written, so that a search right after it finds
//! what was saved. The watcher of the folder would see the file too, only later.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use tidegate_core::{
    port::KnowledgeBase,
    tool::{ToolCall, ToolMode, ToolResult, ToolSpec},
};
use tidegate_engine::hooks::{HookFault, ObserverHook};
use tidegate_gate::ToolContext;
use tidegate_io::files::real_path_of;

/// The hook.
#[derive(Debug)]
pub(super) struct Reindex {
    pub(super) knowledge: Arc<dyn KnowledgeBase>,
    /// The folder that paths in arguments begin at.
    pub(super) bank: PathBuf,
}

#[async_trait]
impl ObserverHook for Reindex {
    fn name(&self) -> &'static str {
        "reindex"
    }

    async fn after_tool(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        result: &ToolResult,
        _context: &ToolContext,
    ) -> Result<(), HookFault> {
        if spec.mode != ToolMode::WriteText || !result.is_ok() {
            return Ok(());
        }
        let path = call
            .arguments
            .object()
            .and_then(|arguments| arguments.get("path"))
            .and_then(serde_json::Value::as_str);
        if let Some(path) = path {
            self.knowledge.written(&real_path_of(&self.bank.join(path)));
        }
        Ok(())
    }
}

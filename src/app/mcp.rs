//! The server for other agents, plugged into what the app has.

use std::sync::Arc;

use tidegate_core::secret::Secret;

use super::App;
use crate::mcp;

impl App {
    /// What other agents are offered.
    pub fn mcp(&self) -> mcp::Server {
        let config = &self.settings.config;
        mcp::Server::new(mcp::Parts {
            engine: Arc::clone(&self.engine),
            approvals: Arc::clone(&self.store) as _,
            audit: Arc::clone(&self.audit),
            approval_s: config.engine.approval_s,
            knowledge: self.base(),
            model: tidegate_llm::DEFAULT_ALIAS.to_owned(),
            clock: Arc::clone(&self.clock),
            entropy: Arc::clone(&self.entropy),
            options: config.mcp_server.clone(),
            shutdown: self.lifecycle.soft.clone(),
            grace: config.server.stream_grace(),
            tracker: self.lifecycle.tracker.clone(),
        })
    }

    /// A key on standard input.
    pub fn mcp_door(&self, key: Secret, user: Option<String>) -> mcp::stdio::Door {
        let keys = Arc::clone(&self.store) as _;
        mcp::stdio::Door::new(keys, Arc::clone(&self.clock), key, user)
    }
}

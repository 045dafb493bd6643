//! The handlers. Each translates and calls; none decides.

pub(super) mod admin_keys;
pub(super) mod approvals;
pub(super) mod capabilities;
pub(super) mod chat_completions;
pub(super) mod docs;
pub(super) mod fallback;
pub(super) mod health;
pub(super) mod knowledge;
pub(super) mod mcp;
pub(super) mod memory;
pub(super) mod models;
pub(super) mod runs;
pub(super) mod servers;

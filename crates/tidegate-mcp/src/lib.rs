//! The MCP client: tools of other servers, behind the same gate as the agent's own.
//!
//! Empty until servers are connected. What it will promise: a dead, slow or hostile server never hurts a
//! request, and nothing a server says about itself counts as permission.

//! What other servers said of their tools when those were accepted.

use async_trait::async_trait;

use crate::{clock::Timestamp, error::StoreError};

/// The definition of another server's tool, as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPin {
    /// The server's name in the operator's file.
    pub server: String,
    /// The tool's name, as the server calls it.
    pub tool: String,
    /// SHA-256 of `definition`, in hex.
    pub digest: String,
    /// Name, description, arguments and hints, as JSON with its keys in order.
    pub definition: String,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

/// Keeps the accepted definitions. A tool whose definition is another one now is not offered until it is accepted
/// again.
#[async_trait]
pub trait ToolPins: Send + Sync + std::fmt::Debug {
    /// Every pin of a server.
    async fn of_server(&self, server: &str) -> Result<Vec<ToolPin>, StoreError>;

    /// Adds pins, each in the place of one of the same server and tool.
    async fn put(&self, pins: &[ToolPin]) -> Result<(), StoreError>;

    /// Takes away every pin of a server; how many there were.
    async fn forget_server(&self, server: &str) -> Result<u64, StoreError>;
}

//! The ports: what the engine and the edge need from outside, one trait a need.
//!
//! An adapter crate satisfies a port; `src/app.rs` plugs it in. Every method bounds its own work, and none
//! is called while a lock is held.

mod approval;
mod audit;
mod embedder;
mod knowledge;
mod ledger;
mod memory;
mod model;
mod operator;
mod server_logins;
mod store;
mod tool_pins;

pub use approval::ApprovalStore;
pub use audit::{AuditDecision, AuditEntry, AuditEvent, AuditFault, AuditTrail};
pub use embedder::Embedder;
pub use knowledge::{
    ChunkChanges, ChunkKey, ChunkStore, Counts, Failure, FileMark, KnowledgeBase, KnowledgeError, KnownFile,
    NewChunk, NewDocument, StoredChunk, VectorPage,
};
pub use ledger::{DayUsage, Grant, Ledger, LedgerError, Need, Reservation, UsageRecord};
pub use memory::{
    CAPTURE_BYTES_MAX, Capture, CaptureCounts, CaptureQueue, ClaimedCapture, Enqueued, Erased, Forgotten,
    Lease, MemoryStore, MemoryVersion, NewNote, Note, ObservationPage, Pruned, Remembered, Retention, RowKey,
    Seen, Sight, Switch, SwitchOwner, Switches,
};
pub use model::{ChatModel, ModelStream};
pub use operator::{FileFault, LineLog, OperatorFiles};
pub use server_logins::ServerLogins;
pub use store::{
    HeldTurn, HeldTurnStore, KeyPage, KeyRemoval, KeyStore, LastAdmin, PageRequest, PolicyChange, RunStore,
};
pub use tool_pins::{ToolPin, ToolPins};

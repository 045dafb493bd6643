//! The operator's own way into the knowledge bank. The app implements it, with the gate's floors; the routes only
//! carry bytes.

use async_trait::async_trait;
use axum::body::Bytes;

/// A document that was put in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its path inside the knowledge bank.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Whether something stood there before.
    pub is_replaced: bool,
}

/// Why a document was not stored or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    /// The path is none.
    #[error("{0}")]
    Malformed(String),
    /// A floor or a zone refuses it.
    #[error("{0}")]
    Refused(String),
    /// It was changed by somebody else meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// Nothing is there.
    #[error("there is no document `{0}`")]
    Missing(String),
    /// It could not be recorded in the audit trail, or not be written.
    #[error("{0}")]
    Failed(String),
}

/// Puts documents into the knowledge bank and takes them out.
#[async_trait]
pub trait DocumentDoor: Send + Sync + std::fmt::Debug {
    /// Stores a whole document in one step: the old one stays until the new one is complete.
    async fn put(&self, by: &Uploader, path: String, bytes: Bytes) -> Result<Stored, NotStored>;

    /// Takes a document out of the folder; the index follows. Gives its path in the form that it is known by.
    async fn remove(&self, by: &Uploader, path: String) -> Result<String, NotStored>;
}

/// Who stores or removes it.
#[derive(Debug, Clone)]
pub struct Uploader {
    /// Whose key.
    pub caller: tidegate_core::caller::Caller,
    /// By which request.
    pub request_id: tidegate_core::id::RequestId,
}

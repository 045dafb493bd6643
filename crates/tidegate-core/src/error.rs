//! Whose fault an error is, and whether trying again can help: known where it happens, said as data.

use std::time::Duration;

/// Who can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller sent something that cannot be served.
    Caller,
    /// A party we depend on failed.
    Upstream,
    /// The operator's configuration or our own code.
    Us,
}

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It will fail again.
    Never,
    /// It may succeed after this long.
    After(Duration),
    /// It may succeed at once.
    Now,
}

/// What a store port can answer beside success.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A row of that id exists already.
    #[error("{0} exists already")]
    Duplicate(String),
    /// The store refuses or cannot be reached; the text is for the operator.
    #[error("the store failed: {0}")]
    Internal(String),
}

impl StoreError {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Duplicate(_) => Fault::Caller,
            Self::Internal(_) => Fault::Us,
        }
    }
}

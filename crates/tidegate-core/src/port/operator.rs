use std::path::{Path, PathBuf};

/// Why a file of the operator's could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// It is not there.
    #[error("`{0}` does not exist")]
    Missing(String),
    /// It is there and cannot be read; the text says why.
    #[error("`{path}` cannot be read: {problem}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        problem: String,
    },
}

/// The text files an operator edits while the daemon runs: instructions, skills, routing patterns. Read
/// anew for every request; a read is a blocking call and belongs on a blocking thread.
pub trait OperatorFiles: Send + Sync + std::fmt::Debug {
    /// The text of a file, at most `bytes_max` bytes of UTF-8.
    fn read(&self, path: &Path, bytes_max: usize) -> Result<String, FileFault>;

    /// The names in a folder, sorted; a folder that is not there is [`FileFault::Missing`].
    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileFault>;
}

/// An append-only log of JSON lines with a bounded queue in front of a background writer.
pub trait LineLog: Send + Sync + std::fmt::Debug {
    /// Hands over one line, without its line break. Never waits: a full queue drops the line and counts it.
    fn append(&self, line: String);

    /// How many lines were dropped or could not be written since the start.
    fn dropped(&self) -> u64;
}

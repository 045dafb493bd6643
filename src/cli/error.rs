//! Why a command failed, with its exit code: 2 for a command line that makes no sense, 1 for everything else.

use tidegate_core::error::StoreError;

/// A command that failed. The text is one line and says how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] crate::config::Error),
    /// The daemon could not be built or run.
    #[error(transparent)]
    App(#[from] crate::app::Error),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing of that name is there.
    #[error("{0}")]
    NotFound(String),
    /// It could be done and should not be.
    #[error("{0}")]
    Refused(String),
    /// The answer could not be written.
    #[error("the answer cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

impl Error {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Config(_)
            | Self::App(_)
            | Self::Store(_)
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::Output(_) => 1,
        }
    }

    /// Whether the reader of our output went away, as in `tidegate keys list | head`: no failure of ours.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

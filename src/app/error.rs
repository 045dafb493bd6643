//! Why the daemon does not start, said so that it can be mended.

use std::{net::SocketAddr, path::PathBuf};

use tidegate_core::error::StoreError;

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The instructions are missing.
    #[error(
        "`{}` does not exist; `tidegate init` writes the one that ships with tidegate, with skills and sample documents",
        .0.display()
    )]
    NoInstructions(PathBuf),
    /// A folder cannot be made or opened.
    #[error("the folder `{}` cannot be used: {problem}; make it readable and writable for this user, or set `{setting}`", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        problem: String,
        /// The setting that names it.
        setting: &'static str,
    },
    /// The address is taken or not ours.
    #[error(
        "cannot listen on {address}: {problem}; stop what uses it, or choose another with --bind or `server.bind`"
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        problem: std::io::Error,
    },
    /// The key in the environment is none.
    #[error("TIDEGATE_BOOTSTRAP_KEY is no key: {0}; `tidegate keys generate` makes one")]
    BootstrapKey(crate::keys::KeyFault),
    /// The first key could not be shown, so it was removed again.
    #[error(
        "the first key could not be shown ({0}) and was removed again; start with a terminal or set TIDEGATE_BOOTSTRAP_KEY"
    )]
    KeyNotShown(std::io::Error),
    /// The database.
    #[error(transparent)]
    Database(#[from] tidegate_store::Error),
    /// The database, once open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another part could not be built; the text names it and says how to mend it.
    #[error("{0}")]
    Part(String),
    /// The operating system will not say when to stop.
    #[error("signals cannot be heard: {0}")]
    Signals(std::io::Error),
}

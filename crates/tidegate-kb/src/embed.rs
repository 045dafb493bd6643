//! Embedders: what turns texts into vectors, behind the port [`tidegate_core::port::Embedder`].
//!
//! [`Builtin`] is always there. [`http`] asks a server, `local` runs a model from a folder; both stand behind
//! [`guarded`], which remembers recent queries and leaves alone what fails. [`open`] makes the one that is configured.

pub mod builtin;
mod characters;
mod estimate;
pub mod guarded;
pub mod http;
#[cfg(feature = "local-embedder")]
pub mod local;
mod models;
pub mod options;
pub mod pull;
mod safetensors;
pub mod wordpiece;
mod words_only;

pub use builtin::Builtin;
pub use options::{Options, Provider, open};
pub use words_only::WordsOnly;

/// Why an embedder cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file that is part of the program is not what it should be: the program was built from a broken tree.
    #[error("`{name}`, a part of this program, cannot be used: {problem}")]
    Asset {
        /// Which.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A setting cannot be used.
    #[error("the embedder's `{name}` cannot be used: {problem}")]
    Setting {
        /// Which.
        name: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The folder of a local model cannot be used.
    #[error("the model in {path} cannot be used: {problem}")]
    Folder {
        /// Where.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// This program cannot run local models.
    #[error(
        "this program was built without local models: build it with `--features local-embedder`, or choose another provider"
    )]
    NotBuilt,
    /// The HTTP client could not be built.
    #[error(transparent)]
    Client(#[from] tidegate_io::http::Error),
}

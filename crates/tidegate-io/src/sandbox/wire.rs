//! What the server tells the process that confines itself, as JSON on its standard input.
//!
//! The first thing the confined side ever says is [`READY`], on its standard output, once every wall stands and
//! before anything of the caller's runs. Where that line is missing, nothing of the caller's has run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{plan::Work, policy::Limits};

/// The first line of every run.
pub(super) const READY: &[u8] = b"tidegate: confined\n";

/// The longest order, in bytes.
pub(super) const ORDER_BYTES_MAX: u64 = 16 << 20;

/// The name of the hidden command that reads an [`Order`].
pub(super) const COMMAND: &str = "__sandbox";

/// How strictly the kernel is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Walls {
    /// Landlock alone holds the files: every right of ABI 6 must be enforced, and what it cannot hold
    /// (permissions, owners, times, leaving the process group) is taken away by the system call filter.
    Alone,
    /// Mount, process and network namespaces stand in front.
    Behind,
    /// None but the limits: the operator accepted that.
    Nothing,
}

/// What may be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Access {
    /// The names in it, and in everything in it.
    List,
    /// Read, list and execute it and everything in it.
    Read,
    /// Read and write a device.
    Device,
    /// Everything that is done with files and folders.
    Write,
}

/// One path that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) path: PathBuf,
    pub(super) access: Access,
}

impl Rule {
    pub(super) fn new(path: impl Into<PathBuf>, access: Access) -> Self {
        Self {
            path: path.into(),
            access,
        }
    }
}

/// Everything the confined side needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) walls: Walls,
    pub(super) rules: Vec<Rule>,
    pub(super) network: bool,
    pub(super) limits: Limits,
    pub(super) environment: Vec<(String, String)>,
    pub(super) folder: PathBuf,
    pub(super) stdin: Vec<u8>,
    pub(super) work: Work,
}

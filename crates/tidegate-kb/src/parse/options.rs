//! The bounds of reading, and how they are set.

use serde::{Deserialize, Serialize};

/// What one document may cost, whoever reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The largest file, in bytes.
    pub file_bytes_max: usize,
    /// The most text that is taken out of a file, in bytes.
    pub text_bytes_max: usize,
    /// The most sections that a text may have.
    pub sections_max: usize,
    /// The most entries that a packed file (Office, EPUB) may have.
    pub entries_max: usize,
    /// What all entries of a packed file that are read may unpack to, together, in bytes.
    pub unpacked_bytes_max: u64,
    /// How many times larger than packed an entry of more than a megabyte may be.
    pub unpacked_ratio_max: u64,
    /// How deep JSON and XML may be nested.
    pub depth_max: usize,
    /// The most pages, slides or sheets.
    pub pages_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes_max: 64 << 20,
            text_bytes_max: 16 << 20,
            sections_max: 100_000,
            entries_max: 10_000,
            unpacked_bytes_max: 256 << 20,
            unpacked_ratio_max: 200,
            depth_max: 100,
            pages_max: 20_000,
        }
    }
}

/// How files are read. Part of `[kb]` in `tidegate.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How much memory the process that reads a file may take, in bytes (`kb.parse_memory_mb`).
    pub memory_bytes: u64,
    /// How long reading one file may take, in milliseconds, by the clock and in processor time
    /// (`kb.parse_timeout_ms`).
    pub timeout_ms: u64,
    /// How many files are read at the same time (`kb.workers_max`).
    pub concurrency: usize,
    /// The bounds of each file.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 20,
            timeout_ms: 30_000,
            concurrency: 2,
            limits: Limits::default(),
        }
    }
}

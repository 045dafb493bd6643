//! `[memory]` in `tidegate.toml`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How memory works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether anything is learned from people and told of them at all.
    pub enabled: bool,
    /// The table of kinds; the built-in one where the file does not exist.
    pub kinds_file: PathBuf,
    /// People whose facts are kept at hand, so that a request need not work them out anew.
    pub people_cached_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            kinds_file: "memory-kinds.toml".into(),
            people_cached_max: 256,
        }
    }
}

//! Path zones: which real paths a call may touch. Blocked wins over everything.

use std::path::PathBuf;

use crate::Facts;

/// The operator's zones, all real absolute paths.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    /// Roots inside which files may be read and listed.
    pub readable: Vec<PathBuf>,
    /// Roots inside which files may be written, mode permitting.
    pub writable: Vec<PathBuf>,
    /// Writes here need no approval even in `readonly`; empty by default.
    pub no_prompt: Vec<PathBuf>,
    /// Never touched: the server's own data, configuration and logs.
    pub blocked: Vec<PathBuf>,
    /// Exact files or folders exempt from the credential floor.
    pub allowed_sensitive: Vec<PathBuf>,
}

impl Zones {
    /// Whether every path the call would write stands in a no-prompt zone.
    pub fn is_no_prompt(&self, facts: &Facts) -> bool {
        let _ = facts;
        false
    }
}

//! What a call means in the world, resolved by the tool box just before the gate is asked.

use std::{path::PathBuf, sync::Arc};

use crate::{Denial, shell::Analysis};

/// What the call wants of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read a file.
    Read,
    /// List a folder.
    List,
    /// Create or replace a file.
    Write,
}

/// What stands at a path now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, socket or device.
    Special,
    /// Nothing, and perhaps no folder for it either.
    Missing,
}

/// Where a path leads after every link was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The real, absolute path; for something that is not there yet, the real path of the nearest folder that
    /// is, and the names to come.
    pub real: PathBuf,
    /// What stands there.
    pub kind: PathKind,
    /// How many names the file has; 1 for anything that is not a file. A write by the file tool makes a new file
    /// under one name and leaves the others alone; a command may change the file under all of them.
    pub hard_links: u64,
    /// Whether the last component, as it was asked for, is a symbolic link.
    pub is_link: bool,
}

/// Why a path could not be resolved. Each is a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathFault {
    /// Empty, too long, or holding NUL, control characters or a URL scheme; the text says which.
    Malformed(String),
    /// It leads outside every allowed root.
    Outside,
    /// Something on the way is not there or is no folder, so that it leads nowhere.
    Missing,
    /// The operating system would not say.
    Unreadable(String),
}

/// One path operand of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFact {
    /// The argument it came from.
    pub argument: String,
    /// The path as the model wrote it.
    pub requested: String,
    /// What the call wants of it.
    pub access: Access,
    /// Where it leads.
    pub resolution: Result<ResolvedPath, PathFault>,
}

/// Everything the gate may know about a call beside the call itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Every path operand.
    pub paths: Vec<PathFact>,
    /// Bytes the call would write.
    pub write_bytes: u64,
    /// Calls of this turn that have written already.
    pub writes_before: u32,
    /// The programs a command would start, each with the absolute path it stands for, if it is installed.
    pub programs: Vec<(String, Option<PathBuf>)>,
    /// SHA-256, in hex, of files whose content the call would run.
    pub digests: Vec<(PathBuf, String)>,
    /// Every URL the call would reach, complete.
    pub urls: Vec<String>,
    /// Where a command would run.
    pub working_folder: Option<PathBuf>,
    /// What is known of a command for the shell; its files are among `paths`.
    pub command: Option<Arc<Analysis>>,
    /// Whether files that no word of a command names can be kept out of its sight while it runs.
    pub can_mask: bool,
    /// Why where the call leads may not be reached, found by the guards when it was resolved.
    pub refusal: Option<Denial>,
}

impl Facts {
    /// Whether the call would write a file.
    pub fn is_write(&self) -> bool {
        self.write_bytes > 0 || self.paths.iter().any(|path| path.access == Access::Write)
    }
}

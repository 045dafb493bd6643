//! Files an operator edits live, with the last good version of each kept in memory.
//!
//! Every read goes to the disk. What was read and accepted is kept; when a later version cannot be read or makes
//! no sense, the kept one is served, and the fault is logged once and listed until the file is mended.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tidegate_core::port::{FileFault, OperatorFiles};

/// Files whose last good version is kept; a further file is served from the disk alone.
const KEPT_FILES_MAX: usize = 256;

/// Faults listed at once; further ones are still logged.
const FAULTS_MAX: usize = 64;

/// What became of a file's text.
#[derive(Debug)]
pub(crate) struct Accepted<T> {
    /// What it says.
    pub(crate) value: T,
    /// What is wrong with parts of it, where the rest is of use.
    pub(crate) fault: Option<String>,
}

impl<T> From<T> for Accepted<T> {
    fn from(value: T) -> Self {
        Self { value, fault: None }
    }
}

/// Why a file gives nothing at all: neither its present nor an earlier version can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// It is not there.
    Missing,
    /// It is there and useless; the text says why, without a path.
    Unusable(String),
}

/// What is remembered between requests.
#[derive(Debug, Default)]
struct State {
    good: BTreeMap<PathBuf, String>,
    faults: BTreeMap<PathBuf, String>,
}

/// A reader that falls back on the last good version.
#[derive(Debug)]
pub(crate) struct KeptFiles {
    files: Arc<dyn OperatorFiles>,
    bytes_max: usize,
    state: Mutex<State>,
}

impl KeptFiles {
    /// Reads through `files`, at most `bytes_max` bytes a file.
    pub(crate) fn new(files: Arc<dyn OperatorFiles>, bytes_max: usize) -> Self {
        Self {
            files,
            bytes_max,
            state: Mutex::default(),
        }
    }

    /// Reads a file that has to be there and makes something of it; where either fails, of its last good
    /// version. Blocks.
    pub(crate) fn load<T>(
        &self,
        path: &Path,
        parse: impl Fn(&str) -> Result<Accepted<T>, String>,
    ) -> Result<T, Nothing> {
        self.load_with(path, true, parse)
    }

    /// The same for a file that an operator may take away on purpose: then it gives nothing. Blocks.
    pub(crate) fn load_optional<T>(
        &self,
        path: &Path,
        parse: impl Fn(&str) -> Result<Accepted<T>, String>,
    ) -> Result<T, Nothing> {
        self.load_with(path, false, parse)
    }

    fn load_with<T>(
        &self,
        path: &Path,
        required: bool,
        parse: impl Fn(&str) -> Result<Accepted<T>, String>,
    ) -> Result<T, Nothing> {
        let (problem, missing) = match self.files.read(path, self.bytes_max) {
            Ok(text) => match parse(&text) {
                Ok(Accepted { value, fault }) => {
                    self.keep(path, text);
                    match fault {
                        Some(fault) => self.note(path, fault),
                        None => self.clear(path),
                    }
                    return Ok(value);
                }
                Err(problem) => (problem, false),
            },
            Err(FileFault::Missing(_)) if required => ("is missing".to_owned(), true),
            Err(FileFault::Missing(_)) => {
                self.forget(path);
                return Err(Nothing::Missing);
            }
            Err(FileFault::Unreadable { problem, .. }) => (format!("cannot be read: {problem}"), false),
        };
        let kept = self.state().good.get(path).cloned();
        match kept.and_then(|text| parse(&text).ok()) {
            Some(Accepted { value, .. }) => {
                self.note(path, format!("{problem}; its last good version is served"));
                Ok(value)
            }
            None if missing => Err(Nothing::Missing),
            None => {
                self.note(path, problem.clone());
                Err(Nothing::Unusable(problem))
            }
        }
    }

    /// The names in `folder`; a folder that is not there is empty. Blocks.
    pub(crate) fn names(&self, folder: &Path) -> Vec<PathBuf> {
        match self.files.list(folder) {
            Ok(entries) => {
                self.clear(folder);
                entries
                    .iter()
                    .filter_map(|entry| entry.file_name().map(PathBuf::from))
                    .collect()
            }
            Err(FileFault::Missing(_)) => {
                self.clear(folder);
                Vec::new()
            }
            Err(FileFault::Unreadable { problem, .. }) => {
                self.note(folder, format!("cannot be listed: {problem}"));
                Vec::new()
            }
        }
    }

    /// Drops what is remembered of a file that the operator took away on purpose.
    fn forget(&self, path: &Path) {
        let mut state = self.state();
        state.good.remove(path);
        state.faults.remove(path);
    }

    /// Lists a fault. Logged when it is new or has changed.
    fn note(&self, path: &Path, problem: String) {
        let mut state = self.state();
        if state.faults.get(path) == Some(&problem) {
            return;
        }
        tracing::warn!(file = short_name(path), problem, "an operator's file has a fault");
        if state.faults.len() < FAULTS_MAX || state.faults.contains_key(path) {
            state.faults.insert(path.to_owned(), problem);
        }
    }

    /// Takes a file's fault off the list.
    fn clear(&self, path: &Path) {
        if self.state().faults.remove(path).is_some() {
            tracing::info!(file = short_name(path), "an operator's file is in order again");
        }
    }

    /// Every fault there is now, as sentences that name files but never where they lie.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.state()
            .faults
            .iter()
            .map(|(path, problem)| format!("{} {problem}", short_name(path)))
            .collect()
    }

    fn keep(&self, path: &Path, text: String) {
        let mut state = self.state();
        if state.good.len() < KEPT_FILES_MAX || state.good.contains_key(path) {
            state.good.insert(path.to_owned(), text);
        }
    }

    /// A panic elsewhere leaves whole values behind, so a poisoned lock is still good to use.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file's name for people, with its folder where the name alone would not tell which: `skills/a/SKILL.md` is
/// `a/SKILL.md`. Never the whole path.
pub(crate) fn short_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let folder = path
        .parent()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned());
    match (folder, name) {
        (Some(folder), Some(name)) if name == "SKILL.md" => format!("{folder}/{name}"),
        (_, Some(name)) => name,
        (_, None) => "file".to_owned(),
    }
}

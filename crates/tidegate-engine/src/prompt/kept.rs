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

/// A file's text and what was made of it.
#[derive(Debug)]
struct Version<T> {
    text: String,
    made: Result<(Arc<T>, Option<String>), String>,
}

/// What is remembered between requests.
#[derive(Debug)]
struct State<T> {
    /// The last version of each file that was of use.
    good: BTreeMap<PathBuf, Version<T>>,
    /// The last one that was not, so that the same text is not tried again and again.
    bad: BTreeMap<PathBuf, Version<T>>,
    faults: BTreeMap<PathBuf, String>,
}

/// A reader that falls back on the last good version. What is made of a text is kept with the text, and made
/// again only when the text, read anew each time, has changed.
#[derive(Debug)]
pub(crate) struct KeptFiles<T> {
    files: Arc<dyn OperatorFiles>,
    bytes_max: usize,
    state: Mutex<State<T>>,
}

impl<T> KeptFiles<T> {
    /// Reads through `files`, at most `bytes_max` bytes a file.
    pub(crate) fn new(files: Arc<dyn OperatorFiles>, bytes_max: usize) -> Self {
        Self {
            files,
            bytes_max,
            state: Mutex::new(State {
                good: BTreeMap::new(),
                bad: BTreeMap::new(),
                faults: BTreeMap::new(),
            }),
        }
    }

    /// Reads a file that has to be there and makes something of it; where either fails, of its last good
    /// version. Blocks.
    pub(crate) fn load(
        &self,
        path: &Path,
        parse: impl Fn(&str) -> Result<Accepted<T>, String>,
    ) -> Result<Arc<T>, Nothing> {
        self.load_with(path, true, parse)
    }

    /// The same for a file that an operator may take away on purpose: then it gives nothing. Blocks.
    pub(crate) fn load_optional(
        &self,
        path: &Path,
        parse: impl Fn(&str) -> Result<Accepted<T>, String>,
    ) -> Result<Arc<T>, Nothing> {
        self.load_with(path, false, parse)
    }

    fn load_with(
        &self,
        path: &Path,
        required: bool,
        parse: impl Fn(&str) -> Result<Accepted<T>, String>,
    ) -> Result<Arc<T>, Nothing> {
        let (problem, missing) = match self.files.read(path, self.bytes_max) {
            Ok(text) => match self.made(path, text, parse) {
                Ok((value, fault)) => {
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
        let kept = self.state().good.get(path).and_then(Version::value);
        match kept {
            Some(value) => {
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

    /// What was made of that text, or is made of it now. The lock is held while parsing, so that requests that
    /// come together do the work once.
    fn made(
        &self,
        path: &Path,
        text: String,
        parse: impl Fn(&str) -> Result<Accepted<T>, String>,
    ) -> Result<(Arc<T>, Option<String>), String> {
        let mut state = self.state();
        let known = [state.good.get(path), state.bad.get(path)];
        if let Some(version) = known.into_iter().flatten().find(|version| version.text == text) {
            return version.made.clone();
        }
        let made = parse(&text).map(|Accepted { value, fault }| (Arc::new(value), fault));
        let versions = if made.is_ok() {
            &mut state.good
        } else {
            &mut state.bad
        };
        if versions.len() < KEPT_FILES_MAX || versions.contains_key(path) {
            let made = made.clone();
            versions.insert(path.to_owned(), Version { text, made });
        }
        made
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
        state.bad.remove(path);
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

    /// A panic elsewhere leaves whole values behind, so a poisoned lock is still good to use.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Version<T> {
    fn value(&self) -> Option<Arc<T>> {
        self.made.as_ref().ok().map(|(value, _)| Arc::clone(value))
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

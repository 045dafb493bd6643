//! Keys that were looked up a moment ago, so that a request does not wait for a database thread to wake.
//!
//! A change by any process must be seen by the very next request. So every change of a key, through whichever
//! [`crate::Store`], also marks a small file beside the database, after it is committed and before it is
//! acknowledged; a cached key counts only while that file is as it was when the key was read. Looking at it is
//! one system call. Should a process end between the commit and the mark, the time limit sees to it.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tidegate_core::{id::KeyId, key::KeyRecord};

/// Keys that are kept.
const KEYS_MAX: usize = 10_000;
/// How long a key is believed at most.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// Bytes of the mark file; it starts anew beyond them.
const MARK_BYTES_MAX: u64 = 4096;

/// How the mark file looks: which file, how long, and when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(Option<(u64, u64, i64, i64)>);

/// A key as it was read.
#[derive(Debug)]
struct Entry {
    key: KeyRecord,
    mark: Mark,
    read_at: Instant,
}

/// The cache.
#[derive(Debug)]
pub(crate) struct KeyCache {
    path: PathBuf,
    entries: Mutex<HashMap<KeyId, Entry>>,
}

impl KeyCache {
    /// The cache of the database at `path`.
    pub(crate) fn new(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push(".keys");
        Self {
            path: path.into(),
            entries: Mutex::default(),
        }
    }

    /// The mark as it stands. Taken before a key is read, so that a change in between is not missed.
    pub(crate) fn mark(&self) -> Mark {
        let found = fs::metadata(&self.path).ok();
        Mark(found.map(|file| (file.ino(), file.len(), file.mtime(), file.mtime_nsec())))
    }

    /// The key, if nothing has changed since it was read.
    pub(crate) fn find(&self, id: &KeyId, mark: Mark) -> Option<KeyRecord> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(id)?;
        (entry.mark == mark && entry.read_at.elapsed() < BELIEVED_FOR).then(|| entry.key.clone())
    }

    /// Keeps a key that was read after `mark` was taken.
    pub(crate) fn keep(&self, key: &KeyRecord, mark: Mark) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= KEYS_MAX && !entries.contains_key(&key.id) {
            entries.clear();
        }
        let entry = Entry {
            key: key.clone(),
            mark,
            read_at: Instant::now(),
        };
        entries.insert(key.id.clone(), entry);
    }

    /// Says to every process that keys have changed. It grows by a byte each time: two changes within one tick
    /// of the file system's clock must not look alike.
    pub(crate) fn changed(&self) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)?;
        if file.metadata()?.len() >= MARK_BYTES_MAX {
            drop(file);
            fs::remove_file(&self.path)?;
            file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)?;
        }
        file.write_all(b".")
    }
}

//! Finding the files that a run must not see: credentials, by their names.
//!
//! A reader that names no file (`grep -r`, `tar c .`) finds every file there is, so what must not be read has
//! to be found first. Every run looks again; a folder that has not changed since is not read again.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::Error;

/// The most entries that are looked at in one root.
const ENTRIES_MAX: usize = 500_000;

/// A folder that changed less than this many nanoseconds before it was read may change again within the
/// clock's grain, unseen.
const GRAIN_NS: i128 = 20_000_000;

/// What one folder held.
#[derive(Debug, Clone)]
struct Seen {
    stamp: Stamp,
    is_settled: bool,
    folders: Vec<PathBuf>,
    found: Vec<PathBuf>,
    count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed_ns: i128,
}

/// Looks for files by name, and remembers folders that stay as they are.
#[derive(Debug, Default)]
pub struct Finder {
    seen: Mutex<BTreeMap<PathBuf, Seen>>,
}

impl Finder {
    /// Every file and folder below the roots whose path below its root the test picks, links not followed.
    /// What is inside a folder that was picked is not looked at.
    pub fn find(
        &self,
        roots: &[PathBuf],
        is_wanted: &(dyn Fn(&Path) -> bool + Sync),
    ) -> Result<Vec<PathBuf>, Error> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = BTreeMap::new();
        let mut found = Vec::new();
        for root in roots {
            let mut count: usize = 0;
            let mut left = vec![root.clone()];
            while let Some(folder) = left.pop() {
                let Some(one) = look(&folder, root, seen.remove(&folder), is_wanted)? else {
                    continue;
                };
                count = count.saturating_add(one.count);
                if count > ENTRIES_MAX {
                    return Err(Error::TooManyEntries {
                        folder: root.display().to_string(),
                        max: ENTRIES_MAX,
                    });
                }
                found.extend(one.found.iter().cloned());
                left.extend(one.folders.iter().cloned());
                fresh.insert(folder, one);
            }
        }
        *seen = fresh;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

/// What a folder holds; nothing where it is none, or may not be read, since then nobody else reads it either.
fn look(
    folder: &Path,
    root: &Path,
    before: Option<Seen>,
    is_wanted: &(dyn Fn(&Path) -> bool + Sync),
) -> Result<Option<Seen>, Error> {
    let Ok(metadata) = fs::symlink_metadata(folder) else {
        return Ok(None);
    };
    if !metadata.is_dir() {
        return Ok(None);
    }
    let stamp = Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        changed_ns: i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()),
    };
    if let Some(before) = before
        && before.is_settled
        && before.stamp == stamp
    {
        return Ok(Some(before));
    }
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(problem) if problem.kind() == std::io::ErrorKind::PermissionDenied => return Ok(None),
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(problem) => {
            return Err(Error::Folder {
                folder: folder.display().to_string(),
                problem,
            });
        }
    };
    let mut seen = Seen {
        stamp,
        is_settled: is_settled(stamp),
        folders: Vec::new(),
        found: Vec::new(),
        count: 0,
    };
    for entry in entries.flatten().take(ENTRIES_MAX.saturating_add(1)) {
        let path = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        seen.count = seen.count.saturating_add(1);
        if is_link {
            continue;
        }
        if path.strip_prefix(root).is_ok_and(is_wanted) {
            seen.found.push(path);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            seen.folders.push(path);
        }
    }
    Ok(Some(seen))
}

/// Whether the last change is old enough that another one would show. The machine's own clock for files is
/// asked by way of a file that is always new: this process in `/proc`.
fn is_settled(stamp: Stamp) -> bool {
    let now = fs::metadata("/proc/self/stat")
        .map(|now| i128::from(now.mtime()) * 1_000_000_000 + i128::from(now.mtime_nsec()));
    now.is_ok_and(|now| now - stamp.changed_ns > GRAIN_NS)
}

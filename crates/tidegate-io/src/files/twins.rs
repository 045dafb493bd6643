//! Other names of files that must not be touched: a hard link has no way back to the name that tells what it is.
//!
//! Only a file with more than one name is looked into, and then what is guarded is searched for the same file by
//! device and inode. What is found takes the guarded name's place, so that every floor judges that one.
//!
//! Some of these files must not even be opened. SQLite holds its locks by `fcntl`, and POSIX gives up all locks of a
//! process on a file as soon as the process closes any handle of it (fcntl(2)): whoever opens the database in this
//! process and closes it again lets another process take it for unused. So [`Twins::forbids`] is asked about a handle
//! of `O_PATH`, which holds no file open and drops no lock, and only then the file of that very handle is opened:
//! nothing can come in between. What is asked is the names of this moment, so a write-ahead log that appears later is
//! known as well. What remains: a file that gets one of the guarded names between the question and the opening; only
//! whoever may write in the server's own folder can do that.

use std::{
    collections::HashMap,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::fs::Stat;
use tidegate_gate::floors::names_credential;

/// Entries that are looked at for one file, all folders together. Beyond it a twin is not found.
const ENTRIES_MAX: usize = 100_000;

/// A file whatever it is called, and whether it has other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
        }
    }

    pub(super) fn of_stat(file: &Stat) -> Self {
        Self {
            device: file.st_dev,
            inode: file.st_ino,
        }
    }

    /// The file that stands at a path; links are not followed.
    fn at(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        metadata.is_file().then(|| Self::of(&metadata))
    }
}

/// Whether a file is one of those that lie at `paths` now, whatever it is called. Blocks.
pub fn is_one_of(paths: &[PathBuf], file: &Metadata) -> bool {
    paths
        .iter()
        .any(|path| Identity::at(path) == Some(Identity::of(file)))
}

/// The files whose other names count as them.
#[derive(Debug, Default)]
pub struct Twins {
    own: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// What the folders held when they were looked at, where they are looked at once.
    remembered: Option<OnceLock<HashMap<Identity, PathBuf>>>,
}

impl Twins {
    /// Of the server's own files and everything in its own folders, and of the files of credentials inside `folders`.
    /// All are real paths, there or not.
    pub fn new(own: Vec<PathBuf>, folders: Vec<PathBuf>) -> Self {
        Self {
            own,
            folders,
            remembered: None,
        }
    }

    /// The same, for whoever asks about many files at a time: folders are looked through once, when the first file with
    /// several names comes. The server's own files are still asked for by their names each time. A guarded file that
    /// is made later is known to the next one of these.
    #[must_use]
    pub fn remembering(self) -> Self {
        Self {
            remembered: Some(OnceLock::new()),
            ..self
        }
    }

    /// Whether the file at a path is a guarded one under another name. Blocks.
    pub fn guards(&self, real: &Path) -> bool {
        fs::symlink_metadata(real).is_ok_and(|file| self.guarded_name(real, &file).is_some())
    }

    /// Whether this process must not open the file: it is one of the server's own, whatever it is called. Blocks.
    pub(super) fn forbids(&self, file: Identity) -> bool {
        self.own.iter().any(|own| Identity::at(own) == Some(file))
    }

    /// The guarded name of a file that has several; `real` is the one that it was opened by. Blocks.
    pub(super) fn guarded_name(&self, real: &Path, file: &Metadata) -> Option<PathBuf> {
        if !file.is_file() || file.nlink() < 2 {
            return None;
        }
        self.other_name(real, Identity::of(file))
    }

    /// The same of a file that has several names.
    pub(super) fn other_name(&self, real: &Path, file: Identity) -> Option<PathBuf> {
        let is_same = |other: &Path| other != real && Identity::at(other) == Some(file);
        if let Some(own) = self.own.iter().find(|own| is_same(own)) {
            return Some(own.clone());
        }
        if let Some(remembered) = &self.remembered {
            let found = remembered.get_or_init(|| self.all()).get(&file)?;
            return (found != real).then(|| found.clone());
        }
        let mut found = None;
        self.walk(&mut |path, at| {
            let is_wanted = at == file && path != real;
            if is_wanted {
                found = Some(path);
            }
            is_wanted
        });
        found
    }

    /// Every guarded file there is.
    fn all(&self) -> HashMap<Identity, PathBuf> {
        let mut all = HashMap::new();
        self.walk(&mut |path, file| {
            all.entry(file).or_insert(path);
            false
        });
        all
    }

    /// Shows every guarded file until one is taken.
    fn walk(&self, takes: &mut dyn FnMut(PathBuf, Identity) -> bool) {
        let mut left = ENTRIES_MAX;
        let has_taken = self.own.iter().any(|own| search(own, &mut left, takes));
        if has_taken {
            return;
        }
        for folder in &self.folders {
            let is_credential = |path: &Path| {
                path.strip_prefix(folder)
                    .is_ok_and(|below| names_credential(&below.to_string_lossy()).is_some())
            };
            if search(folder, &mut left, &mut |path, file| {
                is_credential(&path) && takes(path, file)
            }) {
                return;
            }
        }
    }
}

/// Shows the files at and below a path until one is taken, and says whether one was; links are not followed.
fn search(path: &Path, left: &mut usize, takes: &mut dyn FnMut(PathBuf, Identity) -> bool) -> bool {
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let Some(less) = left.checked_sub(1) else {
            return false;
        };
        *left = less;
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            pending.extend(entries.take(*left).map(|entry| entry.path()));
        } else if metadata.is_file() && takes(path, Identity::of(&metadata)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use tidegate_gate::{Access, PathFault};

    use super::*;
    use crate::files::{FileError, NodeKind, OperandKind, ReadFault, Roots, View, resolve_operand};

    fn file(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create_new(path).unwrap().write_all(b"text").unwrap();
    }

    #[test]
    fn a_second_name_of_a_guarded_file_is_judged_as_that_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in [
            "data/tidegate.db",
            "data/deep/key",
            "work/.env",
            "work/notes.md",
            "other/x.md",
        ] {
            file(&at(name));
        }
        for (from, to) in [
            ("data/tidegate.db", "work/a.md"),
            ("data/deep/key", "work/b.md"),
            ("work/.env", "work/c.md"),
            ("work/notes.md", "work/d.md"),
            ("other/x.md", "work/e.md"),
        ] {
            fs::hard_link(at(from), at(to)).unwrap();
        }
        let twins = std::sync::Arc::new(Twins::new(vec![at("data"), at("gone")], vec![at("work")]));
        let roots = Roots::open(&[at("work")])
            .unwrap()
            .guarding(std::sync::Arc::clone(&twins));
        let view = View::open(Path::new("/")).unwrap().guarding(twins);
        for (name, real) in [
            ("a.md", at("data/tidegate.db")),
            ("b.md", at("data/deep/key")),
            ("c.md", at("work/.env")),
            ("d.md", at("work/d.md")),
            ("e.md", at("work/e.md")),
            ("notes.md", at("work/notes.md")),
            (".env", at("work/.env")),
        ] {
            let path = at("work").join(name);
            let facts = resolve_operand(&path.to_string_lossy(), Access::Read, OperandKind::Literal, &view);
            assert_eq!(facts[0].resolution.as_ref().unwrap().real, real, "{name}");
            let resolved = roots.fact("path", name, Access::Read).resolution;
            if real.starts_with(at("work")) {
                assert_eq!(resolved.unwrap().real, real, "{name}");
            } else {
                assert_eq!(resolved, Err(PathFault::Outside), "{name}");
            }
        }
    }

    /// Whether this process holds a lock of POSIX on the file, as the kernel lists them.
    fn is_locked(path: &Path) -> bool {
        let inode = format!(":{} ", fs::metadata(path).unwrap().ino());
        let process = format!(" {} ", std::process::id());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks
            .lines()
            .any(|line| line.contains("POSIX") && line.contains(&inode) && line.contains(&process))
    }

    #[test]
    fn no_reader_opens_a_database_of_this_process_and_drops_its_locks() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        let own: Vec<PathBuf> = ["", "-wal", "-shm", "-journal"]
            .iter()
            .map(|ending| at(&format!("data/tidegate.db{ending}")))
            .collect();
        // Guarded before all of them are there.
        let twins = std::sync::Arc::new(Twins::new(own.clone(), vec![at("bank")]).remembering());
        file(&at("bank/notes.md"));
        fs::hard_link(at("bank/notes.md"), at("bank/twin.md")).unwrap();
        let bank = Roots::open(&[at("bank")])
            .unwrap()
            .guarding(std::sync::Arc::clone(&twins));
        let home = Roots::open(&[at("")])
            .unwrap()
            .guarding(std::sync::Arc::clone(&twins));
        let view = View::open(Path::new("/"))
            .unwrap()
            .guarding(std::sync::Arc::clone(&twins));
        assert_eq!(bank.tree("", 9, &|_, _| true).nodes.len(), 2);
        for (number, own) in own.iter().enumerate() {
            file(own);
            let name = format!("{number}.md");
            fs::hard_link(own, at("bank").join(&name)).unwrap();
            let held = fs::File::options().write(true).open(own).unwrap();
            rustix::fs::fcntl_lock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
            assert!(is_locked(own));
            assert_eq!(bank.read_whole(&name, 99), Err(ReadFault::Twin));
            assert_eq!(bank.tree(&name, 9, &|_, _| true).nodes[0].kind, NodeKind::Twin);
            for path in [format!("bank/{name}"), own.display().to_string()] {
                let place = home.resolve(&path).unwrap();
                assert_eq!(place.resolved().real, *own);
                assert!(matches!(place.read_text(99), Err(FileError::Denied(_))));
            }
            for path in [own, &at("bank").join(&name)] {
                assert_eq!(view.read(path, 99), None);
            }
            assert!(is_locked(own), "{} was opened", own.display());
            // What everybody may read is read.
            assert_eq!(bank.read_whole("twin.md", 99).unwrap().bytes, b"text");
            assert_eq!(view.read(&at("bank/twin.md"), 99).as_deref(), Some(&b"text"[..]));
        }
    }
}

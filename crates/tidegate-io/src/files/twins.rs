//! Other names of files that must not be touched: a hard link has no way back to the name that tells what it is.
//!
//! Only a file with more than one name is looked into, and then what is guarded is searched for the same file by
//! device and inode. What is found takes the guarded name's place, so that every floor judges that one.

use std::{
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use tidegate_gate::floors::names_credential;

/// Entries that are looked at for one file, all folders together. Beyond it a twin is not found.
const ENTRIES_MAX: usize = 100_000;

/// The files whose other names count as them.
#[derive(Debug, Default)]
pub struct Twins {
    own: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Twins {
    /// Of the server's own files and everything in its own folders, and of the files of credentials inside `folders`.
    /// All are real paths, there or not.
    pub fn new(own: Vec<PathBuf>, folders: Vec<PathBuf>) -> Self {
        Self { own, folders }
    }

    /// The guarded name of a file that has several; `real` is the one that it was opened by. Blocks.
    pub(super) fn guarded_name(&self, real: &Path, file: &Metadata) -> Option<PathBuf> {
        if !file.is_file() || file.nlink() < 2 {
            return None;
        }
        let is_same = |other: &Path| {
            other != real
                && fs::symlink_metadata(other)
                    .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == (file.dev(), file.ino()))
        };
        let mut left = ENTRIES_MAX;
        let is_credential = |path: &Path, folder: &Path| {
            path.strip_prefix(folder)
                .is_ok_and(|below| names_credential(&below.to_string_lossy()).is_some())
        };
        self.own
            .iter()
            .find_map(|own| search(own, &mut left, &is_same))
            .or_else(|| {
                self.folders.iter().find_map(|folder| {
                    search(folder, &mut left, &|path| {
                        is_credential(path, folder) && is_same(path)
                    })
                })
            })
    }
}

/// The first file at or below a path that the test picks; links are not followed.
fn search(path: &Path, left: &mut usize, is_wanted: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        *left = left.checked_sub(1)?;
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            pending.extend(entries.take(*left).map(|entry| entry.path()));
        } else if metadata.is_file() && is_wanted(&path) {
            return Some(path);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use tidegate_gate::{Access, PathFault};

    use super::*;
    use crate::files::{OperandKind, Roots, View, resolve_operand};

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
}

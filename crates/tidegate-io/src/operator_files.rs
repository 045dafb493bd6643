//! The operator's own text files, read from disk anew each time.

use std::{
    fs::{Metadata, OpenOptions},
    io::ErrorKind,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};
use tidegate_core::port::{FileFault, OperatorFiles};

use crate::files::is_one_of;

/// The most names of one folder of the operator's; more are an error, since leaving some out would be silent.
const NAMES_MAX: usize = 10_000;

/// Bytes by which there is more room for a file that has become longer since its length was asked.
const GROWTH_BYTES: usize = 16 << 10;

/// The disk. Links are followed: these paths are the operator's, not the model's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

/// The disk without some files: whoever opened the database of this process by another name and closed it again would
/// drop the locks that SQLite holds (see [`files`](crate::files)). Asked before the file is opened; a name that is given
/// to the database in between is not noticed, and only the operator gives names here.
#[derive(Debug, Clone)]
pub struct DiskBut {
    shut: Vec<PathBuf>,
}

impl DiskBut {
    /// Of files that are there or not.
    pub fn new(shut: Vec<PathBuf>) -> Self {
        Self { shut }
    }

    /// Costs a look at the file alone where it has one name and is none itself.
    fn is_shut(&self, path: &Path) -> bool {
        let may_be_another = |file: &Metadata| !file.is_file() || file.nlink() > 1;
        std::fs::symlink_metadata(path).is_ok_and(|file| may_be_another(&file))
            && std::fs::metadata(path).is_ok_and(|file| is_one_of(&self.shut, &file))
    }
}

impl OperatorFiles for DiskBut {
    fn read(&self, path: &Path, bytes_max: usize) -> Result<String, FileFault> {
        if self.is_shut(path) {
            return Err(FileFault::Unreadable {
                path: path.display().to_string(),
                problem: "it is another name of the server's own database".to_owned(),
            });
        }
        Disk.read(path, bytes_max)
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileFault> {
        Disk.list(folder)
    }
}

impl OperatorFiles for Disk {
    fn read(&self, path: &Path, bytes_max: usize) -> Result<String, FileFault> {
        let unreadable = |problem: String| FileFault::Unreadable {
            path: path.display().to_string(),
            problem,
        };
        // Opening a pipe would wait for its other end.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(|problem| fault(path, &problem))?;
        let metadata = file.metadata().map_err(|problem| fault(path, &problem))?;
        if !metadata.is_file() {
            return Err(unreadable("it is not a regular file".to_owned()));
        }
        let too_large = || unreadable(format!("it holds more than {bytes_max} bytes"));
        let bound = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        if metadata.len() > bound {
            return Err(too_large());
        }
        // With room for a byte more than there should be, one read sees the end: a regular file gives less than
        // was asked for nowhere else.
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).map_or(0, |length| length + 1));
        while bytes.len() < bytes.capacity() && bytes.len() <= bytes_max {
            match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
                Ok(0) => break,
                Ok(_) if bytes.len() < bytes.capacity() => break,
                // It grows while it is read.
                Ok(_) => bytes.reserve(GROWTH_BYTES),
                Err(Errno::INTR) => {}
                Err(problem) => return Err(fault(path, &problem.into())),
            }
        }
        if bytes.len() > bytes_max {
            return Err(too_large());
        }
        String::from_utf8(bytes).map_err(|problem| {
            unreadable(format!(
                "it is not UTF-8 text (byte {})",
                problem.utf8_error().valid_up_to()
            ))
        })
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileFault> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|problem| fault(folder, &problem))? {
            if paths.len() == NAMES_MAX {
                return Err(FileFault::Unreadable {
                    path: folder.display().to_string(),
                    problem: format!("it holds more than {NAMES_MAX} names"),
                });
            }
            paths.push(entry.map_err(|problem| fault(folder, &problem))?.path());
        }
        paths.sort();
        Ok(paths)
    }
}

fn fault(path: &Path, problem: &std::io::Error) -> FileFault {
    let path = path.display().to_string();
    if problem.kind() == ErrorKind::NotFound {
        FileFault::Missing(path)
    } else {
        FileFault::Unreadable {
            path,
            problem: problem.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_of_a_file_that_is_shut_is_not_opened() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        for name in ["base.db", "notes.md"] {
            crate::files::write_private(&at(name), b"text")?;
        }
        std::fs::hard_link(at("base.db"), at("hard.md"))?;
        std::fs::hard_link(at("notes.md"), at("twin.md"))?;
        std::os::unix::fs::symlink("base.db", at("soft.md"))?;
        std::os::unix::fs::symlink("notes.md", at("alias.md"))?;
        let disk = DiskBut::new(vec![at("base.db"), at("base.db-wal")]);
        for name in ["hard.md", "soft.md"] {
            let fault = disk.read(&at(name), 10).expect_err("shut");
            assert!(fault.to_string().contains("database"), "{fault}");
        }
        for name in ["notes.md", "twin.md", "alias.md"] {
            assert_eq!(disk.read(&at(name), 10)?, "text");
        }
        assert_eq!(disk.list(folder.path())?.len(), 6);
        Ok(())
    }

    #[test]
    fn a_file_is_read_whole_or_the_reason_is_said() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let text = folder.path().join("AGENT.md");
        std::fs::copy("Cargo.toml", folder.path().join("copy"))?;
        assert_eq!(
            Disk.read(&text, 10),
            Err(FileFault::Missing(text.display().to_string()))
        );
        crate::files::write_private(&text, "Grüß".as_bytes())?;
        assert_eq!(Disk.read(&text, 6)?, "Grüß");
        assert!(matches!(Disk.read(&text, 5), Err(FileFault::Unreadable { .. })));
        crate::files::write_private(&text, &[b'a', 0xff])?;
        let fault = Disk.read(&text, 10).expect_err("not UTF-8");
        assert!(fault.to_string().contains("byte 1"), "{fault}");
        assert!(matches!(
            Disk.read(folder.path(), 10),
            Err(FileFault::Unreadable { .. })
        ));
        assert_eq!(Disk.list(folder.path())?, [text, folder.path().join("copy")]);
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR)?;
        assert!(matches!(Disk.read(&pipe, 10), Err(FileFault::Unreadable { .. })));
        let nowhere = folder.path().join("nowhere");
        assert!(matches!(Disk.list(&nowhere), Err(FileFault::Missing(_))));
        Ok(())
    }
}

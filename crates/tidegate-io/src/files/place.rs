//! An opened place, and what may be done with it.

use std::{
    ffi::OsString,
    fs::File,
    io::{ErrorKind, Read},
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, open, openat, statat},
    io::Errno,
};
use tidegate_core::tool::FailureCode;
use tidegate_gate::{PathKind, ResolvedPath, floors::is_temporary_name};

use super::{
    Roots,
    twins::{Identity, Twins},
    write,
};

/// The most names of one folder that are looked at; more are counted, not shown.
const NAMES_MAX: usize = 10_000;

/// What is held of a place.
#[derive(Debug)]
pub(super) enum Spot {
    /// The thing itself.
    There(OwnedFd),
    /// The nearest folder that exists, and the names that do not.
    Nothing { parent: OwnedFd, missing: Vec<OsString> },
}

/// Where a request leads: an open handle, and the real path of that handle. Judge [`Place::resolved`] first;
/// every method then works on the handle that was judged.
#[derive(Debug)]
pub struct Place {
    roots: Roots,
    index: usize,
    relative: PathBuf,
    resolved: ResolvedPath,
    spot: Spot,
}

/// Why a file could not be read, listed or written. The text is fit for the model: paths are relative to the
/// allowed folder.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// A folder, or something that is neither file nor folder.
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    /// Not a folder.
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    /// More than may be read; it is not cut.
    #[error("`{name}` holds more than {bytes_max} bytes, the most that may be read")]
    TooLarge {
        /// Which.
        name: String,
        /// The bound.
        bytes_max: usize,
    },
    /// Not UTF-8, or holding NUL.
    #[error("`{0}` is not a text file")]
    NotText(String),
    /// It is not what it was when it was judged.
    #[error("`{0}` changed while it was being used; nothing was written")]
    Changed(String),
    /// The operating system refuses.
    #[error("`{0}` may not be used: the operating system denies it")]
    Denied(String),
    /// The operating system failed.
    #[error("`{name}` cannot be used: {problem}")]
    Io {
        /// Which.
        name: String,
        /// The operating system's reason.
        problem: std::io::Error,
    },
}

impl FileError {
    /// The stable code of the failure.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::NotFound(_) => FailureCode::NotFound,
            Self::NotAFile(_) | Self::NotAFolder(_) => FailureCode::InvalidArguments,
            Self::TooLarge { .. } => FailureCode::TooLarge,
            Self::NotText(_) => FailureCode::NotText,
            Self::Denied(_) => FailureCode::PermissionDenied,
            Self::Changed(_) => FailureCode::Unsuccessful,
            Self::Io { .. } => FailureCode::Internal,
        }
    }

    pub(super) fn from_os(name: &str, problem: impl Into<std::io::Error>) -> Self {
        let problem = problem.into();
        let name = name.to_owned();
        if problem.kind() == ErrorKind::NotFound {
            Self::NotFound(name)
        } else if problem.kind() == ErrorKind::NotADirectory {
            Self::NotAFolder(name)
        } else if matches!(
            problem.kind(),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
        ) {
            Self::Denied(name)
        } else {
            Self::Io { name, problem }
        }
    }
}

/// What an entry of a folder is. Links are shown as links and not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, socket or device.
    Other,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name; what is not UTF-8 is shown with replacement characters.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// The size of a file in bytes, 0 for anything else.
    pub bytes: u64,
}

/// The entries of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// By name.
    pub entries: Vec<Entry>,
    /// How many more there are.
    pub left_out: usize,
}

impl Place {
    pub(super) fn new(
        roots: Roots,
        index: usize,
        relative: PathBuf,
        resolved: ResolvedPath,
        spot: Spot,
    ) -> Self {
        Self {
            roots,
            index,
            relative,
            resolved,
            spot,
        }
    }

    /// What the gate judges.
    pub fn resolved(&self) -> &ResolvedPath {
        &self.resolved
    }

    /// The name by which it can be asked for again, for people and models: the real path below the first root,
    /// from which relative paths are counted (`.` for that root itself), or the whole real path in another.
    pub fn requested_name(&self) -> String {
        if self.index != 0 {
            self.resolved.real.display().to_string()
        } else if self.relative.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            self.relative.display().to_string()
        }
    }

    /// The whole text. A file of more than `bytes_max` bytes is an error, never cut.
    pub fn read_text(&self, bytes_max: usize) -> Result<String, FileError> {
        let name = self.requested_name();
        let too_large = || FileError::TooLarge {
            name: self.requested_name(),
            bytes_max,
        };
        let handle = self.handle()?;
        if self.resolved.kind != PathKind::File {
            return Err(FileError::NotAFile(name));
        }
        let file =
            reopen_file(handle, self.roots.twins()).map_err(|problem| FileError::from_os(&name, problem))?;
        let size = file
            .metadata()
            .map_err(|problem| FileError::from_os(&name, problem))?
            .len();
        let bound = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        if size > bound {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        file.take(bound.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|problem| FileError::from_os(&name, problem))?;
        if bytes.len() > bytes_max {
            return Err(too_large());
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text),
            Ok(_) | Err(_) => Err(FileError::NotText(name)),
        }
    }

    /// The entries of a folder, sorted by name, at most `entries_max`.
    pub fn list(&self, entries_max: usize) -> Result<Listing, FileError> {
        let name = self.requested_name();
        let handle = self.handle()?;
        if self.resolved.kind != PathKind::Folder {
            return Err(FileError::NotAFolder(name));
        }
        list_folder(handle, entries_max).map_err(|problem| FileError::from_os(&name, problem))
    }

    /// Replaces the file, or creates it and its missing folders: a temporary name beside it, flushed to disk,
    /// then renamed. Whatever fails, the old bytes stay. Other names of the same file keep the old bytes.
    pub fn write_atomic(&self, bytes: &[u8]) -> Result<write::Written, FileError> {
        write::write_atomic(self, bytes)
    }

    /// Removes the file, if it is still the one that was judged. Other names of the same file stay.
    pub fn remove_file(&self) -> Result<(), FileError> {
        write::remove_file(self)
    }

    pub(super) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// The folder the file stands in, opened again by names alone.
    pub(super) fn open_parent(&self) -> Result<OwnedFd, FileError> {
        let name = self.requested_name();
        let (Ok(root), Some(parent)) = (self.roots.get(self.index), self.relative.parent()) else {
            return Err(FileError::NotAFile(name));
        };
        super::walk::open_folder(&root.handle, parent).map_err(|problem| match problem {
            Errno::LOOP | Errno::NOTDIR | Errno::NOENT => FileError::Changed(name),
            problem => FileError::from_os(&name, problem),
        })
    }

    pub(super) fn real_parent(&self) -> Option<&Path> {
        self.resolved.real.parent()
    }

    fn handle(&self) -> Result<&OwnedFd, FileError> {
        match &self.spot {
            Spot::There(handle) => Ok(handle),
            Spot::Nothing { .. } => Err(FileError::NotFound(self.requested_name())),
        }
    }
}

/// Opens the very file of a handle of `O_PATH` for reading. A pipe, socket or device is not opened, and neither is a
/// file that the twins forbid: see there.
pub(super) fn reopen_file(handle: &OwnedFd, twins: &Twins) -> Result<File, Errno> {
    let stat = fstat(handle)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    if twins.forbids(Identity::of_stat(&stat)) {
        return Err(Errno::PERM);
    }
    let opened = open(
        format!("/proc/self/fd/{}", handle.as_raw_fd()),
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    Ok(File::from(opened))
}

/// Opens the very folder of a handle for reading its names, or for flushing them.
pub(super) fn reopen_folder(handle: &OwnedFd) -> Result<OwnedFd, Errno> {
    openat(
        handle,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// The names of a folder, at most [`NAMES_MAX`] of them, and how many more there are.
pub(super) fn names_in(folder: &OwnedFd) -> Result<(Vec<OsString>, usize), Errno> {
    use std::os::unix::ffi::OsStringExt;
    let mut names = Vec::new();
    let mut left_out = 0;
    for entry in Dir::new(reopen_folder(folder)?)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() < NAMES_MAX {
            names.push(OsString::from_vec(name));
        } else {
            left_out += 1;
        }
    }
    Ok((names, left_out))
}

fn list_folder(folder: &OwnedFd, entries_max: usize) -> Result<Listing, Errno> {
    let (mut names, mut left_out) = names_in(folder)?;
    names.retain(|name| !is_temporary_name(name));
    names.sort_unstable();
    left_out += names.len().saturating_sub(entries_max);
    names.truncate(entries_max);
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        // A name that went away meanwhile is no longer part of the folder.
        let Ok(stat) = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => EntryKind::Other,
        };
        let bytes = if kind == EntryKind::File {
            u64::try_from(stat.st_size).unwrap_or(0)
        } else {
            0
        };
        entries.push(Entry {
            name: name.to_string_lossy().into_owned(),
            kind,
            bytes,
        });
    }
    Ok(Listing { entries, left_out })
}

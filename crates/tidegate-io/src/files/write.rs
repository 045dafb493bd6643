//! Writing by renaming, and removing.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Write,
    os::fd::OwnedFd,
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, fchmod, fstat, fsync, mkdirat, openat, renameat,
        renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use tidegate_gate::{
    PathKind,
    floors::{TEMPORARY_PREFIX, TEMPORARY_SUFFIX, is_temporary_name},
};

use super::{
    place::{FileError, Place, Spot, names_in, reopen_folder},
    resolve::real_path,
    walk::open_subfolder,
};

/// How many temporary names are tried; each that is taken belongs to a write under way or a killed one.
const TEMPORARY_NAMES_MAX: u32 = 64;

/// A temporary file this much older than a fresh one was left by a process that was killed. No write takes
/// this long.
const LEFT_OVER_AFTER_S: i64 = 60 * 60;

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Whether the file was not there before.
    pub is_new: bool,
}

pub(super) fn write_atomic(place: &Place, bytes: &[u8]) -> Result<Written, FileError> {
    let name = place.requested_name();
    let (folder, last, old) = match place.spot() {
        Spot::There(handle) => {
            if place.resolved().kind != PathKind::File {
                return Err(FileError::NotAFile(name));
            }
            let old = fstat(handle).map_err(|problem| FileError::from_os(&name, problem))?;
            let last = place.resolved().real.file_name().map(OsStr::to_owned);
            (place.open_parent()?, last, Some(old))
        }
        Spot::Nothing { parent, missing } => {
            let (folder, last) = make_folders(&name, parent, missing)?;
            (folder, last, None)
        }
    };
    let Some(last) = last else {
        return Err(FileError::NotAFile(name));
    };
    // The folder may have been moved, or replaced by another, since the place was judged.
    if real_path(&folder).ok().as_deref() != place.real_parent() {
        return Err(FileError::Changed(name));
    }
    replace(&folder, &last, bytes, old.as_ref()).map_err(|problem| match problem {
        Errno::EXIST | Errno::LOOP | Errno::STALE => FileError::Changed(name),
        problem => FileError::from_os(&name, problem),
    })?;
    Ok(Written {
        is_new: old.is_none(),
    })
}

pub(super) fn remove_file(place: &Place) -> Result<(), FileError> {
    let name = place.requested_name();
    let Spot::There(handle) = place.spot() else {
        return Err(FileError::NotFound(name));
    };
    let last = place.resolved().real.file_name();
    let (PathKind::File, Some(last)) = (place.resolved().kind, last) else {
        return Err(FileError::NotAFile(name));
    };
    let folder = place.open_parent()?;
    let from_os = |problem: Errno| FileError::from_os(&name, problem);
    let judged = fstat(handle).map_err(from_os)?;
    let now = statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW).map_err(from_os)?;
    let is_same = (now.st_dev, now.st_ino) == (judged.st_dev, judged.st_ino);
    if !is_same || real_path(&folder).ok().as_deref() != place.real_parent() {
        return Err(FileError::Changed(name));
    }
    unlinkat(&folder, last, AtFlags::empty()).map_err(from_os)?;
    // The name is gone on disk only when its folder is written.
    reopen_folder(&folder).and_then(fsync).map_err(from_os)
}

/// Makes every missing folder, handle by handle, and gives the innermost with the name that is left.
fn make_folders(
    name: &str,
    parent: &OwnedFd,
    missing: &[OsString],
) -> Result<(OwnedFd, Option<OsString>), FileError> {
    let failed = |problem: Errno| match problem {
        Errno::LOOP | Errno::NOTDIR => FileError::Changed(name.to_owned()),
        problem => FileError::from_os(name, problem),
    };
    let mut folder = parent
        .try_clone()
        .map_err(|problem| FileError::from_os(name, problem))?;
    let Some((last, folders)) = missing.split_last() else {
        return Ok((folder, None));
    };
    for next in folders {
        match mkdirat(&folder, next, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(problem) => return Err(failed(problem)),
        }
        folder = open_subfolder(&folder, next).map_err(failed)?;
    }
    Ok((folder, Some(last.clone())))
}

/// Puts `bytes` where `last` stands. `old` is the file that was judged; nothing else is replaced.
fn replace(folder: &OwnedFd, last: &OsStr, bytes: &[u8], old: Option<&Stat>) -> Result<(), Errno> {
    let mode = match old {
        Some(old) => Mode::from_raw_mode(old.st_mode & 0o777),
        None => Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH,
    };
    let (file, temporary) = Temporary::create(folder, mode)?;
    remove_left_overs(folder, &file);
    if old.is_some() {
        fchmod(&file, mode)?;
    }
    let mut file = file;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(|problem| Errno::from_io_error(&problem).unwrap_or(Errno::IO))?;
    temporary.rename(last, old)?;
    // The name is on disk only when its folder is.
    reopen_folder(folder).and_then(fsync)
}

/// A temporary file that is removed unless it was renamed.
struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    fn create(folder: &'a OwnedFd, mode: Mode) -> Result<(File, Self), Errno> {
        for number in 0..TEMPORARY_NAMES_MAX {
            let name = format!(
                "{TEMPORARY_PREFIX}{}-{number}{TEMPORARY_SUFFIX}",
                std::process::id()
            );
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(folder, &name, flags, mode | Mode::RUSR | Mode::WUSR) {
                Ok(handle) => {
                    let name = Some(name);
                    return Ok((File::from(handle), Self { folder, name }));
                }
                Err(Errno::EXIST) => {}
                Err(problem) => return Err(problem),
            }
        }
        Err(Errno::BUSY)
    }

    fn rename(mut self, last: &OsStr, old: Option<&Stat>) -> Result<(), Errno> {
        let Some(name) = self.name.as_deref() else {
            return Err(Errno::NOENT);
        };
        match (old, statat(self.folder, last, AtFlags::SYMLINK_NOFOLLOW)) {
            (Some(old), Ok(now)) if (now.st_dev, now.st_ino) == (old.st_dev, old.st_ino) => {
                renameat(self.folder, name, self.folder, last)?;
            }
            (None, Err(Errno::NOENT)) => {
                match renameat_with(self.folder, name, self.folder, last, RenameFlags::NOREPLACE) {
                    // Some file systems have no such rename; the look just before has to do there.
                    Err(Errno::INVAL | Errno::NOSYS) => renameat(self.folder, name, self.folder, last)?,
                    other => other?,
                }
            }
            (Some(_) | None, Ok(_)) | (Some(_), Err(_)) => return Err(Errno::STALE),
            (None, Err(problem)) => return Err(problem),
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take()
            && let Err(problem) = unlinkat(self.folder, name, AtFlags::empty())
        {
            tracing::debug!(%problem, "a temporary file stays; a later write to its folder removes it");
        }
    }
}

/// Removes what killed writes left in this folder. Age is told by the file system's own clock, from the file
/// that was just made; failing to remove is no failure of the write.
fn remove_left_overs(folder: &OwnedFd, fresh: &File) {
    let Ok(now) = fstat(fresh) else { return };
    let Ok((names, _)) = names_in(folder) else { return };
    for name in names.iter().filter(|name| is_temporary_name(name)) {
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file
            && now.st_mtime - stat.st_mtime > LEFT_OVER_AFTER_S
            && let Err(problem) = unlinkat(folder, name, AtFlags::empty())
        {
            tracing::debug!(%problem, "a left-over temporary file cannot be removed");
        }
    }
}

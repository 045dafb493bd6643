//! The server's own files: paths of the operator's, for nobody else's eyes.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

/// How many temporary names are tried beside the file.
const TEMPORARY_NAMES_MAX: u32 = 16;

/// Creates a folder and those above it, for the owner alone (0700). A folder that is there already keeps its
/// permissions: they are the operator's.
pub fn create_private_dir(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether this user may make files in a folder. Asks the system and makes none.
pub fn check_writable_dir(path: &Path) -> std::io::Result<()> {
    use rustix::fs::Access;
    if !std::fs::metadata(path)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    Ok(rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Replaces a file atomically, for the owner alone (0600). Whatever fails, the old bytes stay.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let Some(name) = path.file_name() else {
        return Err(std::io::Error::new(
            ErrorKind::InvalidInput,
            "the path names no file",
        ));
    };
    let (mut file, temporary) = (0..TEMPORARY_NAMES_MAX)
        .find_map(|number| {
            let mut temporary = name.to_owned();
            temporary.push(format!(".{}-{number}.tmp", std::process::id()));
            let temporary = path.with_file_name(temporary);
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&temporary)
            {
                Ok(file) => Some(Ok((file, temporary))),
                Err(problem) if problem.kind() == ErrorKind::AlreadyExists => None,
                Err(problem) => Some(Err(problem)),
            }
        })
        .unwrap_or_else(|| Err(std::io::Error::other("too many temporary files stand beside it")))?;
    let outcome = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path));
    if outcome.is_err() {
        drop(std::fs::remove_file(&temporary));
        return outcome;
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        Some(_) | None => Ok(()),
    }
}

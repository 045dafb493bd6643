//! Why the store cannot be opened or asked, and what an operator can do about it.

use std::path::PathBuf;

use sqlx::migrate::MigrateError;
use tidegate_core::error::StoreError;

/// Why the store did not open, or could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder or the file cannot be made or read.
    #[error("cannot use {path}: {source}; make the folder writable for this user or set another path")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is something else.
    #[error("{path} is not a tidegate database; set another path or move the file away")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The schema is newer than this program.
    #[error(
        "{path} was written by a newer tidegate (migration {version}); run that version, or restore an older backup"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The first migration that is unknown here.
        version: i64,
    },
    /// A migration that has run differs from the one in this program.
    #[error(
        "{path} was migrated by a different build (migration {version} differs); restore a backup or use that build"
    )]
    ForeignSchema {
        /// The file.
        path: PathBuf,
        /// The migration.
        version: i64,
    },
    /// Another daemon owns the file.
    #[error("another tidegate daemon is using {path}; stop it, or give this one another database path")]
    DaemonRunning {
        /// The database.
        path: PathBuf,
    },
    /// SQLite refused.
    #[error("{path}: {advice}")]
    Database {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        advice: String,
    },
}

impl Error {
    pub(crate) fn database(path: &std::path::Path, error: &sqlx::Error) -> Self {
        let path = path.to_owned();
        match code(error) {
            Some(NOT_A_DATABASE) => Self::NotADatabase { path },
            Some(_) | None => Self::Database {
                path,
                advice: advice(error),
            },
        }
    }

    pub(crate) fn migration(path: &std::path::Path, error: &MigrateError) -> Self {
        if let MigrateError::VersionMissing(version) = error {
            return Self::NewerSchema {
                path: path.to_owned(),
                version: *version,
            };
        }
        if let MigrateError::VersionMismatch(version) = error {
            return Self::ForeignSchema {
                path: path.to_owned(),
                version: *version,
            };
        }
        if let MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) = error {
            return Self::database(path, error);
        }
        Self::Database {
            path: path.to_owned(),
            advice: error.to_string(),
        }
    }
}

/// SQLite's primary result codes (<https://www.sqlite.org/rescode.html>).
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READ_ONLY: u32 = 8;
const IO: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANNOT_OPEN: u32 = 14;
const CONSTRAINT: u32 = 19;
const MISMATCH: u32 = 20;
const NOT_A_DATABASE: u32 = 26;

/// The primary result code: the low byte of the extended one.
fn code(error: &sqlx::Error) -> Option<u32> {
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// What is wrong, and what an operator can do. SQLite's own text names columns at most, never their content.
fn advice(error: &sqlx::Error) -> String {
    match known(error) {
        Some(advice) => format!("{advice} ({error})"),
        None => error.to_string(),
    }
}

/// The same for strangers: without SQLite's own text.
pub(crate) fn fault(error: &sqlx::Error) -> &'static str {
    known(error).unwrap_or("it refuses writes; the log says why")
}

fn known(error: &sqlx::Error) -> Option<&'static str> {
    Some(match code(error) {
        Some(BUSY | LOCKED) => "another process holds the database; wait for it or stop it",
        Some(READ_ONLY) => "the database is read-only; make the file and its folder writable for this user",
        Some(IO) => "the disk reports an error; check it and its file system",
        Some(CORRUPT) => "the database is damaged; restore a backup",
        Some(FULL) => "the disk is full; free some space",
        Some(CANNOT_OPEN) => "the file cannot be opened; check its path and owner",
        Some(NOT_A_DATABASE) => "the file is not a database; set another path or move it away",
        Some(_) | None => return None,
    })
}

/// The port's error, saying what was being done.
pub(crate) fn failed(doing: &'static str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |error| {
        let text = format!("{doing}: {}", advice(&error));
        tracing::debug!(doing, error = %error, "a database statement failed");
        StoreError::Internal(text)
    }
}

/// Whether the database will never take these values, however often it is asked.
pub(crate) fn is_refused(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(CONSTRAINT | MISMATCH))
}

/// Whether a row of that id is there already.
pub(crate) fn is_duplicate(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

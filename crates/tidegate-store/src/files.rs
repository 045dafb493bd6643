//! The files of the database: made private, opened with the right pragmas, migrated, locked.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::ErrorKind,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, SqliteConnection, SqlitePool,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{error::Error, options::Options};

/// The schema, embedded.
pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// Pages (of 4 KiB) after which a commit moves the log into the file itself. High: the worker does it beside
/// the commits, and this is the backstop.
const AUTOCHECKPOINT_PAGES: &str = "10000";
/// How long a trial write waits for another process.
const TRIAL_BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a read waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes the folder (0700) and the file (0600) where they do not exist; what exists keeps its mode.
pub(crate) fn create_private(path: &Path) -> Result<(), Error> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(at(folder))?;
    }
    // Only ever with `create_new`: closing a second handle of a database that this process has open would
    // drop SQLite's locks on it (POSIX locks belong to the process, not to the handle).
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(at(path)(error)),
    }
}

/// What each connection has in common.
fn connection(options: &Options) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(&options.path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_millis(options.busy_timeout_ms))
        .foreign_keys(true)
        .disable_statement_logging()
}

/// A connection that writes.
pub(crate) async fn writer(options: &Options) -> Result<SqliteConnection, sqlx::Error> {
    connection(options)
        .pragma("wal_autocheckpoint", AUTOCHECKPOINT_PAGES)
        // What is deleted is overwritten: an erased message does not linger in free pages.
        .pragma("secure_delete", "ON")
        .optimize_on_close(true, None)
        .connect()
        .await
}

/// A connection for a trial write: it does not keep the others waiting for long.
pub(crate) async fn trial(options: &Options) -> Result<SqliteConnection, sqlx::Error> {
    let timeout = Duration::from_millis(options.busy_timeout_ms).min(TRIAL_BUSY_TIMEOUT);
    connection(options)
        .busy_timeout(timeout)
        .pragma("wal_autocheckpoint", AUTOCHECKPOINT_PAGES)
        .connect()
        .await
}

/// The connections that read.
pub(crate) fn readers(options: &Options) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(options.readers_max.max(1))
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A connection to a file does not go stale, and the ping would double the cost of a look-up.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(connection(options).read_only(true))
}

/// Brings the schema up to date.
pub(crate) async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), Error> {
    // Whoever comes second at a migration finds it done at the next attempt: each attempt sees at least one more.
    let attempts_max = MIGRATIONS.iter().count() + 1;
    let mut attempt = 1;
    loop {
        // Not `run`, which takes anything that gives a connection: the compiler cannot tell then that the
        // future may move between threads.
        match MIGRATIONS.run_direct(None, connection, false).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                let error = Error::migration(path, &error);
                // Two processes may meet at a new file. Each migration is a transaction, so that the one who
                // comes second fails cleanly and finds the work done when it looks again.
                let hopeless = !matches!(error, Error::Database { .. });
                if hopeless || attempt == attempts_max {
                    return Err(error);
                }
                attempt += 1;
            }
        }
    }
}

/// Takes the daemon's lock beside the database. The lock ends with the handle, or with the process.
pub(crate) fn lock_daemon(database: &Path) -> Result<File, Error> {
    let path = lock_path(database);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::DaemonRunning {
            path: database.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(Error::File { path, source }),
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

//! Looking at the database without touching it: nothing is made, migrated or locked.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::Access;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{error::Error, files::MIGRATIONS};

/// How long another process may hold the database back.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// What `doctor` wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The database file.
    pub path: PathBuf,
    /// What SQLite found wrong with the file; empty where it is sound.
    pub faults: Vec<String>,
    /// The newest migration that has run.
    pub schema_version: i64,
    /// The newest migration that this program knows. Another one that is older is migrated at the next start, a
    /// newer one is refused.
    pub known_version: i64,
    /// Whether there is any key.
    pub has_keys: bool,
    /// Why nothing can be written, if so.
    pub write_fault: Option<String>,
    /// Whether the file is readable or writable for other users of the machine.
    pub is_exposed: bool,
    /// The size of the file, without its log.
    pub size_bytes: u64,
    /// Room on the disk for this user, where the system says.
    pub free_bytes: Option<u64>,
}

/// Looks the database over: soundness, schema, whether it can be written, room on the disk. `None` where there is
/// no such file yet. Leaves everything as it is.
pub async fn inspect(path: &Path) -> Result<Option<Inspection>, Error> {
    let at = |source| Error::File {
        path: path.to_owned(),
        source,
    };
    if !path.try_exists().map_err(at)? {
        return Ok(None);
    }
    let metadata = std::fs::metadata(path).map_err(at)?;
    let refused = |error: sqlx::Error| Error::database(path, &error);
    let mut connection = open(path).await.map_err(refused)?;
    let faults: Vec<String> = sqlx::query_scalar("PRAGMA quick_check(10)")
        .fetch_all(&mut connection)
        .await
        .map_err(refused)?;
    let schema_version = if has_table(&mut connection, "_sqlx_migrations")
        .await
        .map_err(refused)?
    {
        sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success")
            .fetch_one(&mut connection)
            .await
            .map_err(refused)?
    } else {
        0
    };
    let has_keys = if has_table(&mut connection, "keys").await.map_err(refused)? {
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM keys)")
            .fetch_one(&mut connection)
            .await
            .map_err(refused)?
    } else {
        false
    };
    connection.close().await.map_err(refused)?;
    Ok(Some(Inspection {
        path: path.to_owned(),
        faults: faults.into_iter().filter(|line| line != "ok").collect(),
        schema_version,
        known_version: MIGRATIONS
            .iter()
            .map(|step| step.version)
            .max()
            .unwrap_or_default(),
        has_keys,
        write_fault: write_fault(path),
        is_exposed: metadata.permissions().mode() & 0o077 != 0,
        size_bytes: metadata.len(),
        free_bytes: rustix::fs::statvfs(path)
            .ok()
            .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
    }))
}

/// A connection that reads. Where nobody has the database open, it is told that nobody will: it would leave a log
/// and its index behind otherwise.
async fn open(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
        .immutable(!Path::new(&log).exists())
        .busy_timeout(BUSY_TIMEOUT)
        .disable_statement_logging()
        .connect()
        .await
}

async fn has_table(connection: &mut SqliteConnection, name: &str) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1)")
        .bind(name.to_owned())
        .fetch_one(connection)
        .await
}

/// The file and its folder, where the log is made, must both be writable.
fn write_fault(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    [Some(path), folder].into_iter().flatten().find_map(|path| {
        let fault = rustix::fs::access(path, Access::WRITE_OK).err()?;
        Some(format!("{}: {fault}", path.display()))
    })
}

#[cfg(test)]
mod tests;

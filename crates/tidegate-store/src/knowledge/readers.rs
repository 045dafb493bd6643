//! Connections that read documents: a few, each used by one blocking thread at a time.
//!
//! A search reads thousands of rows, and loading vectors a hundred thousand; row by row through a channel between
//! threads, as elsewhere in this crate, that would take several times as long as reading them.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use tidegate_core::error::StoreError;
use tokio::sync::Semaphore;

/// Reads at the same time.
const CONNECTIONS_MAX: usize = 3;

/// How long a read waits where another process is recovering the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements that are kept ready on each connection.
const STATEMENTS_MAX: usize = 32;

/// Pages that each connection keeps, in KiB: about what the index of ten thousand chunks takes.
const PRAGMAS: &str = "PRAGMA cache_size = -8192; PRAGMA query_only = ON";

/// The connections.
#[derive(Debug, Clone)]
pub(crate) struct Readers {
    path: PathBuf,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// Opens nothing yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            idle: Arc::default(),
        }
    }

    /// Does `work` on a connection and a blocking thread. What it reads is of one moment.
    pub(crate) async fn read<T, W>(&self, doing: &'static str, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    {
        let closed = |_| StoreError::Internal(format!("{doing}: the database is closed"));
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(closed)?;
        let (path, idle) = (self.path.clone(), Arc::clone(&self.idle));
        let permits = Arc::clone(&self.permits);
        let reading = tokio::task::spawn_blocking(move || {
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match kept {
                Some(connection) => connection,
                None => open(&path)?,
            };
            let output = at_one_moment(&connection, work)?;
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            if !permits.is_closed() {
                idle.push(connection);
            }
            drop(permit);
            Ok(output)
        });
        match reading.await {
            Ok(read) => read.map_err(|error: rusqlite::Error| failed(doing, &error)),
            Err(error) => Err(StoreError::Internal(format!("{doing}: {error}"))),
        }
    }

    /// Closes what is idle; what is at work closes when it has ended.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

pub(super) fn failed(doing: &str, error: &rusqlite::Error) -> StoreError {
    tracing::debug!(doing, %error, "a database statement failed");
    StoreError::Internal(format!("{doing}: {error}"))
}

fn open(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.execute_batch(PRAGMAS)?;
    Ok(connection)
}

/// A connection whose work failed is not used again.
fn at_one_moment<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
) -> Result<T, rusqlite::Error> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let output = work(connection)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(output)
}

//! Short writes, made on the thread that asks for them.
//!
//! Through sqlx a write goes to the worker's task, from there to the connection's thread, and all the way back:
//! four wake-ups that each take longer than the write itself, which is some tens of microseconds of appending
//! pages to the log. So the journal's lines, which stand in the way of every request, are written here where
//! nobody else is writing. Where somebody is, or anything at all goes wrong, nothing has been written and the
//! command takes its place in the queue like any other, to share a transaction or to be told its error.
//!
//! The commit is the same as the worker's: on return the log has it, and it survives the end of the process.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Statement, ToSql};
use tokio::sync::{Mutex, MutexGuard};

use crate::options::Options;

/// Statements that are kept ready: those of the journal and of its transactions.
const STATEMENTS_MAX: usize = 32;

/// As the worker's connection has them; but moving the log into the file is the worker's alone.
const PRAGMAS: &str = "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; \
     PRAGMA wal_autocheckpoint = 0";

/// The connection for short writes. Its lock is the right to write; the worker takes it, too.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    /// There while the worker runs.
    connection: Mutex<Option<Connection>>,
    commits: AtomicU64,
    /// Whether the connection had to be closed while it was needed.
    is_lost: AtomicBool,
}

/// While it lives, nothing is written directly.
pub(crate) type Rest<'d> = MutexGuard<'d, Option<Connection>>;

impl Direct {
    /// Opens the database that was made, migrated and put into WAL mode before.
    pub(crate) async fn open(&self, options: &Options) -> Result<(), rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&options.path, flags)?;
        // Whoever would have to wait goes to the queue instead.
        connection.busy_timeout(Duration::ZERO)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.execute_batch(PRAGMAS)?;
        *self.connection.lock().await = Some(connection);
        self.is_lost.store(false, Ordering::Release);
        Ok(())
    }

    /// Whether it should be opened again.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Runs the statements of `sql`, parted by `; `, in a transaction of their own, `$1` being the first of
    /// `values`; gives how many rows the last of them returned. `None`: nothing was written, and the queue
    /// shall do it.
    pub(crate) fn try_write(&self, sql: &str, values: &[&dyn ToSql]) -> Option<usize> {
        let mut guard = self.connection.try_lock().ok()?;
        let connection = guard.as_ref()?;
        match transact(connection, sql, values) {
            Ok(rows) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                Some(rows)
            }
            Err(error) => {
                tracing::debug!(%error, "a short write goes to the queue");
                // It may have failed before its BEGIN, or in its COMMIT; then there is nothing to roll back.
                if !connection.is_autocommit()
                    && let Err(error) = connection.execute_batch("ROLLBACK")
                {
                    tracing::warn!(%error, "a database transaction could not be rolled back; its connection is replaced");
                    // Closing takes it back, and nobody is kept from writing.
                    *guard = None;
                    self.is_lost.store(true, Ordering::Release);
                }
                None
            }
        }
    }

    /// Waits for the write under way, and keeps others away.
    pub(crate) async fn rest(&self) -> Rest<'_> {
        self.connection.lock().await
    }

    /// How many writes were made here.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Closes the connection; from here on everything goes to the queue.
    pub(crate) async fn close(&self) {
        drop(self.connection.lock().await.take());
    }
}

fn transact(connection: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<usize, rusqlite::Error> {
    if !sql.contains("; ") {
        // One statement that writes is a transaction by itself, begun with the right to write.
        return step(connection, sql, values);
    }
    step(connection, "BEGIN IMMEDIATE", &[])?;
    let mut rows = 0;
    for statement in sql.split("; ") {
        rows = step(connection, statement, values)?;
    }
    step(connection, "COMMIT", &[])?;
    Ok(rows)
}

fn step(connection: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<usize, rusqlite::Error> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, values)?;
    let mut rows = statement.raw_query();
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Gives each parameter `$N` the N-th value. SQLite takes these for names, and numbers them as they come.
fn bind(statement: &mut Statement<'_>, values: &[&dyn ToSql]) -> Result<(), rusqlite::Error> {
    for index in 1..=statement.parameter_count() {
        let number = statement
            .parameter_name(index)
            .and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok())
            .unwrap_or_default();
        let value = number
            .checked_sub(1)
            .and_then(|at| values.get(at))
            .ok_or(rusqlite::Error::InvalidParameterCount(number, values.len()))?;
        statement.raw_bind_parameter(index, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn direct(folder: &tempfile::TempDir) -> (Direct, Connection) {
        let options = Options {
            path: folder.path().join("a.db"),
            ..Options::default()
        };
        let other = Connection::open(&options.path).unwrap();
        other
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER)")
            .unwrap();
        let direct = Direct::default();
        assert_eq!(direct.try_write("DELETE FROM t", &[]), None, "it is not open yet");
        direct.open(&options).await.unwrap();
        (direct, other)
    }

    fn count(connection: &Connection) -> i64 {
        connection
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
            .unwrap()
    }

    #[tokio::test]
    async fn statements_share_values_and_a_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let (direct, other) = direct(&folder).await;
        let sql = "INSERT INTO t VALUES ($2, $1); INSERT INTO t VALUES ($2 || 'x', $1) RETURNING a";
        assert_eq!(direct.try_write(sql, &[&7, &"a"]), Some(1));
        let sum: i64 = other
            .query_row("SELECT sum(b) FROM t", [], |row| row.get(0))
            .unwrap();
        assert_eq!((sum, direct.commits()), (14, 1));
        // The second statement fails, so that the first has not happened either, and the next write is free.
        assert_eq!(
            direct.try_write(
                "INSERT INTO t VALUES ('c', 1); INSERT INTO t VALUES ($1, 1)",
                &[&"a"]
            ),
            None
        );
        assert_eq!(count(&other), 2);
        assert_eq!(direct.try_write("DELETE FROM t RETURNING a", &[]), Some(2));
    }

    #[tokio::test]
    async fn nothing_is_waited_for_and_nothing_written_while_another_writes() {
        let folder = tempfile::tempdir().unwrap();
        let (direct, other) = direct(&folder).await;
        let insert = "INSERT INTO t VALUES ('a', 1)";
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(direct.try_write(insert, &[]), None);
        other.execute_batch("ROLLBACK").unwrap();
        let rest = direct.rest().await;
        assert_eq!(direct.try_write(insert, &[]), None);
        drop(rest);
        assert_eq!(count(&other), 0);
        assert_eq!(direct.try_write(insert, &[]), Some(0));
        direct.close().await;
        assert_eq!(direct.try_write("DELETE FROM t", &[]), None);
        assert_eq!(count(&other), 1);
    }
}

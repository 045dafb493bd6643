//! The connection that writes, which is replaced when nobody can tell any more what state it is in.
//!
//! SQLite takes a transaction back by itself when the disk is full or fails, and whoever counts transactions in front
//! of it does not notice. So a connection whose transaction did not end as it should is not mended but closed, which
//! takes back whatever is open; the next write opens another one, set up as the first.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use sqlx::{Connection as _, Sqlite, SqliteConnection, Transaction};
use tidegate_core::error::StoreError;

use super::Job;
use crate::{error::failed, files, options::Options};

/// Why a transaction came to nothing.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: StoreError,
    /// Whether it had begun: then one of its commands may be to blame, or its commit.
    pub(super) has_begun: bool,
    /// Whether it is known to be taken back, so that the connection can be used again.
    is_clean: bool,
}

impl Failure {
    fn within(error: StoreError) -> Self {
        Self {
            error,
            has_begun: true,
            is_clean: false,
        }
    }

    fn before(error: StoreError) -> Self {
        Self {
            error,
            has_begun: false,
            is_clean: false,
        }
    }
}

/// The connection, or the lack of one until the next write.
pub(super) struct Link {
    connection: Option<SqliteConnection>,
    options: Options,
}

impl Link {
    pub(super) fn new(connection: SqliteConnection, options: Options) -> Self {
        Self {
            connection: Some(connection),
            options,
        }
    }

    /// Runs all of them in one transaction.
    pub(super) async fn together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
        let end = match self.connection().await {
            Ok(connection) => caught(transact(connection, jobs)).await,
            Err(error) => return Err(Failure::before(error)),
        };
        self.checked(end)
    }

    /// Runs one in a transaction of its own, in one round trip where it can.
    pub(super) async fn alone(&mut self, job: &mut Box<dyn Job>) -> Result<(), Failure> {
        let end = match self.connection().await {
            Ok(connection) => caught(transact_alone(connection, job)).await,
            Err(error) => return Err(Failure::before(error)),
        };
        self.checked(end)
    }

    /// Closes it.
    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        match self.connection {
            Some(connection) => connection.close().await,
            None => Ok(()),
        }
    }

    /// The connection; opened if need be, once: whoever writes next tries again.
    async fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => files::writer(&self.options)
                .await
                .map_err(failed("opening the database again"))?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Keeps the connection where it is at rest for certain, and drops it otherwise: its thread then closes it.
    fn checked(&mut self, end: Result<(), Failure>) -> Result<(), Failure> {
        let is_clean = end.as_ref().err().is_none_or(|failure| failure.is_clean);
        let is_open = self
            .connection
            .as_ref()
            .is_some_and(SqliteConnection::is_in_transaction);
        if !is_clean || is_open {
            tracing::debug!("the database connection that writes is replaced");
            self.connection = None;
        }
        end
    }
}

async fn transact(connection: &mut SqliteConnection, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    // IMMEDIATE: a transaction that reads first and writes later would fail at once, whatever the busy
    // timeout, if another process commits in between.
    let mut transaction: Transaction<'_, Sqlite> = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(|error| Failure::before(failed("starting a transaction")(error)))?;
    for job in jobs {
        if let Err(error) = job.apply(&mut transaction).await {
            let mut failure = Failure::within(error);
            match transaction.rollback().await {
                Ok(()) => failure.is_clean = true,
                Err(error) => tracing::debug!(%error, "a transaction had been taken back already"),
            }
            return Err(failure);
        }
    }
    transaction
        .commit()
        .await
        .map_err(|error| Failure::within(failed("committing")(error)))
}

async fn transact_alone(connection: &mut SqliteConnection, job: &mut Box<dyn Job>) -> Result<(), Failure> {
    match job.apply_alone(connection).await {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => {
            let mut failure = Failure::within(error);
            // Where it failed before its BEGIN or in its COMMIT there may be nothing to roll back.
            match sqlx::query("ROLLBACK").execute(connection).await {
                Ok(_) => failure.is_clean = true,
                Err(error) => tracing::debug!(%error, "there was no transaction to roll back"),
            }
            Err(failure)
        }
        None => transact(connection, std::slice::from_mut(job)).await,
    }
}

/// Runs it to its end, and takes a panic for a failure: whoever writes next has done nothing wrong.
async fn caught(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let mut work = pin!(work);
    poll_fn(|context| {
        // What the work leaves behind is thrown away with the connection.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(panicked(panic.as_ref()))),
        }
    })
    .await
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(
        panic = text,
        "a database write panicked; its transaction is taken back"
    );
    let text = "a write failed unexpectedly and was taken back; the log says where";
    Failure::within(StoreError::Internal(text.to_owned()))
}

//! The one writer: a bounded queue of commands, committed in groups.
//!
//! A caller's write is answered after its commit. While one transaction is being committed others queue up
//! and share the next one, so that the cost of a commit is divided by the number of callers. A command that
//! fails takes its neighbours' transaction with it; then each of them runs again in a transaction of its own,
//! and only the culprit is told of its error. A command is therefore written so that it can run twice.
//!
//! A connection whose transaction ended otherwise than it should is replaced ([`link`]), and after a failure it is found
//! out whether anything can be written at all ([`pulse`]).

mod link;
mod pulse;

use std::{
    fmt,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sqlx::{Connection as _, SqliteConnection};
use tidegate_core::error::StoreError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::{
    link::Link,
    pulse::{Fault, Pulse},
};
use crate::{erase, store::Store};

/// Commands in one transaction at most, so that the first of them does not wait long for the last.
const BATCH_MAX: usize = 128;
/// A transaction that takes longer than this is worth a line in the log.
const SLOW: Duration = Duration::from_secs(1);
/// Transactions after which the log is moved into the database file.
const CHECKPOINT_EVERY: u64 = 500;

/// Something to write. It may run more than once, each time in a fresh transaction.
#[async_trait]
pub(crate) trait Command: Send + Sync + 'static {
    /// What the caller gets after the commit.
    type Output: Send + 'static;

    /// Writes.
    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Self::Output, StoreError>;

    /// Does the same with its own transaction around it, in one round trip to the database's thread instead
    /// of three; `None` where a command has no such form. For the commands of every request.
    async fn apply_alone(&self, _: &mut SqliteConnection) -> Option<Result<Self::Output, StoreError>> {
        None
    }
}

/// The two forms of a hot command's statements: within a transaction, and with one of its own.
macro_rules! statements {
    ($(#[$doc:meta])* $within:ident, $alone:ident = $sql:literal) => {
        $(#[$doc])*
        const $within: &str = $sql;
        const $alone: &str = concat!("BEGIN IMMEDIATE; ", $sql, "; COMMIT");
    };
}
pub(crate) use statements;

/// A command in the queue, its types forgotten.
#[async_trait]
trait Job: Send {
    async fn apply(&mut self, connection: &mut SqliteConnection) -> Result<(), StoreError>;
    async fn apply_alone(&mut self, connection: &mut SqliteConnection) -> Option<Result<(), StoreError>>;
    fn answer(self: Box<Self>, end: Result<(), StoreError>);
}

struct Queued<C: Command> {
    command: C,
    output: Option<C::Output>,
    reply: oneshot::Sender<Result<C::Output, StoreError>>,
}

#[async_trait]
impl<C: Command> Job for Queued<C> {
    async fn apply(&mut self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        self.output = Some(self.command.apply(connection).await?);
        Ok(())
    }

    async fn apply_alone(&mut self, connection: &mut SqliteConnection) -> Option<Result<(), StoreError>> {
        let done = self.command.apply_alone(connection).await?;
        Some(done.map(|output| self.output = Some(output)))
    }

    fn answer(self: Box<Self>, end: Result<(), StoreError>) {
        let Self { output, reply, .. } = *self;
        // A caller who has gone away does not need the answer; the write stands.
        drop(reply.send(end.and_then(|()| output.ok_or_else(stopped))));
    }
}

fn stopped() -> StoreError {
    StoreError::Internal("the writer has stopped; the process is shutting down".to_owned())
}

fn too_slow() -> StoreError {
    let text = "the database did not take a write in time; see whether its disk is overloaded";
    StoreError::Internal(text.to_owned())
}

/// A place in the queue.
type Room<'q> = mpsc::Permit<'q, Box<dyn Job>>;

/// The way into the queue.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    timeout: Duration,
    fault: Fault,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("free", &self.queue.capacity())
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// A writer and the end of the queue that a [`Worker`] empties.
    pub(crate) fn new(queue_max: usize, timeout: Duration) -> (Self, Queue) {
        let (queue, jobs) = mpsc::channel(queue_max.max(1));
        let writer = Self {
            queue,
            timeout,
            fault: Fault::default(),
        };
        (writer, Queue { jobs })
    }

    /// Why nothing can be written just now, if so.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.queue.is_closed() {
            return Some("the writer has stopped; restart the server");
        }
        self.fault.get()
    }

    /// Commands in the queue.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Runs a command and waits for its commit, for a bounded time. After a timeout the write may still happen.
    pub(crate) async fn run<C: Command>(&self, command: C) -> Result<C::Output, StoreError> {
        tokio::time::timeout(self.timeout, self.run_to_end(command))
            .await
            .unwrap_or_else(|_| Err(too_slow()))
    }

    /// Like [`Writer::run`], for a caller who must know whether the write happened. What bounds it is that
    /// the worker gives up on each transaction after the busy timeout.
    pub(crate) async fn run_to_end<C: Command>(&self, command: C) -> Result<C::Output, StoreError> {
        let room = self.queue.reserve().await.map_err(|_| stopped())?;
        Self::run_in(room, command).await
    }

    /// Like [`Writer::run_to_end`], but waits only for a bounded time for room in the queue: whoever is refused
    /// is refused before anything can be written.
    pub(crate) async fn run_or_refuse<C: Command>(&self, command: C) -> Result<C::Output, StoreError> {
        let room = tokio::time::timeout(self.timeout, self.queue.reserve())
            .await
            .map_err(|_| too_slow())?
            .map_err(|_| stopped())?;
        Self::run_in(room, command).await
    }

    async fn run_in<C: Command>(room: Room<'_>, command: C) -> Result<C::Output, StoreError> {
        let (reply, answer) = oneshot::channel();
        room.send(Box::new(Queued {
            command,
            output: None,
            reply,
        }));
        answer.await.map_err(|_| stopped())?
    }
}

/// The receiving end of the queue.
pub(crate) struct Queue {
    jobs: mpsc::Receiver<Box<dyn Job>>,
}

/// The task behind a [`Store`]: it owns the only connection that writes. Nothing is written unless
/// [`Worker::run`] runs.
pub struct Worker {
    store: Store,
    queue: Queue,
    connection: SqliteConnection,
    maintenance: SqliteConnection,
    flush_interval: Duration,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Worker {
    pub(crate) fn new(
        store: Store,
        queue: Queue,
        connection: SqliteConnection,
        maintenance: SqliteConnection,
        flush_interval: Duration,
    ) -> Self {
        Self {
            store,
            queue,
            connection,
            maintenance,
            flush_interval,
        }
    }

    /// Writes until `shutdown`; then books what is left, closes the open quota blocks, empties the queue, closes
    /// the database and ends. Spawn it on a task tracker, and cancel it after everything that uses the store has ended.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self {
            store,
            queue,
            connection,
            maintenance,
            flush_interval,
        } = self;
        let mut link = Link::new(connection, store.options().clone());
        if let Err(error) = store.direct().open(store.options()).await {
            tracing::warn!(%error, "the journal is written through the queue alone, which takes longer");
        }
        let flushed = CancellationToken::new();
        let commits = AtomicU64::new(0);
        let writing = write_all(queue, &mut link, &store, &commits, &flushed);
        let keeping = async {
            keep(&store, maintenance, flush_interval, &commits, &shutdown).await;
            flushed.cancel();
        };
        tokio::join!(writing, keeping);
        // The writer goes last: the last connection to go tidies the log away.
        store.direct().close().await;
        store.readers().close().await;
        store.knowledge().close();
        store.memory().close();
        if let Err(error) = link.close().await {
            tracing::warn!(%error, "the database did not close cleanly; it recovers by itself at the next start");
        }
        tracing::debug!("the database writer has ended");
    }
}

/// Books usage every interval, and moves the log into the file away from the commits.
async fn keep(
    store: &Store,
    mut maintenance: SqliteConnection,
    interval: Duration,
    commits: &AtomicU64,
    shutdown: &CancellationToken,
) {
    let mut tick = tokio::time::interval(interval.max(Duration::from_millis(1)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut moved_at = 0;
    while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
        warn(
            "usage is not on the disk yet and will be tried again",
            store.flush_tick(),
        )
        .await;
        if store.direct().is_lost() {
            let opening = store.direct().open(store.options());
            warn(
                "the journal is written through the queue alone, which takes longer",
                opening,
            )
            .await;
        }
        warn(
            "what a deleted key has left is not erased yet and will be tried again",
            store.erase_abandoned(),
        )
        .await;
        let now = commits.load(Ordering::Relaxed) + store.direct().commits();
        if store.take_was_erased() {
            // What was erased must not stay readable in the log.
            let emptied = erase::empty_log(&mut maintenance).await;
            if !matches!(emptied, Ok(true)) {
                // Somebody reads an older state; the next tick tries again.
                store.note_erased();
            }
            warn("erased text stays in the database log for now", async { emptied }).await;
        } else if now.saturating_sub(moved_at) >= CHECKPOINT_EVERY {
            moved_at = now;
            let moving = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut maintenance);
            warn("the database log was not moved into the file", moving).await;
        }
    }
    warn(
        "the last usage rows are lost; they will count as spent",
        store.flush_last(),
    )
    .await;
    warn("a database connection did not close", maintenance.close()).await;
}

async fn warn<T, E: fmt::Display>(what: &'static str, work: impl Future<Output = Result<T, E>>) {
    if let Err(error) = work.await {
        tracing::warn!(%error, "{what}");
    }
}

/// Commits what is queued until `end` and the queue is empty.
async fn write_all(
    Queue { mut jobs }: Queue,
    link: &mut Link,
    store: &Store,
    commits: &AtomicU64,
    end: &CancellationToken,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut pulse = Pulse::new(store.writer().fault.clone(), store.options().clone());
    loop {
        let received = tokio::select! {
            biased;
            received = end.run_until_cancelled(jobs.recv_many(&mut batch, BATCH_MAX)) => received,
            // An empty batch, after which the trial is made.
            () = pulse.due() => Some(0),
        };
        if received.is_none() {
            break;
        }
        let rest = store.direct().rest().await;
        if !batch.is_empty() {
            commit(link, &mut batch, &mut pulse).await;
            commits.fetch_add(1, Ordering::Relaxed);
        }
        pulse.try_if_due().await;
        drop(rest);
    }
    jobs.close();
    while jobs.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let _rest = store.direct().rest().await;
        commit(link, &mut batch, &mut pulse).await;
    }
}

/// Runs a batch in one transaction, or, where one of them fails, each in its own.
async fn commit(link: &mut Link, batch: &mut Vec<Box<dyn Job>>, pulse: &mut Pulse) {
    let begun = Instant::now();
    let count = batch.len();
    let end = match batch.as_mut_slice() {
        [job] => link.alone(job).await,
        jobs => link.together(jobs).await,
    };
    match end {
        // One of them is to blame, and the others shall not suffer for it.
        Err(failure) if failure.has_begun && count > 1 => {
            for mut job in batch.drain(..) {
                let end = link.together(std::slice::from_mut(&mut job)).await;
                answer(job, end.map_err(|failure| failure.error), pulse);
            }
        }
        // Or nothing could begin: there is no culprit among them, and each would wait as long again.
        Ok(()) | Err(_) => {
            let end = end.map_err(|failure| failure.error);
            batch.drain(..).for_each(|job| answer(job, end.clone(), pulse));
        }
    }
    if begun.elapsed() > SLOW {
        let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(
            elapsed_ms,
            commands = count,
            "a database transaction was slow; see whether the disk is overloaded"
        );
    }
}

/// Tells the caller, and keeps in mind whether writes go through.
fn answer(job: Box<dyn Job>, end: Result<(), StoreError>, pulse: &mut Pulse) {
    match &end {
        Ok(()) => pulse.written(),
        // The database has looked, and is well.
        Err(StoreError::Duplicate(_)) => {}
        Err(StoreError::Internal(_)) => pulse.failed(),
    }
    job.answer(end);
}

#[cfg(test)]
mod tests;

//! Beginning and end: signals, soft and hard shutdown, tracked tasks.
//!
//! The first signal is soft: the listener closes, what is under way may finish. At the drain deadline, or at
//! the second signal, it becomes hard: runs end now, each stream with a proper last event. Only when the tasks
//! are done, or their grace is over, do the store and the log writers close, so that what happened is written.

use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What hard-stopped tasks get to write their last event and leave, in milliseconds.
const GRACE_MS: u64 = 3_000;

/// What the store and the log writers get to write what is waiting, in milliseconds.
const CLOSE_MS: u64 = 10_000;

/// The tokens and the tracker that everything long-lived is tied to. Clones are the same lifecycle.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    /// Owns every task.
    pub tracker: TaskTracker,
    /// Cancelled when nothing new may begin.
    pub soft: CancellationToken,
    /// Cancelled when everything must end now.
    pub hard: CancellationToken,
    /// Owns the tasks that write down what the others did: the store's and the logs'.
    pub writers: TaskTracker,
    /// Cancelled when nothing more will come, so that the writers write what is waiting and end.
    pub closing: CancellationToken,
}

/// How the tasks ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// By themselves, within the drain time.
    Finished,
    /// When they were told to.
    Stopped,
    /// Not within their grace; what they had not written is lost.
    Abandoned,
}

impl Lifecycle {
    /// A lifecycle at its beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for a first signal, then for the tasks: at most `drain_ms` softly, then `GRACE_MS` after the
    /// hard token. `signal` is asked again for the second signal, which ends the soft part at once.
    pub async fn shut_down<S>(&self, mut signal: S, drain_ms: u64) -> Drained
    where
        S: AsyncFnMut() -> &'static str,
    {
        let name = tokio::select! {
            name = signal() => name,
            () = self.soft.cancelled() => "a request to stop",
        };
        self.soft.cancel();
        self.tracker.close();
        tracing::info!(
            drain_ms,
            tasks = self.tracker.len(),
            "stopping after {name}: what is under way may finish"
        );
        tokio::select! {
            () = self.tracker.wait() => return Drained::Finished,
            () = tokio::time::sleep(Duration::from_millis(drain_ms)) => {
                tracing::warn!(tasks = self.tracker.len(), "the drain time is over: ending what is under way");
            }
            name = signal() => tracing::warn!(tasks = self.tracker.len(), "{name} again: ending what is under way"),
        }
        self.hard.cancel();
        tokio::select! {
            () = self.tracker.wait() => Drained::Stopped,
            () = tokio::time::sleep(Duration::from_millis(GRACE_MS)) => {
                tracing::error!(tasks = self.tracker.len(), "some tasks did not end and were abandoned");
                Drained::Abandoned
            }
        }
    }
}

impl Lifecycle {
    /// Ends the writers; they write what is waiting first. False where one did not end in time.
    pub async fn close(&self) -> bool {
        self.closing.cancel();
        self.writers.close();
        let closed = tokio::time::timeout(Duration::from_millis(CLOSE_MS), self.writers.wait()).await;
        if closed.is_err() {
            tracing::error!("the store or a log did not close in time; the newest entries may be missing");
        }
        closed.is_ok()
    }
}

/// The signals that end the daemon.
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Begins to listen for SIGINT and SIGTERM.
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next signal's name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// The signal by which the operator has the policy read again.
#[derive(Debug)]
pub struct Hangups(tokio::signal::unix::Signal);

impl Hangups {
    /// Begins to listen for SIGHUP, which from now on ends nothing.
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // No signal can be heard any more.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn never() -> &'static str {
        std::future::pending().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_finishes_is_waited_for() {
        let lifecycle = Lifecycle::new();
        lifecycle
            .tracker
            .spawn(tokio::time::sleep(Duration::from_secs(5)));
        lifecycle.soft.cancel();
        assert_eq!(lifecycle.shut_down(never, 10_000).await, Drained::Finished);
        assert!(!lifecycle.hard.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_what_listens_to_the_hard_token() {
        let lifecycle = Lifecycle::new();
        let hard = lifecycle.hard.clone();
        lifecycle.tracker.spawn(async move { hard.cancelled().await });
        lifecycle.soft.cancel();
        assert_eq!(lifecycle.shut_down(never, 10_000).await, Drained::Stopped);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_does_not_wait_for_the_deadline() {
        let lifecycle = Lifecycle::new();
        let hard = lifecycle.hard.clone();
        lifecycle.tracker.spawn(async move { hard.cancelled().await });
        let begin = tokio::time::Instant::now();
        assert_eq!(
            lifecycle.shut_down(async || "SIGINT", 600_000).await,
            Drained::Stopped
        );
        assert!(begin.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_writers_end_last() {
        let lifecycle = Lifecycle::new();
        let closing = lifecycle.closing.clone();
        lifecycle.writers.spawn(async move { closing.cancelled().await });
        lifecycle.soft.cancel();
        assert_eq!(lifecycle.shut_down(never, 1).await, Drained::Finished);
        assert_eq!(lifecycle.writers.len(), 1);
        assert!(lifecycle.close().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_hears_nothing_is_abandoned() {
        let lifecycle = Lifecycle::new();
        lifecycle.tracker.spawn(std::future::pending::<()>());
        assert_eq!(
            lifecycle.shut_down(async || "SIGTERM", 1).await,
            Drained::Abandoned
        );
    }
}

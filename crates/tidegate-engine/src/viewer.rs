//! A run as its viewer holds it.
//!
//! A run belongs to nobody's request, but while a viewer waits for its next event there is no better place to
//! work on it than the viewer's own task: each change of tasks may wake another processor, which costs more than
//! what is handed over. As soon as the viewer leaves, or may take its time, a tracked task goes on with the run.

use std::{
    fmt,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tidegate_core::id::RunId;
use tokio::{runtime::Handle, sync::mpsc};
use tokio_util::{
    sync::DropGuard,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::RunEvent;

/// A run under way, as its viewer holds it.
#[derive(Debug)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    events: mpsc::Receiver<RunEvent>,
    /// The work, while it is done here.
    work: Option<Work>,
    /// Cancels the run when the viewer goes, where that is what the request asked for. Dropped after the work
    /// has been handed on.
    _cancel: Option<DropGuard>,
}

/// What is left to do of a run. Shutdown waits for it, as for a task.
struct Work {
    rest: BoxFuture<'static, ()>,
    tracker: TaskTracker,
    counted: TaskTrackerToken,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl Run {
    /// A run whose events `work` sends.
    pub(crate) fn new(
        id: RunId,
        events: mpsc::Receiver<RunEvent>,
        work: impl Future<Output = ()> + Send + 'static,
        tracker: TaskTracker,
        cancel: Option<DropGuard>,
    ) -> Self {
        let rest = AssertUnwindSafe(work).catch_unwind().map(|end| {
            if end.is_err() {
                // The viewer finds the events over without a last one.
                tracing::error!("the work on a run panicked");
            }
        });
        let counted = tracker.token();
        Self {
            id,
            events,
            work: Some(Work {
                rest: rest.boxed(),
                tracker,
                counted,
            }),
            _cancel: cancel,
        }
    }

    /// The next event; `None` after the last. Cancel-safe. Works on the run while it waits.
    pub async fn next(&mut self) -> Option<RunEvent> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// A tracked task goes on with the run, whether or not the next event is asked for. For a viewer that may
    /// keep events waiting.
    pub fn hand_on(&mut self) {
        let Some(work) = self.work.take() else { return };
        // Without a runtime the process is at its end; what the journal then says of the run is for the next start.
        if Handle::try_current().is_ok() {
            work.tracker.spawn(work.rest);
        }
        drop(work.counted);
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let Some(work) = &mut self.work else {
            return self.events.poll_recv(context);
        };
        // Only the work sends events, so that nobody need be woken for them.
        if let Ok(event) = self.events.try_recv() {
            return Poll::Ready(Some(event));
        }
        if Pin::new(&mut work.rest).poll(context).is_ready() {
            self.work = None;
            return self.events.poll_recv(context);
        }
        match self.events.try_recv() {
            Ok(event) => Poll::Ready(Some(event)),
            Err(_) => Poll::Pending,
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.hand_on();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn text(text: &str) -> RunEvent {
        RunEvent::Text(text.to_owned())
    }

    /// A run that says so many words, some time apart, and notes that it came to its end.
    fn run(words: u32, tracker: &TaskTracker, ended: &CancellationToken) -> Run {
        let (sender, events) = mpsc::channel(2);
        let ended = ended.clone();
        let work = async move {
            for word in 0..words {
                time::sleep(Duration::from_millis(10)).await;
                drop(sender.send(text(&word.to_string())).await);
            }
            ended.cancel();
        };
        Run::new(RunId::new("run_1"), events, work, tracker.clone(), None)
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_that_waits_does_the_work() {
        let (tracker, ended) = (TaskTracker::new(), CancellationToken::new());
        let mut run = run(5, &tracker, &ended);
        for word in 0..5 {
            assert_eq!(run.next().await, Some(text(&word.to_string())));
        }
        assert_eq!(run.next().await, None);
        assert_eq!(run.next().await, None);
        assert!(ended.is_cancelled());
        assert!(tracker.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn more_events_than_have_room_come_all_the_same() {
        let (sender, events) = mpsc::channel(2);
        let work = async move {
            for word in 0..50 {
                drop(sender.send(text(&word.to_string())).await);
            }
        };
        let mut run = Run::new(RunId::new("run_1"), events, work, TaskTracker::new(), None);
        for word in 0..50 {
            assert_eq!(run.next().await, Some(text(&word.to_string())));
        }
        assert_eq!(run.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_that_leaves_hands_the_work_on() {
        let (tracker, ended) = (TaskTracker::new(), CancellationToken::new());
        let mut run = run(5, &tracker, &ended);
        assert_eq!(run.next().await, Some(text("0")));
        assert_eq!(tracker.len(), 1);
        drop(run);
        assert_eq!(tracker.len(), 1);
        tracker.close();
        tracker.wait().await;
        assert!(ended.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_handed_on_goes_on_unasked() {
        let (tracker, ended) = (TaskTracker::new(), CancellationToken::new());
        let mut run = run(2, &tracker, &ended);
        assert_eq!(run.next().await, Some(text("0")));
        run.hand_on();
        ended.cancelled().await;
        assert_eq!(run.next().await, Some(text("1")));
        assert_eq!(run.next().await, None);
    }

    #[tokio::test]
    async fn a_panic_ends_the_events_and_nothing_else() {
        let (sender, events) = mpsc::channel(2);
        let work = async move {
            drop(sender.send(text("0")).await);
            panic!("on purpose");
        };
        let tracker = TaskTracker::new();
        let mut run = Run::new(RunId::new("run_1"), events, work, tracker.clone(), None);
        assert_eq!(run.next().await, Some(text("0")));
        assert_eq!(run.next().await, None);
        assert!(tracker.is_empty());
    }
}

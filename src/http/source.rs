//! The one event source that both encoders read: a run, until it ends or the daemon must stop.

use std::{future::Future, pin::Pin, time::Duration};

use futures_util::{Stream, StreamExt as _, stream};
use tidegate_engine::{Run, RunError, RunEvent};
use tokio::time;
use tokio_util::sync::CancellationToken;

/// The events of a run. Dropping it tells the run that nobody looks any more.
pub(super) type Events = Pin<Box<dyn Stream<Item = RunEvent> + Send>>;

/// How long the first event of a stream is waited for before a task of its own goes on with the run: until the
/// answer's head is out, the client can hold up nothing.
const FIRST_EVENT_WAIT: Duration = Duration::from_millis(900);

/// Whether the client takes the events as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// It does, and may take its time.
    Client,
    /// It gets one answer at the end; the events are read as soon as they are there.
    Ours,
}

/// The events of `run`; `grace` after `shutdown` they end with [`RunError::Stopping`].
pub(super) fn of_run(run: Run, pace: Pace, shutdown: CancellationToken, grace: Duration) -> Events {
    let events = stream::unfold(run, move |mut run| async move {
        if pace == Pace::Ours {
            return Some((run.next().await?, run));
        }
        // A client that stops reading must not keep the run from going on.
        let first = time::timeout(FIRST_EVENT_WAIT, run.next()).await;
        run.hand_on();
        let event = match first {
            Ok(event) => event?,
            Err(_) => run.next().await?,
        };
        Some((event, run))
    });
    until_stopped(events.boxed(), shutdown, grace)
}

/// `events`, cut with an error event when the daemon can wait no longer.
pub(super) fn until_stopped(events: Events, shutdown: CancellationToken, grace: Duration) -> Events {
    let stop: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
        shutdown.cancelled().await;
        time::sleep(grace).await;
    });
    stream::unfold(Some((events, stop)), |state| async move {
        let (mut events, mut stop) = state?;
        tokio::select! {
            biased;
            event = events.next() => Some((event?, Some((events, stop)))),
            () = stop.as_mut() => Some((RunEvent::Failed(RunError::Stopping), None)),
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_ends_a_silent_run_with_an_error() {
        let shutdown = CancellationToken::new();
        let silent = stream::iter([RunEvent::Text("a".into())])
            .chain(stream::pending())
            .boxed();
        let mut events = until_stopped(silent, shutdown.clone(), Duration::from_millis(1));
        assert_eq!(events.next().await, Some(RunEvent::Text("a".into())));
        shutdown.cancel();
        assert_eq!(events.next().await, Some(RunEvent::Failed(RunError::Stopping)));
        assert_eq!(events.next().await, None);
    }
}

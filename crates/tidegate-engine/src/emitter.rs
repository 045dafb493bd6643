//! The one channel from a run to its viewer.
//!
//! A viewer may leave while the run goes on; sending to nobody is then nothing. A slow viewer slows the run
//! (the channel is bounded) until the turn's own time limit ends it.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use tokio::sync::mpsc;

use crate::event::RunEvent;

/// How long the end of a run waits for a viewer that does not read.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(5);
/// Events that wait for a slow viewer.
pub(crate) const EVENTS_MAX: usize = 64;

/// Sends events, and remembers whether any text has been shown.
#[derive(Debug)]
pub(crate) struct Emitter {
    events: mpsc::Sender<RunEvent>,
    shown_bytes: AtomicU64,
    separate: AtomicBool,
}

impl Emitter {
    /// An emitter and the viewer's end.
    pub(crate) fn new() -> (Self, mpsc::Receiver<RunEvent>) {
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        (
            Self {
                events,
                shown_bytes: AtomicU64::new(0),
                separate: AtomicBool::new(false),
            },
            receiver,
        )
    }

    /// Sends any event but text.
    pub(crate) async fn send(&self, event: RunEvent) {
        // A closed channel means that nobody looks any more, which is no failure of the run.
        if self.events.send(event).await.is_err() {
            tracing::trace!("nobody looks at the run any more");
        }
    }

    /// Sends an event that may be lost: only where a place is free.
    pub(crate) fn offer(&self, event: RunEvent) {
        if self.events.try_send(event).is_err() {
            tracing::trace!("an event is left out");
        }
    }

    /// Sends the run's last words: to a viewer that has stopped reading only for so long.
    pub(crate) async fn send_last(&self, event: RunEvent) {
        if tokio::time::timeout(LAST_WORDS_WAIT, self.send(event))
            .await
            .is_err()
        {
            tracing::debug!("the viewer of a run has stopped reading; its last event is dropped");
        }
    }

    /// Shows text. The first text of a later round is set apart from the earlier round's.
    pub(crate) async fn show(&self, text: String) {
        if text.is_empty() {
            return;
        }
        let separated = self.separate.swap(false, Ordering::Relaxed) && self.has_shown();
        self.shown_bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        self.send(RunEvent::Text(if separated {
            format!("\n\n{text}")
        } else {
            text
        }))
        .await;
    }

    /// Whether any text has been shown in this run.
    pub(crate) fn has_shown(&self) -> bool {
        self.shown_bytes.load(Ordering::Relaxed) > 0
    }

    /// How many bytes of text have been shown.
    pub(crate) fn shown_bytes(&self) -> u64 {
        self.shown_bytes.load(Ordering::Relaxed)
    }

    /// Says that what follows belongs to another round.
    pub(crate) fn next_round(&self) {
        self.separate.store(true, Ordering::Relaxed);
    }
}

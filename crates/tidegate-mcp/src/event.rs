//! What servers say unasked, for the operator: bounded in number, in length and in how much is kept. What they say
//! about a call goes to the run that made it instead (`transport/watched.rs`).

use tokio::sync::broadcast;

/// How many events are kept for a receiver that is behind; older ones are lost to it, and it is told how many.
pub const EVENTS_KEPT: usize = 256;
/// The longest text of an event, in characters.
pub const TEXT_CHARS_MAX: usize = 500;

/// Something that happened at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The server's name.
    pub server: String,
    /// What.
    pub kind: Kind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A line of the server's own log, cleaned and cut: text from outside.
    Log {
        /// How grave, in the protocol's words: `debug` to `emergency`.
        level: &'static str,
        /// The line.
        text: String,
    },
    /// It is connected and its tools are known.
    Ready {
        /// How many tools are offered.
        tools: usize,
        /// How many are held back until a person approves their changed definition.
        blocked: usize,
    },
    /// It is not connected; it is tried again unless it is switched off.
    Down {
        /// Why.
        reason: String,
    },
}

/// Where events are put. Never waits.
#[derive(Debug, Clone)]
pub(crate) struct Events(broadcast::Sender<Event>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(EVENTS_KEPT))
    }

    pub(crate) fn receiver(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    pub(crate) fn send(&self, server: &str, kind: Kind) {
        // Without receivers there is nobody to tell.
        drop(self.0.send(Event {
            server: server.to_owned(),
            kind,
        }));
    }
}

//! Refuses request heads whose lines end with a bare line feed.
//!
//! RFC 9112, section 2.2, lets a recipient take a line feed alone for the end of a line, and hyper does. A proxy
//! in front that does not sees other lines, and other requests, than we do; that is how one is smuggled in. So a
//! watch looks at the bytes on their way to hyper, follows where heads begin and end, and gives its verdict when
//! hyper hands over the request. It follows pipelined heads too. Bytes of bodies are counted, not looked at.
//!
//! Where hyper takes no request out of a head, the watch still has its bytes and can tell why.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How much is kept of what came in one read behind a head. Hyper's buffer is bounded by
/// [`super::HEAD_BYTES_MAX`], but may be allocated for up to twice as much and is then filled.
const AHEAD_BYTES_MAX: usize = 4 * super::HEAD_BYTES_MAX;
/// Room for a head that a connection keeps from one request to the next; more is given back.
const KEPT_BYTES_MAX: usize = 2 << 10;

/// How the lines of a head end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every line ends with CR LF.
    Sound,
    /// A line feed stands alone, or the head went by unseen.
    Unsound,
}

/// What is known of one connection's bytes; its clones are the same watch. The lock is never contended, as one
/// task both reads the connection and takes its requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch(Arc<Mutex<Track>>);

impl Watch {
    /// To be called with everything that was read, in order.
    pub(super) fn see(&self, bytes: &[u8]) {
        self.track().see(bytes);
    }

    /// To be called once for each request, as soon as hyper hands it over. `body_bytes` is how long its body
    /// is; `None` when that is not known before its end, after which this connection must serve no other.
    pub(super) fn take(&self, body_bytes: Option<u64>) -> Verdict {
        self.track().take(body_bytes)
    }

    /// Whether bytes of a head are there that hyper has not made a request of.
    pub(super) fn has_unread_head(&self) -> bool {
        let track = self.track();
        match &track.place {
            Place::Head(_) => !track.head.is_empty(),
            Place::Ended(_) => true,
            Place::Body { .. } | Place::Blind => false,
        }
    }

    /// The bytes of that head.
    pub(super) fn unread(&self) -> Unread {
        let track = self.track();
        Unread {
            head: track.head.clone(),
            is_cut: track.is_cut,
            overdue: track.overdue,
        }
    }

    /// Notes that the head which has begun did not end within this time; says whether one has begun. It will
    /// not be waited for: the next read ends it.
    pub(super) fn expire(&self, timeout: Duration) -> bool {
        let mut track = self.track();
        // Empty lines before a request line say nothing yet (RFC 9112, 2.2).
        let says_something = track.head.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
        let has_begun = matches!(track.place, Place::Head(_)) && says_something;
        if has_begun && track.overdue.is_none() {
            track.overdue = Some(timeout);
            track.is_to_be_ended = true;
        }
        has_begun
    }

    /// Whether the head is to be ended now; true once.
    pub(super) fn ends_head(&self) -> bool {
        mem::take(&mut self.track().is_to_be_ended)
    }

    /// Notes that the request was refused for its head, with what follows it unread.
    pub(super) fn refuse(&self) {
        self.track().was_refused = true;
    }

    /// Whether that has been noted.
    pub(super) fn was_refused(&self) -> bool {
        self.track().was_refused
    }

    /// Ends the watch: what follows is no HTTP/1.
    pub(super) fn end(&self) {
        *self.track() = Track::blind();
    }

    fn track(&self) -> MutexGuard<'_, Track> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A head of which no request was made.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) head: Vec<u8>,
    /// There was more of it than is kept.
    pub(super) is_cut: bool,
    /// The time in which it did not end.
    pub(super) overdue: Option<Duration>,
}

#[derive(Debug, Default)]
struct Track {
    place: Place,
    /// The head under way, or the one that has just ended; at most [`super::HEAD_BYTES_MAX`].
    head: Vec<u8>,
    /// The head has more bytes than are kept.
    is_cut: bool,
    /// The time in which the head under way did not end.
    overdue: Option<Duration>,
    is_to_be_ended: bool,
    was_refused: bool,
    /// What came after the end of a head whose request hyper has not handed over yet: most often the beginning
    /// of its body. At most [`AHEAD_BYTES_MAX`].
    ahead: Vec<u8>,
}

/// What the next byte belongs to.
#[derive(Debug)]
enum Place {
    Head(Lines),
    /// A whole head has been seen; how long its body is, hyper will say.
    Ended(Verdict),
    Body {
        left: u64,
    },
    /// Nobody knows, and nobody may ask any more.
    Blind,
}

impl Default for Place {
    fn default() -> Self {
        Self::Head(Lines::default())
    }
}

impl Track {
    fn blind() -> Self {
        Self {
            place: Place::Blind,
            ..Self::default()
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = super::HEAD_BYTES_MAX - self.head.len();
        self.is_cut |= bytes.len() > room;
        self.head.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn see(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.place {
                Place::Head(lines) => {
                    let Some(end) = lines.read(bytes) else {
                        self.keep(bytes);
                        return;
                    };
                    self.place = Place::Ended(lines.verdict());
                    let (head, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
                    self.keep(head);
                    bytes = rest;
                }
                Place::Ended(_) => {
                    if self.ahead.len() + bytes.len() > AHEAD_BYTES_MAX {
                        *self = Self::blind();
                    } else {
                        self.ahead.extend_from_slice(bytes);
                    }
                    return;
                }
                Place::Body { left } => {
                    let here = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                    bytes = bytes.get(here..).unwrap_or_default();
                    *left -= here as u64;
                    if *left == 0 {
                        self.place = Place::default();
                    }
                }
                Place::Blind => return,
            }
        }
    }

    fn take(&mut self, body_bytes: Option<u64>) -> Verdict {
        let verdict = match self.place {
            Place::Ended(verdict) => verdict,
            Place::Head(_) | Place::Body { .. } | Place::Blind => Verdict::Unsound,
        };
        let ahead = mem::take(&mut self.ahead);
        self.is_cut = false;
        if self.head.capacity() > KEPT_BYTES_MAX {
            self.head = Vec::new();
        } else {
            self.head.clear();
        }
        self.place = match body_bytes {
            Some(0) => Place::default(),
            Some(left) => Place::Body { left },
            None => Place::Blind,
        };
        self.see(&ahead);
        verdict
    }
}

/// The lines of a head so far.
#[derive(Debug, Default)]
struct Lines {
    /// Empty lines before the first that is not are skipped, as hyper does.
    begun: bool,
    /// Bytes of the line under way that came with earlier reads.
    line_bytes: usize,
    /// The last byte was a CR.
    cr: bool,
    /// A line feed stood alone.
    bare: bool,
}

impl Lines {
    /// Reads on; gives how many of the bytes belong to the head, once its end is among them.
    fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut read = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            read += line.len();
            let Some((b'\n', text)) = line.split_last() else {
                self.line_bytes += line.len();
                self.cr = line.last() == Some(&b'\r');
                return None;
            };
            let cr = text.last().map_or(self.cr, |last| *last == b'\r');
            let text_bytes = self.line_bytes + text.len() - usize::from(cr);
            self.bare |= !cr;
            self.line_bytes = 0;
            self.cr = false;
            if text_bytes > 0 {
                self.begun = true;
            } else if self.begun {
                return Some(read);
            }
        }
        None
    }

    fn verdict(&self) -> Verdict {
        if self.bare {
            Verdict::Unsound
        } else {
            Verdict::Sound
        }
    }
}

#[cfg(test)]
mod tests;

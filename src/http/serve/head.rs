//! Refuses request heads whose lines end with a bare line feed.
//!
//! RFC 9112, section 2.2, lets a recipient take a line feed alone for the end of a line, and hyper does. A proxy
//! in front that does not sees other lines, and other requests, than we do; that is how one is smuggled in. So a
//! watch looks at the bytes on their way to hyper, follows where heads begin and end, and gives its verdict when
//! hyper hands over the request. It follows pipelined heads too. Bytes of bodies are counted, not looked at.
//!
//! The same stream is where a peer that has stopped reading is told from a slow one, see [`Stall`].

use std::{
    io::{self, IoSlice},
    mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::stall::Stall;

/// How much is kept of what came in one read behind a head. Hyper's buffer is bounded by
/// [`super::HEAD_BYTES_MAX`], but may be allocated for up to twice as much and is then filled.
const AHEAD_BYTES_MAX: usize = 4 * super::HEAD_BYTES_MAX;

/// A stream whose bytes are looked at while they are read, and that fails when they are not taken any more.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    watch: Watch,
    stall: Stall,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, watch: Watch, stall: Stall) -> Self {
        Self { stream, watch, stall }
    }

    /// What looks at the bytes.
    pub(super) fn watch(&self) -> Watch {
        self.watch.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.watch.see(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.stall.check(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.stall.check(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

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
    fn see(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).see(bytes);
    }

    /// To be called once for each request, as soon as hyper hands it over. `body_bytes` is how long its body
    /// is; `None` when that is not known before its end, after which this connection must serve no other.
    pub(super) fn take(&self, body_bytes: Option<u64>) -> Verdict {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(body_bytes)
    }

    /// Ends the watch: what follows is no HTTP/1.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Track::blind();
    }
}

#[derive(Debug, Default)]
struct Track {
    place: Place,
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
            ahead: Vec::new(),
        }
    }

    fn see(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.place {
                Place::Head(lines) => {
                    let Some(end) = lines.read(bytes) else { return };
                    self.place = Place::Ended(lines.verdict());
                    bytes = bytes.get(end..).unwrap_or_default();
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

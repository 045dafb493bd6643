//! The stream under a connection: what comes in is looked at, what goes out must be taken, and where hyper
//! refuses a head by itself its bare answer is exchanged for one of ours.
//!
//! Hyper parses a head before there is a request, so a head that is none never reaches the router. It answers
//! with a status and nothing else. A client that expects an error envelope with a reason and an id gets one
//! here instead.

use std::{
    fmt,
    future::Future as _,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{Router, response::Response};
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::{
    head::{Unread, Watch},
    reason,
    stall::Stall,
};
use crate::http::{error::ApiError, refused};

/// How much of a refused head, and of what follows it, is read and thrown away. Closing on unread bytes resets
/// the connection, and a client that is still sending would not hear why.
const LINGER_BYTES_MAX: usize = 1 << 20;
/// How long that may take.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes that are thrown away at once.
const SCRATCH_BYTES: usize = 4 << 10;
/// A byte that no head may have, and the end of one: hyper looks at a head again when it has an end.
const NO_HEAD: &[u8] = b"\0\r\n\r\n";
/// Hyper's own answers are a status, a date and two short headers.
const BARE_BYTES_MAX: usize = 256;

/// A stream whose bytes are looked at while they are read, and that fails when they are not taken any more.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    watch: Watch,
    stall: Stall,
    router: Router,
    refusal: Refusal,
    linger: Option<Linger>,
}

/// How far the answer is that stands in for hyper's.
enum Refusal {
    None,
    Asking(BoxFuture<'static, Vec<u8>>),
    Saying { answer: Vec<u8>, written: usize },
    Said,
}

#[derive(Debug)]
struct Linger {
    timer: Pin<Box<Sleep>>,
    left: usize,
}

impl<S> Watched<S> {
    /// `router` words the refusals.
    pub(super) fn new(stream: S, watch: Watch, stall: Stall, router: Router) -> Self {
        Self {
            stream,
            watch,
            stall,
            router,
            refusal: Refusal::None,
            linger: None,
        }
    }

    /// What looks at the bytes.
    pub(super) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Where in the bytes a bare answer of hyper's begins, if there is one.
    fn bare_answer(&self, buf: &[u8]) -> Option<usize> {
        match self.refusal {
            // Hyper offers the same bytes again until they are taken.
            Refusal::Asking(_) | Refusal::Saying { .. } => Some(0),
            Refusal::None if self.watch.has_unread_head() => bare_answer(buf),
            Refusal::None | Refusal::Said => None,
        }
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    fn write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.stall.check(written, cx)
    }

    /// Writes our answer in the place of the bare one, which is all of `bare`.
    fn refuse(&mut self, cx: &mut Context<'_>, bare: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match &mut self.refusal {
                Refusal::None => {
                    let unread = self.watch.unread();
                    self.refusal =
                        Refusal::Asking(Box::pin(stand_in(self.router.clone(), bare.to_vec(), unread)));
                }
                Refusal::Asking(asking) => {
                    let answer = ready!(asking.as_mut().poll(cx));
                    self.refusal = Refusal::Saying { answer, written: 0 };
                }
                Refusal::Saying { answer, written } => {
                    let rest = answer.get(*written..).unwrap_or_default();
                    if rest.is_empty() {
                        self.refusal = Refusal::Said;
                        return Poll::Ready(Ok(bare.len()));
                    }
                    let outcome = Pin::new(&mut self.stream).poll_write(cx, rest);
                    let bytes = ready!(self.stall.check(outcome, cx))?;
                    if bytes == 0 {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    *written += bytes;
                }
                Refusal::Said => return self.write(cx, bare),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() >= NO_HEAD.len() && self.watch.ends_head() {
            // Hyper gives up on a late head without a word; on one that is none it answers, and then so do we.
            buf.put_slice(NO_HEAD);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.watch.see(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.bare_answer(buf) {
            None => self.write(cx, buf),
            Some(0) => self.refuse(cx, buf),
            // An earlier answer still stands before it.
            Some(at) => self.write(cx, buf.get(..at).unwrap_or(buf)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !matches!(self.refusal, Refusal::Said) && !self.watch.was_refused() {
                return Poll::Ready(Ok(()));
            }
        }
        let Self { stream, linger, .. } = &mut *self;
        let linger = linger.get_or_insert_with(|| Linger {
            timer: Box::pin(sleep(LINGER)),
            left: LINGER_BYTES_MAX,
        });
        linger.poll(stream, cx).map(Ok)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.watch.has_unread_head() {
            // One buffer after the other, so that each is looked at.
            let first = bufs.iter().find(|buf| !buf.is_empty());
            return self.poll_write(cx, first.map_or(&[], |buf| &**buf));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.stall.check(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Linger {
    /// Ends when the peer has closed, has sent too much or has taken too long.
    fn poll<S: AsyncRead + Unpin>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; SCRATCH_BYTES];
        while self.timer.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut *stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                Ok(()) | Err(_) => break,
            }
            let Some(left) = self.left.checked_sub(buf.filled().len()) else {
                break;
            };
            self.left = left;
        }
        Poll::Ready(())
    }
}

/// Hyper's answer to a head that it does not take: an error status, no body, and none of our headers.
fn bare_answer(buf: &[u8]) -> Option<usize> {
    const BEGIN: &[u8] = b"HTTP/1.1 4";
    let from = buf.len().saturating_sub(BARE_BYTES_MAX);
    let end = buf.get(from..)?;
    let at = end.windows(BEGIN.len()).rposition(|window| window == BEGIN)?;
    let head = std::str::from_utf8(end.get(at..)?).ok()?;
    let is_bare = head.ends_with("\r\n\r\n")
        && head.contains("content-length: 0\r\n")
        && !head.contains("x-request-id");
    is_bare.then_some(from + at)
}

/// The bytes of the answer that stands in for the bare one.
async fn stand_in(router: Router, bare: Vec<u8>, unread: Unread) -> Vec<u8> {
    let status = bare.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
    let status = status.and_then(|code| code.parse().ok()).unwrap_or_default();
    let error = match unread.overdue {
        Some(timeout) => ApiError::head_timeout(timeout),
        None => reason::of(&unread.head, unread.is_cut, status),
    };
    let Ok(response) = refused::answer(router, error).await;
    spliced(&bare, response, unread.head.starts_with(b"HEAD ")).await
}

/// An answer as it goes over the wire to a connection that is not served.
pub(super) async fn whole(response: Response) -> Vec<u8> {
    spliced(&[], response, false).await
}

/// Our status, headers and body, and what else the bare head has.
async fn spliced(bare: &[u8], response: Response, head_alone: bool) -> Vec<u8> {
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
        return bare.to_vec();
    };
    let bare = String::from_utf8_lossy(bare);
    let kept = bare.lines().skip(1).filter(|line| {
        !line.is_empty() && !line.starts_with("content-length:") && !line.starts_with("connection:")
    });
    let mut answer = Vec::with_capacity(bare.len() + body.len() + 512);
    answer.extend_from_slice(format!("HTTP/1.1 {}\r\n", parts.status).as_bytes());
    for line in kept {
        answer.extend_from_slice(line.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    for (name, value) in &parts.headers {
        if matches!(name.as_str(), "content-length" | "connection") {
            continue;
        }
        answer.extend_from_slice(name.as_str().as_bytes());
        answer.extend_from_slice(b": ");
        answer.extend_from_slice(value.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    answer
        .extend_from_slice(format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes());
    if !head_alone {
        answer.extend_from_slice(&body);
    }
    answer
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Asking(_) => "Asking",
            Self::Saying { .. } => "Saying",
            Self::Said => "Said",
        })
    }
}

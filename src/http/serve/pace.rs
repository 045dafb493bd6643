//! Lets go of HTTP/2 streams whose peer takes nothing.
//!
//! HTTP/2 has its own windows above TCP's: a peer that answers every ping and never opens a window keeps the
//! connection alive and its responses in memory, with their turns behind them. What the socket takes says
//! nothing about that, so each response is sent in pieces that tell when they have left, and a stream whose
//! pieces stay is reset. The other streams of its connection go on.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::{
    body::{Frame, SizeHint},
    rt::Executor,
};
use tokio::{
    sync::watch,
    task_local,
    time::{self, MissedTickBehavior},
};
use tokio_util::task::TaskTracker;
use tracing::debug;

/// Bytes of a response that are under way on a stream at once, besides what the peer's window has room for.
/// Less than that within the time that a peer has counts as nothing.
const PIECE_BYTES_MAX: usize = 16 << 10;
/// How often a stream is looked at within the time that its peer has.
const LOOKS: u32 = 8;

task_local! {
    /// The pace of the stream that the task serves; there is none in the tasks of HTTP/1.
    static PACE: Pace;
}

/// Runs the streams of one connection, each in a task of its own.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    tracker: TaskTracker,
    timeout: Duration,
    open: watch::Sender<usize>,
}

impl Streams {
    /// `timeout` is how long a peer may take nothing of a stream.
    pub(super) fn new(tracker: TaskTracker, timeout: Duration) -> Self {
        Self {
            tracker,
            timeout,
            open: watch::Sender::new(0),
        }
    }

    /// Ends when there were streams and there has been none for so long.
    pub(super) async fn idle(self, time_max: Duration) {
        let mut open = self.open.subscribe();
        // We hold a sender ourselves, so nothing here fails.
        drop(open.wait_for(|open| *open > 0).await);
        self.quiet(time_max).await;
    }

    /// Ends when there has been no stream for so long.
    pub(super) async fn quiet(self, time_max: Duration) {
        let mut open = self.open.subscribe();
        loop {
            drop(open.wait_for(|open| *open == 0).await);
            if time::timeout(time_max, open.wait_for(|open| *open > 0))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let open = Open::new(self.open.clone());
        let timeout = self.timeout;
        self.tracker.spawn(async move {
            let _open = open;
            let pace = Pace::default();
            tokio::select! {
                biased;
                _ = PACE.scope(pace.clone(), stream) => {}
                () = pace.stalled(timeout) => {
                    debug!("a stream was reset: the peer takes nothing of it (`server.write_timeout_ms`)");
                }
            }
        });
    }
}

/// One open stream in the count of its connection.
struct Open(watch::Sender<usize>);

impl Open {
    fn new(open: watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// The body of a response, at the pace of its stream where it has one.
pub(super) fn paced(body: Body) -> Body {
    let pace = PACE.try_with(Pace::clone);
    match pace {
        Ok(pace) if !body.is_end_stream() => Body::new(Paced {
            body,
            rest: Bytes::new(),
            ended: false,
            pace,
        }),
        Ok(_) | Err(_) => body,
    }
}

/// What of one stream has been handed on and has not left.
#[derive(Debug, Clone, Default)]
struct Pace(Arc<Mutex<Pieces>>);

#[derive(Debug, Default)]
struct Pieces {
    waiting: usize,
    left: u64,
    /// Who waits for all to leave.
    waker: Option<Waker>,
}

impl Pace {
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn piece(&self, bytes: Bytes) -> Bytes {
        self.pieces().waiting += 1;
        Bytes::from_owner(Piece {
            bytes,
            pace: self.clone(),
        })
    }

    fn poll_all_left(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut pieces = self.pieces();
        if pieces.waiting == 0 {
            return Poll::Ready(());
        }
        pieces.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends when pieces have waited for the whole time and none has left.
    async fn stalled(&self, timeout: Duration) {
        let mut looks = time::interval((timeout / LOOKS).max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut before, mut idle_looks) = (0, 0);
        loop {
            looks.tick().await;
            let pieces = self.pieces();
            let is_idle = pieces.waiting > 0 && pieces.left == before;
            idle_looks = if is_idle { idle_looks + 1 } else { 0 };
            before = pieces.left;
            if idle_looks > LOOKS {
                return;
            }
        }
    }
}

/// Part of a response, until it has left or was thrown away.
struct Piece {
    bytes: Bytes,
    pace: Pace,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let waker = {
            let mut pieces = self.pace.pieces();
            pieces.waiting = pieces.waiting.saturating_sub(1);
            pieces.left += 1;
            if pieces.waiting == 0 {
                pieces.waker.take()
            } else {
                None
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A body in pieces. It ends when all have left, so that its stream has a task to be ended for as long.
struct Paced {
    body: Body,
    rest: Bytes,
    ended: bool,
    pace: Pace,
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended {
            return self.pace.poll_all_left(cx).map(|()| None);
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => {
                    self.ended = true;
                    return self.pace.poll_all_left(cx).map(|()| None);
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        let piece = if self.rest.len() > PIECE_BYTES_MAX {
            self.rest.split_to(PIECE_BYTES_MAX)
        } else {
            mem::take(&mut self.rest)
        };
        Poll::Ready(Some(Ok(Frame::data(self.pace.piece(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream() && self.pace.pieces().waiting == 0
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

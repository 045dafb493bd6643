//! Tells a peer that has stopped reading from one that is slow.
//!
//! Nothing else does: TCP keeps a connection open for as long as the peer's machine answers, and a response that
//! nobody takes holds its connection, its memory and its turn.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

/// A timer that runs while the peer takes nothing.
#[derive(Debug)]
pub(super) struct Stall {
    timeout: Duration,
    /// There while a write waits.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, timer: None }
    }

    /// The outcome of a write; one that has waited for the whole time since the last byte went out fails with
    /// [`io::ErrorKind::TimedOut`].
    pub(super) fn check(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        timer.as_mut().poll(cx).map(|()| {
            let reason = "the peer has stopped reading (`server.write_timeout_ms`)";
            Err(io::Error::new(io::ErrorKind::TimedOut, reason))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::Instant,
    };

    use super::{
        super::{head::Watch, watched::Watched},
        *,
    };

    const ALMOST: Duration = Duration::from_secs(59);
    const TIMEOUT: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for_and_one_that_has_stopped_is_not() {
        let (ours, mut theirs) = duplex(1);
        let mut ours = Watched::new(ours, Watch::default(), Stall::new(TIMEOUT), axum::Router::new());
        let begin = Instant::now();
        let reading = async {
            for _ in 0..5 {
                sleep(ALMOST).await;
                theirs.read_u8().await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(ours.write_all(&[7; 100]), reading);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(
            begin.elapsed(),
            5 * ALMOST + TIMEOUT,
            "the time begins anew with each byte"
        );
    }
}

//! The timer of HTTP/1 heads.
//!
//! Hyper closes a connection without a word when a head does not end in time. Of a connection that idles that is
//! right; a client that has begun a request is told instead. So when the timer ends and a head has begun, the
//! watch is told rather than hyper, and the stream ends the head in a way that hyper refuses.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use hyper_util::rt::TokioTimer;

use super::head::Watch;

/// Makes the timers of one connection.
#[derive(Debug, Clone)]
pub(super) struct HeadTimer {
    timer: TokioTimer,
    watch: Watch,
    timeout: Duration,
}

impl HeadTimer {
    pub(super) fn new(watch: Watch, timeout: Duration) -> Self {
        Self {
            timer: TokioTimer::new(),
            watch,
            timeout,
        }
    }

    fn over(&self, sleep: Pin<Box<dyn Sleep>>) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadSleep {
            sleep,
            watch: self.watch.clone(),
            timeout: self.timeout,
            is_told: false,
        })
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.over(self.timer.sleep(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.over(self.timer.sleep_until(deadline))
    }

    fn now(&self) -> Instant {
        self.timer.now()
    }
}

/// The time that a head has.
struct HeadSleep {
    sleep: Pin<Box<dyn Sleep>>,
    watch: Watch,
    timeout: Duration,
    is_told: bool,
}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_told {
            // The head was ended; if that was not its end, it ends without a word.
            return Poll::Ready(());
        }
        ready!(self.sleep.as_mut().poll(cx));
        if !self.watch.expire(self.timeout) {
            return Poll::Ready(());
        }
        self.is_told = true;
        // The stream is to be read once more.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Sleep for HeadSleep {}

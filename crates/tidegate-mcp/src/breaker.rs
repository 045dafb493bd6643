//! The circuit breaker of one server: after some failures in a row nobody asks it for a while, then one call tries.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
    },
    /// One call is on its way to find out.
    HalfOpen {
        until: Instant,
    },
}

/// The breaker.
#[derive(Debug)]
pub(crate) struct Breaker {
    failures_max: u32,
    open_for: Duration,
    state: Mutex<State>,
}

/// The right to one call. Tell it what came of the call; a call that came to nothing by itself counts as none.
#[derive(Debug)]
pub(crate) struct Pass<'b> {
    breaker: &'b Breaker,
    is_probe: bool,
    is_settled: bool,
}

impl Breaker {
    pub(crate) fn new(failures_max: u32, open_for: Duration) -> Self {
        Self {
            failures_max: failures_max.max(1),
            open_for,
            state: Mutex::new(State::Closed { failures: 0 }),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may be made now; else how long none may.
    pub(crate) fn admit(&self, now: Instant) -> Result<Pass<'_>, Duration> {
        let mut state = self.state();
        let is_probe = match *state {
            State::Closed { .. } => false,
            State::Open { until } | State::HalfOpen { until } if now < until => return Err(until - now),
            State::Open { .. } | State::HalfOpen { .. } => {
                *state = State::HalfOpen {
                    until: now + self.open_for,
                };
                true
            }
        };
        Ok(Pass {
            breaker: self,
            is_probe,
            is_settled: false,
        })
    }

    /// How long no call may be made, where that is so.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        match *self.state() {
            State::Closed { .. } => None,
            State::Open { until } | State::HalfOpen { until } => (now < until).then(|| until - now),
        }
    }

    /// Forgets everything: the server has been replaced.
    pub(crate) fn reset(&self) {
        *self.state() = State::Closed { failures: 0 };
    }
}

impl Pass<'_> {
    /// The server has answered, whatever it said.
    pub(crate) fn answered(mut self) {
        self.is_settled = true;
        *self.breaker.state() = State::Closed { failures: 0 };
    }

    /// The server has not answered, or not in the protocol's words. True where that opened the breaker.
    pub(crate) fn failed(mut self, now: Instant) -> bool {
        self.is_settled = true;
        let mut state = self.breaker.state();
        let open = State::Open {
            until: now + self.breaker.open_for,
        };
        match *state {
            State::Closed { failures } if failures + 1 < self.breaker.failures_max => {
                *state = State::Closed {
                    failures: failures + 1,
                };
                false
            }
            State::Closed { .. } | State::HalfOpen { .. } => {
                *state = open;
                true
            }
            // A call that began before it opened.
            State::Open { .. } => false,
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.is_probe && !self.is_settled {
            // The probe found out nothing: the next call may try at once.
            let now = Instant::now();
            *self.breaker.state() = State::Open { until: now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Duration = Duration::from_mins(1);

    #[test]
    fn opens_after_failures_in_a_row_and_lets_one_call_try() {
        let breaker = Breaker::new(3, OPEN);
        let start = Instant::now();
        assert!(!breaker.admit(start).unwrap().failed(start));
        assert!(!breaker.admit(start).unwrap().failed(start));
        breaker.admit(start).unwrap().answered();
        for last in [false, false, true] {
            assert_eq!(breaker.admit(start).unwrap().failed(start), last);
        }
        assert_eq!(breaker.admit(start + OPEN / 3).unwrap_err(), OPEN / 3 * 2);
        let later = start + OPEN;
        let probe = breaker.admit(later).unwrap();
        assert!(breaker.admit(later).is_err(), "one call tries, not two");
        assert!(probe.failed(later));
        assert_eq!(breaker.left(later), Some(OPEN));
        breaker.admit(later + OPEN).unwrap().answered();
        assert!(breaker.left(later + OPEN).is_none());
    }

    #[test]
    fn a_probe_that_was_called_off_leaves_the_way_to_the_next() {
        let breaker = Breaker::new(1, OPEN);
        let start = Instant::now();
        assert!(breaker.admit(start).unwrap().failed(start));
        drop(breaker.admit(start + OPEN).unwrap());
        assert!(breaker.admit(Instant::now()).is_ok());
    }
}

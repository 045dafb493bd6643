//! Pauses a provider after repeated failures, and lets one request through now and then to see.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// What others are told to wait while one request probes a paused provider.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// The breaker of one provider.
#[derive(Debug)]
pub(crate) struct Breaker {
    failures_max: u32,
    open_for: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
    probing: bool,
}

/// How an admitted request ended, as far as the provider's health goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The provider works.
    Works,
    /// The provider failed.
    Fails,
    /// It says nothing about the provider.
    Unknown,
}

/// Leave to make one request. Dropped without a verdict, it says nothing about the provider.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl Breaker {
    /// A breaker that opens after `failures_max` failures in a row; 0 means never.
    pub(crate) fn new(failures_max: u32, open_for: Duration) -> Self {
        Self {
            failures_max,
            open_for,
            state: Mutex::default(),
        }
    }

    /// Leave for one request, or how long to wait.
    pub(crate) fn admit(&self) -> Result<Permit<'_>, Duration> {
        let mut state = self.state();
        let is_probe = match state.open_until {
            None => false,
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    return Err(left);
                }
                if state.probing {
                    return Err(PROBE_WAIT);
                }
                state.probing = true;
                true
            }
        };
        Ok(Permit {
            breaker: self,
            is_probe,
        })
    }

    /// Notes a failure that came after a request had been judged to work: its answer broke off.
    pub(crate) fn note_failure(&self) {
        self.settle(Verdict::Fails, false);
    }

    fn settle(&self, verdict: Verdict, is_probe: bool) {
        let mut state = self.state();
        if is_probe {
            state.probing = false;
        }
        match verdict {
            Verdict::Works => {
                state.failures = 0;
                state.open_until = None;
            }
            Verdict::Fails => {
                state.failures = state.failures.saturating_add(1);
                if self.failures_max > 0 && (is_probe || state.failures >= self.failures_max) {
                    state.open_until = Some(Instant::now() + self.open_for);
                }
            }
            Verdict::Unknown => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Says how the request ended.
    pub(crate) fn settle(mut self, verdict: Verdict) {
        self.breaker.settle(verdict, self.is_probe);
        self.is_probe = false;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.settle(Verdict::Unknown, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_FOR: Duration = Duration::from_secs(30);

    fn fail(breaker: &Breaker, times: usize) {
        for _ in 0..times {
            breaker.admit().unwrap().settle(Verdict::Fails);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_probes_and_closes() {
        let breaker = Breaker::new(3, OPEN_FOR);
        fail(&breaker, 2);
        breaker.admit().unwrap().settle(Verdict::Works);
        fail(&breaker, 3);
        assert_eq!(breaker.admit().unwrap_err(), OPEN_FOR);

        tokio::time::advance(OPEN_FOR).await;
        let probe = breaker.admit().unwrap();
        assert_eq!(breaker.admit().unwrap_err(), PROBE_WAIT);
        drop(probe);
        breaker.admit().unwrap().settle(Verdict::Fails);
        assert_eq!(breaker.admit().unwrap_err(), OPEN_FOR);

        tokio::time::advance(OPEN_FOR).await;
        breaker.admit().unwrap().settle(Verdict::Works);
        fail(&breaker, 2);
        breaker.note_failure();
        assert!(breaker.admit().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn zero_failures_mean_never() {
        let breaker = Breaker::new(0, OPEN_FOR);
        fail(&breaker, 100);
        assert!(breaker.admit().is_ok());
    }
}

//! Learns from finished turns, in the background.
//!
//! A turn's row stays until what was learned is kept, in the same step: whatever ends the process in between, nothing is
//! lost and nothing is learned twice. What fails is tried again, later each time, and is given up in the end, so that no
//! turn stands in the way of others. Beside the queue the worker brings notes in line, asks for their vectors, and
//! removes what is too old.

mod house;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tidegate_core::{
    clock::{Timestamp, after},
    error::StoreError,
    port::ClaimedCapture,
};
use tidegate_memory::briefing::is_about_memory;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Memory, asking, learn::Fault};

/// The longest sleep, in seconds: the wall clock may be set while the worker sleeps.
const SLEEP_MAX_S: u64 = 30;

/// The sleep after the store has failed, in seconds.
const STORE_REST_S: u64 = 5;

/// By how much a lease outlasts the time that the model has, in seconds: for reading, judging and writing.
const LEASE_MARGIN_S: u64 = 120;

/// The worker.
#[derive(Debug)]
pub struct Worker {
    memory: Arc<Memory>,
}

impl Worker {
    /// A worker for that memory. One is enough; another process must not have one.
    pub fn new(memory: Arc<Memory>) -> Self {
        Self { memory }
    }

    /// Works until `shutdown`; then what is under way may end within `memory.drain_timeout_ms`, and the rest is put
    /// back.
    pub async fn run(self, shutdown: CancellationToken) {
        match self.memory.parts().queue.recover_captures(self.now()).await {
            Ok(0) => {}
            Ok(turns) => tracing::info!(
                turns,
                "turns that an earlier process was learning from are taken up again"
            ),
            Err(error) => {
                tracing::warn!(%error, "turns that an earlier process was learning from wait for their lease");
            }
        }
        // The question for what is remembered takes some time to compile: now, and not in somebody's first request.
        let _compiled = tokio::task::spawn_blocking(|| is_about_memory("")).await;
        let hurry = CancellationToken::new();
        let mut working = JoinSet::new();
        let mut keeping = JoinSet::new();
        keeping.spawn(house::keep(Arc::clone(&self.memory), hurry.clone()));
        while !shutdown.is_cancelled() {
            let pause = self.take(&mut working, &hurry).await;
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.memory.agenda().turns.notified() => {}
                Some(_ended) = working.join_next() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        let limit = Duration::from_millis(self.memory.parts().options.drain_timeout_ms);
        let deadline = Instant::now() + limit;
        while let Ok(Some(_ended)) = tokio::time::timeout_at(deadline, working.join_next()).await {}
        hurry.cancel();
        // Each of them puts its turn back or leaves its house as it is: a write, no more.
        while working.join_next().await.is_some() {}
        while keeping.join_next().await.is_some() {}
    }

    /// Takes as many turns as there is room for, and says for how long nothing more is due.
    async fn take(&self, working: &mut JoinSet<()>, hurry: &CancellationToken) -> Duration {
        let options = &self.memory.parts().options;
        let longest = Duration::from_secs(SLEEP_MAX_S);
        let free = options.workers_max.saturating_sub(working.len());
        let Some(free) = u32::try_from(free).ok().filter(|free| *free > 0) else {
            return longest;
        };
        let now = self.now();
        let until = after(now, options.model_timeout_ms.div_ceil(1_000) + LEASE_MARGIN_S);
        let queue = &self.memory.parts().queue;
        match queue.claim(now, until, free).await {
            Ok(claimed) => {
                for claimed in claimed {
                    let (memory, hurry) = (Arc::clone(&self.memory), hurry.clone());
                    working.spawn(async move { work(&memory, claimed, &hurry).await });
                }
            }
            Err(error) => {
                tracing::warn!(%error, "turns to learn from cannot be read");
                return Duration::from_secs(STORE_REST_S);
            }
        }
        match queue.next_due().await {
            Ok(Some(due)) => until_due(self.now(), due).min(longest),
            Ok(None) => longest,
            Err(_) => Duration::from_secs(STORE_REST_S),
        }
    }

    fn now(&self) -> Timestamp {
        self.memory.parts().clock.now()
    }
}

fn until_due(now: Timestamp, due: Timestamp) -> Duration {
    let left_ms = due.as_millisecond().saturating_sub(now.as_millisecond());
    // One more, since what is due within this millisecond is not due yet.
    Duration::from_millis(u64::try_from(left_ms).map_or(0, |left_ms| left_ms + 1))
}

/// Works on one turn. In a hurry it is put back.
async fn work(memory: &Memory, claimed: ClaimedCapture, hurry: &CancellationToken) {
    let lease = &claimed.lease;
    let attempt = AssertUnwindSafe(attempt(memory, &claimed)).catch_unwind();
    let settled = match hurry.run_until_cancelled(attempt).await {
        Some(Ok(settled)) => settled,
        Some(Err(_panic)) => {
            tracing::error!(run.id = %claimed.capture.run, "learning from a turn panicked");
            give_back(memory, &claimed, "panicked").await
        }
        None => release(memory, lease, memory.parts().clock.now()).await,
    };
    if let Err(error) = settled {
        // Its lease ends by itself, and then it is due again.
        tracing::warn!(%error, run.id = %claimed.capture.run, "what was learned from a turn cannot be kept yet");
    }
}

async fn attempt(memory: &Memory, claimed: &ClaimedCapture) -> Result<(), StoreError> {
    let (parts, user) = (memory.parts(), &claimed.lease.user);
    let attempts_max = parts.options.attempts_max;
    if claimed.attempts > attempts_max {
        // It has taken processes down with it: it is not even begun again.
        return bury(memory, claimed, "interrupted").await;
    }
    let is_last = claimed.attempts == attempts_max;
    match memory.learn(user, &claimed.capture, is_last).await {
        Ok(learned) => {
            let found = learned.len();
            match parts.queue.complete(&claimed.lease, learned).await? {
                Some(new) if new > 0 => {
                    tracing::debug!(new, found, run.id = %claimed.capture.run, "learned from a turn");
                    if let Err(error) = memory.refresh(user).await {
                        tracing::warn!(%error, "the notes on a person do not follow yet");
                        memory.agenda().align_later(user);
                    }
                }
                Some(_) => {}
                None => {
                    tracing::debug!(run.id = %claimed.capture.run, "a turn was forgotten while it was learned from");
                }
            }
            Ok(())
        }
        Err(Fault::Asking(asking::Fault::QuotaSpent)) => {
            let tomorrow = after(parts.clock.now(), parts.clock.seconds_left_today());
            release(memory, &claimed.lease, tomorrow).await
        }
        Err(fault) => {
            tracing::warn!(
                fault = fault.name(),
                attempt = claimed.attempts,
                run.id = %claimed.capture.run,
                "a turn could not be learned from"
            );
            give_back(memory, claimed, fault.name()).await
        }
    }
}

/// Puts a turn back that failed, for later; or gives it up.
async fn give_back(memory: &Memory, claimed: &ClaimedCapture, problem: &str) -> Result<(), StoreError> {
    let parts = memory.parts();
    if claimed.attempts >= parts.options.attempts_max {
        return bury(memory, claimed, problem).await;
    }
    let options = &parts.options;
    let mut chance = [0_u8; 4];
    parts.entropy.fill(&mut chance);
    let delay_ms = delay_ms(
        claimed.attempts,
        options.retry_initial_delay_ms,
        options.retry_delay_max_ms,
        u32::from_be_bytes(chance),
    );
    let delay = jiff::SignedDuration::from_millis(i64::try_from(delay_ms).unwrap_or(i64::MAX));
    let due_at = parts.clock.now().checked_add(delay).unwrap_or(Timestamp::MAX);
    parts.queue.retry(&claimed.lease, due_at, problem).await.map(drop)
}

async fn bury(memory: &Memory, claimed: &ClaimedCapture, problem: &str) -> Result<(), StoreError> {
    tracing::error!(
        problem,
        attempts = claimed.attempts,
        run.id = %claimed.capture.run,
        "a turn is given up: nothing is learned from it until it is revived"
    );
    memory.parts().queue.bury(&claimed.lease, problem).await.map(drop)
}

async fn release(
    memory: &Memory,
    lease: &tidegate_core::port::Lease,
    due_at: Timestamp,
) -> Result<(), StoreError> {
    memory.parts().queue.release(lease, due_at).await.map(drop)
}

/// How long to wait after the failure of that number, from 1: twice as long each time, and between the half and the whole
/// of it, so that turns that failed together do not come back together.
fn delay_ms(failure: u32, initial_ms: u64, max_ms: u64, chance: u32) -> u64 {
    let doubled = 1_u64.checked_shl(failure.saturating_sub(1)).unwrap_or(u64::MAX);
    let whole_ms = initial_ms.saturating_mul(doubled).min(max_ms);
    let half_ms = whole_ms / 2;
    let part = u128::from(whole_ms - half_ms) * u128::from(chance) / u128::from(u32::MAX);
    half_ms + u64::try_from(part).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_bound_and_is_never_less_than_half() {
        for (failure, whole_ms) in [(1, 100), (2, 200), (3, 400), (4, 500), (70, 500), (u32::MAX, 500)] {
            assert_eq!(delay_ms(failure, 100, 500, u32::MAX), whole_ms, "{failure}");
            assert_eq!(delay_ms(failure, 100, 500, 0), whole_ms / 2, "{failure}");
            let between = delay_ms(failure, 100, 500, u32::MAX / 3);
            assert!(
                (whole_ms / 2..=whole_ms).contains(&between),
                "{failure}: {between}"
            );
        }
        assert_eq!(delay_ms(1, 0, 0, 7), 0);
        assert_eq!(delay_ms(9, u64::MAX, u64::MAX, u32::MAX), u64::MAX);
    }

    #[test]
    fn what_is_due_is_not_waited_for() {
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        assert_eq!(until_due(at(10), at(5)), Duration::ZERO);
        assert_eq!(until_due(at(10), at(10)), Duration::from_millis(1));
        assert_eq!(until_due(at(10), at(15)), Duration::from_millis(6));
        assert!(until_due(Timestamp::MIN, Timestamp::MAX) > Duration::from_secs(1));
    }
}

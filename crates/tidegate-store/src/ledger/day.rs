//! One key's day of token use in memory: what is spent, reserved and under way, and whether a call may start.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tidegate_core::port::Reservation;
use tokio::{
    sync::{Notify, futures::Notified},
    time::Instant,
};

/// Calls under way that are remembered one by one. Beyond it a call of a key with a quota waits; for a key
/// without one the oldest is taken as given up.
const CALLS_MAX: usize = 1_024;
/// A block is at most this part of a quota, so that a crash does not cost a key its whole day.
const BLOCKS_A_QUOTA: u64 = 16;

/// A key's day in memory.
#[derive(Debug, Default)]
pub(super) struct Day {
    /// Reservations of one key happen one after the other.
    turn: tokio::sync::Mutex<()>,
    tokens: Mutex<Tokens>,
    /// A call has reported.
    reported: Notify,
}

#[derive(Debug, Default)]
struct Tokens {
    /// Spent before this process loaded the day; `None` until then.
    before: Option<u64>,
    /// What the disk said at the start, for as long as the day is not loaded.
    expected: u64,
    /// Spent through this process.
    here: u64,
    /// The part of `here` that is on the disk.
    written: u64,
    /// The part of `here` that has no row, and is not on the disk.
    lost: u64,
    /// How far tokens are reserved on the disk.
    reserved: u64,
    /// The calls under way, oldest first.
    calls: VecDeque<Call>,
}

/// A call that has not reported.
#[derive(Debug)]
struct Call {
    reservation: Reservation,
    begun: Instant,
    estimate: u64,
}

impl Tokens {
    fn spent(&self) -> u64 {
        self.before.unwrap_or(self.expected).saturating_add(self.here)
    }

    fn under_way(&self) -> u64 {
        self.calls
            .iter()
            .fold(0, |sum, call| sum.saturating_add(call.estimate))
    }
}

/// Whether a call may start.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is something left beside what the calls under way may take.
    Free,
    /// What is left may be taken by calls under way.
    Wait {
        /// When the oldest of them is given up.
        until: Instant,
    },
    /// Nothing is left.
    Spent,
}

impl Day {
    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Ready after the next report. Made before looking for room, so that no report falls in between.
    pub(super) fn reported(&self) -> Notified<'_> {
        self.reported.notified()
    }

    pub(super) fn expect(&self, spent_tokens: u64) {
        self.tokens().expected = spent_tokens;
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.tokens().before.is_some()
    }

    /// Takes over the disk's sums. `spent` includes what this process has written already.
    pub(super) fn load(&self, spent: u64, reserved: u64) {
        let mut tokens = self.tokens();
        tokens.before = Some(spent.saturating_sub(tokens.written));
        tokens.reserved = reserved;
    }

    pub(super) fn spent_tokens(&self) -> u64 {
        self.tokens().spent()
    }

    /// Counts a call that has reported, in place of its estimate; `has_row` says whether its row is kept. The
    /// estimates of other calls stay: a large one may still be under way.
    pub(super) fn book(&self, spent: u64, has_row: bool, reservation: Option<Reservation>) {
        let mut tokens = self.tokens();
        tokens.here = tokens.here.saturating_add(spent);
        if !has_row {
            tokens.lost = tokens.lost.saturating_add(spent);
        }
        tokens.calls.retain(|call| Some(call.reservation) != reservation);
        drop(tokens);
        self.reported.notify_waiters();
    }

    /// Tokens whose row was dropped after they were counted.
    pub(super) fn lose(&self, spent: u64) {
        let mut tokens = self.tokens();
        tokens.lost = tokens.lost.saturating_add(spent);
    }

    pub(super) fn take_lost(&self) -> u64 {
        std::mem::take(&mut self.tokens().lost)
    }

    pub(super) fn note_written(&self, spent: u64) {
        let mut tokens = self.tokens();
        tokens.written = tokens.written.saturating_add(spent);
        let on_disk = tokens.before.unwrap_or(0).saturating_add(tokens.written);
        tokens.reserved = tokens.reserved.max(on_disk);
    }

    /// Whether one more call may start.
    pub(super) fn room(&self, limit_tokens: u64, now: Instant, ttl: Duration) -> Room {
        let mut tokens = self.tokens();
        while tokens
            .calls
            .front()
            .is_some_and(|call| now.duration_since(call.begun) >= ttl)
        {
            tokens.calls.pop_front();
        }
        let spent = tokens.spent();
        if spent >= limit_tokens {
            return Room::Spent;
        }
        match tokens.calls.front() {
            Some(oldest)
                if tokens.calls.len() >= CALLS_MAX
                    || spent.saturating_add(tokens.under_way()) >= limit_tokens =>
            {
                Room::Wait {
                    until: oldest.begun + ttl,
                }
            }
            Some(_) | None => Room::Free,
        }
    }

    /// Where the reserved tokens must reach before a call of that estimate may start, if further than now.
    pub(super) fn block_end(&self, limit: Option<u64>, estimate: u64, block: u64) -> Option<u64> {
        let tokens = self.tokens();
        let taken = tokens.spent().saturating_add(tokens.under_way());
        if taken.saturating_add(estimate) <= tokens.reserved {
            return None;
        }
        let block = limit.map_or(block, |limit| block.min(limit / BLOCKS_A_QUOTA));
        Some(taken.saturating_add(block.max(estimate)))
    }

    pub(super) fn extend(&self, reserved: u64) {
        let mut tokens = self.tokens();
        tokens.reserved = tokens.reserved.max(reserved);
    }

    pub(super) fn begin_call(&self, reservation: Reservation, estimate: u64, now: Instant) {
        let mut tokens = self.tokens();
        if tokens.calls.len() >= CALLS_MAX {
            tokens.calls.pop_front();
        }
        tokens.calls.push_back(Call {
            reservation,
            begun: now,
            estimate,
        });
    }

    /// The block was given back: what is reserved is what is on the disk as spent.
    pub(super) fn close(&self) {
        let mut tokens = self.tokens();
        tokens.reserved = tokens.before.unwrap_or(0).saturating_add(tokens.written);
    }

    /// Whether all that was counted is on the disk and nobody waits here.
    pub(super) fn is_idle(&self) -> bool {
        let tokens = self.tokens();
        tokens.here == tokens.written && tokens.lost == 0 && self.turn.try_lock().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    #[test]
    fn a_call_that_may_not_fit_waits_for_the_ones_under_way() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(900, 900);
        assert_eq!(day.room(1_000, now, TTL), Room::Free);
        day.begin_call(Reservation::new(1), 200, now);
        assert_eq!(day.room(1_000, now, TTL), Room::Wait { until: now + TTL });
        assert_eq!(day.room(2_000, now, TTL), Room::Free);
        assert_eq!(day.room(1_000, now + TTL, TTL), Room::Free, "it never reported");
        day.begin_call(Reservation::new(2), 200, now);
        day.book(30, true, Some(Reservation::new(2)));
        assert_eq!(day.room(1_000, now, TTL), Room::Free);
        day.book(70, true, None);
        assert_eq!(day.room(1_000, now, TTL), Room::Spent);
    }

    #[test]
    fn a_report_frees_its_own_estimate_and_no_other() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        day.begin_call(Reservation::new(1), 900, now);
        day.begin_call(Reservation::new(2), 50, now);
        day.book(50, true, Some(Reservation::new(2)));
        assert_eq!(day.room(950, now, TTL), Room::Wait { until: now + TTL });
        day.book(10, true, Some(Reservation::new(7)));
        day.book(10, true, None);
        assert_eq!(day.room(950, now, TTL), Room::Wait { until: now + TTL });
        day.book(800, true, Some(Reservation::new(1)));
        assert_eq!(day.room(950, now, TTL), Room::Free);
    }

    #[test]
    fn more_calls_than_are_remembered_wait() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        for number in 0..CALLS_MAX as u64 {
            assert_eq!(day.room(u64::MAX, now, TTL), Room::Free);
            day.begin_call(Reservation::new(number), 1, now);
        }
        assert_eq!(day.room(u64::MAX, now, TTL), Room::Wait { until: now + TTL });
        day.book(1, true, Some(Reservation::new(500)));
        assert_eq!(day.room(u64::MAX, now, TTL), Room::Free);
    }

    #[test]
    fn a_block_covers_the_call_and_is_a_small_part_of_the_quota() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        assert_eq!(day.block_end(None, 100, 20_000), Some(20_000));
        assert_eq!(day.block_end(None, 30_000, 20_000), Some(30_000));
        assert_eq!(day.block_end(Some(16_000), 100, 20_000), Some(1_000));
        assert_eq!(day.block_end(Some(16), 100, 20_000), Some(100));
        day.extend(1_000);
        day.begin_call(Reservation::new(1), 600, now);
        assert_eq!(day.block_end(Some(16_000), 400, 20_000), None);
        assert_eq!(day.block_end(Some(16_000), 401, 20_000), Some(1_600));
    }

    #[test]
    fn loading_late_does_not_count_twice() {
        let day = Day::default();
        day.expect(500);
        day.book(40, true, None);
        assert_eq!(day.spent_tokens(), 540);
        day.note_written(40);
        day.book(5, true, None);
        day.load(540, 540);
        assert_eq!(day.spent_tokens(), 545);
    }
}

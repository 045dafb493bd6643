//! One key's day of token use in memory: what is spent, reserved and under way, and whether a call may start.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tidegate_core::port::{Need, Reservation};
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
    /// How many were last reserved beside the call that asked for them.
    block: u64,
    /// The calls under way, oldest first.
    calls: VecDeque<Call>,
}

/// A call that has not reported.
#[derive(Debug)]
struct Call {
    reservation: Reservation,
    begun: Instant,
    /// The most it may take.
    held: u64,
}

impl Tokens {
    fn spent(&self) -> u64 {
        self.before.unwrap_or(self.expected).saturating_add(self.here)
    }

    fn under_way(&self) -> u64 {
        self.calls
            .iter()
            .fold(0, |sum, call| sum.saturating_add(call.held))
    }
}

/// Whether a call may start.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// With so many tokens: all it may take, or what is left beside the calls under way.
    Free {
        /// How many.
        tokens: u64,
    },
    /// The calls under way may give back what it needs.
    Wait {
        /// When the oldest of them is given up.
        until: Instant,
    },
    /// Too little is left.
    Spent {
        /// How many tokens, beside those of calls under way.
        left_tokens: u64,
    },
}

impl Day {
    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn, where nobody has it or waits for it.
    pub(super) fn free_turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.turn.try_lock().ok()
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

    /// Counts a call that has reported, in place of what it held; `has_row` says whether its row is kept. What
    /// other calls hold stays: a large one may still be under way.
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

    /// Whether one more call may start. One that is `patient` rather waits for calls under way than makes do
    /// with less than the most it may take.
    pub(super) fn room(&self, limit: u64, need: Need, patient: bool, now: Instant, ttl: Duration) -> Room {
        let mut tokens = self.tokens();
        while tokens
            .calls
            .front()
            .is_some_and(|call| now.duration_since(call.begun) >= ttl)
        {
            tokens.calls.pop_front();
        }
        let least = need.least_tokens.max(1);
        let unspent = limit.saturating_sub(tokens.spent());
        if unspent < least {
            return Room::Spent { left_tokens: unspent };
        }
        let left = unspent.saturating_sub(tokens.under_way());
        let has_place = tokens.calls.len() < CALLS_MAX;
        if has_place && left >= need.most_tokens {
            return Room::Free {
                tokens: need.most_tokens,
            };
        }
        match tokens.calls.front() {
            Some(oldest) if patient => Room::Wait {
                until: oldest.begun + ttl,
            },
            Some(_) | None if has_place && left >= least => Room::Free { tokens: left },
            Some(_) | None => Room::Spent { left_tokens: left },
        }
    }

    /// Where the reserved tokens must reach before a call that holds so many may start, if further than now:
    /// over the call and, within the quota, a block beside it.
    pub(super) fn block_end(&self, limit: Option<u64>, held: u64, block: u64) -> Option<u64> {
        let mut tokens = self.tokens();
        tokens.block = limit.map_or(block, |limit| block.min(limit / BLOCKS_A_QUOTA));
        let needed = tokens
            .spent()
            .saturating_add(tokens.under_way())
            .saturating_add(held);
        if needed <= tokens.reserved {
            return None;
        }
        let end = needed.saturating_add(tokens.block);
        Some(end.min(limit.unwrap_or(u64::MAX)).max(needed))
    }

    /// Where the reserved tokens may end instead, because calls have taken less than they held: a block above
    /// what is spent and under way. `None` where that is not worth a write.
    pub(super) fn surplus_end(&self) -> Option<u64> {
        let mut tokens = self.tokens();
        let end = tokens
            .spent()
            .saturating_add(tokens.under_way())
            .saturating_add(tokens.block);
        let is_much = tokens.before.is_some() && tokens.reserved > end.saturating_add(tokens.block);
        is_much.then(|| {
            tokens.reserved = end;
            end
        })
    }

    pub(super) fn extend(&self, reserved: u64) {
        let mut tokens = self.tokens();
        tokens.reserved = tokens.reserved.max(reserved);
    }

    pub(super) fn begin_call(&self, reservation: Reservation, held: u64, now: Instant) {
        let mut tokens = self.tokens();
        if tokens.calls.len() >= CALLS_MAX {
            tokens.calls.pop_front();
        }
        tokens.calls.push_back(Call {
            reservation,
            begun: now,
            held,
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

    /// What a call that needs a token at least, and so many at most, finds.
    fn room(day: &Day, limit: u64, most_tokens: u64, now: Instant) -> Room {
        let need = Need {
            least_tokens: 1,
            most_tokens,
        };
        day.room(limit, need, true, now, TTL)
    }

    fn free(tokens: u64) -> Room {
        Room::Free { tokens }
    }

    fn spent(left_tokens: u64) -> Room {
        Room::Spent { left_tokens }
    }

    #[test]
    fn a_call_that_may_not_fit_waits_for_the_ones_under_way() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(700, 700);
        assert_eq!(room(&day, 1_000, 200, now), free(200));
        day.begin_call(Reservation::new(1), 200, now);
        assert_eq!(room(&day, 1_000, 101, now), Room::Wait { until: now + TTL });
        assert_eq!(room(&day, 1_000, 100, now), free(100));
        assert_eq!(
            room(&day, 1_000, 400, now + TTL),
            free(300),
            "the one under way never reported; the rest is left"
        );
        day.begin_call(Reservation::new(2), 200, now);
        day.book(30, true, Some(Reservation::new(2)));
        assert_eq!(room(&day, 1_000, 200, now), free(200));
        day.book(270, true, None);
        assert_eq!(room(&day, 1_000, 200, now), spent(0));
    }

    #[test]
    fn a_call_that_cannot_wait_makes_do_with_what_is_left() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        day.begin_call(Reservation::new(1), 900, now);
        let need = Need {
            least_tokens: 60,
            most_tokens: 500,
        };
        let rows = [
            (1_000, true, Room::Wait { until: now + TTL }),
            (1_000, false, free(100)),
            (959, false, spent(59)),
            (59, true, spent(59)),
        ];
        for (limit, patient, expected) in rows {
            assert_eq!(day.room(limit, need, patient, now, TTL), expected, "{limit}");
        }
        day.book(200, true, Some(Reservation::new(1)));
        assert_eq!(
            day.room(600, need, true, now, TTL),
            free(400),
            "nobody is waited for"
        );
    }

    #[test]
    fn a_report_frees_what_it_held_and_no_more() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        day.begin_call(Reservation::new(1), 900, now);
        day.begin_call(Reservation::new(2), 50, now);
        day.book(50, true, Some(Reservation::new(2)));
        assert_eq!(room(&day, 950, 1, now), Room::Wait { until: now + TTL });
        day.book(10, true, Some(Reservation::new(7)));
        day.book(10, true, None);
        assert_eq!(room(&day, 950, 1, now), Room::Wait { until: now + TTL });
        day.book(800, true, Some(Reservation::new(1)));
        assert_eq!(room(&day, 950, 80, now), free(80));
    }

    #[test]
    fn more_calls_than_are_remembered_wait() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        for number in 0..CALLS_MAX as u64 {
            assert_eq!(room(&day, u64::MAX, 1, now), free(1));
            day.begin_call(Reservation::new(number), 1, now);
        }
        assert_eq!(room(&day, u64::MAX, 1, now), Room::Wait { until: now + TTL });
        day.book(1, true, Some(Reservation::new(500)));
        assert_eq!(room(&day, u64::MAX, 1, now), free(1));
    }

    #[test]
    fn a_block_lies_beside_the_call_and_is_a_small_part_of_the_quota() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        assert_eq!(day.block_end(None, 100, 20_000), Some(20_100));
        assert_eq!(day.block_end(Some(16_000), 100, 20_000), Some(1_100));
        assert_eq!(
            day.block_end(Some(16_000), 15_900, 20_000),
            Some(16_000),
            "not beyond the quota"
        );
        assert_eq!(
            day.block_end(Some(16), 100, 20_000),
            Some(100),
            "but over the call"
        );
        day.extend(1_100);
        day.begin_call(Reservation::new(1), 600, now);
        assert_eq!(day.block_end(Some(16_000), 500, 20_000), None);
        assert_eq!(day.block_end(Some(16_000), 501, 20_000), Some(2_101));
    }

    #[test]
    fn what_calls_held_and_did_not_take_is_given_back() {
        let (day, now) = (Day::default(), Instant::now());
        day.load(0, 0);
        day.extend(day.block_end(Some(16_000), 5_000, 20_000).unwrap());
        day.begin_call(Reservation::new(1), 5_000, now);
        assert_eq!(day.surplus_end(), None, "it is under way");
        day.book(50, true, Some(Reservation::new(1)));
        assert_eq!(day.surplus_end(), Some(1_050));
        assert_eq!(day.surplus_end(), None);
        assert_eq!(day.block_end(Some(16_000), 5_000, 20_000), Some(6_050));
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

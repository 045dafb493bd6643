//! Time and chance come in through the door: nothing below floor 3 reads the wall clock or a random source.

pub use jiff::Timestamp;
use jiff::{civil::Date, tz::TimeZone};

/// The wall clock.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present instant.
    fn now(&self) -> Timestamp;

    /// The time zone in which a day begins for people here; UTC unless the operator says otherwise.
    fn time_zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    /// Today's date in [`Clock::time_zone`].
    fn today(&self) -> Date {
        self.now().to_zoned_datetime(self.time_zone()).date()
    }

    /// Seconds until the next day begins in [`Clock::time_zone`], at least 1: how long a spent quota stays spent.
    fn seconds_left_today(&self) -> u64 {
        let now = self.now().to_zoned_datetime(self.time_zone());
        let left = now
            .tomorrow()
            .and_then(|day| day.start_of_day())
            .map_or(86_400, |midnight| {
                midnight.timestamp().as_second() - now.timestamp().as_second()
            });
        u64::try_from(left).unwrap_or(1).max(1)
    }
}

/// `now` and so many seconds; the last instant there is, where that is beyond it.
pub fn after(now: Timestamp, seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
}

/// `now` less so many days of 24 hours; `None` where that is before the first instant there is.
pub fn days_before(now: Timestamp, days: u32) -> Option<Timestamp> {
    now.checked_sub(jiff::SignedDuration::from_hours(24 * i64::from(days)))
        .ok()
}

/// A source of random bytes fit for secrets.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

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
}

/// A source of random bytes fit for secrets.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

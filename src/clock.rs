//! Time and chance, as the operating system gives them. The only place that reads either.

use jiff::tz::TimeZone;
use tidegate_core::clock::{Clock, Entropy, Timestamp};

/// The wall clock of this machine, in the operator's time zone.
#[derive(Debug, Clone)]
pub struct SystemClock {
    zone: TimeZone,
    #[cfg(feature = "testing")]
    script: crate::testing::Script,
}

impl SystemClock {
    /// A clock whose days begin at midnight in `zone`.
    pub fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            #[cfg(feature = "testing")]
            script: crate::testing::Script::from_environment(),
        }
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the adapter behind the Clock port"
    )]
    fn now(&self) -> Timestamp {
        #[cfg(feature = "testing")]
        if let Some(scripted) = self.script.now() {
            return scripted;
        }
        Timestamp::now()
    }

    fn time_zone(&self) -> TimeZone {
        self.zone.clone()
    }
}

/// The operating system's random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[expect(
        clippy::panic,
        reason = "without a random source every secret could be guessed; no answer is the only safe one"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            panic!("the operating system gives no random bytes: {error}");
        }
    }
}

/// The time zone of that name: `system` for this machine's own, else a name of the IANA database.
pub fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name == "system" {
        return Ok(TimeZone::try_system().unwrap_or(TimeZone::UTC));
    }
    TimeZone::get(name).map_err(|_| {
        format!("`{name}` is no time zone; use `system` or a name such as `Europe/Berlin`, `America/New_York` or `UTC`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_decides_the_day() {
        let zone = time_zone("Pacific/Kiritimati").unwrap();
        let clock = SystemClock::new(zone.clone());
        let before = clock.now().to_zoned_datetime(zone.clone()).date();
        let today = clock.today();
        let after = clock.now().to_zoned_datetime(zone).date();
        assert!(before <= today && today <= after);
    }

    #[test]
    fn names_are_checked() {
        assert!(time_zone("system").is_ok());
        assert!(time_zone("UTC").is_ok());
        assert!(time_zone("Mars/Olympus").unwrap_err().contains("Europe/Berlin"));
    }

    #[test]
    fn chance_is_not_constant() {
        let (mut first, mut second) = ([0_u8; 32], [0_u8; 32]);
        OsEntropy.fill(&mut first);
        OsEntropy.fill(&mut second);
        assert_ne!(first, second);
    }
}

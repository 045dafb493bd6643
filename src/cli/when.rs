//! Times as people type them.

use std::time::Duration;

use jiff::{civil::Date, tz::TimeZone};
use tidegate_core::clock::Timestamp;

/// The longest span that is taken, in days: far enough, and no sum overflows.
const DAYS_MAX: u64 = 36_500;

/// A span such as `45s`, `30m`, `12h`, `90d` or `2w`.
pub fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no span of time; write one such as `30m`, `12h`, `90d` or `2w`");
    let digits = text.len()
        - text
            .trim_start_matches(|letter: char| letter.is_ascii_digit())
            .len();
    let (number, unit) = text.split_at_checked(digits).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit_s = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(unit_s)
        .filter(|seconds| *seconds <= DAYS_MAX * 86_400)
        .map(Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is more than {DAYS_MAX} days"))
}

/// A moment: a time (`2027-01-31T12:00:00Z`), the beginning of a day (`2027-01-31`), or a span from now.
pub fn moment(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(date) = text.parse::<Date>() {
        return date
            .to_zoned_datetime(zone.clone())
            .map(|start| start.timestamp())
            .map_err(|error| format!("`{text}` is out of range ({error})"));
    }
    let span = span(text).map_err(|_| {
        format!("`{text}` is no time; write a day (`2027-01-31`), a time (`2027-01-31T12:00:00Z`) or a span (`90d`, `12h`)")
    })?;
    now.checked_add(jiff::SignedDuration::try_from(span).unwrap_or(jiff::SignedDuration::MAX))
        .map_err(|error| format!("`{text}` is out of range ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        assert_eq!(span("90d"), Ok(Duration::from_hours(90 * 24)));
        assert_eq!(span("2w"), span("14d"));
        assert_eq!(span("0s"), Ok(Duration::ZERO));
        for text in [
            "",
            "d",
            "90",
            "-1d",
            "1.5h",
            "1y",
            "é",
            "99999999999999999999d",
            "99999999d",
        ] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_have_three_spellings() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let moment = |text| moment(text, now, &zone).map(|time| time.to_string());
        assert_eq!(moment("2027-01-31").unwrap(), "2027-01-30T23:00:00Z");
        assert_eq!(
            moment("2027-01-31T12:00:00+02:00").unwrap(),
            "2027-01-31T10:00:00Z"
        );
        assert_eq!(moment("1d").unwrap(), "2026-12-01T12:00:00Z");
        assert!(moment("tomorrow").unwrap_err().contains("2027-01-31"));
    }
}

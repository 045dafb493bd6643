//! `current_time`: the present date and time, spelled out for people and in ISO 8601 for reckoning.

use jiff::{ZonedDateTime, tz::TimeZone};
use tidegate_core::{
    clock::Clock,
    tool::{FailureCode, ToolResult},
};

use crate::{arguments::Values, nearest::nearest};

/// Runs the tool.
pub(crate) fn run(clock: &dyn Clock, values: &Values<'_>) -> ToolResult {
    let zone = match values.text("time_zone").map(str::trim) {
        None | Some("") => clock.time_zone(),
        Some(name) => match TimeZone::get(name) {
            Ok(zone) => zone,
            Err(_) => return unknown(name),
        },
    };
    let now = clock.now().to_zoned_datetime(zone);
    ToolResult::ok(spelled_out(&now))
}

fn spelled_out(now: &ZonedDateTime) -> String {
    let zone = now.time_zone().iana_name().unwrap_or("local time").to_owned();
    let week = now.date().iso_week_date();
    format!(
        "{long} ({zone}, UTC{offset})\nISO 8601: {iso}\nCalendar week: {year}-W{number:02}, day {day} of the year",
        long = now.strftime("%A, %-d %B %Y, %H:%M:%S"),
        offset = now.strftime("%:z"),
        iso = now.strftime("%Y-%m-%dT%H:%M:%S%:z"),
        year = week.year(),
        number = week.week(),
        day = now.day_of_year(),
    )
}

fn unknown(name: &str) -> ToolResult {
    let known: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    let hint = nearest(name, known.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!(" Did you mean {near}?"));
    let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
    ToolResult::failed(
        FailureCode::InvalidArguments,
        format!("`{shown}` is no IANA time zone, such as Europe/Berlin.{hint}"),
    )
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, tz::TimeZone};
    use serde_json::json;
    use tidegate_core::{clock::Clock, tool::ToolResult};

    use super::run;
    use crate::{arguments::Values, registry::Registry};

    #[derive(Debug)]
    struct Frozen;

    impl Clock for Frozen {
        fn now(&self) -> Timestamp {
            "2027-01-01T23:30:00Z".parse().unwrap()
        }

        fn time_zone(&self) -> TimeZone {
            TimeZone::get("Asia/Tokyo").unwrap()
        }
    }

    fn answer(arguments: &serde_json::Value) -> ToolResult {
        let registry = Registry::built_in().unwrap();
        let spec = &registry.get("current_time").unwrap().spec;
        let map = arguments.as_object().cloned().unwrap();
        run(&Frozen, &Values::from_object(&map, spec).unwrap())
    }

    #[test]
    fn spells_out_the_moment() {
        let ok = |text: &str| ToolResult::ok(text.to_owned());
        assert_eq!(
            answer(&json!({})),
            ok("Saturday, 2 January 2027, 08:30:00 (Asia/Tokyo, UTC+09:00)\n\
                ISO 8601: 2027-01-02T08:30:00+09:00\nCalendar week: 2026-W53, day 2 of the year")
        );
        assert_eq!(
            answer(&json!({"time_zone": "America/New_York"})),
            ok("Friday, 1 January 2027, 18:30:00 (America/New_York, UTC-05:00)\n\
                ISO 8601: 2027-01-01T18:30:00-05:00\nCalendar week: 2026-W53, day 1 of the year")
        );
        let text = answer(&json!({"time_zone": "Europe/Berln"})).to_model_text();
        assert!(text.contains("Did you mean Europe/Berlin?"), "{text}");
        for bad in ["../../etc/passwd", "\0", "Nowhere"] {
            assert!(!answer(&json!({"time_zone": bad})).is_ok(), "{bad}");
        }
    }
}

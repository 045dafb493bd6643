//! Numbers in workbooks: which of them are dates, and how they read.

use super::{
    super::{Limits, Problem},
    xml::{Node, Xml},
};

/// The formats that everybody knows as dates or times (ECMA-376 part 1, 18.8.30).
const DATE_FORMATS: [std::ops::RangeInclusive<u32>; 3] = [14..=22, 27..=36, 45..=47];

/// The last day that is a date: 31 December 9999.
const DAYS_MAX: f64 = 2_958_465.999_999;

/// Which styles of cells show a date.
#[derive(Debug, Default)]
pub(super) struct Styles(Vec<bool>);

impl Styles {
    pub(super) fn is_date(&self, style: usize) -> bool {
        self.0.get(style).copied().unwrap_or(false)
    }
}

/// Reads the styles of a workbook.
pub(super) fn styles(text: &str, limits: &Limits) -> Result<Styles, Problem> {
    let mut custom: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    let mut is_cells = false;
    let mut xml = Xml::new(text, limits);
    while let Some(node) = xml.next()? {
        match node {
            Node::Start(tag) | Node::Empty(tag) => {
                let id = || tag.attribute("numFmtId").and_then(|id| id.parse::<u32>().ok());
                match tag.name() {
                    "cellXfs" => is_cells = true,
                    "numFmt" if tag.attribute("formatCode").is_some_and(|code| shows_date(&code)) => {
                        custom.extend(id());
                    }
                    "xf" if is_cells => found.push(id().is_some_and(|id| {
                        DATE_FORMATS.iter().any(|known| known.contains(&id)) || custom.contains(&id)
                    })),
                    _ => {}
                }
            }
            Node::End(name) if name == "cellXfs" => is_cells = false,
            Node::End(_) | Node::Text(_) => {}
        }
    }
    Ok(Styles(found))
}

/// Whether a format has a day, month or year in it, outside of quotes and brackets.
fn shows_date(code: &str) -> bool {
    let (mut is_quoted, mut is_bracketed) = (false, false);
    for character in code.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            '[' => is_bracketed = true,
            ']' => is_bracketed = false,
            'd' | 'D' | 'y' | 'Y' if !is_quoted && !is_bracketed => return true,
            _ => {}
        }
    }
    false
}

/// A number without the noise of binary fractions.
pub(super) fn plain(value: &str) -> String {
    let value = value.trim();
    if value.len() < 16 {
        return value.to_owned();
    }
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() && number.abs() < 1e15 => {
            let text = format!("{number:.10}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Ok(_) | Err(_) => value.to_owned(),
    }
}

/// A day number, counted from the end of 1899, as a date and, where it has one, a time.
pub(super) fn date(value: &str) -> Option<String> {
    let number: f64 = value.trim().parse().ok()?;
    if !(1.0..DAYS_MAX).contains(&number) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range was checked: the product is below 2^38"
    )]
    let seconds = (number * 86_400.0).round() as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The 29 February 1900 that never was counts as day 60.
    let days = if days < 60 { days + 1 } else { days };
    let (year, month, day) = civil(days - 25_569);
    let date = format!("{year:04}-{month:02}-{day:02}");
    if second == 0 {
        return Some(date);
    }
    Some(format!("{date} {:02}:{:02}", second / 3600, second / 60 % 60))
}

/// The date of a day counted from 1970, in the Gregorian calendar: years begin in March, so that the leap day is the
/// last one, and 400 of them have 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_numbers_are_dates() {
        for (value, expected) in [
            ("1", Some("1900-01-01")),
            ("61", Some("1900-03-01")),
            ("25569", Some("1970-01-01")),
            ("45351.5", Some("2024-02-29 12:00")),
            ("45352", Some("2024-03-01")),
            ("2958465", Some("9999-12-31")),
            ("0.5", None),
            ("-3", None),
            ("1e300", None),
            ("x", None),
        ] {
            assert_eq!(date(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn formats_and_numbers() {
        for (code, expected) in [
            ("dd/mm/yyyy", true),
            ("0.00", false),
            ("[Red]0 \"days\"", false),
            ("h:mm", false),
        ] {
            assert_eq!(shows_date(code), expected, "{code}");
        }
        assert_eq!(plain("0.30000000000000004"), "0.3");
        assert_eq!(plain("12.5"), "12.5");
    }
}

//! School years as they stand in a sentence.

use std::ops::Range;

use super::sentence::Sentence;

/// Ordinals and numbers from 1 on.
const WORDS: [(&str, &str); 13] = [
    ("first", "one"),
    ("second", "two"),
    ("third", "three"),
    ("fourth", "four"),
    ("fifth", "five"),
    ("sixth", "six"),
    ("seventh", "seven"),
    ("eighth", "eight"),
    ("ninth", "nine"),
    ("tenth", "ten"),
    ("eleventh", "eleven"),
    ("twelfth", "twelve"),
    ("thirteenth", "thirteen"),
];

/// German ordinals without their endings.
const GERMAN: &[&str] = &[
    "erst",
    "zweit",
    "dritt",
    "viert",
    "fünft",
    "sechst",
    "siebt",
    "acht",
    "neunt",
    "zehnt",
    "elft",
    "zwölft",
    "dreizehnt",
];

/// What stands behind an ordinal.
const BEHIND: &[&str] = &[
    "grade",
    "grades",
    "grader",
    "graders",
    "gr",
    "klasse",
    "klassen",
    "klässler",
    "klässlern",
];

/// What stands before a number.
const BEFORE: &[&str] = &[
    "grade",
    "grades",
    "klasse",
    "klassenstufe",
    "jahrgangsstufe",
    "jahrgang",
];

/// A school year in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grade {
    /// Its words.
    pub(crate) at: Range<usize>,
    /// In the form in which it is compared.
    pub(crate) value: String,
}

/// All of them, from the left.
pub(crate) fn grades(sentence: &Sentence) -> Vec<Grade> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < sentence.tokens.len() {
        if let Some(mut grades) = grade_at(sentence, at) {
            at = grades.last().map_or(at + 1, |last| last.at.end.max(at + 1));
            found.append(&mut grades);
        } else {
            at += 1;
        }
    }
    found
}

fn grade_at(sentence: &Sentence, at: usize) -> Option<Vec<Grade>> {
    let one = |length: usize, value: &str| {
        Some(vec![Grade {
            at: at..at + length,
            value: value.to_owned(),
        }])
    };
    match sentence.word(at) {
        "kindergarten" | "kindergartners" | "kindergarteners" | "kindergartener" => return one(1, "k"),
        "k" if BEHIND.contains(&sentence.word(at + 1)) => return one(2, "k"),
        "pre" if sentence.reads(at, "pre k") || sentence.reads(at, "pre kindergarten") => {
            return one(2, "pre-k");
        }
        "prek" | "preschool" | "preschoolers" => return one(1, "pre-k"),
        "college" | "university" | "undergraduate" | "undergraduates" | "uni" => return one(1, "college"),
        _ => {}
    }
    if BEFORE.contains(&sentence.word(at))
        && let Some(year) = number(sentence.word(at + 1))
        // "To grade 5 essays" is work.
        && at.checked_sub(1).is_none_or(|before| sentence.word(before) != "to")
    {
        return one(2, &year.to_string());
    }
    let first = ordinal(sentence.word(at))?;
    // "4th and 5th grade", "4th/5th grade".
    let mut years = vec![(at, first)];
    let mut next = at + 1;
    while matches!(
        sentence.word(next),
        "and" | "or" | "/" | "," | "und" | "oder" | "to" | "through"
    ) && let Some(year) = ordinal(sentence.word(next + 1))
    {
        years.push((next + 1, year));
        next += 2;
    }
    if !BEHIND.contains(&sentence.word(next)) {
        return None;
    }
    Some(
        years
            .into_iter()
            .map(|(start, year)| Grade {
                at: start..next + 1,
                value: year.to_string(),
            })
            .collect(),
    )
}

/// "4th", "fourth", "4" in "5. Klasse".
fn ordinal(word: &str) -> Option<usize> {
    if let Some(index) = WORDS.iter().position(|(ordinal, _)| *ordinal == word) {
        return Some(index + 1);
    }
    let digits = word.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let ending = word.get(digits.len()..)?;
    if !digits.is_empty() && digits.len() <= 2 && matches!(ending, "" | "st" | "nd" | "rd" | "th") {
        return digits.parse().ok().filter(|year| (1..=13).contains(year));
    }
    let stem = word
        .strip_suffix("en")
        .or_else(|| word.strip_suffix("er"))
        .or_else(|| word.strip_suffix('e'))?;
    GERMAN
        .iter()
        .position(|german| *german == stem)
        .map(|index| index + 1)
}

fn number(word: &str) -> Option<usize> {
    WORDS
        .iter()
        .position(|(_, number)| *number == word)
        .map(|index| index + 1)
        .or_else(|| word.parse().ok())
        .filter(|year| (1..=13).contains(year))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::{
        sentence::{Everything, sentences},
        text::Folded,
    };

    #[test]
    fn finds_school_years() {
        for (text, expected) in [
            ("I teach 4th grade", vec!["4"]),
            ("I teach fourth-grade math", vec!["4"]),
            ("I teach grade 11 here", vec!["11"]),
            ("my 4th and 5th graders", vec!["4", "5"]),
            ("ich unterrichte die 5. Klasse", vec!["5"]),
            ("in der fünften Klasse", vec!["5"]),
            ("kindergarten and pre-K", vec!["k", "pre-k"]),
            ("problem 4 on page 5", vec![]),
            ("my first class of the day", vec![]),
            ("99th grade", vec![]),
        ] {
            let read = sentences(&Folded::of(text), &Everything);
            let found: Vec<String> = grades(&read[0]).into_iter().map(|grade| grade.value).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}

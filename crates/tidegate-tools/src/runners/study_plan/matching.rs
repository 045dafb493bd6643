//! Matching what a learner writes against what a syllabus says: by words, never by guesswork.

use std::collections::BTreeSet;

use super::syllabus::{Syllabus, Unit};

/// Words that say nothing about a topic.
const EMPTY_WORDS: [&str; 20] = [
    "a",
    "an",
    "and",
    "at",
    "basic",
    "for",
    "from",
    "how",
    "i",
    "in",
    "is",
    "my",
    "of",
    "on",
    "or",
    "the",
    "to",
    "weak",
    "with",
    "understanding",
];
/// Words around a level's number or name.
const LEVEL_WORDS: [&str; 8] = ["grade", "class", "level", "year", "form", "school", "the", "th"];
/// How many letters a shortened subject must have.
const PREFIX_CHARS_MIN: usize = 4;
/// The most units that one gap may draw forward.
const UNITS_PER_GAP_MAX: usize = 3;

/// Where a gap was found in a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The unit's position.
    pub(super) unit: usize,
    /// What to give time to.
    pub(super) topics: Vec<String>,
    /// Whether it is something the unit builds on and not a part of it.
    pub(super) is_prerequisite: bool,
}

/// Whether a syllabus is on the subject asked for.
pub(super) fn fits_subject(wanted: &str, syllabus: &Syllabus) -> bool {
    // `Grade 8 Mathematics` is how some write it: the words of the syllabus's own level are no part of the name.
    let level = words(&syllabus.level);
    let wanted: BTreeSet<String> = words(wanted).difference(&level).cloned().collect();
    !wanted.is_empty()
        && std::iter::once(&syllabus.subject)
            .chain(&syllabus.aliases)
            .map(|name| words(name))
            .any(|name| {
                wanted
                    .iter()
                    .all(|word| name.iter().any(|other| is_short_for(word, other)))
            })
}

/// Whether a level is the one asked for: `8`, `8th grade` and `Grade 8` are the same.
pub(super) fn fits_level(wanted: &str, level: &str) -> bool {
    let core = |text: &str| -> BTreeSet<String> {
        words(text)
            .into_iter()
            .map(|word| {
                let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
                let is_ordinal = matches!(
                    word.strip_prefix(digits.as_str()),
                    Some("th" | "st" | "nd" | "rd")
                );
                if is_ordinal && !digits.is_empty() {
                    digits
                } else {
                    word
                }
            })
            .filter(|word| !LEVEL_WORDS.contains(&word.as_str()))
            .collect()
    };
    let wanted = core(wanted);
    !wanted.is_empty() && wanted.is_subset(&core(level))
}

/// The units a gap belongs to, best kind of match first: what the unit is about (its title, or some of its
/// topics), what it builds on, some of the words.
pub(super) fn find_gap(gap: &str, units: &[Unit]) -> Vec<Found> {
    let gap = words(gap);
    if gap.is_empty() {
        return Vec::new();
    }
    let holds = |text: &String| gap.is_subset(&words(text));
    let pick = |select: &dyn Fn(&Unit) -> Vec<String>, is_prerequisite: bool| -> Vec<Found> {
        units
            .iter()
            .enumerate()
            .map(|(unit, one)| Found {
                unit,
                topics: select(one),
                is_prerequisite,
            })
            .filter(|found| !found.topics.is_empty())
            .take(UNITS_PER_GAP_MAX)
            .collect()
    };
    let kept = |list: &[String]| {
        list.iter()
            .filter(|text| holds(text))
            .cloned()
            .collect::<Vec<_>>()
    };
    let by_content = pick(
        &|unit| {
            if holds(&unit.title) {
                unit.topics.clone()
            } else {
                kept(&unit.topics)
            }
        },
        false,
    );
    if !by_content.is_empty() {
        return by_content;
    }
    let by_prerequisite = pick(&|unit| kept(&unit.prerequisites), true);
    if !by_prerequisite.is_empty() {
        return by_prerequisite;
    }
    some_of_the_words(&gap, units).into_iter().collect()
}

/// The unit that shares most of the gap's words, at least half of them.
fn some_of_the_words(gap: &BTreeSet<String>, units: &[Unit]) -> Option<Found> {
    let mut best: Option<(usize, Found)> = None;
    for (unit, one) in units.iter().enumerate() {
        for topic in &one.topics {
            let shared = words(topic)
                .union(&words(&one.title))
                .filter(|word| gap.contains(*word))
                .count();
            if shared * 2 >= gap.len() && best.as_ref().is_none_or(|(most, _)| shared > *most) {
                best = Some((
                    shared,
                    Found {
                        unit,
                        topics: vec![topic.clone()],
                        is_prerequisite: false,
                    },
                ));
            }
        }
    }
    best.map(|(_, found)| found)
}

/// The words of a text that carry meaning, in lower case and without plural endings.
fn words(text: &str) -> BTreeSet<String> {
    text.to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty() && !EMPTY_WORDS.contains(word))
        .map(singular)
        .collect()
}

fn singular(word: &str) -> String {
    if word.chars().count() <= 3 || word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        return word.to_owned();
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["ches", "shes", "xes", "sses"] {
        if word.ends_with(ending)
            && let Some(stem) = word.strip_suffix("es")
        {
            return stem.to_owned();
        }
    }
    word.strip_suffix('s').unwrap_or(word).to_owned()
}

fn is_short_for(short: &str, word: &str) -> bool {
    short == word || (short.chars().count() >= PREFIX_CHARS_MIN && word.starts_with(short))
}

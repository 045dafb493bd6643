//! Statements that begin like questions: "What I teach is music", "What helps me most are tables".

use std::ops::Range;

use super::{
    cues::{is_adverb, is_any},
    sentence::Sentence,
};

/// Verbs with which something is told that does something to the person.
const DOES: &[&str] = &[
    "helps", "works", "suits", "confuses", "puzzles", "trips", "throws",
];

/// Words that may stand between "is" and the value.
const BETWEEN: &[&str] = &["the", "a", "an", "my", "with", "mostly"];

/// Where the person is named in such a statement of what stands behind it.
pub(super) fn person(sentence: &Sentence, lead: Range<usize>) -> Option<usize> {
    let word = |at: usize| sentence.word(at);
    let what = lead
        .clone()
        .find(|at| !is_any(&["and", "so", "but"], word(*at)))?;
    if word(what) != "what" || sentence.is_question {
        return None;
    }
    let last = lead
        .clone()
        .rev()
        .find(|at| !is_any(BETWEEN, word(*at)) && !is_adverb(word(*at)))?;
    let first = (what + 1..lead.end).find(|at| !is_adverb(word(*at)))?;
    let is_told = is_any(&["is", "are"], word(last)) && first < last;
    let me = (first + 1..last).find(|at| word(*at) == "me");
    match word(first) {
        "i" if is_told => Some(first),
        verb if is_told && is_any(DOES, verb) => me,
        _ => None,
    }
}

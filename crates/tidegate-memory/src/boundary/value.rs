//! Where in a sentence a value is said.

use std::ops::Range;

use super::{grade::grades, sentence, sentence::Sentence};
use crate::kinds::{Kind, ValueType};

/// Words that may stand at the beginning of a value and say nothing.
const ARTICLES: &[&str] = &[
    "the", "a", "an", "my", "our", "some", "der", "die", "das", "ein", "eine", "mein",
];

/// Words of which no value consists.
const EMPTY: &[&str] = &[
    "i", "me", "my", "you", "your", "it", "that", "this", "these", "those", "they", "them", "he", "she",
    "we", "us", "is", "am", "are", "to", "and", "or", "of", "in", "on", "at", "for", "with", "not", "no",
    "do", "so", "very", "here", "there", "what",
];

/// The places between two tokens at which a value is said.
pub(super) fn places(
    sentence: &Sentence,
    within: Range<usize>,
    kind: &Kind,
    given: &str,
    value: &str,
) -> Vec<Range<usize>> {
    if kind.value == ValueType::Grade {
        return grades(sentence)
            .into_iter()
            .filter(|grade| {
                grade.value == value && within.start <= grade.at.start && grade.at.end <= within.end
            })
            .map(|grade| grade.at)
            .collect();
    }
    let mut words = sentence::words(given);
    while words.len() > 1
        && words
            .first()
            .is_some_and(|first| ARTICLES.contains(&first.as_str()))
    {
        words.remove(0);
    }
    if words.is_empty() || words.iter().all(|word| EMPTY.contains(&word.as_str())) {
        return Vec::new();
    }
    let mut places = Vec::new();
    for start in within.clone() {
        if let Some(end) = reads(sentence, start, &words)
            && end <= within.end
        {
            places.push(start..end);
        }
    }
    places
}

/// Where the words end that begin at a place; the ends of words may differ as singular and plural do.
fn reads(sentence: &Sentence, start: usize, words: &[String]) -> Option<usize> {
    let mut at = start;
    for word in words {
        // A short word may stand between, such as "the".
        if at > start && ARTICLES.contains(&sentence.word(at)) && !ARTICLES.contains(&word.as_str()) {
            at += 1;
        }
        if stem(sentence.word(at)) != stem(word) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

fn stem(word: &str) -> &str {
    let long = |stem: &&str| stem.chars().count() >= 3 && !stem.ends_with('s');
    word.strip_suffix('s').filter(long).unwrap_or(word)
}

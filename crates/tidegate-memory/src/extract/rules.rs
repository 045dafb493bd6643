//! The extractor that needs no model: ways of saying the kinds that ship, in English and simple German.
//!
//! It proposes freely and leaves judging to the boundary: a rule that fires on "my friend struggles with commas" costs
//! nothing, since the boundary refuses what is said of a friend.

mod classes;
mod cue;
#[rustfmt::skip]
mod cues;
mod patterns;
mod people;
mod phrase;
mod places;
mod shipped;
#[rustfmt::skip]
mod words;

use std::ops::Range;

use self::cue::Plain;
use crate::boundary::{CANDIDATES_MAX, Candidate, QUOTE_CHARS_MAX, Reading, Sentence, clauses};

/// What these rules are called in an observation.
pub const NAME: &str = "rules";

/// A sentence as it was spelled.
#[derive(Clone, Copy)]
struct Spelling<'s> {
    reading: &'s Reading<'s>,
    sentence: &'s Sentence,
}

impl<'s> Spelling<'s> {
    fn of(self, at: usize) -> &'s str {
        self.reading.slice(self.sentence.span_of(at..at + 1))
    }

    /// Whether a word begins with a capital letter.
    fn is_capital(self, at: usize) -> bool {
        self.of(at).starts_with(char::is_uppercase)
    }

    /// Whether a word is written in nothing but capital letters.
    fn is_shouted(self, at: usize) -> bool {
        let word = self.of(at);
        word.chars().nth(1).is_some() && !word.chars().any(char::is_lowercase)
    }

    /// The words from a place on that begin with capital letters.
    fn capitals(self, start: usize, length_max: usize) -> Range<usize> {
        let is_name = |at: usize| {
            self.is_capital(at)
                && self
                    .sentence
                    .tokens
                    .get(at)
                    .is_some_and(crate::boundary::Token::is_word)
        };
        let end = (start..start + length_max).find(|at| !is_name(*at));
        start..end.unwrap_or(start + length_max)
    }
}

/// Something found in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Find {
    /// Of which kind.
    kind: &'static str,
    /// Where the value stands.
    value: Range<usize>,
    /// Where the words stand that say so.
    quote: Range<usize>,
    /// The value, where the words say more than one: "4th and 5th grade".
    read: Option<String>,
}

impl Find {
    fn new(kind: &'static str, value: Range<usize>, quote: Range<usize>) -> Self {
        Self {
            kind,
            value,
            quote,
            read: None,
        }
    }
}

/// What might be facts about the person in what remains of a turn. At most [`CANDIDATES_MAX`].
pub fn extract(reading: &Reading<'_>) -> Vec<Candidate> {
    reading
        .sentences()
        .iter()
        .flat_map(|sentence| {
            find(Spelling { reading, sentence })
                .into_iter()
                .filter_map(|find| candidate(reading, sentence, &find))
                .collect::<Vec<_>>()
        })
        .take(CANDIDATES_MAX)
        .collect()
}

/// Everything that is found in a sentence.
fn find(spelling: Spelling<'_>) -> Vec<Find> {
    let plain = Plain::of(spelling.sentence);
    let mut finds = Vec::new();
    patterns::find(spelling, &plain, &mut finds);
    classes::find(spelling, &plain, &mut finds);
    shipped::find(spelling.sentence, &mut finds);
    people::find(spelling, &plain, &mut finds);
    places::find(spelling, &plain, &mut finds);
    finds
}

/// The find in words: the quote is the clauses that it stands in.
fn candidate(reading: &Reading<'_>, sentence: &Sentence, find: &Find) -> Option<Candidate> {
    let value = reading.slice(sentence.span_of(find.value.clone()));
    let clauses = clauses(sentence);
    let from = find.quote.start.min(find.value.start);
    let to = find.quote.end.max(find.value.end).saturating_sub(1);
    let start = clauses.iter().find(|clause| clause.contains(&from))?.start;
    let end = clauses.iter().find(|clause| clause.contains(&to))?.end;
    let whole = reading.slice(sentence.span_of(start..end));
    let is_short = whole.chars().count() <= QUOTE_CHARS_MAX;
    let quote = if is_short {
        whole
    } else {
        reading.slice(sentence.span_of(from..to + 1))
    };
    (!value.is_empty()).then(|| Candidate {
        kind: find.kind.to_owned(),
        value: find.read.clone().unwrap_or_else(|| value.to_owned()),
        quote: quote.to_owned(),
        is_explicit: true,
        is_first_person: true,
    })
}

#[cfg(test)]
mod tests;

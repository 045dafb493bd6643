//! The extractor that needs no model: ways of saying the kinds that ship, in English and simple German.
//!
//! It proposes freely and leaves judging to the boundary: a rule that fires on "my friend struggles with commas" costs
//! nothing, since the boundary refuses what is said of a friend.

#[rustfmt::skip]
mod cues;
mod patterns;
mod phrase;
mod shipped;
#[rustfmt::skip]
mod words;

use std::ops::Range;

use crate::boundary::{CANDIDATES_MAX, Candidate, QUOTE_CHARS_MAX, Reading, Sentence, clauses};

/// What these rules are called in an observation.
pub const NAME: &str = "rules";

/// Something found in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Find {
    /// Of which kind.
    kind: &'static str,
    /// Where the value stands.
    value: Range<usize>,
    /// Where the words stand that say so.
    quote: Range<usize>,
}

/// What might be facts about the person in what remains of a turn. At most [`CANDIDATES_MAX`].
pub fn extract(reading: &Reading<'_>) -> Vec<Candidate> {
    reading
        .sentences()
        .iter()
        .flat_map(|sentence| {
            let is_capital = |at: usize| {
                reading
                    .slice(sentence.span_of(at..at + 1))
                    .starts_with(char::is_uppercase)
            };
            let mut finds = patterns::find(sentence);
            shipped::find(sentence, &is_capital, &mut finds);
            finds
                .into_iter()
                .filter_map(|find| candidate(reading, sentence, &find))
                .collect::<Vec<_>>()
        })
        .take(CANDIDATES_MAX)
        .collect()
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
        value: value.to_owned(),
        quote: quote.to_owned(),
        is_explicit: true,
        is_first_person: true,
    })
}

#[cfg(test)]
mod tests;

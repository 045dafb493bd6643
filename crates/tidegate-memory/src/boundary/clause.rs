//! Clauses: the part of a sentence that has the value in it, and what governs it.

use super::words::{KNOWING, LACKS, MARKS, OPENERS, SUBJECTS};
use std::ops::Range;

use super::{cues::is_any, sentence::Sentence};

/// How many clauses back a part without a subject may belong.
const STEPS_MAX: usize = 5;

/// The clauses of a sentence.
pub(crate) fn clauses(sentence: &Sentence) -> Vec<Range<usize>> {
    let mut clauses = Vec::new();
    let mut start = 0;
    for at in 0..sentence.tokens.len() {
        if is_any(MARKS, sentence.word(at)) {
            if start < at {
                clauses.push(start..at);
            }
            start = at + 1;
        } else if at > start && opens(sentence, at) {
            clauses.push(start..at);
            start = at;
        }
    }
    if start < sentence.tokens.len() {
        clauses.push(start..sentence.tokens.len());
    }
    clauses
}

fn opens(sentence: &Sentence, at: usize) -> bool {
    let next = sentence.word(at + 1);
    match sentence.word(at) {
        "and" | "or" | "so" | "then" | "und" | "oder" | "also" | "plus" => {
            is_any(SUBJECTS, next)
                || (matches!(next, "now" | "so" | "then" | "also") && is_any(SUBJECTS, sentence.word(at + 2)))
        }
        "that" => {
            is_any(SUBJECTS, next)
                || at.checked_sub(1).is_some_and(|before| {
                    is_any(
                        &["remember", "mind", "forget", "know", "note", "so", "me"],
                        sentence.word(before),
                    )
                })
        }
        // "Since March" and "before lunch" begin none.
        "since" | "before" | "after" | "until" | "till" | "once" => is_any(SUBJECTS, next),
        // "I never know where commas go" is one clause.
        "where" | "when" | "which" | "whether" | "if" | "who"
            if at
                .checked_sub(1)
                .is_some_and(|before| is_any(KNOWING, sentence.word(before))) =>
        {
            false
        }
        // "… is where I get lost", "lost when it comes to …".
        "where" if is_of_lack(sentence, at) => false,
        "when" if sentence.reads(at, "when it comes to") => false,
        word => is_any(OPENERS, word),
    }
}

/// Whether what begins at a place tells of what stands before "is" that it is hard for the person.
fn is_of_lack(sentence: &Sentence, at: usize) -> bool {
    let is_told = at
        .checked_sub(1)
        .is_some_and(|before| is_any(&["is", "are"], sentence.word(before)));
    is_told
        && sentence.word(at + 1) == "i"
        && (at + 2..at + 2 + LACK_WORDS).any(|at| is_any(LACKS, sentence.word(at)))
}

/// How far behind "where I" the word stands that tells, in words.
const LACK_WORDS: usize = 3;

/// The clause around a place: with the ones before it that it leans on for its subject.
pub(super) fn around(sentence: &Sentence, at: usize) -> Option<Range<usize>> {
    let clauses = clauses(sentence);
    let mut index = clauses.iter().position(|clause| clause.contains(&at))?;
    let end = clauses.get(index)?.end;
    let mut start = clauses.get(index)?.start;
    let mut steps = 0;
    while let Some(before) = index.checked_sub(1) {
        let leans = !has_first_person(sentence, start..end)
            && !is_any(OPENERS, sentence.word(start))
            && !is_any(
                &[
                    "he", "she", "they", "you", "it", "er", "sie", "this", "these", "there",
                ],
                sentence.word(start),
            )
            && steps < STEPS_MAX;
        if !leans {
            break;
        }
        index = before;
        steps += 1;
        start = clauses.get(index)?.start;
    }
    // A part that found no subject stands for itself.
    if has_first_person(sentence, start..end) {
        Some(start..end)
    } else {
        clauses.into_iter().find(|clause| clause.contains(&at))
    }
}

/// Whether the person speaks of themselves between two places.
pub(super) fn has_first_person(sentence: &Sentence, within: Range<usize>) -> bool {
    within.into_iter().any(|at| {
        is_any(
            &[
                "i", "me", "my", "mine", "myself", "we", "us", "our", "ich", "mir", "mich", "mein", "meine",
                "meinen", "meiner",
            ],
            sentence.word(at),
        )
    })
}

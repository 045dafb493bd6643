//! Phrases: from where to where a value goes.

use super::words::{ENDS, LEADS};
use std::ops::Range;

use crate::boundary::{Sentence, is_adverb, is_any};

/// The most words of a value.
const WORDS_MAX: usize = 6;

/// The phrase that begins at a place. `inner` are words at which it may go on nevertheless.
pub(super) fn from(sentence: &Sentence, mut start: usize, inner: &[&str]) -> Option<Range<usize>> {
    while is_any(LEADS, sentence.word(start)) {
        start += 1;
    }
    let end = (start..(start + WORDS_MAX).min(sentence.tokens.len()))
        .find(|at| !goes_on(sentence, *at, inner))
        .unwrap_or((start + WORDS_MAX).min(sentence.tokens.len()));
    // What it could not end with belongs to what follows.
    let end = (start..end)
        .rev()
        .find(|at| {
            let word = sentence.word(*at);
            sentence.is_joined(*at) || (!is_any(inner, word) && !is_adverb(word) && !is_any(LEADS, word))
        })
        .map_or(start, |last| last + 1);
    (start < end).then_some(start..end)
}

/// The phrases of a list that begins at a place: "tables, lists and diagrams".
pub(super) fn list(sentence: &Sentence, start: usize, inner: &[&str]) -> Vec<Range<usize>> {
    let mut phrases = Vec::new();
    let mut next = start;
    while let Some(phrase) = from(sentence, next, inner) {
        let mut end = phrase.end;
        phrases.push(phrase);
        let is_listed = is_any(&["and", ",", "or", "und"], sentence.word(end));
        if sentence.word(end) == "," && is_any(&["and", "or"], sentence.word(end + 1)) {
            end += 1;
        }
        if !is_listed || phrases.len() >= WORDS_MAX || is_clause(sentence, end + 1) {
            break;
        }
        next = end + 1;
    }
    phrases
}

/// Whether a clause of its own begins at a place, and no part of a list.
fn is_clause(sentence: &Sentence, at: usize) -> bool {
    let first = sentence.word(at);
    is_any(
        &[
            "i",
            "we",
            "he",
            "she",
            "they",
            "it",
            "you",
            "can",
            "could",
            "would",
            "will",
            "what",
            "how",
            "need",
            "want",
            "have",
            "please",
            "do",
            "does",
            "is",
            "are",
            "am",
            "keep",
            "go",
            "sometimes",
            "so",
            "my",
            "not",
            "use",
            "looking",
            "teach",
            "live",
            "work",
            "hate",
            "like",
            "love",
            "prefer",
            "would",
            "give",
            "show",
            "make",
            "thanks",
            "by",
            "then",
            "especially",
            "but",
            "always",
        ],
        first,
    )
}

fn goes_on(sentence: &Sentence, at: usize, inner: &[&str]) -> bool {
    let Some(token) = sentence.tokens.get(at) else {
        return false;
    };
    // "Hands-on" is one word, whatever its parts are.
    token.is_word() && (sentence.is_joined(at) || !is_any(ENDS, &token.word) || is_any(inner, &token.word))
}

/// The phrase that ends before a place, from the beginning of its clause.
pub(super) fn before(sentence: &Sentence, start: usize, end: usize) -> Option<Range<usize>> {
    let mut start = start;
    while start < end
        && (is_any(LEADS, sentence.word(start))
            || is_any(
                &[
                    "and", "but", "because", "so", "that", "honestly", "for", "me", "i", "think", "find",
                    "ugh", "oh", "hey", "well", "man", "gosh", "hmm", "in", "general", "ok", "yeah",
                ],
                sentence.word(start),
            )
            || is_adverb(sentence.word(start)))
    {
        start += 1;
    }
    let mut end = end;
    while end > start && is_adverb(sentence.word(end - 1)) {
        end -= 1;
    }
    let is_phrase = (start..end).all(|at| {
        sentence.tokens.get(at).is_some_and(|token| {
            token.is_word()
                && !is_any(
                    &["i", "you", "he", "she", "they", "it", "this", "that", "is", "are"],
                    &token.word,
                )
        })
    });
    (start < end && end - start <= WORDS_MAX && is_phrase).then_some(start..end)
}

//! Which of a person's notes hold the words of a question.
//!
//! The index's own ranking counts a word among everybody's notes: it would read all of them, and one person's words
//! would move another one's ranks. So the score is made here, from the parts of the words' lists that are this person's:
//! BM25 (Robertson and Zaragoza, 2009) with each word counted once a note, as notes are a sentence long.

use std::{
    cmp::Ordering,
    collections::{HashMap, hash_map::Entry},
};

use rusqlite::{Connection, OptionalExtension as _, params};
use tidegate_core::{id::UserId, port::RowKey};

use super::people;
use crate::knowledge::words;

/// How soon repeated words stop counting, and how much a note's length counts; the usual values.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// From how many notes on words that stand in most of them are left out.
const COMMON_FROM: i64 = 500;

/// A word is left out that stands in more than this share of the notes, in percent, while others are found.
const COMMON_PERCENT: i64 = 30;

/// How many of the best by their words have their length looked at, for each one wanted.
const LOOKED_AT: usize = 4;

/// The most that are wanted.
const LIMIT_MAX: usize = 1_000;

/// A term, and how often it was given.
struct Term {
    expression: String,
    times: f32,
}

fn terms(given: &[String]) -> Vec<Term> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut terms: Vec<Term> = Vec::new();
    for expression in words::expressions(given) {
        match places.entry(expression) {
            Entry::Occupied(place) => {
                if let Some(term) = terms.get_mut(*place.get()) {
                    term.times += 1.0;
                }
            }
            Entry::Vacant(place) => {
                terms.push(Term {
                    expression: place.key().clone(),
                    times: 1.0,
                });
                place.insert(terms.len() - 1);
            }
        }
    }
    terms
}

/// A person's notes: their range of keys, how many, and how many words they have.
struct Notes {
    first: RowKey,
    last: RowKey,
    count: i64,
    words: i64,
}

fn notes(db: &Connection, user: &UserId) -> Result<Option<Notes>, rusqlite::Error> {
    db.prepare_cached("SELECT number, notes, note_words FROM memory_people WHERE user_id = ?1")?
        .query_row([user.as_str()], |row| {
            let keys = people::keys(row.get(0)?);
            Ok(Notes {
                first: *keys.start(),
                last: *keys.end(),
                count: row.get(1)?,
                words: row.get(2)?,
            })
        })
        .optional()
}

/// The notes that a term stands in, at most `limit`.
fn holders(db: &Connection, notes: &Notes, term: &Term, limit: i64) -> Result<Vec<RowKey>, rusqlite::Error> {
    db.prepare_cached(
        "SELECT rowid FROM memory_words WHERE memory_words MATCH ?1 AND rowid BETWEEN ?2 AND ?3 LIMIT ?4",
    )?
    .query_map(params![term.expression, notes.first, notes.last, limit], |row| {
        row.get(0)
    })?
    .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a weight needs no more than a float's precision"
)]
fn weight(count: i64, found: usize) -> f32 {
    let (count, found) = (count as f32, found as f32);
    (1.0 + (count - found + 0.5).max(0.0) / (found + 0.5)).ln()
}

/// The sum of the weights of the words that each note holds.
fn sums(
    db: &Connection,
    notes: &Notes,
    terms: &[Term],
    limit: i64,
) -> Result<HashMap<RowKey, f32>, rusqlite::Error> {
    let mut sums: HashMap<RowKey, f32> = HashMap::new();
    for term in terms {
        let found = holders(db, notes, term, limit)?;
        if found.len() as u64 == limit.unsigned_abs() {
            continue;
        }
        let weight = weight(notes.count, found.len()) * term.times;
        for key in found {
            *sums.entry(key).or_default() += weight;
        }
    }
    Ok(sums)
}

/// Better first; of equal ones the newer.
fn by_score(one: &(RowKey, f32), other: &(RowKey, f32)) -> Ordering {
    other.1.total_cmp(&one.1).then_with(|| other.0.cmp(&one.0))
}

fn best(mut scored: Vec<(RowKey, f32)>, wanted: usize) -> Vec<(RowKey, f32)> {
    if scored.len() > wanted && wanted > 0 {
        scored.select_nth_unstable_by(wanted - 1, by_score);
        scored.truncate(wanted);
    }
    scored.sort_unstable_by(by_score);
    scored.truncate(wanted);
    scored
}

pub(super) fn match_words(
    db: &Connection,
    user: &UserId,
    given: &[String],
    limit: usize,
) -> Result<Vec<(RowKey, f32)>, rusqlite::Error> {
    let Some(notes) = notes(db, user)?.filter(|notes| notes.count > 0) else {
        return Ok(Vec::new());
    };
    let (terms, limit) = (terms(given), limit.min(LIMIT_MAX));
    // No word stands in more notes than there are.
    let all = notes.count + 1;
    let mut found = HashMap::new();
    if notes.count >= COMMON_FROM {
        found = sums(db, &notes, &terms, notes.count * COMMON_PERCENT / 100 + 1)?;
    }
    if found.is_empty() {
        found = sums(db, &notes, &terms, all)?;
    }
    let mut scored = best(found.into_iter().collect(), limit * LOOKED_AT);
    let mut length = db.prepare_cached("SELECT length FROM memory_notes WHERE key = ?1")?;
    for (key, score) in &mut scored {
        let length: i64 = length.query_row([*key], |row| row.get(0))?;
        *score *= saturation(length, &notes);
    }
    Ok(best(scored, limit))
}

/// What BM25 makes of a word that stands once in a note of that length.
#[expect(
    clippy::cast_precision_loss,
    reason = "lengths need no more than a float's precision"
)]
fn saturation(length: i64, notes: &Notes) -> f32 {
    let mean = notes.words.max(1) as f32 / notes.count.max(1) as f32;
    (K1 + 1.0) / (1.0 + K1 * (1.0 - B + B * length as f32 / mean))
}

//! Whether a place in a clause is one in which the person lives or works.

use super::{
    cues::{is_adverb, is_any},
    subject::{Clause, Subject},
    words::NOT_THIS_GROUP,
};

/// How somebody says where they are.
const SAID: &[&str] = &[
    "live",
    "living",
    "based",
    "located",
    "work in",
    "teach in",
    "from",
    "moved to",
    "am in",
    "home is",
    "town is",
    "city is",
    "wohne",
    "lebe",
    "komme",
    "school is in",
    "reside",
    "staying in",
    "work at",
    "am at",
    "hometown",
];

/// What of the person's may be at a place.
const OWN: &[&str] = &[
    "school",
    "home",
    "house",
    "office",
    "hometown",
    "town",
    "city",
    "practice",
    "firm",
    "clinic",
    "district",
    "college",
    "university",
    "job",
    "workplace",
];

/// What makes it the place of something else.
const ELSEWHERE: &[&str] = &["with", "about", "on", "from", "like", "of", "to"];

/// Whether the place is the person's.
pub(super) fn holds(clause: &Clause<'_>) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    let between = clause.between();
    // A street and its number are an address.
    if clause
        .target
        .clone()
        .any(|at| word(at).starts_with(|letter: char| letter.is_ascii_digit()))
    {
        return false;
    }
    match clause.subject {
        Subject::I(at) => clause.has(clause.predicate(at), SAID) || is_at_work(clause),
        Subject::My(_) if clause.has(between.clone(), NOT_THIS_GROUP) => false,
        Subject::My(_) => {
            clause.has(between.clone(), SAID)
                || (is_any(OWN, word(between.start)) && clause.has(between, &["is in", "is near"]))
        }
        Subject::Behind(at) => (at..clause.at.end)
            .any(|at| is_any(&["live", "home", "hometown", "city", "town", "work"], word(at))),
        Subject::Object(_) => false,
    }
}

/// "I teach at a school in …", "I work for a firm near …".
fn is_at_work(clause: &Clause<'_>) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    let Subject::I(i) = clause.subject else {
        return false;
    };
    let between = clause.predicate(i);
    let Some(verb) = between.clone().find(|at| !is_adverb(word(*at))) else {
        return false;
    };
    let leads = between
        .clone()
        .rev()
        .find(|at| !is_any(&["the", "rural", "downtown"], word(*at)));
    let rest = verb + 1..leads.unwrap_or(verb + 1);
    let is_plain = match word(verb) {
        "work" | "teach" | "volunteer" => true,
        // "I study life in Rome" is read about it.
        "study" => rest.is_empty() || word(rest.start) == "at",
        _ => false,
    };
    is_plain
        && leads.is_some_and(|at| is_any(&["in", "near", "outside"], word(at)))
        && !clause.has(rest.clone(), ELSEWHERE)
        && !rest.clone().any(|at| word(at).ends_with("ing"))
}

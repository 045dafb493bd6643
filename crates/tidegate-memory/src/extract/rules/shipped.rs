//! School years, and what a week looks like: told by the form of the value.

use std::ops::Range;

use super::Find;
use super::words::{DAY_TAILS, DAY_TIMES, DAYS};
use crate::boundary::{Sentence, clauses, grades, is_adverb, is_any};

/// What is found by form.
pub(super) fn find(sentence: &Sentence, finds: &mut Vec<Find>) {
    let clauses = clauses(sentence);
    for grade in grades(sentence) {
        let clause = clauses.iter().position(|clause| clause.contains(&grade.at.start));
        // "…, 11th grade": what it belongs to stands before.
        let lone = clause.and_then(|index| clauses.get(index)).is_some_and(|clause| {
            !clause
                .clone()
                .any(|at| is_any(&["i", "my", "ich"], sentence.word(at)))
        });
        let start = clause
            .and_then(|index| clauses.get(if lone { index.saturating_sub(1) } else { index }))
            .map_or(grade.at.start, |clause| clause.start);
        finds.push(Find {
            kind: "grade_level",
            quote: start..grade.at.end,
            value: grade.at,
            read: Some(grade.value),
        });
    }
    for clause in clauses {
        schedule(sentence, &clause, finds);
    }
}

/// The longest entry of a schedule, in words.
const SCHEDULE_WORDS_MAX: usize = 10;

/// "I teach on Mondays", "my planning period is on Wednesday": what is regular, and no appointment.
fn schedule(sentence: &Sentence, clause: &Range<usize>, finds: &mut Vec<Find>) {
    let Some(day) = clause.clone().find(|at| is_any(DAYS, sentence.word(*at))) else {
        return;
    };
    let Some(person) = clause
        .clone()
        .find(|at| is_any(&["i", "my", "ich", "mein", "meine"], sentence.word(*at)))
    else {
        return;
    };
    let is_plural = |at: usize| is_any(DAYS, sentence.word(at)) && sentence.word(at).ends_with('s');
    let is_regular = clause
        .clone()
        .any(|at| is_plural(at) || is_any(&["every", "each", "jeden", "weekly"], sentence.word(at)))
        || (is_any(&["my", "mein", "meine"], sentence.word(person))
            && clause
                .clone()
                .any(|at| is_any(&["is", "are", "meets", "starts"], sentence.word(at))));
    let start = (person + 1..clause.end)
        .find(|at| !is_adverb(sentence.word(*at)) && !is_any(&["am", "no", "longer"], sentence.word(*at)))
        .unwrap_or(person + 1);
    let end = entry_end(sentence, day, clause.end);
    let (start, end) = if day < person {
        (day, behind_time(sentence, day + 1, person))
    } else {
        (start, end)
    };
    if is_regular && start < end && end - start <= SCHEDULE_WORDS_MAX {
        finds.push(Find::new(
            "schedule",
            start..end,
            person.min(start)..end.max(person + 1),
        ));
    }
}

/// Where an entry ends that has its day at a place: behind other days and times of day.
fn entry_end(sentence: &Sentence, day: usize, clause_end: usize) -> usize {
    let goes_on = |word: &str| {
        is_any(DAY_TAILS, word)
            || is_any(DAY_TIMES, word)
            || is_any(DAYS, word)
            || word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let end = (day + 1..clause_end)
        .find(|at| !goes_on(sentence.word(*at)))
        .unwrap_or(clause_end);
    // "On Saturdays at the library": what it could not end with belongs to what follows.
    (day + 1..end)
        .rev()
        .find(|at| !is_any(DAY_TAILS, sentence.word(*at)))
        .map_or(day + 1, |last| last + 1)
}

/// Behind the time of day that follows a day: "on Monday evenings I …".
fn behind_time(sentence: &Sentence, start: usize, end: usize) -> usize {
    (start..end)
        .find(|at| !is_any(DAY_TIMES, sentence.word(*at)))
        .unwrap_or(end)
}

//! Kinds that are told by the form of the value: school years, names, roles, weekdays, places.

use super::words::{DAY_TAILS, DAYS, NAMINGS, NO_SUBJECTS, ROLES};
use super::{Find, phrase};
use crate::boundary::{Sentence, clauses, grades, is_adverb, is_any};

/// What is found by form.
pub(super) fn find(sentence: &Sentence, is_capital: &dyn Fn(usize) -> bool, finds: &mut Vec<Find>) {
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
        });
    }
    name(sentence, is_capital, finds);
    role(sentence, finds);
    place(sentence, is_capital, finds);
    for clause in clauses {
        schedule(sentence, &clause, finds);
    }
}

/// The longest name that is taken, in words.
const NAME_WORDS_MAX: usize = 4;

fn name(sentence: &Sentence, is_capital: &dyn Fn(usize) -> bool, finds: &mut Vec<Find>) {
    let length = sentence.tokens.len();
    let run = |start: usize| {
        let end = (start..(start + NAME_WORDS_MAX).min(length))
            .find(|at| {
                !(is_capital(*at)
                    && sentence
                        .tokens
                        .get(*at)
                        .is_some_and(crate::boundary::Token::is_word))
            })
            .unwrap_or((start + NAME_WORDS_MAX).min(length));
        start..end
    };
    let mut push = |from: usize, value: std::ops::Range<usize>| {
        finds.push(Find {
            kind: "name",
            quote: from..value.end,
            value,
        });
    };
    for at in 0..length {
        let Some(naming) = NAMINGS.iter().find(|naming| sentence.reads(at, naming)) else {
            continue;
        };
        let start = at + naming.split(' ').count();
        let start = if is_adverb(sentence.word(start)) {
            start + 1
        } else {
            start
        };
        let value = run(start);
        let value = if value.is_empty() { start..start + 1 } else { value };
        let is_name = sentence.tokens.get(value.start).is_some_and(|token| {
            token.is_word()
                && !is_any(
                    &[
                        "not", "a", "the", "when", "if", "back", "at", "on", "by", "what", "an",
                    ],
                    &token.word,
                )
        });
        if is_name {
            push(at, value);
        }
    }
    // "Hi, I'm Ben."
    let Some(i) = (0..length.min(6)).find(|at| sentence.reads(*at, "i am")) else {
        return;
    };
    let is_greeting = (0..i).all(|at| {
        is_any(
            &[
                "hi",
                "hello",
                "hey",
                ",",
                "there",
                "good",
                "morning",
                "afternoon",
                "evening",
                "everyone",
            ],
            sentence.word(at),
        )
    });
    let value = run(i + 2);
    let ends = value.end == length || is_any(&[",", "and", "-", "from", "("], sentence.word(value.end));
    if i > 0 && is_greeting && !value.is_empty() && ends {
        push(i, value);
    }
}

fn role(sentence: &Sentence, finds: &mut Vec<Find>) {
    let length = sentence.tokens.len();
    for i in 0..length {
        if !(sentence.reads(i, "i am") || sentence.reads(i, "ich bin")) {
            continue;
        }
        let Some(start) = (i + 2..length).find(|at| {
            !is_adverb(sentence.word(*at))
                && !is_any(
                    &["a", "an", "the", "eine", "ein", "no", "longer"],
                    sentence.word(*at),
                )
        }) else {
            continue;
        };
        let Some(value) = phrase::from(sentence, start, &["of"]) else {
            continue;
        };
        let Some(last) = value.clone().rev().find(|at| is_any(ROLES, sentence.word(*at))) else {
            continue;
        };
        // "Head of department" goes on.
        let end = if sentence.word(last + 1) == "of" {
            value.end
        } else {
            last + 1
        };
        let grade_end = grades(sentence)
            .into_iter()
            .find(|grade| value.start <= grade.at.start && grade.at.end < end)
            .map_or(value.start, |grade| grade.at.end);
        let start = (grade_end..end)
            .find(|at| {
                !is_any(
                    &[
                        "new", "proud", "busy", "full", "time", "part", "young", "year", "first", "second",
                        "third", "fourth", "fifth", "old",
                    ],
                    sentence.word(*at),
                )
            })
            .unwrap_or(grade_end);
        finds.push(Find {
            kind: "role",
            value: start..end,
            quote: i..end,
        });
        let is_of_subject = is_any(
            &["teacher", "tutor", "instructor", "professor", "major", "lecturer"],
            sentence.word(last),
        );
        let is_subject = start < last && !(start..last).any(|at| is_any(NO_SUBJECTS, sentence.word(at)));
        if is_of_subject && is_subject {
            finds.push(Find {
                kind: "subject_focus",
                value: start..last,
                quote: i..end,
            });
        }
    }
}

fn place(sentence: &Sentence, is_capital: &dyn Fn(usize) -> bool, finds: &mut Vec<Find>) {
    const CUES: &[&str] = &[
        "i live in",
        "no longer live in",
        "i am from",
        "i am based in",
        "i work in",
        "ich wohne in",
        "ich lebe in",
        "ich komme aus",
        "i teach in",
        "i am living in",
        "my school is in",
        "my hometown is",
        "i currently live in",
    ];
    let length = sentence.tokens.len();
    for at in 0..length {
        let Some(cue) = CUES.iter().find(|cue| sentence.reads(at, cue)) else {
            continue;
        };
        let start = at + cue.split(' ').count();
        let end = (start..(start + NAME_WORDS_MAX).min(length))
            .find(|at| {
                !is_capital(*at)
                    || !sentence
                        .tokens
                        .get(*at)
                        .is_some_and(crate::boundary::Token::is_word)
            })
            .unwrap_or((start + NAME_WORDS_MAX).min(length));
        if start < end {
            finds.push(Find {
                kind: "location",
                value: start..end,
                quote: at..end,
            });
        }
    }
}

/// The longest entry of a schedule, in words.
const SCHEDULE_WORDS_MAX: usize = 10;

/// "I teach on Mondays", "my planning period is on Wednesday": what is regular, and no appointment.
fn schedule(sentence: &Sentence, clause: &std::ops::Range<usize>, finds: &mut Vec<Find>) {
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
        .find(|at| !is_adverb(sentence.word(*at)))
        .unwrap_or(person + 1);
    let mut end = day + 1;
    let goes_on = |word: &str| {
        is_any(DAY_TAILS, word)
            || is_any(DAYS, word)
            || word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    while end < clause.end && goes_on(sentence.word(end)) {
        end += 1;
    }
    // "Saturdays at the library": what belongs to the next words.
    while end > day + 1
        && is_any(
            &[
                "and", "or", "to", "through", "after", "before", "at", "from", "until",
            ],
            sentence.word(end - 1),
        )
    {
        end -= 1;
    }
    let (start, end) = if day < person {
        (day, day + 1)
    } else {
        (start, end)
    };
    if is_regular && start < end && end - start <= SCHEDULE_WORDS_MAX {
        finds.push(Find {
            kind: "schedule",
            value: start..end,
            quote: person.min(start)..end.max(person + 1),
        });
    }
}

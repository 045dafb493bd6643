//! Kinds that are told by a cue and a phrase beside it.

use super::cues::{ACCESS, AFTER, After, CONFUSES, HARD_FOR, NO_VALUES, SUITS};
use std::ops::Range;

use super::{Find, phrase};
use crate::boundary::{Sentence, clauses, is_adverb, is_any};

/// What is found by cues.
pub(super) fn find(sentence: &Sentence) -> Vec<Find> {
    let mut finds = Vec::new();
    // Words that change nothing may stand in the middle of a cue.
    let plain: Vec<usize> = (0..sentence.tokens.len())
        .filter(|at| !is_adverb(sentence.word(*at)) || is_cue_word(sentence.word(*at)))
        .collect();
    for pattern in &AFTER {
        for start in 0..plain.len() {
            let Some(length) = longest(sentence, &plain, start, pattern.cues) else {
                continue;
            };
            let Some(from) = plain.get(start).copied() else {
                continue;
            };
            let Some(behind) = plain.get(start + length - 1).map(|last| last + 1) else {
                continue;
            };
            after(sentence, pattern, from, behind, &mut finds);
        }
    }
    before(sentence, &mut finds);
    finds
}

/// Adverbs that are parts of cues.
fn is_cue_word(word: &str) -> bool {
    matches!(word, "do" | "always" | "so")
}

/// How many words the longest cue has that begins at a place, adverbs left out.
fn longest(sentence: &Sentence, plain: &[usize], start: usize, cues: &[&str]) -> Option<usize> {
    cues.iter()
        .filter_map(|cue| {
            let words = cue
                .split(' ')
                .filter(|word| !is_adverb(word) || is_cue_word(word));
            let mut length = 0;
            for word in words {
                if plain
                    .get(start + length)
                    .is_none_or(|at| sentence.word(*at) != word)
                {
                    return None;
                }
                length += 1;
            }
            (length > 0).then_some(length)
        })
        .max()
}

fn after(sentence: &Sentence, pattern: &After, from: usize, behind: usize, finds: &mut Vec<Find>) {
    let mut behind = behind;
    // "I like to read": what is liked is to read.
    let is_infinitive = pattern.kind == "preference" && sentence.word(behind) == "to";
    if is_infinitive {
        behind += 1;
    }
    if is_any(NO_VALUES, sentence.word(behind)) && pattern.kind != "access_need" {
        return;
    }
    // "I prefer A to B".
    let is_choice = pattern.kind == "preference" && sentence.word(behind.saturating_sub(1)) == "prefer";
    let inner: &[&str] = match (is_infinitive, is_choice) {
        (true, _) => &["in", "at", "by", "with", "to"],
        (false, true) => &["in", "at", "by", "with"],
        (false, false) => pattern.inner,
    };
    let phrases = if pattern.is_list {
        phrase::list(sentence, behind, inner)
    } else {
        phrase::from(sentence, behind, inner).into_iter().collect()
    };
    for value in phrases {
        if pattern.kind == "access_need" && !is_access(sentence, &value) {
            continue;
        }
        let value = if pattern.kind == "subject_focus" {
            match subject(sentence, value) {
                Some(value) => value,
                None => continue,
            }
        } else {
            trimmed(sentence, value, pattern.kind)
        };
        finds.push(Find {
            kind: pattern.kind,
            quote: from..value.end,
            value,
        });
    }
}

fn is_access(sentence: &Sentence, value: &Range<usize>) -> bool {
    value
        .clone()
        .chain([value.start.saturating_sub(1)])
        .any(|at| ACCESS.iter().any(|need| sentence.reads(at, need)))
}

/// A gap without the verb that belongs to its cue: "where commas go".
fn trimmed(sentence: &Sentence, value: Range<usize>, kind: &str) -> Range<usize> {
    let last = value.end.saturating_sub(1);
    let is_verb = is_any(
        &[
            "go", "goes", "work", "works", "belong", "mean", "means", "come", "well", "lot", "yet", "apart",
        ],
        sentence.word(last),
    );
    let cut_verb = kind == "knowledge_gap" && is_verb && value.len() > 1;
    let is_tail = is_any(
        &["lot", "anymore", "lately", "well", "yet", "honestly"],
        sentence.word(last),
    ) && value.len() > 1;
    if cut_verb || is_tail {
        value.start..last
    } else {
        value
    }
}

/// A subject without what is no subject: school years, and words for lessons.
fn subject(sentence: &Sentence, value: Range<usize>) -> Option<Range<usize>> {
    let grades = crate::boundary::grades(sentence);
    // "Fourth grade math".
    let value = match grades.iter().find(|grade| grade.at.start == value.start) {
        Some(grade) if grade.at.end < value.end => grade.at.end..value.end,
        Some(_) => return None,
        None => value,
    };
    let end = value
        .clone()
        .rev()
        .find(|at| {
            !is_any(
                &[
                    "class", "classes", "lessons", "course", "courses", "full", "part", "time",
                ],
                sentence.word(*at),
            )
        })
        .map_or(value.start, |last| last + 1);
    let value = value.start..end;
    let is_other = value.clone().any(|at| {
        is_any(
            &[
                "grade",
                "graders",
                "grader",
                "school",
                "college",
                "kindergarten",
                "klasse",
                "students",
                "kids",
                "people",
                "adults",
                "children",
                "hours",
                "day",
                "days",
                "week",
                "monday",
                "mondays",
                "tuesdays",
                "wednesdays",
                "thursdays",
                "fridays",
                "essay",
                "letter",
                "project",
                "report",
                "homework",
                "notes",
                "break",
                "bus",
                "train",
                "skill",
                "skills",
                "novel",
                "book",
                "exercises",
                "presentation",
                "thing",
                "things",
                "dish",
                "recipe",
                "it",
                "office",
                "hospital",
                "firm",
                "company",
                "team",
                "shop",
                "store",
            ],
            sentence.word(at),
        )
    });
    (!value.is_empty() && value.len() <= 4 && !is_other).then_some(value)
}

/// What stands before a cue that follows it: "commas are hard for me".
fn before(sentence: &Sentence, finds: &mut Vec<Find>) {
    for clause in clauses(sentence) {
        let found = clause.clone().find_map(|at| {
            let kind = kind_behind(sentence, at, clause.end)?;
            let value = phrase::before(sentence, clause.start, at)?;
            Some((kind, value))
        });
        if let Some((kind, value)) = found {
            finds.push(Find {
                kind,
                value,
                quote: clause.clone(),
            });
        }
        own_weakness(sentence, &clause, finds);
        found_hard(sentence, &clause, finds);
    }
}

/// Of which kind what stands before a verb is: "… is hard for me", "… helps me", "… is what I teach".
fn kind_behind(sentence: &Sentence, verb: usize, end: usize) -> Option<&'static str> {
    let word = sentence.word(verb);
    let has_me = (verb + 1..end).any(|at| is_any(&["me", "mir"], sentence.word(at)));
    let next =
        (verb + 1..end).find(|next| !is_adverb(sentence.word(*next)) && sentence.word(*next) != "the")?;
    let is_copula = is_any(&["is", "are"], word);
    let is_next = |table: &[&str]| is_any(table, sentence.word(next));
    if is_copula && is_subject_cue(sentence, verb + 1) {
        return Some("subject_focus");
    }
    if !has_me {
        return None;
    }
    let is_hard = is_copula && is_next(HARD_FOR) && !is_mystery_free(sentence, next);
    if is_hard || is_any(CONFUSES, word) {
        return Some("knowledge_gap");
    }
    let helps = is_any(&["help", "helps"], word) && sentence.word(verb + 1) == "me";
    let suits = is_copula && is_next(SUITS);
    let works = is_any(&["work", "works"], word) && is_next(&["best", "better", "well"]);
    (helps || suits || works).then_some("preference")
}

/// "A" only counts in "a mystery to me", "a problem for me".
fn is_mystery_free(sentence: &Sentence, at: usize) -> bool {
    sentence.word(at) == "a"
        && !is_any(
            &[
                "mystery",
                "problem",
                "struggle",
                "challenge",
                "nightmare",
                "weakness",
            ],
            sentence.word(at + 1),
        )
}

fn is_subject_cue(sentence: &Sentence, at: usize) -> bool {
    [
        "what i work on",
        "what i teach",
        "what i mostly teach",
        "what i study",
        "my main subject",
        "my subject",
        "my focus",
        "my field",
        "my main focus",
        "my major",
        "the subject i teach",
        "my speciality",
        "my specialty",
        "my area",
        "my thing",
        "where i focus",
        "what i focus on",
        "what i mainly teach",
        "what i do most",
    ]
    .iter()
    .any(|cue| sentence.reads(at, cue))
}

/// "My spelling is weak."
fn own_weakness(sentence: &Sentence, clause: &Range<usize>, finds: &mut Vec<Find>) {
    let Some(my) = clause.clone().find(|at| sentence.word(*at) == "my") else {
        return;
    };
    let Some(verb) = (my + 1..clause.end).find(|at| is_any(&["is", "are"], sentence.word(*at))) else {
        return;
    };
    let is_weak = (verb + 1..(verb + 4).min(clause.end)).any(|at| {
        is_any(
            &[
                "weak", "bad", "terrible", "awful", "poor", "shaky", "rusty", "horrible",
            ],
            sentence.word(at),
        )
    });
    if is_weak && let Some(value) = phrase::before(sentence, my + 1, verb) {
        finds.push(Find {
            kind: "knowledge_gap",
            value,
            quote: clause.clone(),
        });
    }
}

/// "I find essay conclusions difficult."
fn found_hard(sentence: &Sentence, clause: &Range<usize>, finds: &mut Vec<Find>) {
    let find = clause.clone().find(|at| {
        sentence.word(*at) == "i"
            && (sentence.word(at + 1) == "find"
                || (is_adverb(sentence.word(at + 1)) && sentence.word(at + 2) == "find"))
    });
    let verb = find.and_then(|i| (i..clause.end).find(|at| sentence.word(*at) == "find"));
    let Some(verb) = verb else { return };
    let end = (verb + 1..clause.end).find(|at| {
        is_any(
            &[
                "hard",
                "difficult",
                "confusing",
                "tricky",
                "tough",
                "challenging",
                "impossible",
            ],
            sentence.word(*at),
        )
    });
    if let Some(end) = end
        && let Some(value) = phrase::before(sentence, verb + 1, end)
    {
        finds.push(Find {
            kind: "knowledge_gap",
            value,
            quote: clause.clone(),
        });
    }
}

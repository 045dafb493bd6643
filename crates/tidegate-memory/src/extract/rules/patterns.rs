//! Kinds that are told by a cue and a phrase beside it.

use std::{ops::Range, sync::LazyLock};

use super::{
    Find, Spelling,
    cue::{Cued, Cues, Plain},
    cues::{AFTER, BEFORE, FOUND_HARD, Form, GOT_WRONG, NO_VALUES, Way},
    phrase,
    words::{LANGUAGES, MOMENTARY, NOT_TAUGHT, PERSONS},
};
use crate::boundary::{Sentence, clauses, grades, is_adverb, is_any};

static CUES_BEFORE_VALUES: LazyLock<Cues<&'static Way>> = LazyLock::new(|| {
    Cues::read(
        AFTER
            .iter()
            .flat_map(|way| way.cues.iter().map(move |cue| (*cue, way))),
    )
});

static CUES_BEHIND_VALUES: LazyLock<Cues<&'static str>> = LazyLock::new(|| {
    Cues::read(
        BEFORE
            .iter()
            .flat_map(|(kind, cues)| cues.iter().map(move |cue| (*cue, *kind))),
    )
});

/// What is found by cues.
pub(super) fn find(spelling: Spelling<'_>, plain: &Plain<'_>, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    let mut cued = CUES_BEFORE_VALUES.find(plain);
    // Of cues of one kind that begin at one place the longest is meant.
    cued.sort_by_key(|cued| (cued.from, cued.tells.kind, std::cmp::Reverse(cued.behind)));
    cued.dedup_by_key(|cued| (cued.from, cued.tells.kind, cued.tells.form));
    for cued in cued {
        after(spelling, &cued, finds);
    }
    let clauses = clauses(sentence);
    for cued in CUES_BEHIND_VALUES.find(plain) {
        let clause = clauses.iter().find(|clause| clause.contains(&cued.from));
        let Some(clause) = clause else { continue };
        if let Some(value) = phrase::before(sentence, clause.start, cued.from)
            && !is_any(PERSONS, sentence.word(value.start))
        {
            let kind = cued.tells;
            finds.push(Find::new(kind, value, clause.start..cued.behind.max(clause.end)));
        }
    }
    for clause in clauses {
        own_weakness(sentence, &clause, finds);
        between(sentence, &clause, finds);
    }
}

fn after(spelling: Spelling<'_>, cued: &Cued<'_, &'static Way>, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    let Way {
        kind, form, inner, ..
    } = **cued.tells;
    let mut behind = cued.behind;
    // "I like to read": what is liked is to read.
    let is_infinitive = kind == "preference" && sentence.word(behind) == "to";
    if is_infinitive {
        behind += 1;
    }
    if is_any(NO_VALUES, sentence.word(behind)) {
        return;
    }
    let is_of_other = |at: usize| {
        is_any(
            &[
                "it", "him", "her", "them", "you", "this", "that", "these", "those",
            ],
            sentence.word(at),
        )
    };
    // "I prefer A to B".
    let is_choice = kind == "preference" && sentence.word(behind.saturating_sub(1)) == "prefer";
    let inner: &[&str] = match (is_infinitive, is_choice) {
        (true, _) => &["in", "at", "by", "with", "to"],
        (false, true) => &["in", "at", "by", "with"],
        (false, false) => inner,
    };
    let phrases = match form {
        Form::List => phrase::list(sentence, behind, inner),
        Form::Phrase | Form::Doing | Form::Act => phrase::from(sentence, behind, inner).into_iter().collect(),
    };
    for value in phrases {
        let fits = match form {
            Form::Phrase | Form::List => true,
            Form::Doing => {
                sentence.word(value.start).ends_with("ing") && !is_any(GRASPS, sentence.word(value.start))
            }
            Form::Act => value.len() > 1 && !(value.start..value.end + 2).any(is_of_other),
        } && !(is_infinitive && value.len() == 1 && is_of_other(value.end));
        let value = match kind {
            "subject_focus" => subject(spelling, value, cued),
            "language" => language(spelling, value),
            "knowledge_gap" => gap(sentence, value),
            _ => Some(without_tail(sentence, value)),
        };
        if let (Some(value), true) = (value, fits) {
            finds.push(Find::new(kind, value.clone(), cued.from..value.end));
        }
    }
}

/// Verbs that say that something is hard, and not what.
const GRASPS: &[&str] = &["understanding", "grasping", "following", "remembering", "solving"];

/// A value without words at its end that say nothing of it.
fn without_tail(sentence: &Sentence, value: Range<usize>) -> Range<usize> {
    let last = value.end.saturating_sub(1);
    let is_tail = is_any(
        &[
            "lot", "anymore", "lately", "well", "yet", "honestly", "instead", "either", "though", "tonight",
            "today", "someday", "fluently",
        ],
        sentence.word(last),
    );
    if is_tail && value.len() > 1 {
        value.start..last
    } else {
        value
    }
}

/// A gap without the verb that belongs to its cue: "where commas go".
fn gap(sentence: &Sentence, value: Range<usize>) -> Option<Range<usize>> {
    let value = without_tail(sentence, value);
    let last = value.end.saturating_sub(1);
    let is_verb = is_any(
        &[
            "go", "goes", "work", "works", "belong", "mean", "means", "come", "apart", "happens", "happen",
            "up",
        ],
        sentence.word(last),
    );
    let value = if is_verb && value.len() > 1 {
        value.start..last
    } else {
        value
    };
    let last = sentence.word(value.end.saturating_sub(1));
    let is_of_today = is_any(&["today", "tonight"], sentence.word(value.end));
    (!is_of_today && !is_any(MOMENTARY, last) && !is_any(PERSONS, last)).then_some(value)
}

/// A subject without what is no subject: school years, and words for lessons.
fn subject(
    spelling: Spelling<'_>,
    value: Range<usize>,
    cued: &Cued<'_, &'static Way>,
) -> Option<Range<usize>> {
    let sentence = spelling.sentence;
    // "A degree in history", and not "a student in Oregon".
    let is_place = sentence.word(cued.behind.saturating_sub(1)) == "in"
        && spelling.is_capital(value.start)
        && !is_any(LANGUAGES, sentence.word(value.start))
        && !sentence.word(cued.from).starts_with("special");
    let is_degree = is_any(
        &["degree", "phd", "doctorate", "masters", "master", "my"],
        sentence.word(cued.from),
    );
    if is_place && !is_degree {
        return None;
    }
    subject_of(sentence, value)
}

/// The same, of what stands anywhere.
pub(super) fn subject_of(sentence: &Sentence, value: Range<usize>) -> Option<Range<usize>> {
    let grades = grades(sentence);
    // "Fourth grade math".
    let value = match grades.iter().find(|grade| grade.at.start == value.start) {
        Some(grade) if grade.at.end < value.end => grade.at.end..value.end,
        Some(_) => return None,
        None => value,
    };
    let is_lesson = |at: usize| {
        is_any(
            &[
                "class", "classes", "lesson", "lessons", "course", "courses", "full", "part", "time",
                "teacher", "hard", "alone",
            ],
            sentence.word(at),
        )
    };
    let end = value
        .clone()
        .rev()
        .find(|at| !is_lesson(*at))
        .map_or(value.start, |last| last + 1);
    let value = value.start..end;
    let is_other = value
        .clone()
        .any(|at| is_any(NOT_TAUGHT, sentence.word(at)) || is_any(PERSONS, sentence.word(at)));
    (!value.is_empty() && value.len() <= SUBJECT_WORDS_MAX && !is_other).then_some(value)
}

/// The longest name of a subject, in words.
const SUBJECT_WORDS_MAX: usize = 4;

/// A language: a known one, or a capital word that could be one.
fn language(spelling: Spelling<'_>, value: Range<usize>) -> Option<Range<usize>> {
    let word = spelling.sentence.word(value.start);
    let is_known = is_any(LANGUAGES, word);
    let could_be =
        (spelling.is_capital(value.start) || value.len() == 1) && word.len() > 2 && !word.ends_with("ly");
    (is_known || could_be).then_some(value)
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
    if is_weak
        && let Some(value) = phrase::before(sentence, my + 1, verb)
        && !value.clone().any(|at| is_any(PERSONS, sentence.word(at)))
    {
        finds.push(Find::new("knowledge_gap", value, clause.clone()));
    }
}

/// "I find essay conclusions difficult", "I always get fractions wrong", "ich verstehe Brüche nicht".
fn between(sentence: &Sentence, clause: &Range<usize>, finds: &mut Vec<Find>) {
    const VERBS: [(&str, &[&str]); 4] = [
        ("find", FOUND_HARD),
        ("get", GOT_WRONG),
        ("verstehe", &["nicht"]),
        ("kapiere", &["nicht"]),
    ];
    for i in clause
        .clone()
        .filter(|at| is_any(&["i", "ich"], sentence.word(*at)))
    {
        let Some(verb) = (i + 1..clause.end).find(|at| !is_adverb(sentence.word(*at))) else {
            continue;
        };
        let Some((_, ends)) = VERBS.iter().find(|(word, _)| sentence.word(verb) == *word) else {
            continue;
        };
        let end = (verb + 1..clause.end).find(|at| is_any(ends, sentence.word(*at)));
        if let Some(end) = end
            && let Some(value) = phrase::before(sentence, verb + 1, end)
            && !is_any(NO_VALUES, sentence.word(value.start))
        {
            finds.push(Find::new("knowledge_gap", value, clause.clone()));
        }
    }
}

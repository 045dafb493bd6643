//! What leads up to a statement in its sentence, and what follows it. Where a kind counts only when it is said outright,
//! nothing may stand before "I" but words that are known to change nothing: there is no end of ways to frame a sentence.

use super::words::{
    CALLERS, COMING_TIMES, FRAMING, HARMLESS, INTRODUCTIONS, MARKS, NEGATIONS, OWN_ROLES, PUPILS, SPOKE,
    TURNS,
};
use std::ops::Range;

use super::{
    clause,
    cues::{self, is_adverb, is_any},
    reason::Reason,
    relation::Relation,
    sentence::{GAP, Sentence},
    subject::{Clause, Subject},
};

/// Checks what leads up to the statement, and what follows it.
pub(super) fn check(clause: &Clause<'_>, relation: Relation, is_strict: bool) -> Result<(), Reason> {
    followed(clause)?;
    let before = before(clause);
    if let Some(before) = before {
        governed(clause, before, is_strict)?;
    }
    if is_strict { led(clause, relation) } else { Ok(()) }
}

/// The clause before that of the statement.
fn before(clause: &Clause<'_>) -> Option<Range<usize>> {
    clause::clauses(clause.sentence)
        .into_iter()
        .take_while(|other| other.start < clause.at.start)
        .last()
}

/// Nothing behind the statement says that somebody else said it, or that it is not meant.
fn followed(clause: &Clause<'_>) -> Result<(), Reason> {
    let sentence = clause.sentence;
    let end = sentence.tokens.len();
    let rest = clause.target.end..end;
    let is_slash_s = rest
        .clone()
        .any(|at| sentence.word(at) == "/" && sentence.word(at + 1) == "s");
    let ends_with_not = end > clause.target.end && is_any(&["not", "nope"], sentence.word(end - 1));
    if is_slash_s || ends_with_not || sentence.find(rest, TURNS).is_some() {
        return Err(Reason::Irony);
    }
    let later = clause::clauses(sentence)
        .into_iter()
        .filter(|later| later.start >= clause.at.end);
    for later in later {
        let speaks = later.clone().any(|at| is_any(SPOKE, sentence.word(at)));
        let by_person = later.clone().any(|at| is_any(&["i", "ich"], sentence.word(at)));
        if speaks && !by_person {
            return Err(Reason::Reported);
        }
        // "… – Anonymous" is how a quotation is signed.
        let is_signed = sentence.word(later.start.saturating_sub(1)) == "-"
            && later.len() <= SIGNATURE_WORDS_MAX
            && later.end == end
            && !sentence.is_question
            && !later.clone().any(|at| {
                is_any(HARMLESS, sentence.word(at))
                    || is_any(&["help", "any", "need", "i"], sentence.word(at))
            });
        if is_signed {
            return Err(Reason::Reported);
        }
    }
    Ok(())
}

/// The longest name below a quotation, in words.
const SIGNATURE_WORDS_MAX: usize = 3;

/// The clause before leaves the statement a statement.
fn governed(clause: &Clause<'_>, before: Range<usize>, is_strict: bool) -> Result<(), Reason> {
    let sentence = clause.sentence;
    let mark = sentence.word(clause.at.start.saturating_sub(1));
    let speaks_of_person = clause::has_first_person(sentence, before.clone());
    if is_any(&["that", "dass"], sentence.word(clause.at.start)) {
        let last = before
            .clone()
            .rev()
            .map(|at| sentence.word(at))
            .next()
            .unwrap_or_default();
        let denies = before.clone().any(|at| {
            is_any(NEGATIONS, sentence.word(at))
                && !is_any(&["forget", "nicht"], sentence.word(at + 1))
                && sentence.word(at) != "nicht"
        });
        // "A note that …": whose note, and who got it, may not matter.
        let is_thing = is_any(&["note", "reminder"], last)
            && before.len() > 1
            && !matches!(sentence.word(before.end - 2), "to" | "please");
        let is_plain = !is_thing || before.clone().all(|at| is_harmless(sentence.word(at)));
        let is_introduced = is_any(INTRODUCTIONS, last) && !denies && is_plain;
        return if is_introduced {
            Ok(())
        } else {
            Err(Reason::Reported)
        };
    }
    if sentence.find(before.clone(), COMING_TIMES).is_some() && !speaks_of_person {
        return Err(Reason::Unreal);
    }
    if !is_strict {
        return Ok(());
    }
    let is_harmless = before.clone().all(|at| is_harmless(sentence.word(at)));
    let first = sentence.word(before.start);
    let is_label = matches!(mark, ":" | "=" | "]");
    let is_frame = is_any(FRAMING, first) || matches!(mark, ")");
    if is_any(
        &[
            "when", "once", "after", "until", "whenever", "before", "till", "sobald", "wenn",
        ],
        first,
    ) && mark == ","
    {
        return Err(Reason::Condition);
    }
    if is_label
        && (cues::other_person(sentence, before.clone())
            || before.clone().any(|at| is_any(PUPILS, sentence.word(at))))
    {
        return Err(Reason::Reported);
    }
    let is_own_role = first == "as" && before.clone().any(|at| is_any(OWN_ROLES, sentence.word(at)));
    let is_greeting = is_any(&["hi", "hello", "hey", "thanks", "thank", "dear", "hallo"], first);
    let is_dashed = mark == "-" && before.len() <= SIGNATURE_WORDS_MAX;
    if (is_label || is_frame || is_dashed) && !(is_harmless || speaks_of_person || is_own_role || is_greeting)
    {
        return Err(Reason::Reported);
    }
    Ok(())
}

fn is_harmless(word: &str) -> bool {
    word != GAP && (is_any(HARMLESS, word) || is_adverb(word))
}

/// Within the clause nothing stands before the person but what is known to change nothing.
fn led(clause: &Clause<'_>, relation: Relation) -> Result<(), Reason> {
    let sentence: &Sentence = clause.sentence;
    let to = match clause.subject {
        Subject::I(at) | Subject::My(at) => at,
        Subject::Behind(_) | Subject::Object(_) => clause.target.start,
    };
    let own_end = own_clauses_end(clause, to);
    let lead = own_end..to;
    let is_own_role =
        sentence.word(lead.start) == "as" && lead.clone().any(|at| is_any(OWN_ROLES, sentence.word(at)));
    let is_greeting = is_any(
        &["hi", "hello", "hey", "hallo", "dear", "thanks"],
        sentence.word(lead.start),
    ) && lead.len() <= 4;
    let is_called = matches!(relation, Relation::Name)
        && lead
            .clone()
            .all(|at| is_any(CALLERS, sentence.word(at)) || is_harmless(sentence.word(at)));
    let fits = is_own_role
        || is_greeting
        || is_called
        || is_own_reason(sentence, lead.clone())
        || is_time(sentence, lead.clone())
        || lead
            .clone()
            .all(|at| is_harmless(sentence.word(at)) || is_any(MARKS, sentence.word(at)));
    let says_twice = lead.clone().any(|at| is_any(&["i", "ich"], sentence.word(at)));
    if fits && !says_twice {
        Ok(())
    } else {
        Err(Reason::Reported)
    }
}

/// "Because of my eyesight I need …": a reason of the person's own.
fn is_own_reason(sentence: &Sentence, lead: Range<usize>) -> bool {
    ["because of my", "due to my", "given my"]
        .iter()
        .any(|reason| sentence.reads(lead.start, reason))
        && lead.len() <= REASON_WORDS_MAX
        && !cues::other_person(sentence, lead)
}

/// "For the past five years I …", "during the week I …": of a time that goes on.
fn is_time(sentence: &Sentence, lead: Range<usize>) -> bool {
    let rest = lead.start + 1..lead.end;
    let all = |words: &[&str]| {
        rest.clone().all(|at| {
            let word = sentence.word(at);
            is_any(words, word) || is_any(MARKS, word) || word.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    match sentence.word(lead.start) {
        "for" => {
            all(LASTING)
                && rest
                    .clone()
                    .any(|at| is_any(&["years", "months", "weeks", "decades"], sentence.word(at)))
        }
        "during" | "on" => {
            !rest.is_empty()
                && all(&[
                    "the", "week", "weekdays", "weekends", "day", "school", "year", "mornings", "evenings",
                ])
        }
        _ => false,
    }
}

/// How it is said that something lasts.
const LASTING: &[&str] = &[
    "the", "past", "last", "over", "about", "almost", "nearly", "many", "several", "few", "a", "two",
    "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty", "years",
    "months", "weeks", "decades", "now",
];

/// The longest such reason, in words.
const REASON_WORDS_MAX: usize = 7;

/// Where the clause of the person themselves begins: a statement may lean on clauses before it.
fn own_clauses_end(clause: &Clause<'_>, to: usize) -> usize {
    clause::clauses(clause.sentence)
        .into_iter()
        .find(|own| own.contains(&to))
        .map_or(clause.at.start, |own| own.start)
}

//! Whether a sentence is the person's own statement, of themselves, of now, and meant.
//!
//! It is the clause with the value that is looked at, and what governs it. What is said elsewhere in the sentence does not
//! matter: "I don't have much time, I teach 4th grade" says what it says.

use super::words::{
    FORMER, INSTEAD, INTERROGATIVES, MARKS, NEGATIONS, PAST_VERBS, PUPILS, REMEMBER, TO_COME, UNREAL,
};
use std::ops::Range;

use tidegate_core::memory::{Stance, Voice};

use super::{
    clause, cleft, cues,
    cues::{is_adverb, is_any},
    lead,
    reason::Reason,
    relation::{Polarity, Relation},
    school,
    sentence::Sentence,
    subject::{self, Clause, Subject},
};

/// How something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    /// In which way.
    pub(super) voice: Voice,
    /// Whether it is so.
    pub(super) stance: Stance,
}

/// Examines what a sentence says with the value at `target`.
pub(super) fn examine(
    sentence: &Sentence,
    target: Range<usize>,
    relation: Relation,
    is_strict: bool,
) -> Result<Said, Reason> {
    let at = clause::around(sentence, target.start).ok_or(Reason::NotFirstPerson)?;
    let request = remember(
        sentence,
        at.start.max(1).min(target.start).max(first_person(sentence, &at)),
    );
    if let Some(reason) = cues::governed(sentence, target.start) {
        return Err(reason);
    }
    let subject = Subject::of(sentence, &at, &target, relation, is_strict)?;
    let clause = Clause {
        sentence,
        at,
        target,
        subject,
    };
    if !request.is_some_and(|request| request.is_polite_question) {
        asserted(&clause)?;
    }
    lead::check(&clause, relation, is_strict)?;
    persons(&clause, relation, is_strict)?;
    let stance = polarity(&clause, relation)?;
    swallowed(&clause, relation)?;
    tense(&clause, relation, is_strict, stance)?;
    relation.holds(&clause)?;
    let voice = match (request, stance) {
        (Some(_), Stance::Affirmed) => Voice::Remembered,
        (Some(_) | None, _) => Voice::Stated,
    };
    Ok(Said { voice, stance })
}

/// Where the person is first named in the clause.
fn first_person(sentence: &Sentence, at: &Range<usize>) -> usize {
    at.clone()
        .find(|place| clause::has_first_person(sentence, *place..place + 1))
        .unwrap_or(at.start)
}

/// A request to remember what follows.
#[derive(Debug, Clone, Copy)]
struct Request {
    /// "Can you remember that …?" asks for nothing but that.
    is_polite_question: bool,
}

fn remember(sentence: &Sentence, to: usize) -> Option<Request> {
    let at = (0..to).find(|at| {
        !is_any(
            &[
                "please", "and", "also", "hi", "hey", "hello", "ok", "okay", "so", "now", ",", "just",
                "bitte", "but", "oh", "thanks",
            ],
            sentence.word(*at),
        )
    })?;
    let asks =
        is_any(&["can", "could", "will", "would"], sentence.word(at)) && sentence.word(at + 1) == "you";
    let mut verb = if asks { at + 2 } else { at };
    while matches!(sentence.word(verb), "please" | "also") {
        verb += 1;
    }
    let is_request = REMEMBER.iter().any(|phrase| sentence.reads(verb, phrase));
    // "Remember when …" and "remember to …" ask for something else.
    let is_other = is_any(
        &["when", "to", "how", "if", "what", "the"],
        sentence.word(verb + 1),
    );
    (is_request && !is_other).then_some(Request {
        is_polite_question: asks,
    })
}

/// No question, and no condition behind it.
fn asserted(clause: &Clause<'_>) -> Result<(), Reason> {
    let sentence = clause.sentence;
    let length = sentence.tokens.len();
    let inverted = match clause.subject {
        Subject::I(at) => at
            .checked_sub(1)
            .filter(|before| *before >= clause.at.start)
            .is_some_and(|before| {
                is_any(
                    &[
                        "do", "am", "did", "can", "could", "should", "would", "will", "have", "are", "bin",
                        "shall",
                    ],
                    sentence.word(before),
                )
            }),
        Subject::My(_) | Subject::Behind(_) | Subject::Object(_) => is_any(
            &["is", "are", "does", "do", "can", "could", "am", "was"],
            sentence.word(clause.at.start),
        ),
    };
    let asks = is_any(
        &["why", "what", "how", "which", "whether"],
        sentence.word(clause.at.start),
    ) && cleft::person(sentence, clause.at.start..clause.target.start).is_none();
    if inverted || asks {
        return Err(Reason::Question);
    }
    if sentence.is_question && !asks_later(clause) {
        return Err(Reason::Question);
    }
    let is_tagged = is_tag(sentence, clause.target.end);
    if is_tagged {
        return Err(Reason::Question);
    }
    if (clause.target.end..length).any(|at| cues::is_condition(sentence, at) && sentence.word(at) != "like") {
        return Err(Reason::Condition);
    }
    Ok(())
}

/// Whether what is asked comes behind the statement and is about something else.
fn asks_later(clause: &Clause<'_>) -> bool {
    let sentence = clause.sentence;
    // Something before the statement asks: then it is about the statement.
    let asks_first = is_any(INTERROGATIVES, sentence.word(0)) && sentence.word(0) != "please";
    if asks_first {
        return false;
    }
    clause::clauses(sentence)
        .into_iter()
        .filter(|later| later.start >= clause.target.end)
        .any(|later| {
            let first = (later.start..later.end)
                .find(|at| !is_any(&["and", "so", "but", "or", "then", "now"], sentence.word(*at)))
                .unwrap_or(later.start);
            is_any(INTERROGATIVES, sentence.word(first))
                && later.end - first >= ASKED_WORDS_MIN
                && !is_tag(sentence, first)
        })
}

/// The shortest question that is about something.
const ASKED_WORDS_MIN: usize = 2;

/// "…, right?", "…, don't I?"
fn is_tag(sentence: &Sentence, from: usize) -> bool {
    // A tag stands apart, or says nothing but "right".
    let stands_apart = is_any(MARKS, sentence.word(from))
        || from
            .checked_sub(1)
            .is_some_and(|before| is_any(MARKS, sentence.word(before)));
    let rest: Vec<&str> = (from..sentence.tokens.len())
        .map(|at| sentence.word(at))
        .filter(|word| !is_any(MARKS, word))
        .collect();
    let is_word = matches!(
        rest.as_slice(),
        ["right" | "correct" | "yes" | "no" | "huh" | "ok" | "or", ..]
    ) && rest.len() <= 3;
    let is_verb = stands_apart
        && rest.len() <= 5
        && rest
            .first()
            .is_some_and(|word| is_any(&["do", "am", "are", "is", "have", "did"], word))
        && rest.contains(&"i");
    (is_word && sentence.is_question) || is_verb
}

/// Nobody else between the person and the value.
fn persons(clause: &Clause<'_>, relation: Relation, is_strict: bool) -> Result<(), Reason> {
    let between = clause.between();
    let is_other = match clause.subject {
        Subject::I(_) | Subject::My(_) => {
            // "… for my mother".
            let for_other = matches!(relation, Relation::Other)
                && clause.tail().any(|at| {
                    clause.sentence.word(at) == "for"
                        && (at + 1..at + 4).any(|at| cues::is_person(clause.sentence, at))
                });
            for_other || cues::other_person(clause.sentence, between)
        }
        Subject::Behind(at) | Subject::Object(at) => {
            let owned = (at + 1..(at + 3).min(clause.at.end))
                .any(|at| cues::is_person(clause.sentence, at) || is_any(PUPILS, clause.sentence.word(at)));
            let is_possessive = is_any(&["my", "our", "mein", "meine"], clause.sentence.word(at));
            cues::other_person(clause.sentence, between) || (is_possessive && owned) || (is_strict && owned)
        }
    };
    if is_other {
        Err(Reason::OtherPerson)
    } else {
        Ok(())
    }
}

/// Whether it is said to be so, or no longer.
fn polarity(clause: &Clause<'_>, relation: Relation) -> Result<Stance, Reason> {
    let sentence = clause.sentence;
    let between = match clause.subject {
        Subject::I(_) | Subject::My(_) => clause.between(),
        Subject::Behind(_) | Subject::Object(_) => clause.tail(),
    };
    let denial = between.clone().find(|at| {
        is_any(NEGATIONS, sentence.word(*at)) && !is_any(&["only", "just", "doubt"], sentence.word(at + 1))
    });
    let is_over = sentence
        .find(
            between.clone(),
            &["no longer", "stopped", "quit", "nicht mehr", "not anymore"],
        )
        .is_some()
        || (denial.is_some()
            && sentence
                .find(
                    clause.at.clone(),
                    &["anymore", "any more", "any longer", "nicht mehr"],
                )
                .is_some());
    if is_over {
        return match relation.polarity() {
            Polarity::Lack => Err(Reason::Negation),
            Polarity::Plain | Polarity::Liking => Ok(Stance::Retracted),
        };
    }
    let before_person = match clause.subject {
        Subject::I(_) | Subject::My(_) => between.clone(),
        Subject::Behind(at) | Subject::Object(at) => between.start..at,
    };
    if sentence.find(before_person, INSTEAD).is_some()
        && !clause.has(between.clone(), &["for over", "more than"])
    {
        return Err(Reason::Negation);
    }
    match relation.polarity() {
        Polarity::Lack => {
            let lacks_lack =
                denial.is_some_and(|denial| (denial..clause.at.end).any(|at| is_lack(sentence.word(at))));
            if lacks_lack {
                Err(Reason::Negation)
            } else {
                Ok(Stance::Affirmed)
            }
        }
        Polarity::Plain | Polarity::Liking => {
            if denial.is_some() {
                Err(Reason::Negation)
            } else {
                Ok(Stance::Affirmed)
            }
        }
    }
}

/// Words for what is hard.
fn is_lack(word: &str) -> bool {
    ["struggl", "difficult", "troubl", "confus", "problem", "tricky"]
        .iter()
        .any(|stem| word.starts_with(stem))
        || is_any(
            &[
                "hard", "stuck", "bad", "weak", "lost", "unsure", "issue", "issues", "wrong",
            ],
            word,
        )
}

/// What a value says that holds the verb itself must be so, and of now: "used to work on Fridays".
fn swallowed(clause: &Clause<'_>, relation: Relation) -> Result<(), Reason> {
    let sentence = clause.sentence;
    let value = clause.target.clone();
    let any = |words: &[&str]| value.clone().any(|at| is_any(words, sentence.word(at)));
    if relation == Relation::Role && any(FORMER) {
        return Err(Reason::Past);
    }
    if relation == Relation::Role && any(TO_COME) {
        return Err(Reason::Unreal);
    }
    let first = sentence.word(value.start);
    if first.starts_with("kein") || (first == "no" && relation != Relation::Liking) {
        return Err(Reason::Negation);
    }
    let is_whole = match clause.subject {
        Subject::I(_) | Subject::My(_) => clause
            .between()
            .all(|at| is_adverb(sentence.word(at)) || is_any(&["am", "bin"], sentence.word(at))),
        Subject::Behind(_) | Subject::Object(_) => false,
    };
    if !is_whole || matches!(relation, Relation::Name | Relation::Grade) {
        return Ok(());
    }
    let verb = value.clone().find(|at| !is_adverb(sentence.word(*at)));
    let begins_past = matches!(clause.subject, Subject::I(_))
        && verb.is_some_and(|verb| {
            is_any(PAST_VERBS, sentence.word(verb)) || sentence.word(verb).ends_with("ed")
        });
    if any(NEGATIONS) {
        Err(Reason::Negation)
    } else if begins_past || any(&["was", "were", "had", "used", "did"]) {
        Err(Reason::Past)
    } else if sentence.find(value.clone(), UNREAL).is_some() {
        Err(Reason::Unreal)
    } else {
        Ok(())
    }
}

/// Of now: neither over nor to come.
fn tense(clause: &Clause<'_>, relation: Relation, is_strict: bool, stance: Stance) -> Result<(), Reason> {
    if stance == Stance::Retracted {
        return Ok(());
    }
    let sentence = clause.sentence;
    let lead = clause.at.start..clause.target.start;
    let (subject, to) = match clause.subject {
        Subject::I(at) | Subject::My(at) => (at, clause.target.start),
        Subject::Behind(at) if at == subject::fronted_end(sentence, clause.target.end) => (at, clause.at.end),
        // The verb stands behind the value.
        Subject::Behind(_) | Subject::Object(_) => (clause.target.end.saturating_sub(1), clause.at.end),
    };
    // Who just moved somewhere lives there.
    let is_arrival = relation == Relation::Place
        && clause.has(subject..to, &["recently moved", "just moved"])
        && !clause.has(subject..to, &["had"]);
    let is_past = cues::is_past(sentence, subject, to) && !is_arrival;
    if cues::is_past_time(sentence, clause.at.clone()) || is_past {
        return Err(Reason::Past);
    }
    let lead = match clause.subject {
        Subject::I(_) | Subject::My(_) => lead,
        Subject::Behind(_) | Subject::Object(_) => clause.tail(),
    };
    let is_excused = relation.may_be_wished()
        || (relation == Relation::Grade && school::is_for_own_group(clause, subject))
        || clause.has(
            lead.clone(),
            &["would rather", "would much rather", "would prefer", "rather have"],
        );
    if cues::is_unreal(sentence, lead, clause.at.clone()) && !is_excused {
        return Err(Reason::Unreal);
    }
    // "4th or 5th grade" says neither.
    let is_either = is_strict && sentence.find(clause.at.clone(), &["or", "oder"]).is_some();
    if is_either { Err(Reason::Unreal) } else { Ok(()) }
}

//! What a sentence must say for a value to be of a kind: "I read about lawyers" gives nobody a role.

use super::{
    cues::{is_adverb, is_any},
    place,
    reason::Reason,
    school,
    subject::{Clause, Subject},
    words::{DISLIKES, EASES, LACKS, NEGATIONS, PREPOSITIONS, PUPILS},
};
use crate::kinds::{Kind, ValueType};

/// What a kind says of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// The school year that they teach or attend.
    Grade,
    /// What they are called.
    Name,
    /// What they are.
    Role,
    /// What they like.
    Liking,
    /// What they find hard.
    Gap,
    /// What they work towards.
    Goal,
    /// Where they are.
    Place,
    /// Which language they speak or learn.
    Language,
    /// What they need in order to take part.
    Need,
    /// Anything else.
    Other,
}

/// What a denial does to a statement of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Polarity {
    /// It takes it away.
    Plain,
    /// It takes it away, and so does a dislike.
    Liking,
    /// It is how such a thing is said: "I don't understand …".
    Lack,
}

impl Relation {
    /// What a kind says.
    pub(super) fn of(kind: &Kind) -> Self {
        match (kind.value, kind.name.as_str()) {
            (ValueType::Grade, _) => Self::Grade,
            (_, "name") => Self::Name,
            (_, "role") => Self::Role,
            (_, "preference") => Self::Liking,
            (_, "knowledge_gap") => Self::Gap,
            (_, "goal") => Self::Goal,
            (_, "location") => Self::Place,
            (_, "language") => Self::Language,
            (_, "access_need") => Self::Need,
            (ValueType::Name | ValueType::Word | ValueType::Text, _) => Self::Other,
        }
    }

    /// What a denial does.
    pub(super) fn polarity(self) -> Polarity {
        match self {
            Self::Gap => Polarity::Lack,
            Self::Liking => Polarity::Liking,
            Self::Grade
            | Self::Name
            | Self::Role
            | Self::Goal
            | Self::Place
            | Self::Language
            | Self::Need
            | Self::Other => Polarity::Plain,
        }
    }

    /// Whether a wish says it as well.
    pub(super) fn may_be_wished(self) -> bool {
        match self {
            Self::Goal | Self::Gap => true,
            Self::Grade
            | Self::Name
            | Self::Role
            | Self::Liking
            | Self::Place
            | Self::Language
            | Self::Need
            | Self::Other => false,
        }
    }

    /// Whether what is said of the person's pupils is said of the person.
    pub(super) fn is_of_pupils(self) -> bool {
        match self {
            Self::Grade | Self::Other => true,
            Self::Name
            | Self::Role
            | Self::Liking
            | Self::Gap
            | Self::Goal
            | Self::Place
            | Self::Language
            | Self::Need => false,
        }
    }

    /// Whether the clause says something of this kind.
    pub(super) fn holds(self, clause: &Clause<'_>) -> Result<(), Reason> {
        let holds = match self {
            Self::Grade => school::holds(clause),
            Self::Name => name(clause),
            Self::Role => role(clause),
            Self::Place => place::holds(clause),
            Self::Language => language(clause),
            Self::Need => need(clause),
            Self::Liking => !clause.has(clause.at.clone(), DISLIKES) && !is_second_choice(clause),
            Self::Gap => {
                let is_lack =
                    clause.has(clause.at.clone(), LACKS) || clause.has(clause.at.clone(), NEGATIONS);
                is_lack || !clause.has(clause.at.clone(), EASES)
            }
            Self::Goal | Self::Other => true,
        };
        if holds { Ok(()) } else { Err(Reason::Unrelated) }
    }
}

/// "I prefer tables to long text" likes the tables.
fn is_second_choice(clause: &Clause<'_>) -> bool {
    let between = clause.between();
    let Some(verb) = clause
        .sentence
        .find(between.clone(), &["prefer", "better than", "like"])
    else {
        return false;
    };
    (verb + 2..between.end).any(|at| clause.sentence.word(at) == "to")
        && clause.sentence.word(verb) == "prefer"
}

fn name(clause: &Clause<'_>) -> bool {
    let between = clause.between();
    let is_short = clause.target.len() <= NAME_WORDS_MAX;
    let sentence = clause.sentence;
    let is_named = match clause.subject {
        Subject::I(at) => {
            clause.has(
                between.clone(),
                &[
                    "go by",
                    "am called",
                    "am known as",
                    "am named",
                    "heiße",
                    "heisse",
                    "bin die",
                    "bin der",
                    "answer to",
                ],
            ) || (is_any(&["me", "mich"], sentence.word(at)) && between.is_empty())
                || (between.len() == 1 && is_any(&["am", "bin"], sentence.word(between.start)))
        }
        Subject::My(_) => {
            clause.has(between.clone(), &["name", "nickname"])
                && clause.has(between.clone(), &["is", "'s", "ist"])
        }
        Subject::Behind(at) => is_any(&["name", "nickname"], sentence.word(at + 1)),
        Subject::Object(_) => false,
    };
    // "My name is on the list of Maria": nothing may stand between.
    let is_next = match clause.subject {
        Subject::My(_) => between.clone().next_back().is_some_and(|last| {
            is_any(&["is", "'s", "ist", "mr", "mrs", "ms", "dr"], sentence.word(last))
                || is_adverb(sentence.word(last))
        }),
        Subject::I(_) | Subject::Behind(_) | Subject::Object(_) => true,
    };
    is_short && is_named && is_next
}

/// The longest name, in words.
const NAME_WORDS_MAX: usize = 5;

fn role(clause: &Clause<'_>) -> bool {
    let sentence = clause.sentence;
    let word = |at: usize| sentence.word(at);
    let between = match clause.subject {
        Subject::I(at) => clause.predicate(at),
        Subject::My(_) | Subject::Behind(_) | Subject::Object(_) => clause.between(),
    };
    let is_prepositional = between.clone().any(|at| is_any(PREPOSITIONS, word(at)));
    match clause.subject {
        Subject::I(_) => {
            let verb = between.clone().find(|at| !is_adverb(word(*at)));
            let acts = |from: usize| {
                (from..clause.target.start).any(|at| {
                    word(at).ends_with("ing")
                        && !is_any(&["working", "teaching", "serving", "being"], word(at))
                })
            };
            verb.is_some_and(|verb| match word(verb) {
                "am" | "bin" => {
                    let is_compared = clause.has(between.clone(), &["as"])
                        && !clause.has(between.clone(), &["employed as", "working as", "serving as"]);
                    !acts(verb) && !is_prepositional && !is_compared
                }
                // "I work at a clinic as a nurse": what stands behind "as" is told.
                "work" | "serve" | "volunteer" | "working" | "serving" | "arbeite" => between
                    .clone()
                    .rev()
                    .find(|at| is_any(PREPOSITIONS, word(*at)) || is_any(&["as", "als"], word(*at)))
                    .is_some_and(|last| is_any(&["as", "als"], word(last))),
                "have" => clause.has(between.clone(), &["been"]) && !is_prepositional,
                "run" | "lead" | "head" | "manage" => !is_prepositional,
                _ => false,
            })
        }
        Subject::My(_) => {
            clause.has(
                between.clone(),
                &[
                    "job",
                    "role",
                    "position",
                    "title",
                    "profession",
                    "occupation",
                    "work",
                    "beruf",
                ],
            ) && clause.has(between, &["is", "'s", "ist"])
        }
        Subject::Behind(at) => {
            is_any(&["job", "role", "position", "title", "profession"], word(at + 1))
                || (at..clause.at.end).any(|at| word(at) == "am")
        }
        Subject::Object(_) => false,
    }
}

/// "I speak …", "my native language is …".
fn language(clause: &Clause<'_>) -> bool {
    const SAID: &[&str] = &[
        "speak",
        "speaking",
        "learn",
        "learning",
        "study",
        "studying",
        "fluent",
        "proficient",
        "conversational",
        "bilingual",
        "native",
        "language",
        "languages",
        "tongue",
        "understand",
        "read",
        "write",
        "know",
        "practise",
        "practice",
        "practising",
        "practicing",
        "teach",
        "spreche",
        "lerne",
        "muttersprache",
        "verstehe",
        "speaker",
    ];
    let sentence = clause.sentence;
    // "I live with a native speaker" and "I know a native speaker" speak of somebody else.
    let is_speaker = (clause.target.end..clause.target.end + 2).any(|at| sentence.word(at) == "speaker");
    let is_own = clause
        .between()
        .find(|at| !is_adverb(sentence.word(*at)))
        .is_some_and(|verb| sentence.word(verb) == "am")
        && !clause.between().any(|at| is_any(PREPOSITIONS, sentence.word(at)));
    clause.has(clause.at.clone(), SAID) && (!is_speaker || is_own)
}

/// "I need …", "I have …", "I am …": of the person, and not of somebody whom they are with.
fn need(clause: &Clause<'_>) -> bool {
    let sentence = clause.sentence;
    let is_whose = |at: usize| super::cues::is_person(sentence, at) || is_any(PUPILS, sentence.word(at));
    let for_other = clause
        .tail()
        .any(|at| is_any(&["for", "with"], sentence.word(at)) && (at + 1..at + 4).any(is_whose));
    let is_of_other = is_whose(clause.target.end) || for_other;
    // "I am a teacher of deaf children", "I have questions about dyslexia".
    let leads_on = |at: usize| {
        is_any(PREPOSITIONS, sentence.word(at))
            && !is_any(&["bit", "lot"], sentence.word(at.saturating_sub(1)))
    };
    let Subject::I(i) = clause.subject else {
        return !is_of_other;
    };
    let predicate = clause.predicate(i);
    let verb = predicate.clone().find(|at| !is_adverb(sentence.word(*at)));
    let is_direct = verb.is_none_or(|verb| {
        !is_any(&["am", "have"], sentence.word(verb)) || !(verb + 1..predicate.end).any(leads_on)
    });
    !is_of_other && is_direct
}

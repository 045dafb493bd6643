//! What a sentence must say for a value to be of a kind: "I read about lawyers" gives nobody a role.

use super::{
    assertion::{Clause, Subject},
    cues::{is_adverb, is_any},
    reason::Reason,
    school,
    words::{DISLIKES, EASES, LACKS, NEGATIONS, PREPOSITIONS},
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
            (ValueType::Name | ValueType::Word | ValueType::Text, _) => Self::Other,
        }
    }

    /// What a denial does.
    pub(super) fn polarity(self) -> Polarity {
        match self {
            Self::Gap => Polarity::Lack,
            Self::Liking => Polarity::Liking,
            Self::Grade | Self::Name | Self::Role | Self::Goal | Self::Place | Self::Other => Polarity::Plain,
        }
    }

    /// Whether a wish says it as well.
    pub(super) fn may_be_wished(self) -> bool {
        match self {
            Self::Goal | Self::Gap => true,
            Self::Grade | Self::Name | Self::Role | Self::Liking | Self::Place | Self::Other => false,
        }
    }

    /// Whether what is said of the person's pupils is said of the person.
    pub(super) fn is_of_pupils(self) -> bool {
        match self {
            Self::Grade | Self::Other => true,
            Self::Name | Self::Role | Self::Liking | Self::Gap | Self::Goal | Self::Place => false,
        }
    }

    /// Whether the clause says something of this kind.
    pub(super) fn holds(self, clause: &Clause<'_>) -> Result<(), Reason> {
        let holds = match self {
            Self::Grade => school::holds(clause),
            Self::Name => name(clause),
            Self::Role => role(clause),
            Self::Place => place(clause),
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
    let between = clause.between();
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
                "am" | "bin" => !acts(verb) && !is_prepositional,
                "work" | "serve" | "working" | "serving" | "arbeite" => {
                    clause.has(between.clone(), &["as", "als"]) && !is_prepositional
                }
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

fn place(clause: &Clause<'_>) -> bool {
    let between = clause.between();
    // A street and its number are an address.
    if clause.target.clone().any(|at| {
        clause
            .sentence
            .word(at)
            .starts_with(|letter: char| letter.is_ascii_digit())
    }) {
        return false;
    }
    let cues = [
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
    match clause.subject {
        Subject::I(_) | Subject::My(_) => clause.has(between, &cues),
        Subject::Behind(at) => (at..clause.at.end).any(|at| {
            is_any(
                &["live", "home", "hometown", "city", "town", "work"],
                clause.sentence.word(at),
            )
        }),
        Subject::Object(_) => false,
    }
}

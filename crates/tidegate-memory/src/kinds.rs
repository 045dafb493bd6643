//! Kinds of facts: an operator's table, `memory-kinds.toml`.
//!
//! The table says what may be remembered at all, in which form a value is compared, from when on it is believed and for
//! how long. Everything else in this crate reads it, so that a change of the table re-derives every state.

mod grade;
mod shape;
mod value;

use serde::Deserialize;
use toml::Spanned;

pub use self::{
    shape::{is_instruction_shaped, is_markup},
    value::{ValueFault, folded, normalise},
};

/// The table that ships.
pub const SHIPPED: &str = include_str!("../../../memory-kinds.toml");

/// The longest value, in characters.
pub const VALUE_CHARS_MAX: usize = 200;

/// The longest value of the type `word`, in characters: a term or a short phrase.
pub const WORD_CHARS_MAX: usize = 80;

/// The longest name of a person or place, in characters.
pub const NAME_CHARS_MAX: usize = 80;

/// How many kinds a table may have: each of them is a line in the extraction prompt.
pub const KINDS_MAX: usize = 64;

/// The longest name of a kind, in characters.
const KIND_NAME_CHARS_MAX: usize = 40;

/// The longest sentence or phrase of a kind, in characters.
const PHRASE_CHARS_MAX: usize = 160;

/// The most days of evidence that may be asked for.
const DAYS_TO_STABLE_MAX: u32 = 30;

/// The longest time in the table, in days: ten years.
const PERIOD_DAYS_MAX: u32 = 3_650;

/// On how many days something must have been said where a kind does not say otherwise.
const DAYS_TO_STABLE: u32 = 3;

/// Where a phrase takes the value.
pub(crate) const PLACEHOLDER: &str = "{value}";

/// In which form values of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// A school year: `1` to `13`, `k`, `pre-k` or `college`.
    Grade,
    /// A term or a short phrase of at most [`WORD_CHARS_MAX`] characters.
    Word,
    /// The name of a person or a place.
    Name,
    /// A phrase of at most [`VALUE_CHARS_MAX`] characters.
    Text,
}

/// How careful to be with a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// Nothing that a person would mind.
    #[default]
    Ordinary,
    /// About the person, and told to the agent as such.
    Personal,
    /// Never told before it is believed.
    Sensitive,
}

/// One kind of fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// How it is called: small letters, digits and underscores.
    pub name: String,
    /// One sentence, for people and for the model that looks for facts.
    pub about: String,
    /// In which form its values are.
    pub value: ValueType,
    /// Whether a person has one value of it at a time.
    pub is_single: bool,
    /// Whether only what the person says outright of themselves counts.
    pub explicit_only: bool,
    /// On how many days it must have been said before it is believed.
    pub days_to_stable: u32,
    /// After how many days without a word it is no longer believed; 0 for never.
    pub reconfirm_after_days: u32,
    /// After how many days an observation of it is deleted; 0 for never.
    pub retention_days: u32,
    /// How careful to be with it.
    pub sensitivity: Sensitivity,
    /// A short heading for people.
    pub label: String,
    /// How a believed value is told, with `{value}` where it stands.
    pub certain: String,
    /// How a value is told that is not believed yet, with `{value}` where it stands.
    pub uncertain: String,
}

/// The table of kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds {
    kinds: Vec<Kind>,
}

/// The table cannot be used. The one before it stays in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not in the form of the table.
    #[error("the table of kinds cannot be read: {0}")]
    Syntax(String),
    /// An entry cannot be used.
    #[error("line {line}, kind {name:?}: {fault}")]
    Entry {
        /// The line on which the kind's name stands, counted from 1.
        line: usize,
        /// The kind.
        name: String,
        /// What is wrong with it.
        fault: EntryFault,
    },
    /// There are too many.
    #[error("the table has {0} kinds, and at most {KINDS_MAX} can be used; take some out")]
    TooMany(usize),
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    /// Not a name for a kind.
    #[error(
        "a name has 1 to {KIND_NAME_CHARS_MAX} small letters, digits and underscores, and begins with a letter"
    )]
    Name,
    /// The name stands twice.
    #[error("the same name stands further up; give each kind once")]
    Twice,
    /// A phrase is empty, too long, or on several lines.
    #[error("`{0}` must be one line of 1 to {PHRASE_CHARS_MAX} characters without markup")]
    Phrase(&'static str),
    /// A phrase has no place for the value, or several.
    #[error("`{0}` must say {{value}} once, where the value stands")]
    Placeholder(&'static str),
    /// A number is out of range.
    #[error("`{field}` is {given}; give {least} to {most}")]
    Range {
        /// Which.
        field: &'static str,
        /// What it says.
        given: u32,
        /// The least that can be used.
        least: u32,
        /// The most that can be used.
        most: u32,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    #[serde(default)]
    kind: Vec<RawKind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKind {
    name: Spanned<String>,
    about: String,
    value: ValueType,
    #[serde(default)]
    single: bool,
    #[serde(default)]
    explicit_only: bool,
    #[serde(default = "days_to_stable")]
    days_to_stable: u32,
    #[serde(default)]
    reconfirm_after_days: u32,
    #[serde(default)]
    retention_days: u32,
    #[serde(default)]
    sensitivity: Sensitivity,
    label: String,
    certain: String,
    uncertain: String,
}

fn days_to_stable() -> u32 {
    DAYS_TO_STABLE
}

impl Kinds {
    /// Reads a table. Errors name the line and the kind.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let raw: RawTable =
            toml::from_str(text).map_err(|error| Error::Syntax(one_line(&error.to_string())))?;
        if raw.kind.len() > KINDS_MAX {
            return Err(Error::TooMany(raw.kind.len()));
        }
        let mut kinds: Vec<Kind> = Vec::with_capacity(raw.kind.len());
        for entry in raw.kind {
            let (start, name) = (entry.name.span().start, entry.name.get_ref().clone());
            let is_taken = kinds.iter().any(|kind| kind.name == name);
            let checked = if is_taken {
                Err(EntryFault::Twice)
            } else {
                entry.checked()
            };
            kinds.push(checked.map_err(|fault| Error::Entry {
                line: line_of(text, start),
                name,
                fault,
            })?);
        }
        Ok(Self { kinds })
    }

    /// The table that ships.
    pub fn shipped() -> Result<Self, Error> {
        Self::parse(SHIPPED)
    }

    /// The kind of that name.
    pub fn get(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Where the kind of that name stands in the table, counted from 0.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.kinds.iter().position(|kind| kind.name == name)
    }

    /// Every kind, in the order of the table.
    pub fn iter(&self) -> std::slice::Iter<'_, Kind> {
        self.kinds.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether nothing may be remembered.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The same table with each kind changed: for settings that stand above it. Names stay as they are.
    #[must_use]
    pub fn adjusted(mut self, mut adjust: impl FnMut(&mut Kind)) -> Self {
        for kind in &mut self.kinds {
            let name = kind.name.clone();
            adjust(kind);
            kind.name = name;
            kind.days_to_stable = kind.days_to_stable.clamp(1, DAYS_TO_STABLE_MAX);
        }
        self
    }
}

impl<'k> IntoIterator for &'k Kinds {
    type Item = &'k Kind;
    type IntoIter = std::slice::Iter<'k, Kind>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl RawKind {
    fn checked(self) -> Result<Kind, EntryFault> {
        let name = self.name.into_inner();
        let is_name = name.len() <= KIND_NAME_CHARS_MAX
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_name {
            return Err(EntryFault::Name);
        }
        for (field, phrase) in [("about", &self.about), ("label", &self.label)] {
            phrase_fits(field, phrase)?;
        }
        for (field, phrase) in [("certain", &self.certain), ("uncertain", &self.uncertain)] {
            if phrase.matches(PLACEHOLDER).count() != 1 {
                return Err(EntryFault::Placeholder(field));
            }
            phrase_fits(field, &phrase.replace(PLACEHOLDER, ""))?;
        }
        for (field, given, least, most) in [
            ("days_to_stable", self.days_to_stable, 1, DAYS_TO_STABLE_MAX),
            (
                "reconfirm_after_days",
                self.reconfirm_after_days,
                0,
                PERIOD_DAYS_MAX,
            ),
            ("retention_days", self.retention_days, 0, PERIOD_DAYS_MAX),
        ] {
            if !(least..=most).contains(&given) {
                return Err(EntryFault::Range {
                    field,
                    given,
                    least,
                    most,
                });
            }
        }
        Ok(Kind {
            name,
            about: self.about,
            value: self.value,
            is_single: self.single,
            explicit_only: self.explicit_only,
            days_to_stable: self.days_to_stable,
            reconfirm_after_days: self.reconfirm_after_days,
            retention_days: self.retention_days,
            sensitivity: self.sensitivity,
            label: self.label,
            certain: self.certain,
            uncertain: self.uncertain,
        })
    }
}

/// Whether a phrase can stand in a prompt: it is the operator's, and on one line.
fn phrase_fits(field: &'static str, phrase: &str) -> Result<(), EntryFault> {
    let fits = !phrase.trim().is_empty() && phrase.chars().count() <= PHRASE_CHARS_MAX && !is_markup(phrase);
    if fits {
        Ok(())
    } else {
        Err(EntryFault::Phrase(field))
    }
}

/// The line of that byte, counted from 1.
fn line_of(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

/// An error of several lines, on one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;

//! Values in the form in which they are compared.

use tidegate_gate::guards::untrusted;
use unicode_normalization::UnicodeNormalization as _;

use super::{
    Kind, NAME_CHARS_MAX, VALUE_CHARS_MAX, ValueType, WORD_CHARS_MAX, grade,
    shape::{is_instruction_shaped, is_markup},
};

/// What may stand around a value and is no part of it.
const EDGES: &[char] = &[
    '.', ',', ';', ':', '!', '?', '"', '\'', '“', '”', '‘', '’', '„', '«', '»', '-', '–', '—', '(', ')', '/',
    '=',
];

/// How often folding is repeated at most: each step can only bring a letter closer to its last form.
const FOLDS_MAX: usize = 4;

/// Why something is no value of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// Nothing is left of it.
    #[error("the value is empty")]
    Empty,
    /// Too long.
    #[error("the value has more than {0} characters")]
    TooLong(usize),
    /// It holds a line break, a control character, a link, or markup.
    #[error("the value holds a line break, a control character, a link or markup")]
    Markup,
    /// It reads like an order to the agent.
    #[error("the value reads like an instruction")]
    Instruction,
    /// Not a school year.
    #[error("the value is no school year: give 1 to 13, k, pre-k or college")]
    NotAGrade,
    /// Not the name of a person or place.
    #[error("the value is no name")]
    NotAName,
}

/// The value in the form in which it is compared: `4` for "4th grade", `long division` for " Long  Division.". The same
/// again when it is put through a second time.
pub fn normalise(kind: &Kind, raw: &str) -> Result<String, ValueFault> {
    // No legitimate value is longer before it is folded than twice what it may be after.
    if raw.chars().nth(2 * VALUE_CHARS_MAX).is_some() {
        return Err(ValueFault::TooLong(VALUE_CHARS_MAX));
    }
    if is_markup(raw.trim_matches([' ', '\t', '\n', '\r'])) {
        return Err(ValueFault::Markup);
    }
    let text = trimmed(&folded(raw));
    if text.is_empty() {
        return Err(ValueFault::Empty);
    }
    let chars_max = match kind.value {
        ValueType::Grade | ValueType::Word => WORD_CHARS_MAX,
        ValueType::Name => NAME_CHARS_MAX,
        ValueType::Text => VALUE_CHARS_MAX,
    };
    if text.chars().count() > chars_max {
        return Err(ValueFault::TooLong(chars_max));
    }
    if is_markup(&text) {
        return Err(ValueFault::Markup);
    }
    // Of ASCII text, folding leaves the words as they are.
    if is_instruction_shaped(raw) || (!raw.is_ascii() && is_instruction_shaped(&text)) {
        return Err(ValueFault::Instruction);
    }
    match kind.value {
        ValueType::Grade => grade::parse(&text).ok_or(ValueFault::NotAGrade),
        ValueType::Name if !is_name(&text) => Err(ValueFault::NotAName),
        ValueType::Name | ValueType::Word | ValueType::Text => Ok(text),
    }
}

/// Text as it is compared: compatibility forms mapped (NFKC), what shows nothing left out, small letters, single spaces.
pub fn folded(text: &str) -> String {
    let mut text = text.to_owned();
    if text.is_ascii() {
        text.make_ascii_lowercase();
        return text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    }
    for _ in 0..FOLDS_MAX {
        let next: String = untrusted::folded(&text).to_lowercase().nfkc().collect();
        let next = next.split_whitespace().collect::<Vec<_>>().join(" ");
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn trimmed(text: &str) -> String {
    text.trim_matches(|letter: char| letter.is_whitespace() || EDGES.contains(&letter))
        .to_owned()
}

fn is_name(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
        && text
            .chars()
            .all(|letter| letter.is_alphanumeric() || is_mark(letter) || " '’-.,()".contains(letter))
}

fn is_mark(letter: char) -> bool {
    unicode_normalization::char::is_combining_mark(letter)
}

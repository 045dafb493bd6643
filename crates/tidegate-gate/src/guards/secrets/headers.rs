//! Credentials by what stands before them: `Authorization: Bearer …`, `Basic …`, `api_key=…`. Only the value is
//! masked, and only one that a machine has made: examples, variables and prose stay as they are.

use std::ops::Range;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use regex::Regex;

use super::join;

/// The most that stands between the first letter of a name and its value, in bytes; the expression holds it.
pub(super) const BEFORE_BYTES_MAX: usize = 48;

/// Values of fewer characters are not told from words.
const VALUE_CHARS_MIN: usize = 16;

/// How long a run of letters and digits must be, with both in it, for its value to look made.
const RUN_CHARS_MIN: usize = 12;

/// What stands before a value: the scheme of a header (RFC 7235 §2.1), or a name and a sign.
const BEFORE: &str = r#"(?i:\b(?:(?P<basic>basic)|bearer)[ \t]{1,4}|(?:\b|_)(?:x[_-])?(?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|secret[_-]?access[_-]?key)["']?[ \t]{0,4}[:=][ \t]{0,4}["']?)\z"#;

/// The expression. It is asked only about the few bytes before a long run of letters: text is mostly short words.
pub(super) struct Headers {
    before: Regex,
}

/// How a value is introduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A name and a password.
    Basic,
    /// Anything else.
    Token,
}

impl Headers {
    pub(super) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            before: Regex::new(BEFORE)?,
        })
    }

    /// Adds where values stand that begin at `from` or behind it. What stands before them may begin earlier.
    pub(super) fn find(&self, text: &str, from: usize, found: &mut Vec<Range<usize>>) {
        let bytes = text.as_bytes();
        let mut at = from;
        while at < bytes.len() {
            let end = at + length(bytes, at, is_of_value);
            let is_whole = at == 0 || bytes.get(at - 1).is_none_or(|before| !is_of_value(*before));
            if end - at >= VALUE_CHARS_MIN
                && is_whole
                && let Some(kind) = self.kind(text, at)
                && text.get(at..end).is_some_and(|value| looks_made(kind, value))
            {
                join(found, at..end + length(bytes, end, |byte| byte == b'='));
            }
            at = end.max(at + 1);
        }
    }

    /// Where a value begins that may go on behind the end of the text.
    pub(super) fn open_from(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
        let letters = bytes
            .iter()
            .rev()
            .skip(padding)
            .take_while(|byte| is_of_value(**byte))
            .count();
        let start = bytes.len() - padding - letters;
        if letters > 0 && self.kind(text, start).is_some() {
            start
        } else {
            bytes.len()
        }
    }

    /// What stands right before a place, if it introduces a value.
    fn kind(&self, text: &str, at: usize) -> Option<Kind> {
        let before = text.as_bytes().get(..at)?;
        // Nearly every word ends here: it stands behind another one.
        let last = before.iter().rev().find(|byte| !matches!(byte, b' ' | b'\t'))?;
        if !matches!(last, b'r' | b'R' | b'c' | b'C' | b':' | b'=' | b'"' | b'\'') {
            return None;
        }
        let mut start = at.saturating_sub(BEFORE_BYTES_MAX);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        let hit = self.before.captures(text.get(start..at)?)?;
        Some(if hit.name("basic").is_some() {
            Kind::Basic
        } else {
            Kind::Token
        })
    }
}

/// What values are made of, but for the signs that fill up base64 at their ends.
fn is_of_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'/' | b'-')
}

/// How many bytes from a place on pass the test.
fn length(bytes: &[u8], at: usize, passes: impl Fn(u8) -> bool) -> usize {
    bytes.get(at..).map_or(0, |rest| {
        rest.iter().position(|byte| !passes(*byte)).unwrap_or(rest.len())
    })
}

fn looks_made(kind: Kind, value: &str) -> bool {
    if kind == Kind::Basic {
        return is_pair(value);
    }
    // Dots and dashes join the parts of tokens, and words.
    value
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .any(|run| {
            run.len() >= RUN_CHARS_MIN
                && run.bytes().any(|byte| byte.is_ascii_digit())
                && run.bytes().any(|byte| byte.is_ascii_alphabetic())
        })
        || is_number_of_an_issuer(value)
}

/// A name and a password in base64 (RFC 7617 §2).
fn is_pair(value: &str) -> bool {
    let letters = value.trim_end_matches(['.', '-']);
    STANDARD_NO_PAD
        .decode(letters)
        .is_ok_and(|bytes| bytes.contains(&b':') && bytes.iter().all(|byte| !byte.is_ascii_control()))
}

/// A universally unique identifier (RFC 9562 §4), which some issuers give out as a key.
fn is_number_of_an_issuer(value: &str) -> bool {
    let mut parts = value.split('-');
    let lengths_fit = [8, 4, 4, 4, 12].into_iter().all(|length| {
        parts
            .next()
            .is_some_and(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    lengths_fit && parts.next().is_none()
}

//! Redaction: configured secrets, and shapes that are plainly secrets, never leave in text.
//!
//! All configured values and the forms in which they travel (escaped, percent-encoded, hexadecimal, base64)
//! are searched for at once; overlapping finds are joined before anything is masked, so that no tail of a
//! longer secret stays behind a shorter one. Time is linear in the text.

mod needles;

use std::{borrow::Cow, fmt, ops::Range};

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use tidegate_core::secret::Secret;

/// What stands for a secret.
pub const MASK: &str = "[redacted]";

/// Shapes that no ordinary text has. The random part is as long as the issuers make it, or shorter.
const SHAPES: [&str; 9] = [
    // Our own keys.
    r"\btg_[0-9A-Za-z]{6,32}_[0-9A-Za-z_-]{20,}",
    // Providers' keys: `sk-…`, `rk-…`, `sk_live_…`.
    r"\b[sr]k[-_][0-9A-Za-z_-]{16,}",
    r"\bgh[pousr]_[0-9A-Za-z]{30,}",
    r"\bgithub_pat_[0-9A-Za-z_]{22,}",
    r"\bxox[a-z]-[0-9A-Za-z-]{10,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{35}",
    // JSON Web Tokens (RFC 7519): two encoded JSON objects and a signature.
    r"\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{4,}\.[0-9A-Za-z_-]{8,}",
    // Private keys in PEM (RFC 7468), to the end of the block or of the text.
    r"(?s)-----BEGIN [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
];

/// The redactor could not be built; without it nothing may be shown.
#[derive(Debug, thiserror::Error)]
#[error("the redactor cannot be built: {0}; there are too many or too long secrets in the configuration")]
pub struct RedactorError(String);

/// Masks secrets in text. Built once from the configuration.
pub struct Redactor {
    /// Values long enough to be told from words, in every form, whatever their case.
    long: AhoCorasick,
    /// Short values, letter by letter as they are.
    short: AhoCorasick,
    shapes: Regex,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Redactor({} needles)",
            self.long.patterns_len() + self.short.patterns_len()
        )
    }
}

impl Redactor {
    /// A redactor for these values. Blank values, values of fewer than 4 characters and placeholders such as
    /// `changeme` are left out: masking them would only mangle text.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Result<Self, RedactorError> {
        let mut long = Vec::new();
        let mut short = Vec::new();
        for secret in secrets {
            needles::add(secret.expose(), &mut long, &mut short);
        }
        let build = |needles: &[Vec<u8>], ignores_case: bool| {
            AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .ascii_case_insensitive(ignores_case)
                .build(needles)
                .map_err(|problem| RedactorError(problem.to_string()))
        };
        Ok(Self {
            long: build(&long, true)?,
            short: build(&short, false)?,
            shapes: Regex::new(&SHAPES.join("|")).map_err(|problem| RedactorError(problem.to_string()))?,
        })
    }

    /// The text with every secret masked. Borrowed when there was none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for needles in [&self.long, &self.short] {
            for hit in needles.find_overlapping_iter(text) {
                join(&mut found, hit.range());
            }
        }
        for hit in self.shapes.find_iter(text) {
            if is_random(hit.as_str()) {
                join(&mut found, hit.range());
            }
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_unstable_by_key(|range| range.start);
        Cow::Owned(mask(text, &found))
    }
}

/// Adds a find, joined with the last one where they touch: a text of one letter must not cost one entry for
/// each of its positions.
fn join(found: &mut Vec<Range<usize>>, range: Range<usize>) {
    match found.last_mut() {
        Some(last) if range.start <= last.end && last.start <= range.end => {
            last.start = last.start.min(range.start);
            last.end = last.end.max(range.end);
        }
        Some(_) | None => found.push(range),
    }
}

/// Writes the text with one mask for each run of finds, which are sorted by their starts.
fn mask(text: &str, found: &[Range<usize>]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = 0;
    let mut ranges = found.iter().peekable();
    while let Some(first) = ranges.next() {
        let mut end = first.end;
        while let Some(next) = ranges.next_if(|next| next.start <= end) {
            end = end.max(next.end);
        }
        // Needles are whole characters, so every bound is one of the text's.
        masked.push_str(text.get(rest..first.start).unwrap_or(""));
        masked.push_str(MASK);
        rest = end;
    }
    masked.push_str(text.get(rest..).unwrap_or(""));
    masked
}

/// Whether a find of a shape looks made by a machine: `sk-` and some words joined by dashes do not.
fn is_random(text: &str) -> bool {
    text.starts_with("-----") || text.chars().any(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests;

//! The triage log: one JSON line a decision, near misses too, so that rules and thresholds can be tuned on what
//! people really ask.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_core::clock::Timestamp;

use super::{Context, Decision, Neighbour, ScoreKind, Tier};

/// What the log keeps of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogQuery {
    /// Nothing.
    None,
    /// A hash: repeats of a question can be counted, its words cannot be read. A guessed question can be
    /// confirmed, though; who minds takes [`LogQuery::None`].
    #[default]
    Hash,
    /// Its first part, with everything that looks like an address, a number or a key masked.
    Text,
}

/// Hexadecimal digits of a hash that are kept.
const HASH_DIGITS: usize = 16;

/// Characters of a question that are kept.
const TEXT_CHARS_MAX: usize = 200;

/// A word longer than this is taken for a key or an address and masked.
const WORD_CHARS_MAX: usize = 24;

/// A run of digits as long as this is taken for a number that belongs to somebody.
const DIGITS_MAX: usize = 4;

/// What a line is made of.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The question's first part.
    pub(super) text: &'a str,
    /// What became of it.
    pub(super) decision: &'a Decision,
    /// Words of the operator's work in it.
    pub(super) domain_terms: &'a [String],
    /// Whose it is.
    pub(super) context: &'a Context<'a>,
    /// When.
    pub(super) now: Timestamp,
    /// How long the gate took, in microseconds.
    pub(super) latency_us: i128,
}

/// One line of the log.
#[derive(Debug, Serialize)]
struct Line<'a> {
    ts: String,
    request: &'a str,
    key: &'a str,
    user: &'a str,
    tier: Tier,
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lists: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score_kind: Option<ScoreKind>,
    score: Option<f64>,
    threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<&'a [Neighbour]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest_negative: Option<&'a [Neighbour]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    addressed: Option<bool>,
    decision: &'static str,
    near_miss: bool,
    tools_stripped: bool,
    domain_terms_found: &'a [String],
    latency_us: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    query_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
}

/// The line for a decision; `None` only if it could not be written as JSON, which its types rule out.
pub(super) fn line(entry: &Entry<'_>, keep: LogQuery) -> Option<String> {
    let (query_hash, query) = match keep {
        LogQuery::None => (None, None),
        LogQuery::Hash => (Some(hash(entry.text)), None),
        LogQuery::Text => (Some(hash(entry.text)), Some(masked(entry.text))),
    };
    let Entry {
        decision, context, ..
    } = entry;
    let comparison = decision.comparison.as_ref();
    let line = Line {
        ts: entry.now.to_string(),
        request: context.request_id.as_str(),
        key: context.key_id.as_str(),
        user: context.user.as_str(),
        tier: decision.tier,
        rule: decision.rule.as_deref(),
        model: comparison.map(|comparison| comparison.model.as_str()),
        lists: comparison.map(|comparison| comparison.lists.as_str()),
        score_kind: comparison.map(|comparison| comparison.kind),
        score: decision.score(),
        threshold: decision.threshold,
        margin: comparison.map(|comparison| comparison.margin),
        nearest: comparison.map(|comparison| comparison.positives.as_slice()),
        nearest_negative: comparison.map(|comparison| comparison.negatives.as_slice()),
        addressed: comparison.map(|_| decision.addressed),
        decision: if decision.about_agent {
            "about_agent"
        } else {
            "domain"
        },
        near_miss: decision.near_miss,
        tools_stripped: decision.about_agent,
        domain_terms_found: entry.domain_terms,
        latency_us: i64::try_from(entry.latency_us).unwrap_or(i64::MAX),
        query_hash,
        query,
    };
    serde_json::to_string(&line).ok()
}

/// The hash of a question, blind to upper case and spacing.
fn hash(text: &str) -> String {
    let plain = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase();
    let mut digits = crate::prompt::hex(&Sha256::digest(plain.as_bytes()));
    digits.truncate(HASH_DIGITS);
    digits
}

fn masked(text: &str) -> String {
    let short: String = text.chars().take(TEXT_CHARS_MAX).collect();
    short
        .split_whitespace()
        .map(|word| if looks_private(word) { "[masked]" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

fn looks_private(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    word.contains('@')
        || word.contains("://")
        || digits >= DIGITS_MAX
        || word.chars().count() > WORD_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_masked_and_cut() {
        assert_eq!(
            masked("who are you? mail ann@example.org or call 555-0199, key tg_abcdefghijklmnopqrstuvwxyz"),
            "who are you? mail [masked] or call [masked] key [masked]"
        );
        assert!(masked(&"a ".repeat(10_000)).chars().count() <= TEXT_CHARS_MAX);
    }

    #[test]
    fn a_hash_does_not_see_case_or_spacing() {
        assert_eq!(hash("Who  are you"), hash("who are YOU"));
        assert_ne!(hash("who are you"), hash("who am i"));
        assert_eq!(hash("x").len(), HASH_DIGITS);
    }
}

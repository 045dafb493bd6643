//! The triage log: one JSON line a decision, near misses too, so that rules and thresholds can be tuned on what
//! people really ask.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_core::clock::Timestamp;

use super::{Context, Decision, Tier};

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

/// One line of the log.
#[derive(Debug, Serialize)]
struct Line<'a> {
    ts: String,
    request: &'a str,
    key: &'a str,
    user: &'a str,
    tier: Tier,
    rule: Option<&'a str>,
    score: Option<f64>,
    threshold: f64,
    decision: &'static str,
    near_miss: bool,
    tools_stripped: bool,
    domain_terms_found: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    query_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
}

/// The line for a decision; `None` only if it could not be written as JSON, which its types rule out.
pub(super) fn line(
    text: &str,
    decision: &Decision,
    domain_terms: &[String],
    context: &Context<'_>,
    now: Timestamp,
    keep: LogQuery,
) -> Option<String> {
    let (query_hash, query) = match keep {
        LogQuery::None => (None, None),
        LogQuery::Hash => (Some(hash(text)), None),
        LogQuery::Text => (Some(hash(text)), Some(masked(text))),
    };
    let line = Line {
        ts: now.to_string(),
        request: context.request_id.as_str(),
        key: context.key_id.as_str(),
        user: context.user.as_str(),
        tier: decision.tier,
        rule: decision.rule.as_deref(),
        score: decision.score,
        threshold: decision.threshold,
        decision: if decision.about_agent {
            "about_agent"
        } else {
            "domain"
        },
        near_miss: decision.near_miss,
        tools_stripped: decision.about_agent,
        domain_terms_found: domain_terms,
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

//! What is never kept, whoever says it: secrets, addresses, orders, claims of power.

use super::words::{AGENTS, BARE_POWERS, DOMAINS, DUTIES, EVASIONS, FREEDOMS, POWERS, SAFEGUARDS, SECRETS};
use std::sync::LazyLock;

use regex::Regex;
use tidegate_gate::guards::{outbound as query, secrets::Redactor};

use super::{cues::is_any, reason::Reason, sentence::Sentence};
use crate::kinds;

/// A link, a host, a mail address, a network address, a path.
const ADDRESSES: &str = r"(?x)
    [a-z][a-z0-9+.-]*://
    | \bwww\.
    | \b(?:mailto|javascript|data):
    | [\w.+-]+@[\w-]+\.\w
    | \b[\w-]+\.(?:com|org|net|io|edu|gov|info|biz|dev|app|ai|de|uk|fr|ru|cn|xyz|me|co|site|online|top|link|zip|sh|exe)\b
    | \b\d{1,3}(?:\.\d{1,3}){3}\b
    | (?:^|\s)(?:/|~/|[a-z]:\\)[\w.-]+/
";

/// Refuses a secret or an address: in the sentence, since a value may be a part of one.
pub(super) fn sentence(sentence: &Sentence, text: &str, redactor: &Redactor) -> Result<(), Reason> {
    let all = 0..sentence.tokens.len();
    if sentence.find(all, SECRETS).is_some() || redactor.redact(text) != text || is_personal(text) {
        return Err(Reason::Secret);
    }
    Ok(())
}

/// How much of a text is looked at at once, and how much of that again with the next part.
const PART_CHARS: usize = query::QUERY_CHARS_MAX;
const SHARED_CHARS: usize = 100;

/// Whether personal numbers or credentials stand in it.
fn is_personal(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    (0..letters.len().max(1))
        .step_by(PART_CHARS - SHARED_CHARS)
        .any(|from| {
            let part: String = letters.iter().skip(from).take(PART_CHARS).collect();
            query::check_query(&part).is_err()
        })
}

/// Refuses what may not be kept, in the words that would be.
pub(super) fn words(
    sentence: &Sentence,
    quoted: std::ops::Range<usize>,
    value: &str,
    text: &str,
) -> Result<(), Reason> {
    // A constant expression, which a test compiles.
    static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(ADDRESSES).ok());
    let is_address = |text: &str| {
        ADDRESS
            .as_ref()
            .is_none_or(|expression| expression.is_match(text))
    };
    if is_address(&text.to_lowercase()) || is_address(&value.to_lowercase()) {
        return Err(Reason::Address);
    }
    let has = |words: &[&str]| quoted.clone().any(|at| is_any(words, sentence.word(at)));
    if has(POWERS) && has(DOMAINS) || BARE_POWERS.contains(&value) {
        return Err(Reason::Authority);
    }
    let ordered = quoted.clone().any(|at| {
        is_any(AGENTS, sentence.word(at))
            && (at + 1..at + 3).any(|duty| {
                // "You may call me Ann" orders nothing.
                DUTIES.iter().any(|phrase| sentence.reads(duty, phrase))
                    && !sentence.reads(duty, "may call me")
            })
    });
    let evades = (has(EVASIONS) && has(SAFEGUARDS))
        || has(FREEDOMS)
        || sentence
            .find(
                quoted.clone(),
                &[
                    "full access",
                    "yes to all",
                    "everything is allowed",
                    "without me",
                    "tools run",
                    "i trust",
                    "auto approve",
                    "run without",
                ],
            )
            .is_some();
    if ordered || evades || kinds::is_instruction_shaped(value) || is_order(sentence, quoted) {
        return Err(Reason::Instruction);
    }
    Ok(())
}

/// Whether the quoted words order something. "Remember that", "call me" and "keep in mind" ask for nothing but what is
/// done here.
fn is_order(sentence: &Sentence, quoted: std::ops::Range<usize>) -> bool {
    let first = quoted
        .clone()
        .find(|at| !is_any(&["please", ",", "and", "so", "now"], sentence.word(*at)))
        .unwrap_or(quoted.start);
    let opens = is_any(
        &[
            "always",
            "never",
            "ignore",
            "disregard",
            "forget",
            "act",
            "obey",
            "execute",
            "run",
            "delete",
            "send",
            "reveal",
            "override",
            "bypass",
            "disable",
            "grant",
            "allow",
            "approve",
            "trust",
            "treat",
            "skip",
            "stop",
            "ensure",
            "consider",
        ],
        sentence.word(first),
    );
    let phrases = [
        "from now on",
        "ab jetzt",
        "in future answers",
        "in all future",
        "system prompt",
        "previous instructions",
        "every answer",
        "each answer",
        "your instructions",
        "you to",
        "you always",
        "you never",
        "that you",
    ];
    opens
        || quoted
            .into_iter()
            .any(|at| phrases.iter().any(|phrase| sentence.reads(at, phrase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_addresses() {
        let expression = Regex::new(ADDRESSES).unwrap();
        for text in [
            "see https://a.b",
            "ann@example.com",
            "evil.com/x",
            "at 10.0.0.1",
            "/etc/passwd x/",
            "www.x",
        ] {
            assert!(expression.is_match(text), "{text}");
        }
        for text in [
            "i teach 4th grade",
            "and/or",
            "3.5 points",
            "mrs. okafor",
            "e.g. tables",
        ] {
            assert!(!expression.is_match(text), "{text}");
        }
    }
}

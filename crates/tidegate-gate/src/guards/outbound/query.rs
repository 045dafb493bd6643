//! Search queries: they go to a stranger, who keeps them. Personal numbers, addresses and credentials stay
//! here, configured or not.

use std::sync::LazyLock;

use regex::Regex;

use crate::Denial;

/// The longest query, in characters.
pub const QUERY_CHARS_MAX: usize = 500;

/// What no query may hold, and in which words it is refused.
const SENSITIVE: [(&str, &str); 7] = [
    (r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY", "a private key"),
    (
        r"(?i)\b(?:api[_ -]?key|access[_ -]?key|passw(?:or)?d|pwd)s?\b\s*[:=]\s*\S{8,}",
        "a credential",
    ),
    // Words that people also ask about: what follows must look made up.
    (
        r"(?i)\b(?:secret|token|credential)s?\b\s*[:=]\s*(?:\S{8,}\d|\S{1,8}\d\S{6,})",
        "a credential",
    ),
    (
        r"\b(?:[sr]k[-_][0-9A-Za-z_-]{16,}|gh[pousr]_[0-9A-Za-z]{20,}|github_pat_[0-9A-Za-z_]{20,}|xox[a-z]-[0-9A-Za-z-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16})",
        "a credential",
    ),
    (
        r"\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{4,}\.[0-9A-Za-z_-]{4,}",
        "a signed token",
    ),
    (
        r"(?i)\b[0-9a-z._%+-]+@[0-9a-z-]+(?:\.[0-9a-z-]+)*\.[a-z]{2,}\b",
        "an e-mail address",
    ),
    // Telephone, identity and card numbers: nine digits or more, with the marks people put between them.
    (
        r"\d(?:[ ().\-/]{0,2}\d){8,}",
        "a long number, like that of a telephone or a card",
    ),
];

/// Refuses a search query that tells a stranger something personal or secret.
pub fn check_query(query: &str) -> Result<(), Denial> {
    // Constant patterns, each of which a test compiles.
    static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
        SENSITIVE
            .iter()
            .filter_map(|(pattern, what)| Some((Regex::new(pattern).ok()?, *what)))
            .collect()
    });
    if query.chars().count() > QUERY_CHARS_MAX {
        return Err(denial(&format!("it is longer than {QUERY_CHARS_MAX} characters")));
    }
    match PATTERNS.iter().find(|(pattern, _)| pattern.is_match(query)) {
        Some((_, what)) => Err(denial(&format!("it holds {what}"))),
        None => Ok(()),
    }
}

fn denial(why: &str) -> Denial {
    Denial::new(
        "sensitive_query",
        format!("the query is not sent: {why}; search without it."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (pattern, _) in SENSITIVE {
            Regex::new(pattern).unwrap();
        }
    }

    #[test]
    fn tells_personal_queries_from_others() {
        for query in [
            "what is -----BEGIN RSA PRIVATE KEY-----",
            "api_key: abcd1234efgh",
            "password = hunter22hunter",
            "who owns sk-abcdefghijklmnop1234",
            "ghp_0123456789abcdefghij0123456789",
            "AKIAABCDEFGHIJKLMNOP",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "mail of ann@example.com",
            "+49 151 2345 6789",
            "4111 1111 1111 1111",
        ] {
            let denial = check_query(query).unwrap_err();
            assert_eq!(denial.floor, "sensitive_query");
        }
        assert!(check_query(&"a ".repeat(251)).is_err());
        for query in [
            "weather in Berlin on 2026-03-04",
            "how do I reset a password",
            "rust tokio 1.54 release notes",
            "what is a secret: definition",
            "population 1 000 000 in 1999",
            "error 0x80070005",
        ] {
            assert!(check_query(query).is_ok(), "{query}");
        }
    }
}

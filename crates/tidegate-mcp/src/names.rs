//! Names of tools as models see them: `mcp__<server>__<tool>`.
//!
//! A server may call its tools what it likes; model APIs take `[A-Za-z0-9_-]{1,64}`. No two tools ever share a name:
//! a server's part holds no `__`, and what had to be changed or cut and then meets another gets a digest of its own
//! name.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

/// The longest name that model APIs take.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// Hexadecimal digits of a digest that tells two names apart.
const DIGEST_CHARS: usize = 8;

/// What stands before a server's part.
pub(crate) const PREFIX: &str = "mcp__";

/// A server's part of its tools' names: letters, digits, `-` and single `_`, neither first nor last.
pub(crate) fn slug(server: &str) -> String {
    let mut slug = String::with_capacity(server.len());
    for letter in server.chars() {
        let letter = if letter.is_ascii_alphanumeric() || letter == '-' {
            letter
        } else {
            '_'
        };
        if letter != '_' || !(slug.is_empty() || slug.ends_with('_')) {
            slug.push(letter);
        }
    }
    slug.truncate(slug.trim_end_matches('_').len());
    slug
}

/// A tool's full name. `taken` are those of the server's other tools, and this one is added.
pub(crate) fn tool_name(slug: &str, tool: &str, taken: &mut BTreeSet<String>) -> String {
    let plain: String = tool
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') {
                letter
            } else {
                '_'
            }
        })
        .collect();
    let full = format!("{PREFIX}{slug}__{plain}");
    let is_itself = plain == tool && full.len() <= NAME_CHARS_MAX && !plain.is_empty();
    if is_itself && taken.insert(full.clone()) {
        return full;
    }
    if plain != tool && !plain.is_empty() && full.len() <= NAME_CHARS_MAX && taken.insert(full.clone()) {
        return full;
    }
    let head: String = full.chars().take(NAME_CHARS_MAX - DIGEST_CHARS - 1).collect();
    // The first digest is free but where a server has named a tool after it.
    let mut round = 0_usize;
    loop {
        let digest = hex(&Sha256::digest(format!("{round}:{tool}")));
        let marked = format!("{head}_{}", digest.get(..DIGEST_CHARS).unwrap_or_default());
        if taken.insert(marked.clone()) {
            return marked;
        }
        round += 1;
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stay_themselves_where_they_can() {
        let mut taken = BTreeSet::new();
        assert_eq!(slug("my.server  x__"), "my_server_x");
        assert_eq!(slug("__"), "");
        assert_eq!(tool_name("a", "read_file", &mut taken), "mcp__a__read_file");
        assert_eq!(
            tool_name("a", "read.file", &mut taken),
            "mcp__a__read_file_d32dd742"
        );
        assert_eq!(tool_name("a", "list.all", &mut taken), "mcp__a__list_all");
        assert!(tool_name("a", "", &mut taken).starts_with("mcp__a___"));
    }

    proptest! {
        #[test]
        fn names_are_distinct_and_fit(
            servers in prop::collection::btree_set("[a-zA-Z_. -]{1,32}", 1..4),
            tools in prop::collection::btree_set(".{0,80}", 0..12),
        ) {
            let mut all = BTreeSet::new();
            let slugs: BTreeSet<String> = servers.iter().map(|name| slug(name)).filter(|slug| !slug.is_empty()).collect();
            for slug in slugs {
                let mut taken = BTreeSet::new();
                for tool in &tools {
                    let name = tool_name(&slug, tool, &mut taken);
                    prop_assert!(name.len() <= NAME_CHARS_MAX, "{name}");
                    prop_assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter)));
                    prop_assert!(all.insert(name.clone()), "{name} twice");
                }
            }
        }
    }
}

//! Finding tools by words: over their names, their descriptions and the names of their arguments.
//!
//! Pure, and the same question to the same tools always finds the same, in the same order: a turn that is taken up
//! again finds again what it had found.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tidegate_core::tool::ToolSpec;

use super::catalogue::Row;

/// The most words of a question that are looked for.
const WORDS_MAX: usize = 32;
/// The shortest words of which one may be the beginning of the other.
const PREFIX_CHARS_MIN: usize = 3;
/// How much longer the other may be, in characters.
const PREFIX_REST_CHARS_MAX: usize = 4;
/// What a word counts for where it is only the beginning of the other.
const PREFIX_SHARE: f64 = 0.6;
/// What a word counts for in a name, a description and the name of an argument.
const NAME_WEIGHT: f64 = 3.0;
const DESCRIPTION_WEIGHT: f64 = 1.0;
const ARGUMENT_WEIGHT: f64 = 0.5;
/// Words that tell no tool from another.
const COMMON: [&str; 28] = [
    "a", "an", "and", "any", "are", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it", "me", "my",
    "of", "on", "or", "that", "the", "this", "to", "tool", "what", "with", "you",
];

/// What tools are found by: each word, and where it stands how heavily.
#[derive(Debug, Default)]
pub(crate) struct Index {
    words: BTreeMap<String, Vec<(usize, f64)>>,
    names: Vec<String>,
}

impl Index {
    /// The index of these tools; they are known by their places.
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut index = Self::default();
        for (place, row) in rows.iter().enumerate() {
            index.names.push(row.spec.name.clone());
            let mut weights: BTreeMap<String, f64> = BTreeMap::new();
            let mut add = |text: &str, weight: f64| {
                for word in words(text) {
                    let known = weights.entry(word).or_default();
                    *known = known.max(weight);
                }
            };
            add(&row.spec.name, NAME_WEIGHT);
            add(&row.spec.description, DESCRIPTION_WEIGHT);
            for argument in arguments(&row.spec) {
                add(&argument.name, ARGUMENT_WEIGHT);
            }
            for (word, weight) in weights {
                index.words.entry(word).or_default().push((place, weight));
            }
        }
        index
    }

    /// The places of the tools that the words speak of, the best first; those that `is_wanted` alone.
    pub(crate) fn find(&self, query: &str, is_wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for word in asked(query) {
            // A tool counts once for a word, by the best of what is like it.
            let mut best: BTreeMap<usize, f64> = BTreeMap::new();
            for (known, share) in self.like(&word) {
                let Some(places) = self.words.get(known) else { continue };
                let rarity = (1.0 + count(self.names.len()) / count(places.len())).ln();
                for (place, weight) in places {
                    let score = best.entry(*place).or_default();
                    *score = score.max(share * weight * rarity);
                }
            }
            for (place, score) in best {
                *scores.entry(place).or_default() += score;
            }
        }
        let mut found: Vec<(usize, f64)> = scores
            .into_iter()
            .filter(|(place, score)| *score > 0.0 && is_wanted(*place))
            .collect();
        found.sort_by(|(one, high), (other, low)| {
            low.total_cmp(high)
                .then_with(|| self.names.get(*one).cmp(&self.names.get(*other)))
        });
        found.into_iter().map(|(place, _)| place).collect()
    }

    /// The known words that are this one, or nearly.
    fn like<'i>(&'i self, word: &str) -> Vec<(&'i str, f64)> {
        let long = |word: &str| word.chars().count();
        let begins = |short: &str, other: &str| {
            long(short) >= PREFIX_CHARS_MIN
                && other
                    .strip_prefix(short)
                    .is_some_and(|rest| long(rest) <= PREFIX_REST_CHARS_MAX)
        };
        self.words
            .keys()
            .filter_map(|known| {
                let share = if known == word {
                    1.0
                } else if begins(known, word) || begins(word, known) {
                    PREFIX_SHARE
                } else {
                    return None;
                };
                Some((known.as_str(), share))
            })
            .collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "tools are far fewer than a float counts exactly")]
fn count(number: usize) -> f64 {
    number as f64
}

/// The words of a question that are looked for: all but the common ones, unless there are no others.
fn asked(query: &str) -> BTreeSet<String> {
    let all: Vec<String> = words(query).into_iter().take(WORDS_MAX).collect();
    let telling: BTreeSet<String> = all
        .iter()
        .filter(|word| !COMMON.contains(&word.as_str()))
        .cloned()
        .collect();
    if telling.is_empty() {
        return all.into_iter().collect();
    }
    telling
}

/// The words of a text, in small letters: `readTextFile` and `read_text_file` have the same.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for letter in text.chars() {
        let is_part = letter.is_alphanumeric();
        let is_start = letter.is_uppercase() && was_small;
        if (!is_part || is_start) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if is_part {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase();
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// An argument, as far as a list of tools tells of it.
pub(super) struct Argument {
    /// Its name.
    pub(super) name: String,
    /// Whether a call needs it.
    pub(super) is_required: bool,
}

/// The arguments of a tool, wherever its row keeps them.
pub(super) fn arguments(spec: &ToolSpec) -> Vec<Argument> {
    let Some(schema) = &spec.input_schema else {
        return spec
            .parameters
            .iter()
            .map(|parameter| Argument {
                name: parameter.name.clone(),
                is_required: parameter.required,
            })
            .collect();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, _)| Argument {
            name: name.clone(),
            is_required: required.contains(&name.as_str()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::{
        super::{Bounds, catalogue::Catalogue, testing::mcp},
        *,
    };

    fn catalogue() -> Catalogue {
        let specs = [
            mcp("mcp__fs__read_file", "Reads a file whole.", json!({"path": {}})),
            mcp("mcp__fs__move_file", "Moves or renames a file.", json!({"source": {}, "destination": {}})),
            mcp("mcp__chat__postMessage", "Sends a text to a channel.", json!({"channel": {}, "text": {}})),
            mcp("mcp__sky__forecast", "The weather of the coming days at a place.", json!({"city": {}})),
            mcp("mcp__repo__list_issues", "The open tickets of a repository.", json!({"repository": {}})),
        ];
        Catalogue::new(specs.into_iter().collect::<Arc<[_]>>(), Bounds::default(), None)
    }

    fn found(query: &str) -> Vec<String> {
        let catalogue = catalogue();
        let places = catalogue.index().find(query, |_| true);
        places
            .into_iter()
            .map(|place| catalogue.rows()[place].spec.name.clone())
            .collect()
    }

    #[test]
    fn words_find_tools_by_name_description_and_argument() {
        for (query, first) in [
            ("send a message to a channel", "mcp__chat__postMessage"),
            ("post message", "mcp__chat__postMessage"),
            ("what is the weather in the city", "mcp__sky__forecast"),
            ("rename files", "mcp__fs__move_file"),
            ("mcp__fs__read_file", "mcp__fs__read_file"),
            ("issues", "mcp__repo__list_issues"),
            ("issue", "mcp__repo__list_issues"),
            ("destination", "mcp__fs__move_file"),
        ] {
            assert_eq!(found(query).first().map(String::as_str), Some(first), "{query}");
        }
        assert!(found("submarine").is_empty());
        assert!(found("").is_empty());
        assert_eq!(found("file").len(), 2);
        assert_eq!(words("readTextFile2 JSON-RPC, déjà"), ["read", "text", "file2", "json", "rpc", "déjà"]);
    }

    #[test]
    fn only_what_is_wanted_is_found() {
        let catalogue = catalogue();
        let move_file = catalogue.place("mcp__fs__move_file").unwrap();
        assert_eq!(catalogue.index().find("file", |place| place == move_file), [move_file]);
    }

    proptest! {
        #[test]
        fn any_question_is_answered_and_twice_the_same(query in ".{0,200}") {
            prop_assert_eq!(found(&query), found(&query));
        }
    }
}

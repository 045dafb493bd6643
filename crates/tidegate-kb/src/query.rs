//! The words of a query.
//!
//! Words are runs of letters and digits, as the full-text index has them. A repeated word counts as often as it is
//! written (long questions lose a twentieth of their quality without that). Words that only hold a sentence together are
//! left out, and so are words that stand nearly everywhere, unless nothing else would remain.

mod stop;

use std::collections::HashSet;

/// The longest query, in characters. A page of text is a query; a book is a mistake.
pub const CHARS_MAX: usize = 10_000;
/// How many different words are looked for; later ones are left out.
pub const TERMS_MAX: usize = 128;
/// How often one word counts.
pub const REPEATS_MAX: usize = 8;
/// The longest word, in characters. Longer runs are encoded data, and no index has them as a word.
pub const TERM_CHARS_MAX: usize = 64;
/// A word that stands in more than this share of the chunks tells nothing: half is where BM25's own weight of it is
/// zero.
const COMMON_SHARE: f64 = 0.5;
/// How many other words must remain for a common one to go.
const OTHERS_MIN: usize = 3;
/// How many places the words of one query may stand in, all together, before the most common ones go: each is
/// read and weighed, so this bounds the time. The development collections are too small to reach it, so what it costs in
/// quality is not measured.
const POSTINGS_MAX: u64 = 120_000;
/// What some people write between words in capitals, for another search engine.
const OPERATORS: [&str; 3] = ["and", "or", "not"];

/// What is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Words in the order of the query, repeated ones included.
    pub wanted: Vec<String>,
    /// Words that were left out, each once.
    pub dropped: Vec<String>,
}

impl Terms {
    /// The words of a query.
    pub fn of(query: &str) -> Self {
        let words = words(query);
        // In a query that is not all capitals, capitals make a name of what would be a word of no weight: IT, US, WHO.
        let shouted = !query.chars().any(char::is_lowercase);
        let name = |word: &Word| word.capitals && !shouted && !OPERATORS.contains(&word.lower.as_str());
        let telling = |word: &Word| !stop::is_stop_word(&word.lower) || name(word);
        let (kept, dropped): (Vec<Word>, Vec<Word>) = words.into_iter().partition(telling);
        if kept.is_empty() {
            return Self {
                wanted: bounded(dropped),
                dropped: Vec::new(),
            };
        }
        let wanted = bounded(kept);
        let mut seen: HashSet<&str> = wanted.iter().map(String::as_str).collect();
        let dropped: Vec<&Word> = dropped.iter().filter(|word| seen.insert(&word.lower)).collect();
        let dropped = dropped
            .into_iter()
            .map(|word| word.lower.clone())
            .take(TERMS_MAX)
            .collect();
        Self { wanted, dropped }
    }

    /// The different words that are looked for, in the order of the query.
    pub fn distinct(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        self.wanted
            .iter()
            .filter(|term| seen.insert(term.as_str()))
            .cloned()
            .collect()
    }

    /// Leaves out what is too common among `chunks` chunks, where `frequencies` says in how many each of
    /// [`distinct`](Self::distinct) stands.
    pub fn drop_common(&mut self, frequencies: &[(String, u64)], chunks: u64) {
        let mut rarest_first: Vec<&(String, u64)> = frequencies.iter().collect();
        rarest_first.sort_by_key(|(_, count)| *count);
        // A word that stands nowhere holds no place, and is not what remains of a query either.
        let mut places = 0_u64;
        let mut remaining = 0;
        let mut common = HashSet::new();
        for (term, count) in rarest_first {
            #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
            let everywhere = *count as f64 > COMMON_SHARE * chunks as f64;
            let too_many = places.saturating_add(*count) > POSTINGS_MAX;
            if remaining >= OTHERS_MIN && (everywhere || too_many) {
                common.insert(term.as_str());
                continue;
            }
            places = places.saturating_add(*count);
            remaining += usize::from(*count > 0);
        }
        self.wanted.retain(|term| !common.contains(term.as_str()));
        self.dropped.extend(
            frequencies
                .iter()
                .filter(|(term, _)| common.contains(term.as_str()))
                .map(|(term, _)| term.clone()),
        );
    }
}

struct Word {
    lower: String,
    capitals: bool,
}

fn words(query: &str) -> Vec<Word> {
    query
        .split(|letter: char| !is_of_word(letter))
        .filter(|word| word.chars().any(char::is_alphanumeric) && word.chars().count() <= TERM_CHARS_MAX)
        .map(|word| Word {
            lower: word.to_lowercase(),
            capitals: word.len() > 1 && word.chars().all(char::is_uppercase),
        })
        .collect()
}

/// Every word of a text.
pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !is_of_word(letter))
        .filter(|word| !word.is_empty())
}

/// Whether a word is of a script that sets no spaces between words: Han, kana, Thai, Lao, Myanmar, Khmer.
pub(crate) fn is_unspaced(word: &str) -> bool {
    word.chars().all(|letter| {
        matches!(letter,
            '\u{0e01}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{312f}'
            | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
    })
}

/// Letters, digits, and the marks that letters of many scripts carry.
fn is_of_word(letter: char) -> bool {
    use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric();
    }
    letter.is_alphanumeric() || letter.general_category_group() == GeneralCategoryGroup::Mark
}

fn bounded(words: Vec<Word>) -> Vec<String> {
    let mut counts: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    let mut terms = Vec::new();
    for Word { lower, .. } in words {
        if !counts.contains_key(&lower) && counts.len() >= TERMS_MAX {
            continue;
        }
        let count = counts.entry(lower.clone()).or_insert(0);
        *count += 1;
        if *count <= REPEATS_MAX {
            terms.push(lower);
        }
    }
    terms
}

#[cfg(test)]
mod tests;

//! What of a person's notes bears on a question: ranks of words and of vectors, joined.
//!
//! Pure: the store says which notes hold the words ([`terms`]), vectors say which are near ([`Matrix::nearest`]), and
//! [`rank`] joins both by reciprocal ranks. Everything is over one person's notes; nothing here can see another's.

mod matrix;
mod stop;

use std::collections::BTreeMap;

use tidegate_core::{
    knowledge::Leg,
    memory::{Fact, FactState},
    port::RowKey,
};

pub use self::matrix::Matrix;
use crate::kinds::{Kind, Sensitivity, folded};

/// How many words of a question are looked for; what comes later in a long text is left out.
pub const TERMS_MAX: usize = 32;

/// The longest word that is looked for, in characters.
const TERM_CHARS_MAX: usize = 40;

/// How the ranks are joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): the greater, the less the first
    /// ranks stand out.
    pub rrf_k: u32,
    /// How much a rank among the vectors counts against the same rank among the words, 0 to 1.
    pub vector_weight: f32,
    /// How many of each list are looked at.
    pub depth: usize,
    /// How many notes come out.
    pub limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rrf_k: 60,
            vector_weight: 0.5,
            depth: 50,
            limit: 8,
        }
    }
}

/// A note that bears on the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recalled {
    /// Its key.
    pub key: RowKey,
    /// From 0 to 1: its share of what the first in both lists would get.
    pub score: f32,
    /// What the words said of it.
    pub words: Option<Leg>,
    /// What the vectors said of it.
    pub vectors: Option<Leg>,
}

/// The words of a question that are worth looking for, folded, each once, stop words dropped; single letters only where
/// they are digits.
pub fn terms(question: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for word in folded(question).split(|letter: char| !letter.is_alphanumeric()) {
        let chars = word.chars().count();
        let is_digit = word.chars().all(|letter| letter.is_ascii_digit());
        let is_worth_it =
            (2..=TERM_CHARS_MAX).contains(&chars) || (chars == 1 && (is_digit || !word.is_ascii()));
        if is_worth_it && !stop::is_stop_word(word) && !terms.iter().any(|term| term == word) {
            terms.push(word.to_owned());
            if terms.len() == TERMS_MAX {
                break;
            }
        }
    }
    terms
}

/// Joins what the words and the vectors found, best first. Scores that are not above zero, and those that are no
/// numbers, do not count; of equals, the newer note comes first.
pub fn rank(words: &[(RowKey, f32)], vectors: &[(RowKey, f32)], options: &Options) -> Vec<Recalled> {
    let mut joined: BTreeMap<RowKey, Recalled> = BTreeMap::new();
    let vector_weight = if vectors.is_empty() {
        0.0
    } else {
        options.vector_weight.clamp(0.0, 1.0)
    };
    let total = 1.0 + vector_weight;
    for (list, weight, is_words) in [(words, 1.0, true), (vectors, vector_weight, false)] {
        for (position, (key, score)) in best(list.to_vec(), options.depth).into_iter().enumerate() {
            let leg = Leg {
                rank: position + 1,
                score,
            };
            let recalled = joined.entry(key).or_insert(Recalled {
                key,
                score: 0.0,
                words: None,
                vectors: None,
            });
            recalled.score += weight * reciprocal(options.rrf_k, leg.rank) / total;
            *(if is_words {
                &mut recalled.words
            } else {
                &mut recalled.vectors
            }) = Some(leg);
        }
    }
    let mut ranked: Vec<Recalled> = joined
        .into_values()
        .filter(|recalled| recalled.score > 0.0)
        .collect();
    ranked.sort_by(|left, right| right.score.total_cmp(&left.score).then(right.key.cmp(&left.key)));
    ranked.truncate(options.limit);
    ranked
}

/// The best of a list, each key once, in order: greater scores first, then newer keys.
fn best(mut list: Vec<(RowKey, f32)>, depth: usize) -> Vec<(RowKey, f32)> {
    let better =
        |left: &(RowKey, f32), right: &(RowKey, f32)| right.1.total_cmp(&left.1).then(right.0.cmp(&left.0));
    list.retain(|(_, score)| *score > 0.0);
    list.sort_unstable_by_key(|(key, score)| (*key, std::cmp::Reverse(OrderedScore(*score))));
    list.dedup_by_key(|(key, _)| *key);
    if depth == 0 {
        return Vec::new();
    }
    if list.len() > depth {
        // Only the best are put in order: the rest may be ten thousand.
        list.select_nth_unstable_by(depth - 1, better);
        list.truncate(depth);
    }
    list.sort_unstable_by(better);
    list
}

/// A score with its total order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OrderedScore(f32);

impl Eq for OrderedScore {}

impl PartialOrd for OrderedScore {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedScore {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// 1/(k + rank), as a share of what the first one gets.
fn reciprocal(k: u32, rank: usize) -> f32 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "ranks and the constant are small numbers"
    )]
    let (k, rank) = (k as f32, rank as f32);
    (k + 1.0) / (k + rank)
}

/// The words under which a fact is found; `None` for one that is not to be recalled: what no longer holds, and what is
/// sensitive and not believed. They depend on the fact alone.
pub fn note(kind: &Kind, fact: &Fact) -> Option<String> {
    let is_open = match fact.state {
        FactState::Stable => true,
        FactState::Candidate | FactState::Contested => kind.sensitivity != Sensitivity::Sensitive,
        FactState::Superseded | FactState::Expired | FactState::Retracted => false,
    };
    is_open.then(|| format!("{}: {}", kind.label, fact.value))
}

#[cfg(test)]
mod tests;

//! When nothing in the documents is about a question.
//!
//! Two signs say that a passage has to do with a query: its vector is near (the cosine that was measured for the
//! model), or it holds the query's *telling words*, those that are rare among the documents and so carry nearly all the
//! weight of the query. Where no passage shows either, the answer is that there is none. Where one does, others may stay
//! a little below it: they are near to something that is there.
//!
//! The numbers here were chosen on all of the development questions, so the rates that `cargo xtask eval` prints for
//! those are better than what other questions will show.

use std::collections::HashMap;

use crate::query;

/// The share of a query's weight that a passage's words must carry, where the vectors do not speak for it.
const SHARE_MIN: f64 = 0.80;
/// The same where no vector is there to speak at all, for a query of [`SHORT_TERMS`] different words. A longer one says
/// the same with more words, of which no passage has most: what is asked of it falls with the root of their number, and
/// not below the least. In doubt there is an answer.
const SHARE_ALONE_MIN: f64 = 0.50;
const SHARE_ALONE_LEAST: f64 = 0.12;
const SHORT_TERMS: f64 = 4.0;
/// A word tells something where it stands in no more than one of so many chunks.
const TELLING_ONE_IN: u64 = 20;
/// How many different words must be there, unless the query has fewer.
const TERMS_MIN: usize = 2;
/// How far below the model's cosine other passages may be, once one has reached it.
const SLACK: f32 = 0.15;
/// What two words must have in common to be forms of one, in letters and as a share of the longer one.
const STEM_CHARS_MIN: usize = 4;
const STEM_SHARE_MIN: f64 = 0.7;

/// The words of a query with what each tells.
#[derive(Debug, Clone)]
pub struct Floor {
    words: Vec<Word>,
    /// Which of them begin with these letters.
    beginnings: HashMap<String, Vec<usize>>,
    total: f64,
    cosine_min: f32,
}

#[derive(Debug, Clone)]
struct Word {
    term: String,
    weight: f64,
    is_telling: bool,
}

/// What a passage shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signs {
    /// Its cosine to the query, where both have a vector.
    pub cosine: Option<f32>,
    /// What share of the query's weight its words carry.
    pub share: f64,
    /// How many of the query's different words it holds.
    pub terms: usize,
    /// Whether one of them is rare among the documents.
    pub is_telling: bool,
}

impl Floor {
    /// The floor of a query, by its different words and in how many of `chunks` chunks each stands.
    pub fn new(frequencies: &[(String, u64)], chunks: u64, cosine_min: f32) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a weight needs no more digits")]
        let weight = |count: u64| {
            let (count, chunks) = (count as f64, chunks as f64);
            ((chunks - count + 0.5) / (count + 0.5)).max(1.0).ln() + f64::MIN_POSITIVE
        };
        let words: Vec<Word> = frequencies
            .iter()
            .map(|(term, count)| Word {
                term: term.clone(),
                weight: weight(*count),
                is_telling: *count <= (chunks / TELLING_ONE_IN).max(1),
            })
            .collect();
        let mut beginnings: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, word) in words.iter().enumerate() {
            beginnings
                .entry(beginning(&word.term).to_owned())
                .or_default()
                .push(number);
        }
        Self {
            total: words.iter().map(|word| word.weight).sum(),
            beginnings,
            words,
            cosine_min,
        }
    }

    /// What a passage shows, by its words (of title, headings and text) and its cosine. Words are not looked at where
    /// the cosine is enough, since that takes most of the time.
    pub fn signs(&self, texts: &[&str], cosine: Option<f32>) -> Signs {
        if cosine.is_some_and(|cosine| cosine >= self.cosine_min) {
            return Signs {
                cosine,
                share: 0.0,
                terms: 0,
                is_telling: false,
            };
        }
        let mut is_held = vec![false; self.words.len()];
        for text in texts {
            self.mark(&text.to_lowercase(), &mut is_held);
        }
        let held: Vec<&Word> = self
            .words
            .iter()
            .zip(is_held)
            .filter(|(_, is_held)| *is_held)
            .map(|(word, _)| word)
            .collect();
        let weight: f64 = held.iter().map(|word| word.weight).sum();
        Signs {
            cosine,
            share: if self.total > 0.0 {
                weight / self.total
            } else {
                0.0
            },
            terms: held.len(),
            is_telling: held.iter().any(|word| word.is_telling),
        }
    }

    /// Marks which of the query's words a text in small letters holds.
    fn mark(&self, text: &str, is_held: &mut [bool]) {
        for word in query::split(text) {
            for number in self.beginnings.get(beginning(word)).into_iter().flatten() {
                if let (Some(held), Some(wanted)) = (is_held.get_mut(*number), self.words.get(*number)) {
                    *held = *held || wanted.term == word || forms_of_one(&wanted.term, word);
                }
            }
        }
        for (held, wanted) in is_held.iter_mut().zip(&self.words).filter(|(held, _)| !**held) {
            *held = query::is_unspaced(&wanted.term) && holds_pairs(text, &wanted.term);
        }
    }

    /// Which of the passages have to do with the query; all of them where the model's cosine is zero.
    pub fn relevant(&self, signs: &[Signs]) -> Vec<bool> {
        if self.cosine_min <= 0.0 {
            return vec![true; signs.len()];
        }
        let anchor = signs.iter().any(|signs| self.reaches(*signs, 0.0));
        signs
            .iter()
            .map(|signs| anchor && self.reaches(*signs, SLACK))
            .collect()
    }

    fn reaches(&self, signs: Signs, slack: f32) -> bool {
        let enough = signs.terms >= TERMS_MIN.min(self.words.len()).max(1);
        match signs.cosine {
            Some(cosine) if cosine >= self.cosine_min - slack => true,
            Some(_) => enough && signs.is_telling && signs.share >= SHARE_MIN,
            None => enough && signs.share >= self.share_alone_min(),
        }
    }

    fn share_alone_min(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count of words")]
        let terms = self.words.len() as f64;
        (SHARE_ALONE_MIN * (SHORT_TERMS / terms).sqrt()).clamp(SHARE_ALONE_LEAST, SHARE_ALONE_MIN)
    }
}

/// The first letters of a word, all of them where it is short.
fn beginning(word: &str) -> &str {
    let end = word
        .char_indices()
        .nth(STEM_CHARS_MIN)
        .map_or(word.len(), |(end, _)| end);
    word.get(..end).unwrap_or(word)
}

/// Whether a text has half of a term's pairs of letters: what stands for words where there are no spaces.
fn holds_pairs(text: &str, term: &str) -> bool {
    let ends: Vec<usize> = term
        .char_indices()
        .map(|(at, _)| at)
        .chain([term.len()])
        .collect();
    let pairs: Vec<&str> = ends
        .windows(3)
        .filter_map(|ends| term.get(*ends.first()?..*ends.last()?))
        .collect();
    let found = pairs.iter().filter(|pair| text.contains(**pair)).count();
    if pairs.is_empty() {
        text.contains(term)
    } else {
        found * 2 >= pairs.len()
    }
}

/// Whether one is likely the other with another ending. Rough, and the same in every language with endings.
fn forms_of_one(left: &str, right: &str) -> bool {
    let common = left
        .chars()
        .zip(right.chars())
        .take_while(|(left, right)| left == right)
        .count();
    let longer = left.chars().count().max(right.chars().count());
    #[expect(clippy::cast_precision_loss, reason = "lengths of words")]
    let share = common as f64 / longer as f64;
    common >= STEM_CHARS_MIN && share >= STEM_SHARE_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(frequencies: &[(&str, u64)]) -> Floor {
        let frequencies: Vec<(String, u64)> = frequencies
            .iter()
            .map(|(term, count)| ((*term).to_owned(), *count))
            .collect();
        Floor::new(&frequencies, 1_000, 0.40)
    }

    #[test]
    fn forms_of_a_word_are_one_word() {
        for (left, right) in [
            ("lender", "lenders"),
            ("regulate", "regulation"),
            ("applying", "apply"),
            ("kredit", "kredite"),
        ] {
            let share = floor(&[(left, 3)]).signs(&[&format!("The {right}.")], None).share;
            assert_eq!(share > 0.99, forms_of_one(left, right), "{left} {right}");
        }
        assert!(forms_of_one("lender", "lenders") && forms_of_one("regulate", "regulation"));
        assert!(
            !forms_of_one("contract", "control")
                && !forms_of_one("cat", "cats")
                && !forms_of_one("information", "inform")
        );
    }

    #[test]
    fn a_near_passage_is_relevant_and_brings_its_neighbours() {
        let floor = floor(&[("lender", 30), ("reply", 20)]);
        let signs = |cosine| Signs {
            cosine: Some(cosine),
            share: 0.0,
            terms: 0,
            is_telling: false,
        };
        assert_eq!(
            floor.relevant(&[signs(0.41), signs(0.26), signs(0.24)]),
            [true, true, false]
        );
        assert_eq!(floor.relevant(&[signs(0.39), signs(0.26)]), [false, false]);
        assert!(floor.relevant(&[]).is_empty());
    }

    #[test]
    fn telling_words_speak_for_a_passage_and_common_ones_do_not() {
        let floor = floor(&[("xj", 0), ("900", 2), ("manual", 400)]);
        let far = Some(0.05);
        let full = floor.signs(&["The XJ 900 turns left."], far);
        assert_eq!(full.terms, 2);
        assert_eq!(floor.relevant(&[full]), [true]);
        let common = floor.signs(&["A manual of manners."], far);
        assert_eq!(floor.relevant(&[common]), [false]);
        let common_alone = Floor::new(&[("manual".to_owned(), 400)], 1_000, 0.40);
        assert_eq!(
            common_alone.relevant(&[common_alone.signs(&["A manual of manners."], far)]),
            [false]
        );
        let rare_alone = Floor::new(&[("zeugma".to_owned(), 3)], 1_000, 0.40);
        assert_eq!(
            rare_alone.relevant(&[rare_alone.signs(&["A zeugma."], far)]),
            [true]
        );
        assert_eq!(floor.relevant(&[floor.signs(&[""], None)]), [false]);
    }

    #[test]
    fn without_vectors_half_of_the_weight_is_enough() {
        let floor = floor(&[("lender", 30), ("reply", 20), ("denial", 25), ("letter", 22)]);
        assert_eq!(
            floor.relevant(&[floor.signs(&["A letter with a reply."], None)]),
            [true]
        );
        assert_eq!(floor.relevant(&[floor.signs(&["The lender."], None)]), [false]);
        assert_eq!(
            floor.relevant(&[floor.signs(&["A letter with a reply."], Some(0.1))]),
            [false]
        );
    }

    #[test]
    fn scripts_without_spaces_go_by_pairs() {
        let floor = floor(&[("信用申请的期限", 2)]);
        assert_eq!(
            floor.relevant(&[floor.signs(&["收到完整的信用申请后三十天的期限。"], None)]),
            [true]
        );
        assert_eq!(
            floor.relevant(&[floor.signs(&["面包要烤四十分钟。"], None)]),
            [false]
        );
        assert!(holds_pairs("信", "信") && !holds_pairs("面", "信"));
    }

    #[test]
    fn of_a_long_query_without_vectors_less_is_asked() {
        let words: Vec<(String, u64)> = ('a'..='y')
            .map(|letter| (String::from(letter).repeat(6), 10))
            .collect();
        let floor = Floor::new(&words, 1_000, 0.40);
        let holding = |count: usize| {
            let text: Vec<&str> = words.iter().take(count).map(|(term, _)| term.as_str()).collect();
            floor.relevant(&[floor.signs(&[&text.join(" ")], None)])
        };
        assert_eq!((holding(4), holding(6)), (vec![false], vec![true]));
    }

    #[test]
    fn a_query_without_words_has_no_sign_but_the_vector() {
        let floor = floor(&[]);
        assert_eq!(floor.relevant(&[floor.signs(&["anything"], None)]), [false]);
        assert_eq!(floor.relevant(&[floor.signs(&["anything"], Some(0.9))]), [true]);
    }
}

//! What of a person's facts is looked at for every request, side by side in memory: with ten thousand facts the time goes
//! into following pointers, and here are none.

use tidegate_core::{id::FactId, memory::Fact};

use super::{stem, words};
use crate::kinds::Kinds;

/// The bits of a table that tells most words that are not in a question.
const BITS: usize = 4_096;

/// An index of a person's facts.
#[derive(Debug, Default)]
pub struct Index {
    /// The place of each fact's kind in the table of kinds.
    places: Vec<Option<u16>>,
    /// Where the stems of each fact end; they begin where those of the fact before it end.
    ends: Vec<u32>,
    stems: Vec<u64>,
    /// The facts in the order of their ids.
    by_id: Vec<u32>,
}

impl Index {
    /// Indexes facts by the table that they were derived by.
    pub fn of(kinds: &Kinds, facts: &[Fact]) -> Self {
        let mut index = Self::default();
        for of_kind in facts.chunk_by(|left, right| left.kind == right.kind) {
            let name = of_kind.first().map_or("", |fact| fact.kind.as_str());
            let place = kinds.position(name).and_then(|place| u16::try_from(place).ok());
            for fact in of_kind {
                index.places.push(place);
                index
                    .stems
                    .extend(words(&fact.value).map(|word| hash(&stem(word))));
                index
                    .ends
                    .push(u32::try_from(index.stems.len()).unwrap_or(u32::MAX));
            }
        }
        index.by_id = (0..).take(facts.len()).collect();
        let id = |at: &u32| facts.get(*at as usize).map(|fact| fact.id.as_str());
        index
            .by_id
            .sort_unstable_by(|left, right| id(left).cmp(&id(right)));
        index
    }

    /// Where a fact stands among the facts that were indexed.
    pub fn position(&self, facts: &[Fact], id: &FactId) -> Option<usize> {
        let found = self.by_id.binary_search_by(|at| {
            let known = facts.get(*at as usize).map(|fact| fact.id.as_str());
            known.cmp(&Some(id.as_str()))
        });
        self.by_id.get(found.ok()?).map(|at| *at as usize)
    }

    /// The place of a fact's kind.
    pub(super) fn place(&self, fact: usize) -> Option<usize> {
        self.places.get(fact).copied().flatten().map(usize::from)
    }

    /// The stems of a fact's words.
    pub(super) fn stems(&self, fact: usize) -> &[u64] {
        let end = |fact: usize| self.ends.get(fact).map_or(0, |end| *end as usize);
        let start = fact.checked_sub(1).map_or(0, end);
        self.stems.get(start..end(fact)).unwrap_or_default()
    }
}

/// A word as a number (FNV-1a). Two words with the same one are not met in practice; and if so, a note is taken for more
/// to the point than it is.
pub(super) fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The words of a question.
pub(super) struct Stems {
    hashes: Vec<u64>,
    bits: [u64; BITS / 64],
}

impl Stems {
    pub(super) fn of<S: AsRef<str>>(stems: impl Iterator<Item = S>) -> Self {
        let mut hashes: Vec<u64> = stems.map(|stem| hash(stem.as_ref())).collect();
        hashes.sort_unstable();
        let mut bits = [0_u64; BITS / 64];
        for hash in &hashes {
            let (word, bit) = place(*hash);
            if let Some(word) = bits.get_mut(word) {
                *word |= bit;
            }
        }
        Self { hashes, bits }
    }

    /// Whether the question has the word of that number.
    pub(super) fn hold(&self, hash: u64) -> bool {
        let (word, bit) = place(hash);
        self.bits.get(word).is_some_and(|word| word & bit != 0) && self.hashes.binary_search(&hash).is_ok()
    }
}

/// The bit of a number in the table.
fn place(hash: u64) -> (usize, u64) {
    let at = usize::try_from(hash % BITS as u64).unwrap_or_default();
    (at / 64, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::{
        derive,
        tests::{anybody, time},
    };

    #[test]
    fn every_fact_is_found_by_its_id_with_its_words() {
        let kinds = Kinds::shipped().unwrap();
        let mut person = anybody();
        for value in ["tables", "short answers", "old clocks and maps"] {
            person.say("preference", value, time("03-02"), |_| {});
        }
        person.say("grade_level", "4", time("03-02"), |_| {});
        let facts = derive(&kinds, &person.user, time("03-04"), &person.observations);
        let index = Index::of(&kinds, &facts);
        for (at, fact) in facts.iter().enumerate() {
            assert_eq!(index.position(&facts, &fact.id), Some(at));
            assert_eq!(index.place(at), kinds.position(&fact.kind));
            assert_eq!(
                index.stems(at).len(),
                words(&fact.value).count(),
                "{}",
                fact.value
            );
        }
        assert_eq!(index.position(&facts, &FactId::new("fact_none")), None);
        assert!(index.stems(facts.len()).is_empty() && index.place(facts.len()).is_none());
    }

    #[test]
    fn a_question_holds_its_words_and_no_others() {
        let stems = Stems::of(["clock", "map"].iter());
        assert!(stems.hold(hash("clock")) && stems.hold(hash("map")));
        let others = ["", "cloc", "clocks", "table", "pam"];
        assert!(others.iter().all(|word| !stems.hold(hash(word))));
    }
}

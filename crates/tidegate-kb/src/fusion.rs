//! The ranks of words and of vectors, joined.
//!
//! Pure: lists in, one list out. Which way and with which weight belongs to the embedding model
//! ([`Calibration`](tidegate_core::embedding::Calibration)): a strong model deserves half, a weak one a third, and rank
//! sums punish a weak one's whole tail.

use std::collections::HashMap;

use tidegate_core::{embedding::Fusion, knowledge::Leg, port::ChunkKey};

/// What one way of looking found, best first.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    /// Keys and scores; greater is better.
    pub found: &'a [(ChunkKey, f32)],
    /// How many were asked for. Where fewer came, everything else scores nothing.
    pub asked: usize,
}

/// A chunk after fusion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fused {
    /// Its key.
    pub key: ChunkKey,
    /// From 0 to 1.
    pub score: f32,
    /// What the words said of it.
    pub words: Option<Leg>,
    /// What the vectors said of it.
    pub vectors: Option<Leg>,
}

/// Joins both lists, best first. Where there are no vectors at all (`None`), words alone decide.
pub fn fuse(words: List<'_>, vectors: Option<List<'_>>, fusion: Fusion) -> Vec<Fused> {
    let (words_share, vectors_share) = match (vectors, fusion) {
        (None, _) => (1.0, 0.0),
        (Some(_), Fusion::Convex { vector_weight }) => {
            let weight = vector_weight.clamp(0.0, 1.0);
            (1.0 - weight, weight)
        }
        (Some(_), Fusion::ReciprocalRank { .. }) => (0.5, 0.5),
    };
    let mut joined: HashMap<ChunkKey, Fused> = HashMap::new();
    add(&mut joined, words, words_share, fusion, |fused, leg| {
        fused.words = Some(leg);
    });
    if let Some(vectors) = vectors {
        add(&mut joined, vectors, vectors_share, fusion, |fused, leg| {
            fused.vectors = Some(leg);
        });
    }
    let mut fused: Vec<Fused> = joined.into_values().collect();
    fused.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.key.cmp(&right.key)));
    fused
}

/// In words, for people.
pub fn describe(fusion: Fusion, with_vectors: bool) -> String {
    if !with_vectors {
        return "words alone".to_owned();
    }
    match fusion {
        Fusion::Convex { vector_weight } => format!(
            "weighted sum of both scores, each spread over 0 to 1: {:.2} words, {vector_weight:.2} vectors",
            1.0 - vector_weight
        ),
        Fusion::ReciprocalRank { k } => format!("sum of 1/({k} + rank) of words and of vectors"),
    }
}

fn add(
    joined: &mut HashMap<ChunkKey, Fused>,
    list: List<'_>,
    share: f32,
    fusion: Fusion,
    mark: impl Fn(&mut Fused, Leg),
) {
    let spread = Spread::of(list);
    for (position, (key, score)) in list.found.iter().enumerate() {
        let rank = position + 1;
        let part = match fusion {
            Fusion::Convex { .. } => spread.place(*score),
            Fusion::ReciprocalRank { k } => reciprocal(k, rank),
        };
        let fused = joined.entry(*key).or_insert(Fused {
            key: *key,
            score: 0.0,
            words: None,
            vectors: None,
        });
        fused.score = (fused.score + share * part).clamp(0.0, 1.0);
        mark(fused, Leg { rank, score: *score });
    }
}

/// 1/(k + rank), as a share of what the first one gets.
fn reciprocal(k: u32, rank: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "ranks are small numbers")]
    let (k, rank) = (k as f32, rank as f32);
    (k + 1.0) / (k + rank)
}

/// The range of a list's scores.
struct Spread {
    least: f32,
    range: f32,
}

impl Spread {
    fn of(list: List<'_>) -> Self {
        let scores = || list.found.iter().map(|(_, score)| *score);
        let least = scores().fold(f32::INFINITY, f32::min);
        let greatest = scores().fold(f32::NEG_INFINITY, f32::max);
        // What is not in a list that was not filled has nothing of what was looked for: that is where zero is. The last
        // of three that share a word must not count for as little as one that shares none.
        let least = if list.found.len() < list.asked {
            least.min(0.0)
        } else {
            least
        };
        Self {
            least,
            range: greatest - least,
        }
    }

    fn place(&self, score: f32) -> f32 {
        if self.range > 0.0 {
            (score - self.least) / self.range
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(found: &[(ChunkKey, f32)]) -> List<'_> {
        List {
            found,
            asked: found.len(),
        }
    }

    fn keys(fused: &[Fused]) -> Vec<ChunkKey> {
        fused.iter().map(|fused| fused.key).collect()
    }

    const HALF: Fusion = Fusion::Convex { vector_weight: 0.5 };
    const RANKS: Fusion = Fusion::ReciprocalRank { k: 20 };

    #[test]
    fn sums_are_what_they_say() {
        let words = [(1, 9.0), (2, 5.0), (3, 1.0)];
        let vectors = [(2, 0.8), (4, 0.4)];
        let fused = fuse(
            list(&words),
            Some(list(&vectors)),
            Fusion::Convex { vector_weight: 0.4 },
        );
        assert_eq!(keys(&fused), [2, 1, 3, 4]);
        assert!((fused[0].score - (0.6 * 0.5 + 0.4)).abs() < 1e-6);
        assert_eq!(fused[0].words, Some(Leg { rank: 2, score: 5.0 }));
        assert_eq!(fused[0].vectors, Some(Leg { rank: 1, score: 0.8 }));
        let fused = fuse(list(&words), Some(list(&vectors)), RANKS);
        assert_eq!(keys(&fused), [2, 1, 4, 3]);
        assert!((fused[0].score - 0.5 * (21.0 / 22.0 + 1.0)).abs() < 1e-6);
    }

    #[test]
    fn a_list_that_was_not_filled_begins_at_zero() {
        let words = [(1, 9.0), (2, 8.0)];
        let short = List {
            found: &words,
            asked: 200,
        };
        let fused = fuse(short, None, HALF);
        assert!((fused[1].score - 8.0 / 9.0).abs() < 1e-6);
        let full = fuse(list(&words), None, HALF);
        assert!(full[1].score.abs() < 1e-6);
    }

    #[test]
    fn nothing_and_one_and_equals_have_an_outcome() {
        assert!(fuse(list(&[]), None, HALF).is_empty());
        assert!(fuse(list(&[]), Some(list(&[])), RANKS).is_empty());
        let one = fuse(list(&[(7, 0.0)]), None, HALF);
        assert!((one[0].score - 1.0).abs() < 1e-6);
        let equals = fuse(list(&[(9, 2.0), (3, 2.0)]), None, HALF);
        assert_eq!(keys(&equals), [3, 9]);
        let wild = fuse(
            list(&[(1, 1.0)]),
            Some(list(&[(2, 1.0)])),
            Fusion::Convex { vector_weight: 7.0 },
        );
        assert_eq!(keys(&wild), [2, 1]);
    }

    fn leg() -> impl Strategy<Value = Vec<(ChunkKey, f32)>> {
        prop::collection::btree_map(0..60_i64, -1000..1000_i32, 0..40).prop_map(|map| {
            #[expect(clippy::cast_precision_loss, reason = "three digits")]
            let mut found: Vec<_> = map
                .into_iter()
                .map(|(key, score)| (key, score as f32 / 100.0))
                .collect();
            found.sort_by(|left, right| right.1.total_cmp(&left.1));
            found
        })
    }

    fn either() -> impl Strategy<Value = Fusion> {
        prop_oneof![
            (0.0..=1.0_f32).prop_map(|vector_weight| Fusion::Convex { vector_weight }),
            (0..100_u32).prop_map(|k| Fusion::ReciprocalRank { k }),
        ]
    }

    proptest! {
        #[test]
        fn every_chunk_is_there_once_with_a_score_from_0_to_1(words in leg(), vectors in leg(), fusion in either()) {
            let fused = fuse(list(&words), Some(list(&vectors)), fusion);
            let mut expected: Vec<ChunkKey> = words.iter().chain(&vectors).map(|found| found.0).collect();
            expected.sort_unstable();
            expected.dedup();
            let mut found = keys(&fused);
            found.sort_unstable();
            prop_assert_eq!(found, expected);
            prop_assert!(fused.iter().all(|fused| (0.0..=1.0).contains(&fused.score)));
            prop_assert!(fused.is_sorted_by(|left, right| left.score >= right.score));
        }

        #[test]
        fn words_alone_keep_their_order(words in leg(), fusion in either()) {
            let fused = fuse(list(&words), None, fusion);
            let scores: Vec<f32> = fused.iter().filter_map(|fused| fused.words).map(|leg| leg.score).collect();
            prop_assert!(scores.is_sorted_by(|left, right| left >= right));
        }

        #[test]
        fn what_is_first_in_both_is_first(words in leg(), vectors in leg(), fusion in either()) {
            let words: Vec<_> = std::iter::once((100, 11.0)).chain(words).collect();
            let vectors: Vec<_> = std::iter::once((100, 11.0)).chain(vectors).collect();
            prop_assert!((fuse(list(&words), Some(list(&vectors)), fusion)[0].score - 1.0).abs() < 1e-5);
        }

        #[test]
        fn the_unit_of_a_score_does_not_matter(words in leg(), vectors in leg(), fusion in either()) {
            let scaled: Vec<_> = words.iter().map(|(key, score)| (*key, score * 3.0 + 5.0)).collect();
            let plain = fuse(list(&words), Some(list(&vectors)), fusion);
            let other = fuse(list(&scaled), Some(list(&vectors)), fusion);
            for (left, right) in plain.iter().map(|fused| (fused.key, fused.score)).map(|(key, score)| {
                (score, other.iter().find(|fused| fused.key == key).map_or(-1.0, |fused| fused.score))
            }) {
                prop_assert!((left - right).abs() < 1e-4);
            }
        }
    }
}

//! The order of an answer: who may move above whom because of where it comes from, and by how much.

use std::collections::HashMap;

use tidegate_core::{knowledge::Authority, port::ChunkKey};

use crate::index::cosine;

/// How far down the list the pair rule looks: what stands lower does not answer the question well enough to be carried
/// to its top.
pub const PAIR_TOP: usize = 20;
/// What share of the other one's score a passage must have by itself to move above it. A source that answers half as well
/// says the same in its own words; one that answers a quarter as well is only near the matter, and lifting it would take
/// away a genuine answer. Chosen on the development set as a whole (28 questions), where shares from 0.35 to 0.50 keep
/// every answer at cosines from 0.55 to 0.65 with both models that were measured, and none at all loses one with the
/// built-in model.
pub const SCORE_SHARE_MIN: f32 = 0.40;
/// The greatest nudge, as a share of the range of scores.
pub const NUDGE_MAX: f32 = 0.10;

/// A passage on its way to its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its key.
    pub key: ChunkKey,
    /// Its document's authority.
    pub authority: Authority,
    /// Its score after fusion, from 0 to 1.
    pub score: f32,
}

/// What authority did to a passage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Move {
    /// It was given a little more.
    Nudged {
        /// The passage.
        key: ChunkKey,
        /// How much.
        by: f32,
    },
    /// It went from one rank to another, just above a less trusted passage on the same matter. Ranks count from 1.
    Lifted {
        /// The passage.
        key: ChunkKey,
        /// The one it stands above now.
        above: ChunkKey,
        /// How near both are.
        cosine: f32,
        /// Its rank before.
        from: usize,
        /// Its rank after.
        to: usize,
    },
}

/// How authority may change an order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Order {
    /// What the most trusted documents are given, as a share of the range of scores; at most [`NUDGE_MAX`].
    pub nudge: f32,
    /// The cosine from which two passages are about the same thing; `None` leaves the pair rule out.
    pub pair_cosine_min: Option<f32>,
}

impl Order {
    /// Whether anything could come of it: where all are trusted alike, nothing does.
    pub fn matters(&self, candidates: &[Candidate]) -> bool {
        let mut authorities = candidates.iter().map(|candidate| candidate.authority);
        let first = authorities.next();
        authorities.any(|authority| Some(authority) != first)
    }

    /// The first step: gives candidates, best first, what their authority adds.
    pub fn nudge(&self, candidates: &mut [Candidate]) -> Vec<Move> {
        let nudge = self.nudge.clamp(0.0, NUDGE_MAX);
        let range = range(candidates);
        if nudge <= 0.0 || range <= 0.0 {
            return Vec::new();
        }
        let mut moves = Vec::new();
        for candidate in candidates.iter_mut() {
            let by = nudge * range * share(candidate.authority);
            if by > 0.0 {
                candidate.score += by;
                moves.push(Move::Nudged {
                    key: candidate.key,
                    by,
                });
            }
        }
        candidates.sort_by(|left, right| right.score.total_cmp(&left.score));
        moves
    }

    /// The second step: the pair rule over candidates in the order of the first. `vectors` are those of the first
    /// [`PAIR_TOP`], as far as there are any; a passage without one is about the same thing as nothing.
    pub fn lift(&self, candidates: &mut Vec<Candidate>, vectors: &HashMap<ChunkKey, Vec<f32>>) -> Vec<Move> {
        self.pair_cosine_min
            .map_or_else(Vec::new, |cosine_min| lift(candidates, vectors, cosine_min))
    }
}

/// How much of the nudge an authority is given.
fn share(authority: Authority) -> f32 {
    match authority {
        Authority::Secondary => 0.0,
        Authority::Interpretation => 0.5,
        Authority::Primary => 1.0,
    }
}

fn range(candidates: &[Candidate]) -> f32 {
    let scores = || candidates.iter().map(|candidate| candidate.score);
    scores().fold(f32::NEG_INFINITY, f32::max) - scores().fold(f32::INFINITY, f32::min)
}

fn lift(
    candidates: &mut Vec<Candidate>,
    vectors: &HashMap<ChunkKey, Vec<f32>>,
    cosine_min: f32,
) -> Vec<Move> {
    let mut moves = Vec::new();
    let top = candidates.len().min(PAIR_TOP);
    // From the top down: whoever is looked at stands where it began, since lifts only go over what was before it.
    for from in 1..top {
        let Some(trusted) = candidates.get(from).copied() else {
            break;
        };
        let Some(vector) = vectors.get(&trusted.key) else {
            continue;
        };
        let target = candidates.iter().take(from).enumerate().find_map(|(to, other)| {
            let fits = other.authority < trusted.authority && trusted.score >= SCORE_SHARE_MIN * other.score;
            let near = cosine(vector, vectors.get(&other.key).filter(|_| fits)?);
            (near >= cosine_min).then_some((to, other.key, near))
        });
        if let Some((to, above, cosine)) = target {
            let lifted = candidates.remove(from);
            candidates.insert(to, lifted);
            moves.push(Move::Lifted {
                key: lifted.key,
                above,
                cosine,
                from: from + 1,
                to: to + 1,
            });
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate(key: ChunkKey, authority: Authority, score: f32) -> Candidate {
        Candidate {
            key,
            authority,
            score,
        }
    }

    fn keys(candidates: &[Candidate]) -> Vec<ChunkKey> {
        candidates.iter().map(|candidate| candidate.key).collect()
    }

    /// Vectors in a plane, by their angle in degrees.
    fn angles(angles: &[(ChunkKey, f32)]) -> HashMap<ChunkKey, Vec<f32>> {
        angles
            .iter()
            .map(|(key, degrees)| (*key, vec![degrees.to_radians().cos(), degrees.to_radians().sin()]))
            .collect()
    }

    const PAIR: Order = Order {
        nudge: 0.0,
        pair_cosine_min: Some(0.6),
    };

    #[test]
    fn a_source_moves_just_above_the_summary_of_it_and_no_further() {
        use Authority::{Interpretation, Primary, Secondary};
        let mut candidates = vec![
            candidate(1, Secondary, 1.0),
            candidate(2, Secondary, 0.9),
            candidate(3, Interpretation, 0.8),
            candidate(4, Primary, 0.7),
        ];
        // 4 is about what 2 is about, and 3 about what 4 is about; 1 is about something else.
        let vectors = angles(&[(1, 180.0), (2, 10.0), (3, -60.0), (4, -20.0)]);
        let moves = PAIR.lift(&mut candidates, &vectors);
        assert_eq!(keys(&candidates), [1, 4, 2, 3]);
        assert!(
            matches!(
                moves[..],
                [Move::Lifted {
                    key: 4,
                    above: 2,
                    from: 4,
                    to: 2,
                    ..
                }]
            ),
            "{moves:?}"
        );
    }

    #[test]
    fn several_sources_keep_their_order() {
        use Authority::{Primary, Secondary};
        let mut candidates = vec![
            candidate(1, Secondary, 1.0),
            candidate(2, Primary, 0.9),
            candidate(3, Primary, 0.8),
            candidate(4, Secondary, 0.7),
        ];
        let vectors = angles(&[(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0)]);
        PAIR.lift(&mut candidates, &vectors);
        assert_eq!(keys(&candidates), [2, 3, 1, 4]);
    }

    #[test]
    fn what_hardly_answers_is_not_lifted() {
        use Authority::{Primary, Secondary};
        let mut candidates = vec![candidate(1, Secondary, 1.0), candidate(2, Primary, 0.39)];
        let vectors = angles(&[(1, 0.0), (2, 0.0)]);
        assert!(PAIR.lift(&mut candidates, &vectors).is_empty());
        assert_eq!(keys(&candidates), [1, 2]);
        candidates[1].score = 0.41;
        assert_eq!(PAIR.lift(&mut candidates, &vectors).len(), 1);
        assert_eq!(keys(&candidates), [2, 1]);
    }

    #[test]
    fn without_vectors_nothing_is_about_the_same_thing() {
        use Authority::{Primary, Secondary};
        let mut candidates = vec![candidate(1, Secondary, 1.0), candidate(2, Primary, 0.9)];
        assert!(PAIR.lift(&mut candidates, &HashMap::new()).is_empty());
    }

    #[test]
    fn below_the_top_nothing_moves() {
        let mut candidates: Vec<Candidate> = (0..30)
            .map(|key| {
                candidate(
                    key,
                    if key == 25 {
                        Authority::Primary
                    } else {
                        Authority::Secondary
                    },
                    1.0,
                )
            })
            .collect();
        let vectors = (0..30).map(|key| (key, vec![1.0, 0.0])).collect();
        assert!(PAIR.lift(&mut candidates, &vectors).is_empty());
    }

    #[test]
    fn the_nudge_is_bounded_and_told() {
        use Authority::{Interpretation, Primary, Secondary};
        let order = Order {
            nudge: 9.0,
            pair_cosine_min: None,
        };
        let mut candidates = vec![
            candidate(1, Secondary, 1.0),
            candidate(2, Primary, 0.95),
            candidate(3, Interpretation, 0.85),
            candidate(4, Secondary, 0.0),
        ];
        let moves = order.nudge(&mut candidates);
        assert_eq!(keys(&candidates), [2, 1, 3, 4]);
        assert_eq!(
            moves,
            [
                Move::Nudged { key: 2, by: 0.1 },
                Move::Nudged { key: 3, by: 0.05 }
            ]
        );
        assert!(order.matters(&candidates));
        assert!(!order.matters(&candidates[1..2]) && !order.matters(&[]));
    }

    fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
        prop::collection::vec((0..3_usize, 0.0..1.0_f32), 0..30).prop_map(|drawn| {
            let mut candidates: Vec<Candidate> = (0..)
                .zip(drawn)
                .map(|(key, (authority, score))| candidate(key, Authority::ALL[authority], score))
                .collect();
            candidates.sort_by(|left, right| right.score.total_cmp(&left.score));
            candidates
        })
    }

    proptest! {
        #[test]
        fn nobody_is_lost_and_the_least_trusted_pass_nobody(candidates in any_candidates(), spread in prop::collection::vec(0.0..360.0_f32, 30)) {
            let vectors = angles(&(0..).zip(spread).collect::<Vec<_>>());
            let mut settled = candidates.clone();
            PAIR.lift(&mut settled, &vectors);
            let mut sorted = keys(&settled);
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..).take(candidates.len()).collect::<Vec<ChunkKey>>());
            let place = |list: &[Candidate], key| list.iter().position(|candidate| candidate.key == key).unwrap();
            for (rank, above) in candidates.iter().enumerate() {
                for below in &candidates[rank + 1..] {
                    // The least trusted never pass anybody.
                    let passed = place(&settled, below.key) < place(&settled, above.key);
                    prop_assert!(!passed || below.authority > Authority::Secondary);
                }
            }
        }
    }
}

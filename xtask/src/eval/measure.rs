//! The measures of a ranked list against graded answers.

use std::collections::HashMap;

/// How far down a list counts.
pub(super) const DEPTH: usize = 10;

/// The means of some lists.
#[derive(Clone, Copy, Default)]
pub(super) struct Scores {
    /// Discounted cumulative gain over its greatest possible value, with the grade itself as the gain and log2 as the
    /// discount (Järvelin and Kekäläinen, 2002).
    pub(super) ndcg: f64,
    /// The share of the answers that are there.
    pub(super) recall: f64,
    /// One over the rank of the first answer.
    pub(super) reciprocal_rank: f64,
}

impl Scores {
    /// Those of one list.
    pub(super) fn of(list: &[String], grades: &HashMap<String, u32>) -> Self {
        let found: Vec<u32> = list
            .iter()
            .take(DEPTH)
            .map(|document| grades.get(document).copied().unwrap_or(0))
            .collect();
        let mut best: Vec<u32> = grades.values().copied().collect();
        best.sort_unstable_by(|left, right| right.cmp(left));
        let first = found.iter().position(|grade| *grade > 0);
        Self {
            ndcg: share(gain(&found), gain(&best)),
            recall: share(
                count(found.iter().filter(|grade| **grade > 0).count()),
                count(grades.len()),
            ),
            reciprocal_rank: first.map_or(0.0, |first| 1.0 / count(first + 1)),
        }
    }

    /// The means of many.
    pub(super) fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| share(all.iter().map(of).sum(), count(all.len()));
        Self {
            ndcg: mean(|scores| scores.ndcg),
            recall: mean(|scores| scores.recall),
            reciprocal_rank: mean(|scores| scores.reciprocal_rank),
        }
    }
}

fn gain(grades: &[u32]) -> f64 {
    (2..)
        .zip(grades.iter().take(DEPTH))
        .map(|(position, grade)| f64::from(*grade) / f64::from(position).log2())
        .sum()
}

/// A part of a whole; nothing of nothing is nothing.
pub(super) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines")]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn measures_are_those_of_the_books() {
        let grades: HashMap<String, u32> = [("a".to_owned(), 2), ("b".to_owned(), 1)].into();
        let list = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let perfect = Scores::of(&list(&["a", "b", "c"]), &grades);
        assert!(
            close(perfect.ndcg, 1.0) && close(perfect.recall, 1.0) && close(perfect.reciprocal_rank, 1.0)
        );
        let swapped = Scores::of(&list(&["x", "b", "a"]), &grades);
        let expected = (1.0 / 3_f64.log2() + 2.0 / 2.0) / (2.0 + 1.0 / 3_f64.log2());
        assert!(close(swapped.ndcg, expected) && close(swapped.reciprocal_rank, 0.5));
        let none = Scores::of(&[], &grades);
        assert!(close(none.ndcg + none.recall + none.reciprocal_rank, 0.0));
        let deep: Vec<String> = (0..10)
            .map(|number| number.to_string())
            .chain(["a".to_owned()])
            .collect();
        assert!(close(Scores::of(&deep, &grades).ndcg, 0.0));
    }
}

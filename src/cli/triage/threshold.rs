//! The threshold of a target rate of false positives, from marked scores. Pure arithmetic.

/// Marked questions about the agent below which no threshold is written.
pub(super) const ABOUT_MIN: usize = 10;

/// Marked tasks below which no threshold is written, whatever the rate.
const TASKS_MIN: usize = 20;

/// What a threshold does to the marked lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    /// The threshold.
    pub(super) threshold: f64,
    /// The share of questions about the agent at or above it.
    pub(super) recall: f64,
    /// The share of tasks at or above it.
    pub(super) false_positives: f64,
}

/// The lowest threshold at which no larger share of `tasks` than `max` lies at or above it; `None` where no question
/// about the agent would be found.
pub(super) fn find(about: &[f64], tasks: &[f64], max: f64) -> Option<Found> {
    let mut borders: Vec<f64> = about
        .iter()
        .chain(tasks)
        .copied()
        .filter(|score| score.is_finite())
        .collect();
    borders.sort_by(f64::total_cmp);
    borders.dedup();
    let share = |scores: &[f64], threshold: f64| {
        let count = |scores: &mut dyn Iterator<Item = &f64>| {
            f64::from(u32::try_from(scores.count()).unwrap_or(u32::MAX))
        };
        let over = count(&mut scores.iter().filter(|score| **score >= threshold));
        over / count(&mut scores.iter()).max(1.0)
    };
    let at = borders.partition_point(|threshold| share(tasks, *threshold) > max);
    let lowest = *borders.get(at)?;
    // Half-way to the next lower score: as far from what must not fire as from what may.
    let below = at.checked_sub(1).and_then(|at| borders.get(at));
    let threshold = below.map_or(lowest, |below| f64::midpoint(*below, lowest));
    let recall = share(about, threshold);
    (recall > 0.0).then(|| Found {
        threshold,
        recall,
        false_positives: share(tasks, threshold),
    })
}

/// How many tasks must be marked so that one more or less is no larger step than the rate.
pub(super) fn tasks_needed(max: f64) -> usize {
    // A hundredth of a percent asks for ten thousand; nobody marks more.
    (1..10_000_u32)
        .find(|count| f64::from(*count) * max >= 1.0 - 1e-9)
        .map_or(10_000, |count| usize::try_from(count).unwrap_or(usize::MAX))
        .max(TASKS_MIN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_lowest_bearable_threshold_is_found() {
        let about = [0.9, 0.6, 0.5, 0.2];
        let tasks: Vec<f64> = (0..50).map(|at| f64::from(at) / 100.0).collect();
        // One of fifty may: 0.49 fires, 0.48 does not.
        let found = find(&about, &tasks, 0.02).unwrap();
        assert!((found.threshold - 0.485).abs() < 1e-9, "{found:?}");
        assert!((found.recall - 0.75).abs() < 1e-9 && (found.false_positives - 0.02).abs() < 1e-9);
        let strict = find(&about, &tasks, 0.0).unwrap();
        assert!((strict.threshold - 0.495).abs() < 1e-9, "{strict:?}");
        assert_eq!(find(&[0.1], &[0.5], 0.0), None);
        assert_eq!(find(&[], &[], 0.02), None);
        assert!((find(&[0.3], &[], 0.02).unwrap().threshold - 0.3).abs() < 1e-12);
        assert_eq!(
            (tasks_needed(0.02), tasks_needed(0.5), tasks_needed(0.0)),
            (50, 20, 10_000)
        );
    }

    fn count(scores: &[f64], threshold: f64) -> f64 {
        let over = scores.iter().filter(|score| **score >= threshold).count();
        f64::from(u32::try_from(over).unwrap())
    }

    proptest! {
        #[test]
        fn the_rate_is_kept(
            about in proptest::collection::vec(-2.0_f64..2.0, 1..40),
            tasks in proptest::collection::vec(-2.0_f64..2.0, 1..40),
            max in 0.0_f64..0.5,
        ) {
            if let Some(found) = find(&about, &tasks, max) {
                prop_assert!(found.false_positives <= max + 1e-12);
                let over = count(&tasks, found.threshold);
                prop_assert!((over / count(&tasks, f64::MIN) - found.false_positives).abs() < 1e-12);
            } else {
                let best = about.iter().copied().fold(f64::MIN, f64::max);
                let over = count(&tasks, best);
                prop_assert!(over > max * count(&tasks, f64::MIN));
            }
        }
    }
}

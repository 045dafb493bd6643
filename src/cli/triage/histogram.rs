//! Scores in bins, of a fixed number whatever the log holds.

/// The width of a bin.
pub(super) const WIDTH: f64 = 0.1;

/// The least score with a bin of its own; lower ones share it. A probe's scores lie within about -2 and 2.
const LEAST: f64 = -3.0;

/// How many bins there are.
const BINS: usize = 60;

/// One bin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bin {
    /// Decided as being about the agent.
    pub(super) yes: u64,
    /// All others.
    pub(super) no: u64,
}

impl Bin {
    pub(super) fn count(self) -> u64 {
        self.yes + self.no
    }
}

/// Counts by score.
#[derive(Debug, Clone)]
pub(super) struct Histogram(Vec<Bin>);

impl Default for Histogram {
    fn default() -> Self {
        Self(vec![Bin::default(); BINS])
    }
}

impl Histogram {
    pub(super) fn add(&mut self, score: f64, is_yes: bool) {
        if let Some(bin) = self.0.get_mut(place(score)) {
            *(if is_yes { &mut bin.yes } else { &mut bin.no }) += 1;
        }
    }

    /// The bins from the first with a count to the last, each with its lower border.
    pub(super) fn used(&self) -> Vec<(f64, Bin)> {
        let filled = |(_, bin): &(usize, &Bin)| bin.count() > 0;
        let first = self.0.iter().enumerate().find(filled).map(|(at, _)| at);
        let last = self.0.iter().enumerate().rev().find(filled).map(|(at, _)| at);
        let (Some(first), Some(last)) = (first, last) else {
            return Vec::new();
        };
        let bins = self.0.iter().enumerate().take(last + 1).skip(first);
        bins.map(|(at, bin)| (border(at), *bin)).collect()
    }

    pub(super) fn highest(&self) -> u64 {
        self.0.iter().map(|bin| bin.count()).max().unwrap_or_default()
    }
}

/// The lower border of a bin.
fn border(at: usize) -> f64 {
    LEAST + WIDTH * f64::from(u32::try_from(at).unwrap_or_default())
}

/// The bin of a score: the last one whose border it reaches.
fn place(score: f64) -> usize {
    (1..BINS)
        .rev()
        .find(|at| score >= border(*at) - 1e-9)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_has_a_bin() {
        let mut histogram = Histogram::default();
        for (score, is_yes) in [
            (-99.0, false),
            (0.0, false),
            (0.05, true),
            (0.1, true),
            (99.0, true),
            (f64::NAN, false),
        ] {
            histogram.add(score, is_yes);
        }
        let used = histogram.used();
        assert_eq!(used.len(), BINS);
        assert_eq!(used[0].1, Bin { yes: 0, no: 2 });
        let near = |wanted: f64| {
            used.iter()
                .find(|(border, _)| (border - wanted).abs() < 1e-6)
                .unwrap()
                .1
        };
        assert_eq!(
            (near(0.0), near(0.1)),
            (Bin { yes: 1, no: 1 }, Bin { yes: 1, no: 0 })
        );
        assert_eq!((used[BINS - 1].1.yes, histogram.highest()), (1, 2));
        assert!(Histogram::default().used().is_empty());
    }
}

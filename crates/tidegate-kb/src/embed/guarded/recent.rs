//! Vectors of recent queries, a bounded number of them.

use std::collections::HashMap;

/// More entries are not kept, whatever is asked for: what is oldest is found by looking at all.
const ENTRIES_MAX: usize = 10_000;

/// A query by the SHA-256 of its text, which is of any length.
type Key = [u8; 32];

/// A vector, or that the text has none.
type Vector = Option<Vec<f32>>;

/// The memory. What was not asked for the longest goes first.
#[derive(Debug)]
pub(super) struct Recent {
    entries: HashMap<Key, (Vector, u64)>,
    entries_max: usize,
    /// Counts the uses: the order of the entries.
    uses: u64,
}

impl Recent {
    pub(super) fn new(entries_max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            entries_max: entries_max.min(ENTRIES_MAX),
            uses: 0,
        }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<Vector> {
        self.uses += 1;
        let (vector, used) = self.entries.get_mut(key)?;
        *used = self.uses;
        Some(vector.clone())
    }

    pub(super) fn put(&mut self, key: Key, vector: Vector) {
        if self.entries_max == 0 {
            return;
        }
        self.uses += 1;
        self.entries.insert(key, (vector, self.uses));
        if self.entries.len() > self.entries_max {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.entries.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_the_longest_goes_first() {
        let mut recent = Recent::new(2);
        recent.put([1; 32], None);
        recent.put([2; 32], Some(vec![1.0]));
        assert_eq!(recent.get(&[1; 32]), Some(None));
        recent.put([3; 32], None);
        assert_eq!(recent.get(&[2; 32]), None);
        assert_eq!(recent.get(&[1; 32]), Some(None));
        assert_eq!(recent.entries.len(), 2);
        let mut none = Recent::new(0);
        none.put([1; 32], None);
        assert_eq!(none.get(&[1; 32]), None);
        assert_eq!(Recent::new(usize::MAX).entries_max, ENTRIES_MAX);
    }
}

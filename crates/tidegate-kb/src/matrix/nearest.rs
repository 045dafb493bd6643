//! The best so many of a stream of scores, in one heap.

use std::{cmp::Ordering, collections::BinaryHeap};

use tidegate_core::port::ChunkKey;

/// The best of what was offered, at most so many.
#[derive(Debug)]
pub(super) struct Nearest {
    count: usize,
    /// What an offer must beat once it is full.
    bar: f32,
    /// The worst on top.
    heap: BinaryHeap<Offer>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Offer {
    key: ChunkKey,
    score: f32,
}

impl Eq for Offer {}

impl Ord for Offer {
    /// The worse one is the greater. Of equal ones the later key is worse, so that the order never depends on where
    /// rows lie.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.key.cmp(&other.key))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Nearest {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            bar: f32::NEG_INFINITY,
            heap: BinaryHeap::with_capacity(count + 1),
        }
    }

    pub(super) fn offer(&mut self, key: ChunkKey, score: f32) {
        // Nearly every row ends here.
        if score < self.bar {
            return;
        }
        self.take(Offer { key, score });
    }

    fn take(&mut self, offer: Offer) {
        self.heap.push(offer);
        if self.heap.len() > self.count {
            self.heap.pop();
        }
        if self.heap.len() == self.count {
            self.bar = self.heap.peek().map_or(f32::INFINITY, |worst| worst.score);
        }
    }

    /// Best first.
    pub(super) fn into_sorted(self) -> Vec<(ChunkKey, f32)> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|offer| (offer.key, offer.score)).collect()
    }
}

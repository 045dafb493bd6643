//! Whether words stand in something else that was in view.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::{Other, Source, sentence};

/// How many words in a row are looked up at once.
const RUN: usize = 4;

/// How many words of a longer sentence must stand in a row elsewhere for them to be copied.
const COPIED_WORDS: usize = 8;

/// How much text may be in view, in bytes. Beyond that nothing is kept.
const VIEW_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The runs of words that stand in what was in view.
#[derive(Debug, Default)]
pub(super) struct Index {
    runs: Vec<(Source, HashSet<u64>)>,
}

impl Index {
    /// Reads what was in view, or nothing if that is too much.
    pub(super) fn of<'t>(others: impl IntoIterator<Item = Other<'t>>) -> Option<Self> {
        let mut index = Self::default();
        let mut bytes = 0_usize;
        for other in others {
            bytes = bytes.saturating_add(other.text.len());
            if bytes > VIEW_BYTES_MAX {
                return None;
            }
            let words = sentence::words(other.text);
            let runs = words.windows(RUN).map(digest);
            match index.runs.iter_mut().find(|(source, _)| *source == other.source) {
                Some((_, known)) => known.extend(runs),
                None => index.runs.push((other.source, runs.collect())),
            }
        }
        Some(index)
    }

    /// Where words stand from the first to the last, if they are enough to tell.
    pub(super) fn holds(&self, words: &[String]) -> Option<Source> {
        if words.len() < RUN {
            return None;
        }
        let runs: Vec<u64> = words.windows(RUN).map(digest).collect();
        self.runs
            .iter()
            .find(|(_, known)| runs.iter().all(|run| known.contains(run)))
            .map(|(source, _)| *source)
    }

    /// Where a long part of the words stands.
    pub(super) fn holds_part(&self, words: &[String]) -> Option<Source> {
        words.windows(COPIED_WORDS).find_map(|part| self.holds(part))
    }
}

fn digest(words: &[String]) -> u64 {
    // The same within one reading, and nowhere kept.
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

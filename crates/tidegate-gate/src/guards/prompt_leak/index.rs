//! Where short stretches of letters stand in the prompt.

use std::collections::HashMap;

/// How many letters are looked up at once. Fewer would hold back more of an ordinary answer.
pub(super) const GRAM: usize = 14;

/// The most places of one stretch that are followed. A prompt that repeats itself more often says it once.
const PLACES_MAX: usize = 16;

/// The letters of a prompt.
#[derive(Debug)]
pub(super) struct Index {
    letters: Vec<u8>,
    places: HashMap<[u8; GRAM], Vec<usize>>,
}

impl Index {
    pub(super) fn of(letters: Vec<u8>) -> Self {
        let mut places: HashMap<[u8; GRAM], Vec<usize>> = HashMap::new();
        for (at, gram) in letters.windows(GRAM).enumerate() {
            if let Ok(gram) = gram.try_into() {
                let places = places.entry(gram).or_default();
                if places.len() < PLACES_MAX {
                    places.push(at);
                }
            }
        }
        Self { letters, places }
    }

    pub(super) fn len(&self) -> usize {
        self.letters.len()
    }

    pub(super) fn letter(&self, at: usize) -> Option<u8> {
        self.letters.get(at).copied()
    }

    /// Where a stretch begins.
    pub(super) fn places(&self, gram: impl Iterator<Item = u8>) -> impl Iterator<Item = usize> {
        let mut key = [0; GRAM];
        for (slot, letter) in key.iter_mut().zip(gram) {
            *slot = letter;
        }
        self.places.get(&key).into_iter().flatten().copied()
    }
}

//! What of a ranked list is worth a place in an answer.

use std::collections::HashMap;

use tidegate_core::port::StoredChunk;

/// How many passages of one stretch of a document an answer shows before others have had their turn.
const STRETCH_MAX: usize = 2;
/// How far apart two chunks of a stretch are.
const STRETCH_ORDINALS: u64 = 2;

/// Which of the chunks, best first, stay when each text is kept once: in the place of the first that has it, the one
/// of the most trusted document. The answer is a list of positions.
pub(super) fn once_each(chunks: &[&StoredChunk]) -> Vec<usize> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut kept: Vec<usize> = Vec::new();
    for (position, chunk) in chunks.iter().enumerate() {
        match places.get(chunk.text.trim()) {
            None => {
                places.insert(chunk.text.trim(), kept.len());
                kept.push(position);
            }
            Some(place) => {
                if let Some(standing) = kept.get_mut(*place)
                    && chunks
                        .get(*standing)
                        .is_some_and(|standing| standing.authority < chunk.authority)
                {
                    *standing = position;
                }
            }
        }
    }
    kept
}

/// The positions of the chunks with those behind all others that would be the third or later of one stretch of a
/// document: who wants to read on can, and the place is worth more to another document.
pub(super) fn spread(chunks: &[&StoredChunk]) -> Vec<usize> {
    let mut taken: HashMap<&str, Vec<u64>> = HashMap::new();
    let (mut kept, mut deferred) = (Vec::new(), Vec::new());
    for (position, chunk) in chunks.iter().enumerate() {
        let ordinals = taken.entry(&chunk.path).or_default();
        let near = ordinals
            .iter()
            .filter(|ordinal| ordinal.abs_diff(chunk.ordinal) <= STRETCH_ORDINALS)
            .count();
        if near >= STRETCH_MAX {
            deferred.push(position);
        } else {
            ordinals.push(chunk.ordinal);
            kept.push(position);
        }
    }
    kept.extend(deferred);
    kept
}

#[cfg(test)]
mod tests {
    use tidegate_core::knowledge::{Authority, CitationId, Format, Place};

    use super::*;

    fn chunk(path: &str, ordinal: u64, text: &str, authority: Authority) -> StoredChunk {
        StoredChunk {
            key: 0,
            citation: CitationId::of_digest(&[0; 32]),
            path: path.to_owned(),
            title: path.to_owned(),
            format: Format::Text,
            authority,
            ordinal,
            place: Place::default(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn equal_texts_stand_once_in_the_most_trusted_document() {
        let chunks = [
            chunk("a", 0, "one", Authority::Secondary),
            chunk("b", 0, "two", Authority::Secondary),
            chunk("c", 0, " one\n", Authority::Primary),
            chunk("d", 0, "one", Authority::Interpretation),
        ];
        assert_eq!(once_each(&chunks.iter().collect::<Vec<_>>()), [2, 1]);
        assert!(once_each(&[]).is_empty());
    }

    #[test]
    fn a_stretch_does_not_fill_the_answer() {
        let at = |path, ordinal| chunk(path, ordinal, "x", Authority::Secondary);
        let chunks = [
            at("a", 4),
            at("a", 5),
            at("a", 6),
            at("a", 40),
            at("b", 5),
            at("a", 3),
        ];
        assert_eq!(spread(&chunks.iter().collect::<Vec<_>>()), [0, 1, 3, 4, 2, 5]);
    }
}

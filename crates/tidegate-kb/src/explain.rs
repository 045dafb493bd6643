//! A search laid open, for people who ask why.

use tidegate_core::knowledge::{Leg, PassageExplained, SearchExplained};

use crate::{
    authority::Move,
    base::{Found, Standing},
    fusion,
};

/// How many passages beyond the answer are shown.
const BEYOND: usize = 20;

/// Everything that made the answer what it is.
pub(crate) fn explain(found: Found) -> SearchExplained {
    let relevant = found.relevant;
    SearchExplained {
        fusion: fusion::describe(found.fusion, found.model.is_some()),
        terms: found.terms.wanted,
        dropped_terms: found.terms.dropped,
        model: found.model,
        passages: found
            .standings
            .into_iter()
            .take(relevant + BEYOND)
            .map(passage)
            .collect(),
        relevant,
        words_only: found.words_only,
    }
}

fn passage(standing: Standing) -> PassageExplained {
    PassageExplained {
        words: standing.fused.words,
        vectors: standing.fused.vectors,
        fused: Leg {
            rank: standing.fused_rank,
            score: standing.fused.score,
        },
        authority_moves: standing.moves.clone(),
        passage: standing.into_passage(),
    }
}

/// A move as a sentence; `above` is the citation of the passage that it went over.
pub(crate) fn sentence(authority: &str, step: &Move, above: &str) -> String {
    match step {
        Move::Nudged { by, .. } => format!("its authority ({authority}) added {by:.3} to its score"),
        Move::Lifted { cosine, from, to, .. } => format!(
            "it is {authority} and on the same matter as {above} (cosine {cosine:.2}), so it moved above it, from rank {from} to {to}"
        ),
    }
}

//! How good the ranking is: words, vectors, and ways to join them.

use std::collections::HashSet;

use anyhow::Result;
use tidegate_core::embedding::Fusion;
use tidegate_core::knowledge::{Filter, SearchRequest};
use tidegate_core::port::KnowledgeBase;
use tidegate_kb::base::{Base, Options};

use super::bank::{self, Bank};
use super::baseline::Figures;
use super::collection::Collection;
use super::measure::Scores;

/// How many passages are asked for, so that there are enough documents where several passages are of one.
const PASSAGES: usize = 20;

/// The ways that are compared, by their names in the tables.
const WAYS: [(&str, Way); 8] = [
    ("words", Way::Words),
    ("vectors", Way::Joined(Fusion::Convex { vector_weight: 1.0 })),
    ("convex .3", Way::Joined(Fusion::Convex { vector_weight: 0.3 })),
    ("convex .4", Way::Joined(Fusion::Convex { vector_weight: 0.4 })),
    ("convex .5", Way::Joined(Fusion::Convex { vector_weight: 0.5 })),
    ("rrf 20", Way::Joined(Fusion::ReciprocalRank { k: 20 })),
    ("rrf 60", Way::Joined(Fusion::ReciprocalRank { k: 60 })),
    ("default", Way::Default),
];

#[derive(Clone, Copy)]
enum Way {
    /// No embedder.
    Words,
    /// This fusion, with nothing left out as irrelevant.
    Joined(Fusion),
    /// Every setting as it is by default, what is left out as irrelevant included; but for authority, which has a table
    /// of its own.
    Default,
}

impl Way {
    fn base(self, bank: &Bank) -> Base {
        // What is measured is the order; whether anything is shown is measured elsewhere.
        let order_alone = Options {
            relevant_cosine_min: Some(0.0),
            pair_rule: false,
            authority_nudge: 0.0,
            ..Options::default()
        };
        match self {
            Self::Words => bank.base(order_alone, false),
            Self::Joined(fusion) => bank.base(
                Options {
                    fusion: Some(fusion),
                    ..order_alone
                },
                true,
            ),
            Self::Default => bank.base(
                Options {
                    relevant_cosine_min: None,
                    ..order_alone
                },
                true,
            ),
        }
    }
}

/// Measures a collection and prints a line a way.
pub(super) async fn run(collection: &Collection, bank: &Bank, figures: &mut Figures) -> Result<()> {
    println!(
        "\n{}: {} documents, {} queries with answers",
        collection.name,
        collection.documents.len(),
        collection.judged().count()
    );
    println!(
        "{:<12} {:>8} {:>10} {:>8}   reference nDCG@10",
        "", "nDCG@10", "recall@10", "MRR@10"
    );
    for (name, way) in WAYS {
        let base = way.base(bank);
        let mut all = Vec::new();
        for (query, grades) in collection.judged() {
            all.push(Scores::of(&documents(&base, &query.text).await?, grades));
        }
        let mean = Scores::mean(&all);
        let reference = figures.add(&format!("{} {name} ndcg", collection.name), mean.ndcg);
        figures.add(&format!("{} {name} recall", collection.name), mean.recall);
        figures.add(&format!("{} {name} mrr", collection.name), mean.reciprocal_rank);
        println!(
            "{name:<12} {:>8.3} {:>10.3} {:>8.3}   {}",
            mean.ndcg,
            mean.recall,
            mean.reciprocal_rank,
            reference.map_or_else(String::new, |reference| format!("{reference:.3}"))
        );
    }
    Ok(())
}

/// The documents that answer, best first, each by its best passage.
pub(super) async fn documents(base: &Base, query: &str) -> Result<Vec<String>> {
    let request = SearchRequest {
        query: query.to_owned(),
        filter: Filter::default(),
        k: PASSAGES,
    };
    let answer = base.search(&request).await?;
    let mut seen = HashSet::new();
    let paths = answer.passages.into_iter().map(|passage| passage.document);
    Ok(paths
        .filter(|path| seen.insert(path.clone()))
        .map(|path| bank::id(&path))
        .collect())
}

//! How often "nothing relevant" is right.

use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use tidegate_core::knowledge::{Filter, SearchRequest};
use tidegate_core::port::KnowledgeBase;
use tidegate_kb::base::{Base, Options};

use super::bank::Bank;
use super::baseline::Figures;
use super::collection::{Collection, lines};
use super::measure::{count, share};

#[derive(Deserialize)]
struct Line {
    #[serde(alias = "question", alias = "query")]
    text: String,
}

/// Questions that have nothing to do with any collection, by where they come from.
pub(super) struct Foreign(Vec<(String, Vec<String>)>);

impl Foreign {
    /// Prompts and questions to a chat agent in a folder of development data, as far as they are there.
    pub(super) fn read(data: &Path) -> Self {
        let files = [
            "gate/gate.jsonl",
            "gate/tasks.jsonl",
            "memory/memorybank_questions_en.jsonl",
        ];
        let sets = files.into_iter().filter_map(|file| {
            let lines: Vec<Line> = lines(&data.join(file)).ok()?;
            Some((file.to_owned(), lines.into_iter().map(|line| line.text).collect()))
        });
        Self(sets.collect())
    }
}

/// Puts each collection's own questions and everybody else's to it.
pub(super) async fn run(
    collections: &[(Collection, Bank)],
    foreign: &Foreign,
    figures: &mut Figures,
) -> Result<()> {
    println!("\nnothing relevant: the share of questions that get an answer");
    println!(
        "{:<14} {:<38} {:>9} {:>11}",
        "documents", "questions", "answered", "words alone"
    );
    for (collection, bank) in collections {
        let own = ("its own".to_owned(), texts(collection));
        let others = collections
            .iter()
            .filter(|(other, _)| other.name != collection.name)
            .map(|(other, _)| (format!("of {}", other.name), texts(other)));
        for (whose, questions) in std::iter::once(own)
            .chain(others)
            .chain(foreign.0.iter().cloned())
        {
            let both = answered(&bank.base(Options::default(), true), &questions).await?;
            let words = answered(&bank.base(Options::default(), false), &questions).await?;
            println!("{:<14} {whose:<38} {both:>9.3} {words:>11.3}", collection.name);
            // Kept as what is right, so that a lower figure is a worse one.
            let right = if whose == "its own" { both } else { 1.0 - both };
            figures.add(&format!("{} floor, questions {whose}", collection.name), right);
        }
    }
    Ok(())
}

fn texts(collection: &Collection) -> Vec<String> {
    collection
        .queries
        .iter()
        .map(|query| query.text.clone())
        .collect()
}

async fn answered(base: &Base, questions: &[String]) -> Result<f64> {
    let mut answered = 0;
    for query in questions {
        let request = SearchRequest {
            query: query.clone(),
            filter: Filter::default(),
            k: 8,
        };
        answered += usize::from(!base.search(&request).await?.passages.is_empty());
    }
    Ok(share(count(answered), count(questions.len())))
}

//! Whether the source stands first, and whether what only others say is kept.

use anyhow::{Result, ensure};
use tidegate_core::knowledge::Authority;
use tidegate_kb::base::Options;

use super::bank::Bank;
use super::baseline::Figures;
use super::collection::Collection;
use super::measure::{count, share};
use super::retrieval::documents;

/// What is compared: its name, whether the pair rule holds, and the nudge (`None`: as shipped).
const RULES: [(&str, bool, Option<f32>); 5] = [
    ("neither", false, Some(0.0)),
    ("nudge alone", false, None),
    ("greatest nudge alone", false, Some(0.10)),
    ("pair rule alone", true, Some(0.0)),
    ("as shipped", true, None),
];

/// Measures a collection with classes and prints a line a rule.
pub(super) async fn run(collection: &Collection, bank: &Bank, figures: &mut Figures) -> Result<()> {
    ensure!(
        collection.has_classes(),
        "{} has no classes of queries or no authorities of documents",
        collection.name
    );
    println!(
        "\n{}: the source first (classes A and C), others kept (class B)",
        collection.name
    );
    println!("{:<22} {:>8} {:>8}   reference first / kept", "", "first", "kept");
    for (name, pair_rule, nudge) in RULES {
        let shipped = Options::default();
        let base = bank.base(
            Options {
                pair_rule,
                authority_nudge: nudge.unwrap_or(shipped.authority_nudge),
                ..shipped
            },
            true,
        );
        let (mut first, mut sources, mut kept, mut others) = (0, 0, 0, 0);
        for (query, grades) in collection.judged() {
            let found = documents(&base, &query.text).await?;
            let top = found.first();
            let grade = top.and_then(|id| grades.get(id)).copied().unwrap_or(0);
            if query.class.as_deref() == Some("B") {
                others += 1;
                kept += usize::from(grade > 0);
            } else {
                let best = grades.values().copied().max().unwrap_or(0);
                sources += 1;
                first += usize::from(grade == best && top.is_some_and(|id| is_primary(collection, id)));
            }
        }
        let (first, kept) = (
            share(count(first), count(sources)),
            share(count(kept), count(others)),
        );
        let reference_first = figures.add(&format!("{} {name} first", collection.name), first);
        let reference_kept = figures.add(&format!("{} {name} kept", collection.name), kept);
        let reference = reference_first.zip(reference_kept);
        println!(
            "{name:<22} {first:>8.2} {kept:>8.2}   {}",
            reference.map_or_else(String::new, |(first, kept)| format!("{first:.2} / {kept:.2}"))
        );
    }
    Ok(())
}

fn is_primary(collection: &Collection, id: &str) -> bool {
    collection
        .documents
        .iter()
        .any(|document| document.id == id && document.authority == Some(Authority::Primary))
}

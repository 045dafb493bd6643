//! The routing gate's figures, beside what it is to reach.

use std::path::Path;

use anyhow::Result;

use super::baseline::Figures;
use crate::routing::{self, FALSE_POSITIVES_MAX, Kind};

/// The share of questions about the assistant that is to be found.
const RECALL_MIN: f64 = 0.80;

/// Scores the prompts in a folder of development data; `None` where there are none. It runs a runtime of its own.
pub(super) fn score(data: &Path) -> Result<Option<routing::Figures>> {
    let there = |names: &[&str]| {
        let files = names.iter().map(|name| data.join(name));
        files.filter(|file| file.is_file()).collect::<Vec<_>>()
    };
    let prompts = there(&["gate/gate.jsonl", "gate/tasks.jsonl"]);
    if prompts.is_empty() {
        return Ok(None);
    }
    routing::figures(&prompts, &there(&["memory/memorybank_en.jsonl"])).map(Some)
}

/// Prints and notes them; what is missed, in sentences.
pub(super) fn note(gate: &routing::Figures, figures: &mut Figures) -> Vec<String> {
    println!("\nrouting gate: the share that fires");
    println!("{:<24} {:>8} {:>8} {:>10}", "", "prompts", "rules", "all tiers");
    let mut missed = Vec::new();
    for (kind, tally) in &gate.by_kind {
        let (rules, all) = (tally.pattern_share(), tally.share());
        println!("{:<24} {:>8} {rules:>8.3} {all:>10.3}", kind.name(), tally.count);
        match kind {
            Kind::About => {
                figures.add("gate recall, rules", rules);
                figures.add("gate recall, all tiers", all);
            }
            Kind::NearMiss | Kind::Task | Kind::Chat => {
                // Kept as what is right, so that a lower figure is a worse one.
                figures.add(&format!("gate {}, left alone by rules", kind.name()), 1.0 - rules);
                figures.add(
                    &format!("gate {}, left alone by all tiers", kind.name()),
                    1.0 - all,
                );
                // Conversation has no labels, and some of its turns are about the assistant.
                if *kind != Kind::Chat && rules > 0.0 {
                    missed.push(format!(
                        "the rules fire on {rules:.3} of {}, to be none",
                        kind.name()
                    ));
                }
            }
        }
    }
    let (recall, false_positives) = (gate.recall(), gate.false_positives());
    if recall < RECALL_MIN {
        missed.push(format!("the gate finds {recall:.3}, to be {RECALL_MIN:.2}"));
    }
    if false_positives > FALSE_POSITIVES_MAX {
        missed.push(format!(
            "the gate fires on {false_positives:.3} of others, to be {FALSE_POSITIVES_MAX}"
        ));
    }
    missed
}

//! Figures that were reached before, so that none is lost unnoticed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

/// By how much a figure may fall before it counts.
const TOLERANCE: f64 = 0.01;
/// What stands above the figures in the file.
const HEAD: &str = "\
# Figures of `cargo xtask eval`, by embedding model. It fails when one falls by more than 0.01; `--bless` writes what it
# measures. `reference` holds what independent implementations of the same methods reach on the same data, for
# comparison only: SQLite's FTS5 with its stemmer for words, min-max sums and rank sums for both, and for authority the
# pair rule by cosine alone.
";

/// What was measured, beside what was before.
pub(super) struct Figures {
    model: String,
    measured: Vec<(String, f64)>,
    file: Baseline,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Baseline {
    figures: BTreeMap<String, BTreeMap<String, f64>>,
    reference: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Figures {
    /// An empty list beside the committed one.
    pub(super) fn new(model: &str) -> Result<Self> {
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        Ok(Self {
            model: model.to_owned(),
            measured: Vec::new(),
            file: toml::from_str(&text).with_context(|| format!("{}", path().display()))?,
        })
    }

    /// Notes a figure; what the reference is, if there is one.
    pub(super) fn add(&mut self, name: &str, value: f64) -> Option<f64> {
        self.measured.push((name.to_owned(), value));
        self.file.reference.get(&self.model)?.get(name).copied()
    }

    /// The value of a figure that was noted.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        let found = self.measured.iter().find(|(measured, _)| measured == name)?;
        Some(found.1)
    }

    /// Prints what has fallen and what is new; whether nothing has fallen.
    pub(super) fn compare(&self) -> bool {
        let before = self.file.figures.get(&self.model);
        let mut fallen = 0;
        let mut new = 0;
        for (name, value) in &self.measured {
            match before.and_then(|before| before.get(name)) {
                Some(before) if *value < before - TOLERANCE => {
                    fallen += 1;
                    println!("fallen: {name}: {value:.3}, was {before:.3}");
                }
                Some(_) => {}
                None => new += 1,
            }
        }
        println!(
            "\n{} figures of {}, {fallen} fallen by more than {TOLERANCE} since {}, {new} not in it",
            self.measured.len(),
            self.model,
            path().display()
        );
        fallen == 0
    }

    /// Writes what was measured into the file, beside figures of other models and other data.
    pub(super) fn bless(mut self) -> Result<()> {
        let figures = self.file.figures.entry(self.model).or_default();
        for (name, value) in self.measured {
            figures.insert(name, (value * 1e4).round() / 1e4);
        }
        let mut text = HEAD.to_owned();
        for (kind, tables) in [
            ("figures", &self.file.figures),
            ("reference", &self.file.reference),
        ] {
            for (model, figures) in tables {
                write!(text, "\n[{kind}.\"{model}\"]\n")?;
                for (name, value) in figures {
                    writeln!(text, "\"{name}\" = {value:?}")?;
                }
            }
        }
        std::fs::write(path(), text)?;
        println!("written to {}", path().display());
        Ok(())
    }
}

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/eval-baseline.toml"))
}

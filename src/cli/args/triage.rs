//! `triage`: names and flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;

/// What to do with the decisions of the routing gate.
#[derive(Debug, Subcommand)]
pub enum Triage {
    /// Count decisions by tier, list models and thresholds, and draw how scores are spread
    Report(Report),
    /// Mark near misses and find the threshold of the second tier from what was marked
    Calibrate(Calibrate),
}

/// `triage report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Also draw the scores into this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Only the scores of this embedding model
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `triage calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// The share of marked tasks that may be taken for questions about the agent
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    pub max_false_positives: f64,
    /// Where marks are kept [default: agents/triage-labels.jsonl in the logs folder]
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Only lines of this embedding model, and of the newest version of its lists
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Compute from the marks there are, without asking for more
    #[arg(long)]
    pub no_ask: bool,
    /// Write the threshold to the configuration file
    #[arg(long)]
    pub write: bool,
}

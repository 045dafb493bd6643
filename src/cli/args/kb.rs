//! `kb`: names and flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

/// What to do with the knowledge base.
#[derive(Debug, Subcommand)]
pub enum Kb {
    /// Bring the index up to date with the folder, and show what could not be read
    Index(Output),
    /// Show how the knowledge base does, and every document that could not be read
    Status(Output),
    /// Search as the agent does
    Search(Search),
    /// The same with every rank laid open
    Explain(Search),
    /// Score questions with known answers: one JSON object a line, {"query": "…", "document": "path"}
    Eval(Eval),
    /// Move the vectors to where they are searched from now on, and count both sides
    Migrate(Migrate),
}

/// `kb search` and `kb explain`.
#[derive(Debug, Args)]
pub struct Search {
    /// The question, in words
    pub query: String,
    /// Passages to show
    #[arg(short, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub k: u16,
    /// Only documents whose path matches this pattern
    #[arg(long, value_name = "PATTERN")]
    pub path: Option<String>,
    /// Only documents of this kind, such as pdf
    #[arg(long)]
    pub format: Option<String>,
    /// Only documents of at least this authority: primary, interpretation or secondary
    #[arg(long, value_name = "AUTHORITY")]
    pub authority_min: Option<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `kb migrate`.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Where they are searched from now on
    #[arg(long, value_enum)]
    pub to: Destination,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// Where vectors can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Destination {
    /// In this process, over the database
    Embedded,
    /// In a Chroma collection (`kb.chroma_url`)
    Chroma,
}

/// `kb eval`.
#[derive(Debug, Args)]
pub struct Eval {
    /// The questions
    pub file: PathBuf,
    /// Only documents whose path matches this pattern
    #[arg(long, value_name = "PATTERN")]
    pub path: Option<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

//! `embed`: names and flags.

use clap::{Args, Subcommand};

use super::Output;

/// What to do with embedding models.
#[derive(Debug, Subcommand)]
pub enum Embed {
    /// Fetch a pinned model into `embeddings.folder`; each file is checked, and what is there already is kept
    Pull(Pull),
    /// Make one vector with the configured embedder, and show model, dimensions and time
    Test(Test),
}

/// `embed pull`.
#[derive(Debug, Args)]
pub struct Pull {
    /// The address of the folder that holds the files; else `embeddings.pull_url`
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
}

/// `embed test`.
#[derive(Debug, Args)]
pub struct Test {
    /// A text, as a question would be
    pub text: String,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

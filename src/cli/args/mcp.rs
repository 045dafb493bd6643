//! `mcp`: names and flags.

use clap::{Args, Subcommand};

/// What to do over the Model Context Protocol.
#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// Serve tools to another agent on standard input and output, with the key in TIDEGATE_KEY
    Serve(Serve),
}

/// `mcp serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The end user that the other agent works for
    #[arg(long)]
    pub user: Option<String>,
}

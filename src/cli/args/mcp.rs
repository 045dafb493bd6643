//! `mcp`: names and flags.

use clap::{Args, Subcommand};

use super::Output;

/// What to do over the Model Context Protocol.
#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// Serve tools to another agent on standard input and output, with the key in TIDEGATE_KEY
    Serve(Serve),
    /// List the servers in the file, and how many of their tools are accepted
    List(Output),
    /// Add a server to the file: `add NAME -- PROGRAM ARGUMENTS` or `add NAME --url ADDRESS`
    Add(Add),
    /// Take a server out of the file; what was accepted of it and a login at it are forgotten
    Remove(OneServer),
    /// Connect to a server here and now, and show its tools
    Test(OneServer),
    /// Accept what a server has changed of its tools, after showing it
    Approve(Approve),
    /// Log in at a server that asks for it (OAuth), by a browser on this machine
    Login(OneServer),
    /// Forget the login at a server
    Logout(OneServer),
    /// Have the running daemon read the file again, with the key in TIDEGATE_KEY
    Reload(Output),
}

/// `mcp serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The end user that the other agent works for
    #[arg(long)]
    pub user: Option<String>,
}

/// A server.
#[derive(Debug, Args)]
pub struct OneServer {
    /// Its name in the file
    pub name: String,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `mcp approve`.
#[derive(Debug, Args)]
pub struct Approve {
    /// The server's name in the file
    pub name: String,
    /// One tool of it; all that have changed where none is named
    pub tool: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `mcp add`.
#[derive(Debug, Args)]
pub struct Add {
    /// The name in the file; its tools become `mcp__NAME__TOOL`
    pub name: String,
    /// The address of a server elsewhere
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// A header of every request to that address, as NAME=VALUE; the value may be env:NAME or file:PATH
    #[arg(long, requires = "url", value_name = "NAME=VALUE")]
    pub header: Vec<String>,
    /// A variable of the program, as NAME=VALUE; the value may be env:NAME or file:PATH
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub env: Vec<String>,
    /// Somebody logs in there (OAuth)
    #[arg(long, requires = "url")]
    pub oauth: bool,
    /// Take its word that a tool only reads: such tools then run without a question
    #[arg(long)]
    pub trust_read_only: bool,
    /// Write the entry and do not connect to it yet
    #[arg(long)]
    pub disabled: bool,
    /// The program and its arguments, behind `--`
    #[arg(last = true)]
    pub command: Vec<String>,
}

//! The command line: names, flags and help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub mod embed;
pub mod kb;
pub mod mcp;
pub mod memory;
pub mod triage;

/// A self-hosted agent server that speaks the OpenAI API.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, disable_help_subcommand = true)]
pub struct Arguments {
    /// What applies to every command.
    #[command(flatten)]
    pub common: Common,
    /// What to do; without one, `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// Configuration file; else TIDEGATE_CONFIG, else ./tidegate.toml where there is one
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of the database (`data_dir`)
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data_dir: Option<String>,
    /// Address and port to listen on (`server.bind`)
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub bind: Option<String>,
    /// Any setting for this call, such as `--set engine.rounds_max=5`
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server (the default)
    Serve,
    /// Create, list, change and revoke API keys; works while the server runs
    #[command(subcommand)]
    Keys(Keys),
    /// Show the configuration in effect, without secrets
    Config(Config),
    /// Check configuration, disk, database, model and files, and say how to fix what is wrong
    Doctor(Doctor),
    /// Print the OpenAPI document of the HTTP API
    Openapi,
    /// Show which parts a request's system prompt would have, never their text
    Prompt(Prompt),
    /// Show what would become of one tool call, layer by layer, and how to allow it; runs nothing
    Explain(Explain),
    /// See and answer what waits for a person; works while the server runs
    #[command(subcommand)]
    Approvals(Approvals),
    /// Index, search and look at the documents of the knowledge bank; works while the server runs
    #[command(subcommand)]
    Kb(kb::Kb),
    /// See, correct, forget and erase what is remembered of people; works while the server runs
    #[command(subcommand)]
    Memory(memory::Memory),
    /// Serve other agents over the Model Context Protocol
    #[command(subcommand)]
    Mcp(mcp::Mcp),
    /// Fetch an embedding model, or try the one that is configured
    #[command(subcommand)]
    Embed(embed::Embed),
    /// See what the routing gate decided, and find the threshold of its second tier
    #[command(subcommand)]
    Triage(triage::Triage),
    /// Look at the audit trail
    #[command(subcommand)]
    Audit(Audit),
    /// Write the instructions, skills and sample documents that are not there yet
    Init(Init),
    /// Print the version
    Version,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The tool, such as `execute_shell`
    #[arg(long)]
    pub tool: String,
    /// Its arguments, a JSON object
    #[arg(long = "args", value_name = "JSON", default_value = "{}")]
    pub arguments: String,
    /// The mode of the call; the server's settings can lower it
    #[arg(long, value_enum, default_value = "readonly")]
    pub mode: ModeName,
    /// The end user of the call
    #[arg(long)]
    pub user: Option<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// What to do with approvals.
#[derive(Debug, Subcommand)]
pub enum Approvals {
    /// List approvals, newest first
    List(ListApprovals),
    /// Show one approval
    Show(OneApproval),
    /// Let exactly this call run, once
    Approve(OneApproval),
    /// Refuse it
    Deny(OneApproval),
}

/// `approvals list`.
#[derive(Debug, Args)]
pub struct ListApprovals {
    /// Also those that are over
    #[arg(long)]
    pub all: bool,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// One approval.
#[derive(Debug, Args)]
pub struct OneApproval {
    /// Its id
    pub id: String,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// What to do with the audit trail.
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Check that no line was removed or altered; exit code 1 where one was
    Verify,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Create a key and print it, this once
    Create(Create),
    /// List keys, oldest first
    List(Output),
    /// Show one key
    Show(OneKey),
    /// Remove a key for good, and erase what its users wrote
    #[command(visible_alias = "delete")]
    Revoke(TakeAway),
    /// Replace a key's secret and print the new key, this once
    Rotate(Rotate),
    /// Switch a key on
    Enable(OneKey),
    /// Switch a key off
    Disable(TakeAway),
    /// Print a fresh key without storing it, for TIDEGATE_BOOTSTRAP_KEY
    Generate,
}

/// `keys create`.
#[derive(Debug, Args)]
pub struct Create {
    /// A name, for people
    #[arg(long)]
    pub name: String,
    /// What it opens; repeat for several [default: chat and tools]
    #[arg(long = "scope", value_enum)]
    pub scopes: Vec<ScopeName>,
    /// The most its runs may do
    #[arg(long, value_enum, default_value = "readonly")]
    pub mode: ModeName,
    /// When it ends: a date (2027-01-31), a time (2027-01-31T12:00:00Z) or a span (90d, 12h)
    #[arg(long, value_name = "WHEN")]
    pub expires: Option<String>,
    /// Requests a minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rpm: Option<u32>,
    /// Tokens a day
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub tokens_per_day: Option<u64>,
    /// A model it may use; repeat for several [default: all]
    #[arg(long = "model", value_name = "MODEL")]
    pub models: Vec<String>,
    /// A server tool it may use; repeat for several [default: all]
    #[arg(long = "tool", value_name = "TOOL")]
    pub tools: Vec<String>,
    /// A pair of your own; repeat for several
    #[arg(long, value_name = "KEY=VALUE")]
    pub metadata: Vec<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// A command about one key.
#[derive(Debug, Args)]
pub struct OneKey {
    /// The key's public id, as `keys list` shows it
    pub id: String,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// A command after which a key opens nothing.
#[derive(Debug, Args)]
pub struct TakeAway {
    /// The key's public id, as `keys list` shows it
    pub id: String,
    /// Also where it is the last enabled key with the scope `admin`
    #[arg(long)]
    pub force: bool,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `keys rotate`.
#[derive(Debug, Args)]
pub struct Rotate {
    /// The key's public id, as `keys list` shows it
    pub id: String,
    /// How long the old secret still opens: a span such as 30m, 24h or 7d [default: `server.rotation_grace_s`]
    #[arg(long, value_name = "SPAN")]
    pub grace: Option<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `config`.
#[derive(Debug, Args)]
pub struct Config {
    /// Print every setting with its default, type and a sentence
    #[arg(long, conflicts_with = "check")]
    pub reference: bool,
    /// Only say what is wrong; exit code 1 if the server would not start
    #[arg(long)]
    pub check: bool,
    /// Print a preset: lines for a `tidegate.toml`
    #[arg(long, value_enum, conflicts_with_all = ["check", "reference"])]
    pub preset: Option<PresetName>,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `prompt`.
#[derive(Debug, Args)]
pub struct Prompt {
    /// The key whose end user it would be, by its public id; without it nobody is remembered
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// The end user the request would name
    #[arg(long)]
    pub user: Option<String>,
    /// What the person would write
    #[arg(long)]
    pub message: String,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Where [default: the `home` of the configuration]
    pub folder: Option<PathBuf>,
    /// Also write a `tidegate.toml` with these settings, where there is none
    #[arg(long, value_enum)]
    pub preset: Option<PresetName>,
}

/// How to print.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Output {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A scope on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    /// Talk to the agent.
    Chat,
    /// Use the server's tools.
    Tools,
    /// Manage keys.
    Admin,
    /// See approvals.
    #[value(name = "approvals:read")]
    ApprovalsRead,
    /// Decide approvals of the key's own users.
    #[value(name = "approvals:decide:own")]
    ApprovalsDecideOwn,
    /// Decide approvals of any key's users.
    #[value(name = "approvals:decide:any")]
    ApprovalsDecideAny,
}

/// A set of settings that ships with tidegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PresetName {
    /// For a server that people outside the trusted circle talk to.
    Hardened,
}

/// A mode on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// Reads only.
    PlanOnly,
    /// Reads; changes need an approval.
    Readonly,
    /// No questions; floors hold.
    FullAuto,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_command_serves_and_flags_go_anywhere() {
        let arguments = Arguments::try_parse_from(["tidegate", "--bind", "127.0.0.1:0"]).unwrap();
        assert!(arguments.command.is_none());
        let arguments = Arguments::try_parse_from(["tidegate", "serve", "--bind", "127.0.0.1:0"]).unwrap();
        assert_eq!(arguments.common.bind.as_deref(), Some("127.0.0.1:0"));
        assert!(matches!(arguments.command, Some(Command::Serve)));
    }
}

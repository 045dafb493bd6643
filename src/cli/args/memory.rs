//! `memory`: names and flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tidegate_core::memory::FactState;

use super::Output;

/// What to do with what is remembered of people.
#[derive(Debug, Subcommand)]
pub enum Memory {
    /// List what is remembered of a person
    List(List),
    /// Show why a fact is believed or not: every quote with its day
    Why(OneFact),
    /// Search as the agent does, with the ranks by words and by meaning
    Search(Search),
    /// Tell a fact; it is believed at once
    Add(Add),
    /// Put a fact right: this value takes its place
    Correct(Correct),
    /// Take a fact back: it is not so, or no longer
    Retract(Retract),
    /// Forget a fact as if it had never been said
    Forget(OneFact),
    /// Erase everything that is stored of what a person wrote
    Clear(Clear),
    /// Write everything that is remembered as JSON
    Export(Export),
    /// Take in an export
    Import(Import),
    /// Turn learning or recall on, or both
    On(Turn),
    /// Turn learning or recall off, or both
    Off(Turn),
    /// List the people of a key of whom something is remembered
    Users(Users),
    /// List what may be remembered at all
    Kinds(Output),
    /// Show how many turns wait to be learned from, and how many were given up
    Status(Output),
    /// Put the turns that were given up back into the queue
    Revive(Output),
    /// Try what would be learned from a text, and why the rest would not; exit code 3 where nothing would
    Test(Test),
}

/// Whose memory.
#[derive(Debug, Clone, Args)]
pub struct Whose {
    /// The key, by its public id or its name [default: the only key there is]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// The user, as requests name it [default: requests that name nobody]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
}

/// `memory list`.
#[derive(Debug, Args)]
pub struct List {
    /// Only facts of this kind
    #[arg(long)]
    pub kind: Option<String>,
    /// Only facts in this state
    #[arg(long, value_enum)]
    pub state: Option<StateName>,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// The state of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StateName {
    /// Said, and not yet often enough.
    Candidate,
    /// Believed.
    Stable,
    /// Something else was said since.
    Contested,
    /// Another value took its place.
    Superseded,
    /// Too old.
    Expired,
    /// Taken back.
    Retracted,
}

impl From<StateName> for FactState {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Candidate => Self::Candidate,
            StateName::Stable => Self::Stable,
            StateName::Contested => Self::Contested,
            StateName::Superseded => Self::Superseded,
            StateName::Expired => Self::Expired,
            StateName::Retracted => Self::Retracted,
        }
    }
}

/// A command about one fact.
#[derive(Debug, Args)]
pub struct OneFact {
    /// The fact's id, or as much of its beginning as no other has
    pub id: String,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory search`.
#[derive(Debug, Args)]
pub struct Search {
    /// The question
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Facts to show
    #[arg(short, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub k: u16,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory add`.
#[derive(Debug, Args)]
pub struct Add {
    /// What it is about, as `memory kinds` lists it
    pub kind: String,
    /// The value, such as "4th grade"
    pub value: String,
    /// The person's own words for it [default: the value]
    #[arg(long)]
    pub quote: Option<String>,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory correct`.
#[derive(Debug, Args)]
pub struct Correct {
    /// The fact's id, or as much of its beginning as no other has
    pub id: String,
    /// The right value
    pub value: String,
    /// The person's own words for it [default: the value]
    #[arg(long)]
    pub quote: Option<String>,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory retract`.
#[derive(Debug, Args)]
pub struct Retract {
    /// The fact's id, or as much of its beginning as no other has
    pub id: String,
    /// The person's own words for it
    #[arg(long)]
    pub quote: Option<String>,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory clear`.
#[derive(Debug, Args)]
pub struct Clear {
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Where; nobody else can read the file [default: standard output]
    pub file: Option<PathBuf>,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
}

/// `memory import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The export
    pub file: PathBuf,
    /// Whose
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory on` and `memory off`.
#[derive(Debug, Args)]
pub struct Turn {
    /// Which of them [default: both]
    #[arg(value_enum)]
    pub switch: Option<SwitchName>,
    /// Whose; without --user it is everybody's behind the key
    #[command(flatten)]
    pub whose: Whose,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// What can be turned on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SwitchName {
    /// Learning from finished turns
    Learning,
    /// Telling the agent what is remembered
    Recall,
}

/// `memory users`.
#[derive(Debug, Args)]
pub struct Users {
    /// The key, by its public id or its name [default: the only key there is]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

/// `memory test`.
#[derive(Debug, Args)]
pub struct Test {
    /// What a person would write
    pub text: String,
    /// The model that looks for facts [default: `memory.model`]
    #[arg(long)]
    pub model: Option<String>,
    /// How to print
    #[command(flatten)]
    pub output: Output,
}

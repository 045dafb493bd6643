//! What an allowed line does, in a form that is run without a shell: what was judged is what runs.

use serde::{Deserialize, Serialize};

/// A line that may run, as a tree. Programs are started by their bare names from a fixed list of folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// One program.
    Run(Run),
    /// Each prints into the next one.
    Pipe(Vec<Self>),
    /// The second runs if the first succeeds.
    And(Box<Self>, Box<Self>),
    /// The second runs if the first fails.
    Or(Box<Self>, Box<Self>),
    /// Success and failure change places.
    Not(Box<Self>),
    /// One after the other; the last gives the result.
    Sequence(Vec<Self>),
    /// Changes of the folder inside do not reach what follows.
    Subshell(Box<Self>),
    /// Conditions with what runs where they hold, in order, and what runs if none does.
    If {
        /// Conditions and bodies.
        branches: Vec<(Self, Self)>,
        /// Without a condition.
        otherwise: Option<Box<Self>>,
    },
    /// The body once for each file that the pattern finds; none is no failure.
    Each {
        /// The variable that holds the name.
        variable: String,
        /// The pattern, which stays as it is where nothing matches.
        pattern: Argument,
        /// The body.
        body: Box<Self>,
    },
    /// The body once for each line of the input.
    Lines {
        /// The variable that holds the line.
        variable: String,
        /// The body.
        body: Box<Self>,
    },
    /// Another working folder for what follows.
    ChangeFolder(Argument),
    /// The body, for so long at most.
    Timeout {
        /// Milliseconds.
        limit_ms: u64,
        /// The body.
        body: Box<Self>,
    },
    /// The body, with its descriptors redirected.
    Redirected {
        /// In the order in which they take effect.
        redirections: Vec<Redirection>,
        /// The body.
        body: Box<Self>,
    },
}

/// One program with what it is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The bare name.
    pub program: String,
    /// What stands behind the name.
    pub arguments: Vec<Argument>,
    /// In the order in which they take effect.
    pub redirections: Vec<Redirection>,
}

/// One word. A word with a pattern, a list or an unquoted output can become several arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Argument {
    /// Its parts, joined without anything between.
    pub parts: Vec<Part>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// As it stands.
    Text(String),
    /// `*`, `?` or a bracket.
    Wildcard(String),
    /// What a loop has set. Split at blanks if it stood without quotes.
    Variable {
        /// Its name.
        name: String,
        /// Whether it is split.
        is_split: bool,
    },
    /// What another line prints, without the line ends at its end.
    Output {
        /// The line.
        node: Box<Node>,
        /// Whether it is split at blanks.
        is_split: bool,
    },
    /// The name of a stream from which the program reads what another line prints.
    Stream(Box<Node>),
    /// The exit status of the command before.
    Status,
}

/// Where a descriptor leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Redirection {
    /// The input comes from a file.
    InputFile(Argument),
    /// The input is this text.
    InputText(Argument),
    /// The input comes from another line.
    InputStream(Box<Node>),
    /// What this descriptor (1 or 2) gets is dropped.
    Discard(u8),
    /// This descriptor leads where the other one leads: `2>&1` is (2, 1).
    Join(u8, u8),
}

impl Argument {
    /// A word without anything to fill in.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::Text(text.into())],
        }
    }

    /// The word, if nothing is to be filled in.
    pub fn literal(&self) -> Option<String> {
        let mut whole = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => whole.push_str(text),
                Part::Wildcard(_)
                | Part::Variable { .. }
                | Part::Output { .. }
                | Part::Stream(_)
                | Part::Status => {
                    return None;
                }
            }
        }
        Some(whole)
    }
}

/// A file name that a pattern has found, as an argument: a name that starts with a dash must not become an
/// option.
pub fn found_argument(name: &str) -> String {
    if name.starts_with('-') {
        format!("./{name}")
    } else {
        name.to_owned()
    }
}

//! What is run: a program with its argv, or the plan of a line that needs no shell.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_gate::shell::Node;

use super::child::canaries::Targets;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// One program.
    Program {
        /// Its absolute path.
        path: PathBuf,
        /// Its arguments, without its name.
        arguments: Vec<String>,
    },
    /// A line that was judged, run without a shell.
    Plan(Plan),
    /// The self-test: try what must not work and report.
    #[doc(hidden)]
    Canaries(Targets),
}

/// A line that was judged. What it says is what runs: nothing in it is read as a command again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The line.
    pub node: Node,
    /// The absolute path of each program in it, by its bare name. A program that is not here is not found.
    pub programs: BTreeMap<String, PathBuf>,
}

/// What to run, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// What to run.
    pub work: Work,
    /// Its standard input; empty is an empty one.
    pub stdin: Vec<u8>,
}

impl Task {
    /// One program that reads nothing.
    pub fn program<S: Into<String>>(
        path: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            work: Work::Program {
                path: path.into(),
                arguments: arguments.into_iter().map(Into::into).collect(),
            },
            stdin: Vec::new(),
        }
    }

    /// A plan that reads nothing.
    pub fn plan(plan: Plan) -> Self {
        Self {
            work: Work::Plan(plan),
            stdin: Vec::new(),
        }
    }
}

//! What can be wrong with a configuration, said so that it can be mended.

use std::{fmt, path::PathBuf};

use super::tree::Origin;

/// One thing that is wrong, or looks wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, where it is about one.
    pub key: Option<String>,
    /// Where it was typed.
    pub origin: Origin,
    /// What is wrong and how to mend it. Never a secret.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}: `{key}`: {}", self.origin, self.message),
            None => write!(f, "{}: {}", self.origin, self.message),
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file that was named cannot be read.
    #[error("the configuration file `{}` cannot be read: {problem}; name another with --config or TIDEGATE_CONFIG", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Settings are wrong; every one is listed.
    #[error("{}{}", file.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display())), list(problems))]
    Invalid {
        /// The file, where there is one.
        file: Option<PathBuf>,
        /// What is wrong.
        problems: Vec<Problem>,
    },
}

fn list(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

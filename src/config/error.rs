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

/// Everything that was found about a configuration, in one list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Nothing starts with these.
    pub errors: Vec<Problem>,
    /// Worth a look; everything works.
    pub warnings: Vec<Problem>,
}

impl Findings {
    /// Adds an error, unless the same setting, or what it stands in, is wrong already: what follows from one
    /// mistake is no second one.
    pub fn error(&mut self, problem: Problem) {
        let is_known = problem.key.as_ref().is_some_and(|key| {
            let mut known = self.errors.iter().filter_map(|error| error.key.as_ref());
            known.any(|known| {
                let rest = key.strip_prefix(known.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            })
        });
        if !is_known {
            self.errors.push(problem);
        }
    }

    /// How many there are of each, such as `2 errors, 1 warning`.
    pub fn count(&self) -> String {
        format!(
            "{}, {}",
            count(self.errors.len(), "error"),
            count(self.warnings.len(), "warning")
        )
    }
}

/// A number of things.
pub fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// One line each, errors first, each kind in the order in which it was typed.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (word, list) in [("error", &self.errors), ("warning", &self.warnings)] {
            let mut list: Vec<&Problem> = list.iter().collect();
            list.sort_by(|one, other| one.origin.cmp(&other.origin));
            for problem in list {
                let end = if first { "" } else { "\n" };
                write!(f, "{end}{word}: {problem}")?;
                first = false;
            }
        }
        Ok(())
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
    /// Settings are wrong; every one is listed, and what only looks wrong as well.
    #[error("the configuration{} cannot be used ({}):\n{findings}", file.as_ref().map_or_else(String::new, |path| format!(" {}", path.display())), findings.count())]
    Invalid {
        /// The file, where there is one.
        file: Option<PathBuf>,
        /// What is wrong.
        findings: Findings,
    },
}

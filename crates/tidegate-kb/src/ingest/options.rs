//! How the folder is read.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidegate_core::glob::{Glob, GlobError};

/// What is left out unless the operator says otherwise: what programs leave beside documents while they work on them.
const IGNORED: [&str; 7] = ["~$*", "*~", "*.tmp", "*.part", "*.crdownload", "*.swp", "#*#"];

/// Which folder, and how. Part of `[kb]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The folder with the documents.
    pub folder: PathBuf,
    /// Files and folders that are left out, as patterns over paths in the folder. What begins with a dot always is.
    pub ignore: Vec<String>,
    /// The largest file that is read, in bytes; larger ones are listed as failed.
    pub file_bytes_max: u64,
    /// The most files that are looked at; beyond it the rest is not indexed, and status says so.
    pub files_max: usize,
    /// Files that are worked on at the same time; 0 for half the processors.
    pub workers_max: usize,
    /// Whether changes are noticed as they happen; else only by scans.
    pub watch: bool,
    /// For how long a file must be left alone before it is read, after it changed, in milliseconds.
    pub debounce_ms: u64,
    /// How often everything is compared anew, in seconds: for what a watcher misses, such as changes on a network
    /// share.
    pub rescan_interval_s: u64,
    /// How long after a failure of the embedder its missing vectors are asked for again, in seconds.
    pub embed_retry_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            folder: PathBuf::from("knowledge-bank"),
            ignore: IGNORED.map(str::to_owned).to_vec(),
            file_bytes_max: 64 << 20,
            files_max: 200_000,
            workers_max: 0,
            watch: true,
            debounce_ms: 300,
            rescan_interval_s: 300,
            embed_retry_s: 30,
        }
    }
}

impl Options {
    /// Files that are worked on at the same time.
    pub fn workers(&self) -> usize {
        match self.workers_max {
            0 => std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)),
            workers => workers,
        }
    }
}

/// What is left out by its name alone: the patterns of [`Options::ignore`], and what begins with a dot.
#[derive(Debug, Clone, Default)]
pub struct Ignored {
    patterns: Vec<(String, Glob)>,
}

impl Ignored {
    /// Reads the patterns, or says which is none.
    pub fn new(patterns: &[String]) -> Result<Self, InvalidPattern> {
        let read = |pattern: &String| match Glob::new(pattern) {
            Ok(glob) => Ok((pattern.clone(), glob)),
            Err(problem) => Err(InvalidPattern {
                pattern: pattern.clone(),
                problem,
            }),
        };
        Ok(Self {
            patterns: patterns.iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// Why a path inside the folder is never looked at; `None` where it is.
    pub fn leaves_out(&self, path: &str) -> Option<LeftOut<'_>> {
        if path.split('/').any(|name| name.starts_with('.')) {
            return Some(LeftOut::Hidden);
        }
        let mut patterns = self.patterns.iter();
        let (pattern, _) = patterns.find(|(_, glob)| glob.matches(path))?;
        Some(LeftOut::Pattern(pattern))
    }
}

/// Why a path is never looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut<'i> {
    /// Its name, or that of a folder above it, begins with a dot.
    Hidden,
    /// This pattern means it, or a folder above it.
    Pattern(&'i str),
}

/// Why a pattern of [`Options::ignore`] cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern `{pattern}` of files to ignore: {problem}")]
pub struct InvalidPattern {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub problem: GlobError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_why_it_is_left_out() {
        let mut patterns = Options::default().ignore;
        patterns.push("drafts/**".to_owned());
        let ignored = Ignored::new(&patterns).unwrap();
        for (path, expected) in [
            ("fees.md", None),
            ("clubs/chess.md", None),
            ("drafts.md", None),
            (".fees.md", Some(LeftOut::Hidden)),
            ("a/.git/fees.md", Some(LeftOut::Hidden)),
            ("a/fees.tmp", Some(LeftOut::Pattern("*.tmp"))),
            ("~$fees.docx", Some(LeftOut::Pattern("~$*"))),
            ("drafts/a/plan.md", Some(LeftOut::Pattern("drafts/**"))),
        ] {
            assert_eq!(ignored.leaves_out(path), expected, "{path}");
        }
        assert_eq!(Ignored::new(&["a[".to_owned()]).unwrap_err().pattern, "a[");
    }
}

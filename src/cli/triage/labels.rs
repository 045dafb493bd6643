//! What a person marked: one JSON object a line, beside the log. A mark keeps the score with it, so that it counts
//! after the log has been rotated away.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_core::port::{FileFault, OperatorFiles as _};
use tidegate_engine::routing::ScoreKind;
use tidegate_io::operator_files::Disk;

use super::Origin;
use crate::cli::error::Error;

/// The file's name in the logs folder.
const NAME: &str = "agents/triage-labels.jsonl";

/// The largest file of marks, in bytes: some fifty thousand.
const FILE_BYTES_MAX: usize = 8 << 20;

/// What a question is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// About the agent.
    About,
    /// Not about it.
    Task,
}

/// A marked question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Label {
    /// The question's id in the log.
    pub(super) id: String,
    /// What it is.
    #[serde(rename = "label")]
    pub(super) mark: Mark,
    model: String,
    lists: String,
    score_kind: ScoreKind,
    score: f64,
}

/// The marks of a file.
#[derive(Debug)]
pub(super) struct Labels {
    path: PathBuf,
    all: Vec<Label>,
}

impl Labels {
    /// Reads the marks; none where there is no file.
    pub(super) fn open(path: Option<&Path>, logs: &Path) -> Result<Self, Error> {
        let path = path.map_or_else(|| logs.join(NAME), Path::to_path_buf);
        let text = match Disk.read(&path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(FileFault::Missing(_)) => String::new(),
            Err(problem) => return Err(Error::Refused(problem.to_string())),
        };
        let mut all = Vec::new();
        for (at, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let label = serde_json::from_str(line).map_err(|problem| {
                Error::Refused(format!(
                    "{}, line {}: {problem}; mend the line or remove it",
                    path.display(),
                    at + 1
                ))
            })?;
            all.push(label);
        }
        Ok(Self { path, all })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What its marks belong to, each once.
    pub(super) fn origins(&self) -> Vec<Origin> {
        let mut origins: Vec<Origin> = Vec::new();
        for label in &self.all {
            let origin = label.origin();
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        origins
    }

    pub(super) fn holds(&self, id: &str, origin: &Origin) -> bool {
        self.all
            .iter()
            .any(|label| label.id == id && label.origin() == *origin)
    }

    /// The scores of this origin with this mark.
    pub(super) fn scores(&self, origin: &Origin, mark: Mark) -> Vec<f64> {
        let marked = self
            .all
            .iter()
            .filter(|label| label.mark == mark && label.origin() == *origin);
        marked.map(|label| label.score).collect()
    }

    /// Adds a mark and writes the file at once: who leaves loses nothing.
    pub(super) fn add(&mut self, id: &str, mark: Mark, origin: &Origin, score: f64) -> Result<(), Error> {
        self.all.push(Label {
            id: id.to_owned(),
            mark,
            model: origin.model.clone(),
            lists: origin.lists.clone(),
            score_kind: origin.kind,
            score,
        });
        let mut text = String::new();
        for label in &self.all {
            text.push_str(&serde_json::to_string(label).map_err(std::io::Error::other)?);
            text.push('\n');
        }
        if text.len() > FILE_BYTES_MAX {
            return Err(Error::Refused(format!(
                "{} is full; put it aside and begin a new one",
                self.path.display()
            )));
        }
        if let Some(folder) = self.path.parent() {
            tidegate_io::files::create_private_dir(folder)?;
        }
        tidegate_io::files::write_private(&self.path, text.as_bytes()).map_err(|problem| {
            Error::Refused(format!(
                "marks cannot be kept in {}: {problem}; name another file with --labels",
                self.path.display()
            ))
        })
    }
}

impl Label {
    fn origin(&self) -> Origin {
        Origin {
            model: self.model.clone(),
            lists: self.lists.clone(),
            kind: self.score_kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
    fn marks_are_kept_apart_by_what_they_belong_to() {
        let logs = tempfile::tempdir().unwrap();
        let origin = |lists: &str| Origin {
            model: "m".into(),
            lists: lists.into(),
            kind: ScoreKind::Probe,
        };
        let mut labels = Labels::open(None, logs.path()).unwrap();
        assert!(labels.origins().is_empty());
        labels.add("a", Mark::About, &origin("one"), 0.5).unwrap();
        labels.add("b", Mark::Task, &origin("one"), 0.25).unwrap();
        labels.add("a", Mark::Task, &origin("two"), -0.5).unwrap();
        let labels = Labels::open(None, logs.path()).unwrap();
        assert_eq!(labels.origins(), [origin("one"), origin("two")]);
        assert_eq!(labels.scores(&origin("one"), Mark::Task), [0.25]);
        assert!(labels.holds("a", &origin("two")) && !labels.holds("b", &origin("two")));
        std::fs::write(labels.path(), "{}\n").unwrap();
        let problem = Labels::open(None, logs.path()).unwrap_err().to_string();
        assert!(problem.contains("line 1"), "{problem}");
    }
}

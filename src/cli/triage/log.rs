//! The triage log, read line by line: the file in use and those that were put aside, oldest first. Memory does not
//! grow with them.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tidegate_engine::routing::{ScoreKind, Tier};

use super::Origin;

/// The log's place in the logs folder.
const NAME: &str = "agents/triage.jsonl";

/// Files put aside that are looked for; more are kept by nobody.
const ROTATED_MAX: usize = 100;

/// The longest line that is read, in bytes; the gate writes none longer than a few thousand.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What is read of a line.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Line {
    pub(super) request: String,
    pub(super) tier: Tier,
    pub(super) decision: String,
    #[serde(default)]
    pub(super) near_miss: bool,
    pub(super) model: Option<String>,
    pub(super) lists: Option<String>,
    pub(super) score_kind: Option<ScoreKind>,
    pub(super) score: Option<f64>,
    pub(super) threshold: Option<f64>,
    #[serde(default)]
    pub(super) addressed: Option<bool>,
    #[serde(default)]
    pub(super) domain_terms_found: Vec<String>,
    #[serde(default, deserialize_with = "neighbours")]
    pub(super) nearest: Vec<Near>,
    #[serde(default, deserialize_with = "neighbours")]
    pub(super) nearest_negative: Vec<Near>,
    pub(super) query_hash: Option<String>,
    pub(super) query: Option<String>,
}

/// An example near a question.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Near {
    pub(super) id: String,
    pub(super) cosine: f64,
}

fn neighbours<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Near>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Line {
    /// What its score belongs to; `None` where it has none.
    pub(super) fn origin(&self) -> Option<Origin> {
        Some(Origin {
            model: self.model.clone()?,
            lists: self.lists.clone()?,
            kind: self.score_kind?,
        })
    }

    /// Whether the threshold alone decided: nothing else stood against a yes.
    pub(super) fn is_open(&self) -> bool {
        self.addressed == Some(true) && self.domain_terms_found.is_empty()
    }

    pub(super) fn is_yes(&self) -> bool {
        self.decision == "about_agent"
    }

    /// What names the question: the hash of its words, or where the log holds none, the request.
    pub(super) fn id(&self) -> &str {
        self.query_hash.as_deref().unwrap_or(&self.request)
    }
}

/// What was read in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) lines: u64,
    /// Lines that are no decision: cut short by a crash, or written by someone else.
    pub(super) unusable: u64,
}

/// The log below the logs folder.
pub(super) fn path(logs: &Path) -> PathBuf {
    logs.join(NAME)
}

/// Hands over every line of every file, oldest first.
pub(super) fn read(logs: &Path, mut each: impl FnMut(Line)) -> io::Result<Seen> {
    let path = path(logs);
    let mut files: Vec<PathBuf> = (1..=ROTATED_MAX)
        .rev()
        .map(|number| {
            let mut name = path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        })
        .collect();
    files.push(path);
    let mut seen = Seen::default();
    for file in files {
        match File::open(&file) {
            Ok(file) => read_file(BufReader::new(file), &mut seen, &mut each)?,
            Err(problem) if problem.kind() == ErrorKind::NotFound => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(seen)
}

fn read_file(mut file: impl BufRead, seen: &mut Seen, each: &mut dyn FnMut(Line)) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let bound = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        if file.by_ref().take(bound).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(());
        }
        if bytes.len() == LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
            file.skip_until(b'\n')?;
        }
        seen.lines += 1;
        match serde_json::from_slice(&bytes) {
            Ok(line) => each(line),
            Err(_) => seen.unusable += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_none_are_counted_and_passed_over() {
        let good = r#"{"request":"r","tier":"none","decision":"domain","near_miss":false,"score":null,"threshold":0.8}"#;
        let text = format!("{good}\n{}\n{{\"tier\n{good}", "x".repeat(3 * LINE_BYTES_MAX));
        let (mut seen, mut lines) = (Seen::default(), Vec::new());
        read_file(text.as_bytes(), &mut seen, &mut |line| lines.push(line)).unwrap();
        assert_eq!(
            seen,
            Seen {
                lines: 4,
                unusable: 2
            }
        );
        assert_eq!(lines.len(), 2);
        assert!(lines[0].origin().is_none() && lines[0].id() == "r" && !lines[0].is_open());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
    fn files_put_aside_come_first() {
        let logs = tempfile::tempdir().unwrap();
        std::fs::create_dir(logs.path().join("agents")).unwrap();
        assert_eq!(read(logs.path(), |_| ()).unwrap(), Seen::default());
        for (ending, request) in [("", "new"), (".1", "old"), (".12", "oldest")] {
            let line = format!(r#"{{"request":"{request}","tier":"none","decision":"domain"}}"#);
            std::fs::write(logs.path().join(format!("{NAME}{ending}")), line).unwrap();
        }
        let mut order = Vec::new();
        read(logs.path(), |line| order.push(line.request)).unwrap();
        assert_eq!(order, ["oldest", "old", "new"]);
    }
}

//! `cargo xtask corpus FILE…`: hostile, odd and harmless input put to what tools and clients go through, and what
//! must come of it.
//!
//! A file holds one JSON object a line: what is put (`input`), under which configuration (`config`), what must
//! happen (`expect`, `accept`), and what to look at besides (`check`). Which harness a line belongs to follows
//! from its form ([`Harness::of`]); each harness is a module of its own and goes through the entry that the
//! product's own tools go through. Numbers come out by kind and tier ([`report`]) and none is averaged into
//! another. Lines about surfaces that the product does not have yet are listed by id and counted.
//!
//! Lines of `http` and `modes` are put to a daemon that is started here. With `--url` and `--key` those of `http`
//! are put to one that runs already: lines that need a scripted model behind it are left out there, and checks
//! that look into the process or its folder are listed as not seen.

mod case;
mod desk;
mod http;
mod modes;
mod path;
mod remembered;
mod report;
mod secrets;
mod shell;
mod ssrf;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::suites::Count;
use case::{Case, Line, Outcome};
use report::Report;

/// The longest that a refusal of the pure checks may take.
const REFUSAL_MAX: Duration = Duration::from_millis(50);
/// The world of shell lines, where no other is named.
const FIXTURE: &str = "fixture.json";

/// Where a daemon runs already, and what opens it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// `http://HOST:PORT`.
    pub(crate) url: String,
    /// A key; with the scope `admin` every route can be asked.
    pub(crate) key: String,
}

/// What is run, and against what.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    /// The files, in the corpora's format.
    pub(crate) files: Vec<PathBuf>,
    /// The world of shell lines; `None`: `fixture.json` beside the file.
    pub(crate) fixture: Option<PathBuf>,
    /// A daemon that runs already.
    pub(crate) place: Option<Place>,
}

/// What one line came to.
#[derive(Debug)]
enum Judged {
    /// It was put, and this came of it.
    Done(Verdict),
    /// The product has no such surface yet.
    Absent(String),
    /// The form is not known here.
    Unknown(String),
}

/// What was seen of one line.
#[derive(Debug)]
struct Verdict {
    outcome: Outcome,
    /// What decided: a layer and a reason.
    by: String,
    /// Checks that did not hold.
    failures: Vec<String>,
    /// Checks of names that are not known.
    unchecked: Vec<String>,
    /// Checks that cannot be looked at from outside of the daemon.
    unseen: Vec<String>,
    /// How long the decision alone took, where it is held to a time.
    took: Option<Duration>,
}

impl Verdict {
    fn new(outcome: Outcome, by: impl Into<String>) -> Self {
        Self {
            outcome,
            by: by.into(),
            failures: Vec::new(),
            unchecked: Vec::new(),
            unseen: Vec::new(),
            took: None,
        }
    }
}

/// Which harness a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harness {
    Shell,
    Path,
    Ssrf,
    Secrets,
    Http,
    Modes,
}

impl Harness {
    /// By the form of the input first, then by the layer that is expected to decide, then by the file's name.
    fn of(case: &Case, file: &Path) -> Option<Self> {
        let has = |name: &str| case.input.get(name).is_some();
        let layer_is = |names: &[&str]| names.iter().any(|name| case.layer.starts_with(name));
        let stem = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        if has("steps") {
            return Some(Self::Modes);
        }
        if has("op") {
            return Some(Self::Path);
        }
        if layer_is(&["redact", "outbound", "strip", "untrusted", "prompt"]) {
            return Some(Self::Secrets);
        }
        if layer_is(&["ssrf", "egress"]) {
            return Some(Self::Ssrf);
        }
        if layer_is(&["http"]) {
            return Some(Self::Http);
        }
        if layer_is(&["shell"]) {
            return Some(Self::Shell);
        }
        let by_name = [
            ("shell", Self::Shell),
            ("path", Self::Path),
            ("ssrf", Self::Ssrf),
            ("secrets", Self::Secrets),
            ("http", Self::Http),
            ("modes", Self::Modes),
        ];
        let named = by_name.iter().find(|(name, _)| stem.contains(name));
        named.map(|(_, harness)| *harness).or_else(|| {
            if has("url") {
                return Some(Self::Ssrf);
            }
            (case.input.is_string() || has("gen")).then_some(Self::Shell)
        })
    }

    /// Whether its refusals are held to [`REFUSAL_MAX`].
    fn is_pure(self) -> bool {
        match self {
            Self::Shell | Self::Path | Self::Ssrf => true,
            Self::Secrets | Self::Http | Self::Modes => false,
        }
    }
}

/// The harnesses, each made when its first line comes.
struct Harnesses {
    fixture: PathBuf,
    place: Option<Place>,
    shell: Option<shell::Shell>,
    http: Option<http::Http>,
    modes: Option<modes::Modes>,
    address: Option<ssrf::Ssrf>,
}

impl Harnesses {
    fn judge(&mut self, harness: Harness, case: &Case) -> Result<Judged> {
        Ok(match harness {
            Harness::Shell => made(&mut self.shell, || shell::Shell::new(&self.fixture))?.judge(case),
            Harness::Path => path::judge(case)?,
            Harness::Ssrf => made(&mut self.address, ssrf::Ssrf::new)?.judge(case),
            Harness::Secrets => secrets::judge(case),
            Harness::Http => made(&mut self.http, || http::Http::new(self.place.as_ref()))?.judge(case)?,
            Harness::Modes => made(&mut self.modes, modes::Modes::new)?.judge(case)?,
        })
    }
}

fn made<T>(slot: &mut Option<T>, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
    if slot.is_none() {
        *slot = Some(make()?);
    }
    slot.as_mut().context("it was made just now")
}

/// Whether any line of these files needs a built daemon.
pub(crate) fn needs_daemon(order: &Order) -> Result<bool> {
    for file in &order.files {
        for line in case::read(file)? {
            let Line::Case(case) = line else {
                continue;
            };
            match Harness::of(&case, file) {
                Some(Harness::Http) if order.place.is_some() => {}
                Some(Harness::Http | Harness::Modes) => return Ok(true),
                Some(Harness::Shell | Harness::Path | Harness::Ssrf | Harness::Secrets) | None => {}
            }
        }
    }
    Ok(false)
}

/// Runs corpora and prints their tables; the counts are lines that held and lines that did not.
pub(crate) fn run(order: &Order) -> Result<Count> {
    let mut count = Count::default();
    for file in &order.files {
        let one = run_file(file, order).with_context(|| file.display().to_string())?;
        count.passed += one.passed;
        count.failed += one.failed;
    }
    Ok(count)
}

fn run_file(file: &Path, order: &Order) -> Result<Count> {
    let beside = file.with_file_name(FIXTURE);
    let mut harnesses = Harnesses {
        fixture: order.fixture.clone().unwrap_or(beside),
        place: order.place.clone(),
        shell: None,
        http: None,
        modes: None,
        address: None,
    };
    let begin = Instant::now();
    let lines = case::read(file)?;
    let mut report = Report::default();
    for line in &lines {
        let case = match line {
            Line::Case(case) => case,
            Line::Broken { number, problem } => {
                report.broken(*number, problem);
                continue;
            }
        };
        let Some(harness) = Harness::of(case, file) else {
            report.leave_out(case, "no harness knows its form");
            continue;
        };
        let begin = Instant::now();
        match harnesses.judge(harness, case)? {
            Judged::Done(mut verdict) => {
                if case
                    .timeout_ms
                    .is_some_and(|limit| begin.elapsed().as_millis() > u128::from(limit))
                {
                    let took = begin.elapsed().as_millis();
                    verdict.failures.push(format!("it took {took} ms in all"));
                }
                verdict.took = verdict.took.filter(|_| harness.is_pure());
                report.add(case, &verdict);
            }
            Judged::Absent(surface) => report.absent(case, &surface),
            Judged::Unknown(reason) => report.leave_out(case, &reason),
        }
    }
    println!(
        "\n{}: {} lines in {:.1} s",
        file.display(),
        lines.len(),
        begin.elapsed().as_secs_f64()
    );
    Ok(report.print())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harness(text: &str, file: &str) -> Option<Harness> {
        Harness::of(&serde_json::from_str(text).unwrap(), Path::new(file))
    }

    #[test]
    fn a_line_is_known_by_its_form_whatever_its_file_is_called() {
        for (text, expected) in [
            (
                r#"{"input":"ls","layer":"shell.readonly","expect":"allow"}"#,
                Some(Harness::Shell),
            ),
            (
                r#"{"input":{"op":"read","path":"a"},"layer":"allowed-paths","expect":"allow"}"#,
                Some(Harness::Path),
            ),
            (
                r#"{"input":{"url":"http://a"},"layer":"ssrf.dns","expect":"refuse"}"#,
                Some(Harness::Ssrf),
            ),
            (
                r#"{"input":"x","layer":"redaction","expect":"transform"}"#,
                Some(Harness::Secrets),
            ),
            (
                r#"{"input":{"raw":"GET"},"layer":"http","expect":"refuse"}"#,
                Some(Harness::Http),
            ),
            (
                r#"{"input":{"steps":[]},"layer":"modes","expect":"ask"}"#,
                Some(Harness::Modes),
            ),
            (
                r#"{"input":"cat .env","layer":"sensitive-file","expect":"refuse"}"#,
                Some(Harness::Shell),
            ),
            (r#"{"input":{"sings":1},"layer":"new","expect":"refuse"}"#, None),
        ] {
            assert_eq!(harness(text, "hidden.jsonl"), expected, "{text}");
        }
        let odd = r#"{"input":{"sings":1},"layer":"new","expect":"refuse"}"#;
        assert_eq!(harness(odd, "path-2.jsonl"), Some(Harness::Path));
    }
}

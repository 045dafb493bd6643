//! `cargo xtask test`: every suite in order, its time and result, and one last line that says how many passed.
//!
//! A suite fails alone: the others still run, so that one look at the table shows everything that is wrong. Only
//! a release that does not build stops those that need it. To add a suite: a function that gives a [`Count`], a
//! row in [`SUITES`], and a row in `CONTRIBUTING.md`.

mod chroma;
mod crash;
mod embeddings;
mod mcp_server;
mod sandbox;
mod sdk;
mod smoke;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{audit, bench, corpus, demo, eval, model, process, scenarios};

/// How long a cargo command may take.
const CARGO_TIMEOUT: Duration = Duration::from_mins(30);
/// The corpora that come with the repository.
const CORPORA: [&str; 6] = [
    "tests/corpora/shell.jsonl",
    "tests/corpora/path.jsonl",
    "tests/corpora/ssrf.jsonl",
    "tests/corpora/secrets.jsonl",
    "tests/corpora/modes.jsonl",
    "tests/corpora/http.jsonl",
];

/// Cases that held and cases that did not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    /// Held.
    pub(crate) passed: usize,
    /// Did not.
    pub(crate) failed: usize,
}

impl Count {
    /// One case that held.
    pub(crate) const ONE: Self = Self { passed: 1, failed: 0 };

    /// Counts one more case.
    pub(crate) fn add(&mut self, passed: bool) {
        self.passed += usize::from(passed);
        self.failed += usize::from(!passed);
    }

    /// The cases of another count as well.
    pub(crate) fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// When a suite runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// Always.
    Change,
    /// With `--all`.
    All,
}

/// What a suite needs before it can run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Release,
}

struct Suite {
    name: &'static str,
    tier: Tier,
    needs: Needs,
    run: fn() -> Result<Count>,
}

const fn suite(name: &'static str, tier: Tier, needs: Needs, run: fn() -> Result<Count>) -> Suite {
    Suite {
        name,
        tier,
        needs,
        run,
    }
}

/// Every suite, in the order in which they run.
const SUITES: &[Suite] = &[
    suite("format", Tier::Change, Needs::Nothing, format),
    suite("lints", Tier::Change, Needs::Nothing, lints),
    suite("documentation", Tier::Change, Needs::Nothing, documentation),
    suite("tests", Tier::Change, Needs::Nothing, tests),
    suite("doctests", Tier::Change, Needs::Nothing, doctests),
    suite("release", Tier::Change, Needs::Nothing, release),
    suite("curl", Tier::Change, Needs::Release, smoke::run),
    suite("corpus", Tier::Change, Needs::Release, || {
        let files = CORPORA.map(|file| process::root().join(file)).to_vec();
        corpus::run(&corpus::Order {
            files,
            ..corpus::Order::default()
        })
    }),
    suite("sdk-python", Tier::Change, Needs::Release, sdk::python),
    suite("sdk-node", Tier::Change, Needs::Release, sdk::node),
    suite("kill", Tier::Change, Needs::Release, crash::run),
    suite("embeddings", Tier::Change, Needs::Release, embeddings::run),
    suite("chroma", Tier::Change, Needs::Release, chroma::run),
    suite("sandbox", Tier::Change, Needs::Release, sandbox::run),
    suite("demo", Tier::Change, Needs::Release, || {
        demo::run(true, 0).map(|()| Count::ONE)
    }),
    suite("bench", Tier::Change, Needs::Release, || {
        bench::run(true).map(|_| Count::ONE)
    }),
    suite("scenarios", Tier::Change, Needs::Nothing, scenarios::suite),
    suite("eval", Tier::Change, Needs::Nothing, evaluation),
    suite("mcp-server", Tier::Change, Needs::Release, mcp_server::run),
    suite("audit", Tier::All, Needs::Nothing, audit::run),
];

struct Row {
    name: &'static str,
    took: Duration,
    count: Count,
    problem: Option<String>,
}

/// Runs the suites and prints the table; whether all passed.
pub(crate) fn test(all: bool, only: &[String]) -> Result<bool> {
    if let Some(unknown) = only
        .iter()
        .find(|name| !SUITES.iter().any(|suite| suite.name == **name))
    {
        let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        bail!("there is no suite `{unknown}`; there are {}", names.join(", "));
    }
    let chosen = |suite: &&Suite| {
        if only.is_empty() {
            all || suite.tier == Tier::Change
        } else {
            only.iter().any(|name| name == suite.name)
        }
    };
    let model_ran = model::status().is_some();
    let mut rows: Vec<Row> = Vec::new();
    for suite in SUITES.iter().filter(chosen) {
        println!("\n== {} ==", suite.name);
        let begin = Instant::now();
        let released = suite.needs == Needs::Nothing || process::release_binary().is_file();
        let result = if released {
            (suite.run)()
        } else {
            Err(anyhow::anyhow!("there is no release binary"))
        };
        let (count, problem) = match result {
            Ok(count) => (count, None),
            Err(error) => {
                println!("error: {error:#}");
                (Count { passed: 0, failed: 1 }, Some(format!("{error:#}")))
            }
        };
        rows.push(Row {
            name: suite.name,
            took: begin.elapsed(),
            count,
            problem,
        });
    }
    if !model_ran {
        model::stop()?;
    }
    Ok(summary(&rows))
}

fn summary(rows: &[Row]) -> bool {
    println!(
        "\n{:<14} {:>8} {:>8} {:>8}",
        "suite", "seconds", "passed", "failed"
    );
    let mut total = Count::default();
    for row in rows {
        total.passed += row.count.passed;
        total.failed += row.count.failed;
        let Count { passed, failed } = row.count;
        println!(
            "{:<14} {:>8.1} {passed:>8} {failed:>8}",
            row.name,
            row.took.as_secs_f64()
        );
    }
    for row in rows {
        if let Some(problem) = &row.problem {
            println!("{}: {}", row.name, problem.lines().next().unwrap_or_default());
        }
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    total.failed == 0
}

/// Format, lints and documentation; stops at the first that fails.
pub(crate) fn check() -> Result<bool> {
    for run in [format, lints, documentation] {
        run()?;
    }
    Ok(true)
}

/// Builds the release binary.
pub(crate) fn build_release() -> Result<()> {
    release().map(|_| ())
}

/// How well documents are found, where the development data lies beside the repository.
fn evaluation() -> Result<Count> {
    let everything = eval::What::Everything {
        data: None,
        bless: false,
    };
    let is_measured = eval::has_data();
    let is_good = eval::run(everything, None)?;
    let mut count = Count::default();
    if is_measured {
        count.add(is_good);
    }
    Ok(count)
}

fn cargo(arguments: &[&str]) -> Result<Count> {
    process::check(&mut process::cargo(arguments), CARGO_TIMEOUT)?;
    Ok(Count::ONE)
}

fn format() -> Result<Count> {
    cargo(&["fmt", "--all", "--", "--check"])
}

fn lints() -> Result<Count> {
    cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ])
}

fn documentation() -> Result<Count> {
    let mut command = process::cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ]);
    process::check(command.env("RUSTDOCFLAGS", "-D warnings"), CARGO_TIMEOUT)?;
    Ok(Count::ONE)
}

/// The release builds, and knows nothing of the clock that tests turn.
fn release() -> Result<Count> {
    let mut count = cargo(&["build", "--release", "--package", "tidegate", "--locked"])?;
    let program = std::fs::read(process::release_binary())?;
    count.add(!scenarios::names_the_clock(&program));
    Ok(count)
}

/// The Rust tests, by nextest where it is installed.
fn tests() -> Result<Count> {
    if let Err(error) = ensure_program("bwrap", "bubblewrap") {
        println!("the sandbox is tested at its weaker level alone: {error:#}");
    }
    if process::exists("cargo-nextest") {
        let mut command = process::cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]);
        return counted(&mut command);
    }
    counted(&mut process::cargo(&[
        "test",
        "--workspace",
        "--all-targets",
        "--locked",
        "--no-fail-fast",
    ]))
}

fn doctests() -> Result<Count> {
    counted(&mut process::cargo(&[
        "test",
        "--workspace",
        "--doc",
        "--locked",
        "--no-fail-fast",
    ]))
}

/// Runs a test runner and counts by its own summary lines.
fn counted(command: &mut std::process::Command) -> Result<Count> {
    let finished = process::run(command, CARGO_TIMEOUT)?;
    let count = counts(&finished.lines);
    if !finished.success && count.failed == 0 {
        bail!("the tests did not build or the runner failed");
    }
    Ok(count)
}

/// Adds up the summaries. Where nextest wrote one, what its tests printed is no summary: a failed one shows its own.
fn counts(lines: &[String]) -> Count {
    let is_summary = |line: &&String| line.trim_start().starts_with("Summary [");
    let is_result = |line: &&String| line.contains("test result: ") || is_bare_count(line);
    let mut summaries: Vec<&String> = lines.iter().filter(is_summary).collect();
    if summaries.is_empty() {
        summaries = lines.iter().filter(is_result).collect();
    }
    let mut count = Count::default();
    for line in summaries {
        count.passed += number_before(line, " passed").unwrap_or_default();
        count.failed += number_before(line, " failed").unwrap_or_default();
        count.failed += number_before(line, " timed out").unwrap_or_default();
    }
    count
}

/// The last line of our own suites in other languages: `N passed, N failed`.
fn is_bare_count(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_digit())
        && line.contains(" passed, ")
        && line.ends_with(" failed")
}

fn number_before(line: &str, word: &str) -> Option<usize> {
    let (before, _) = line.split_once(word)?;
    let digits = before.rsplit(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Installs a Debian package where a program is missing.
fn ensure_program(program: &str, package: &str) -> Result<()> {
    if process::exists(program) {
        return Ok(());
    }
    println!("installing {package}");
    let environment = ("DEBIAN_FRONTEND", "noninteractive");
    for arguments in [
        &["update", "-q"][..],
        &["install", "-q", "-y", "--no-install-recommends", package][..],
    ] {
        let mut command = process::program("apt-get");
        command.args(arguments).env(environment.0, environment.1);
        process::check(&mut command, Duration::from_mins(5))
            .with_context(|| format!("`{program}` is needed; install the package `{package}`"))?;
    }
    Ok(())
}

/// A path as an argument.
fn argument(path: &Path) -> Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is no UTF-8", path.display()))
}

#[cfg(test)]
mod tests_of_counting {
    use super::*;

    #[test]
    fn the_numbers_of_every_runner_are_read() {
        for (line, passed, failed) in [
            (
                "test result: FAILED. 14 passed; 1 failed; 0 ignored",
                Some(14),
                Some(1),
            ),
            (
                "     Summary [   3.1s] 120 tests run: 118 passed (1 slow), 2 failed, 0 skipped",
                Some(118),
                Some(2),
            ),
            (
                "     Summary [   3.1s] 120 tests run: 120 passed, 0 skipped",
                Some(120),
                None,
            ),
            ("11 passed, 1 failed", Some(11), Some(1)),
        ] {
            assert_eq!(
                (number_before(line, " passed"), number_before(line, " failed")),
                (passed, failed),
                "{line}"
            );
        }
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let failing = lines(&[
            "test result: FAILED. 0 passed; 1 failed; 0 ignored",
            "     Summary [   3.1s] 3 tests run: 2 passed, 1 failed, 0 skipped",
        ]);
        assert_eq!((counts(&failing).passed, counts(&failing).failed), (2, 1));
        let two = lines(&[
            "test result: ok. 3 passed; 0 failed",
            "test result: FAILED. 1 passed; 2 failed",
        ]);
        assert_eq!((counts(&two).passed, counts(&two).failed), (4, 2));
        assert!(is_bare_count("11 passed, 0 failed"));
        assert!(!is_bare_count("ok 11 passed, 0 failed"));
    }
}

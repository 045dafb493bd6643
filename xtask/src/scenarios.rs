//! `cargo xtask scenarios FILE…`: what is remembered of people, played through a running daemon.
//!
//! A file holds one scenario a line: people who talk to the agent on different days, and what must be believed of them
//! afterwards. Each scenario has a daemon of its own, which is the product with one thing more, a clock that is turned
//! from outside (the feature `testing`). Everything else is real: requests over HTTP, the database, the queue, tools that
//! read what was put into the knowledge bank, restarts and `kill -9`. The player is the model, also the one that looks for
//! facts, and says what the scenario has it say; in the scenarios of poisoning that one is fooled on purpose.
//!
//! A line that cannot be read or played is that scenario's failure, and the others go on.

mod api;
mod check;
mod figures;
mod form;
mod play;
mod policy;
mod script;
mod stage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::suites::Count;
use crate::{eval, process};
use form::{Scenario, shown};
use play::Outcome;
use stage::House;

/// The scenarios of this repository.
const OWN: &str = "tests/memory/scenarios.jsonl";
/// How long the daemon may take to build.
const BUILD_TIMEOUT: Duration = Duration::from_mins(30);
/// Scenarios that are played at a time, for each processor: they mostly wait for one another's disk and start.
const PLAYED_PER_PROCESSOR: usize = 2;

/// One line of a file.
struct Line {
    id: String,
    class: String,
    scenario: Result<Scenario>,
}

/// Measures instead of playing files.
pub(crate) fn figures(binary: Option<PathBuf>) -> Result<Count> {
    let runtime = tokio::runtime::Runtime::new()?;
    figures::all(&house(&runtime, binary)?)
}

/// The suite: this repository's own scenarios, and everything that others would have people say.
pub(crate) fn suite() -> Result<Count> {
    let runtime = tokio::runtime::Runtime::new()?;
    let house = house(&runtime, None)?;
    let mut count = play_files(&house, &[])?;
    let original = eval::beside().join("memory/scenarios.jsonl");
    if original.is_file() {
        // Ours is a copy, so that a clone has it; it must not drift.
        let same = std::fs::read(&original)? == std::fs::read(process::root().join(OWN))?;
        println!(
            "{OWN} and {} are {}",
            original.display(),
            if same { "the same" } else { "NOT the same" }
        );
        count.add(same);
    }
    count.merge(figures::poison(&house)?);
    Ok(count)
}

/// Plays files, or this repository's own where none is named, and prints what came of it.
pub(crate) fn run(files: &[PathBuf], binary: Option<PathBuf>) -> Result<Count> {
    let runtime = tokio::runtime::Runtime::new()?;
    play_files(&house(&runtime, binary)?, files)
}

fn play_files(house: &House, files: &[PathBuf]) -> Result<Count> {
    let own = [process::root().join(OWN)];
    let files = if files.is_empty() { &own[..] } else { files };
    let mut lines = Vec::new();
    for file in files {
        lines.extend(read(file)?);
    }
    ensure!(!lines.is_empty(), "there is no scenario in these files");
    let begin = Instant::now();
    let outcomes = play_all(house, &lines);
    Ok(report(&lines, &outcomes, begin.elapsed()))
}

/// The daemon with the clock that can be turned: the one that is named, or one that is built here.
fn house(runtime: &Runtime, named: Option<PathBuf>) -> Result<House> {
    let binary = match named {
        Some(binary) => std::path::absolute(binary)?,
        None => build()?,
    };
    let bytes = std::fs::read(&binary).with_context(|| binary.display().to_string())?;
    ensure!(
        names_the_clock(&bytes),
        "{} was built without the feature `testing`",
        binary.display()
    );
    let key = process::output(process::program(&binary).args(["keys", "generate"]))?;
    Ok(House {
        runtime: runtime.handle().clone(),
        binary,
        key: key.trim().to_owned(),
    })
}

fn build() -> Result<PathBuf> {
    // With the whole workspace, so that the parts of other people are those that the tests are built with.
    let arguments = [
        "build",
        "--workspace",
        "--bin",
        "tidegate-testing",
        "--features",
        "tidegate/testing",
        "--locked",
    ];
    process::check(&mut process::cargo(&arguments), BUILD_TIMEOUT)?;
    Ok(process::target().join("debug/tidegate-testing"))
}

/// Whether a program knows the variable of the clock.
pub(crate) fn names_the_clock(program: &[u8]) -> bool {
    let name = stage::CLOCK_VARIABLE.as_bytes();
    program.windows(name.len()).any(|window| window == name)
}

fn read(file: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let lines = text.lines().enumerate();
    Ok(lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            // A scenario that cannot be read may still say what it is called.
            let value: Value = serde_json::from_str(line).unwrap_or_default();
            let named = |name: &str, otherwise: String| {
                let text = shown(&value[name]);
                if text.is_empty() { otherwise } else { text }
            };
            Line {
                id: named("id", format!("{}:{}", file.display(), number + 1)),
                class: named("class", "without a class".to_owned()),
                scenario: Scenario::read(line),
            }
        })
        .collect())
}

/// Plays them all, some at a time; what came of each, in their order.
fn play_all(house: &House, lines: &[Line]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(BTreeMap::new());
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..processors * PLAYED_PER_PROCESSOR {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(line) = lines.get(at) else { return };
                    let outcome = match &line.scenario {
                        Ok(scenario) => play::scenario(house, scenario),
                        Err(error) => Outcome {
                            failures: vec![format!("{error:#}")],
                            ..Outcome::default()
                        },
                    };
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    outcomes.insert(at, outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.into_values().collect()
}

fn report(lines: &[Line], outcomes: &[Outcome], took: Duration) -> Count {
    let mut classes: BTreeMap<&str, Count> = BTreeMap::new();
    let (mut total, mut extractions) = (Count::default(), 0);
    for (line, outcome) in lines.iter().zip(outcomes) {
        let holds = outcome.failures.is_empty();
        classes.entry(&line.class).or_default().add(holds);
        total.add(holds);
        extractions += outcome.extractions;
        for failure in &outcome.failures {
            println!("FAIL {} ({}): {failure}", line.id, line.class);
        }
        for note in &outcome.notes {
            println!("note {}: {note}", line.id);
        }
    }
    println!("\n{:<20} {:>6} {:>6} {:>8}", "class", "passed", "of", "rate");
    for (class, count) in &classes {
        println!("{class:<20} {}", rate(*count));
    }
    println!("{:<20} {}", "all", rate(total));
    println!(
        "{} scenarios in {:.1} s; the scripted extractor was asked {extractions} times",
        lines.len(),
        took.as_secs_f64()
    );
    total
}

/// Passed, of how many, and the share.
fn rate(count: Count) -> String {
    let all = count.passed + count.failed;
    format!(
        "{:>6} {all:>6} {:>6} %",
        count.passed,
        count.passed * 100 / all.max(1)
    )
}

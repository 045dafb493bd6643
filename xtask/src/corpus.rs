//! `cargo xtask corpus FILE`: hostile and odd requests against a real daemon, and what must come of them.
//!
//! Without more it starts a daemon of its own, with a scripted model server behind it. With `--url` and `--key`
//! it puts the file to a daemon that runs already: lines that need the scripted model are left out there, too,
//! and checks that look into the process or its folder are listed as not seen.
//!
//! A file holds one JSON object a line: what is sent (`input`, read in [`form`]), what must happen (`expect`,
//! `accept`), and what to look at besides (`check`, judged in [`judge`]). Three numbers a kind come out, and
//! none is averaged into another: things let through that should not be, refusals that are softer than asked
//! for, and the share of good requests that were served. Lines about routes that the daemon does not have are
//! left out, counted and listed.

mod drive;
mod fill;
mod form;
mod judge;
mod target;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::suites::Count;
use drive::Bench;
use form::Input;
use target::Target;

/// The share of good requests outside the core that must be served.
const WIDE_SHARE_MIN: f64 = 0.95;

/// One line of a corpus.
#[derive(Debug, Clone, Deserialize)]
struct Case {
    id: String,
    kind: String,
    input: Map<String, Value>,
    #[serde(default)]
    config: Map<String, Value>,
    expect: Outcome,
    #[serde(default)]
    accept: Vec<Outcome>,
    #[serde(default)]
    tier: Tier,
    #[serde(default)]
    why: String,
    #[serde(default)]
    check: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Allow,
    Ask,
    Refuse,
    Transform,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tier {
    #[default]
    Core,
    Wide,
    Stretch,
}

impl Case {
    fn accepts(&self, outcome: Outcome) -> bool {
        if self.accept.is_empty() {
            outcome == self.expect
        } else {
            self.accept.contains(&outcome)
        }
    }
}

/// The counts of one kind, or of the stretch lines.
#[derive(Debug, Default)]
struct Tally {
    lines: usize,
    skipped: usize,
    false_allows: usize,
    floor_leaks: usize,
    allow_core: (usize, usize),
    allow_wide: (usize, usize),
    failed_checks: usize,
}

/// What one line came to.
struct Verdict {
    outcome: Outcome,
    failures: Vec<String>,
    /// Checks of names that are not known.
    unchecked: Vec<String>,
    /// Checks that cannot be looked at from outside of the daemon.
    unseen: Vec<String>,
}

/// Where a daemon runs already, and what opens it.
#[derive(Debug)]
pub(crate) struct Place {
    /// `http://HOST:PORT`.
    pub(crate) url: String,
    /// A key; with the scope `admin` every route can be asked.
    pub(crate) key: String,
}

/// Runs a corpus and prints its table; the counts are lines that held and lines that did not.
pub(crate) fn run(file: &Path, place: Option<&Place>) -> Result<Count> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let cases = parse(&text)?;
    let target = match place {
        Some(place) => Target::find(&place.url, &place.key)?,
        None => Target::start()?,
    };
    let mut bench = Bench::new(target);
    let begin = Instant::now();
    let mut report = Report::default();
    for case in &cases {
        let input = Input::read(&case.input, &case.config).and_then(|input| {
            bench
                .lacks(&input)
                .map_or(Ok(input), |reason| Err(reason.to_owned()))
        });
        match input {
            Ok(input) => {
                let verdict = bench.judge(case, &input)?;
                report.add(case, &verdict);
            }
            Err(reason) => report.leave_out(case, &reason),
        }
    }
    println!(
        "{}: {} lines in {:.1} s",
        file.display(),
        cases.len(),
        begin.elapsed().as_secs_f64()
    );
    Ok(report.print())
}

/// What came of all lines.
#[derive(Debug, Default)]
struct Report {
    tallies: BTreeMap<String, Tally>,
    stretch: Tally,
    skipped: Vec<String>,
    notes: Vec<String>,
    wrong: Vec<String>,
    /// How many lines have a check that could not be looked at, by its name.
    unseen: BTreeMap<String, usize>,
    count: Count,
}

impl Report {
    fn tally(&mut self, case: &Case) -> &mut Tally {
        let tally = if case.tier == Tier::Stretch {
            &mut self.stretch
        } else {
            self.tallies.entry(case.kind.clone()).or_default()
        };
        tally.lines += 1;
        tally
    }

    fn leave_out(&mut self, case: &Case, reason: &str) {
        self.tally(case).skipped += 1;
        self.skipped.push(format!("{} {}: {reason}", case.id, case.why));
    }

    fn add(&mut self, case: &Case, verdict: &Verdict) {
        let is_stretch = case.tier == Tier::Stretch;
        let problems = self.tally(case).add(case, verdict);
        let lines = problems
            .iter()
            .map(|problem| format!("{} {} ({}): {problem}", case.id, case.kind, case.why));
        let target = if is_stretch {
            &mut self.notes
        } else {
            &mut self.wrong
        };
        target.extend(lines);
        let unchecked = verdict.unchecked.iter();
        self.notes
            .extend(unchecked.map(|name| format!("{}: check `{name}` is not known", case.id)));
        for name in &verdict.unseen {
            *self.unseen.entry(name.clone()).or_default() += 1;
        }
        if !is_stretch {
            self.count.add(problems.is_empty());
        }
    }

    fn print(mut self) -> Count {
        print_table(&self.tallies, &self.stretch);
        print_list("left out", &self.skipped);
        let unseen = self.unseen.iter();
        let unseen =
            unseen.map(|(name, lines)| format!("`{name}` of {lines} lines: it is seen only from inside"));
        print_list("not seen", &unseen.collect::<Vec<_>>());
        print_list("noted", &self.notes);
        print_list("WRONG", &self.wrong);
        let wide = self.tallies.values().fold((0, 0), |sum, tally| {
            (sum.0 + tally.allow_wide.0, sum.1 + tally.allow_wide.1)
        });
        if share(wide) < WIDE_SHARE_MIN {
            println!(
                "WRONG: only {:.0} % of the wide good requests were served",
                share(wide) * 100.0
            );
            self.count.failed += 1;
        }
        self.count
    }
}

fn parse(text: &str) -> Result<Vec<Case>> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let cases: Vec<Case> = lines
        .map(|(number, line)| serde_json::from_str(line).with_context(|| format!("line {}", number + 1)))
        .collect::<Result<_>>()?;
    if cases.is_empty() {
        bail!("the file holds no lines");
    }
    Ok(cases)
}

impl Tally {
    /// Counts a line and says what is wrong with it.
    fn add(&mut self, case: &Case, verdict: &Verdict) -> Vec<String> {
        let mut problems = Vec::new();
        let outcome = verdict.outcome;
        if outcome == Outcome::Allow && !case.accepts(Outcome::Allow) {
            self.false_allows += 1;
            problems.push("was let through".to_owned());
        }
        if case.expect == Outcome::Refuse && outcome == Outcome::Ask && !case.accepts(Outcome::Ask) {
            self.floor_leaks += 1;
            problems.push("was asked about instead of refused".to_owned());
        }
        if case.expect == Outcome::Allow {
            let counter = if case.tier == Tier::Wide {
                &mut self.allow_wide
            } else {
                &mut self.allow_core
            };
            // A refusal that the line accepts as well says nothing about what a usable daemon serves.
            if outcome == Outcome::Allow || !case.accepts(outcome) {
                counter.1 += 1;
                counter.0 += usize::from(outcome == Outcome::Allow);
            }
            if outcome != Outcome::Allow && !case.accepts(outcome) && case.tier != Tier::Wide {
                problems.push("was refused".to_owned());
            }
        }
        if !verdict.failures.is_empty() {
            self.failed_checks += 1;
            problems.extend(verdict.failures.iter().cloned());
        }
        problems
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of lines are far below what a float holds exactly"
)]
fn share((served, all): (usize, usize)) -> f64 {
    if all == 0 { 1.0 } else { served as f64 / all as f64 }
}

fn print_table(tallies: &BTreeMap<String, Tally>, stretch: &Tally) {
    println!(
        "{:<14} {:>5} {:>8} {:>12} {:>11} {:>11} {:>11} {:>13}",
        "kind",
        "lines",
        "left out",
        "false allows",
        "floor leaks",
        "core served",
        "wide served",
        "failed checks"
    );
    let rows = tallies.iter().map(|(kind, tally)| (kind.as_str(), tally));
    for (kind, tally) in rows.chain([("(stretch)", stretch)]) {
        println!(
            "{kind:<14} {:>5} {:>8} {:>12} {:>11} {:>11} {:>11} {:>13}",
            tally.lines,
            tally.skipped,
            tally.false_allows,
            tally.floor_leaks,
            format!("{}/{}", tally.allow_core.0, tally.allow_core.1),
            format!("{}/{}", tally.allow_wide.0, tally.allow_wide.1),
            tally.failed_checks,
        );
    }
}

fn print_list(title: &str, lines: &[String]) {
    if !lines.is_empty() {
        println!("{title} ({}):", lines.len());
    }
    for line in lines {
        println!("  {line}");
    }
}

//! What came of all lines, by kind and by tier.

use std::collections::BTreeMap;

use super::case::{Case, Outcome, Tier};
use super::{REFUSAL_MAX, Verdict};
use crate::suites::Count;

/// The share of good input outside the core that must be let through.
const WIDE_SHARE_MIN: f64 = 0.95;

/// The counts of one kind, or of the stretch lines.
#[derive(Debug, Default)]
struct Tally {
    lines: usize,
    left_out: usize,
    absent: usize,
    false_allows: usize,
    floor_leaks: usize,
    over_strict: usize,
    allow_core: (usize, usize),
    allow_wide: (usize, usize),
    failed_checks: usize,
    slow: usize,
}

/// What came of all lines.
#[derive(Debug, Default)]
pub(super) struct Report {
    tallies: BTreeMap<String, Tally>,
    stretch: Tally,
    left_out: Vec<String>,
    /// Lines by the surface that is not there yet.
    absent: BTreeMap<String, Vec<String>>,
    notes: Vec<String>,
    strict: Vec<String>,
    /// Good lines outside the core that were not let through.
    not_served: Vec<String>,
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

    pub(super) fn broken(&mut self, number: usize, problem: &str) {
        self.left_out.push(format!("line {number}: {problem}"));
    }

    pub(super) fn leave_out(&mut self, case: &Case, reason: &str) {
        self.tally(case).left_out += 1;
        self.left_out.push(format!("{} {}: {reason}", case.id, case.why));
    }

    pub(super) fn absent(&mut self, case: &Case, surface: &str) {
        self.tally(case).absent += 1;
        self.absent
            .entry(surface.to_owned())
            .or_default()
            .push(case.id.clone());
    }

    pub(super) fn add(&mut self, case: &Case, verdict: &Verdict) {
        let is_stretch = case.tier == Tier::Stretch;
        let problems = self.tally(case).add(case, verdict);
        let told = format!("{} {} ({})", case.id, case.kind, case.why);
        let by = if verdict.by.is_empty() {
            String::new()
        } else {
            format!(" [{}]", verdict.by)
        };
        let lines = problems.iter().map(|problem| format!("{told}: {problem}{by}"));
        // A wide line that is asked about or refused counts in its share alone.
        let is_held = problems.iter().all(|problem| problem == NOT_SERVED);
        let target = match (is_stretch, is_held) {
            (true, _) => &mut self.notes,
            (false, true) => &mut self.not_served,
            (false, false) => &mut self.wrong,
        };
        target.extend(lines);
        if is_over_strict(case, verdict.outcome) {
            let line = format!("{told}: {}{by}", verdict.outcome.name());
            self.strict.push(line);
        }
        let unchecked = verdict.unchecked.iter();
        self.notes
            .extend(unchecked.map(|name| format!("{}: {name} is not known", case.id)));
        for name in &verdict.unseen {
            *self.unseen.entry(name.clone()).or_default() += 1;
        }
        if !is_stretch {
            self.count.add(is_held);
        }
    }

    pub(super) fn print(mut self) -> Count {
        print_table(&self.tallies, &self.stretch);
        print_list("left out", &self.left_out);
        let absent: Vec<String> = self
            .absent
            .iter()
            .map(|(surface, ids)| format!("{surface} ({}): {}", ids.len(), ids.join(" ")))
            .collect();
        let lines: usize = self.absent.values().map(Vec::len).sum();
        if lines > 0 {
            println!("waiting for a surface that does not exist yet: {lines} lines");
        }
        print_list("surfaces", &absent);
        let unseen = self.unseen.iter();
        let unseen =
            unseen.map(|(name, lines)| format!("`{name}` of {lines} lines: it is seen only from inside"));
        print_list("not seen", &unseen.collect::<Vec<_>>());
        print_list("stricter than asked for, and accepted", &self.strict);
        print_list(
            "good lines outside the core that were not let through",
            &self.not_served,
        );
        print_list("noted", &self.notes);
        print_list("WRONG", &self.wrong);
        let wide = self.tallies.values().fold((0, 0), |sum, tally| {
            (sum.0 + tally.allow_wide.0, sum.1 + tally.allow_wide.1)
        });
        if share(wide) < WIDE_SHARE_MIN {
            println!(
                "WRONG: only {:.0} % of the wide good lines were let through",
                share(wide) * 100.0
            );
            self.count.failed += 1;
        }
        self.count
    }
}

/// The problem of a good line outside the core; alone it fails nothing but the share.
const NOT_SERVED: &str = "was not let through";

fn is_over_strict(case: &Case, outcome: Outcome) -> bool {
    case.accepts(outcome)
        && match case.expect {
            Outcome::Ask => outcome == Outcome::Refuse,
            Outcome::Allow | Outcome::Transform => matches!(outcome, Outcome::Ask | Outcome::Refuse),
            Outcome::Refuse => false,
        }
}

impl Tally {
    /// Counts a line and says what is wrong with it.
    fn add(&mut self, case: &Case, verdict: &Verdict) -> Vec<String> {
        let mut problems = Vec::new();
        let outcome = verdict.outcome;
        if outcome == Outcome::Allow && !case.accepts(Outcome::Allow) && case.expect != Outcome::Transform {
            self.false_allows += 1;
            problems.push("was let through".to_owned());
        }
        if case.expect == Outcome::Refuse && outcome == Outcome::Ask && !case.accepts(Outcome::Ask) {
            self.floor_leaks += 1;
            problems.push("was asked about instead of refused".to_owned());
        }
        self.over_strict += usize::from(is_over_strict(case, outcome));
        if case.expect == Outcome::Allow {
            let is_wide = case.tier == Tier::Wide;
            let counter = if is_wide {
                &mut self.allow_wide
            } else {
                &mut self.allow_core
            };
            // A refusal that the line accepts as well says nothing about what a usable product lets through.
            if outcome == Outcome::Allow || !case.accepts(outcome) {
                counter.1 += 1;
                counter.0 += usize::from(outcome == Outcome::Allow);
            }
            if outcome != Outcome::Allow && !case.accepts(outcome) {
                problems.push(if is_wide {
                    NOT_SERVED.to_owned()
                } else {
                    format!("was {}", outcome.name())
                });
            }
        }
        if !verdict.failures.is_empty() {
            self.failed_checks += 1;
            problems.extend(verdict.failures.iter().cloned());
        }
        if let Some(took) = verdict.took.filter(|took| *took > REFUSAL_MAX)
            && outcome == Outcome::Refuse
        {
            self.slow += 1;
            problems.push(format!("the refusal took {} ms", took.as_millis()));
        }
        problems
    }

    fn sum(tallies: &BTreeMap<String, Self>) -> Self {
        tallies.values().fold(Self::default(), |sum, tally| Self {
            lines: sum.lines + tally.lines,
            left_out: sum.left_out + tally.left_out,
            absent: sum.absent + tally.absent,
            false_allows: sum.false_allows + tally.false_allows,
            floor_leaks: sum.floor_leaks + tally.floor_leaks,
            over_strict: sum.over_strict + tally.over_strict,
            allow_core: (
                sum.allow_core.0 + tally.allow_core.0,
                sum.allow_core.1 + tally.allow_core.1,
            ),
            allow_wide: (
                sum.allow_wide.0 + tally.allow_wide.0,
                sum.allow_wide.1 + tally.allow_wide.1,
            ),
            failed_checks: sum.failed_checks + tally.failed_checks,
            slow: sum.slow + tally.slow,
        })
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
        "{:<26} {:>5} {:>8} {:>7} {:>12} {:>11} {:>11} {:>12} {:>12} {:>13} {:>4}",
        "kind",
        "lines",
        "left out",
        "waiting",
        "false allows",
        "floor leaks",
        "over-strict",
        "core allowed",
        "wide allowed",
        "failed checks",
        "slow"
    );
    let sum = Tally::sum(tallies);
    let rows = tallies.iter().map(|(kind, tally)| (kind.as_str(), tally));
    for (kind, tally) in rows.chain([("(core and wide)", &sum), ("(stretch)", stretch)]) {
        println!(
            "{kind:<26} {:>5} {:>8} {:>7} {:>12} {:>11} {:>11} {:>12} {:>12} {:>13} {:>4}",
            tally.lines,
            tally.left_out,
            tally.absent,
            tally.false_allows,
            tally.floor_leaks,
            tally.over_strict,
            format!("{}/{}", tally.allow_core.0, tally.allow_core.1),
            format!("{}/{}", tally.allow_wide.0, tally.allow_wide.1),
            tally.failed_checks,
            tally.slow,
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

//! `tidegate triage report`: decisions counted, scores drawn.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_engine::routing::Tier;

use super::{
    Origin,
    histogram::{Histogram, WIDTH},
    kind_name, log, svg,
};
use crate::{
    cli::{
        args,
        error::Error,
        output::{self, Out},
    },
    config::Settings,
};

/// Models and lists that are told apart; lines of further ones are counted together.
const ORIGINS_MAX: usize = 16;

/// The longest bar, in characters.
const BAR_CHARS: u64 = 50;

/// Counts of one tier.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    about_agent: u64,
    domain: u64,
    near_misses: u64,
}

/// Scores of one origin.
#[derive(Debug, Clone)]
struct Group {
    origin: Origin,
    lines: u64,
    /// The threshold of its newest line.
    threshold: Option<f64>,
    histogram: Histogram,
}

/// All that is counted.
#[derive(Debug, Default)]
struct Totals {
    tiers: BTreeMap<&'static str, Count>,
    /// In the order of their newest line, newest last.
    groups: Vec<Group>,
    further: u64,
}

impl Totals {
    fn add(&mut self, line: &log::Line, model: Option<&str>) {
        let count = self.tiers.entry(tier_name(line.tier)).or_default();
        *(if line.is_yes() {
            &mut count.about_agent
        } else {
            &mut count.domain
        }) += 1;
        count.near_misses += u64::from(line.near_miss);
        let (Some(origin), Some(score)) = (line.origin(), line.score) else {
            return;
        };
        if model.is_some_and(|model| model != origin.model) {
            return;
        }
        let at = self.groups.iter().position(|group| group.origin == origin);
        let mut group = match at {
            Some(at) => self.groups.remove(at),
            None if self.groups.len() < ORIGINS_MAX => Group {
                origin,
                lines: 0,
                threshold: None,
                histogram: Histogram::default(),
            },
            None => {
                self.further += 1;
                return;
            }
        };
        group.lines += 1;
        group.threshold = line.threshold;
        group.histogram.add(score, line.is_yes());
        self.groups.push(group);
    }
}

/// Reads the log and prints what came of it.
pub(super) fn run(settings: &Settings, command: &args::triage::Report, out: Out<'_>) -> Result<(), Error> {
    let mut totals = Totals::default();
    let model = command.model.as_deref();
    let seen = log::read(&settings.logs, |line| totals.add(&line, model))?;
    if let Some(file) = &command.svg {
        draw(&totals, file)?;
    }
    if command.output.json {
        return Ok(output::json(out, &value(&totals, seen))?);
    }
    if seen.lines == 0 {
        let path = log::path(&settings.logs);
        writeln!(out, "no decision is logged yet: {}", path.display())?;
        return Ok(());
    }
    print(&totals, seen, out)?;
    if let Some(file) = &command.svg {
        writeln!(
            out,
            "\nthe picture is {}",
            output::plain(&file.display().to_string())
        )?;
    }
    Ok(())
}

fn draw(totals: &Totals, file: &std::path::Path) -> Result<(), Error> {
    let Some(group) = totals.groups.last() else {
        return Err(Error::NotFound(
            "the log holds no score to draw: the second tier was not asked yet, or by another model than --model".into(),
        ));
    };
    let title = format!(
        "{} scores of {}, lists {}",
        group.lines, group.origin.model, group.origin.lists
    );
    let picture = svg::draw(&group.histogram, group.threshold, &title);
    Ok(tidegate_io::files::write_private(file, picture.as_bytes())?)
}

fn print(totals: &Totals, seen: log::Seen, out: Out<'_>) -> Result<(), Error> {
    let rows: Vec<Vec<String>> = totals
        .tiers
        .iter()
        .map(|(tier, count)| {
            let numbers = [count.about_agent, count.domain, count.near_misses];
            std::iter::once((*tier).to_owned())
                .chain(numbers.map(|number| number.to_string()))
                .collect()
        })
        .collect();
    output::columns(
        &mut *out,
        &["TIER", "ABOUT THE AGENT", "OTHERS", "NEAR MISSES"],
        &rows,
    )?;
    writeln!(out, "\n{} decisions", seen.lines - seen.unusable)?;
    if seen.unusable > 0 {
        writeln!(out, "{} lines could not be read as decisions", seen.unusable)?;
    }
    for group in &totals.groups {
        print_group(group, &mut *out)?;
    }
    if totals.further > 0 {
        writeln!(
            out,
            "\n{} lines of further models or lists are not drawn",
            totals.further
        )?;
    }
    Ok(())
}

fn print_group(group: &Group, out: Out<'_>) -> Result<(), Error> {
    let Origin { model, lists, kind } = &group.origin;
    let threshold = group.threshold.map_or_else(
        || "threshold unknown".to_owned(),
        |threshold| format!("threshold {threshold:.3}"),
    );
    writeln!(
        out,
        "\n{} of {}, lists {}: {} scores, {threshold}",
        kind_name(*kind),
        output::plain(model),
        output::plain(lists),
        group.lines
    )?;
    let highest = group.histogram.highest().max(1);
    for (border, bin) in group.histogram.used() {
        let bar = |count: u64, letter: &str| {
            let length = (count * BAR_CHARS).div_ceil(highest);
            letter.repeat(usize::try_from(length).unwrap_or_default())
        };
        let mark = match group.threshold {
            Some(threshold) if (border..border + WIDTH).contains(&threshold) => " <- threshold",
            Some(_) | None => "",
        };
        let line = format!(
            "{border:>6.1} {:>6} {}{}{mark}",
            bin.count(),
            bar(bin.no, "░"),
            bar(bin.yes, "█")
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "       █ about the agent  ░ others")?;
    Ok(())
}

fn value(totals: &Totals, seen: log::Seen) -> Value {
    let tiers: BTreeMap<&str, Value> = totals
        .tiers
        .iter()
        .map(|(tier, count)| {
            let value = json!({
                "about_agent": count.about_agent,
                "domain": count.domain,
                "near_misses": count.near_misses,
            });
            (*tier, value)
        })
        .collect();
    let groups: Vec<Value> = totals
        .groups
        .iter()
        .map(|group| {
            let bins = group.histogram.used();
            let bins: Vec<Value> = bins
                .iter()
                .map(
                    |(border, bin)| json!({"from": round(*border), "about_agent": bin.yes, "domain": bin.no}),
                )
                .collect();
            json!({
                "model": group.origin.model,
                "lists": group.origin.lists,
                "score_kind": group.origin.kind,
                "threshold": group.threshold,
                "scores": group.lines,
                "bins": bins,
            })
        })
        .collect();
    json!({
        "decisions": seen.lines - seen.unusable,
        "unusable_lines": seen.unusable,
        "tiers": tiers,
        "scores": groups,
    })
}

/// A border as people write it.
fn round(border: f64) -> f64 {
    (border * 10.0).round() / 10.0
}

fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Pattern => "pattern",
        Tier::Embedding => "embedding",
        Tier::None => "none",
    }
}

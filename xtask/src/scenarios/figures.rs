//! `cargo xtask scenarios --figures`: how much of what people say of themselves is kept, how much of what others would
//! have them say, and how well notes are found. The first three are measured through running daemons, many people each.

mod chats;
mod genuine;
mod hostile;
mod recall;

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use tidegate_core::clock::Timestamp;

use super::stage::{House, Plan, Stage};
use crate::suites::Count;
use crate::{eval, process};

/// Chats of others, in the development data beside the repository.
const CHATS: &str = "memory/memorybank_en.jsonl";
/// The first day of what is played.
const DAY_ONE: &str = "2026-03-02T09:00:00Z";
/// Seconds of a day.
const DAY_S: i64 = 86_400;
/// People of one daemon.
const BATCH: usize = 60;
/// Daemons at a time.
const DAEMONS: usize = 4;

/// Measures everything; the count is of the targets.
pub(super) fn all(house: &House) -> Result<Count> {
    let mut count = Count::default();
    let chats = Some(eval::beside().join(CHATS)).filter(|file| file.is_file());
    match &chats {
        Some(file) => count.merge(recall::measure(&house.runtime, file)?),
        None => println!("there is no {CHATS} beside the repository: volume and recall are not measured"),
    }
    count.merge(genuine::measure(house)?);
    count.merge(hostile::measure(house, hostile::Depth::Days)?);
    if let Some(file) = &chats {
        count.merge(chats::measure(house, file)?);
    }
    Ok(count)
}

/// The poisoning suite: nothing that was fooled into the extractor may come through.
pub(super) fn poison(house: &House) -> Result<Count> {
    hostile::measure(house, hostile::Depth::Once)
}

/// The lines of a file of this repository.
fn own<T: DeserializeOwned>(name: &str) -> Result<Vec<T>> {
    lines(&process::root().join("tests/memory").join(name))
}

fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).with_context(|| format!("{}: {line}", file.display())))
        .collect()
}

/// The first day and so many days.
fn day(number: i64) -> Result<Timestamp> {
    let first: Timestamp = DAY_ONE.parse()?;
    Ok(Timestamp::from_second(first.as_second() + number * DAY_S)?)
}

/// Shares items among daemons and plays each of them; what came of them, in their order.
fn play<I: Sync, O: Send>(
    house: &House,
    plan: &Plan<'_>,
    items: &[I],
    one: impl Fn(&mut Stage, usize, &I) -> Result<O> + Sync,
) -> Result<Vec<O>> {
    let batches: Vec<(usize, &[I])> = items
        .chunks(BATCH)
        .enumerate()
        .map(|(number, batch)| (number * BATCH, batch))
        .collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..DAEMONS {
            scope.spawn(|| {
                while let Some((first, batch)) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = play_batch(house, plan, *first, batch, &one);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((*first, played));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(first, _)| *first);
    let mut all = Vec::new();
    for (_, played) in done {
        all.extend(played?);
    }
    Ok(all)
}

fn play_batch<I, O>(
    house: &House,
    plan: &Plan<'_>,
    first: usize,
    batch: &[I],
    one: &impl Fn(&mut Stage, usize, &I) -> Result<O>,
) -> Result<Vec<O>> {
    let mut stage = Stage::open(house, plan)?;
    let played = batch
        .iter()
        .enumerate()
        .map(|(at, item)| one(&mut stage, first + at, item))
        .collect();
    stage.close();
    played
}

/// A share as a percentage.
fn percent(part: usize, whole: usize) -> String {
    let per_mille = part * 1_000 / whole.max(1);
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

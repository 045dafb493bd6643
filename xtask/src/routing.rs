//! `cargo xtask routing FILE…`: prompts with known labels put to the product's own routing gate.
//!
//! A file holds one `{"text","label"}` a line, as `crates/tidegate-engine/tests-data/` does; a chat file one turn of
//! conversation a line, its text in `query`. The gate is the real one with the files of `routing/` and the built-in
//! embedder, or another one. Figures are given by kind and by tier. Below them each score is tried: its threshold is set on every
//! second prompt of a kind, and what it does is shown on the others.

mod table;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use tidegate_core::{
    clock::{Clock, Timestamp},
    id::{KeyId, RequestId, UserId},
    port::{Embedder, LineLog},
};
use tidegate_engine::routing::{Context, Decision, Options, RoutingGate, ScoreKind, Tier};
use tidegate_io::operator_files::Disk;

use crate::eval;

/// The share of a kind that may fire, where a threshold is set.
pub(crate) const FALSE_POSITIVES_MAX: f64 = 0.02;

/// Prompts that stand for all in the measurement of time.
const TIMED_MAX: usize = 200;

/// What is scored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    /// Files of prompts with labels.
    pub(crate) files: Vec<PathBuf>,
    /// Files of conversation turns.
    pub(crate) chat: Vec<PathBuf>,
    /// A threshold to try, instead of the one that was measured for the model.
    pub(crate) threshold: Option<f64>,
    /// Whether each wrong decision is shown.
    pub(crate) misses: bool,
    /// The folder of a local embedding model; else the built-in one.
    pub(crate) model: Option<PathBuf>,
}

/// The development data of this repository.
pub(crate) fn own() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tidegate-engine/tests-data");
    ["gate.jsonl", "tasks.jsonl", "dev.jsonl"]
        .map(|name| folder.join(name))
        .into()
}

/// What a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// About the assistant.
    About,
    /// It only looks like it, or is quite another question.
    NearMiss,
    /// A task put to "you".
    Task,
    /// A turn of conversation.
    Chat,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::About, Self::NearMiss, Self::Task, Self::Chat];

    fn of(label: &str) -> Option<Self> {
        match label {
            "canonical" | "about_agent" => Some(Self::About),
            "near_miss" | "other" => Some(Self::NearMiss),
            "task" => Some(Self::Task),
            "chat" => Some(Self::Chat),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::About => "about the agent",
            Self::NearMiss => "near misses and others",
            Self::Task => "second-person tasks",
            Self::Chat => "conversation",
        }
    }
}

/// How many of a kind there are, and how many fired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// All.
    pub(crate) count: u32,
    /// By the rules alone.
    pub(crate) pattern: u32,
    /// By any tier.
    pub(crate) all: u32,
}

impl Tally {
    /// The share that the rules alone fired on.
    pub(crate) fn pattern_share(self) -> f64 {
        share(self.pattern, self.count)
    }

    /// The share that any tier fired on.
    pub(crate) fn share(self) -> f64 {
        share(self.all, self.count)
    }
}

fn share(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole.max(1))
}

/// The figures of one order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// By kind; a kind without a prompt is not there.
    pub(crate) by_kind: BTreeMap<Kind, Tally>,
    /// The threshold of the second tier.
    pub(crate) threshold: Option<f64>,
}

impl Figures {
    /// The share of questions about the assistant that were found.
    pub(crate) fn recall(&self) -> f64 {
        self.by_kind.get(&Kind::About).map_or(0.0, |tally| tally.share())
    }

    /// The worst share of another kind that fired.
    pub(crate) fn false_positives(&self) -> f64 {
        let others = self.by_kind.iter().filter(|(kind, _)| **kind != Kind::About);
        others.map(|(_, tally)| tally.share()).fold(0.0, f64::max)
    }
}

/// A prompt and what the gate made of it.
#[derive(Debug, Clone)]
struct Judged {
    text: String,
    kind: Kind,
    decision: Decision,
}

impl Judged {
    fn by_pattern(&self) -> bool {
        self.decision.about_agent && self.decision.tier == Tier::Pattern
    }

    /// What would have been decided at another threshold.
    fn fires_at(&self, threshold: f64) -> bool {
        self.by_pattern() || self.second_fires_at(threshold)
    }

    fn second_fires_at(&self, threshold: f64) -> bool {
        let decision = &self.decision;
        let may = decision.addressed && decision.excluded_by.is_none();
        may && decision.score().is_some_and(|score| score >= threshold)
    }
}

/// Scores files through the gate. For `cargo xtask eval`: figures alone, nothing is printed.
pub(crate) fn figures(files: &[PathBuf], chat: &[PathBuf]) -> Result<Figures> {
    let order = Order {
        files: files.to_vec(),
        chat: chat.to_vec(),
        ..Order::default()
    };
    let prompts = prompts(&order)?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let embedder = eval::embedder(None).await?;
        let bench = Bench::new(&embedder, ScoreKind::Probe, None).await?;
        let judged = bench.judge(&prompts).await?;
        Ok(tally(&judged, bench.threshold))
    })
}

/// Scores files and prints what came of it.
pub(crate) fn run(order: &Order) -> Result<bool> {
    if order.model.is_some() && !cfg!(feature = "local-embedder") {
        return eval::again();
    }
    let prompts = prompts(order)?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let embedder = eval::embedder(order.model.as_deref()).await?;
        let bench = Bench::new(&embedder, ScoreKind::Probe, order.threshold).await?;
        let judged = bench.judge(&prompts).await?;
        table::figures(&tally(&judged, bench.threshold));
        if order.misses {
            table::misses(&judged);
        }
        let mut tried = Vec::new();
        for kind in [
            ScoreKind::Probe,
            ScoreKind::Margin,
            ScoreKind::Centroid,
            ScoreKind::Nearest,
        ] {
            let judged = Bench::new(&embedder, kind, None).await?.judge(&prompts).await?;
            let alone = Bench::without_rules(&embedder, kind)
                .await?
                .judge(&prompts)
                .await?;
            tried.push((kind, try_halves(&judged, &alone)));
        }
        table::scores(&tried);
        table::times(&bench.times(&prompts).await?);
        Ok(true)
    })
}

fn tally(judged: &[Judged], threshold: Option<f64>) -> Figures {
    let mut figures = Figures {
        threshold,
        ..Figures::default()
    };
    for judged in judged {
        let tally = figures.by_kind.entry(judged.kind).or_default();
        tally.count += 1;
        tally.pattern += u32::from(judged.by_pattern());
        tally.all += u32::from(judged.decision.about_agent);
    }
    figures
}

/// What a score does on the half that its threshold was not set on.
#[derive(Debug, Clone)]
struct Trial {
    threshold: f64,
    /// With the rules before it, by kind; `pattern` holds what the second tier alone would have done.
    held_out: BTreeMap<Kind, Tally>,
}

/// Sets the lowest threshold at which no kind fires more often than it may, on every second prompt of a kind.
///
/// `alone` holds the same prompts without the rules: it takes the threshold over.
fn try_halves(judged: &[Judged], alone: &[Judged]) -> Trial {
    let mut seen: BTreeMap<Kind, usize> = BTreeMap::new();
    let (mut set_on, mut held_out) = (Vec::new(), Vec::new());
    for judged in judged.iter().zip(alone) {
        let place = seen.entry(judged.0.kind).or_default();
        let half = if place.is_multiple_of(2) {
            &mut set_on
        } else {
            &mut held_out
        };
        half.push(judged);
        *place += 1;
    }
    let set_on: Vec<&Judged> = set_on.into_iter().map(|(judged, _)| judged).collect();
    let threshold = lowest(&set_on);
    let mut by_kind: BTreeMap<Kind, Tally> = BTreeMap::new();
    for (judged, alone) in held_out {
        let tally = by_kind.entry(judged.kind).or_default();
        tally.count += 1;
        tally.pattern += u32::from(alone.second_fires_at(threshold));
        tally.all += u32::from(judged.fires_at(threshold));
    }
    Trial {
        threshold,
        held_out: by_kind,
    }
}

fn lowest(judged: &[&Judged]) -> f64 {
    let mut scores: Vec<f64> = judged
        .iter()
        .filter_map(|judged| judged.decision.score())
        .collect();
    scores.sort_by(f64::total_cmp);
    let bearable = |threshold: f64| {
        Kind::ALL.iter().filter(|kind| **kind != Kind::About).all(|kind| {
            let of_kind = judged.iter().filter(|judged| judged.kind == *kind);
            let (count, fired) = of_kind.fold((0, 0), |(count, fired), judged| {
                (count + 1, fired + u32::from(judged.fires_at(threshold)))
            });
            share(fired, count) <= FALSE_POSITIVES_MAX
        })
    };
    let at = scores.partition_point(|threshold| !bearable(*threshold));
    scores.get(at).copied().unwrap_or(f64::INFINITY)
}

/// The gate, and what it needs.
#[derive(Debug)]
struct Bench {
    gate: RoutingGate,
    threshold: Option<f64>,
    /// A file of its own, which the gate reads for every question.
    _kept: Option<tempfile::NamedTempFile>,
}

impl Bench {
    async fn new(embedder: &Arc<dyn Embedder>, kind: ScoreKind, threshold: Option<f64>) -> Result<Self> {
        Self::with(embedder, &folder().join("patterns.txt"), None, kind, threshold).await
    }

    /// The second tier alone: what guards it stays, what decides before it is left out.
    async fn without_rules(embedder: &Arc<dyn Embedder>, kind: ScoreKind) -> Result<Self> {
        let text = std::fs::read_to_string(folder().join("patterns.txt"))?;
        let stays = ["@", "prefix ", "guard ", "address "];
        let kept: String = text
            .lines()
            .filter(|line| stays.iter().any(|start| line.starts_with(start)))
            .flat_map(|line| [line, "\n"])
            .collect();
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), kept)?;
        let path = file.path().to_path_buf();
        Self::with(embedder, &path, Some(file), kind, None).await
    }

    async fn with(
        embedder: &Arc<dyn Embedder>,
        patterns: &Path,
        kept: Option<tempfile::NamedTempFile>,
        kind: ScoreKind,
        threshold: Option<f64>,
    ) -> Result<Self> {
        let folder = folder();
        let options = Options {
            patterns_file: patterns.to_path_buf(),
            vocabulary_file: folder.join("vocabulary.txt"),
            examples_file: folder.join("examples.txt"),
            counterexamples_file: folder.join("counterexamples.txt"),
            embedding_score: kind,
            embedding_threshold: threshold,
            embedding_threshold_model: threshold.map(|_| embedder.model().id.clone()),
            ..Options::default()
        };
        let threshold = options.threshold(embedder.model());
        let gate = gate(Some(Arc::clone(embedder)), options);
        gate.prepare().await;
        if let Some(fault) = gate.faults().first() {
            bail!("{fault}");
        }
        Ok(Self {
            gate,
            threshold,
            _kept: kept,
        })
    }

    async fn judge(&self, prompts: &[(String, Kind)]) -> Result<Vec<Judged>> {
        let mut judged = Vec::with_capacity(prompts.len());
        for (text, kind) in prompts {
            judged.push(Judged {
                text: text.clone(),
                kind: *kind,
                decision: decide(&self.gate, text).await?,
            });
        }
        Ok(judged)
    }

    /// What one decision takes: with the rules alone, and with both tiers.
    async fn times(&self, prompts: &[(String, Kind)]) -> Result<[Duration; 2]> {
        let rules = gate(None, Options::default());
        rules.prepare().await;
        let step = prompts.len().div_ceil(TIMED_MAX).max(1);
        let mut medians = [Duration::ZERO; 2];
        for (median, gate) in medians.iter_mut().zip([&rules, &self.gate]) {
            let mut times = Vec::new();
            // Once to warm up, once to measure.
            for _ in 0..2 {
                times.clear();
                for (text, _) in prompts.iter().step_by(step) {
                    let started = Instant::now();
                    decide(gate, text).await?;
                    times.push(started.elapsed());
                }
            }
            times.sort();
            *median = times.get(times.len() / 2).copied().unwrap_or_default();
        }
        Ok(medians)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../routing")
}

fn gate(embedder: Option<Arc<dyn Embedder>>, options: Options) -> RoutingGate {
    RoutingGate::new(
        Arc::new(Disk),
        embedder,
        Arc::new(NoLog),
        Arc::new(Still),
        options,
    )
}

async fn decide(gate: &RoutingGate, text: &str) -> Result<Decision> {
    let key = KeyId::new("xtask");
    let user = UserId::of(&key, None).context("no user")?;
    let context = Context {
        request_id: &RequestId::new("req_xtask"),
        key_id: &key,
        user: &user,
    };
    Ok(gate.decide(text, &context).await)
}

/// Nowhere.
#[derive(Debug)]
struct NoLog;

impl LineLog for NoLog {
    fn append(&self, line: String) {
        drop(line);
    }

    fn dropped(&self) -> u64 {
        0
    }
}

/// Nothing here depends on the time.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

#[derive(Debug, Deserialize)]
struct Labelled {
    text: String,
    label: String,
}

#[derive(Debug, Deserialize)]
struct Turn {
    query: String,
}

fn prompts(order: &Order) -> Result<Vec<(String, Kind)>> {
    let mut prompts = Vec::new();
    for file in &order.files {
        for (place, line) in lines(file)? {
            let row: Labelled = serde_json::from_str(&line).with_context(|| place.clone())?;
            let kind =
                Kind::of(&row.label).with_context(|| format!("{place}: unknown label `{}`", row.label))?;
            prompts.push((row.text, kind));
        }
    }
    for file in &order.chat {
        for (place, line) in lines(file)? {
            let turn: Turn = serde_json::from_str(&line).context(place)?;
            prompts.push((turn.query, Kind::Chat));
        }
    }
    Ok(prompts)
}

/// The lines of a file that are not blank, with their places.
fn lines(file: &Path) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    Ok(lines
        .map(|(at, line)| (format!("{}:{}", file.display(), at + 1), line.to_owned()))
        .collect())
}

//! The routing gate: is the question about the assistant itself?
//!
//! If it is, this request goes on without tools and with the capability report in the prompt, so that the answer
//! is factual. Two tiers answer: a list of rules, and, where an embedder is there, how far the question leans to
//! canonical examples rather than to counterexamples. Rules, vocabulary and both lists are the operator's files,
//! read for every question; the built-in ones are used where the operator has none. Every decision is a line in the
//! triage log.
//!
//! The second tier says yes only on a model whose threshold is known: one that was measured for the model
//! (`Calibration::routing_threshold`), or one that the operator set for it. On any other the score is logged and the
//! tools stay.

mod comparer;
mod lists;
mod rules;
mod scores;
mod triage;
mod vocabulary;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::Clock,
    embedding::EmbeddingModel,
    id::{KeyId, RequestId, UserId},
    port::{Embedder, LineLog, OperatorFiles},
};

use crate::prompt::kept::{Accepted, KeptFiles, Nothing};
use comparer::{Comparer, Limits};
use lists::{Example, Lists};
use rules::Rules;
use vocabulary::Vocabulary;

pub use comparer::{Comparison, Neighbour, ScoreKind};
pub use lists::example_ids;
pub use triage::LogQuery;

/// The rules that come with the program.
const PATTERNS: &str = include_str!("../../../routing/patterns.txt");
/// The vocabulary that comes with the program.
const VOCABULARY: &str = include_str!("../../../routing/vocabulary.txt");
/// The examples that come with the program.
const EXAMPLES: &str = include_str!("../../../routing/examples.txt");

/// The counterexamples that come with the program.
const COUNTEREXAMPLES: &str = include_str!("../../../routing/counterexamples.txt");

/// `[routing]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether questions about the assistant are looked for at all.
    pub enabled: bool,
    /// Rules of the first tier; the built-in ones where the file does not exist.
    pub patterns_file: PathBuf,
    /// Words of the operator's own work; the built-in ones where the file does not exist.
    pub vocabulary_file: PathBuf,
    /// Canonical questions of the second tier; the built-in ones where the file does not exist.
    pub examples_file: PathBuf,
    /// What is not about the assistant, for the second tier; the built-in ones where the file does not exist.
    pub counterexamples_file: PathBuf,
    /// The largest routing file, in bytes.
    pub file_bytes_max: usize,
    /// The longest question that can be about the assistant, in characters; no more is looked at.
    pub chars_max: usize,
    /// The longest question that can be about the assistant, in words.
    pub words_max: usize,
    /// How the second tier scores a question.
    pub embedding_score: ScoreKind,
    /// The score from which the second tier says yes. `None`: the one that was measured for the model, if any.
    pub embedding_threshold: Option<f64>,
    /// The model that the threshold was set for; on another one it does not count.
    pub embedding_threshold_model: Option<String>,
    /// The version of both lists that the threshold was set for, as the triage log names it.
    pub embedding_threshold_lists: Option<String>,
    /// How far below the threshold a no is marked as a near miss in the triage log, as a share of the distance
    /// between the mean scores of both lists.
    pub near_miss_margin: f64,
    /// How long the embedder may take for one question, in milliseconds; then the second tier is left out.
    pub embedding_timeout_ms: u64,
    /// How long a failed embedder is left alone, in seconds.
    pub embedding_rest_s: u64,
    /// What the triage log keeps of a question: `none`, `hash` or `text`.
    pub log_query: LogQuery,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            patterns_file: "routing/patterns.txt".into(),
            vocabulary_file: "routing/vocabulary.txt".into(),
            examples_file: "routing/examples.txt".into(),
            counterexamples_file: "routing/counterexamples.txt".into(),
            file_bytes_max: 256 << 10,
            chars_max: 240,
            words_max: 40,
            embedding_score: ScoreKind::Probe,
            embedding_threshold: None,
            embedding_threshold_model: None,
            embedding_threshold_lists: None,
            near_miss_margin: 0.05,
            embedding_timeout_ms: 2_000,
            embedding_rest_s: 30,
            log_query: LogQuery::Hash,
        }
    }
}

impl Options {
    /// The score from which the second tier says yes on this model; `None` where nobody has measured it.
    pub fn threshold(&self, model: &EmbeddingModel) -> Option<f64> {
        let set = self
            .embedding_threshold
            .filter(|_| self.embedding_threshold_model.as_ref() == Some(&model.id));
        // What comes with a model was measured on the probe.
        let measured = match self.embedding_score {
            ScoreKind::Probe => model.calibration.routing_threshold,
            ScoreKind::Margin | ScoreKind::Centroid | ScoreKind::Nearest => None,
        };
        set.or(measured).filter(|threshold| threshold.is_finite())
    }
}

/// Which tier decided, or had the last word on a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The rules.
    Pattern,
    /// The embedder.
    Embedding,
    /// Neither.
    #[default]
    None,
}

/// What the gate makes of a question.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// The question is about the assistant: no server tools, and the capability report in the prompt.
    pub about_agent: bool,
    /// Which tier had a say.
    pub tier: Tier,
    /// The rule that matched, or the id of the nearest example.
    pub rule: Option<String>,
    /// What the second tier found, where it was asked and could say.
    pub comparison: Option<Comparison>,
    /// The score that was needed; `None` where nobody has measured it for the model.
    pub threshold: Option<f64>,
    /// The word of the operator's work that ruled the question out.
    pub excluded_by: Option<String>,
    /// The question speaks to or of the assistant and no guard stands in it; without that the second tier may not
    /// say yes.
    pub addressed: bool,
    /// A no that was close: a rule matched and a vocabulary word stood against it, or the score lay just below the
    /// threshold, or above it and something stood against it.
    pub near_miss: bool,
}

impl Decision {
    /// The second tier's score, where there is one.
    pub fn score(&self) -> Option<f64> {
        self.comparison.as_ref().map(|comparison| comparison.score)
    }
}

/// Whose question it is, for the log.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The request.
    pub request_id: &'a RequestId,
    /// The key it came with.
    pub key_id: &'a KeyId,
    /// The person behind the key.
    pub user: &'a UserId,
}

/// The files, ready for use.
#[derive(Debug)]
struct Files {
    rules: Arc<Rules>,
    vocabulary: Arc<Vocabulary>,
    lists: Lists,
}

/// What the reading half owns; shared with blocking threads.
#[derive(Debug)]
struct Reader {
    options: Options,
    rules: Source<Rules>,
    vocabulary: Source<Vocabulary>,
    examples: Source<Vec<Example>>,
    counterexamples: Source<Vec<Example>>,
}

/// The gate.
#[derive(Debug)]
pub struct RoutingGate {
    reader: Arc<Reader>,
    comparer: Option<Comparer>,
    triage: Arc<dyn LineLog>,
    clock: Arc<dyn Clock>,
}

impl RoutingGate {
    /// A gate that reads its rules through `files`. Without an embedder the rules decide alone.
    pub fn new(
        files: Arc<dyn OperatorFiles>,
        embedder: Option<Arc<dyn Embedder>>,
        triage: Arc<dyn LineLog>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Self {
        let limits = Limits {
            kind: options.embedding_score,
            timeout: Duration::from_millis(options.embedding_timeout_ms),
            rest: Duration::from_secs(options.embedding_rest_s),
        };
        Self {
            reader: Arc::new(Reader {
                rules: Source::new(Arc::clone(&files), &options),
                vocabulary: Source::new(Arc::clone(&files), &options),
                examples: Source::new(Arc::clone(&files), &options),
                counterexamples: Source::new(files, &options),
                options,
            }),
            comparer: embedder.map(|embedder| Comparer::new(embedder, Arc::clone(&clock), limits)),
            triage,
            clock,
        }
    }

    /// Decides, and writes the decision to the triage log. Never fails: without rules and embedder the answer is
    /// no. `text` is what the human said last.
    pub async fn decide(&self, text: &str, context: &Context<'_>) -> Decision {
        let options = &self.reader.options;
        let mut decision = Decision::default();
        if !options.enabled {
            return decision;
        }
        let started = self.clock.now();
        let mut terms = Vec::new();
        if let Some(question) = short(text, options.chars_max, options.words_max) {
            // Read where the request is: small files in the page cache take less time than waking a thread. Only
            // an edit of the rules costs more, once.
            let files = self.reader.read();
            terms = files.vocabulary.found(question);
            decision.excluded_by = terms.first().cloned();
            if let Some(rule) = files.rules.find(question) {
                decision.tier = Tier::Pattern;
                decision.rule = Some(rule.to_owned());
                decision.about_agent = terms.is_empty();
                decision.near_miss = !terms.is_empty();
            } else {
                self.compare(question, &files, &mut decision).await;
            }
        }
        let now = self.clock.now();
        let entry = triage::Entry {
            // A log's line is bounded by the first characters; the rest of a long message is not looked at.
            text: &text.chars().take(options.chars_max).collect::<String>(),
            decision: &decision,
            domain_terms: &terms,
            context,
            now,
            latency_us: now.duration_since(started).as_micros(),
        };
        if let Some(line) = triage::line(&entry, options.log_query) {
            self.triage.append(line);
        }
        decision
    }

    /// What is wrong with the files now, as sentences that name no folder.
    pub fn faults(&self) -> Vec<String> {
        let reader = &self.reader;
        let mut faults = reader.rules.kept.faults();
        faults.extend(reader.vocabulary.kept.faults());
        faults.extend(reader.examples.kept.faults());
        faults.extend(reader.counterexamples.kept.faults());
        faults
    }

    /// Reads and compiles the files, for start-up and `tidegate doctor`. Blocks. Gives [`RoutingGate::faults`].
    pub fn check(&self) -> Vec<String> {
        self.reader.read();
        self.faults()
    }

    /// Makes the second tier ready, for start-up and commands; without it the first questions find the rules alone.
    /// Reads the files: blocks for a moment.
    pub async fn prepare(&self) {
        if let Some(comparer) = self.comparer.as_ref().filter(|_| self.reader.options.enabled) {
            let lists = self.reader.read().lists;
            self.warn_of_lists(comparer, &lists);
            comparer.prepare(lists).await;
        }
    }

    /// The version of both lists, as the triage log names it. Reads the files: blocks for a moment.
    pub fn lists_digest(&self) -> String {
        self.reader.read().lists.digest()
    }

    /// A threshold of the operator's belongs to the lists it was set for.
    fn warn_of_lists(&self, comparer: &Comparer, lists: &Lists) {
        let options = &self.reader.options;
        let model = &comparer.model().id;
        if options.embedding_threshold.is_none() || options.embedding_threshold_model.as_ref() != Some(model)
        {
            return;
        }
        let digest = lists.digest();
        if let Some(set_for) = options
            .embedding_threshold_lists
            .as_ref()
            .filter(|set_for| **set_for != digest)
        {
            tracing::warn!(
                set_for,
                now = digest,
                "routing.embedding_threshold was set for other lists of examples; run `tidegate triage calibrate` anew"
            );
        }
    }

    /// The second tier.
    async fn compare(&self, question: &str, files: &Files, decision: &mut Decision) {
        let Some(comparer) = &self.comparer else {
            return;
        };
        let options = &self.reader.options;
        decision.threshold = options.threshold(comparer.model());
        let Some(comparison) = comparer.compare(question, &files.lists).await else {
            return;
        };
        decision.addressed = files.rules.addresses(question);
        let may = decision.addressed && decision.excluded_by.is_none();
        if let Some(threshold) = decision.threshold {
            let floor = threshold - options.near_miss_margin * comparison.spread;
            decision.about_agent = may && comparison.score >= threshold;
            decision.near_miss = !decision.about_agent && comparison.score >= floor;
        }
        decision.tier = Tier::Embedding;
        decision.rule = comparison.positives.first().map(|nearest| nearest.id.clone());
        decision.comparison = Some(comparison);
    }
}

impl Reader {
    /// The files as they are now. Blocks.
    fn read(&self) -> Files {
        let options = &self.options;
        Files {
            rules: self
                .rules
                .read(&options.patterns_file, PATTERNS, Rules::parse, Rules::verdict),
            vocabulary: self
                .vocabulary
                .read(&options.vocabulary_file, VOCABULARY, Vocabulary::parse, |_| {
                    Ok(None)
                }),
            lists: Lists {
                positives: self
                    .examples
                    .read(&options.examples_file, EXAMPLES, lists::parse, |_| Ok(None)),
                negatives: self.counterexamples.read(
                    &options.counterexamples_file,
                    COUNTEREXAMPLES,
                    lists::parse,
                    |_| Ok(None),
                ),
            },
        }
    }
}

/// One of the files: the operator's, and the one that comes with the program.
#[derive(Debug)]
struct Source<T> {
    kept: KeptFiles<T>,
    built_in: OnceLock<Arc<T>>,
}

impl<T> Source<T> {
    fn new(files: Arc<dyn OperatorFiles>, options: &Options) -> Self {
        Self {
            kept: KeptFiles::new(files, options.file_bytes_max),
            built_in: OnceLock::new(),
        }
    }

    /// The operator's file, its last good version, or the built-in text.
    fn read(
        &self,
        path: &Path,
        built_in: &str,
        parse: fn(&str) -> T,
        verdict: fn(&T) -> Result<Option<String>, String>,
    ) -> Arc<T> {
        let loaded = self.kept.load_optional(path, |text| {
            let value = parse(text);
            let fault = verdict(&value)?;
            Ok(Accepted { value, fault })
        });
        // Not there means the built-in text is wanted; useless is on the list of faults, and until it is mended
        // the built-in text is better than none.
        loaded.unwrap_or_else(|(Nothing::Missing | Nothing::Unusable(_))| {
            Arc::clone(self.built_in.get_or_init(|| Arc::new(parse(built_in))))
        })
    }
}

/// `text` if it is short enough to be a question about the assistant. Looks at no more of it than that takes.
fn short(text: &str, chars_max: usize, words_max: usize) -> Option<&str> {
    // Blank space counts as well: a message that begins with pages of it is no plain question.
    if text.chars().nth(chars_max).is_some() {
        return None;
    }
    let words = text.split_whitespace().take(words_max.saturating_add(1)).count();
    (1..=words_max).contains(&words).then(|| text.trim())
}

#[cfg(test)]
mod tests;

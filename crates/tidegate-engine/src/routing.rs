//! The routing gate: is the question about the assistant itself?
//!
//! If it is, this request goes on without tools and with the capability report in the prompt, so that the answer
//! is factual. Two tiers answer: a list of rules, and, where an embedder is there, the distance to canonical
//! examples. Rules, vocabulary and examples are the operator's files, read for every question; the built-in ones
//! are used where the operator has none. Every decision is a line in the triage log.

mod nearest;
mod rules;
mod triage;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::{Clock, Timestamp},
    id::{KeyId, RequestId, UserId},
    port::{Embedder, LineLog, OperatorFiles},
};

use crate::prompt::kept::{Accepted, KeptFiles, Nothing};
use nearest::{Comparer, Example};
use rules::{Rules, Vocabulary};

pub use triage::LogQuery;

/// The rules that come with the program.
const PATTERNS: &str = include_str!("../../../routing/patterns.txt");
/// The vocabulary that comes with the program.
const VOCABULARY: &str = include_str!("../../../routing/vocabulary.txt");
/// The examples that come with the program.
const EXAMPLES: &str = include_str!("../../../routing/examples.txt");

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
    /// The largest routing file, in bytes.
    pub file_bytes_max: usize,
    /// The longest question that can be about the assistant, in characters; no more is looked at.
    pub chars_max: usize,
    /// The longest question that can be about the assistant, in words.
    pub words_max: usize,
    /// The cosine from which the second tier says yes. A threshold belongs to one embedding model.
    pub embedding_threshold: f64,
    /// The cosine from which a no is marked as a near miss in the triage log.
    pub near_miss_floor: f64,
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
            file_bytes_max: 256 << 10,
            chars_max: 240,
            words_max: 40,
            embedding_threshold: 0.80,
            near_miss_floor: 0.60,
            embedding_timeout_ms: 2_000,
            embedding_rest_s: 30,
            log_query: LogQuery::Hash,
        }
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
    /// The cosine to the nearest example, where it was computed.
    pub score: Option<f64>,
    /// The cosine that was needed.
    pub threshold: f64,
    /// The word of the operator's work that ruled the question out.
    pub excluded_by: Option<String>,
    /// A no that was close: a rule matched and a vocabulary word stood against it, or the score lay just below
    /// the threshold.
    pub near_miss: bool,
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

/// The three files, ready for use.
#[derive(Debug)]
struct Files {
    rules: Arc<Rules>,
    vocabulary: Arc<Vocabulary>,
    examples: Arc<Vec<Example>>,
}

/// What the reading half owns; shared with blocking threads.
#[derive(Debug)]
struct Reader {
    options: Options,
    rules: Source<Rules>,
    vocabulary: Source<Vocabulary>,
    examples: Source<Vec<Example>>,
}

/// The gate.
#[derive(Debug)]
pub struct RoutingGate {
    reader: Arc<Reader>,
    comparer: Option<Comparer>,
    triage: Arc<dyn LineLog>,
    clock: Arc<dyn Clock>,
    /// Until when a failed embedder is left alone.
    resting: Mutex<Option<Timestamp>>,
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
        Self {
            reader: Arc::new(Reader {
                rules: Source::new(Arc::clone(&files), &options),
                vocabulary: Source::new(Arc::clone(&files), &options),
                examples: Source::new(files, &options),
                options,
            }),
            comparer: embedder.map(Comparer::new),
            triage,
            clock,
            resting: Mutex::new(None),
        }
    }

    /// Decides, and writes the decision to the triage log. Never fails: without rules and embedder the answer is
    /// no. `text` is what the human said last.
    pub async fn decide(&self, text: &str, context: &Context<'_>) -> Decision {
        let options = &self.reader.options;
        let mut decision = Decision {
            threshold: options.embedding_threshold,
            ..Decision::default()
        };
        if !options.enabled {
            return decision;
        }
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
                self.compare(question, &files.examples, &mut decision).await;
            }
        }
        let now = self.clock.now();
        // A log's line is bounded by the first characters; the rest of a long message is not looked at.
        let head: String = text.chars().take(options.chars_max).collect();
        if let Some(line) = triage::line(&head, &decision, &terms, context, now, options.log_query) {
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
        faults
    }

    /// Reads and compiles the files, for start-up and `tidegate doctor`. Blocks. Gives [`RoutingGate::faults`].
    pub fn check(&self) -> Vec<String> {
        self.reader.read();
        self.faults()
    }

    /// The second tier. A slow or dead embedder costs a request one time limit, and the next ones nothing
    /// until it has rested.
    async fn compare(&self, question: &str, examples: &[Example], decision: &mut Decision) {
        let Some(comparer) = &self.comparer else {
            return;
        };
        let now = self.clock.now();
        if self.resting_until().is_some_and(|until| now < until) {
            return;
        }
        let options = &self.reader.options;
        let limit = Duration::from_millis(options.embedding_timeout_ms);
        let problem = match tokio::time::timeout(limit, comparer.nearest(question, examples)).await {
            Ok(Ok(Some(nearest))) => {
                let near = f64::from(nearest.cosine) >= options.embedding_threshold;
                decision.tier = Tier::Embedding;
                decision.rule = Some(nearest.id);
                decision.score = Some(f64::from(nearest.cosine));
                decision.about_agent = near && decision.excluded_by.is_none();
                decision.near_miss =
                    !decision.about_agent && f64::from(nearest.cosine) >= options.near_miss_floor;
                return;
            }
            Ok(Ok(None)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} ms", options.embedding_timeout_ms),
        };
        tracing::warn!(
            problem,
            rest_s = options.embedding_rest_s,
            "the embedder failed; the routing gate goes on with its rules alone"
        );
        let rest = Duration::from_secs(options.embedding_rest_s);
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = now.checked_add(rest).ok();
    }

    fn resting_until(&self) -> Option<Timestamp> {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner)
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
            examples: self
                .examples
                .read(&options.examples_file, EXAMPLES, nearest::parse, |_| Ok(None)),
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

mod second_tier;

use sha2::{Digest as _, Sha256};
use std::{
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::Value;
use tidegate_core::{
    clock::Timestamp,
    embedding::{Calibration, EmbedError, EmbedderState, Fusion, Purpose},
    port::FileFault,
};

use super::*;

/// Prompts written for this project, with their labels.
const SETS: [&str; 2] = [
    include_str!("../../tests-data/gate.jsonl"),
    include_str!("../../tests-data/tasks.jsonl"),
];

/// An operator's folder in memory: the disk is the outside here.
#[derive(Debug, Default)]
struct Folder(Mutex<Vec<(PathBuf, Result<String, FileFault>)>>);

impl Folder {
    fn put(&self, path: &str, text: Result<&str, &str>) {
        let text = text.map(str::to_owned).map_err(|problem| FileFault::Unreadable {
            path: format!("/secret/place/{path}"),
            problem: problem.to_owned(),
        });
        let mut files = self.0.lock().unwrap();
        files.retain(|(name, _)| name.to_str() != Some(path));
        files.push((path.into(), text));
    }
}

impl OperatorFiles for Folder {
    fn read(&self, path: &Path, _bytes_max: usize) -> Result<String, FileFault> {
        let files = self.0.lock().unwrap();
        let found = files.iter().find(|(name, _)| name == path);
        found.map_or_else(
            || Err(FileFault::Missing(path.display().to_string())),
            |(_, text)| text.clone(),
        )
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileFault> {
        Err(FileFault::Missing(folder.display().to_string()))
    }
}

/// Keeps the lines.
#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl Lines {
    fn last(&self) -> Value {
        serde_json::from_str(self.0.lock().unwrap().last().unwrap()).unwrap()
    }
}

impl LineLog for Lines {
    fn append(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn dropped(&self) -> u64 {
        0
    }
}

/// A clock that stands where it is put.
#[derive(Debug, Default)]
struct Stopped(Mutex<Timestamp>);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A real if small embedder: each word is a direction drawn from its hash, a text is the sum of its words.
#[derive(Debug)]
pub(super) struct Words {
    model: EmbeddingModel,
    dead: AtomicBool,
    hangs: AtomicBool,
    asked: AtomicUsize,
}

impl Words {
    fn new(routing_threshold: Option<f64>) -> Arc<Self> {
        Arc::new(Self {
            model: EmbeddingModel {
                id: "words-64".to_owned(),
                tokens_max: 512,
                calibration: Calibration {
                    fusion: Fusion::ReciprocalRank { k: 60 },
                    pair_cosine_min: 0.5,
                    relevant_cosine_min: 0.1,
                    routing_threshold,
                },
            },
            dead: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
        })
    }

    fn one(text: &str) -> Option<Vec<f32>> {
        let mut sum = vec![0.0_f32; 64];
        for word in text
            .to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            let hash = Sha256::digest(word.as_bytes());
            for (index, value) in sum.iter_mut().enumerate() {
                let bit = hash[index / 8] >> (index % 8) & 1;
                *value += if bit == 1 { 1.0 } else { -1.0 };
            }
        }
        let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        (length > 0.0).then(|| sum.iter().map(|x| x / length).collect())
    }
}

#[async_trait]
impl Embedder for Words {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], _purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.asked.fetch_add(texts.len(), Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.dead.load(Ordering::Relaxed) {
            return Err(EmbedError::Unavailable("it is gone".into()));
        }
        Ok(texts.iter().map(|text| Self::one(text)).collect())
    }

    fn tokens(&self, text: &str) -> usize {
        text.len()
    }

    fn state(&self) -> EmbedderState {
        EmbedderState::Ready
    }
}

struct Bench {
    gate: RoutingGate,
    folder: Arc<Folder>,
    lines: Arc<Lines>,
    clock: Arc<Stopped>,
}

fn bench(embedder: Option<Arc<dyn Embedder>>, options: Options) -> Bench {
    let (folder, lines, clock) = (
        Arc::<Folder>::default(),
        Arc::<Lines>::default(),
        Arc::<Stopped>::default(),
    );
    let gate = RoutingGate::new(folder.clone(), embedder, lines.clone(), clock.clone(), options);
    Bench {
        gate,
        folder,
        lines,
        clock,
    }
}

impl Bench {
    async fn decide(&self, text: &str) -> Decision {
        let key = KeyId::new("k1");
        let context = Context {
            request_id: &RequestId::new("req_1"),
            key_id: &key,
            user: &UserId::of(&key, Some("ann")).unwrap(),
        };
        self.gate.decide(text, &context).await
    }

    async fn fires(&self, text: &str) -> bool {
        self.decide(text).await.about_agent
    }
}

#[tokio::test]
async fn the_rules_alone_find_questions_about_the_assistant_and_nothing_else() {
    let bench = bench(None, Options::default());
    let (mut about, mut missed) = (0_usize, Vec::new());
    for row in SETS.iter().flat_map(|set| set.lines()) {
        let row: Value = serde_json::from_str(row).unwrap();
        let (text, label) = (row["text"].as_str().unwrap(), row["label"].as_str().unwrap());
        let decision = bench.decide(text).await;
        assert!(!crate::prompt::secrecy::asks_for_prompt(text), "{text}");
        match label {
            "canonical" | "about_agent" => {
                about += 1;
                if !decision.about_agent {
                    missed.push(text.to_owned());
                }
            }
            "near_miss" | "other" | "task" => assert!(!decision.about_agent, "{text}: {decision:?}"),
            other => panic!("unknown label {other}"),
        }
    }
    assert_eq!(about, 44);
    // The rules were written with this set in view; on questions that were not, they find about 60 of 100.
    assert!(missed.len() * 10 <= about, "missed: {missed:?}");
}

/// The development set: wordings that the rules were not made from, one by one.
const DEVELOPMENT: &str = include_str!("../../tests-data/dev.jsonl");

#[tokio::test]
async fn the_rules_alone_hold_on_the_development_set() {
    let bench = bench(None, Options::default());
    let (mut about, mut found, mut fired) = (0_usize, 0_usize, Vec::new());
    let lists = [EXAMPLES, COUNTEREXAMPLES].map(lists::parse);
    for row in DEVELOPMENT.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let (text, label) = (row["text"].as_str().unwrap(), row["label"].as_str().unwrap());
        let known = lists
            .iter()
            .flatten()
            .any(|example| example.text.eq_ignore_ascii_case(text));
        assert!(!known, "a list holds what it is judged by: {text}");
        let caught = bench.fires(text).await;
        if label == "about_agent" {
            about += 1;
            found += usize::from(caught);
        } else if caught {
            fired.push(text.to_owned());
        }
    }
    assert!(fired.is_empty(), "{fired:#?}");
    assert!(found * 10 >= about * 8, "{found} of {about}");
}

/// Conversation turns of simulated users, where a copy lies beside the repository or where
/// `TIDEGATE_SHARED_DATA` said at compile time. They are other people's work and no part of this repository.
fn conversation_turns() -> Option<String> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = option_env!("TIDEGATE_SHARED_DATA").map_or(beside, PathBuf::from);
    std::fs::read_to_string(folder.join("memory/memorybank_en.jsonl")).ok()
}

#[tokio::test]
async fn ordinary_conversation_keeps_its_tools() {
    let Some(turns) = conversation_turns() else {
        println!("skipped: the optional conversation turns are not on this machine");
        return;
    };
    let bench = bench(None, Options::default());
    let (mut count, mut fired) = (0_usize, Vec::new());
    for row in turns.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let query = row["query"].as_str().unwrap();
        count += 1;
        assert!(!crate::prompt::secrecy::asks_for_prompt(query), "{query}");
        if bench.fires(query).await {
            fired.push(query.to_owned());
        }
    }
    assert!(count > 500);
    // None of these turns is wholly a question about the assistant; the nearest ("I would like to know more about
    // you. Can you tell me your name?") may fire when rules are added, and is about it. Nothing else may.
    let allowed = ["Can you tell me your name?"];
    fired.retain(|query| !allowed.iter().any(|end| query.ends_with(end)));
    assert!(fired.is_empty(), "{fired:#?}");
}

#[tokio::test]
async fn both_phrases_match_and_the_procedure_does_not() {
    let bench = bench(None, Options::default());
    for text in [
        "who are you",
        "what guardrails do you follow",
        "Hi! I'm Anna. Who are you, and what can you do?",
        "What’s your name?",
        "Hello, my name is Tom. Nice to meet you. Could you tell me which model you use?",
        "what rules are you following",
        "which AI model powers this assistant",
        "why can't you open links",
        "have we talked before?",
        "how private is this chat",
    ] {
        let decision = bench.decide(text).await;
        assert!(
            decision.about_agent && decision.tier == Tier::Pattern,
            "{text}: {decision:?}"
        );
    }
    for text in [
        "what is the budget adjustment procedure",
        "Who are you? I mean, who are you voting for?",
        "Translate this into German. Who are you?",
        "what can you tell me about Napoleon",
        "which rules do students follow in the library",
        "can you see the difference between these two pictures",
        "are you sure?",
        "how are you?",
        "how do you work out the area of a circle",
        "are you allowed to park on a double yellow line",
        "do you need a visa for Japan",
        "what do you think about my plan?",
        "what happens to my body when I sleep",
        "is this correct",
        "can you help me with my essay",
        "when are you open",
        "what permissions does a field trip need",
        "",
        "  \n ",
    ] {
        assert!(!bench.fires(text).await, "{text}");
    }
    let caught = bench.decide("do you have a budget").await;
    assert_eq!(caught.excluded_by.as_deref(), Some("budget"));
}

#[tokio::test]
async fn a_vocabulary_word_beats_a_rule_and_is_a_near_miss() {
    let bench = bench(None, Options::default());
    bench
        .folder
        .put("routing/vocabulary.txt", Ok("# ours\nGuardrail\nnight shift\n"));
    let decision = bench.decide("What guardrails do you follow?").await;
    assert!(!decision.about_agent && decision.near_miss);
    assert_eq!(decision.excluded_by.as_deref(), Some("guardrail"));
    let line = bench.lines.last();
    assert_eq!(line["decision"], "domain");
    assert_eq!(line["tier"], "pattern");
    assert_eq!(line["domain_terms_found"][0], "guardrail");
    assert_eq!(line["tools_stripped"], false);
    // The whole file counts: "budget" is no longer a word of the work here.
    assert!(bench.decide("who are you").await.about_agent);
}

#[tokio::test]
async fn an_edit_counts_at_once_and_a_broken_line_is_skipped_and_named() {
    let bench = bench(None, Options::default());
    bench.folder.put("routing/patterns.txt", Ok("ours.a = ping"));
    assert!(bench.fires("Ping?").await);
    assert!(!bench.fires("who are you").await);
    bench.folder.put("routing/patterns.txt", Ok("ours.a = pong"));
    assert!(!bench.fires("ping").await && bench.fires("pong").await);

    bench.folder.put(
        "routing/patterns.txt",
        Ok("ours.a = (pong\nours.b = ping\nnonsense\nours.c = @nobody"),
    );
    assert!(bench.fires("ping").await && !bench.fires("pong").await);
    let faults = bench.gate.faults();
    assert_eq!(faults.len(), 1);
    for part in [
        "patterns.txt has lines",
        "line 1: ",
        "line 3: write",
        "line 4: `@nobody`",
    ] {
        assert!(faults[0].contains(part), "{faults:?}");
    }

    // Nothing of it can be used: the last good list goes on.
    bench.folder.put("routing/patterns.txt", Ok("ours.a = (ping"));
    assert!(bench.fires("ping").await);
    assert!(bench.gate.faults()[0].contains("last good version"));
    bench.folder.put("routing/patterns.txt", Err("no permission"));
    assert!(bench.fires("ping").await);
    assert_eq!(
        bench.gate.faults(),
        ["patterns.txt cannot be read: no permission; its last good version is served"]
    );
    bench.folder.put("routing/patterns.txt", Ok("ours.a = ping"));
    assert!(bench.fires("ping").await && bench.gate.faults().is_empty());
    // Taken away on purpose: the built-in rules are back.
    bench.folder.0.lock().unwrap().clear();
    assert!(!bench.fires("ping").await && bench.fires("who are you").await);
}

#[test]
fn the_shipped_files_are_in_order() {
    assert!(Rules::parse(PATTERNS).verdict() == Ok(None));
    assert!(lists::parse(EXAMPLES).len() >= 200 && lists::parse(COUNTEREXAMPLES).len() >= 200);
    let bench = bench(None, Options::default());
    assert!(bench.gate.check().is_empty());
}

#[tokio::test]
async fn every_decision_is_a_line_and_the_question_is_kept_as_configured() {
    for (keep, hashed, text) in [
        (LogQuery::None, false, None),
        (LogQuery::Hash, true, None),
        (LogQuery::Text, true, Some("who are you [masked]")),
    ] {
        let bench = bench(
            None,
            Options {
                log_query: keep,
                ..Options::default()
            },
        );
        bench.decide("who are you ann@example.org").await;
        let line = bench.lines.last();
        assert_eq!(line["query_hash"].is_string(), hashed);
        assert_eq!(line.get("query").and_then(Value::as_str), text);
        assert_eq!(line["request"], "req_1");
        assert_eq!((&line["key"], &line["user"]), (&"k1".into(), &"k1:ann".into()));
        assert_eq!(line["ts"], "1970-01-01T00:00:00Z");
        assert_eq!(line["decision"], "domain");
    }
    let bench = bench(None, Options::default());
    bench.decide("who are you").await;
    let line = bench.lines.last();
    assert_eq!(
        (&line["rule"], &line["tools_stripped"]),
        (&"identity.who".into(), &true.into())
    );
}

#[tokio::test]
async fn a_long_message_is_not_looked_at() {
    let bench = bench(None, Options::default());
    assert!(!bench.fires(&"who are you ".repeat(10)).await);
    assert!(!bench.fires(&format!("{}who are you", " ".repeat(300))).await);
    let started = Instant::now();
    let long = "who are you ".repeat(1_000_000);
    for _ in 0..20 {
        assert!(!bench.fires(&long).await);
    }
    // Twelve megabytes, twenty times: a gate that read them would need seconds.
    assert!(started.elapsed() < Duration::from_secs(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_breaks_the_rules(text in "\\PC{0,240}", words in proptest::collection::vec("(who|what|are|your?|you|and|the|memory|my|\\?|can|do|have|,|'s)", 0..40)) {
        // Compiled once: a property looks at texts, not at compiling.
        static RULES: std::sync::LazyLock<Rules> = std::sync::LazyLock::new(|| Rules::parse(PATTERNS));
        std::sync::LazyLock::force(&RULES);
        let started = Instant::now();
        for text in [text, words.join(" ")] {
            let _ = (RULES.find(&text), short(&text, 240, 40), rules::sentences(&text));
        }
        prop_assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn only_short_texts_are_questions(text in "\\PC{0,400}") {
        if let Some(question) = short(&text, 100, 20) {
            prop_assert!(question.chars().count() <= 100);
            prop_assert!((1..=20).contains(&question.split_whitespace().count()));
        }
    }
}

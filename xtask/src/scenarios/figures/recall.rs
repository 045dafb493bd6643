//! Whether the notes of a person come up for a question about what they said: by their words, by their meaning, and by
//! both together, on questions with the turns that hold the answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;
use tidegate_core::clock::{Clock, Timestamp};
use tidegate_core::embedding::Purpose;
use tidegate_core::id::{FactId, KeyId, UserId};
use tidegate_core::port::{Embedder, MemoryStore, NewNote, RowKey};
use tidegate_kb::embed::Builtin;
use tidegate_memory::recall::{self, Matrix, Options};
use tidegate_store::Store;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::chats::{Turn, people};
use super::own;
use crate::suites::Count;

/// How many notes are looked at.
const DEPTHS: [usize; 4] = [1, 3, 5, 10];
/// The longest text of a note, in characters.
const NOTE_CHARS_MAX: usize = 400;

#[derive(Debug, Deserialize)]
struct Question {
    user: String,
    #[serde(rename = "question")]
    text: String,
    /// Turns of that person that hold the answer, counted from 0.
    turns: Vec<usize>,
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// The share of questions with a right note among the first so many, and how often that was so.
#[derive(Debug, Default)]
struct Hits {
    at: [usize; DEPTHS.len()],
    reciprocal: f64,
}

impl Hits {
    fn add(&mut self, found: &[usize], right: &[usize]) {
        let rank = found.iter().position(|turn| right.contains(turn));
        for (depth, hits) in DEPTHS.iter().zip(&mut self.at) {
            *hits += usize::from(rank.is_some_and(|rank| rank < *depth));
        }
        if let Some(rank) = rank.and_then(|rank| u32::try_from(rank).ok()) {
            self.reciprocal += 1.0 / f64::from(rank + 1);
        }
    }
}

/// One note for each turn of a person, and the questions put to them; both together must not find less than the words.
pub(super) fn measure(runtime: &Handle, file: &Path) -> Result<Count> {
    let people = people(file)?;
    let questions: Vec<Question> = own("recall.jsonl")?;
    let [words, vectors, fused] = runtime.block_on(ask(&people, &questions))?;
    println!(
        "\nrecall, {} questions to {} people, a note for each of their turns",
        questions.len(),
        people.len()
    );
    println!(
        "{:<10} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "", "any@1", "any@3", "any@5", "any@10", "MRR"
    );
    let count = f64::from(u32::try_from(questions.len())?);
    for (name, hits) in [("words", &words), ("vectors", &vectors), ("fused", &fused)] {
        print!("{name:<10}");
        for hits in hits.at {
            print!(" {:>7.3}", f64::from(u32::try_from(hits)?) / count);
        }
        println!(" {:>7.3}", hits.reciprocal / count);
    }
    let mut held = Count::default();
    held.add(fused.at.last() >= words.at.last());
    Ok(held)
}

async fn ask(people: &BTreeMap<String, Vec<Turn>>, questions: &[Question]) -> Result<[Hits; 3]> {
    let folder = TempDir::new()?;
    let options = tidegate_store::Options {
        path: folder.path().join("recall.db"),
        ..tidegate_store::Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Still)).await?;
    let (stop, mut working) = (CancellationToken::new(), JoinSet::new());
    working.spawn(worker.run(stop.clone()));
    let embedder = Builtin::load()?;
    let mut all = [Hits::default(), Hits::default(), Hits::default()];
    for (name, turns) in people {
        let asked: Vec<&Question> = questions
            .iter()
            .filter(|question| question.user == *name)
            .collect();
        let person = Person::write(&store, &embedder, name, turns).await?;
        for question in asked {
            let lists = person.search(&store, &embedder, &question.text).await?;
            for (hits, found) in all.iter_mut().zip(lists) {
                hits.add(&found, &question.turns);
            }
        }
    }
    stop.cancel();
    working.join_all().await;
    Ok(all)
}

/// Somebody's notes.
struct Person {
    user: UserId,
    /// The turn that each note is of.
    turns: BTreeMap<RowKey, usize>,
    matrix: Matrix,
}

impl Person {
    async fn write(store: &Store, embedder: &Builtin, name: &str, turns: &[Turn]) -> Result<Self> {
        let user = UserId::of(&KeyId::new("recallrecall"), Some(name))?;
        let notes = turns.iter().enumerate().map(|(at, turn)| NewNote {
            fact: FactId::new(format!("{at:04}")),
            kind: "goal".to_owned(),
            value: at.to_string(),
            text: turn.query.chars().take(NOTE_CHARS_MAX).collect(),
        });
        // Notes follow from what somebody said; of a person who never said anything there are none.
        let said = json!({"id": "obs", "kind": "goal", "value": "x", "quote": "x", "turn": vec![0; 32], "conversation": "",
            "day": "2026-03-02", "at": "2026-03-02T09:00:00Z", "voice": "stated", "stance": "affirmed",
            "extractor": "rules", "is_explicit": true, "is_first_person": true});
        store.append(&user, vec![serde_json::from_value(said)?]).await?;
        let version = store.version(&user).await?;
        store
            .put_notes(&user, version, notes.collect(), Vec::new())
            .await?
            .context("somebody else wrote")?;
        let notes = store.notes(&user, 0, turns.len()).await?;
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        let vectors = embedder.embed(&texts, Purpose::Document).await?;
        let mut matrix = Matrix::new(vectors.iter().flatten().map(Vec::len).next().unwrap_or_default());
        let mut of_turns = BTreeMap::new();
        for (note, vector) in notes.iter().zip(&vectors) {
            of_turns.insert(note.key, note.value.parse()?);
            if let Some(vector) = vector {
                matrix.push(note.key, vector);
            }
        }
        Ok(Self {
            user,
            turns: of_turns,
            matrix,
        })
    }

    /// The turns that are found by words, by vectors and by both, best first.
    async fn search(&self, store: &Store, embedder: &Builtin, question: &str) -> Result<[Vec<usize>; 3]> {
        let options = Options {
            limit: DEPTHS[DEPTHS.len() - 1],
            ..Options::default()
        };
        let words = store
            .match_notes(&self.user, &recall::terms(question), options.depth)
            .await?;
        let vector = embedder.embed(&[question], Purpose::Query).await?.pop().flatten();
        let vectors = vector
            .map(|vector| self.matrix.nearest(&vector, options.depth))
            .unwrap_or_default();
        let alone = Options {
            vector_weight: 1.0,
            ..options
        };
        Ok([
            self.turns(&words, &[], &options),
            self.turns(&[], &vectors, &alone),
            self.turns(&words, &vectors, &options),
        ])
    }

    fn turns(&self, words: &[(RowKey, f32)], vectors: &[(RowKey, f32)], options: &Options) -> Vec<usize> {
        recall::rank(words, vectors, options)
            .iter()
            .filter_map(|recalled| self.turns.get(&recalled.key).copied())
            .collect()
    }
}

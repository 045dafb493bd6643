//! The embedding tier: how near a question lies to the nearest canonical example.

use std::{collections::HashMap, sync::Arc};

use sha2::{Digest, Sha256};
use tidegate_core::{model::ModelError, port::Embedder};
use tokio::sync::Mutex;

/// Examples that are used; later lines are left out.
const EXAMPLES_MAX: usize = 256;

/// An example and the id by which the log names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    /// The first digits of its hash: it stays the same when lines move.
    pub(super) id: String,
    /// The question.
    pub(super) text: String,
}

/// Reads an example file: a question a line, `#` begins a comment.
pub(super) fn parse(text: &str) -> Vec<Example> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .take(EXAMPLES_MAX)
        .map(|line| {
            let mut id = crate::prompt::hex(&Sha256::digest(line.as_bytes()));
            id.truncate(8);
            Example {
                id,
                text: line.to_owned(),
            }
        })
        .collect()
}

/// The nearest example.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Nearest {
    /// Its id.
    pub(super) id: String,
    /// The cosine, from -1 to 1.
    pub(super) cosine: f32,
}

/// Vectors of examples, by text: they belong to one model and are dropped when it changes.
#[derive(Debug, Default)]
struct Vectors {
    model: String,
    by_text: HashMap<String, Option<Vec<f32>>>,
}

/// Compares questions with examples through an embedder.
#[derive(Debug)]
pub(super) struct Comparer {
    embedder: Arc<dyn Embedder>,
    /// Kept vectors. An async lock, because it is held while the embedder works: two requests at start must
    /// not both embed every example. Each vector is kept as soon as it is there, so that a caller that gives
    /// up half-way loses nothing.
    vectors: Mutex<Vectors>,
}

impl Comparer {
    pub(super) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            vectors: Mutex::default(),
        }
    }

    /// The example nearest to `text`; `None` where either side has no vector.
    pub(super) async fn nearest(
        &self,
        text: &str,
        examples: &[Example],
    ) -> Result<Option<Nearest>, ModelError> {
        let Some(query) = self.embedder.embed(text).await? else {
            return Ok(None);
        };
        let mut vectors = self.vectors.lock().await;
        if vectors.model != self.embedder.model() {
            self.embedder.model().clone_into(&mut vectors.model);
            vectors.by_text.clear();
        }
        if vectors.by_text.len() > EXAMPLES_MAX {
            vectors
                .by_text
                .retain(|text, _| examples.iter().any(|example| example.text == *text));
        }
        let mut best: Option<Nearest> = None;
        for example in examples {
            if !vectors.by_text.contains_key(&example.text) {
                let vector = self.embedder.embed(&example.text).await?;
                vectors.by_text.insert(example.text.clone(), vector);
            }
            let Some(Some(vector)) = vectors.by_text.get(&example.text) else {
                continue;
            };
            let Some(cosine) = cosine(&query, vector) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| cosine > best.cosine) {
                best = Some(Nearest {
                    id: example.id.clone(),
                    cosine,
                });
            }
        }
        Ok(best)
    }
}

/// The cosine of two vectors; `None` where they cannot be compared. The port promises unit length, but a wrong
/// promise must not turn into a wrong decision, so lengths are divided out.
fn cosine(a: &[f32], b: &[f32]) -> Option<f32> {
    if a.len() != b.len() {
        return None;
    }
    let dot: f32 = a.iter().zip(b).map(|(x, y)| x * y).sum();
    let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
    let cosine = dot / (length(a) * length(b));
    cosine.is_finite().then_some(cosine)
}

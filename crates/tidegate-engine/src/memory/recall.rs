//! What a request is told of the person who asks.
//!
//! The query is the person's own words and nothing else. A search by words and by meaning says which notes bear on it,
//! and the briefing is made of the facts, anew for each request. Recall never fails a turn: what does not come in time
//! is left out, and the log says so.

use std::{sync::Arc, time::Duration};

use tidegate_core::{
    embedding::Purpose,
    error::StoreError,
    id::{FactId, UserId},
    knowledge::Leg,
    port::{MemoryVersion, RowKey},
};
use tidegate_memory::{
    briefing::{self, Question, about_me, is_about_memory},
    recall::{self, Matrix, Recalled},
};

use super::{Memory, MemoryError, Person};

/// Vectors that are read at once.
const PAGE: usize = 2_000;

/// The longest question of which a vector is asked for, in characters.
const QUESTION_CHARS_MAX: usize = 2_000;

/// How often a question is halved until a model reads it whole.
const HALVINGS_MAX: usize = 4;

const SWITCHED_OFF: &str = "Memory is switched off here: nothing is learned from what people say, and nothing is \
                            remembered of them.";
const RECALL_OFF: &str = "Recalling is switched off for this person, so nothing of what may be kept is told. It is seen, \
                          changed and erased through the memory API.";
const OUT_OF_REACH: &str = "What is remembered cannot be looked up at the moment. Say so, and do not guess.";

/// A note that bears on a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its fact.
    pub fact: FactId,
    /// What it is about.
    pub kind: String,
    /// The words.
    pub text: String,
    /// From 0 to 1.
    pub score: f32,
    /// What the words said of it.
    pub words: Option<Leg>,
    /// What the vectors said of it.
    pub vectors: Option<Leg>,
}

/// What a prompt says of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Notes, beside which everything goes its way.
    Notes(String),
    /// The answer to the question what is remembered.
    Answer(String),
}

/// What is told where memory as a whole is switched off: only to whoever asks for it.
pub(crate) fn without_memory(asked: Option<&str>) -> Option<Told> {
    asked
        .is_some_and(is_about_memory)
        .then(|| Told::Answer(SWITCHED_OFF.to_owned()))
}

impl Memory {
    /// Notes of a person that bear on a question, best first, with the rank that each leg gave them.
    pub async fn search(
        &self,
        user: &UserId,
        question: &str,
        limit: usize,
    ) -> Result<Vec<Found>, MemoryError> {
        let person = self.person(user).await?;
        Ok(self.found(user, &person, question, limit).await?)
    }

    /// What to tell of the person. `words` are the person's own; `asked` are the same where they are new.
    pub async fn told(&self, user: &UserId, words: &str, asked: Option<&str>) -> Option<Told> {
        let is_asked = asked.is_some_and(is_about_memory);
        let limit = Duration::from_millis(self.parts().options.recall_timeout_ms);
        // The search has a limit of its own for the slowest of its parts, so this one is met only where the store hangs.
        match tokio::time::timeout(2 * limit, self.tell(user, words, is_asked)).await {
            Ok(Ok(told)) => told,
            Ok(Err(error)) => {
                tracing::warn!(%error, "what is remembered of the person cannot be read; the turn goes on without");
                is_asked.then(|| Told::Answer(OUT_OF_REACH.to_owned()))
            }
            Err(_elapsed) => {
                tracing::warn!("recall took too long; the turn goes on without");
                is_asked.then(|| Told::Answer(OUT_OF_REACH.to_owned()))
            }
        }
    }

    async fn tell(&self, user: &UserId, words: &str, is_asked: bool) -> Result<Option<Told>, StoreError> {
        let (person, switches) = tokio::join!(self.person(user), self.parts().store.switches(user));
        let (of_person, of_key) = switches?;
        if !of_person.and(of_key).recall {
            return Ok(is_asked.then(|| Told::Answer(RECALL_OFF.to_owned())));
        }
        let person = person?;
        let options = &self.parts().options;
        if is_asked {
            let about = (person.kinds(), &person.facts, &person.ledger);
            let all = about_me(about.0, about.1, about.2, options.about_me_chars_max);
            return Ok(Some(Told::Answer(all)));
        }
        if person.facts.is_empty() {
            return Ok(None);
        }
        let recalled: Vec<FactId> = match self.found(user, &person, words, options.recall_limit).await {
            Ok(found) => found
                .into_iter()
                .filter(|found| self.bears_on_it(found))
                .map(|found| found.fact)
                .collect(),
            Err(error) => {
                tracing::warn!(%error, "notes on the person cannot be searched; what is believed is told all the same");
                Vec::new()
            }
        };
        let question = Question {
            text: words,
            recalled: &recalled,
        };
        let briefing = briefing::compose_indexed(
            person.kinds(),
            &person.facts,
            &person.index,
            &person.ledger,
            question,
            &options.briefing(),
        );
        Ok(briefing.map(|briefing| Told::Notes(briefing.text)))
    }

    /// Whether a note is close enough to a question to be told on its account: it shares a word, or is as near as
    /// what has to do with a question is, by what was measured for the model.
    fn bears_on_it(&self, found: &Found) -> bool {
        let near = self.parts().embedder.as_ref().map_or(f32::INFINITY, |embedder| {
            embedder.model().calibration.relevant_cosine_min
        });
        found.words.is_some() || found.vectors.is_some_and(|leg| leg.score >= near)
    }

    async fn found(
        &self,
        user: &UserId,
        person: &Arc<Person>,
        question: &str,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        if person.version == MemoryVersion::default() {
            return Ok(Vec::new());
        }
        let options = self.parts().options.search(limit);
        let store = &self.parts().store;
        let terms = recall::terms(question);
        let (words, vectors) = tokio::join!(
            async {
                if terms.is_empty() {
                    return Ok(Vec::new());
                }
                store.match_notes(user, &terms, options.depth).await
            },
            self.nearest(user, person, question, options.depth),
        );
        let ranked = recall::rank(&words?, &vectors, &options);
        let keys: Vec<RowKey> = ranked.iter().map(|recalled| recalled.key).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut notes = store.notes_of(user, &keys).await?.into_iter().peekable();
        // Those whose note is gone by now are left out of the answer, which is in the order of the keys.
        let found = ranked.into_iter().filter_map(
            |Recalled {
                 key,
                 score,
                 words,
                 vectors,
             }| {
                let note = notes.next_if(|note| note.key == key)?;
                Some(Found {
                    fact: note.fact,
                    kind: note.kind,
                    text: note.text,
                    score,
                    words,
                    vectors,
                })
            },
        );
        let mut found: Vec<Found> = found.collect();
        // A note that does not follow a change yet speaks for nothing.
        found.retain(|found| person.fact(&found.fact).is_some());
        Ok(found)
    }

    /// Notes that are near in meaning; none where there is no embedder, or it fails or is slow.
    async fn nearest(
        &self,
        user: &UserId,
        person: &Arc<Person>,
        question: &str,
        depth: usize,
    ) -> Vec<(RowKey, f32)> {
        let Some(embedder) = &self.parts().embedder else {
            return Vec::new();
        };
        let matrix = match person.matrix(self, user).await {
            Ok(matrix) if matrix.is_empty() => return Vec::new(),
            Ok(matrix) => matrix,
            Err(error) => {
                tracing::warn!(%error, "vectors of notes cannot be read; they are searched by words");
                return Vec::new();
            }
        };
        let question = readable(question, |text| {
            embedder.tokens(text) <= embedder.model().tokens_max
        });
        let limit = Duration::from_millis(self.parts().options.recall_timeout_ms);
        let texts = [question];
        let asking = embedder.embed(&texts, Purpose::Query);
        match tokio::time::timeout(limit, asking).await {
            Ok(Ok(vectors)) => match vectors.into_iter().next().flatten() {
                Some(vector) => matrix.nearest(&vector, depth),
                None => Vec::new(),
            },
            Ok(Err(error)) => {
                tracing::debug!(%error, "notes are searched by words alone");
                Vec::new()
            }
            Err(_elapsed) => {
                tracing::debug!("the embedder is slow; notes are searched by words alone");
                Vec::new()
            }
        }
    }

    /// A person's vectors of the embedder's model.
    pub(super) async fn read_matrix(&self, user: &UserId) -> Result<Matrix, StoreError> {
        let Some(embedder) = &self.parts().embedder else {
            return Ok(Matrix::default());
        };
        let (store, model) = (&self.parts().store, &embedder.model().id);
        let (mut from, mut matrix): (RowKey, Option<Matrix>) = (0, None);
        loop {
            let page = store.note_vectors(user, model, from, PAGE).await?;
            let Some(last) = page.keys.last() else {
                return Ok(matrix.unwrap_or_default());
            };
            let dimensions = page.values.len() / page.keys.len();
            from = last + 1;
            if dimensions == 0 {
                continue;
            }
            let matrix = matrix.get_or_insert_with(|| Matrix::new(dimensions));
            for (key, vector) in page.keys.iter().zip(page.values.chunks_exact(dimensions)) {
                matrix.push(*key, vector);
            }
        }
    }
}

/// The beginning of a question that a model reads whole.
fn readable(question: &str, fits: impl Fn(&str) -> bool) -> &str {
    let clipped = |text: &'_ str, chars: usize| -> usize {
        text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
    };
    let mut text = question
        .get(..clipped(question, QUESTION_CHARS_MAX))
        .unwrap_or_default();
    for _ in 0..HALVINGS_MAX {
        if fits(text) {
            break;
        }
        let half = clipped(text, text.chars().count() / 2);
        text = text.get(..half).unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_question_is_cut_to_what_a_model_reads() {
        let fits = |text: &str| text.len() <= 100;
        assert_eq!(readable("short", fits), "short");
        let long = "ä".repeat(3_000);
        let cut = readable(&long, |text| text.len() <= 1_000);
        assert!(cut.len() <= 1_000 && cut.len() > 400, "{}", cut.len());
        assert_eq!(readable(&long, |_| true).chars().count(), QUESTION_CHARS_MAX);
    }

    #[test]
    fn where_memory_is_off_only_the_question_for_it_is_answered() {
        assert_eq!(without_memory(Some("how do I divide fractions?")), None);
        assert_eq!(without_memory(None), None);
        let told = without_memory(Some("what do you know about me?"));
        assert!(matches!(told, Some(Told::Answer(text)) if text.contains("switched off")));
    }
}

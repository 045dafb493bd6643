//! One search: both legs, fusion, the floor, the order. Reading order: `Base::find`.

use std::collections::HashMap;

use tidegate_core::{
    embedding::{Calibration, EmbedError, Fusion, Purpose},
    knowledge::{Filter, Passage, SearchRequest},
    port::{ChunkKey, Embedder, KnowledgeError, StoredChunk},
};

use super::{Base, PASSAGES_MAX, check_filter, select};
use crate::{
    authority::{Candidate, Move, Order, PAIR_TOP},
    explain,
    floor::{Floor, Signs},
    fusion::{Fused, List, fuse},
    index::{IndexError, Within},
    query::{self, Terms},
};

/// How many chunks each way of looking contributes. The spread of scores that fusion goes by is set by them; 100 to 300
/// differ by less than a hundredth of nDCG on the development collections, but for short questions, which want more.
const LEG: usize = 300;
/// How many of the vectors' chunks get exact cosines, for each passage that is asked for; at least, and at most.
const EXACT_EACH: usize = 4;
const EXACT_MIN: usize = 40;
const EXACT_MAX: usize = 100;
/// How many chunks of the joined list are looked at, for each passage that is asked for, and at least.
const FETCHED_EACH: usize = 3;
const FETCHED_MIN: usize = 40;
/// What holds where no model has anything to say.
const WORDS_ALONE: Calibration = Calibration {
    fusion: Fusion::Convex { vector_weight: 0.0 },
    pair_cosine_min: 1.0,
    relevant_cosine_min: 1.0,
    routing_threshold: None,
};

/// What a search has found, and why.
pub(crate) struct Found {
    pub(crate) terms: Terms,
    /// The model whose vectors took part.
    pub(crate) model: Option<String>,
    pub(crate) fusion: Fusion,
    /// Best first, with what is below the floor at the end.
    pub(crate) standings: Vec<Standing>,
    /// How many of them are the answer.
    pub(crate) relevant: usize,
    pub(crate) words_only: Option<String>,
}

/// A chunk and how it came to stand where it stands.
pub(crate) struct Standing {
    chunk: StoredChunk,
    pub(crate) fused: Fused,
    /// Its rank after fusion, from 1.
    pub(crate) fused_rank: usize,
    pub(crate) moves: Vec<String>,
}

/// What the vectors had to say.
struct ByVectors {
    model: String,
    calibration: Calibration,
    found: Vec<(ChunkKey, f32)>,
}

/// What the words had to say.
struct ByWords {
    terms: Terms,
    frequencies: Vec<(String, u64)>,
    found: Vec<(ChunkKey, f32)>,
}

impl Standing {
    pub(crate) fn into_passage(self) -> Passage {
        Passage {
            citation: self.chunk.citation,
            document: self.chunk.path,
            title: self.chunk.title,
            place: self.chunk.place,
            authority: self.chunk.authority,
            text: self.chunk.text,
            score: self.fused.score,
        }
    }
}

impl Base {
    pub(super) async fn find(&self, request: &SearchRequest) -> Result<Found, KnowledgeError> {
        let query = check(request)?;
        let version = self.store.version().await?;
        let chunks = self.chunks(version).await?;
        let (words, vectors) = tokio::join!(
            self.by_words(query, &request.filter, chunks),
            self.by_vectors(query, request, version)
        );
        let words = words?;
        let (vectors, words_only) = match vectors {
            Ok(vectors) => (Some(vectors), None),
            Err(why) => (None, (chunks > 0).then_some(why)),
        };
        let calibration = vectors
            .as_ref()
            .map_or(WORDS_ALONE, |vectors| vectors.calibration);
        let fusion = self.options.fusion.unwrap_or(calibration.fusion);
        let list = |found| List { found, asked: LEG };
        let fused = fuse(
            list(&words.found),
            vectors.as_ref().map(|vectors| list(&vectors.found)),
            fusion,
        );
        let k = request.k.min(PASSAGES_MAX);
        let standings = self.fetch(fused, k).await?;
        let floor = Floor::new(
            &words.frequencies,
            chunks,
            self.options
                .relevant_cosine_min
                .unwrap_or(calibration.relevant_cosine_min),
        );
        let (above, below) = part(standings, &floor, vectors.as_ref());
        let above = self.order(above, vectors.as_ref()).await?;
        let relevant = above.len().min(k);
        tracing::debug!(
            words = words.found.len(),
            vectors = vectors.as_ref().map(|vectors| vectors.found.len()),
            relevant = above.len(),
            below_the_floor = below.len(),
            words_only = words_only.as_deref(),
            "searched the knowledge base"
        );
        Ok(Found {
            terms: words.terms,
            model: vectors.map(|vectors| vectors.model),
            fusion,
            standings: above.into_iter().chain(below).collect(),
            relevant,
            words_only,
        })
    }

    async fn by_words(&self, query: &str, filter: &Filter, chunks: u64) -> Result<ByWords, KnowledgeError> {
        let mut terms = Terms::of(query);
        let distinct = terms.distinct();
        let counts = self.store.frequencies(&distinct).await?;
        let frequencies: Vec<(String, u64)> = distinct.into_iter().zip(counts).collect();
        terms.drop_common(&frequencies, chunks);
        let found = if terms.wanted.is_empty() {
            Vec::new()
        } else {
            self.store.match_words(&terms.wanted, filter, LEG).await?
        };
        Ok(ByWords {
            terms,
            frequencies,
            found,
        })
    }

    /// What is nearest by vectors, or in a sentence why that is not known.
    async fn by_vectors(
        &self,
        query: &str,
        request: &SearchRequest,
        version: u64,
    ) -> Result<ByVectors, String> {
        if self.embedders.is_empty() {
            return Err("only words were compared: no embedder is configured".to_owned());
        }
        let serving = self
            .store
            .serving_model()
            .await
            .map_err(|error| error.to_string())?;
        let serving = serving.ok_or("only words were compared: the documents have no vectors yet")?;
        let embedder = self
            .embedders
            .iter()
            .find(|embedder| embedder.model().id == serving);
        let embedder = embedder.ok_or_else(|| {
            format!("only words were compared: the vectors are still those of `{serving}`, which is not configured any more")
        })?;
        let vector = vector(&**embedder, query).await.map_err(|error| {
            tracing::warn!(%error, "a query was answered by words alone");
            format!("only words were compared: {error}")
        })?;
        let vector = vector.ok_or("only words were compared: the embedder knows no word of the query")?;
        let found = self
            .nearest(&serving, version, &vector, request)
            .await
            .map_err(|error| {
                tracing::warn!(%error, "a query was answered by words alone");
                format!("only words were compared: {error}")
            })?;
        Ok(ByVectors {
            model: serving,
            calibration: embedder.model().calibration,
            found,
        })
    }

    async fn nearest(
        &self,
        model: &str,
        version: u64,
        vector: &[f32],
        request: &SearchRequest,
    ) -> Result<Vec<(ChunkKey, f32)>, IndexError> {
        let filter = &request.filter;
        let exact = request.k.saturating_mul(EXACT_EACH).clamp(EXACT_MIN, EXACT_MAX);
        self.index.follow(model, version).await?;
        if *filter == Filter::default() {
            return self.index.search(vector, LEG, exact, None).await;
        }
        let keys = self.store.keys_within(filter).await?;
        let within = Within { filter, keys: &keys };
        self.index.search(vector, LEG, exact, Some(within)).await
    }

    /// The chunks of the first of a list, each text once.
    async fn fetch(&self, fused: Vec<Fused>, k: usize) -> Result<Vec<Standing>, KnowledgeError> {
        let wanted = (k * FETCHED_EACH).max(FETCHED_MIN);
        let fused: Vec<Fused> = fused.into_iter().take(wanted).collect();
        let keys: Vec<ChunkKey> = fused.iter().map(|fused| fused.key).collect();
        let mut chunks: HashMap<ChunkKey, StoredChunk> = self
            .store
            .chunks(&keys)
            .await?
            .into_iter()
            .map(|chunk| (chunk.key, chunk))
            .collect();
        // Whatever went away since it was found is left out.
        let mut standings: Vec<Standing> = (1..)
            .zip(fused)
            .filter_map(|(fused_rank, fused)| {
                Some(Standing {
                    chunk: chunks.remove(&fused.key)?,
                    fused,
                    fused_rank,
                    moves: Vec::new(),
                })
            })
            .collect();
        let kept = select::once_each(
            &standings
                .iter()
                .map(|standing| &standing.chunk)
                .collect::<Vec<_>>(),
        );
        arrange(&mut standings, &kept);
        Ok(standings)
    }

    /// Stage 2: what authority changes, and nothing twice.
    async fn order(
        &self,
        mut standings: Vec<Standing>,
        vectors: Option<&ByVectors>,
    ) -> Result<Vec<Standing>, KnowledgeError> {
        let order = Order {
            nudge: self.options.authority_nudge,
            pair_cosine_min: vectors.filter(|_| self.options.pair_rule).map(|vectors| {
                self.options
                    .pair_cosine_min
                    .unwrap_or(vectors.calibration.pair_cosine_min)
            }),
        };
        let mut candidates: Vec<Candidate> = standings
            .iter()
            .map(|standing| Candidate {
                key: standing.fused.key,
                authority: standing.chunk.authority,
                score: standing.fused.score,
            })
            .collect();
        if order.matters(&candidates) {
            let mut moves = order.nudge(&mut candidates);
            let top: Vec<ChunkKey> = candidates
                .iter()
                .take(PAIR_TOP)
                .map(|candidate| candidate.key)
                .collect();
            if order.pair_cosine_min.is_some() {
                let known = self.index.vectors(&top).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the pair rule is left out: the vectors of the passages cannot be had");
                    HashMap::new()
                });
                moves.extend(order.lift(&mut candidates, &known));
            }
            tell(&mut standings, &moves);
            let places: HashMap<ChunkKey, usize> = (0..)
                .zip(&candidates)
                .map(|(place, candidate)| (candidate.key, place))
                .collect();
            standings.sort_by_key(|standing| places.get(&standing.fused.key).copied());
        }
        let spread = select::spread(
            &standings
                .iter()
                .map(|standing| &standing.chunk)
                .collect::<Vec<_>>(),
        );
        arrange(&mut standings, &spread);
        Ok(standings)
    }
}

/// The query without its surroundings, or why it is none.
fn check(request: &SearchRequest) -> Result<&str, KnowledgeError> {
    check_filter(&request.filter)?;
    let invalid = |text: String| Err(KnowledgeError::Invalid(text));
    let query = request.query.trim();
    let chars = query.chars().count();
    if chars > query::CHARS_MAX {
        return invalid(format!(
            "the query has {chars} characters and may have {}; ask for what matters in it",
            query::CHARS_MAX
        ));
    }
    if !query.chars().any(char::is_alphanumeric) {
        return invalid("the query has no letter or digit; write in words what to look for".to_owned());
    }
    if request.k == 0 {
        return invalid("ask for at least one passage".to_owned());
    }
    Ok(query)
}

/// The query's vector; `None` where the model knows nothing in it. What is longer than the model reads is embedded in
/// pieces, and their middle is the query's.
async fn vector(embedder: &dyn Embedder, query: &str) -> Result<Option<Vec<f32>>, EmbedError> {
    let mut pieces = Vec::new();
    halve(embedder, query, &mut pieces);
    let vectors = embedder.embed(&pieces, Purpose::Query).await?;
    let mut known = vectors.into_iter().flatten();
    let Some(mut sum) = known.next() else {
        return Ok(None);
    };
    for vector in known {
        for (sum, value) in sum.iter_mut().zip(vector) {
            *sum += value;
        }
    }
    let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length <= 0.0 || !length.is_finite() {
        return Ok(None);
    }
    for value in &mut sum {
        *value /= length;
    }
    Ok(Some(sum))
}

/// Cuts a text in the middle, between words where there are any, until each piece is short enough. The bound on a
/// query's characters bounds the pieces.
fn halve<'a>(embedder: &dyn Embedder, text: &'a str, pieces: &mut Vec<&'a str>) {
    let middle = text.floor_char_boundary(text.len() / 2);
    if middle == 0 || embedder.tokens(text) <= embedder.model().tokens_max {
        pieces.push(text);
        return;
    }
    let (left, _) = text.split_at(middle);
    let cut = left
        .rfind(char::is_whitespace)
        .filter(|cut| *cut > 0)
        .unwrap_or(middle);
    let (left, right) = text.split_at(cut);
    halve(embedder, left, pieces);
    halve(embedder, right, pieces);
}

/// What has to do with the query, and what has not.
fn part(
    standings: Vec<Standing>,
    floor: &Floor,
    vectors: Option<&ByVectors>,
) -> (Vec<Standing>, Vec<Standing>) {
    // A chunk that the vectors do not list is no nearer than the last they do, or has no vector.
    let beyond = vectors
        .filter(|vectors| vectors.found.len() >= LEG)
        .and_then(|vectors| vectors.found.last())
        .map(|(_, cosine)| *cosine);
    let signs: Vec<Signs> = standings
        .iter()
        .map(|standing| {
            let cosine = standing.fused.vectors.map(|leg| leg.score).or(beyond);
            let chunk = &standing.chunk;
            floor.signs(
                &[&chunk.title, &chunk.place.headings.join(" "), &chunk.text],
                cosine,
            )
        })
        .collect();
    let relevant = floor.relevant(&signs);
    let mut parted = (Vec::new(), Vec::new());
    for (standing, relevant) in standings.into_iter().zip(relevant) {
        if relevant {
            parted.0.push(standing);
        } else {
            parted.1.push(standing);
        }
    }
    parted
}

/// Notes at each passage what authority did to it, and logs it.
fn tell(standings: &mut [Standing], moves: &[Move]) {
    for step in moves {
        let (key, above) = match step {
            Move::Nudged { key, .. } => (*key, None),
            Move::Lifted { key, above, .. } => (*key, Some(*above)),
        };
        let above = standings
            .iter()
            .find(|standing| Some(standing.fused.key) == above);
        let above = above
            .map(|standing| standing.chunk.citation.to_string())
            .unwrap_or_default();
        let Some(standing) = standings.iter_mut().find(|standing| standing.fused.key == key) else {
            continue;
        };
        let sentence = explain::sentence(standing.chunk.authority.name(), step, &above);
        tracing::debug!(citation = %standing.chunk.citation, "authority: {sentence}");
        standing.moves.push(sentence);
    }
}

/// The items at `positions`, in that order.
fn arrange<T>(items: &mut Vec<T>, positions: &[usize]) {
    let mut taken: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(
        positions
            .iter()
            .filter_map(|position| taken.get_mut(*position)?.take()),
    );
}

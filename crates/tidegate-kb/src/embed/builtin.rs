//! The embedder that is always there: a table of word pieces, looked up and added. No model runtime, no network, no
//! download; English; the order of the words counts for nothing.
//!
//! The files stand in `assets/static-minilm-256-v1/`, with their origin and licence in `NOTICE`, and are part of the
//! program: what is read of them is paged in from there, nothing is copied but an index of the vocabulary (250 KB).

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use async_trait::async_trait;
use tidegate_core::{
    embedding::{Calibration, EmbedError, EmbedderState, EmbeddingModel, Fusion, Purpose},
    port::Embedder,
};

use super::{
    Error,
    safetensors::{Tensor, Tensors},
    wordpiece::{Tokens, Vocabulary},
};

/// The id that stands beside its vectors.
pub const MODEL: &str = "static-minilm-256-v1";

/// The length of its vectors.
pub const DIMENSIONS: usize = 256;

/// The longest text, in bytes; for [`Embedder::embed`] only. It has no limit of its own, but a text is work.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// After so many tokens the task lets others run: well below a millisecond of work.
const TOKENS_A_TURN: usize = 2_048;

static VECTORS: &[u8] = include_bytes!("../../assets/static-minilm-256-v1/vectors.safetensors");
static VOCABULARY: &str = include_str!("../../assets/static-minilm-256-v1/vocab.txt");

/// What was measured for it: the weight and the pair rule on search collections, the threshold with the prompt lists
/// that are shipped.
const CALIBRATION: Calibration = Calibration {
    fusion: Fusion::Convex { vector_weight: 0.4 },
    pair_cosine_min: 0.60,
    relevant_cosine_min: 0.42,
    routing_threshold: Some(0.25),
};

/// The built-in embedder.
#[derive(Debug)]
pub struct Builtin {
    model: EmbeddingModel,
    vocabulary: Vocabulary,
    /// A little-endian f32 a row.
    scales: &'static [[u8; 4]],
    /// Signed bytes.
    rows: &'static [[u8; DIMENSIONS]],
}

impl Builtin {
    /// Indexes the vocabulary and checks that the parts fit. A few milliseconds; once is enough.
    pub fn load() -> Result<Self, Error> {
        let vocabulary =
            Vocabulary::new(Cow::Borrowed(VOCABULARY)).map_err(|problem| asset(&problem.to_string()))?;
        let (scales, rows) = parts(VECTORS, vocabulary.len()).map_err(|problem| asset(&problem))?;
        Ok(Self {
            model: EmbeddingModel {
                id: MODEL.to_owned(),
                // No token is shorter than a byte.
                tokens_max: TEXT_BYTES_MAX,
                calibration: CALIBRATION,
            },
            vocabulary,
            scales,
            rows,
        })
    }

    /// Its word pieces.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The word pieces of a text, with their places in it.
    pub fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        self.vocabulary.tokens(text)
    }

    /// Where each token of a text begins, in bytes: rising, each at the beginning of a character.
    pub fn token_offsets<'a>(&'a self, text: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.tokens(text).map(|token| token.span.start)
    }

    /// The vector of a text, at once and on this thread (30 tokens take some microseconds, a megabyte some tens of
    /// milliseconds); `None` where it holds no known word.
    pub fn embed_one(&self, text: &str) -> Option<Vec<f32>> {
        let mut sum = [0.0; DIMENSIONS];
        self.add(&mut self.tokens(text), usize::MAX, &mut sum);
        unit(&sum)
    }

    /// Adds the rows of at most `count` tokens; how many there were.
    fn add(&self, tokens: &mut Tokens<'_>, count: usize, sum: &mut [f32; DIMENSIONS]) -> usize {
        let mut added = 0;
        for token in tokens.take(count) {
            added += 1;
            let id = usize::from(token.id);
            // An unknown word counts for nothing.
            if token.id == self.vocabulary.unknown() {
                continue;
            }
            if let (Some(scale), Some(row)) = (self.scales.get(id), self.rows.get(id)) {
                let scale = f32::from_le_bytes(*scale);
                for (sum, value) in sum.iter_mut().zip(row) {
                    *sum += scale * f32::from(value.cast_signed());
                }
            }
        }
        added
    }
}

#[async_trait]
impl Embedder for Builtin {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], _purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        if let Some(text) = texts.iter().find(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(EmbedError::Refused(format!(
                "a text of {} bytes is longer than the built-in embedder reads ({TEXT_BYTES_MAX}); embed parts of it",
                text.len()
            )));
        }
        let mut vectors = Vec::with_capacity(texts.len());
        let mut left = TOKENS_A_TURN;
        for text in texts {
            let mut sum = [0.0; DIMENSIONS];
            let mut tokens = self.tokens(text);
            loop {
                left -= self.add(&mut tokens, left, &mut sum);
                if left > 0 {
                    break;
                }
                tokio::task::yield_now().await;
                left = TOKENS_A_TURN;
            }
            vectors.push(unit(&sum));
        }
        Ok(vectors)
    }

    fn tokens(&self, text: &str) -> usize {
        self.vocabulary.tokens(text).count()
    }

    fn state(&self) -> EmbedderState {
        EmbedderState::Ready
    }
}

/// The vector at length 1; `None` where it has no direction.
fn unit(sum: &[f32]) -> Option<Vec<f32>> {
    let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    (norm > 0.0).then(|| sum.iter().map(|value| value / norm).collect())
}

fn asset(problem: &str) -> Error {
    Error::Asset {
        name: MODEL,
        problem: problem.to_owned(),
    }
}

/// Scales and rows of a file, where there is one of each for every piece of the vocabulary.
fn parts(file: &'static [u8], pieces: usize) -> Result<Parts, String> {
    let tensors = Tensors::read(file)?;
    if tensors.metadata.get("model").map(String::as_str) != Some(MODEL) {
        return Err("it is of another model".to_owned());
    }
    let scales = checked(tensors.get("scales")?, "F32", &[pieces])?;
    let rows = checked(tensors.get("rows")?, "I8", &[pieces, DIMENSIONS])?;
    Ok((scales.as_chunks().0, rows.as_chunks().0))
}

type Parts = (&'static [[u8; 4]], &'static [[u8; DIMENSIONS]]);

fn checked<'a>(tensor: Tensor<'a, '_>, dtype: &str, shape: &[usize]) -> Result<&'a [u8], String> {
    if tensor.dtype == dtype && tensor.shape == shape {
        Ok(tensor.bytes)
    } else {
        Err(format!(
            "a part is {} {:?} where {dtype} {shape:?} belongs",
            tensor.dtype, tensor.shape
        ))
    }
}

//! A BERT model in a folder, run in this process: for those who bring one and want no server. It needs the feature
//! `local-embedder`.
//!
//! The folder holds `config.json`, `tokenizer.json` and `model.safetensors`, as sentence-transformers saves them;
//! `sentence_bert_config.json` and `1_Pooling/config.json` are heeded where they are there. What the tokenizer file
//! says of padding and truncation is not: a text is embedded whole and alone, or refused.

mod bert;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap, path::Path, sync::Arc};

use async_trait::async_trait;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tidegate_core::{
    embedding::{EmbedError, EmbedderState, EmbeddingModel, Purpose},
    port::{Embedder, FileFault, OperatorFiles as _},
};
use tidegate_io::operator_files::Disk;
use tokio::sync::Semaphore;

use self::bert::{Bert, Config, Pooling};
use super::{Error, models::Profile, wordpiece::Vocabulary};

/// The longest file of weights that is loaded, in bytes; they are held in memory.
pub const WEIGHTS_BYTES_MAX: u64 = 2 << 30;
/// The longest JSON file that is read.
const JSON_BYTES_MAX: usize = 32 << 20;
/// How many texts one thread takes in one go.
const TEXTS_A_TURN: usize = 4;
/// The marks before and after a text.
const MARKS: usize = 2;

/// A model in memory.
#[derive(Debug)]
pub struct Local {
    model: EmbeddingModel,
    profile: Profile,
    network: Arc<Network>,
    queries: Semaphore,
    documents: Semaphore,
}

#[derive(Debug)]
struct Network {
    bert: Bert,
    vocabulary: Vocabulary,
    begin: u16,
    end: u16,
    pooling: Pooling,
}

#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Normalizer,
    model: Pieces,
}

#[derive(Deserialize)]
struct Normalizer {
    r#type: String,
    #[serde(default)]
    lowercase: bool,
    #[serde(default)]
    strip_accents: Option<bool>,
}

#[derive(Deserialize)]
struct Pieces {
    #[serde(default)]
    r#type: Option<String>,
    vocab: HashMap<String, usize>,
}

impl Local {
    /// Loads a folder. Takes about a third of a second for a model of 90 MB, on this thread.
    pub(super) fn load(
        folder: &Path,
        name: &str,
        profile: Profile,
        tokens_max: Option<usize>,
        concurrency_max: usize,
    ) -> Result<Self, Error> {
        let fault = |problem: String| Error::Folder {
            path: folder.display().to_string(),
            problem,
        };
        let config: Config = json(folder, "config.json").map_err(fault)?;
        let vocabulary = vocabulary(json(folder, "tokenizer.json").map_err(fault)?).map_err(fault)?;
        let mark = |mark: &str| {
            let id = vocabulary.id(mark);
            id.ok_or_else(|| fault(format!("`tokenizer.json` has no `{mark}`")))
        };
        let (begin, end) = (mark("[CLS]")?, mark("[SEP]")?);
        let pooling = pooling(folder).map_err(fault)?;
        let limit = context(folder, &config, &profile).map_err(fault)?;
        let weights = weights(&folder.join("model.safetensors")).map_err(fault)?;
        let digest = Sha256::digest(&weights);
        // A model may be exchanged for another one under the same name.
        let digest = digest
            .iter()
            .take(4)
            .fold(String::new(), |digest, byte| format!("{digest}{byte:02x}"));
        let dimensions = config.dimensions();
        let positions = config.max_position_embeddings;
        let bert = Bert::read(config, vocabulary.len(), &weights)
            .map_err(|problem| fault(format!("`model.safetensors`: {problem}")))?;
        let model = EmbeddingModel {
            id: format!("{}/{digest}", profile.id("local", name, None)),
            tokens_max: tokens_max
                .unwrap_or(limit)
                .min(positions)
                .saturating_sub(MARKS + prefix_tokens(&vocabulary, &profile))
                .max(1),
            calibration: profile.calibration(),
        };
        tracing::info!(model = %model.id, dimensions, "the local embedding model is loaded");
        Ok(Self {
            model,
            profile,
            network: Arc::new(Network {
                bert,
                vocabulary,
                begin,
                end,
                pooling,
            }),
            queries: Semaphore::new(concurrency_max.max(1)),
            documents: Semaphore::new(concurrency_max.max(1)),
        })
    }

    /// The vectors of a few texts, computed on a thread for such work.
    async fn turn(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let lane = match purpose {
            Purpose::Query => &self.queries,
            Purpose::Document => &self.documents,
        };
        let stopped = || EmbedError::Unavailable("it is being shut down".to_owned());
        let _turn = lane.acquire().await.map_err(|_| stopped())?;
        let prefix = self.profile.prefix(purpose);
        let texts: Vec<Option<String>> = texts
            .iter()
            .map(|text| (!text.trim().is_empty()).then(|| format!("{prefix}{text}")))
            .collect();
        let network = self.network.clone();
        tokio::task::spawn_blocking(move || {
            texts
                .into_iter()
                .map(|text| text.map(|text| network.embed(&text)).transpose())
                .collect()
        })
        .await
        .map_err(|_| stopped())?
    }
}

impl Network {
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let mut tokens = vec![self.begin];
        tokens.extend(self.vocabulary.tokens(text).map(|token| token.id));
        tokens.push(self.end);
        let mut vector = self.bert.encode(&tokens, self.pooling);
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !norm.is_normal() {
            return Err(EmbedError::Broken(
                "a vector has no direction; are the weights whole?".to_owned(),
            ));
        }
        for value in &mut vector {
            *value /= norm;
        }
        Ok(vector)
    }
}

#[async_trait]
impl Embedder for Local {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        for text in texts {
            let tokens = self.tokens(text);
            if tokens > self.model.tokens_max {
                return Err(EmbedError::Refused(format!(
                    "a text has {tokens} tokens, and the model reads {}: embed parts of it",
                    self.model.tokens_max
                )));
            }
        }
        let turns = texts.chunks(TEXTS_A_TURN).map(|texts| self.turn(texts, purpose));
        let vectors = futures_util::future::try_join_all(turns).await?;
        Ok(vectors.into_iter().flatten().collect())
    }

    fn tokens(&self, text: &str) -> usize {
        self.network.vocabulary.tokens(text).count()
    }

    fn state(&self) -> EmbedderState {
        EmbedderState::Ready
    }
}

fn json<T: serde::de::DeserializeOwned>(folder: &Path, name: &str) -> Result<T, String> {
    let text = Disk
        .read(&folder.join(name), JSON_BYTES_MAX)
        .map_err(|problem| problem.to_string())?;
    serde_json::from_str(&text).map_err(|problem| format!("`{name}` cannot be read: {problem}"))
}

/// A file that may be missing.
fn optional<T: serde::de::DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, String> {
    match Disk.read(&folder.join(name), JSON_BYTES_MAX) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|problem| format!("`{name}` cannot be read: {problem}")),
        Err(FileFault::Missing(_)) => Ok(None),
        Err(problem @ FileFault::Unreadable { .. }) => Err(problem.to_string()),
    }
}

fn weights(path: &Path) -> Result<Vec<u8>, String> {
    let problem = |problem: std::io::Error| format!("{}: {problem}", path.display());
    let bytes = std::fs::metadata(path).map_err(problem)?.len();
    if bytes > WEIGHTS_BYTES_MAX {
        return Err(format!(
            "{} holds {bytes} bytes, and at most {WEIGHTS_BYTES_MAX} are loaded",
            path.display()
        ));
    }
    std::fs::read(path).map_err(problem)
}

fn vocabulary(file: TokenizerFile) -> Result<Vocabulary, String> {
    let kind = file.model.r#type.as_deref().unwrap_or("WordPiece");
    let normalizer = &file.normalizer;
    let plain = normalizer.lowercase && normalizer.strip_accents != Some(false);
    if kind != "WordPiece" || normalizer.r#type != "BertNormalizer" || !plain {
        return Err(
            "`tokenizer.json` is not that of an uncased BERT (WordPiece, lower case, no accents); take a model that has one"
                .to_owned(),
        );
    }
    let mut pieces: Vec<(usize, String)> = file
        .model
        .vocab
        .into_iter()
        .map(|(piece, id)| (id, piece))
        .collect();
    pieces.sort();
    let mut text = String::new();
    for (line, (id, piece)) in pieces.iter().enumerate() {
        if *id != line || piece.contains('\n') {
            return Err(format!(
                "piece {line} of `tokenizer.json` is missing, or stands twice"
            ));
        }
        text.push_str(piece);
        text.push('\n');
    }
    Vocabulary::new(Cow::Owned(text)).map_err(|problem| format!("`tokenizer.json`: {problem}"))
}

fn pooling(folder: &Path) -> Result<Pooling, String> {
    const NAME: &str = "1_Pooling/config.json";
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct File {
        pooling_mode_cls_token: bool,
        pooling_mode_mean_tokens: bool,
    }
    match optional::<File>(folder, NAME)? {
        None => Ok(Pooling::Mean),
        Some(file) => match (file.pooling_mode_mean_tokens, file.pooling_mode_cls_token) {
            (true, false) => Ok(Pooling::Mean),
            (false, true) => Ok(Pooling::First),
            (true, true) | (false, false) => {
                Err(format!("`{NAME}` asks for a pooling that is not known here"))
            }
        },
    }
}

/// The longest text the model was trained for, marks included, as far as it is known.
fn context(folder: &Path, config: &Config, profile: &Profile) -> Result<usize, String> {
    #[derive(Deserialize)]
    struct File {
        max_seq_length: Option<usize>,
    }
    let file: Option<File> = optional(folder, "sentence_bert_config.json")?;
    let said = file.and_then(|file| file.max_seq_length);
    let known = profile.dimensions.map(|_| profile.tokens_max);
    Ok([said, known]
        .into_iter()
        .flatten()
        .fold(config.max_position_embeddings, usize::min))
}

fn prefix_tokens(vocabulary: &Vocabulary, profile: &Profile) -> usize {
    [Purpose::Query, Purpose::Document]
        .map(|purpose| vocabulary.tokens(profile.prefix(purpose)).count())
        .into_iter()
        .max()
        .unwrap_or_default()
}

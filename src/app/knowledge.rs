//! The knowledge base: settings → embedder, index, ingest, and the base over them.

mod shown;
mod vectors;

use std::{
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::{Clock, Entropy},
    embedding::Fusion,
    knowledge::Authority,
    port::{ChunkStore, Embedder, KnowledgeBase, KnowledgeError},
    secret::Secret,
};
use tidegate_kb::{
    authority::Table,
    base::{self, Base, Intake, NoIntake},
    chroma::{self, Chroma},
    embed::{self, Provider, WordsOnly},
    ingest::{self, Ingest, MayRead, Task},
    parse,
};
use tidegate_store::Store;
use tokio_util::sync::CancellationToken;

use self::shown::{Shown, is_open};
pub use self::vectors::{PlaceName, open_chroma};
use super::{Error, live_zones::LiveZones, part, zones::real};
use crate::config::Settings;

/// How documents are indexed and searched. `[kb]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether documents are indexed and searched at all.
    pub enabled: bool,
    /// Files that are left out, as patterns.
    pub ignore: Vec<String>,
    /// The largest file that is read, in bytes.
    pub file_bytes_max: u64,
    /// The most files that are looked at.
    pub files_max: usize,
    /// Files that are worked on at once; 0: half the processors.
    pub workers_max: usize,
    /// Whether changes are noticed as they happen.
    pub watch: bool,
    /// For how long a changed file must rest before it is read.
    pub debounce_ms: u64,
    /// How often everything is compared anew.
    pub rescan_interval_s: u64,
    /// How long reading one file may take.
    pub parse_timeout_ms: u64,
    /// How much memory reading one file may take.
    pub parse_memory_mb: NonZeroU64,
    /// Which documents have which authority; the first row that matches decides.
    pub authority: Vec<AuthorityRow>,
    /// How words and vectors are joined.
    pub fusion: FusionName,
    /// The share of the vectors in a sum. Unset: what was measured for the model.
    pub vector_weight: Option<f64>,
    /// Whether a more trusted passage moves above a less trusted one on the same matter.
    pub authority_pairs: bool,
    /// The cosine from which two passages are on the same matter. Unset: by the model.
    pub pair_cosine_min: Option<f64>,
    /// What the most trusted documents are given, as a share of the range of scores.
    pub authority_nudge: f64,
    /// The cosine below which a passage has nothing to do with a query. Unset: by the model.
    pub relevant_cosine_min: Option<f64>,
    /// Where vectors are searched.
    pub vectors: PlaceName,
    /// Where Chroma is.
    pub chroma_url: String,
    /// The collection's name in Chroma.
    pub chroma_collection: String,
    /// The database of Chroma that the collection is in.
    pub chroma_database: String,
    /// The token for Chroma as it was typed: a reference mostly.
    pub chroma_token: Option<String>,
    /// The token itself, once it has been looked up.
    #[serde(skip)]
    pub chroma_secret: Option<Secret>,
    /// How long Chroma may take for a search.
    pub chroma_timeout_ms: u64,
}

/// A row of the table of authorities.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthorityRow {
    /// A pattern over paths inside the knowledge bank.
    pub pattern: String,
    /// What such documents have.
    pub level: Authority,
}

/// How words and vectors are joined, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FusionName {
    /// As was measured for the embedding model.
    #[default]
    Auto,
    /// By a weighted sum of both scores.
    Convex,
    /// By the sum of reciprocal ranks.
    Rrf,
}

/// The k of reciprocal ranks that was measured to be best with a second leg of any strength.
const RRF_K: u32 = 20;
/// The share of the vectors in a sum where the operator wants one and names none.
const VECTOR_WEIGHT: f32 = 0.4;
/// What primary documents are given unless the operator says otherwise: it settles what is as good as even.
const AUTHORITY_NUDGE: f64 = 0.02;

impl Default for Options {
    fn default() -> Self {
        let (ingest, parse, base) = (
            ingest::Options::default(),
            parse::Options::default(),
            base::Options::default(),
        );
        Self {
            enabled: true,
            ignore: ingest.ignore,
            file_bytes_max: ingest.file_bytes_max,
            files_max: ingest.files_max,
            workers_max: ingest.workers_max,
            watch: ingest.watch,
            debounce_ms: ingest.debounce_ms,
            rescan_interval_s: ingest.rescan_interval_s,
            parse_timeout_ms: parse.timeout_ms,
            parse_memory_mb: NonZeroU64::new(parse.memory_bytes >> 20).unwrap_or(NonZeroU64::MIN),
            authority: Vec::new(),
            fusion: FusionName::Auto,
            vector_weight: None,
            authority_pairs: base.pair_rule,
            pair_cosine_min: None,
            authority_nudge: AUTHORITY_NUDGE,
            relevant_cosine_min: None,
            vectors: PlaceName::Embedded,
            chroma_url: chroma::URL.to_owned(),
            chroma_collection: chroma::COLLECTION.to_owned(),
            chroma_database: chroma::DATABASE.to_owned(),
            chroma_token: None,
            chroma_secret: None,
            chroma_timeout_ms: chroma::TIMEOUT_MS,
        }
    }
}

impl Options {
    fn ingest(&self, folder: &Path, embeddings: &EmbeddingOptions) -> ingest::Options {
        ingest::Options {
            folder: folder.to_owned(),
            ignore: self.ignore.clone(),
            file_bytes_max: self.file_bytes_max,
            files_max: self.files_max,
            workers_max: self.workers_max,
            watch: self.watch,
            debounce_ms: self.debounce_ms,
            rescan_interval_s: self.rescan_interval_s,
            embed_retry_s: embeddings.rest_s,
        }
    }

    fn parse(&self, concurrency: usize) -> parse::Options {
        let default = parse::Options::default();
        parse::Options {
            concurrency,
            memory_bytes: self.parse_memory_mb.get().saturating_mul(1 << 20),
            timeout_ms: self.parse_timeout_ms,
            limits: parse::Limits {
                file_bytes_max: usize::try_from(self.file_bytes_max).unwrap_or(usize::MAX),
                ..default.limits
            },
        }
    }

    fn base(&self) -> base::Options {
        let weight = self.vector_weight.map(single);
        base::Options {
            fusion: match self.fusion {
                FusionName::Auto => weight.map(|vector_weight| Fusion::Convex { vector_weight }),
                FusionName::Convex => Some(Fusion::Convex {
                    vector_weight: weight.unwrap_or(VECTOR_WEIGHT),
                }),
                FusionName::Rrf => Some(Fusion::ReciprocalRank { k: RRF_K }),
            },
            pair_rule: self.authority_pairs,
            pair_cosine_min: self.pair_cosine_min.map(single),
            authority_nudge: single(self.authority_nudge),
            relevant_cosine_min: self.relevant_cosine_min.map(single),
        }
    }

    fn authority(&self) -> Result<Table, Error> {
        let rows = self.authority.iter().map(|row| (row.pattern.as_str(), row.level));
        Table::new(rows).map_err(|fault| Error::Part(format!("kb.authority: {fault}")))
    }
}

/// Settings are typed as decimals; scores are kept in half the width.
#[expect(clippy::cast_possible_truncation, reason = "a share or a cosine")]
fn single(number: f64) -> f32 {
    number as f32
}

/// Where vectors come from. `[embeddings]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EmbeddingOptions {
    /// Who makes them.
    pub provider: ProviderName,
    /// The model's name as its server knows it.
    pub model: Option<String>,
    /// Where the server is.
    pub base_url: Option<String>,
    /// The key as it was typed: a reference mostly.
    pub api_key: Option<String>,
    /// The key itself, once it has been looked up.
    #[serde(skip)]
    pub secret: Option<Secret>,
    /// The folder of a local model.
    pub folder: PathBuf,
    /// Where `tidegate embed pull` fetches a local model from.
    pub pull_url: Option<String>,
    /// How long a query may take.
    pub query_timeout_ms: u64,
    /// How long a request for documents may take.
    pub document_timeout_ms: u64,
    /// How many requests run at once.
    pub concurrency_max: usize,
    /// How many texts one request holds.
    pub batch_texts_max: usize,
    /// How many vectors of recent queries are kept.
    pub cache_entries_max: usize,
    /// How long an embedder that failed is left alone.
    pub rest_s: u64,
    /// The longest text the model reads. Unset: by the server or the table of known models.
    pub tokens_max: Option<usize>,
    /// The length of vectors to ask for. Unset: the model's own.
    pub dimensions: Option<usize>,
    /// What comes before a query. Unset: by the table of known models.
    pub query_prefix: Option<String>,
    /// What comes before a document. Unset: by the table of known models.
    pub document_prefix: Option<String>,
}

/// Who makes vectors, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderName {
    /// The table that is part of the program.
    #[default]
    Builtin,
    /// Ollama.
    Ollama,
    /// Any server that speaks `/v1/embeddings`.
    Openai,
    /// A model in a folder, in this process.
    Local,
    /// Nobody: searches go by words alone.
    None,
}

impl Default for EmbeddingOptions {
    fn default() -> Self {
        let default = embed::Options::default();
        Self {
            provider: ProviderName::Builtin,
            model: None,
            base_url: None,
            api_key: None,
            secret: None,
            folder: PathBuf::from("models/all-MiniLM-L6-v2"),
            pull_url: None,
            query_timeout_ms: default.query_timeout_ms,
            document_timeout_ms: default.document_timeout_ms,
            concurrency_max: default.concurrency_max,
            batch_texts_max: default.batch_texts_max,
            cache_entries_max: default.cache_entries_max,
            rest_s: default.rest_s,
            tokens_max: None,
            dimensions: None,
            query_prefix: None,
            document_prefix: None,
        }
    }
}

impl EmbeddingOptions {
    /// The same for the crate that makes vectors.
    pub(crate) fn embed(&self, home: &Path) -> embed::Options {
        embed::Options {
            provider: match self.provider {
                ProviderName::Builtin => Provider::Builtin,
                ProviderName::Ollama => Provider::Ollama,
                ProviderName::Openai => Provider::OpenAi,
                ProviderName::Local => Provider::Local,
                ProviderName::None => Provider::None,
            },
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            api_key: self.secret.clone(),
            folder: Some(home.join(&self.folder)),
            query_timeout_ms: self.query_timeout_ms,
            document_timeout_ms: self.document_timeout_ms,
            concurrency_max: self.concurrency_max,
            batch_texts_max: self.batch_texts_max,
            cache_entries_max: self.cache_entries_max,
            rest_s: self.rest_s,
            tokens_max: self.tokens_max,
            dimensions: self.dimensions,
            query_prefix: self.query_prefix.clone(),
            document_prefix: self.document_prefix.clone(),
        }
    }
}

/// The knowledge base and what keeps it up to date.
#[derive(Debug)]
pub struct Knowledge {
    /// Answers questions, with what may be read under the policy in force.
    pub base: Arc<dyn KnowledgeBase>,
    /// Reads the folder; absent where nothing is to be read.
    pub ingest: Option<Ingest>,
    /// By which zones both go.
    pub(super) zones: LiveZones,
    index: Arc<Base>,
    /// Where the vectors are searched in Chroma.
    pub chroma: Option<Arc<Chroma>>,
    /// The work of reading, until somebody does it.
    task: Mutex<Option<Task>>,
}

impl Knowledge {
    /// The work of reading, once: whoever asks first does it.
    pub fn start(&self) -> Option<Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Reads the vectors into memory, so that the first search need not wait for it.
    pub async fn warm(&self) -> Result<(), KnowledgeError> {
        self.index.warm().await
    }

    /// Keeps what is searched elsewhere up to the database, until `shutdown`.
    pub async fn keep_up(&self, shutdown: CancellationToken) {
        if let Some(chroma) = &self.chroma {
            Arc::clone(chroma).keep_up(shutdown).await;
        }
    }
}

/// The embedder of these settings, for the knowledge base and the routing gate.
pub async fn embedder(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> Result<Option<Arc<dyn Embedder>>, Error> {
    let options = settings.config.embeddings.embed(&settings.home);
    embed::open(&options, Arc::clone(clock), Arc::clone(entropy))
        .await
        .map_err(|fault| Error::Part(format!("embeddings: {fault}")))
}

/// The configured embedder, and after it the one that is part of the program: where its vectors are the ones that are
/// complete, they serve until those of the configured one are.
fn embedders(configured: Option<&Arc<dyn Embedder>>) -> Result<Vec<Arc<dyn Embedder>>, Error> {
    let Some(configured) = configured else {
        return Ok(Vec::new());
    };
    let mut embedders = vec![Arc::clone(configured)];
    if configured.model().id != embed::builtin::MODEL {
        embedders.push(Arc::new(embed::Builtin::load().map_err(part)?));
    }
    Ok(embedders)
}

/// Opens the knowledge base; `None` where it is switched off. With `is_reading` the folder is read as well, once the
/// task runs.
pub fn open(
    settings: &Settings,
    store: &Arc<Store>,
    embedder: Option<&Arc<dyn Embedder>>,
    clock: &Arc<dyn Clock>,
    is_reading: bool,
) -> Result<Option<Knowledge>, Error> {
    let (options, config) = (&settings.config.kb, &settings.config);
    if !options.enabled {
        return Ok(None);
    }
    let zones = LiveZones::of(settings);
    let chunks = Arc::clone(store) as Arc<dyn ChunkStore>;
    let (ingest, task) = if is_reading {
        let program = std::env::current_exe().map_err(part)?;
        let ingest_options = options.ingest(&config.tools.knowledge_bank, &config.embeddings);
        let (ingest, task) = Ingest::new(ingest::Parts {
            store: Arc::clone(&chunks),
            embedder: match embedder {
                Some(embedder) => Arc::clone(embedder),
                None => Arc::new(WordsOnly::open().map_err(part)?),
            },
            parser: parse::Worker::new(program, options.parse(ingest_options.workers())),
            authority: options.authority()?,
            may_read: readable(zones.clone()),
            clock: Arc::clone(clock),
            options: ingest_options,
        })
        .map_err(|fault| Error::Part(format!("kb.ignore: {fault}")))?;
        (Some(ingest), Some(task))
    } else {
        (None, None)
    };
    let intake: Arc<dyn Intake> = match &ingest {
        Some(ingest) => Arc::new(ingest.clone()),
        None => Arc::new(NoIntake),
    };
    let (index, chroma) = vectors::index(options, &chunks, clock)?;
    let embedders = embedders(embedder)?;
    let index = Arc::new(Base::new(chunks, index, embedders, intake, options.base()));
    let base = Shown {
        inner: Arc::clone(&index) as _,
        zones: zones.clone(),
        bank: real(&config.tools.knowledge_bank),
    };
    Ok(Some(Knowledge {
        base: Arc::new(base),
        ingest,
        zones,
        index,
        chroma,
        task: Mutex::new(task),
    }))
}

/// What the index may hold: only what every caller may read without being asked, since whoever searches sees it. A folder
/// that may not be read as such is entered all the same: something in it may be open. What nobody may read has no other
/// name in it either.
fn readable(zones: LiveZones) -> MayRead {
    let guarding = zones.clone();
    let judge = move |real: &Path| {
        let zones = zones.now();
        is_open(real, &zones) || (shown::may_enter(real, &zones) && real.is_dir())
    };
    MayRead::new(judge).guarding(move || guarding.twins())
}

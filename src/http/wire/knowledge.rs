//! The shapes of the knowledge base, for administrators.

use serde::{Deserialize, Serialize};
use tidegate_core::knowledge::{
    Authority, Document, DocumentState, Filter, Format, KnowledgeStatus, Leg, Passage, PassageExplained,
    SearchAnswer, SearchExplained, SearchRequest,
};
use utoipa::{IntoParams, ToSchema};

use crate::http::{
    documents::Stored,
    error::ApiError,
    extract::query::{QueryForm, Values},
};

/// Documents on a page that names no limit.
const LIMIT_DEFAULT: u32 = 20;
/// Documents on a page.
const LIMIT_MAX: u32 = 100;
/// Passages of a search that names no number.
const PASSAGES_DEFAULT: usize = 5;
/// Passages of a search.
const PASSAGES_MAX: usize = 50;
/// Bytes of a path or of a pattern; a longer text is none.
const PATH_BYTES_MAX: usize = 4096;

/// How the knowledge base does.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct StatusBody {
    /// `knowledge_base`.
    object: &'static str,
    /// Documents in the index.
    documents: u64,
    /// Documents that could not be read; the list says why.
    failed: u64,
    chunks: u64,
    /// Files that wait to be read.
    pending: u64,
    /// The embedding model whose vectors serve queries; null while there is none.
    serving_model: Option<String>,
    /// The embedding model that is configured.
    configured_model: Option<String>,
    /// Chunks that have a vector of the configured model.
    embedded: u64,
    /// `embedded` or `chroma`.
    vectors_in: &'static str,
    /// What is wrong just now.
    problems: Vec<String>,
}

impl From<KnowledgeStatus> for StatusBody {
    fn from(status: KnowledgeStatus) -> Self {
        Self {
            object: "knowledge_base",
            documents: status.documents,
            failed: status.failed,
            chunks: status.chunks,
            pending: status.pending,
            serving_model: status.serving_model,
            configured_model: status.configured_model,
            embedded: status.embedded,
            vectors_in: status.vectors_in,
            problems: status.problems,
        }
    }
}

/// A document of the knowledge bank.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DocumentBody {
    /// `document`.
    object: &'static str,
    /// Its path inside the knowledge bank.
    path: String,
    title: String,
    format: &'static str,
    /// `primary`, `interpretation` or `secondary`.
    authority: &'static str,
    bytes: u64,
    modified_at: i64,
    indexed_at: i64,
    /// `indexed` or `failed`.
    status: &'static str,
    /// How many pieces it was cut into; 0 where it failed.
    chunks: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureBody>,
}

/// Why a document is not in the index.
#[derive(Debug, Serialize, ToSchema)]
struct FailureBody {
    /// A stable name.
    code: String,
    message: String,
    /// What would help.
    hint: String,
}

impl From<Document> for DocumentBody {
    fn from(document: Document) -> Self {
        let (status, chunks, failure) = match document.state {
            DocumentState::Indexed { chunks, .. } => ("indexed", chunks, None),
            DocumentState::Failed { code, reason, hint } => {
                let failure = FailureBody {
                    code,
                    message: reason,
                    hint,
                };
                ("failed", 0, Some(failure))
            }
        };
        Self {
            object: "document",
            path: document.path,
            title: document.title,
            format: document.format.name(),
            authority: document.authority.name(),
            bytes: document.bytes,
            modified_at: document.modified_at.as_second(),
            indexed_at: document.indexed_at.as_second(),
            status,
            chunks,
            failure,
        }
    }
}

/// A page of documents, in the order of their paths.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DocumentList {
    /// `list`.
    object: &'static str,
    data: Vec<DocumentBody>,
    has_more: bool,
}

impl DocumentList {
    /// A page.
    pub(in crate::http) fn of((documents, has_more): (Vec<Document>, bool)) -> Self {
        Self {
            object: "list",
            data: documents.into_iter().map(Into::into).collect(),
            has_more,
        }
    }
}

/// A document that was stored.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct StoredBody {
    /// `document.stored`.
    object: &'static str,
    /// Its path inside the knowledge bank.
    path: String,
    bytes: u64,
    /// Whether something stood there before.
    replaced: bool,
}

impl From<Stored> for StoredBody {
    fn from(stored: Stored) -> Self {
        Self {
            object: "document.stored",
            path: stored.path,
            bytes: stored.bytes,
            replaced: stored.is_replaced,
        }
    }
}

/// Says that a document is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RemovedBody {
    /// `document.deleted`.
    pub(in crate::http) object: &'static str,
    /// Its path inside the knowledge bank.
    pub(in crate::http) path: String,
    pub(in crate::http) deleted: bool,
}

/// A search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct SearchBody {
    /// In words, as somebody would ask it.
    query: String,
    /// How many passages at most, 1 to 50; 5 where absent.
    #[serde(default)]
    k: Option<usize>,
    /// Only documents whose path matches this pattern.
    #[serde(default)]
    path: Option<String>,
    /// Only documents of this kind.
    #[serde(default)]
    format: Option<String>,
    /// Only documents of at least this authority.
    #[serde(default)]
    authority_min: Option<String>,
}

impl SearchBody {
    /// What is asked for.
    pub(in crate::http) fn into_request(self) -> Result<SearchRequest, ApiError> {
        let k = self.k.unwrap_or(PASSAGES_DEFAULT);
        if !(1..=PASSAGES_MAX).contains(&k) {
            let rule = format!("`k` must be a whole number between 1 and {PASSAGES_MAX}");
            return Err(ApiError::invalid_value("k", rule));
        }
        Ok(SearchRequest {
            query: self.query,
            filter: filter(self.path, self.format.as_deref(), self.authority_min.as_deref())?,
            k,
        })
    }
}

fn filter(
    path: Option<String>,
    format: Option<&str>,
    authority_min: Option<&str>,
) -> Result<Filter, ApiError> {
    let unknown = |param: &str, known: &[&str]| {
        let known = known.join("`, `");
        ApiError::invalid_value(param, format!("`{param}` is one of `{known}`"))
    };
    if path.as_ref().is_some_and(|path| path.len() > PATH_BYTES_MAX) {
        let rule = format!("`path` has at most {PATH_BYTES_MAX} bytes");
        return Err(ApiError::invalid_value("path", rule));
    }
    let format = format
        .map(|name| Format::named(name).ok_or_else(|| unknown("format", &Format::ALL.map(Format::name))));
    let authority_min = authority_min.map(|name| {
        Authority::named(name).ok_or_else(|| unknown("authority_min", &Authority::ALL.map(Authority::name)))
    });
    Ok(Filter {
        paths: path.into_iter().collect(),
        formats: format.transpose()?.into_iter().collect(),
        authority_min: authority_min.transpose()?,
    })
}

/// What a search found, best first. An empty list is an answer: nothing in the documents is about this.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct SearchList {
    /// `list`.
    object: &'static str,
    data: Vec<PassageBody>,
    /// Why only words were compared, where that is so.
    words_only: Option<String>,
    /// Files that wait to be read.
    pending: usize,
}

/// A passage.
#[derive(Debug, Serialize, ToSchema)]
struct PassageBody {
    /// By what it is quoted.
    id: String,
    /// `passage`.
    object: &'static str,
    /// The document's path inside the knowledge bank.
    document: String,
    title: String,
    /// Outermost first.
    headings: Vec<String>,
    /// The page, slide or sheet, from 1.
    page: Option<u32>,
    authority: &'static str,
    text: String,
    /// From 0 to 1, comparable within this answer.
    score: f32,
}

impl From<Passage> for PassageBody {
    fn from(passage: Passage) -> Self {
        Self {
            id: passage.citation.to_string(),
            object: "passage",
            document: passage.document,
            title: passage.title,
            headings: passage.place.headings,
            page: passage.place.page,
            authority: passage.authority.name(),
            text: passage.text,
            score: passage.score,
        }
    }
}

impl From<SearchAnswer> for SearchList {
    fn from(answer: SearchAnswer) -> Self {
        Self {
            object: "list",
            data: answer.passages.into_iter().map(Into::into).collect(),
            words_only: answer.words_only,
            pending: answer.pending,
        }
    }
}

/// A search with every rank laid open.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Explanation {
    /// `explanation`.
    object: &'static str,
    /// The words that were looked for.
    terms: Vec<String>,
    /// Words of the query that stand nearly everywhere.
    dropped_terms: Vec<String>,
    /// The embedding model; null where only words were compared.
    model: Option<String>,
    /// How both were joined.
    fusion: String,
    data: Vec<ExplainedBody>,
    /// How many of them an answer would have.
    relevant: usize,
    words_only: Option<String>,
}

/// A passage and its ranks.
#[derive(Debug, Serialize, ToSchema)]
struct ExplainedBody {
    passage: PassageBody,
    words: Option<LegBody>,
    vectors: Option<LegBody>,
    fused: LegBody,
    /// What its authority changed.
    authority_moves: Vec<String>,
}

/// A rank from 1, and the score behind it.
#[derive(Debug, Serialize, ToSchema)]
struct LegBody {
    rank: usize,
    score: f32,
}

impl From<Leg> for LegBody {
    fn from(Leg { rank, score }: Leg) -> Self {
        Self { rank, score }
    }
}

impl From<PassageExplained> for ExplainedBody {
    fn from(explained: PassageExplained) -> Self {
        Self {
            passage: explained.passage.into(),
            words: explained.words.map(Into::into),
            vectors: explained.vectors.map(Into::into),
            fused: explained.fused.into(),
            authority_moves: explained.authority_moves,
        }
    }
}

impl From<SearchExplained> for Explanation {
    fn from(explained: SearchExplained) -> Self {
        Self {
            object: "explanation",
            terms: explained.terms,
            dropped_terms: explained.dropped_terms,
            model: explained.model,
            fusion: explained.fusion,
            data: explained.passages.into_iter().map(Into::into).collect(),
            relevant: explained.relevant,
            words_only: explained.words_only,
        }
    }
}

/// Which documents to list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct ListDocuments {
    /// Begin after this path.
    after: Option<String>,
    /// How many a page has at most; 20 where absent.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// Only documents whose path matches this pattern.
    path: Option<String>,
    /// Only documents of this kind.
    format: Option<String>,
    /// Only documents of at least this authority.
    authority_min: Option<String>,
}

/// The page that [`ListDocuments`] asks for.
#[derive(Debug)]
pub(in crate::http) struct DocumentPage {
    pub(in crate::http) filter: Filter,
    pub(in crate::http) after: Option<String>,
    pub(in crate::http) limit: usize,
}

impl QueryForm for DocumentPage {
    const NAMES: &'static [&'static str] = &["after", "limit", "path", "format", "authority_min"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        let limit = values.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
        let (format, authority_min) = (values.take("format"), values.take("authority_min"));
        Ok(Self {
            filter: filter(values.take("path"), format.as_deref(), authority_min.as_deref())?,
            after: values.take("after").filter(|path| !path.is_empty()),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }
}

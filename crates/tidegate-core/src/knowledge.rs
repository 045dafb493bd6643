//! Documents, passages and what is asked of them.
//!
//! A *document* is a file of the knowledge bank. A *chunk* is a piece of one as the index keeps it. A *passage* is
//! a chunk as an answer to a query, and what it is quoted by is its *citation*.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// How much a document's word counts against another's on the same matter. It belongs to the document, by its
/// front matter or the operator's table, never to anything its text says elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// It tells of a source: a summary, a note, a page from somewhere.
    #[default]
    Secondary,
    /// It explains a source with some right to do so: an official commentary.
    Interpretation,
    /// It is the source: the regulation, the contract, the handbook in force.
    Primary,
}

impl Authority {
    /// Every authority, least first.
    pub const ALL: [Self; 3] = [Self::Secondary, Self::Interpretation, Self::Primary];

    /// Its name in front matter, settings, results and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Secondary => "secondary",
            Self::Interpretation => "interpretation",
            Self::Primary => "primary",
        }
    }

    /// The authority of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|authority| authority.name() == name)
    }
}

/// What a file is made of, by its name and its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Markdown.
    Markdown,
    /// Plain text.
    Text,
    /// PDF.
    Pdf,
    /// A Word document.
    Docx,
    /// A PowerPoint presentation.
    Pptx,
    /// An Excel workbook.
    Xlsx,
    /// HTML.
    Html,
    /// Comma or tab separated values.
    Csv,
    /// JSON, also a value a line.
    Json,
    /// An electronic book.
    Epub,
    /// Source code.
    Code,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 11] = [
        Self::Markdown,
        Self::Text,
        Self::Pdf,
        Self::Docx,
        Self::Pptx,
        Self::Xlsx,
        Self::Html,
        Self::Csv,
        Self::Json,
        Self::Epub,
        Self::Code,
    ];

    /// Its name in filters, results and the index.
    pub fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Text => "text",
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Pptx => "pptx",
            Self::Xlsx => "xlsx",
            Self::Html => "html",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Epub => "epub",
            Self::Code => "code",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// What a passage is quoted by: `kb-` and ten characters. It stays the same as long as the passage does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CitationId(String);

impl CitationId {
    /// What every citation begins with.
    pub const PREFIX: &'static str = "kb-";
    /// How many characters follow.
    pub const CHARS: usize = 10;

    /// The citation made of the first 50 bits of a digest.
    pub fn of_digest(digest: &[u8]) -> Self {
        let mut text = Self::PREFIX.to_owned();
        text.extend(crate::id::base32(digest).chars().take(Self::CHARS));
        Self(text)
    }

    /// A citation as somebody wrote it; `None` where it has not the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(Self::PREFIX)?;
        let fits = rest.len() == Self::CHARS
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        fits.then(|| Self(text.to_owned()))
    }

    /// The citation as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for CitationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where in a document a chunk stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The headings above it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headings: Vec<String>,
    /// Its page, slide or sheet, counted from 1, where the format has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// Its bytes in the document's text: in the file itself for plain formats, else in what was read out of it.
    pub bytes: Range<u64>,
}

/// Which documents a search looks at. Empty lists let everything through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Globs over the path inside the knowledge bank; one must match.
    pub paths: Vec<String>,
    /// One of these formats.
    pub formats: Vec<Format>,
    /// No less than this.
    pub authority_min: Option<Authority>,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// In words, as somebody would ask it.
    pub query: String,
    /// Which documents.
    pub filter: Filter,
    /// How many passages at most.
    pub k: usize,
}

/// A passage that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// What it is quoted by.
    pub citation: CitationId,
    /// The document's path inside the knowledge bank.
    pub document: String,
    /// The document's title.
    pub title: String,
    /// Where in the document.
    #[serde(flatten)]
    pub place: Place,
    /// The document's authority.
    pub authority: Authority,
    /// The words.
    pub text: String,
    /// How well it answers, from 0 to 1, comparable within one answer only.
    pub score: f32,
}

/// A source that an answer may name: a passage without its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// What it is quoted by.
    pub id: CitationId,
    /// The document's path inside the knowledge bank.
    pub document: String,
    /// The document's title.
    pub title: String,
    /// Where in the document.
    #[serde(flatten)]
    pub place: Place,
    /// The document's authority.
    pub authority: Authority,
}

impl From<&Passage> for Citation {
    fn from(passage: &Passage) -> Self {
        Self {
            id: passage.citation.clone(),
            document: passage.document.clone(),
            title: passage.title.clone(),
            place: passage.place.clone(),
            authority: passage.authority,
        }
    }
}

/// What came of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchAnswer {
    /// Best first. Empty is an answer as well: nothing in the documents is about this.
    pub passages: Vec<Passage>,
    /// Why only words were compared, where that is so, in a sentence for people and models.
    pub words_only: Option<String>,
    /// Documents that were not read to their end yet when this was answered.
    pub pending: usize,
}

/// How a passage got its rank, for `tidegate kb explain`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassageExplained {
    /// The passage.
    pub passage: Passage,
    /// Its rank by words, from 1, and the score there (greater is better).
    pub words: Option<Leg>,
    /// Its rank by vectors, from 1, and the cosine.
    pub vectors: Option<Leg>,
    /// Its score after fusion and its rank by it.
    pub fused: Leg,
    /// What its authority changed, as sentences.
    pub authority_moves: Vec<String>,
}

/// A rank from 1 and the score behind it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Leg {
    /// The rank.
    pub rank: usize,
    /// The score.
    pub score: f32,
}

/// A search, laid open.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchExplained {
    /// The words that were looked for.
    pub terms: Vec<String>,
    /// Words of the query that stand nearly everywhere and were left out.
    pub dropped_terms: Vec<String>,
    /// The embedding model, where vectors took part.
    pub model: Option<String>,
    /// How both were joined, in words.
    pub fusion: String,
    /// The passages, best first, with those below the floor at the end.
    pub passages: Vec<PassageExplained>,
    /// How many of them an answer would have.
    pub relevant: usize,
    /// Why only words were compared, where that is so.
    pub words_only: Option<String>,
}

/// Whether a document is in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DocumentState {
    /// It is.
    Indexed {
        /// Its chunks.
        chunks: u64,
        /// How often its content was put in; grows by one each time.
        generation: u64,
    },
    /// It is not, and no earlier version of it either.
    Failed {
        /// Why, a stable name in snake_case.
        code: String,
        /// Why, in words.
        reason: String,
        /// What would help.
        hint: String,
    },
}

/// A document as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its path inside the knowledge bank, with `/` between names.
    pub path: String,
    /// Its title: front matter, first heading, the file's own property, or the name.
    pub title: String,
    /// What it is made of.
    pub format: Format,
    /// How much its word counts.
    pub authority: Authority,
    /// Its size in bytes.
    pub bytes: u64,
    /// When the file was changed.
    pub modified_at: Timestamp,
    /// When this state was reached.
    pub indexed_at: Timestamp,
    /// Whether it is in the index.
    #[serde(flatten)]
    pub state: DocumentState,
}

/// A part of a document's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentText {
    /// The document.
    pub document: Document,
    /// The passages in the order of the text.
    pub parts: Vec<DocumentPart>,
    /// Whether more follows, and where to go on: the ordinal of the next chunk.
    pub next: Option<u64>,
    /// How many chunks the document has.
    pub chunks: u64,
}

/// A chunk on its way to a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPart {
    /// What it is quoted by.
    pub citation: CitationId,
    /// Its place in the order of the document, from 0.
    pub ordinal: u64,
    /// Where in the document.
    pub place: Place,
    /// The words.
    pub text: String,
}

/// What to read of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFrom {
    /// Around the passage of this citation.
    Citation(CitationId),
    /// The document at this path, from the chunk of this ordinal on.
    Document {
        /// The path inside the knowledge bank.
        path: String,
        /// The first chunk's ordinal.
        ordinal: u64,
    },
    /// The document at this path, from this page on.
    Page {
        /// The path inside the knowledge bank.
        path: String,
        /// The first page, from 1.
        page: u32,
    },
}

/// How the knowledge base does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnowledgeStatus {
    /// Documents in the index.
    pub documents: u64,
    /// Documents that could not be read.
    pub failed: u64,
    /// Their chunks.
    pub chunks: u64,
    /// Files that wait to be read, or are being read.
    pub pending: u64,
    /// The model whose vectors serve queries now; `None` while there is none.
    pub serving_model: Option<String>,
    /// The model that is configured.
    pub configured_model: Option<String>,
    /// Chunks that have a vector of the configured model.
    pub embedded: u64,
    /// Where vectors are: `embedded` or `chroma`.
    pub vectors_in: &'static str,
    /// What is wrong just now, as sentences.
    pub problems: Vec<String>,
}

//! The knowledge base's two ports: the one that answers questions, and the one that keeps documents, chunks and vectors.

use std::{path::Path, time::Duration};

use async_trait::async_trait;

use crate::{
    clock::Timestamp,
    error::StoreError,
    knowledge::{
        Authority, CitationId, Document, DocumentText, Filter, Format, KnowledgeStatus, Place, ReadFrom,
        SearchAnswer, SearchExplained, SearchRequest,
    },
};

/// Why the knowledge base has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KnowledgeError {
    /// The question cannot be asked like this; the text says how it can.
    #[error("{0}")]
    Invalid(String),
    /// No such document or citation.
    #[error("{0}")]
    NotFound(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The operator's documents, as the rest of the house asks for them.
#[async_trait]
pub trait KnowledgeBase: Send + Sync + std::fmt::Debug {
    /// The passages that answer a query. A dead embedder makes it poorer, never an error.
    async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, KnowledgeError>;

    /// The same with every rank laid open.
    async fn explain(&self, request: &SearchRequest) -> Result<SearchExplained, KnowledgeError>;

    /// A part of a document's text, of at most `chars_max` characters and at least one chunk.
    async fn read(&self, from: &ReadFrom, chars_max: usize) -> Result<DocumentText, KnowledgeError>;

    /// Documents in the order of their paths, after `after`, and whether more follow.
    async fn list(
        &self,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Document>, bool), KnowledgeError>;

    /// A file of the knowledge bank was written, by its real path; it is read anew soon, in the background.
    fn written(&self, path: &Path);

    /// Waits until everything that was announced is in the index, `limit` at most; whether it is.
    async fn settled(&self, limit: Duration) -> bool;

    /// How it does.
    async fn status(&self) -> Result<KnowledgeStatus, KnowledgeError>;
}

/// A chunk's key in the store: a row number that is never used twice while the row lives.
pub type ChunkKey = i64;

/// By what a file is known to be unchanged, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMark {
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
}

/// A file as the last scan left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    /// Its path inside the knowledge bank.
    pub path: String,
    /// Its mark.
    pub mark: FileMark,
    /// What made the index read it as it did: version of the parsers, chunk size, tokenizer, authority. A file whose
    /// recipe differs is read anew.
    pub recipe: String,
    /// Whether it failed.
    pub failed: bool,
}

/// A document on its way into the store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// The file.
    pub file: KnownFile,
    /// Its title.
    pub title: String,
    /// What it is made of.
    pub format: Format,
    /// How much its word counts.
    pub authority: Authority,
    /// Now.
    pub at: Timestamp,
    /// Its chunks in their order, or why there are none.
    pub content: Result<Vec<NewChunk>, Failure>,
}

/// Why a file is not in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable name in snake_case.
    pub code: String,
    /// Why, in words.
    pub reason: String,
    /// What would help.
    pub hint: String,
}

/// A chunk on its way into the store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChunk {
    /// What it is quoted by.
    pub citation: CitationId,
    /// SHA-256 of what is embedded (headings and text): the vector of an equal one is used again.
    pub sha256: [u8; 32],
    /// Where in the document.
    pub place: Place,
    /// The words.
    pub text: String,
    /// Its vector, and `None` in it where the text holds nothing the model knows; absent while nobody has asked.
    pub vector: Option<Option<Vec<f32>>>,
}

/// A chunk as the store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChunk {
    /// Its key.
    pub key: ChunkKey,
    /// What it is quoted by.
    pub citation: CitationId,
    /// The document's path.
    pub path: String,
    /// The document's title.
    pub title: String,
    /// The document's format.
    pub format: Format,
    /// The document's authority.
    pub authority: Authority,
    /// Its place in the order of the document, from 0.
    pub ordinal: u64,
    /// Where in the document.
    pub place: Place,
    /// The words.
    pub text: String,
}

/// What a write did to the chunks, so that an index in memory can follow it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChunkChanges {
    /// Chunks that are new, with the vectors of the model that was named in the write.
    pub added: Vec<(ChunkKey, Option<Vec<f32>>)>,
    /// Chunks that are gone.
    pub removed: Vec<ChunkKey>,
    /// The state of the whole store after the write; grows with each write.
    pub version: u64,
}

/// A page of vectors, in the order of the keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorPage {
    /// The keys.
    pub keys: Vec<ChunkKey>,
    /// Their vectors, one after the other, each of the model's dimension.
    pub values: Vec<f32>,
}

/// Chunk rows, the full-text index and vectors, in one database and in one transaction a write.
#[async_trait]
pub trait ChunkStore: Send + Sync + std::fmt::Debug {
    /// Every file of the last scan, in the order of the paths, after `after`, at most `limit`.
    async fn files(&self, after: Option<&str>, limit: usize) -> Result<Vec<KnownFile>, StoreError>;

    /// The file of the last scan at a path and those in the folder of that name.
    async fn files_at(&self, path: &str) -> Result<Vec<KnownFile>, StoreError>;

    /// Puts a document in the place of whatever was at its path: rows, words and vectors (of `model`) in one
    /// transaction. A chunk whose citation and hash are the same keeps its key and its vectors. A failed document
    /// leaves a row that says so and no chunk.
    async fn put(&self, document: NewDocument, model: &str) -> Result<ChunkChanges, StoreError>;

    /// A file has another path now and is otherwise the same: its chunks and vectors stay, citations follow `citations`
    /// (in the order of the chunks). A document that was at `to` makes room.
    async fn rename(
        &self,
        from: &str,
        to: &str,
        citations: Vec<CitationId>,
    ) -> Result<ChunkChanges, StoreError>;

    /// A file has another mark or recipe now and would be read as before: nothing but these changes. A file that is
    /// not known is left alone.
    async fn mark(&self, file: &KnownFile) -> Result<(), StoreError>;

    /// Takes documents out.
    async fn remove(&self, paths: Vec<String>) -> Result<ChunkChanges, StoreError>;

    /// The vectors of `model` for chunks with these hashes, wherever they stand.
    async fn vectors_by_hash(
        &self,
        model: &str,
        hashes: &[[u8; 32]],
    ) -> Result<Vec<Option<Option<Vec<f32>>>>, StoreError>;

    /// Chunks without an answer from `model`, after a key, at most `limit`.
    async fn unembedded(
        &self,
        model: &str,
        after: ChunkKey,
        limit: usize,
    ) -> Result<Vec<StoredChunk>, StoreError>;

    /// Keeps answers of `model` for chunks that are still there.
    async fn put_vectors(
        &self,
        model: &str,
        vectors: Vec<(ChunkKey, Option<Vec<f32>>)>,
    ) -> Result<ChunkChanges, StoreError>;

    /// Which store this is, as long as it lives: an index that is kept elsewhere knows by it whose vectors it holds.
    async fn identity(&self) -> Result<String, StoreError>;

    /// The state of the store, which grows with each write that changes chunks or vectors, by whichever process.
    /// Cheap enough to ask before every search.
    async fn version(&self) -> Result<u64, StoreError>;

    /// What changed after `version`, with the vectors of `model`; chunks whose vector is new count as added. `None`
    /// where that was long ago, or another model serves since: everything is to be read anew then.
    async fn changes_since(&self, model: &str, version: u64) -> Result<Option<ChunkChanges>, StoreError>;

    /// The model whose vectors serve queries: the last one that was complete.
    async fn serving_model(&self) -> Result<Option<String>, StoreError>;

    /// From now on `model` serves; vectors of other models go.
    async fn serve(&self, model: &str) -> Result<(), StoreError>;

    /// Vectors of `model` in the order of the keys, after a key, at most `limit`. The order is that of the table, so
    /// that reading them all is one pass.
    async fn vectors(&self, model: &str, after: ChunkKey, limit: usize) -> Result<VectorPage, StoreError>;

    /// The vectors of `model` for these keys; a key without one is left out.
    async fn vectors_of(&self, model: &str, keys: &[ChunkKey]) -> Result<VectorPage, StoreError>;

    /// Chunks that hold any of `terms`, best first by BM25 with repeated terms counted as often as they are given, and
    /// the score (greater is better). Terms are plain words: the store quotes them. `within` narrows to documents.
    async fn match_words(
        &self,
        terms: &[String],
        within: &Filter,
        limit: usize,
    ) -> Result<Vec<(ChunkKey, f32)>, StoreError>;

    /// In how many chunks each term stands.
    async fn frequencies(&self, terms: &[String]) -> Result<Vec<u64>, StoreError>;

    /// The keys of all chunks whose documents pass a filter; for filters only, since it may be long.
    async fn keys_within(&self, within: &Filter) -> Result<Vec<ChunkKey>, StoreError>;

    /// The chunks of these keys, in their order; those that are gone are left out.
    async fn chunks(&self, keys: &[ChunkKey]) -> Result<Vec<StoredChunk>, StoreError>;

    /// The chunk of a citation.
    async fn cited(&self, citation: &CitationId) -> Result<Option<StoredChunk>, StoreError>;

    /// The chunks of a document from an ordinal on, at most `limit`.
    async fn document_chunks(
        &self,
        path: &str,
        ordinal: u64,
        limit: usize,
    ) -> Result<Vec<StoredChunk>, StoreError>;

    /// A document.
    async fn document(&self, path: &str) -> Result<Option<Document>, StoreError>;

    /// Documents in the order of their paths, after `after`, at most `limit`.
    async fn documents(
        &self,
        within: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError>;

    /// Documents in the index, failed ones, chunks, and chunks with an answer from `model`.
    async fn counts(&self, model: Option<&str>) -> Result<Counts, StoreError>;
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Documents in the index.
    pub documents: u64,
    /// Documents that failed.
    pub failed: u64,
    /// Chunks.
    pub chunks: u64,
    /// Chunks with an answer from the model that was named.
    pub embedded: u64,
    /// The state of the store; grows with each write that changes chunks or vectors.
    pub version: u64,
}

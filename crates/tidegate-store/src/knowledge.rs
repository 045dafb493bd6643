//! Documents, chunks, the words in them and their vectors: the knowledge base's half of the database.
//!
//! **One moment.** A document is shown, changed and taken away in one transaction, so that no query sees half of
//! one (`put`). Large ones are prepared out of sight, since nobody may hold the one writer for long.
//!
//! **Words** are in a full-text index without text of its own; deleting hands it the words again, and it takes them
//! out at once. What leaves the table therefore leaves the index as well (`words`).
//!
//! **Vectors** lie by model and key, so that loading them all is one pass in the order of the file (`vectors`).
//!
//! **Other processes.** Each write that changes chunks or vectors gives the store a new version and notes the keys it
//! touched; whoever keeps an index in memory asks for the version, and then for the changes since its own.

mod change;
mod put;
mod read;
pub(crate) mod readers;
pub(crate) mod vectors;
pub(crate) mod words;
mod write;

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use rusqlite::Connection;
use tidegate_core::{
    error::StoreError,
    knowledge::{CitationId, Document, Filter},
    port::{ChunkChanges, ChunkKey, ChunkStore, Counts, KnownFile, NewDocument, StoredChunk, VectorPage},
};

use self::{readers::Readers, words::Frequencies};
use crate::store::Store;

/// What the store keeps for reading documents.
#[derive(Debug)]
pub(crate) struct Knowledge {
    readers: Readers,
    frequencies: Arc<Mutex<Frequencies>>,
}

impl Knowledge {
    /// Opens nothing yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            readers: Readers::new(path),
            frequencies: Arc::default(),
        }
    }

    /// Closes what is open.
    pub(crate) fn close(&self) {
        self.readers.close();
    }
}

impl Store {
    async fn read<T, W>(&self, doing: &'static str, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    {
        self.knowledge().readers.read(doing, work).await
    }

    async fn kb_version(&self) -> Result<u64, StoreError> {
        self.read("reading the state of the documents", read::version)
            .await
    }
}

#[async_trait]
impl ChunkStore for Store {
    async fn files(&self, after: Option<&str>, limit: usize) -> Result<Vec<KnownFile>, StoreError> {
        let after = after.map(str::to_owned);
        self.read("listing files", move |db| {
            read::files(db, after.as_deref(), limit)
        })
        .await
    }

    async fn files_at(&self, path: &str) -> Result<Vec<KnownFile>, StoreError> {
        let path = path.to_owned();
        self.read("listing files", move |db| read::files_at(db, &path))
            .await
    }

    async fn put(&self, document: NewDocument, model: &str) -> Result<ChunkChanges, StoreError> {
        self.put_document(document, model).await
    }

    async fn rename(
        &self,
        from: &str,
        to: &str,
        citations: Vec<CitationId>,
    ) -> Result<ChunkChanges, StoreError> {
        self.rename_document(from, to, citations).await
    }

    async fn mark(&self, file: &KnownFile) -> Result<(), StoreError> {
        self.mark_file(file.clone()).await
    }

    async fn remove(&self, paths: Vec<String>) -> Result<ChunkChanges, StoreError> {
        self.remove_documents(paths).await
    }

    async fn vectors_by_hash(
        &self,
        model: &str,
        hashes: &[[u8; 32]],
    ) -> Result<Vec<Option<Option<Vec<f32>>>>, StoreError> {
        let (model, hashes) = (model.to_owned(), hashes.to_vec());
        self.read("looking vectors up", move |db| {
            vectors::by_hash(db, &model, &hashes)
        })
        .await
    }

    async fn unembedded(
        &self,
        model: &str,
        after: ChunkKey,
        limit: usize,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let model = model.to_owned();
        self.read("looking for chunks without a vector", move |db| {
            read::unembedded(db, &model, after, limit)
        })
        .await
    }

    async fn put_vectors(
        &self,
        model: &str,
        vectors: Vec<(ChunkKey, Option<Vec<f32>>)>,
    ) -> Result<ChunkChanges, StoreError> {
        self.keep_vectors(model, vectors).await
    }

    async fn identity(&self) -> Result<String, StoreError> {
        self.read("reading which database this is", read::identity).await
    }

    async fn version(&self) -> Result<u64, StoreError> {
        self.kb_version().await
    }

    async fn changes_since(&self, model: &str, version: u64) -> Result<Option<ChunkChanges>, StoreError> {
        let (model, version) = (model.to_owned(), crate::row::count(version));
        self.read("reading changes", move |db| {
            vectors::changes_since(db, &model, version)
        })
        .await
    }

    async fn serving_model(&self) -> Result<Option<String>, StoreError> {
        self.read("reading the embedding model", read::serving).await
    }

    async fn serve(&self, model: &str) -> Result<(), StoreError> {
        self.serve_model(model).await
    }

    async fn vectors(&self, model: &str, after: ChunkKey, limit: usize) -> Result<VectorPage, StoreError> {
        let model = model.to_owned();
        self.read("reading vectors", move |db| {
            vectors::page(db, &model, after, limit)
        })
        .await
    }

    async fn vectors_of(&self, model: &str, keys: &[ChunkKey]) -> Result<VectorPage, StoreError> {
        let (model, keys) = (model.to_owned(), keys.to_vec());
        self.read("reading vectors", move |db| vectors::of_keys(db, &model, &keys))
            .await
    }

    async fn match_words(
        &self,
        terms: &[String],
        within: &Filter,
        limit: usize,
    ) -> Result<Vec<(ChunkKey, f32)>, StoreError> {
        let (terms, within) = (terms.to_vec(), within.clone());
        self.read("searching for words", move |db| {
            read::match_words(db, &terms, &within, limit)
        })
        .await
    }

    async fn frequencies(&self, terms: &[String]) -> Result<Vec<u64>, StoreError> {
        let (terms, kept) = (terms.to_vec(), Arc::clone(&self.knowledge().frequencies));
        self.read("counting words", move |db| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).of(db, &terms)
        })
        .await
    }

    async fn keys_within(&self, within: &Filter) -> Result<Vec<ChunkKey>, StoreError> {
        let within = within.clone();
        self.read("filtering documents", move |db| read::keys_within(db, &within))
            .await
    }

    async fn chunks(&self, keys: &[ChunkKey]) -> Result<Vec<StoredChunk>, StoreError> {
        let keys = keys.to_vec();
        self.read("reading chunks", move |db| read::of_keys(db, &keys))
            .await
    }

    async fn cited(&self, citation: &CitationId) -> Result<Option<StoredChunk>, StoreError> {
        let citation = citation.clone();
        self.read("reading a citation", move |db| read::cited(db, citation.as_str()))
            .await
    }

    async fn document_chunks(
        &self,
        path: &str,
        ordinal: u64,
        limit: usize,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let path = path.to_owned();
        self.read("reading a document", move |db| {
            read::of_document(db, &path, ordinal, limit)
        })
        .await
    }

    async fn document(&self, path: &str) -> Result<Option<Document>, StoreError> {
        let path = path.to_owned();
        self.read("reading a document", move |db| read::document(db, &path))
            .await
    }

    async fn documents(
        &self,
        within: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError> {
        let (within, after) = (within.clone(), after.map(str::to_owned));
        self.read("listing documents", move |db| {
            read::documents(db, &within, after.as_deref(), limit)
        })
        .await
    }

    async fn counts(&self, model: Option<&str>) -> Result<Counts, StoreError> {
        let model = model.map(str::to_owned);
        self.read("counting documents", move |db| read::counts(db, model.as_deref()))
            .await
    }
}

#[cfg(test)]
mod tests;

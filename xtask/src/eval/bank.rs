//! Documents in a database of their own, searched as the daemon searches.

use std::sync::Arc;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tidegate_core::clock::{Clock, Entropy, Timestamp};
use tidegate_core::embedding::Purpose;
use tidegate_core::port::{ChunkStore, Embedder, FileMark, KnownFile, NewChunk, NewDocument};
use tidegate_kb::base::{Base, NoIntake, Options};
use tidegate_kb::matrix::Embedded;
use tidegate_kb::{authority, chunk, parse};
use tidegate_store::{Options as StoreOptions, Store};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::collection::{Collection, Document};

/// Chunks that are embedded at once.
const BATCH: usize = 64;

/// No time passes and nothing is random: nothing here depends on either.
#[derive(Debug)]
pub(super) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Entropy for Still {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// A database with documents.
pub(super) struct Bank {
    _folder: TempDir,
    pub(super) store: Arc<Store>,
    pub(super) embedder: Arc<dyn Embedder>,
    shutdown: CancellationToken,
    worker: JoinSet<()>,
}

impl Bank {
    /// An empty one.
    pub(super) async fn open(embedder: Arc<dyn Embedder>) -> Result<Self> {
        let folder = TempDir::new()?;
        let options = StoreOptions {
            path: folder.path().join("tidegate.db"),
            ..StoreOptions::default()
        };
        let (store, work) = Store::open(options, Arc::new(Still)).await?;
        let shutdown = CancellationToken::new();
        let mut worker = JoinSet::new();
        worker.spawn(work.run(shutdown.clone()));
        Ok(Self {
            _folder: folder,
            store: Arc::new(store),
            embedder,
            shutdown,
            worker,
        })
    }

    /// One with a document for each of a collection, read and cut as files of the knowledge bank are.
    pub(super) async fn of(collection: &Collection, embedder: Arc<dyn Embedder>) -> Result<Self> {
        let bank = Self::open(embedder).await?;
        for document in &collection.documents {
            let context = || format!("document {} of {}", document.id, collection.name);
            let chunks = bank.chunks(document).await.with_context(context)?;
            bank.put(path(&document.id), document, chunks)
                .await
                .with_context(context)?;
        }
        bank.store.serve(&bank.embedder.model().id).await?;
        Ok(bank)
    }

    async fn chunks(&self, document: &Document) -> Result<Vec<NewChunk>> {
        let path = path(&document.id);
        let mut head = String::new();
        if !document.title.trim().is_empty() {
            head = format!(
                "# {}\n\n",
                document.title.split_whitespace().collect::<Vec<_>>().join(" ")
            );
        }
        let file = format!("{head}{}\n", document.text);
        let parsed = parse::read(&path, file.as_bytes(), &parse::Limits::default())
            .map_err(|problem| anyhow::anyhow!("{problem}"))?;
        let limits = chunk::Limits::within(self.embedder.model().tokens_max);
        let pieces = chunk::split(&parsed, &|text| self.embedder.tokens(text), &limits);
        let citations = chunk::citations(&path, &pieces);
        let texts: Vec<String> = pieces
            .iter()
            .map(|piece| chunk::embedded_text(&piece.place, &piece.text))
            .collect();
        let mut vectors = Vec::new();
        for batch in texts.chunks(BATCH) {
            let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
            vectors.extend(self.embedder.embed(&batch, Purpose::Document).await?);
        }
        let parts = pieces.into_iter().zip(citations).zip(vectors);
        Ok(parts
            .map(|((piece, citation), vector)| NewChunk {
                citation,
                sha256: piece.sha256,
                place: piece.place,
                text: piece.text,
                vector: Some(vector),
            })
            .collect())
    }

    async fn put(&self, path: String, document: &Document, chunks: Vec<NewChunk>) -> Result<()> {
        let declared = document.authority.map(tidegate_core::knowledge::Authority::name);
        let new = NewDocument {
            file: known(&path),
            title: document.title.clone(),
            format: tidegate_core::knowledge::Format::Markdown,
            authority: authority::Table::default().of(&path, declared),
            at: Still.now(),
            content: Ok(chunks),
        };
        self.store.put(new, &self.embedder.model().id).await?;
        Ok(())
    }

    /// The knowledge base over it; without vectors where `embedder` is false.
    pub(super) fn base(&self, options: Options, embedder: bool) -> Base {
        let store: Arc<dyn ChunkStore> = Arc::<Store>::clone(&self.store);
        let embedders = if embedder {
            vec![Arc::clone(&self.embedder)]
        } else {
            Vec::new()
        };
        let index = Arc::new(Embedded::new(Arc::clone(&store)));
        Base::new(store, index, embedders, Arc::new(NoIntake), options)
    }

    /// Ends the writer.
    pub(super) async fn close(mut self) {
        self.shutdown.cancel();
        while self.worker.join_next().await.is_some() {}
    }
}

/// A file that nobody scans.
pub(super) fn known(path: &str) -> KnownFile {
    KnownFile {
        path: path.to_owned(),
        mark: FileMark {
            bytes: 0,
            modified_ns: 0,
            sha256: [0; 32],
        },
        recipe: String::new(),
        failed: false,
    }
}

/// The path of a document by its id.
fn path(id: &str) -> String {
    format!("{id}.md")
}

/// The id of a document by its path.
pub(super) fn id(path: &str) -> String {
    path.strip_suffix(".md").unwrap_or(path).to_owned()
}

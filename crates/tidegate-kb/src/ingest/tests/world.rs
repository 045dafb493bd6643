//! A folder, a database and daemons over them.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tempfile::TempDir;
use tidegate_core::{
    clock::{Clock, Timestamp},
    embedding::{Calibration, EmbedError, EmbedderState, EmbeddingModel, Fusion, Purpose},
    knowledge::{Document, DocumentState, Filter},
    port::{ChunkStore as _, Embedder, StoredChunk},
};
use tidegate_store::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    authority::Table,
    ingest::{Ingest, MayRead, Options, Parts},
    parse,
};

pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// Long after every file of a test was written.
#[derive(Debug)]
pub(super) struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(4_000_000_000).unwrap()
    }
}

/// An embedder that counts what it is asked, and can be away.
#[derive(Debug)]
pub(super) struct Letters {
    pub(super) model: EmbeddingModel,
    dimension: usize,
    pub(super) is_away: AtomicBool,
    texts: AtomicUsize,
}

impl Letters {
    pub(super) fn new(id: &str, dimension: usize) -> Arc<Self> {
        let calibration = Calibration {
            fusion: Fusion::ReciprocalRank { k: 60 },
            pair_cosine_min: 0.5,
            relevant_cosine_min: 0.1,
            routing_threshold: None,
        };
        Arc::new(Self {
            model: EmbeddingModel {
                id: id.to_owned(),
                tokens_max: 40,
                calibration,
            },
            dimension,
            is_away: AtomicBool::new(false),
            texts: AtomicUsize::new(0),
        })
    }

    pub(super) fn asked(&self) -> usize {
        self.texts.swap(0, Ordering::SeqCst)
    }
}

#[async_trait]
impl Embedder for Letters {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(EmbedError::Unavailable("it is away".to_owned()));
        }
        if texts.iter().any(|text| text.contains("unspeakable")) {
            return Err(EmbedError::Refused("not this".to_owned()));
        }
        self.texts.fetch_add(texts.len(), Ordering::SeqCst);
        let one = |text: &&str| {
            assert!(self.tokens(text) <= self.model.tokens_max, "{text}");
            let mut vector = vec![0.0; self.dimension];
            vector[text.len() % self.dimension] = 1.0;
            Some(vector)
        };
        Ok(texts.iter().map(one).collect())
    }

    fn tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn state(&self) -> EmbedderState {
        EmbedderState::Untried
    }
}

/// A folder and a database; daemons come and go over them.
pub(super) struct World {
    pub(super) folder: TempDir,
}

/// A daemon over them.
pub(super) struct Daemon {
    pub(super) store: Store,
    pub(super) ingest: Ingest,
    shutdown: CancellationToken,
    tracker: TaskTracker,
    store_shutdown: CancellationToken,
    store_tracker: TaskTracker,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bank")).unwrap();
        Self { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("bank").join(name)
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        tidegate_io::files::write_private(&path, text.as_ref()).unwrap();
    }

    pub(super) async fn daemon(&self, embedder: &Arc<Letters>) -> Daemon {
        self.daemon_with(embedder, |_| {}).await
    }

    pub(super) async fn daemon_with(
        &self,
        embedder: &Arc<Letters>,
        change: impl FnOnce(&mut Parts),
    ) -> Daemon {
        let store_options = tidegate_store::Options {
            path: self.folder.path().join("data/tidegate.db"),
            ..tidegate_store::Options::default()
        };
        let (store, worker) = Store::open(store_options, Arc::new(Later)).await.unwrap();
        let (store_shutdown, store_tracker) = (CancellationToken::new(), TaskTracker::new());
        store_tracker.spawn(worker.run(store_shutdown.clone()));
        store_tracker.close();
        let mut parts = Parts {
            store: Arc::new(store.clone()),
            embedder: Arc::<Letters>::clone(embedder),
            parser: parse::Worker::new("/nonexistent", parse::Options::default()),
            authority: Table::default(),
            may_read: MayRead::all(),
            clock: Arc::new(Later),
            options: Options {
                folder: self.folder.path().join("bank"),
                watch: false,
                embed_retry_s: 1,
                ..Options::default()
            },
        };
        change(&mut parts);
        let (ingest, task) = Ingest::new(parts).unwrap();
        let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(task.run(shutdown.clone()));
        tracker.close();
        let daemon = Daemon {
            store,
            ingest,
            shutdown,
            tracker,
            store_shutdown,
            store_tracker,
        };
        daemon.scan().await;
        daemon
    }
}

impl Daemon {
    /// Compares everything and waits until all of it is done.
    pub(super) async fn scan(&self) {
        self.ingest.rescan();
        assert!(self.ingest.settled(LIMIT).await);
    }

    pub(super) async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Store) -> bool) {
        let waiting = async {
            while !holds(&self.store).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(tokio::time::timeout(LIMIT, waiting).await.is_ok(), "{what}");
    }

    pub(super) async fn documents(&self) -> Vec<Document> {
        self.store
            .documents(&Filter::default(), None, 1_000)
            .await
            .unwrap()
    }

    /// Paths of what is indexed, and paths with codes of what failed.
    pub(super) async fn state(&self) -> (Vec<String>, Vec<(String, String)>) {
        let (mut indexed, mut failed) = (Vec::new(), Vec::new());
        for document in self.documents().await {
            match document.state {
                DocumentState::Indexed { .. } => indexed.push(document.path),
                DocumentState::Failed { code, reason, hint } => {
                    assert!(!reason.is_empty() && !hint.is_empty(), "{code}");
                    failed.push((document.path, code));
                }
            }
        }
        (indexed, failed)
    }

    pub(super) async fn generation(&self, path: &str) -> u64 {
        match self.store.document(path).await.unwrap().unwrap().state {
            DocumentState::Indexed { generation, .. } => generation,
            DocumentState::Failed { code, .. } => panic!("{path}: {code}"),
        }
    }

    pub(super) async fn chunks(&self, path: &str) -> Vec<StoredChunk> {
        self.store.document_chunks(path, 0, 1_000).await.unwrap()
    }

    pub(super) async fn found(&self, word: &str) -> Vec<String> {
        let hits = self
            .store
            .match_words(&[word.to_owned()], &Filter::default(), 100)
            .await
            .unwrap();
        let keys: Vec<_> = hits.into_iter().map(|(key, _)| key).collect();
        let mut paths: Vec<_> = self
            .store
            .chunks(&keys)
            .await
            .unwrap()
            .into_iter()
            .map(|chunk| chunk.path)
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    pub(super) async fn close(self) {
        self.shutdown.cancel();
        self.tracker.wait().await;
        self.store_shutdown.cancel();
        self.store_tracker.wait().await;
    }
}

pub(super) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn coded(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files
        .iter()
        .map(|(path, code)| ((*path).to_owned(), (*code).to_owned()))
        .collect()
}

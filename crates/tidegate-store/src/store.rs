//! The open database: pooled readers, the one writer, and what concerns more than one repository.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::SqlitePool;
use tidegate_core::{
    clock::{Clock, Timestamp},
    error::StoreError,
    id::KeyId,
};

use crate::{
    direct::Direct,
    error::Error,
    files,
    key_cache::KeyCache,
    keys::Touch,
    knowledge::Knowledge,
    ledger::Book,
    memory::Memory,
    options::Options,
    row,
    writer::{Command, Worker, Writer},
};

/// Last-used times that wait for the disk; a key beyond it is noted the next time it is used.
const USES_MAX: usize = 10_000;

/// The database. A cheap handle: clones share everything.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    clock: Arc<dyn Clock>,
    readers: SqlitePool,
    writer: Writer,
    direct: Direct,
    book: Book,
    uses: Mutex<HashMap<KeyId, Timestamp>>,
    key_cache: KeyCache,
    knowledge: Knowledge,
    memory: Memory,
    daemon: OnceLock<File>,
    was_erased: AtomicBool,
    abandoned: Mutex<BTreeSet<KeyId>>,
}

impl Store {
    /// Opens the database, making and migrating it as needed. Nothing is written until the [`Worker`] runs.
    pub async fn open(options: Options, clock: Arc<dyn Clock>) -> Result<(Self, Worker), Error> {
        let path = options.path.clone();
        let refused = |error: sqlx::Error| Error::database(&path, &error);
        files::create_private(&path)?;
        let mut connection = files::writer(&options).await.map_err(refused)?;
        files::migrate(&mut connection, &path).await?;
        let maintenance = files::writer(&options).await.map_err(refused)?;

        let timeout = Duration::from_millis(options.write_timeout_ms);
        let flush_interval = Duration::from_millis(options.flush_interval_ms);
        let (writer, queue) = Writer::new(options.write_queue_max, timeout);
        let inner = Inner {
            readers: files::readers(&options),
            writer,
            direct: Direct::default(),
            book: Book::new(&options),
            uses: Mutex::default(),
            daemon: OnceLock::new(),
            was_erased: AtomicBool::new(false),
            abandoned: Mutex::default(),
            key_cache: KeyCache::new(&options.path),
            knowledge: Knowledge::new(&options.path),
            memory: Memory::new(&options.path),
            clock,
            options,
        };
        let store = Self {
            inner: Arc::new(inner),
        };
        store.expect_days().await.map_err(refused)?;
        let worker = Worker::new(store.clone(), queue, connection, maintenance, flush_interval);
        Ok((store, worker))
    }

    /// Why nothing can be written just now, as a sentence that says how to mend it and names no place; `None` where
    /// writes go through. After a failure a trial is made every second until one does.
    pub fn write_fault(&self) -> Option<&'static str> {
        self.writer().fault()
    }

    pub(crate) fn key_cache(&self) -> &KeyCache {
        &self.inner.key_cache
    }

    /// Runs a command that changes keys, and tells every process before it is acknowledged.
    pub(crate) async fn changing_keys<C: Command>(&self, command: C) -> Result<C::Output, StoreError> {
        let output = self.writer().run(command).await?;
        if let Err(error) = self.key_cache().changed() {
            // The change stands; other processes see it when what they have kept runs out.
            tracing::warn!(%error, "a change of keys could not be announced; it takes effect within a second");
        }
        Ok(output)
    }

    /// Makes this process the database's daemon, until all handles are gone or it ends; an error where
    /// another one lives. A daemon may close what its predecessor left open.
    pub fn lock_daemon(&self) -> Result<(), Error> {
        if self.is_daemon() {
            return Ok(());
        }
        let lock = files::lock_daemon(&self.options().path)?;
        // Two tasks cannot both get here: the second one's attempt at the file was refused.
        drop(self.inner.daemon.set(lock));
        Ok(())
    }

    /// Text was removed that must not stay readable in the log.
    pub(crate) fn note_erased(&self) {
        self.inner.was_erased.store(true, Ordering::Release);
    }

    /// Whether something was erased since the last call.
    pub(crate) fn take_was_erased(&self) -> bool {
        self.inner.was_erased.swap(false, Ordering::AcqRel)
    }

    /// Leaves a key that is gone, and not erased wholly, to the worker.
    pub(crate) fn abandon(&self, key_id: KeyId) {
        let mut abandoned = self
            .inner
            .abandoned
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        abandoned.insert(key_id);
    }

    /// One such key.
    pub(crate) fn take_abandoned(&self) -> Option<KeyId> {
        let mut abandoned = self
            .inner
            .abandoned
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        abandoned.pop_first()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.inner.clock.as_ref()
    }

    pub(crate) fn readers(&self) -> &SqlitePool {
        &self.inner.readers
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.inner.writer
    }

    pub(crate) fn direct(&self) -> &Direct {
        &self.inner.direct
    }

    pub(crate) fn knowledge(&self) -> &Knowledge {
        &self.inner.knowledge
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    pub(crate) fn book(&self) -> &Book {
        &self.inner.book
    }

    pub(crate) fn is_daemon(&self) -> bool {
        self.inner.daemon.get().is_some()
    }

    /// Remembers that a key was used, until the next flush.
    pub(crate) fn note_use(&self, id: &KeyId, at: Timestamp) {
        let mut uses = self.inner.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = uses.get_mut(id) {
            *last = at.max(*last);
        } else if uses.len() < USES_MAX {
            uses.insert(id.clone(), at);
        }
    }

    /// Writes last-used times.
    pub(crate) async fn flush_uses(&self) -> Result<(), StoreError> {
        let uses = std::mem::take(&mut *self.inner.uses.lock().unwrap_or_else(PoisonError::into_inner));
        if uses.is_empty() {
            return Ok(());
        }
        let uses = uses.into_iter().map(|(id, at)| (id, row::micros(at))).collect();
        self.writer().run(Touch { uses }).await
    }
}

//! Bringing the collection up to the database: filled once, then by changes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tidegate_core::port::{ChunkChanges, ChunkKey};
use tokio::time::timeout;

use super::{
    Chroma, Link, Served,
    fault::Fault,
    lock,
    notes::{self, Reached},
    server::{Collection, Row},
};
use crate::index::IndexError;

/// Rows of the database that are counted at once.
const PAGE_ROWS: usize = 4_096;
/// How often one turn begins anew, where the database moves on faster than its changes are kept.
const ROUNDS_MAX: usize = 3;

/// What the one who writes knows.
#[derive(Debug, Default)]
pub(super) struct Follower {
    /// How far the collection has come; `None` where that is not known.
    reached: Option<Reached>,
    /// Whether this process has filled the collection or gone on with it: then another database in it is another
    /// tidegate that writes now.
    has_owned: bool,
    /// Whether whoever wrote last stopped half way, so that all is to be counted once.
    is_unsure: bool,
}

impl Chroma {
    /// The same with the model and the version that the database has now; `false` where no model serves.
    pub(super) async fn follow_serving(&self, rows_max: usize) -> Result<bool, IndexError> {
        let version = self.store.version().await?;
        let Some(model) = self.store.serving_model().await? else {
            return Ok(false);
        };
        self.follow_up_to(&model, version, rows_max).await?;
        Ok(true)
    }

    /// Brings the collection up to a version, unless more than `rows_max` rows are to be written for it.
    pub(super) async fn follow_up_to(
        &self,
        model: &str,
        version: u64,
        rows_max: usize,
    ) -> Result<(), IndexError> {
        if self.is_up_to(model, version) {
            return Ok(());
        }
        if let Some((done, total)) = *lock(&self.filling)
            && rows_max != usize::MAX
            && self.follower.try_lock().is_err()
        {
            return Err(Fault::Behind { done, total }.into());
        }
        let mut follower = if rows_max == usize::MAX {
            self.follower.lock().await
        } else {
            let limit = Duration::from_millis(self.server.options().timeout_ms);
            timeout(limit, self.follower.lock()).await.map_err(|_| {
                IndexError::Unavailable("changes are still being written to Chroma".to_owned())
            })?
        };
        if self.is_up_to(model, version) {
            return Ok(());
        }
        if let Link::Resting { until, problem, .. } = &*lock(&self.link)
            && *until > self.clock.now()
        {
            return Err(IndexError::Unavailable(problem.clone()));
        }
        let outcome = self.advance(&mut follower, model, rows_max).await;
        if outcome.is_err() {
            // What was written is noted at the collection, and read from there the next time.
            follower.reached = None;
        }
        self.settle(outcome)
    }

    async fn advance(&self, follower: &mut Follower, model: &str, rows_max: usize) -> Result<(), Fault> {
        let mut room = rows_max;
        for _ in 0..ROUNDS_MAX {
            let collection = self.collection(follower, model).await?;
            let Some(reached) = &mut follower.reached else {
                return Err(Fault::Gone);
            };
            self.fill(&collection, reached, &mut room).await?;
            let changes = self.store.changes_since(model, reached.version).await?;
            let Some(changes) = changes else {
                // Too long ago: everything is read anew.
                follower.reached = None;
                self.begin(follower, model).await?;
                continue;
            };
            self.apply(&collection, reached, changes, &mut room).await?;
            let rows = self.check(&collection, reached, follower.is_unsure).await?;
            follower.is_unsure = false;
            let dimensions = self.dimensions(model).await?;
            *lock(&self.served) = Some(Served {
                model: model.to_owned(),
                version: reached.version,
                rows,
                dimensions,
            });
            let mut link = lock(&self.link);
            if let Link::Resting { .. } = *link {
                tracing::info!("Chroma answers again");
            }
            *link = Link::Up(collection);
            return Ok(());
        }
        Err(Fault::Away(
            "the documents change faster than Chroma takes their vectors".to_owned(),
        ))
    }

    /// The collection with the vectors of this database and model in it, or empty and ready for them.
    async fn collection(&self, follower: &mut Follower, model: &str) -> Result<Arc<Collection>, Fault> {
        if let (Some(reached), Ok(collection)) = (&follower.reached, self.up())
            && reached.model == model
        {
            return Ok(collection);
        }
        let Some(found) = self.server.find().await? else {
            return self.begin(follower, model).await;
        };
        let rows = found.count().await?;
        let identity = self.identity().await?;
        let reached = Reached::from_notes(&found.notes);
        if rows > 0 && !notes::is_ours(&found.notes) {
            return Err(Fault::Refused(format!(
                "the collection `{0}` in Chroma holds {rows} rows that tidegate did not write, and is left as it is; set \
                 `kb.chroma_collection` to a name that is not in use",
                self.server.options().collection
            )));
        }
        if let Some(other) = reached.as_ref().filter(|reached| reached.store != identity) {
            if follower.has_owned {
                return Err(Fault::Refused(format!(
                    "another tidegate writes to the collection `{}` in Chroma; set `kb.chroma_collection` to another name \
                     for one of the two",
                    self.server.options().collection
                )));
            }
            tracing::warn!(
                other = other.store,
                "the collection in Chroma is that of another database and is made anew"
            );
        }
        match reached {
            Some(reached)
                if reached.store == identity
                    && reached.model == model
                    && reached.rows.is_none_or(|noted| noted == rows) =>
            {
                follower.is_unsure = reached.rows.is_none();
                follower.reached = Some(reached);
                follower.has_owned = true;
                Ok(Arc::new(found))
            }
            Some(_) | None => self.begin(follower, model).await,
        }
    }

    /// An empty collection, in the place of the one that is there.
    async fn begin(&self, follower: &mut Follower, model: &str) -> Result<Arc<Collection>, Fault> {
        let reached = Reached {
            store: self.identity().await?.to_owned(),
            model: model.to_owned(),
            // Asked before reading, so that what is written meanwhile is read again and not missed.
            version: self.store.version().await?,
            after: Some(0),
            rows: Some(0),
        };
        self.server.remove().await?;
        let collection = Arc::new(self.server.make(&reached.to_notes()).await?);
        follower.reached = Some(reached);
        follower.has_owned = true;
        follower.is_unsure = false;
        *lock(&self.served) = None;
        Ok(collection)
    }

    /// Copies what is missing, page by page, and notes after each how far it is.
    async fn fill(
        &self,
        collection: &Collection,
        reached: &mut Reached,
        room: &mut usize,
    ) -> Result<(), Fault> {
        let Some(mut after) = reached.after else {
            *lock(&self.filling) = None;
            return Ok(());
        };
        let total = self.store.counts(Some(&reached.model)).await?.embedded;
        let batch = self.server.options().batch_rows;
        let mut done = reached.rows.unwrap_or_default();
        loop {
            let page = self.store.vectors(&reached.model, after, batch).await?;
            let is_last = page.keys.len() < batch;
            *lock(&self.filling) = Some((done, total));
            if page.keys.len() > *room {
                self.is_behind.notify_one();
                return Err(Fault::Behind { done, total });
            }
            *room -= page.keys.len();
            after = page.keys.last().copied().unwrap_or(after);
            let vectors = crate::index::rows(&page);
            let written = self.write(collection, &page.keys, vectors).await?;
            done += written;
            reached.rows = Some(done);
            reached.after = (!is_last).then_some(after);
            collection.note(&reached.to_notes()).await?;
            if is_last {
                *lock(&self.filling) = None;
                return Ok(());
            }
        }
    }

    /// Writes what changed since the state that the collection has.
    async fn apply(
        &self,
        collection: &Collection,
        reached: &mut Reached,
        changes: ChunkChanges,
        room: &mut usize,
    ) -> Result<(), Fault> {
        let (mut gone, mut keys, mut vectors) = (changes.removed, Vec::new(), HashMap::new());
        for (key, vector) in changes.added {
            match vector {
                Some(vector) => {
                    keys.push(key);
                    vectors.insert(key, vector);
                }
                None => gone.push(key),
            }
        }
        let to_write = gone.len() + keys.len();
        if to_write > *room {
            self.is_behind.notify_one();
            let total = self.store.counts(Some(&reached.model)).await?.embedded;
            let done = total.saturating_sub(u64::try_from(to_write).unwrap_or(u64::MAX));
            return Err(Fault::Behind { done, total });
        }
        *room -= to_write;
        if to_write > 0 {
            // Whoever stops half way writes them again, and counts anew.
            reached.rows = None;
            collection.note(&reached.to_notes()).await?;
            let batch = self.server.options().batch_rows;
            for keys in gone.chunks(batch) {
                collection.take(keys).await?;
            }
            for keys in keys.chunks(batch) {
                let some = keys.iter().filter_map(|key| Some((*key, vectors.remove(key)?)));
                let some = some.collect();
                self.write(collection, keys, some).await?;
            }
        }
        reached.version = changes.version;
        Ok(())
    }

    /// Writes rows with their texts; how many. A chunk that has gone meanwhile is left out: its going is a change.
    async fn write(
        &self,
        collection: &Collection,
        keys: &[ChunkKey],
        mut vectors: HashMap<ChunkKey, Vec<f32>>,
    ) -> Result<u64, Fault> {
        let chunks = self.store.chunks(keys).await?;
        let rows: Vec<Row> = chunks
            .into_iter()
            .filter_map(|chunk| {
                Some(Row {
                    key: chunk.key,
                    vector: vectors.remove(&chunk.key)?,
                    text: chunk.text,
                })
            })
            .collect();
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        collection.put(rows).await?;
        Ok(count)
    }

    /// Compares the number of rows with what it should be, and notes it; the number. After an interrupted write that is
    /// known from the database alone; else what Chroma said it had written is taken for written.
    async fn check(
        &self,
        collection: &Collection,
        reached: &mut Reached,
        is_unsure: bool,
    ) -> Result<u64, Fault> {
        let rows = collection.count().await?;
        let expected = match reached.rows {
            Some(expected) => expected,
            None if is_unsure => {
                let kept = self.vectors_kept(&reached.model).await?;
                // Of a database that has moved on meanwhile the count says nothing.
                if self.store.version().await? == reached.version {
                    kept
                } else {
                    rows
                }
            }
            None => rows,
        };
        // Where both differ it is noted as it should be: the next turn sees that it does not fit, and begins anew.
        reached.rows = Some(expected);
        collection.note(&reached.to_notes()).await?;
        if rows == expected {
            Ok(rows)
        } else {
            Err(Fault::Away(format!(
                "the collection in Chroma holds {rows} rows where there are {expected} vectors; it is filled anew"
            )))
        }
    }

    /// How many vectors of a model the database has. What the model has no vector for is not among them.
    pub(super) async fn vectors_kept(&self, model: &str) -> Result<u64, Fault> {
        let (mut count, mut after) = (0_u64, ChunkKey::MIN);
        loop {
            let page = self.store.vectors(model, after, PAGE_ROWS).await?;
            count += u64::try_from(page.keys.len()).unwrap_or_default();
            match page.keys.last() {
                Some(last) if page.keys.len() == PAGE_ROWS => after = *last,
                Some(_) | None => return Ok(count),
            }
        }
    }

    /// The length of a model's vectors; 0 where there is none.
    async fn dimensions(&self, model: &str) -> Result<usize, Fault> {
        Ok(self.store.vectors(model, ChunkKey::MIN, 1).await?.values.len())
    }
}

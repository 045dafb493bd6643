//! Vectors in a Chroma collection, searched there.
//!
//! The database stays the one that keeps chunks, words and vectors; a collection is an index over the vectors. So a
//! Chroma that is lost loses nothing, and one that is away makes answers by words alone.
//!
//! **Lazy.** Nothing is asked before the first search or the first turn of [`Chroma::keep_up`]. What failed is left
//! alone for a while, which doubles with each failure in a row.
//!
//! **Following.** One at a time brings the collection up to the database, by the changes since the state that is noted
//! at it (`notes`). A search does what is little itself; what is much is left to [`Chroma::keep_up`], and searches go
//! by words until it is done (`follow`).
//!
//! **Nobody else's.** A collection that holds rows and no note of ours is never written to or taken away, nor one that
//! compares otherwise than by cosine (`server`).

mod copy;
mod fault;
mod follow;
mod notes;
mod options;
mod server;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tidegate_core::{
    clock::{Clock, Timestamp, after},
    port::{ChunkKey, ChunkStore},
};
use tidegate_io::http;
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, OnceCell},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

pub use self::{
    copy::{Copied, Recovered},
    options::{BATCH_ROWS, COLLECTION, DATABASE, OptionFault, Options, TIMEOUT_MS, URL},
};
use self::{fault::Fault, follow::Follower, server::Collection, server::Server};
use crate::index::{self, IndexError, VectorIndex, Within, cosine};

/// How long a server that failed is left alone at first, in seconds; it doubles with each failure in a row.
const REST_S_MIN: u64 = 1;
/// And at most.
const REST_S_MAX: u64 = 30;
/// Rows that a search writes itself to catch up: what a document or two amount to.
const INLINE_ROWS_MAX: usize = 512;
/// How often the database is looked at for changes when nobody searches.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Up to so many chunks a filter is answered by comparing their vectors here: that is exact, and as fast as asking.
const COMPARED_MAX: usize = 1_024;
/// Keys in one filter. Chroma cannot take twice as many.
const FILTER_KEYS_MAX: usize = 8_000;
/// Filters of one search that are asked at once.
const FILTERS_AT_ONCE: usize = 4;

/// Why a Chroma index cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting cannot be.
    #[error(transparent)]
    Option(#[from] OptionFault),
    /// The HTTP client could not be built.
    #[error(transparent)]
    Client(#[from] http::Error),
}

/// An index in a Chroma collection.
#[derive(Debug)]
pub struct Chroma {
    store: Arc<dyn ChunkStore>,
    clock: Arc<dyn Clock>,
    server: Server,
    identity: OnceCell<String>,
    /// One at a time connects and writes.
    follower: AsyncMutex<Follower>,
    link: Mutex<Link>,
    served: Mutex<Option<Served>>,
    /// So many rows of so many were copied, while it is being filled.
    filling: Mutex<Option<(u64, u64)>>,
    /// Rung where there is more to write than a search should.
    is_behind: Notify,
}

/// What is known of the way to the collection.
#[derive(Debug)]
enum Link {
    /// It was not looked up yet, or has to be again.
    Untried,
    /// It answers.
    Up(Arc<Collection>),
    /// It failed and is left alone.
    Resting {
        until: Timestamp,
        problem: String,
        failures: u32,
    },
}

/// What the collection has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Served {
    model: String,
    version: u64,
    rows: u64,
    /// The length of its vectors; 0 where there is none.
    dimensions: usize,
}

impl Chroma {
    /// An index over a store. It asks nothing yet.
    pub fn new(store: Arc<dyn ChunkStore>, options: Options, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Ok(Self {
            store,
            clock,
            server: Server::new(options.checked()?)?,
            identity: OnceCell::new(),
            follower: AsyncMutex::default(),
            link: Mutex::new(Link::Untried),
            served: Mutex::default(),
            filling: Mutex::default(),
            is_behind: Notify::new(),
        })
    }

    /// Keeps the collection up to the database until `shutdown`. Without it a search that finds much to write goes by
    /// words, and nobody writes it.
    pub async fn keep_up(self: Arc<Self>, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.is_behind.notified() => {}
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                outcome = self.follow_serving(usize::MAX) => if let Err(error) = outcome {
                    tracing::debug!(%error, "the vectors in Chroma are not up to date");
                }
            }
        }
    }

    async fn identity(&self) -> Result<&str, Fault> {
        let identity = self.identity.get_or_try_init(|| self.store.identity()).await?;
        Ok(identity)
    }

    fn served(&self) -> Option<Served> {
        lock(&self.served).clone()
    }

    fn is_up_to(&self, model: &str, version: u64) -> bool {
        let is_up = matches!(*lock(&self.link), Link::Up(_));
        is_up
            && lock(&self.served)
                .as_ref()
                .is_some_and(|served| served.model == model && served.version >= version)
    }

    /// The collection where it answers, or what is wrong.
    fn up(&self) -> Result<Arc<Collection>, Fault> {
        match &*lock(&self.link) {
            Link::Up(collection) => Ok(Arc::clone(collection)),
            Link::Untried => Err(Fault::Gone),
            Link::Resting { problem, .. } => Err(Fault::Away(problem.clone())),
        }
    }

    /// Draws the conclusion from what a call came to.
    fn settle<T>(&self, outcome: Result<T, Fault>) -> Result<T, IndexError> {
        if let Err(fault) = &outcome {
            match fault {
                Fault::Store(_) | Fault::Behind { .. } => {}
                Fault::Gone => *lock(&self.link) = Link::Untried,
                Fault::Away(problem) | Fault::Refused(problem) => self.rest(problem),
            }
        }
        Ok(outcome?)
    }

    fn rest(&self, problem: &str) {
        let mut link = lock(&self.link);
        let now = self.clock.now();
        let failures = match &*link {
            // Of calls that ran side by side each one fails; that is one failure.
            Link::Resting { until, .. } if *until > now => return,
            Link::Resting { failures, .. } => failures.saturating_add(1),
            Link::Untried | Link::Up(_) => 0,
        };
        let rest_s = REST_S_MIN
            .checked_shl(failures)
            .unwrap_or(REST_S_MAX)
            .clamp(REST_S_MIN, REST_S_MAX);
        let until = after(now, rest_s);
        tracing::warn!(problem, %until, "Chroma is left alone for a while; searches go by words meanwhile");
        *link = Link::Resting {
            until,
            problem: problem.to_owned(),
            failures,
        };
    }

    async fn nearest(
        &self,
        vector: &[f32],
        wanted: usize,
        within: Option<Within<'_>>,
    ) -> Result<Vec<(ChunkKey, f32)>, IndexError> {
        let collection = self.settle(self.up())?;
        let mut nearest = match within {
            None => self.settle(collection.nearest(vector, wanted, None).await)?,
            Some(within) if within.keys.len() <= COMPARED_MAX => {
                let rows = self.vectors(within.keys).await?;
                rows.iter()
                    .map(|(key, row)| (*key, cosine(vector, row)))
                    .collect()
            }
            Some(within) => {
                let asked: Vec<_> = within
                    .keys
                    .chunks(FILTER_KEYS_MAX)
                    .map(|keys| collection.nearest(vector, wanted, Some(keys)))
                    .collect();
                let asking = futures_util::stream::iter(asked)
                    .buffer_unordered(FILTERS_AT_ONCE)
                    .try_concat();
                let limit = Duration::from_millis(self.server.options().timeout_ms);
                let late = |_| {
                    Err(Fault::Away(format!(
                        "Chroma gave no answer within {} ms",
                        limit.as_millis()
                    )))
                };
                self.settle(timeout(limit, asking).await.unwrap_or_else(late))?
            }
        };
        sort(&mut nearest);
        nearest.truncate(wanted);
        Ok(nearest)
    }
}

#[async_trait]
impl VectorIndex for Chroma {
    async fn follow(&self, model: &str, version: u64) -> Result<(), IndexError> {
        self.follow_up_to(model, version, INLINE_ROWS_MAX).await
    }

    async fn search(
        &self,
        vector: &[f32],
        count: usize,
        exact: usize,
        within: Option<Within<'_>>,
    ) -> Result<Vec<(ChunkKey, f32)>, IndexError> {
        let served = self.served().ok_or_else(|| {
            IndexError::Unavailable("the collection in Chroma was not looked up yet".to_owned())
        })?;
        let wanted = count.max(exact);
        if served.rows == 0 || wanted == 0 {
            return Ok(Vec::new());
        }
        if served.dimensions != vector.len() {
            return Err(IndexError::Dimensions {
                query: vector.len(),
                index: served.dimensions,
            });
        }
        let mut nearest = self.nearest(vector, wanted, within).await?;
        // The database has the last word on the first ones: what has left it since is left out.
        let first: Vec<ChunkKey> = nearest.iter().take(exact).map(|(key, _)| *key).collect();
        let rows = self.vectors(&first).await?;
        let mut place = 0;
        nearest.retain_mut(|(key, score)| {
            place += 1;
            match rows.get(key) {
                Some(row) => *score = cosine(vector, row),
                None => return place > first.len(),
            }
            true
        });
        sort(&mut nearest);
        nearest.truncate(count);
        Ok(nearest)
    }

    async fn vectors(&self, keys: &[ChunkKey]) -> Result<HashMap<ChunkKey, Vec<f32>>, IndexError> {
        match self.served() {
            Some(served) => Ok(index::rows(&self.store.vectors_of(&served.model, keys).await?)),
            None => Ok(HashMap::new()),
        }
    }

    fn place(&self) -> &'static str {
        "chroma"
    }

    fn problem(&self) -> Option<String> {
        if let Link::Resting { problem, until, .. } = &*lock(&self.link) {
            return Some(format!(
                "{problem}; searches go by words, and it is tried again after {until}"
            ));
        }
        let filling = *lock(&self.filling);
        filling
            .map(|(done, total)| format!("{}; searches go by words until then", fault::behind(done, total)))
    }
}

fn sort(found: &mut [(ChunkKey, f32)]) {
    found.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
}

/// Nothing that is done under these locks can panic half way.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

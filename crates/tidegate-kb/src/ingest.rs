//! From a folder to the index, and always after it.
//!
//! At the start everything in the folder is compared with what is known of it: size and time of change say that a file
//! is the same, without reading it; where they do not, its bytes do. Then a watcher says what changes, tools say what
//! they have written, and every few minutes everything is compared again, because watchers miss things.
//!
//! **Nothing is done twice.** A document is put in one transaction with the mark of its file, so that a process that is
//! killed goes on where it was. A file that only moved keeps its chunks and vectors; a chunk whose words are known
//! anywhere keeps its vector.
//!
//! **Nothing stops it.** A file that cannot be read is listed with the reason and costs nobody else anything. Without
//! an embedder documents are found by their words, and vectors are filled in later (`fill`). Where the folder itself
//! is away, the index stays as it is.

mod file;
mod fill;
mod look;
mod options;
mod progress;
mod scan;
mod signals;
mod task;
mod watch;

#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc, time::Duration};

use sha2::{Digest as _, Sha256};
use tidegate_core::{
    clock::Clock,
    id::base32,
    port::{ChunkStore, Embedder, KnownFile},
};
use tidegate_io::files::{Twins, real_path_of};
use tokio::sync::{Notify, watch as channel};

pub use self::{
    options::{Ignored, InvalidPattern, LeftOut, Options},
    progress::Progress,
    task::Task,
};
use self::{progress::Problems, signals::Signals};
use crate::{authority::Table, chunk, parse};

/// Changes whenever the same text may be cut or cited differently.
const VERSION: u32 = 1;

/// Whether a file may be in the index, by its real path. Whoever searches sees what is in it, so it holds only what
/// everybody may read.
#[derive(Clone)]
pub struct MayRead {
    judge: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
    twins: Arc<dyn Fn() -> Twins + Send + Sync>,
}

impl MayRead {
    /// Whatever `judge` lets through.
    pub fn new(judge: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self {
            judge: Arc::new(judge),
            twins: Arc::new(Twins::default),
        }
    }

    /// The same, and no second name of what `twins` guards at the moment.
    #[must_use]
    pub fn guarding(self, twins: impl Fn() -> Twins + Send + Sync + 'static) -> Self {
        Self {
            twins: Arc::new(twins),
            ..self
        }
    }

    /// Every file.
    pub fn all() -> Self {
        Self::new(|_| true)
    }
}

impl std::fmt::Debug for MayRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MayRead")
    }
}

/// What it works with.
#[derive(Debug)]
pub struct Parts {
    /// Where documents go.
    pub store: Arc<dyn ChunkStore>,
    /// Who makes vectors.
    pub embedder: Arc<dyn Embedder>,
    /// Who reads files.
    pub parser: parse::Worker,
    /// The operator's table of authorities.
    pub authority: Table,
    /// Which files may be in the index at all.
    pub may_read: MayRead,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which folder, and how.
    pub options: Options,
}

/// What the loop, its jobs and the handles share.
#[derive(Debug)]
struct Shared {
    store: Arc<dyn ChunkStore>,
    embedder: Arc<dyn Embedder>,
    parser: parse::Worker,
    authority: Table,
    may_read: MayRead,
    clock: Arc<dyn Clock>,
    ignored: Ignored,
    limits: chunk::Limits,
    recipe: String,
    workers: usize,
    signals: Arc<Signals>,
    fill: Notify,
    progress: channel::Sender<Progress>,
    problems: Problems,
    options: Options,
}

impl Shared {
    /// Whether a path is looked at: nothing in it begins with a dot, no pattern leaves it out, and it may be read by
    /// everybody, by its name in the folder and by what that leads to. What leads out of the folder is looked at as
    /// the link that it is: it is never followed, and its owner learns why nothing of it is found.
    fn may_enter(&self, path: &str) -> bool {
        self.ignored.leaves_out(path).is_none() && {
            let real = real_path_of(&self.options.folder.join(path));
            (self.may_read.judge)(&real) || !real.starts_with(real_path_of(&self.options.folder))
        }
    }

    /// Whether a file was read as it would be read now. While the vectors of another model serve, it does not count
    /// for which model it was cut.
    fn is_current(&self, known: &KnownFile, model_serves: bool) -> bool {
        let cut = |recipe: &str| recipe.split(MODEL_MARK).next().map(str::to_owned);
        known.recipe == self.recipe
            || known.recipe == self.too_large()
            || (!model_serves && cut(&known.recipe) == cut(&self.recipe))
    }

    /// The recipe of a file that is larger than may be read.
    fn too_large(&self) -> String {
        format!("{} too large for {}", self.recipe, self.options.file_bytes_max)
    }
}

/// What stands before the model's id in a recipe.
const MODEL_MARK: &str = " model=";

fn recipe(authority: &Table, limits: &chunk::Limits, model: &str) -> String {
    let table = base32(Sha256::digest(authority.recipe()).as_slice());
    let (parser, tokens) = (parse::VERSION, limits.tokens_max);
    format!("ingest={VERSION} parse={parser} authority={table} tokens={tokens}{MODEL_MARK}{model}")
}

/// The folder's reader, as others speak to it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ingest {
    shared: Arc<Shared>,
}

impl Ingest {
    /// A reader and the task behind it.
    pub fn new(parts: Parts) -> Result<(Self, Task), InvalidPattern> {
        let Parts {
            store,
            embedder,
            parser,
            authority,
            may_read,
            clock,
            options,
        } = parts;
        let limits = chunk::Limits::within(embedder.model().tokens_max);
        let shared = Arc::new(Shared {
            ignored: Ignored::new(&options.ignore)?,
            recipe: recipe(&authority, &limits, &embedder.model().id),
            workers: options.workers(),
            signals: Arc::new(Signals::new(Duration::from_millis(options.debounce_ms))),
            fill: Notify::new(),
            progress: channel::Sender::new(Progress::default()),
            problems: Problems::default(),
            store,
            embedder,
            parser,
            authority,
            may_read,
            clock,
            limits,
            options,
        });
        Ok((
            Self {
                shared: Arc::clone(&shared),
            },
            Task::new(shared),
        ))
    }

    /// Compares everything anew, soon; [`Ingest::settled`] waits for it.
    pub fn rescan(&self) {
        self.shared.signals.announce_everything();
    }

    /// How far it is, and news of it.
    pub fn progress(&self) -> channel::Receiver<Progress> {
        self.shared.progress.subscribe()
    }

    /// A tool has written the file of this real path; the folder itself means everything in it. What is outside of it
    /// is none of our business.
    pub fn written(&self, path: &Path) {
        let root = real_path_of(&self.shared.options.folder);
        match watch::relative(&root, path) {
            Some(path) if path.is_empty() => self.rescan(),
            Some(path) => self.shared.signals.announce(path),
            None => {}
        }
    }

    /// Waits until everything that was announced until now is in the index, `limit` at most; whether it is.
    pub async fn settled(&self, limit: Duration) -> bool {
        self.shared.signals.settled(limit).await
    }

    /// Files that wait or are being read.
    pub fn pending(&self) -> usize {
        let reading = usize::try_from(self.shared.progress.borrow().pending).unwrap_or(usize::MAX);
        reading.saturating_add(self.shared.signals.count())
    }

    /// Files whose state on disk is not the one that the index knows, by a look at all of them, `kb.files_max` at most.
    /// For whoever only looks: another process may be reading them. A file that cannot be read waits for nothing, and
    /// one that was read the moment it was written counts as read. `None` where the folder or the index cannot be
    /// looked at.
    pub async fn behind(&self) -> Option<u64> {
        self.shared.behind().await
    }

    /// What the store did not take since the last comparison with the folder, the latest of it, as a sentence.
    pub fn unsaved(&self) -> Option<String> {
        self.shared.problems.of(progress::STORE)
    }

    /// What is wrong just now, as sentences.
    pub fn problems(&self) -> Vec<String> {
        self.shared.problems.all()
    }
}

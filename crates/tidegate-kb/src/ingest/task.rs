//! The loop: what changed becomes jobs, jobs become documents.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    path::Path,
    sync::Arc,
    time::Duration,
};

use notify::RecommendedWatcher;
use tidegate_core::port::KnownFile;
use tidegate_io::files::{Node, Roots, Tree};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    file::{Job, Moves, Outcome},
    progress::STORE,
    scan::{self, Difference},
    signals::Taken,
    watch,
};

/// How often a file that changes while it is read is tried again before the next scan.
const ATTEMPTS_MAX: u8 = 3;

/// Keeps the index in step with the folder. Nothing is read unless [`Task::run`] runs.
#[derive(Debug)]
pub struct Task {
    shared: Arc<Shared>,
}

impl Task {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Compares the folder with the index, follows it, and fills in missing vectors, until `shutdown`. Spawn it on a
    /// task tracker. What is being read then is read again at the next start.
    pub async fn run(self, shutdown: CancellationToken) {
        let filling = shutdown.run_until_cancelled(self.shared.keep_filling());
        let reading = shutdown.run_until_cancelled(Loop::new(Arc::clone(&self.shared)).turn());
        tokio::join!(filling, reading);
        tracing::debug!("the knowledge bank is no longer followed");
    }
}

struct Loop {
    shared: Arc<Shared>,
    urgent: VecDeque<Job>,
    queue: VecDeque<Job>,
    /// Paths in either queue.
    queued: HashSet<String>,
    running: JoinSet<(Job, Outcome)>,
    /// Paths that are being read, and whether they are to be looked at again.
    busy: BTreeMap<String, bool>,
    /// Of these, those that somebody may wait for.
    busy_urgent: usize,
    /// How often a file that changes while it is read was tried, since it last did not.
    attempts: HashMap<String, u8>,
    moves: Arc<Moves>,
    roots: Option<Roots>,
    watcher: Option<RecommendedWatcher>,
    /// The latest announcement whose files are in the queue or done.
    sequence: u64,
    /// Whether an announcement meant everything, so that it is done when nothing waits.
    waits_for_all: bool,
    was_idle: bool,
    rescan_at: Instant,
    /// The paths that have been seen, by what is the same for names that look alike.
    names: HashMap<String, String>,
}

impl Loop {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            urgent: VecDeque::new(),
            queue: VecDeque::new(),
            queued: HashSet::new(),
            running: JoinSet::new(),
            busy: BTreeMap::new(),
            busy_urgent: 0,
            attempts: HashMap::new(),
            moves: Arc::default(),
            roots: None,
            watcher: None,
            sequence: 0,
            waits_for_all: false,
            was_idle: true,
            rescan_at: Instant::now(),
            names: HashMap::new(),
        }
    }

    async fn turn(mut self) {
        loop {
            self.start_jobs();
            self.rest().await;
            tokio::select! {
                taken = self.shared.signals.next() => self.heed(taken).await,
                () = tokio::time::sleep_until(self.rescan_at) => self.rescan().await,
                Some(ended) = self.running.join_next() => match ended {
                    Ok((job, outcome)) => self.end(job, outcome),
                    // Its name is lost with it: forget who was busy, and compare everything.
                    Err(error) => {
                        tracing::error!(%error, "reading a document failed unexpectedly");
                        self.running.abort_all();
                        self.busy.clear();
                        self.busy_urgent = 0;
                        self.rescan_at = Instant::now() + Duration::from_secs(1);
                    }
                },
            }
        }
    }

    /// Where nothing waits, what is left of earlier places is removed, and whoever waits is told.
    async fn rest(&mut self) {
        let pending = self.queue.len() + self.urgent.len() + self.running.len();
        let is_idle = pending == 0;
        if is_idle {
            let gone = self.moves.rest();
            if !gone.is_empty() {
                self.remove(gone).await;
            }
            self.waits_for_all = false;
            if !self.was_idle {
                // Documents may have come without vectors.
                self.shared.fill.notify_one();
            }
        }
        self.was_idle = is_idle;
        if self.urgent.is_empty() && self.busy_urgent == 0 && !self.waits_for_all {
            self.shared.signals.settle(self.sequence);
        }
        self.shared.progress.send_if_modified(|progress| {
            let before = std::mem::replace(&mut progress.pending, pending as u64);
            if before == 0 && pending > 0 {
                (progress.done, progress.failed, progress.chunks) = (0, 0, 0);
            }
            before != progress.pending
        });
    }

    fn start_jobs(&mut self) {
        let Some(roots) = self.roots.clone() else { return };
        while self.running.len() < self.shared.workers {
            let Some(job) = self.urgent.pop_front().or_else(|| self.queue.pop_front()) else {
                return;
            };
            self.queued.remove(&job.node.path);
            self.busy.insert(job.node.path.clone(), false);
            self.busy_urgent += usize::from(job.is_urgent);
            let (shared, moves, roots) = (Arc::clone(&self.shared), Arc::clone(&self.moves), roots.clone());
            self.running.spawn(async move {
                let outcome = shared.index(roots, &job, &moves).await;
                (job, outcome)
            });
        }
    }

    fn end(&mut self, job: Job, outcome: Outcome) {
        let again = self.busy.remove(&job.node.path).unwrap_or(false);
        self.busy_urgent = self.busy_urgent.saturating_sub(usize::from(job.is_urgent));
        let attempts = self.attempts.remove(&job.node.path).unwrap_or(0);
        let (mut failed, mut chunks) = (0, 0);
        match outcome {
            Outcome::Indexed { chunks: count } => chunks = count as u64,
            Outcome::Unchanged => {}
            Outcome::Failed => failed = 1,
            Outcome::Gone => {
                if let Some(known) = job.known.clone() {
                    self.moves.offer(known);
                }
            }
            Outcome::Changing if attempts < ATTEMPTS_MAX => {
                self.attempts.insert(job.node.path.clone(), attempts + 1);
                self.shared.signals.saw(job.node.path.clone());
            }
            Outcome::Changing => {
                tracing::info!(document = %job.node.path, "a document keeps changing and waits for the next scan");
            }
            Outcome::Store(error) => {
                failed = 1;
                let problem = format!("`{}` is not in the index as it is now: {error}", job.node.path);
                self.shared.problems.set(STORE, Some(problem));
            }
        }
        if again {
            self.shared.signals.saw(job.node.path);
        }
        self.shared.progress.send_modify(|progress| {
            progress.done += 1;
            progress.failed += failed;
            progress.chunks += chunks;
        });
    }

    async fn heed(&mut self, taken: Taken) {
        self.roots = self.roots.take().map(|roots| self.shared.guarded(roots));
        if taken.watcher_lost {
            self.watcher = None;
        }
        if taken.everything || self.roots.is_none() {
            self.rescan().await;
            self.waits_for_all |= taken.sequence > self.sequence;
        }
        let paths = taken.urgent.into_iter().map(|path| (path, true, false));
        let paths = paths.chain(taken.changed.into_iter().map(|path| (path, false, false)));
        for (path, is_urgent, is_forced) in
            paths.chain(taken.forced.into_iter().map(|path| (path, false, true)))
        {
            self.compare_at(&path, is_urgent, is_forced).await;
        }
        self.sequence = self.sequence.max(taken.sequence);
    }

    /// Compares what is at a path and below it.
    async fn compare_at(&mut self, path: &str, is_urgent: bool, is_forced: bool) {
        if !self.shared.may_enter(path) {
            return;
        }
        let known = match self.shared.store.files_at(path).await {
            Ok(known) => known,
            Err(error) => return self.shared.problems.set(STORE, Some(error.to_string())),
        };
        let Some((tree, roots)) = self.tree(path.to_owned()).await else {
            return;
        };
        if self.is_ambiguous(path, &tree.nodes) {
            let soon = Instant::now() + Duration::from_millis(self.shared.options.debounce_ms);
            self.rescan_at = self.rescan_at.min(soon);
            return;
        }
        let mut forced: Vec<KnownFile> = Vec::new();
        let known = if is_forced {
            forced = known;
            Vec::new()
        } else {
            known
        };
        let difference = self.difference(tree.nodes, known, roots).await;
        if let Some(mut difference) = difference {
            for (node, known) in &mut difference.look {
                *known = known
                    .take()
                    .or_else(|| forced.iter().find(|file| file.path == node.path).cloned());
            }
            self.plan(difference, is_urgent, is_forced).await;
        }
    }

    /// Whether only a look at everything can tell what these files are: where another name looks the same, and where
    /// the name is no text, so that what was seen of it is not its name.
    fn is_ambiguous(&mut self, path: &str, nodes: &[Node]) -> bool {
        let mut is_ambiguous = path.contains('\u{fffd}');
        for node in nodes {
            let first = self
                .names
                .entry(scan::fold(&node.path))
                .or_insert_with(|| node.path.clone());
            if *first != node.path {
                let is_there = self
                    .shared
                    .options
                    .folder
                    .join(&*first)
                    .symlink_metadata()
                    .is_ok();
                is_ambiguous |= is_there;
                if !is_there {
                    first.clone_from(&node.path);
                }
            }
        }
        is_ambiguous
    }

    /// Compares everything.
    async fn rescan(&mut self) {
        self.rescan_at = Instant::now() + Duration::from_secs(self.shared.options.rescan_interval_s.max(1));
        if let Err(problem) = self.try_rescan().await {
            self.shared.problems.set("scan", Some(problem));
        }
        self.shared
            .progress
            .send_modify(|progress| progress.is_scanned = true);
    }

    async fn try_rescan(&mut self) -> Result<(), String> {
        let roots = self.shared.open().await?;
        self.watch(&roots);
        self.roots = Some(self.shared.guarded(roots));
        let known = self.shared.all_known().await.map_err(|error| error.to_string())?;
        let Some((tree, roots)) = self.tree(String::new()).await else {
            return Ok(());
        };
        if tree.nodes.iter().any(|node| node.path.is_empty()) {
            return Err("the knowledge bank cannot be listed; the index stays as it is".to_owned());
        }
        self.names.clear();
        for node in &tree.nodes {
            // The first in the order of paths, as the comparison has it, in whichever order the disk lists them.
            let first = self.names.entry(scan::fold(&node.path));
            let first = first.or_insert_with(|| node.path.clone());
            if node.path < *first {
                first.clone_from(&node.path);
            }
        }
        let files_max = self.shared.options.files_max;
        let cut = tree.cut.then(|| format!("the knowledge bank holds more than {files_max} files (`kb.files_max`); the rest is not indexed"));
        self.shared.problems.set("scan", cut);
        self.shared.problems.set(STORE, None);
        if let Some(difference) = self.difference(tree.nodes, known, roots).await {
            tracing::debug!(
                look = difference.look.len(),
                refused = difference.refused.len(),
                vanished = difference.vanished.len(),
                "the knowledge bank was compared with its index"
            );
            self.plan(difference, false, false).await;
        }
        Ok(())
    }

    fn watch(&mut self, roots: &Roots) {
        let Some(folder) = roots.paths().next().map(Path::to_owned) else {
            return;
        };
        if !self.shared.options.watch || self.watcher.is_some() {
            return;
        }
        match watch::watch(&folder, Arc::clone(&self.shared.signals)) {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                self.shared.problems.set("watch", None);
            }
            Err(error) => {
                let interval_s = self.shared.options.rescan_interval_s;
                let problem = format!(
                    "changes in the knowledge bank are noticed only every {interval_s} s, since it cannot be watched: {error}"
                );
                self.shared.problems.set("watch", Some(problem));
            }
        }
    }

    async fn tree(&self, below: String) -> Option<(Tree, Roots)> {
        self.shared.tree(self.roots.clone()?, below).await
    }

    async fn difference(&self, nodes: Vec<Node>, known: Vec<KnownFile>, roots: Roots) -> Option<Difference> {
        match self.shared.serves().await {
            Ok(serves) => self.shared.difference(nodes, known, roots, serves).await,
            Err(error) => {
                self.shared.problems.set(STORE, Some(error.to_string()));
                None
            }
        }
    }

    async fn plan(&mut self, difference: Difference, is_urgent: bool, is_forced: bool) {
        for (node, failure) in difference.refused {
            self.drop_job(&node.path);
            let recipe = scan::refusal(&failure);
            if let Err(error) = self.shared.fail(&node, None, failure, recipe).await {
                self.shared.problems.set(STORE, Some(error.to_string()));
            }
        }
        let mut new_sizes: HashMap<u64, usize> = HashMap::new();
        for (node, known) in difference.look {
            if known.is_none() {
                *new_sizes.entry(node.bytes).or_default() += 1;
            }
            self.enqueue(Job {
                node,
                known,
                is_urgent,
                is_forced,
            });
        }
        // A file of the same size may be one that was moved; it may also be planned already.
        for job in self
            .queue
            .iter()
            .chain(&self.urgent)
            .filter(|job| job.known.is_none())
        {
            *new_sizes.entry(job.node.bytes).or_default() += 1;
        }
        let mut gone = Vec::new();
        for file in difference.vanished {
            if !file.failed && new_sizes.contains_key(&file.mark.bytes) {
                self.moves.offer(file);
            } else {
                gone.push(file.path);
            }
        }
        if !gone.is_empty() {
            self.remove(gone).await;
        }
    }

    fn enqueue(&mut self, job: Job) {
        let path = &job.node.path;
        if let Some(again) = self.busy.get_mut(path) {
            *again = true;
            return;
        }
        if !self.queued.insert(path.clone()) {
            let waiting = self.queue.iter().position(|waiting| waiting.node.path == *path);
            match waiting
                .filter(|_| job.is_urgent)
                .and_then(|at| self.queue.remove(at))
            {
                Some(_) => {}
                // It is looked at as it is when its turn comes.
                None => return,
            }
        }
        if job.is_urgent {
            self.urgent.push_back(job);
        } else {
            self.queue.push_back(job);
        }
    }

    /// Takes back what was planned for a path that is refused now. What is being read already is judged anew once it
    /// is done, or it would stand in the place of the refusal.
    fn drop_job(&mut self, path: &str) {
        if self.queued.remove(path) {
            self.queue.retain(|job| job.node.path != path);
            self.urgent.retain(|job| job.node.path != path);
        }
        if let Some(again) = self.busy.get_mut(path) {
            *again = true;
        }
    }

    async fn remove(&mut self, paths: Vec<String>) {
        let count = paths.len();
        match self.shared.store.remove(paths).await {
            Ok(_) => tracing::info!(documents = count, "documents that are gone left the index"),
            Err(error) => self.shared.problems.set(STORE, Some(error.to_string())),
        }
    }
}

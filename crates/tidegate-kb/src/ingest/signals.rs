//! What others say has changed, until the loop takes it.
//!
//! A path that a tool wrote is taken at once. One that the watcher saw waits until it is left alone, because a file
//! that is being copied changes many times. Both are bounded: beyond that, everything is compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

/// Paths that wait; beyond it everything is compared.
const PATHS_MAX: usize = 4_096;

/// A file that never comes to rest is read every so often all the same.
const PATIENCE: Duration = Duration::from_secs(10);

/// What waits for the loop.
#[derive(Debug)]
pub(super) struct Signals {
    waiting: Mutex<Waiting>,
    bell: Notify,
    settled: watch::Sender<u64>,
    debounce: Duration,
}

#[derive(Debug, Default)]
struct Waiting {
    announced: BTreeSet<String>,
    /// When the watcher saw a path first and last.
    seen: BTreeMap<String, (Instant, Instant)>,
    /// To be read whatever its mark says.
    forced: BTreeSet<String>,
    everything: bool,
    watcher_lost: bool,
    /// Counts announcements.
    sequence: u64,
}

/// What the loop shall look at now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Written by a tool.
    pub(super) urgent: Vec<String>,
    /// Changed by somebody.
    pub(super) changed: Vec<String>,
    /// To be read in any case.
    pub(super) forced: Vec<String>,
    /// Everything is to be compared.
    pub(super) everything: bool,
    /// The watcher is gone.
    pub(super) watcher_lost: bool,
    /// The number of the latest announcement in here.
    pub(super) sequence: u64,
}

impl Signals {
    pub(super) fn new(debounce: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            bell: Notify::new(),
            settled: watch::Sender::new(0),
            debounce,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.waiting();
        change(&mut waiting);
        if waiting.announced.len() + waiting.seen.len() + waiting.forced.len() > PATHS_MAX {
            waiting.announced.clear();
            waiting.seen.clear();
            waiting.forced.clear();
            waiting.everything = true;
        }
        drop(waiting);
        self.bell.notify_one();
    }

    /// A tool has written the file at a path inside the folder.
    pub(super) fn announce(&self, path: String) {
        self.ring(|waiting| {
            waiting.sequence += 1;
            waiting.announced.insert(path);
        });
    }

    /// The watcher saw something at a path inside the folder.
    pub(super) fn saw(&self, path: String) {
        let now = Instant::now();
        self.ring(|waiting| {
            waiting
                .seen
                .entry(path)
                .and_modify(|(_, last)| *last = now)
                .or_insert((now, now));
        });
    }

    /// The file at a path is to be read whatever its mark says.
    pub(super) fn force(&self, path: String) {
        self.ring(|waiting| {
            waiting.forced.insert(path);
        });
    }

    /// Everything is to be compared.
    pub(super) fn everything(&self) {
        self.ring(|waiting| waiting.everything = true);
    }

    /// The same, and somebody waits for it.
    pub(super) fn announce_everything(&self) {
        self.ring(|waiting| {
            waiting.sequence += 1;
            waiting.everything = true;
        });
    }

    /// The watcher is gone, and something may have been missed.
    pub(super) fn lose_watcher(&self) {
        self.ring(|waiting| (waiting.watcher_lost, waiting.everything) = (true, true));
    }

    /// Waits until there is something to look at, and takes it.
    pub(super) async fn next(&self) -> Taken {
        loop {
            let wait = match self.take(Instant::now()) {
                Ok(taken) => return taken,
                Err(wait) => wait,
            };
            match wait {
                Some(until) => drop(tokio::time::timeout_at(until, self.bell.notified()).await),
                None => self.bell.notified().await,
            }
        }
    }

    /// What is ready, or until when to wait.
    fn take(&self, now: Instant) -> Result<Taken, Option<Instant>> {
        let mut waiting = self.waiting();
        let ready = |(first, last): &(Instant, Instant)| {
            (*last + self.debounce).min(*first + PATIENCE.max(self.debounce))
        };
        let changed: Vec<String> = waiting
            .seen
            .iter()
            .filter(|(_, times)| ready(times) <= now)
            .map(|(path, _)| path.clone())
            .collect();
        if changed.is_empty()
            && waiting.announced.is_empty()
            && waiting.forced.is_empty()
            && !waiting.everything
        {
            return Err(waiting.seen.values().map(ready).min());
        }
        for path in &changed {
            waiting.seen.remove(path);
        }
        Ok(Taken {
            urgent: std::mem::take(&mut waiting.announced).into_iter().collect(),
            changed,
            forced: std::mem::take(&mut waiting.forced).into_iter().collect(),
            everything: std::mem::take(&mut waiting.everything),
            watcher_lost: std::mem::take(&mut waiting.watcher_lost),
            sequence: waiting.sequence,
        })
    }

    /// Paths that wait.
    pub(super) fn count(&self) -> usize {
        let waiting = self.waiting();
        waiting.announced.len() + waiting.seen.len() + waiting.forced.len()
    }

    /// Everything up to that announcement is in the index.
    pub(super) fn settle(&self, sequence: u64) {
        self.settled.send_if_modified(|settled| {
            let grows = sequence > *settled;
            *settled = sequence.max(*settled);
            grows
        });
    }

    /// Waits until everything that was announced until now is in the index, `limit` at most; whether it is.
    pub(super) async fn settled(&self, limit: Duration) -> bool {
        let sequence = self.waiting().sequence;
        let mut settled = self.settled.subscribe();
        let done = settled.wait_for(|settled| *settled >= sequence);
        matches!(tokio::time::timeout(limit, done).await, Ok(Ok(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBOUNCE: Duration = Duration::from_millis(300);

    fn taken(urgent: &[&str], changed: &[&str]) -> Taken {
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        Taken {
            urgent: owned(urgent),
            changed: owned(changed),
            sequence: urgent.len() as u64,
            ..Taken::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_is_taken_at_once_and_what_is_seen_when_it_rests() {
        let signals = Signals::new(DEBOUNCE);
        let begun = Instant::now();
        signals.saw("a.md".to_owned());
        tokio::time::advance(Duration::from_millis(200)).await;
        signals.saw("a.md".to_owned());
        signals.saw("b.md".to_owned());
        assert_eq!(signals.next().await, taken(&[], &["a.md", "b.md"]));
        assert_eq!(begun.elapsed().as_millis(), 500);
        signals.saw("a.md".to_owned());
        signals.announce("c.md".to_owned());
        assert_eq!(signals.next().await, taken(&["c.md"], &[]));
        assert_eq!(begun.elapsed().as_millis(), 500);
        assert_eq!(signals.count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_never_rests_is_read_now_and_then() {
        let signals = Signals::new(DEBOUNCE);
        let begun = Instant::now();
        let busy = async {
            loop {
                signals.saw("log.txt".to_owned());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = busy => {}
            taken = signals.next() => assert_eq!(taken.changed, ["log.txt"]),
        }
        assert!(begun.elapsed() <= PATIENCE + DEBOUNCE, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_paths_are_everything() {
        let signals = Signals::new(DEBOUNCE);
        for number in 0..=PATHS_MAX {
            signals.announce(number.to_string());
        }
        let taken = signals.next().await;
        assert!(taken.everything && taken.urgent.is_empty());
        assert_eq!(taken.sequence, PATHS_MAX as u64 + 1);
        assert!(!signals.settled(DEBOUNCE).await);
        signals.settle(taken.sequence);
        assert!(signals.settled(Duration::ZERO).await);
    }
}

//! Append-only logs of JSON lines: a bounded queue in front of one background writer.
//!
//! The side that hands over lines never waits and never fails. What the queue or the disk cannot take is
//! counted, and said once until it works again. Files are for the owner alone (0600) and rotate by size.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidegate_core::port::LineLog;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The most lines written in one go.
const BATCH_LINES_MAX: usize = 256;

/// How long lines are gathered before they are written: writing changes threads, and a request should not pay
/// for that each time.
const GATHER: Duration = Duration::from_millis(25);

/// The longest line taken, in bytes. With the queue's length it bounds the memory of a log.
const LINE_BYTES_MAX: usize = 256 * 1024;

/// A log file and its bounds.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file; its folder is created when it is missing.
    pub path: PathBuf,
    /// How many lines may wait; a line more is dropped and counted.
    pub queue_max: usize,
    /// The size at which the file is put aside, in bytes.
    pub rotate_bytes: u64,
    /// How many files that were put aside are kept, `.1` being the newest.
    pub keep: usize,
}

impl Options {
    /// The usual bounds: 4096 lines waiting, 16 MiB a file, 5 files kept.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            queue_max: 4096,
            rotate_bytes: 16 * 1024 * 1024,
            keep: 5,
        }
    }
}

/// The side that hands over lines. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LineWriter {
    queue: mpsc::Sender<String>,
    dropped: Arc<AtomicU64>,
}

impl LineWriter {
    /// A writer, and the worker that must be run for it. Touches no file yet, so it cannot fail.
    pub fn open(options: Options) -> (Self, Worker) {
        let (queue, lines) = mpsc::channel(options.queue_max.max(1));
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Self {
            queue,
            dropped: Arc::clone(&dropped),
        };
        let worker = Worker {
            lines,
            dropped,
            sink: Sink {
                options,
                file: None,
                is_failing: false,
            },
        };
        (writer, worker)
    }
}

impl LineLog for LineWriter {
    fn append(&self, line: String) {
        if line.len() > LINE_BYTES_MAX || self.queue.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The side that writes. Run it on a tracked task.
#[derive(Debug)]
pub struct Worker {
    lines: mpsc::Receiver<String>,
    dropped: Arc<AtomicU64>,
    sink: Sink,
}

impl Worker {
    /// Writes until `shutdown` is cancelled or every writer is gone, then writes what is still waiting.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self {
            mut lines,
            dropped,
            mut sink,
        } = self;
        let mut batch = Vec::with_capacity(BATCH_LINES_MAX);
        loop {
            let count = tokio::select! {
                count = lines.recv_many(&mut batch, BATCH_LINES_MAX) => count,
                () = shutdown.cancelled(), if !lines.is_closed() => {
                    // What is in the queue stays readable; nothing new comes in.
                    lines.close();
                    continue;
                }
            };
            if count == 0 {
                return;
            }
            if !lines.is_closed() {
                shutdown.run_until_cancelled(tokio::time::sleep(GATHER)).await;
                while batch.len() < BATCH_LINES_MAX
                    && let Ok(line) = lines.try_recv()
                {
                    batch.push(line);
                }
            }
            let count = batch.len();
            let taken = std::mem::replace(&mut batch, Vec::with_capacity(BATCH_LINES_MAX));
            let options = sink.options.clone();
            let written = tokio::task::spawn_blocking(move || {
                let lost = sink.write(&taken);
                (sink, lost)
            });
            sink = match written.await {
                Ok((sink, lost)) => {
                    dropped.fetch_add(lost, Ordering::Relaxed);
                    sink
                }
                Err(_stopped) => {
                    dropped.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
                    Sink {
                        options,
                        file: None,
                        is_failing: true,
                    }
                }
            };
        }
    }
}

/// The open file.
#[derive(Debug)]
struct Sink {
    options: Options,
    file: Option<Open>,
    is_failing: bool,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
}

impl Sink {
    /// Writes every line it can and says how many it could not.
    fn write(&mut self, lines: &[String]) -> u64 {
        let mut lost = 0;
        for (index, line) in lines.iter().enumerate() {
            match self.write_line(line, index == 0) {
                Ok(()) if self.is_failing => {
                    self.is_failing = false;
                    tracing::info!(path = %self.options.path.display(), "a log file can be written again");
                }
                Ok(()) => {}
                Err(problem) => {
                    lost += 1;
                    self.file = None;
                    if !self.is_failing {
                        self.is_failing = true;
                        tracing::warn!(
                            path = %self.options.path.display(),
                            %problem,
                            "a log file cannot be written; its lines are dropped and counted until it can"
                        );
                    }
                }
            }
        }
        lost
    }

    fn write_line(&mut self, line: &str, is_first: bool) -> std::io::Result<()> {
        if is_first && !self.is_current() {
            self.file = None;
        }
        let mut bytes = line.replace(['\n', '\r'], " ").into_bytes();
        bytes.push(b'\n');
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let mut open = match self.file.take() {
            Some(open) => open,
            None => open_log(&self.options.path)?,
        };
        if open.bytes > 0 && open.bytes.saturating_add(count) > self.options.rotate_bytes {
            drop(open);
            put_aside(&self.options.path, self.options.keep)?;
            open = open_log(&self.options.path)?;
        }
        // One call a line: a reader never sees half of one unless the disk is full.
        open.file.write_all(&bytes)?;
        open.bytes = open.bytes.saturating_add(count);
        self.file = Some(open);
        Ok(())
    }

    /// Whether the open file still stands at its path: someone else may have moved or removed it.
    fn is_current(&self) -> bool {
        let Some(open) = &self.file else { return false };
        match (open.file.metadata(), std::fs::metadata(&self.options.path)) {
            (Ok(ours), Ok(theirs)) => (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()),
            (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
        }
    }
}

fn open_log(path: &Path) -> std::io::Result<Open> {
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let bytes = file.metadata()?.len();
    Ok(Open { file, bytes })
}

/// Moves `log` to `log.1`, `log.1` to `log.2` and so on; the oldest goes.
fn put_aside(path: &Path, keep: usize) -> std::io::Result<()> {
    let numbered = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    if keep == 0 {
        return std::fs::remove_file(path);
    }
    for number in (1..keep).rev() {
        match std::fs::rename(numbered(number), numbered(number + 1)) {
            Err(problem) if problem.kind() != std::io::ErrorKind::NotFound => return Err(problem),
            Ok(()) | Err(_) => {}
        }
    }
    std::fs::rename(path, numbered(1))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    /// Hands over `lines`, then shuts the worker down and waits for it.
    async fn write_all(options: Options, lines: &[&str]) -> u64 {
        let (writer, worker) = LineWriter::open(options);
        for line in lines {
            writer.append((*line).to_owned());
        }
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        worker.run(shutdown).await;
        writer.dropped()
    }

    #[tokio::test]
    async fn lines_are_drained_at_shutdown_into_a_private_file() -> Outcome {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("logs/agents/tools.jsonl");
        assert_eq!(
            write_all(Options::new(&path), &["{\"a\":1}", "two\nlines"]).await,
            0
        );
        assert_eq!(write_all(Options::new(&path), &["later"]).await, 0);
        assert_eq!(std::fs::read_to_string(&path)?, "{\"a\":1}\ntwo lines\nlater\n");
        assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
        Ok(())
    }

    #[tokio::test]
    async fn a_full_queue_drops_and_counts_and_never_waits() -> Outcome {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x.jsonl");
        let options = Options {
            queue_max: 2,
            ..Options::new(&path)
        };
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        assert_eq!(write_all(options, &[&long, "a", "b", "c", "d"]).await, 3);
        assert_eq!(std::fs::read_to_string(&path)?, "a\nb\n");
        Ok(())
    }

    #[tokio::test]
    async fn files_rotate_by_size_and_the_oldest_goes() -> Outcome {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x.jsonl");
        let options = Options {
            rotate_bytes: 12,
            keep: 2,
            ..Options::new(&path)
        };
        assert_eq!(
            write_all(
                options,
                &["11111", "22222", "33333", "44444", "55555", "66666", "7"]
            )
            .await,
            0
        );
        assert_eq!(std::fs::read_to_string(&path)?, "7\n");
        assert_eq!(
            std::fs::read_to_string(folder.path().join("x.jsonl.1"))?,
            "55555\n66666\n"
        );
        assert_eq!(
            std::fs::read_to_string(folder.path().join("x.jsonl.2"))?,
            "33333\n44444\n"
        );
        assert!(!folder.path().join("x.jsonl.3").exists());
        Ok(())
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_had_costs_lines_and_nothing_else() -> Outcome {
        let folder = tempfile::tempdir()?;
        crate::files::write_private(&folder.path().join("logs"), b"a file where a folder should be")?;
        let path = folder.path().join("logs/x.jsonl");
        assert_eq!(write_all(Options::new(&path), &["a", "b"]).await, 2);
        Ok(())
    }

    #[test]
    fn a_sink_recovers_when_its_path_does_and_when_its_file_was_moved() -> Outcome {
        let folder = tempfile::tempdir()?;
        let blocker = folder.path().join("logs");
        crate::files::write_private(&blocker, b"")?;
        let path = blocker.join("x.jsonl");
        let mut sink = Sink {
            options: Options::new(&path),
            file: None,
            is_failing: false,
        };
        assert_eq!(sink.write(&["lost".to_owned()]), 1);
        std::fs::remove_file(&blocker)?;
        assert_eq!(sink.write(&["kept".to_owned()]), 0);
        std::fs::rename(&path, folder.path().join("moved"))?;
        assert_eq!(sink.write(&["anew".to_owned()]), 0);
        assert_eq!(std::fs::read_to_string(&path)?, "anew\n");
        assert_eq!(std::fs::read_to_string(folder.path().join("moved"))?, "kept\n");
        Ok(())
    }
}

//! Kills a process with SIGKILL while it indexes a folder, again and again, and looks at what is left.
//!
//! After each kill every document that is there is there whole, and what a child saw done is never done again: in the
//! end each document was put in exactly once.

use std::{
    error::Error,
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use tidegate_core::{
    clock::{Clock, Timestamp},
    knowledge::{DocumentState, Filter},
    port::ChunkStore,
};
use tidegate_kb::{
    authority::Table,
    embed::builtin::Builtin,
    ingest::{Ingest, MayRead, Options, Parts},
    parse,
};
use tidegate_store::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const DOCUMENTS: usize = 120;
/// Every so many documents one is so long that it is put in steps.
const LONG_EVERY: usize = 8;
const LIMIT: Duration = Duration::from_mins(2);

#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(4_000_000_000).unwrap_or_default()
    }
}

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, folder] = arguments.as_slice()
        && flag == "--child"
    {
        return runtime.block_on(child(Path::new(folder)));
    }
    if arguments.iter().any(|argument| argument == "--list") {
        return list(&arguments);
    }
    let folder = tempfile::tempdir()?;
    make(&folder.path().join("bank"))?;
    let mut rounds = 0;
    // Each round is let go a little further than the one before.
    while !kill_a_child(folder.path(), 1 + rounds % 9)? {
        rounds += 1;
        runtime
            .block_on(inspect(folder.path(), false))
            .map_err(|error| format!("round {rounds}: {error}"))?;
    }
    let chunks = runtime.block_on(inspect(folder.path(), true))?;
    if rounds < 3 {
        return Err(format!("only {rounds} kills").into());
    }
    writeln!(
        std::io::stdout(),
        "{rounds} kills: {DOCUMENTS} documents, {chunks} chunks, each document put in once"
    )?;
    Ok(())
}

fn sections(number: usize) -> usize {
    if number.is_multiple_of(LONG_EVERY) { 150 } else { 3 }
}

fn make(bank: &Path) -> Outcome {
    for number in 0..DOCUMENTS {
        let mut text = format!("# Document {number}\n");
        for section in 0..sections(number) {
            write!(
                text,
                "\n## Section {section}\n\nwords of {number} and {section}\n"
            )?;
        }
        let path = bank.join(format!("{number}.md"));
        std::fs::create_dir_all(bank)?;
        tidegate_io::files::write_private(&path, text.as_bytes())?;
    }
    Ok(())
}

fn database(folder: &Path) -> PathBuf {
    folder.join("data/tidegate.db")
}

async fn open(folder: &Path) -> Outcome<(Store, TaskTracker, CancellationToken)> {
    let options = tidegate_store::Options {
        path: database(folder),
        ..tidegate_store::Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Later)).await?;
    let (tracker, shutdown) = (TaskTracker::new(), CancellationToken::new());
    tracker.spawn(worker.run(shutdown.clone()));
    tracker.close();
    Ok((store, tracker, shutdown))
}

/// Indexes, and says how far it is.
async fn child(folder: &Path) -> Outcome {
    let (store, tracker, _shutdown) = open(folder).await?;
    let (ingest, task) = Ingest::new(Parts {
        store: Arc::new(store),
        embedder: Arc::new(Builtin::load()?),
        parser: parse::Worker::new("/nonexistent", parse::Options::default()),
        authority: Table::default(),
        clock: Arc::new(Later),
        may_read: MayRead::all(),
        options: Options {
            folder: folder.join("bank"),
            watch: false,
            ..Options::default()
        },
    })?;
    let mut progress = ingest.progress();
    tracker.reopen();
    tracker.spawn(task.run(CancellationToken::new()));
    ingest.rescan();
    let mut done = 0;
    loop {
        tokio::select! {
            settled = ingest.settled(LIMIT) => {
                return say(if settled { "complete" } else { "stuck" });
            }
            changed = progress.changed() => {
                changed?;
                let now = progress.borrow_and_update().done;
                if now > done {
                    done = now;
                    say(&format!("done {now}"))?;
                }
            }
        }
    }
}

fn say(line: &str) -> Outcome {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

/// What a runner that asks is told: there is one test, and it is not ignored
/// (<https://nexte.st/docs/design/custom-test-harnesses/>).
fn list(arguments: &[String]) -> Outcome {
    if !arguments.iter().any(|argument| argument == "--ignored") {
        writeln!(std::io::stdout(), "indexing_goes_on_where_it_was_killed: test")?;
    }
    Ok(())
}

/// Whether the child came to its end before it was killed.
#[expect(
    clippy::disallowed_methods,
    reason = "the child is this test itself; nothing else is started"
)]
fn kill_a_child(folder: &Path, lines: usize) -> Outcome<bool> {
    let mut child = std::process::Command::new(std::env::current_exe()?)
        .arg("--child")
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let mut is_complete = false;
    for (seen, line) in BufReader::new(output).lines().enumerate() {
        is_complete = line? == "complete";
        if seen + 1 >= lines && !is_complete {
            child.kill()?;
            break;
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(is_complete)
}

/// Every document that is there is whole and was put in once; gives how many chunks there are.
async fn inspect(folder: &Path, is_complete: bool) -> Outcome<u64> {
    let (store, tracker, shutdown) = open(folder).await?;
    let documents = store.documents(&Filter::default(), None, 10_000).await?;
    let mut total = 0;
    for document in &documents {
        let DocumentState::Indexed { chunks, generation } = document.state else {
            return Err(format!("{} failed", document.path).into());
        };
        let found = store.document_chunks(&document.path, 0, 10_000).await?;
        let number: usize = document.path.trim_end_matches(".md").parse()?;
        let expected = sections(number);
        if generation != 1 || found.len() != expected || chunks != expected as u64 {
            return Err(format!(
                "{}: generation {generation}, {} chunks",
                document.path,
                found.len()
            )
            .into());
        }
        total += chunks;
    }
    let counts = store.counts(tidegate_model().as_deref()).await?;
    if counts.chunks != total || counts.embedded != total {
        return Err(format!("{counts:?} where there are {total} chunks").into());
    }
    let hits = store
        .match_words(&["words".to_owned()], &Filter::default(), 10_000)
        .await?;
    if hits.len() as u64 != total.min(10_000) {
        return Err(format!("{} hits for {total} chunks", hits.len()).into());
    }
    if is_complete && documents.len() != DOCUMENTS {
        return Err(format!("{} documents", documents.len()).into());
    }
    shutdown.cancel();
    tracker.wait().await;
    Ok(total)
}

fn tidegate_model() -> Option<String> {
    use tidegate_core::port::Embedder as _;
    Builtin::load().ok().map(|builtin| builtin.model().id.clone())
}

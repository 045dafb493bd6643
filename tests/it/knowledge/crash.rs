//! `kill -9` while documents are indexed: nothing that was done is lost, and nothing of it is done again.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde_json::Value;
use tidegate::clock::SystemClock;
use tidegate_core::{
    knowledge::{DocumentState, Filter},
    port::ChunkStore as _,
};
use tidegate_store::Store;
use tidegate_testkit::Embeddings;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::wait_until;
use crate::support::{Daemon, Setup};

const DOCUMENTS: usize = 240;
/// The process is killed when so many documents are in the index.
const MOMENTS: [u64; 4] = [1, 40, 110, 180];
/// Files that are read at once; as many may be under way when the end comes.
const WORKERS: usize = 2;

/// A document of a few chunks whose words are its own.
fn document(number: usize) -> String {
    let mut text = format!("# Regulation {number}\n");
    for section in 0..3 {
        write!(text, "\n## Section {section}\n\n").unwrap();
        for word in 0..40 {
            write!(text, "word{number}x{section}x{word} ").unwrap();
        }
        text.push('\n');
    }
    text
}

/// By path: which time it was put in, and how many chunks it has. Looked at in the files of a process that is gone.
async fn contents(daemon: &Daemon) -> BTreeMap<String, (u64, u64)> {
    let options = tidegate_store::Options {
        path: daemon.path("data/tidegate.db"),
        ..tidegate_store::Options::default()
    };
    let clock = Arc::new(SystemClock::new(jiff::tz::TimeZone::UTC));
    let (store, worker) = Store::open(options, clock).await.unwrap();
    let (tracker, shutdown) = (TaskTracker::new(), CancellationToken::new());
    tracker.spawn(worker.run(shutdown.clone()));
    tracker.close();
    let mut contents = BTreeMap::new();
    for document in store.documents(&Filter::default(), None, 10_000).await.unwrap() {
        let DocumentState::Indexed { chunks, generation } = document.state else {
            panic!("{document:?}");
        };
        let found = store.document_chunks(&document.path, 0, 10_000).await.unwrap();
        assert_eq!(found.len() as u64, chunks, "{} is there in part", document.path);
        contents.insert(document.path, (generation, chunks));
    }
    shutdown.cancel();
    tracker.wait().await;
    contents
}

async fn until(daemon: &Daemon, is_there: impl Fn(&Value) -> bool) {
    wait_until("the documents are indexed", async || {
        let (_, status) = daemon.get("/v1/admin/kb").await;
        if is_there(&status) {
            Ok(())
        } else {
            Err(status.to_string())
        }
    })
    .await;
}

#[tokio::test]
async fn a_killed_server_goes_on_where_it_was() {
    let embeddings = Embeddings::start(32).await.unwrap();
    let mut setup = Setup::default().config(&format!(
        "[kb]\nworkers_max = {WORKERS}\n[embeddings]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"scripted\"",
        embeddings.base_url()
    ));
    for number in 0..DOCUMENTS {
        setup = setup.file(&format!("knowledge-bank/{number:03}.md"), &document(number));
    }
    let mut daemon = setup.start().await;
    let mut before: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (kills, moment) in MOMENTS.iter().enumerate() {
        until(&daemon, |status| status["documents"].as_u64() >= Some(*moment)).await;
        daemon.kill();
        let now = contents(&daemon).await;
        assert!(
            now.len() as u64 >= *moment,
            "kill {kills}: {} documents",
            now.len()
        );
        for (path, state) in &before {
            assert_eq!(now.get(path), Some(state), "kill {kills}: {path}");
        }
        before = now;
        daemon.launch().await;
    }
    // The notes that every daemon of a test begins with are one document more.
    let all = DOCUMENTS as u64 + 1;
    until(&daemon, |status| {
        status["documents"] == all && status["pending"] == 0 && status["embedded"] == status["chunks"]
    })
    .await;
    daemon.kill();
    let now = contents(&daemon).await;
    assert_eq!(now.len() as u64, all);
    for (path, state) in &now {
        assert_eq!(state.0, 1, "{path} was put in more than once");
    }
    // What was under way at a kill is embedded once more, and nothing else is. (The routing gate has its lists embedded
    // at every start.)
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    let texts = embeddings.batches().into_iter().flatten();
    for text in texts.filter(|text| text.contains("Regulation")) {
        *asked.entry(text).or_default() += 1;
    }
    let regulations = now.iter().filter(|(path, _)| *path != "notes.txt");
    let chunks: u64 = regulations.map(|(_, (_, chunks))| chunks).sum();
    let documents_max = MOMENTS.len() * WORKERS;
    let chunks_each = now.values().map(|(_, chunks)| *chunks).max().unwrap();
    let repeated: usize = asked.values().map(|count| count - 1).sum();
    assert_eq!(asked.len() as u64, chunks);
    assert!(
        repeated as u64 <= documents_max as u64 * chunks_each,
        "{repeated} of {chunks} were embedded again"
    );
}

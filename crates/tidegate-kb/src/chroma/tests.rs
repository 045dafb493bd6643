use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;
use tidegate_core::{
    knowledge::{Authority, CitationId, Filter, Format, Place},
    port::{FileMark, KnownFile, NewChunk, NewDocument},
    secret::Secret,
};
use tidegate_store::Store;
use tidegate_testkit::{Chroma as Server, ChromaFault};
use tokio_util::task::TaskTracker;

use super::*;

const MODEL: &str = "model-1";

/// A clock that is put forward by hand.
#[derive(Debug, Default)]
struct ByHand(AtomicI64);

impl Clock for ByHand {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

impl ByHand {
    fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

struct Bench {
    _folder: TempDir,
    store: Arc<Store>,
    clock: Arc<ByHand>,
    shutdown: CancellationToken,
    tracker: TaskTracker,
}

impl Bench {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let options = tidegate_store::Options {
            path: folder.path().join("tidegate.db"),
            ..tidegate_store::Options::default()
        };
        let clock = Arc::new(ByHand::default());
        let (store, worker) = Store::open(options, Arc::<ByHand>::clone(&clock)).await.unwrap();
        let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(worker.run(shutdown.clone()));
        Self {
            _folder: folder,
            store: Arc::new(store),
            clock,
            shutdown,
            tracker,
        }
    }

    /// A store with a document of so many chunks, each with a vector.
    async fn with(chunks: u64) -> Self {
        let bench = Self::new().await;
        bench.put("a.txt", chunks).await;
        bench.store.serve(MODEL).await.unwrap();
        bench
    }

    async fn put(&self, path: &str, chunks: u64) {
        let chunk = |at: u64| {
            let text = format!("{path} {at}");
            let mut digest = [0_u8; 32];
            for (place, byte) in text.bytes().enumerate() {
                digest[place % 32] = digest[place % 32].wrapping_mul(31).wrapping_add(byte);
            }
            digest[24..].copy_from_slice(&at.to_le_bytes());
            NewChunk {
                citation: CitationId::of_digest(&digest),
                sha256: digest,
                place: Place::default(),
                text,
                vector: Some(Some(turned(at))),
            }
        };
        let document = NewDocument {
            file: KnownFile {
                path: path.to_owned(),
                mark: FileMark {
                    bytes: 1,
                    modified_ns: 0,
                    sha256: [0; 32],
                },
                recipe: String::new(),
                failed: false,
            },
            title: path.to_owned(),
            format: Format::Text,
            authority: Authority::Secondary,
            at: self.clock.now(),
            content: Ok((0..chunks).map(chunk).collect()),
        };
        self.store.put(document, MODEL).await.unwrap();
    }

    fn index(&self, options: Options) -> Arc<Chroma> {
        let clock = Arc::<ByHand>::clone(&self.clock);
        let store: Arc<dyn ChunkStore> = Arc::<Store>::clone(&self.store);
        Arc::new(Chroma::new(store, options, clock).unwrap())
    }

    async fn follow(&self, index: &Chroma) -> Result<(), String> {
        let version = self.store.version().await.unwrap();
        let outcome = index.follow(MODEL, version).await;
        outcome.map_err(|error| error.to_string())
    }

    async fn close(self) {
        self.shutdown.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// A vector of length 1 whose direction is the number's.
fn turned(at: u64) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "a direction")]
    let angle = at as f32 * 0.001;
    vec![angle.cos(), angle.sin()]
}

fn at(server: &Server) -> Options {
    Options {
        url: server.url(),
        timeout_ms: 2_000,
        ..Options::default()
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_left_alone_for_longer_each_time() {
    let bench = Bench::with(3).await;
    let closed = tidegate_testkit::free_port().unwrap();
    let index = bench.index(Options {
        url: format!("http://127.0.0.1:{closed}"),
        ..Options::default()
    });
    assert_eq!((index.place(), index.problem()), ("chroma", None));
    let problem = bench.follow(&index).await.unwrap_err();
    assert!(problem.contains("does not answer"), "{problem}");
    assert!(index.problem().unwrap().contains("searches go by words"));

    let server = Server::start().await.unwrap();
    let index = bench.index(at(&server));
    server.set_fault(ChromaFault::Status(503));
    let mut asked = 0;
    for wait in [1, 2, 4, 8, 16, 30, 30] {
        let problem = bench.follow(&index).await.unwrap_err();
        assert!(problem.contains("503"), "{problem}");
        assert!(server.requests().len() > asked);
        asked = server.requests().len();
        bench.clock.forward(wait - 1);
        assert!(bench.follow(&index).await.is_err());
        assert_eq!(server.requests().len(), asked, "it rests");
        bench.clock.forward(1);
    }
    server.set_fault(ChromaFault::None);
    bench.follow(&index).await.unwrap();
    assert_eq!(index.problem(), None);
    assert_eq!(index.search(&turned(0), 5, 5, None).await.unwrap().len(), 3);
    bench.close().await;
}

#[tokio::test]
async fn every_way_of_failing_is_told_with_its_remedy() {
    let bench = Bench::with(3).await;
    let server = Server::start().await.unwrap();
    for (fault, words) in [
        (ChromaFault::Status(401), "kb.chroma_token"),
        (ChromaFault::Status(413), "smaller requests"),
        (ChromaFault::Status(302), "points elsewhere"),
        (ChromaFault::Status(422), "version 1"),
        (ChromaFault::Status(404), "kb.chroma_url"),
        (ChromaFault::Garbage, "kb.chroma_url"),
        (ChromaFault::Slow(Duration::from_secs(5)), "within 200 ms"),
    ] {
        let options = Options {
            timeout_ms: 200,
            ..at(&server)
        };
        // Before there is a connection, and once there is one.
        server.set_fault(fault.clone());
        let index = bench.index(options.clone());
        let problem = bench.follow(&index).await.unwrap_err();
        assert!(problem.contains(words), "{fault:?}: {problem}");

        server.set_fault(ChromaFault::None);
        let index = bench.index(options);
        bench.follow(&index).await.unwrap();
        server.set_fault(fault.clone());
        let problem = index
            .search(&turned(0), 5, 5, None)
            .await
            .unwrap_err()
            .to_string();
        let words = if fault == ChromaFault::Status(404) {
            "taken away"
        } else {
            words
        };
        assert!(problem.contains(words), "{fault:?}: {problem}");
        assert!(
            !problem.contains("out of order"),
            "the server's own words: {problem}"
        );
        server.set_fault(ChromaFault::None);
        bench.clock.forward(60);
        bench.follow(&index).await.unwrap();
    }
    bench.close().await;
}

#[tokio::test]
async fn a_collection_of_another_space_or_of_somebody_else_is_refused_and_left_alone() {
    let bench = Bench::with(3).await;
    let server = Server::start().await.unwrap();
    for (name, space, rows, words) in [
        ("theirs-l2", "l2", 0, "by `l2`"),
        ("theirs-ip", "ip", 2, "by `ip`"),
        ("theirs", "cosine", 2, "2 rows that tidegate did not write"),
    ] {
        server.add_collection(DATABASE, name, space, rows);
        let index = bench.index(Options {
            collection: name.to_owned(),
            ..at(&server)
        });
        let problem = bench.follow(&index).await.unwrap_err();
        assert!(
            problem.contains(words) && problem.contains("set `kb.chroma_collection`"),
            "{problem}"
        );
        assert!(index.problem().unwrap().contains(words));
        let there = server.collections();
        assert!(there.contains(&(format!("{DATABASE}/{name}"), rows)), "{there:?}");
    }
    // An empty one that compares by cosine does no harm.
    server.add_collection(DATABASE, "empty", "cosine", 0);
    let index = bench.index(Options {
        collection: "empty".to_owned(),
        ..at(&server)
    });
    bench.follow(&index).await.unwrap();
    bench.close().await;
}

#[tokio::test]
async fn what_chroma_has_lost_is_written_again() {
    let bench = Bench::with(5).await;
    let server = Server::start().await.unwrap();
    let index = bench.index(at(&server));
    bench.follow(&index).await.unwrap();
    // It came back with nothing.
    server.clear();
    let error = index.search(&turned(0), 5, 5, None).await.unwrap_err();
    assert!(error.to_string().contains("taken away"), "{error}");
    bench.follow(&index).await.unwrap();
    assert_eq!(index.search(&turned(0), 5, 5, None).await.unwrap().len(), 5);
    // It came back with some of it: seen by the count, with the next process.
    server.lose(DATABASE, COLLECTION, 2);
    let restarted = bench.index(at(&server));
    bench.follow(&restarted).await.unwrap();
    assert_eq!(restarted.search(&turned(0), 5, 5, None).await.unwrap().len(), 5);
    // Every row has its text.
    let documents = server.documents(DATABASE, COLLECTION);
    assert_eq!(documents.len(), 5);
    assert!(
        documents
            .iter()
            .all(|document| document.as_str().is_some_and(|text| text.starts_with("a.txt ")))
    );
    bench.close().await;
}

#[tokio::test]
async fn what_is_there_is_not_written_again() {
    let bench = Bench::with(20).await;
    let server = Server::start().await.unwrap();
    let written = || {
        let requests = server.requests();
        let writes = requests
            .iter()
            .filter(|request| request.path.ends_with("/upsert"));
        writes
            .map(|request| request.body["ids"].as_array().unwrap().len())
            .sum::<usize>()
    };
    let options = Options {
        batch_rows: 8,
        ..at(&server)
    };
    bench.follow(&bench.index(options.clone())).await.unwrap();
    assert_eq!(written(), 20);
    let most = server
        .requests()
        .into_iter()
        .filter(|request| request.path.ends_with("/upsert"));
    assert!(
        most.map(|request| request.body["ids"].as_array().unwrap().len())
            .max()
            <= Some(8)
    );
    bench.put("b.txt", 2).await;
    bench.follow(&bench.index(options.clone())).await.unwrap();
    assert_eq!(written(), 22);
    let index = bench.index(options);
    bench.follow(&index).await.unwrap();
    let asked = server.requests().len();
    bench.follow(&index).await.unwrap();
    assert_eq!((written(), server.requests().len()), (22, asked));
    bench.close().await;
}

#[tokio::test]
async fn much_is_written_in_the_background_while_searches_go_by_words() {
    let bench = Bench::with(1_500).await;
    let server = Server::start().await.unwrap();
    let index = bench.index(at(&server));
    let problem = bench.follow(&index).await.unwrap_err();
    assert!(problem.contains("512 of 1500"), "{problem}");
    assert_eq!(index.copied(), Some((512, 1_500)));
    assert!(index.problem().unwrap().contains("being copied"));
    bench
        .tracker
        .spawn(Arc::clone(&index).keep_up(bench.shutdown.clone()));
    while let Err(problem) = bench.follow(&index).await {
        assert!(problem.contains("being copied"), "{problem}");
        tokio::task::yield_now().await;
    }
    assert_eq!((index.copied(), index.problem()), (None, None));
    assert_eq!(
        server.collections(),
        [(format!("{DATABASE}/{COLLECTION}"), 1_500)]
    );
    bench.close().await;
}

#[tokio::test]
async fn answers_out_of_range_are_held_in_it_and_rows_that_are_gone_left_out() {
    let bench = Bench::with(3).await;
    let server = Server::start().await.unwrap();
    let index = bench.index(at(&server));
    bench.follow(&index).await.unwrap();
    server.set_fault(ChromaFault::Strange);
    let found = index.search(&turned(0), 5, 0, None).await.unwrap();
    let scores: Vec<f32> = found.iter().map(|(_, score)| *score).collect();
    assert_eq!(scores, [1.0, 0.0, -1.0]);
    assert_eq!(index.search(&turned(0), 5, 5, None).await.unwrap(), []);
    bench.close().await;
}

#[tokio::test]
async fn the_token_goes_with_every_request_and_is_never_shown() {
    let bench = Bench::with(3).await;
    let server = Server::start().await.unwrap();
    server.ask_for("ct-0123456789");
    let problem = bench.follow(&bench.index(at(&server))).await.unwrap_err();
    assert!(problem.contains("set `kb.chroma_token`"), "{problem}");
    let asked = server.requests().len();
    let index = bench.index(Options {
        token: Some(Secret::new("ct-0123456789")),
        ..at(&server)
    });
    bench.follow(&index).await.unwrap();
    index.search(&turned(0), 5, 5, None).await.unwrap();
    for request in server.requests().iter().skip(asked) {
        let header = request.headers.get("authorization").map(String::as_str);
        assert_eq!(header, Some("Bearer ct-0123456789"), "{}", request.path);
    }
    assert!(!format!("{index:?}").contains("0123456789"));
    bench.close().await;
}

#[tokio::test]
async fn two_databases_do_not_fight_over_a_collection() {
    let (first, second) = (Bench::with(3).await, Bench::with(7).await);
    let server = Server::start().await.unwrap();
    let (one, two) = (first.index(at(&server)), second.index(at(&server)));
    first.follow(&one).await.unwrap();
    // A database that was made anew takes its collection over.
    second.follow(&two).await.unwrap();
    assert_eq!(server.collections(), [(format!("{DATABASE}/{COLLECTION}"), 7)]);
    // The one that had it before sees that it is another's now, and does not take it back.
    one.search(&turned(0), 5, 5, None).await.unwrap_err();
    let problem = first.follow(&one).await.unwrap_err();
    assert!(problem.contains("another tidegate writes"), "{problem}");
    assert_eq!(two.search(&turned(0), 10, 10, None).await.unwrap().len(), 7);
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn vectors_are_copied_counted_and_fetched_back() {
    let bench = Bench::with(1_000).await;
    let server = Server::start().await.unwrap();
    let index = bench.index(at(&server));
    for _ in 0..2 {
        let copied = index.copy().await.unwrap().unwrap();
        assert_eq!(
            (copied.kept, copied.rows, copied.model.as_str()),
            (1_000, 1_000, MODEL)
        );
    }
    let chunks = bench.store.document_chunks("a.txt", 0, 10).await.unwrap();
    let mut asked = chunks.clone();
    // The text has changed since: its vector is another's.
    asked[3].text.push('!');
    let found = index.recover(MODEL, &asked).await.unwrap();
    assert_eq!(found.len(), 9);
    assert_eq!(found[&chunks[7].key], turned(7));
    assert_eq!(index.recover("model-2", &asked).await.unwrap().len(), 0);
    let elsewhere = Bench::with(10).await;
    let other = elsewhere.index(at(&server));
    assert_eq!(other.recover(MODEL, &asked).await.unwrap().len(), 0);
    let empty = Bench::new().await;
    assert_eq!(empty.index(at(&server)).copy().await.unwrap(), None);
    for bench in [bench, elsewhere, empty] {
        bench.close().await;
    }
}

#[tokio::test]
async fn a_filter_is_in_the_question_and_in_pieces_that_chroma_takes() {
    let bench = Bench::with(9_000).await;
    let server = Server::start().await.unwrap();
    let index = bench.index(Options {
        timeout_ms: 60_000,
        ..at(&server)
    });
    index.copy().await.unwrap();
    let filter = Filter::default();
    let keys = bench.store.keys_within(&filter).await.unwrap();
    let search = async |keys: &[ChunkKey]| {
        let within = Within {
            filter: &filter,
            keys,
        };
        let before = server.requests().len();
        let found = index.search(&turned(4_500), 5, 5, Some(within)).await.unwrap();
        let asked: Vec<usize> = server
            .requests()
            .iter()
            .skip(before)
            .map(|request| request.body["where"]["key"]["$in"].as_array().unwrap().len())
            .collect();
        (found, asked)
    };
    let (found, mut asked) = search(&keys).await;
    asked.sort_unstable();
    assert_eq!((found[0].0, asked), (keys[4_500], vec![1_000, 8_000]));
    // Few are compared here.
    let (found, asked) = search(&keys[4_000..4_020]).await;
    assert_eq!((found[0].0, asked), (keys[4_019], vec![]));
    bench.close().await;
}

//! What every index over vectors keeps to, whoever searches: the same calls, the same results. Each case has a database
//! of its own, and an index of its own over it.

use std::{collections::HashMap, sync::Arc};

use tempfile::TempDir;
use tidegate_core::{
    clock::{Clock, Timestamp},
    knowledge::{Authority, CitationId, Filter, Format, Place},
    port::{ChunkKey, ChunkStore, FileMark, KnownFile, NewChunk, NewDocument},
};
use tidegate_kb::index::{IndexError, VectorIndex, Within};
use tidegate_store::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Makes an index over a store; the name is one of the case's own.
pub(crate) type Make<'a> = &'a (dyn Fn(Arc<dyn ChunkStore>, &str) -> Arc<dyn VectorIndex> + Sync);

/// The names of the cases, and how to run one.
pub(crate) const CASES: [&str; 8] = [
    "nearest-first",
    "changes-are-followed",
    "filters-come-first",
    "large-filters-are-exact",
    "without-a-vector",
    "another-model",
    "goes-on-after-a-restart",
    "odd-texts",
];

/// Runs a case.
pub(crate) async fn run(name: &str, make: Make<'_>) {
    let bench = Bench::new().await;
    let index = make(bench.store(), name);
    match name {
        "nearest-first" => nearest_first(&bench, &*index).await,
        "changes-are-followed" => changes_are_followed(&bench, &*index).await,
        "filters-come-first" => filters_come_first(&bench, &*index).await,
        "large-filters-are-exact" => large_filters_are_exact(&bench, &*index).await,
        "without-a-vector" => without_a_vector(&bench, &*index).await,
        "another-model" => another_model(&bench, &*index).await,
        "goes-on-after-a-restart" => goes_on_after_a_restart(&bench, &*index, name, make).await,
        "odd-texts" => odd_texts(&bench, &*index).await,
        other => panic!("there is no case `{other}`"),
    }
    bench.close().await;
}

const MODEL: &str = "model-1";
const DIMENSIONS: usize = 24;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

struct Bench {
    _folder: TempDir,
    store: Arc<Store>,
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
        let (store, worker) = Store::open(options, Arc::new(Still)).await.unwrap();
        let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(worker.run(shutdown.clone()));
        tracker.close();
        Self {
            _folder: folder,
            store: Arc::new(store),
            shutdown,
            tracker,
        }
    }

    fn store(&self) -> Arc<dyn ChunkStore> {
        Arc::<Store>::clone(&self.store)
    }

    /// A document of chunks with these vectors; their keys.
    async fn put(&self, path: &str, chunks: &[(&str, Option<Vec<f32>>)]) -> Vec<ChunkKey> {
        let content = (0_u64..)
            .zip(chunks)
            .map(|(at, (text, vector))| {
                let mut digest = [0_u8; 32];
                for (place, byte) in format!("{path} {at} {text}").bytes().enumerate() {
                    digest[place % 32] = digest[place % 32].wrapping_mul(31).wrapping_add(byte);
                }
                NewChunk {
                    citation: CitationId::of_digest(&digest),
                    sha256: digest,
                    place: Place::default(),
                    text: (*text).to_owned(),
                    vector: Some(vector.clone()),
                }
            })
            .collect();
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
            at: Still.now(),
            content: Ok(content),
        };
        self.store.put(document, MODEL).await.unwrap();
        let stored = self.store.document_chunks(path, 0, 10_000).await.unwrap();
        stored.into_iter().map(|chunk| chunk.key).collect()
    }

    /// Several documents of as many chunks each, of which each has a vector; the vectors by key.
    async fn fill(&self, documents: u64, chunks: u64) -> HashMap<ChunkKey, Vec<f32>> {
        let mut all = HashMap::new();
        for document in 0..documents {
            let seeds = (0..chunks).map(|chunk| document * chunks + chunk);
            let vectors: Vec<Vec<f32>> = seeds.map(|seed| vector(seed, DIMENSIONS)).collect();
            let content: Vec<_> = vectors
                .iter()
                .map(|vector| ("text", Some(vector.clone())))
                .collect();
            let keys = self.put(&format!("d{document:03}.txt"), &content).await;
            all.extend(keys.into_iter().zip(vectors));
        }
        self.store.serve(MODEL).await.unwrap();
        all
    }

    async fn follow(&self, index: &dyn VectorIndex) {
        let model = self.store.serving_model().await.unwrap().unwrap();
        let version = self.store.version().await.unwrap();
        // An index that lies elsewhere may have more to copy than one search does.
        for _ in 0..100 {
            match index.follow(&model, version).await {
                Ok(()) => return,
                Err(IndexError::Unavailable(why)) if why.contains("being copied") => {}
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("it does not catch up");
    }

    async fn close(self) {
        self.shutdown.cancel();
        self.tracker.wait().await;
    }
}

/// A vector of length 1 from a generator of its own, so that a failure repeats.
fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        #[expect(clippy::cast_precision_loss, reason = "31 bits of noise")]
        let number = (state >> 33) as f32 / (1_u64 << 31) as f32;
        number - 0.5
    };
    let vector: Vec<f32> = (0..dimensions).map(|_| next()).collect();
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.into_iter().map(|value| value / length).collect()
}

fn cosine(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

/// What a search must find, by comparing everything.
fn expected<'a>(
    query: &[f32],
    vectors: impl IntoIterator<Item = (&'a ChunkKey, &'a Vec<f32>)>,
) -> Vec<(ChunkKey, f32)> {
    let mut all: Vec<(ChunkKey, f32)> = vectors
        .into_iter()
        .map(|(key, vector)| (*key, cosine(query, vector)))
        .collect();
    all.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    all
}

/// Compares with what must be found where `exact` of the nearest get full cosines. An index may choose those by
/// shortened vectors, so near their end one may stand in for another: the first quarter is held to the key, the scores of
/// all of them to the digit, and what follows to its order.
fn compare(found: &[(ChunkKey, f32)], wanted: &[(ChunkKey, f32)], exact: usize) {
    assert_eq!(found.len(), wanted.len());
    let held = if exact >= wanted.len() {
        wanted.len()
    } else {
        exact / 4
    };
    for ((key, score), (wanted_key, wanted_score)) in found.iter().zip(wanted).take(held) {
        assert_eq!(key, wanted_key, "{score} {wanted_score}");
    }
    let scores: HashMap<ChunkKey, f32> = wanted.iter().copied().collect();
    for (key, score) in found.iter().take(exact) {
        if let Some(wanted) = scores.get(key) {
            assert!((score - wanted).abs() < 1e-5, "{score} {wanted}");
        }
    }
    assert!(found.iter().all(|(_, score)| (-1.0..=1.0).contains(score)));
    assert!(
        found
            .iter()
            .skip(exact)
            .is_sorted_by(|left, right| left.1 >= right.1)
    );
}

async fn nearest_first(bench: &Bench, index: &dyn VectorIndex) {
    let vectors = bench.fill(6, 100).await;
    bench.follow(index).await;
    for seed in 10_000..10_010 {
        let query = vector(seed, DIMENSIONS);
        let wanted = expected(&query, &vectors);
        for (count, exact) in [(300, 40), (40, 10), (3, 12), (0, 0)] {
            let found = index.search(&query, count, exact, None).await.unwrap();
            compare(&found, &wanted[..count], exact);
        }
    }
    let all = index
        .search(&vector(1, DIMENSIONS), 5_000, 40, None)
        .await
        .unwrap();
    assert_eq!(all.len(), 600);
    // The same vector to the digit has a cosine of one.
    assert!((all[0].1 - 1.0).abs() < 1e-5, "{:?}", all[0]);
    let keys: Vec<ChunkKey> = vectors.keys().copied().take(7).chain([999_999]).collect();
    let given = index.vectors(&keys).await.unwrap();
    assert_eq!(given.len(), 7);
    assert!(given.iter().all(|(key, vector)| vectors[key] == *vector));
    assert_eq!(index.problem(), None);
}

async fn changes_are_followed(bench: &Bench, index: &dyn VectorIndex) {
    let mut vectors = bench.fill(3, 20).await;
    bench.follow(index).await;
    let query = vector(77_777, DIMENSIONS);
    let keys = bench.put("new.txt", &[("words", Some(query.clone()))]).await;
    bench.follow(index).await;
    let found = index.search(&query, 5, 5, None).await.unwrap();
    assert_eq!(found[0].0, keys[0]);

    // Another text at the same place, and then none.
    let other = vector(88_888, DIMENSIONS);
    let changed = bench
        .put("new.txt", &[("other words", Some(other.clone()))])
        .await;
    bench.follow(index).await;
    vectors.insert(changed[0], other);
    compare(
        &index.search(&query, 61, 61, None).await.unwrap(),
        &expected(&query, &vectors),
        61,
    );
    let gone = bench
        .store
        .remove(vec!["new.txt".to_owned(), "d001.txt".to_owned()])
        .await
        .unwrap();
    assert_eq!(gone.removed.len(), 21);
    bench.follow(index).await;
    vectors.retain(|key, _| !gone.removed.contains(key));
    let found = index.search(&query, 100, 100, None).await.unwrap();
    compare(&found, &expected(&query, &vectors), 100);
    // A document that is renamed keeps its chunks.
    bench
        .store
        .rename("d000.txt", "renamed.txt", Vec::new())
        .await
        .unwrap();
    bench.follow(index).await;
    let again = index.search(&query, 100, 100, None).await.unwrap();
    compare(&again, &found, 100);
    // When nothing is left nothing is found.
    let all = ["renamed.txt", "d002.txt"].map(str::to_owned);
    bench.store.remove(all.to_vec()).await.unwrap();
    bench.follow(index).await;
    assert_eq!(index.search(&query, 100, 100, None).await.unwrap(), []);
}

async fn filters_come_first(bench: &Bench, index: &dyn VectorIndex) {
    let vectors = bench.fill(4, 50).await;
    bench.follow(index).await;
    let filter = Filter {
        paths: vec!["d002.txt".to_owned()],
        ..Filter::default()
    };
    let keys = bench.store.keys_within(&filter).await.unwrap();
    let query = vector(4_321, DIMENSIONS);
    let inside = vectors.iter().filter(|(key, _)| keys.contains(key));
    let wanted = expected(&query, inside);
    let within = Within {
        filter: &filter,
        keys: &keys,
    };
    let found = index.search(&query, 300, 40, Some(within)).await.unwrap();
    compare(&found, &wanted, 40);
    let few = index.search(&query, 3, 12, Some(within)).await.unwrap();
    compare(&few, &wanted[..3], 3);
    let nothing = Within {
        filter: &filter,
        keys: &[],
    };
    assert_eq!(index.search(&query, 10, 10, Some(nothing)).await.unwrap(), []);
}

async fn large_filters_are_exact(bench: &Bench, index: &dyn VectorIndex) {
    // More than is compared one by one, and more than goes into one filter of a server's.
    let vectors = bench.fill(24, 400).await;
    bench.follow(index).await;
    let filter = Filter::default();
    let mut all: Vec<ChunkKey> = vectors.keys().copied().collect();
    all.sort_unstable();
    for step in [1_usize, 2, 3] {
        let keys: Vec<ChunkKey> = all.iter().copied().skip(300).step_by(step).collect();
        let query = vector(1_000_000 + u64::try_from(step).unwrap(), DIMENSIONS);
        let inside = keys.iter().map(|key| (key, &vectors[key]));
        let mut wanted = expected(&query, inside);
        wanted.truncate(300);
        let within = Within {
            filter: &filter,
            keys: &keys,
        };
        let found = index.search(&query, 300, 40, Some(within)).await.unwrap();
        compare(&found, &wanted, 40);
        assert!(found.iter().all(|(key, _)| keys.binary_search(key).is_ok()));
    }
}

async fn without_a_vector(bench: &Bench, index: &dyn VectorIndex) {
    let known = vector(5, DIMENSIONS);
    let keys = bench
        .put("a.txt", &[("known", Some(known.clone())), ("unknown", None)])
        .await;
    bench.store.serve(MODEL).await.unwrap();
    bench.follow(index).await;
    let found = index.search(&known, 10, 10, None).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, keys[0]);
    assert_eq!(index.vectors(&keys).await.unwrap().len(), 1);
    // Its vector goes when the text is one that the model does not know any more.
    bench.put("a.txt", &[("unknown now", None)]).await;
    bench.follow(index).await;
    assert_eq!(index.search(&known, 10, 10, None).await.unwrap(), []);
}

async fn another_model(bench: &Bench, index: &dyn VectorIndex) {
    let vectors = bench.fill(2, 10).await;
    bench.follow(index).await;
    let query = vector(3, 7);
    let error = index.search(&query, 5, 5, None).await.unwrap_err();
    assert!(
        matches!(
            error,
            IndexError::Dimensions {
                query: 7,
                index: DIMENSIONS
            }
        ),
        "{error}"
    );
    // The vectors of the next one come beside those that serve, and are not among them until they do.
    let answers = vectors
        .keys()
        .map(|key| (*key, Some(vector(key.unsigned_abs(), 7))));
    let answers: Vec<_> = answers.collect();
    let shorter: HashMap<ChunkKey, Vec<f32>> = answers
        .iter()
        .filter_map(|(key, vector)| Some((*key, vector.clone()?)))
        .collect();
    bench.store.put_vectors("model-2", answers).await.unwrap();
    bench.follow(index).await;
    let found = index.search(&vector(8, DIMENSIONS), 50, 50, None).await.unwrap();
    compare(&found, &expected(&vector(8, DIMENSIONS), &vectors), 50);
    bench.store.serve("model-2").await.unwrap();
    bench.follow(index).await;
    let found = index.search(&query, 50, 50, None).await.unwrap();
    compare(&found, &expected(&query, &shorter), 50);
    assert_eq!(index.vectors(&[found[0].0]).await.unwrap()[&found[0].0].len(), 7);
}

async fn goes_on_after_a_restart(bench: &Bench, index: &dyn VectorIndex, name: &str, make: Make<'_>) {
    let mut vectors = bench.fill(3, 30).await;
    bench.follow(index).await;
    let added = vector(55, DIMENSIONS);
    let keys = bench.put("later.txt", &[("later", Some(added.clone()))]).await;
    vectors.insert(keys[0], added);
    let gone = bench.store.remove(vec!["d000.txt".to_owned()]).await.unwrap();
    vectors.retain(|key, _| !gone.removed.contains(key));
    let restarted = make(bench.store(), name);
    bench.follow(&*restarted).await;
    let query = vector(66, DIMENSIONS);
    let found = restarted.search(&query, 100, 100, None).await.unwrap();
    compare(&found, &expected(&query, &vectors), 100);
}

async fn odd_texts(bench: &Bench, index: &dyn VectorIndex) {
    let long = "w\u{f6}rter ".repeat(20_000);
    let same = vector(1, DIMENSIONS);
    let texts = [
        "",
        "\u{1f600} \"quoted\" \\ back",
        "line\nline\ttab\u{7}",
        "\u{5d0}\u{5d1}",
        long.as_str(),
    ];
    let chunks: Vec<_> = texts.iter().map(|text| (*text, Some(same.clone()))).collect();
    let keys = bench.put("odd.txt", &chunks).await;
    bench.store.serve(MODEL).await.unwrap();
    bench.follow(index).await;
    // Of equals the earlier one comes first.
    let found = index.search(&same, 10, 10, None).await.unwrap();
    let found: Vec<ChunkKey> = found.into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, keys);
}

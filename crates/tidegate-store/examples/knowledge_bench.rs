//! How long others wait for the writer while a large document is put, put again and removed: `cargo run --release -p
//! tidegate-store --example knowledge_bench -- [passages]`. Once all passages are equal, once all differ; with vectors
//! and without.

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate_core::{
    clock::{Clock, Timestamp},
    id::KeyId,
    key::{KeyPolicy, KeyRecord},
    knowledge::{Authority, CitationId, Format, Place},
    port::{ChunkStore, FileMark, KeyStore, KnownFile, NewChunk, NewDocument},
    secret::HashedKey,
};
use tidegate_store::{Options, Store};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A request body's worth of passages, by default.
const PASSAGES: usize = 24_000;
/// Words in a passage: some 1,400 bytes.
const WORDS: u64 = 200;
/// Numbers in a vector.
const DIMENSION: usize = 384;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// Which passages.
#[derive(Debug, Clone, Copy)]
struct Kind {
    is_equal: bool,
    has_vectors: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let passages = std::env::args()
        .nth(1)
        .map_or(Ok(PASSAGES), |text| text.parse())?;
    for (is_equal, has_vectors) in [(false, true), (true, true), (false, false), (true, false)] {
        let kind = Kind {
            is_equal,
            has_vectors,
        };
        let folder = tempfile::tempdir()?;
        let options = Options {
            path: folder.path().join("bench.db"),
            write_timeout_ms: 600_000,
            ..Options::default()
        };
        let (store, worker) = Store::open(options, Arc::new(Still)).await?;
        let (stop, working) = (CancellationToken::new(), TaskTracker::new());
        working.spawn(worker.run(stop.clone()));
        working.close();
        measure(&store, kind, passages).await?;
        stop.cancel();
        working.wait().await;
    }
    Ok(())
}

async fn measure(store: &Store, kind: Kind, passages: usize) -> Result<(), Box<dyn std::error::Error>> {
    let now = Timestamp::UNIX_EPOCH;
    writeln!(std::io::stdout(), "{passages} passages, {kind:?}")?;
    // A model that has answered something, so that there is something to look for.
    store.put(document("other.md", 40, 1, true, false), "m").await?;
    for (what, salt) in [("put", 0), ("put changed", 1)] {
        let large = document("large.md", passages, salt, kind.has_vectors, kind.is_equal);
        beside(store, what, now, store.put(large, "m")).await?;
    }
    beside(store, "remove", now, store.remove(vec!["large.md".to_owned()])).await
}

/// Does it, and short writes beside it, one after the other.
async fn beside<T, E: std::error::Error + 'static>(
    store: &Store,
    what: &str,
    now: Timestamp,
    work: impl Future<Output = Result<T, E>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (begun, mut waits) = (Instant::now(), Vec::new());
    let mut work = std::pin::pin!(work);
    let mut is_done = false;
    while !is_done {
        let key = KeyRecord {
            id: KeyId::new(format!("{what}{}", waits.len())),
            hash: HashedKey::from_digest([1; 32]),
            previous: None,
            created_at: now,
            last_used_at: None,
            policy: KeyPolicy::new("bench"),
        };
        let asked = Instant::now();
        let writing = store.insert(&key);
        tokio::pin!(writing);
        loop {
            tokio::select! {
                end = &mut work, if !is_done => { end?; is_done = true; }
                end = &mut writing => { end?; break; }
            }
        }
        waits.push(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let whole = begun.elapsed();
    waits.sort_unstable();
    let at = |percent: usize| {
        waits
            .get(waits.len() * percent / 100)
            .or(waits.last())
            .copied()
            .unwrap_or_default()
    };
    writeln!(
        std::io::stdout(),
        "  {what:<12} {whole:>9.1?}; beside it {} short writes: p50 {:>9.1?}  p99 {:>9.1?}  max {:>9.1?}",
        waits.len(),
        at(50),
        at(99),
        at(100)
    )?;
    Ok(())
}

fn document(path: &str, passages: usize, salt: u64, has_vectors: bool, is_equal: bool) -> NewDocument {
    let chunk = |number: usize| {
        let of = if is_equal {
            salt << 40
        } else {
            (salt << 40) | number as u64
        };
        let mut sha256 = [7; 32];
        sha256[..8].copy_from_slice(&of.to_le_bytes());
        let mut citation = sha256;
        citation[..8].copy_from_slice(&((salt << 40) | number as u64).to_le_bytes());
        NewChunk {
            citation: CitationId::of_digest(&citation),
            sha256,
            place: Place {
                headings: vec!["Part".to_owned()],
                page: None,
                bytes: 0..1,
            },
            text: text(of),
            vector: has_vectors.then(|| Some(vec![0.5; DIMENSION])),
        }
    };
    NewDocument {
        file: KnownFile {
            path: path.to_owned(),
            mark: FileMark {
                bytes: 10,
                modified_ns: 5,
                sha256: [1; 32],
            },
            recipe: "v1".to_owned(),
            failed: false,
        },
        title: "Title".to_owned(),
        format: Format::Markdown,
        authority: Authority::Secondary,
        at: Timestamp::UNIX_EPOCH,
        content: Ok((0..passages).map(chunk).collect()),
    }
}

/// Words of six letters, of which there are some thousands.
fn text(of: u64) -> String {
    let mut state = of.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..WORDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut word = state % 20_000;
        for _ in 0..6 {
            text.push(char::from(b'a' + (word % 8) as u8));
            word /= 8;
        }
        text.push(' ');
    }
    text
}

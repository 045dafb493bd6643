//! Indexes a folder of made-up documents with the built-in embedder and says how long everything took.
//!
//! `cargo run --release -p tidegate-kb --example ingest_bench [DOCUMENTS]` (10,000 unless said otherwise). Documents
//! have two sections of some 300 and 100 words, drawn as words in texts are: few often, many seldom.

use std::{
    error::Error,
    fmt::Write as _,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tidegate_core::{
    clock::{Clock, Timestamp},
    id::KeyId,
    key::{KeyPolicy, KeyRecord},
    knowledge::Filter,
    port::{ChunkKey, ChunkStore, KeyStore},
    secret::HashedKey,
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

const WORDS: usize = 30_000;
const LIMIT: Duration = Duration::from_hours(1);

#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(4_000_000_000).unwrap_or_default()
    }
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }

    /// A word's number; small ones far more often (about as Zipf's law says).
    fn rank(&mut self) -> usize {
        let (first, second) = (self.below(WORDS) + 1, self.below(1_000) + 1);
        (first * second * second / 1_000_000).min(WORDS - 1)
    }
}

fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 20] = [
        "ta", "re", "mi", "lo", "nu", "ka", "ser", "vin", "pol", "dra", "est", "on", "al", "ti", "ber",
        "gan", "or", "fi", "cu", "den",
    ];
    let mut rest = rank + 20;
    let mut word = String::new();
    while rest > 0 {
        word.push_str(SYLLABLES[rest % SYLLABLES.len()]);
        rest /= SYLLABLES.len();
    }
    word
}

fn text(numbers: &mut Numbers, words: usize) -> String {
    let mut text = String::new();
    for at in 1..=words {
        text.push_str(&word(numbers.rank()));
        text.push_str(if at % 12 == 0 { ". " } else { " " });
        if at % 60 == 0 {
            text.push_str("\n\n");
        }
    }
    text
}

fn say(line: &str) -> Outcome {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

#[tokio::main]
async fn main() -> Outcome {
    let documents: usize = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let bank = folder.path().join("bank");
    make(&bank, documents)?;
    let options = tidegate_store::Options {
        path: folder.path().join("data/tidegate.db"),
        ..tidegate_store::Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Later)).await?;
    let tracker = TaskTracker::new();
    tracker.spawn(worker.run(CancellationToken::new()));
    let parts = || -> Outcome<Parts> {
        Ok(Parts {
            store: Arc::new(store.clone()),
            embedder: Arc::new(Builtin::load()?),
            parser: parse::Worker::new("/nonexistent", parse::Options::default()),
            authority: Table::default(),
            may_read: MayRead::all(),
            clock: Arc::new(Later),
            options: Options {
                folder: bank.clone(),
                watch: false,
                ..Options::default()
            },
        })
    };
    let (ingest, task) = Ingest::new(parts()?)?;
    tracker.spawn(task.run(CancellationToken::new()));

    let (cpu, begun) = (cpu_s(), Instant::now());
    let stop = CancellationToken::new();
    let waits = tokio::join!(
        async {
            ingest.rescan();
            ingest.settled(LIMIT).await;
            stop.cancel();
        },
        short_writes(&store, &stop)
    )
    .1?;
    let counts = store.counts(ingest_model().as_deref()).await?;
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), cpu_s() - cpu);
    say(&format!(
        "indexed {} documents, {} chunks ({} with vectors) in {wall:.1} s, {cpu:.1} s of processor: {:.0} chunks/s",
        counts.documents,
        counts.chunks,
        counts.embedded,
        f64::from(u32::try_from(counts.chunks)?) / wall
    ))?;
    say(&format!("short writes meanwhile (ms): {waits}"))?;
    say(&format!("resident memory: {} MB", resident_mb()))?;
    timed("second scan, nothing changed", async || {
        ingest.rescan();
        ingest.settled(LIMIT).await;
        Ok(())
    })
    .await?;
    reads(&store).await?;
    say(&format!(
        "database: {} MB",
        std::fs::metadata(folder.path().join("data/tidegate.db"))?.len() >> 20
    ))
}

fn ingest_model() -> Option<String> {
    use tidegate_core::port::Embedder as _;
    Builtin::load().ok().map(|builtin| builtin.model().id.clone())
}

fn make(bank: &Path, documents: usize) -> Outcome {
    let mut numbers = Numbers(7);
    for number in 0..documents {
        let folder = bank.join(format!("part{}", number / 500));
        std::fs::create_dir_all(&folder)?;
        let mut document = format!("# Document {number}\n\n");
        write!(
            document,
            "{}\n\n## Further\n\n{}\n",
            text(&mut numbers, 300),
            text(&mut numbers, 100)
        )?;
        tidegate_io::files::write_private(&folder.join(format!("{number}.md")), document.as_bytes())?;
    }
    Ok(())
}

/// What a request's short write waits while documents are indexed.
async fn short_writes(store: &Store, stop: &CancellationToken) -> Outcome<String> {
    let mut waits: Vec<Duration> = Vec::new();
    let mut number = 0;
    while stop
        .run_until_cancelled(tokio::time::sleep(Duration::from_millis(5)))
        .await
        .is_some()
    {
        let record = KeyRecord {
            id: KeyId::new(format!("bench{number}")),
            hash: HashedKey::from_digest([3; 32]),
            previous: None,
            created_at: Later.now(),
            last_used_at: None,
            policy: KeyPolicy::new("bench"),
        };
        let begun = Instant::now();
        store.insert(&record).await?;
        waits.push(begun.elapsed());
        number += 1;
    }
    waits.sort();
    let share = |share: usize| {
        waits
            .get((waits.len() * share / 1_000).min(waits.len() - 1))
            .map(ms)
    };
    Ok(format!(
        "p50 {:?}, p99 {:?}, p99.9 {:?}, max {:?}",
        share(500),
        share(990),
        share(999),
        share(1_000)
    ))
}

fn ms(duration: &Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

async fn timed(what: &str, work: impl AsyncFn() -> Outcome) -> Outcome {
    let (cpu, begun) = (cpu_s(), Instant::now());
    work().await?;
    say(&format!(
        "{what}: {:.1} ms, {:.1} ms of processor",
        ms(&begun.elapsed()),
        (cpu_s() - cpu) * 1_000.0
    ))
}

async fn reads(store: &Store) -> Outcome {
    let model = ingest_model().unwrap_or_default();
    timed("all vectors", async || {
        let mut after: ChunkKey = 0;
        loop {
            let page = store.vectors(&model, after, 10_000).await?;
            match page.keys.last() {
                Some(last) => after = *last,
                None => return Ok(()),
            }
        }
    })
    .await?;
    let mut numbers = Numbers(99);
    let queries: Vec<Vec<String>> = (0..50)
        .map(|_| (0..8).map(|_| word(numbers.rank())).collect())
        .collect();
    let all = Filter::default();
    for round in ["cold", "warm"] {
        timed(&format!("50 frequencies, {round}"), async || {
            for query in &queries {
                store.frequencies(query).await?;
            }
            Ok(())
        })
        .await?;
        timed(&format!("50 searches for 8 words each, {round}"), async || {
            for query in &queries {
                store.match_words(query, &all, 100).await?;
            }
            Ok(())
        })
        .await?;
    }
    let narrow = Filter {
        paths: vec!["part1/**".to_owned()],
        ..Filter::default()
    };
    timed("50 searches in one folder", async || {
        for query in &queries {
            store.match_words(query, &narrow, 100).await?;
        }
        Ok(())
    })
    .await?;
    timed("100 versions", async || {
        for _ in 0..100 {
            store.version().await?;
        }
        Ok(())
    })
    .await?;
    timed("counts", async || {
        store.counts(Some(&model)).await.map(drop).map_err(Into::into)
    })
    .await
}

/// Processor time of this process, in seconds (proc_pid_stat(5): fields 14 and 15, in hundredths).
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

//! What recall costs a request: `cargo run --release -p tidegate-engine --example recall_bench`. The whole of it, as a
//! request waits for it, for one person with ten thousand facts and the built-in embedder; then what people at hand take
//! in memory.

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tidegate_core::{
    clock::{Clock, Entropy, Timestamp},
    id::{KeyId, ObservationId, UserId},
    memory::{Observation, Stance, Voice},
    model::{ModelError, ModelInfo, ModelRef, ModelRequest},
    port::{ChatModel, LineLog, MemoryStore as _, ModelStream},
};
use tidegate_engine::memory::{Memory, Options, Parts};
use tidegate_gate::guards::secrets::Redactor;
use tidegate_kb::embed::Builtin;
use tidegate_memory::kinds::Kinds;
use tidegate_store::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const FACTS: u32 = 10_000;
const PEOPLE: u32 = 1_000;
const FACTS_EACH: u32 = 20;
const ASKED: usize = 300;

const THINGS: [&str; 20] = [
    "tables",
    "maps",
    "fractions",
    "rivers",
    "poems",
    "charts",
    "songs",
    "stars",
    "trains",
    "bridges",
    "gardens",
    "clocks",
    "letters",
    "plays",
    "grammar",
    "equations",
    "volcanoes",
    "castles",
    "birds",
    "recipes",
];
const COLOURS: [&str; 10] = [
    "old",
    "green",
    "short",
    "quiet",
    "large",
    "wooden",
    "northern",
    "famous",
    "difficult",
    "printed",
];
const QUESTIONS: [&str; 4] = [
    "How do I explain long division to my class?",
    "Which maps of northern rivers would you recommend for tomorrow?",
    "Please write a short poem about old clocks and the birds that live in wooden bridges.",
    "volcanoes",
];

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Entropy for Still {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

impl LineLog for Still {
    fn append(&self, _line: String) {}

    fn dropped(&self) -> u64 {
        0
    }
}

#[async_trait]
impl ChatModel for Still {
    async fn resolve(&self, requested: &str) -> Result<ModelRef, ModelError> {
        Err(ModelError::NotFound(requested.to_owned()))
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        Err(ModelError::NotFound(request.model.name))
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ModelError> {
        Ok(Vec::new())
    }
}

fn user(number: u32) -> Outcome<UserId> {
    Ok(UserId::of(
        &KeyId::new("benchbench12"),
        Some(&format!("user{number}")),
    )?)
}

fn observation(user: u32, number: u32) -> Outcome<Observation> {
    let thing = |at: u32| THINGS.get((at % 20) as usize).copied().unwrap_or_default();
    let colour = COLOURS
        .get((number / 20 % 10) as usize)
        .copied()
        .unwrap_or_default();
    let value = format!("{colour} {} and {} {number}", thing(number), thing(number / 200));
    let mut turn = [0; 32];
    turn[..4].copy_from_slice(&number.to_le_bytes());
    Ok(Observation {
        id: ObservationId::new(format!("obs_{user:012}{number:012}")),
        kind: "preference".to_owned(),
        quote: format!("Remember that I like {value}."),
        value,
        turn,
        conversation: "c".repeat(64),
        day: jiff::civil::date(1970, 1, 1),
        at: Timestamp::from_second(i64::from(number))?,
        voice: Voice::Remembered,
        stance: Stance::Affirmed,
        extractor: "rules".to_owned(),
        is_explicit: true,
        is_first_person: true,
    })
}

fn print(what: &str, mut times: Vec<Duration>) -> Outcome {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    let (p50, p99) = (
        at(50).copied().unwrap_or_default(),
        at(99).copied().unwrap_or_default(),
    );
    writeln!(std::io::stdout(), "{what:<56} p50 {p50:>10.1?}  p99 {p99:>10.1?}")?;
    Ok(())
}

/// What the process has in memory, in KiB.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok())
        .unwrap_or_default()
}

fn memory(store: &Arc<Store>, people_cached_max: usize) -> Outcome<Memory> {
    let parts = Parts {
        store: Arc::clone(store) as _,
        queue: Arc::clone(store) as _,
        keys: Arc::clone(store) as _,
        embedder: Some(Arc::new(Builtin::load()?)),
        model: Arc::new(Still),
        ledger: Arc::clone(store) as _,
        model_log: Arc::new(Still),
        prices: Arc::default(),
        redactor: Arc::new(Redactor::new([])?),
        clock: Arc::new(Still),
        entropy: Arc::new(Still),
        options: Options {
            people_cached_max,
            recall_timeout_ms: 600_000,
            ..Options::default()
        },
    };
    Ok(Memory::new(parts, Kinds::shipped()?))
}

async fn ask(memory: &Memory, user: &UserId, times: usize) -> Outcome<Vec<Duration>> {
    let mut taken = Vec::new();
    for question in QUESTIONS.iter().cycle().take(times) {
        let begun = Instant::now();
        let told = memory.told(user, question, Some(question)).await;
        taken.push(begun.elapsed());
        told.ok_or("nothing was told")?;
    }
    Ok(taken)
}

#[tokio::main]
async fn main() -> Outcome {
    let folder = tempfile::tempdir()?;
    let options = tidegate_store::Options {
        path: folder.path().join("bench.db"),
        ..tidegate_store::Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Still)).await?;
    let (stop, working) = (CancellationToken::new(), TaskTracker::new());
    working.spawn(worker.run(stop.clone()));
    working.close();
    let store = Arc::new(store);
    let ann = user(0)?;
    let said: Outcome<Vec<Observation>> = (0..FACTS).map(|number| observation(0, number)).collect();
    store.append(&ann, said?).await?;
    let first = memory(&store, 8)?;
    let begun = Instant::now();
    first.refresh(&ann).await?;
    writeln!(
        std::io::stdout(),
        "{FACTS} facts, their notes and vectors {:.1?}",
        begun.elapsed()
    )?;
    let warm = memory(&store, 8)?;
    print("recall, 10,000 facts, first time", ask(&warm, &ann, 1).await?)?;
    print("recall, 10,000 facts, at hand", ask(&warm, &ann, ASKED).await?)?;
    let mut times = Vec::new();
    for question in QUESTIONS.iter().cycle().take(ASKED) {
        let begun = Instant::now();
        warm.search(&ann, question, 8).await?;
        times.push(begun.elapsed());
    }
    print("of that the search", times)?;
    let mut times = Vec::new();
    for _ in 0..ASKED {
        let begun = Instant::now();
        warm.person(&ann).await?;
        times.push(begun.elapsed());
    }
    print("of that the look whether anything has changed", times)?;
    for number in 1..=PEOPLE {
        let said: Outcome<Vec<Observation>> = (0..FACTS_EACH).map(|fact| observation(number, fact)).collect();
        let user = user(number)?;
        store.append(&user, said?).await?;
        first.refresh(&user).await?;
    }
    let many = memory(&store, 2_000)?;
    ask(&many, &user(1)?, 4).await?;
    let before = resident_kb();
    let mut times = Vec::new();
    for number in 2..=PEOPLE {
        times.extend(ask(&many, &user(number)?, 1).await?);
    }
    print("recall, 20 facts, first time", times)?;
    let each = (resident_kb() - before) * 1024 / u64::from(PEOPLE - 1);
    writeln!(
        std::io::stdout(),
        "a person at hand with 20 facts and vectors takes {each} bytes"
    )?;
    let one = user(7)?;
    print("recall, 20 facts, at hand", ask(&many, &one, ASKED).await?)?;
    stop.cancel();
    working.wait().await;
    Ok(())
}

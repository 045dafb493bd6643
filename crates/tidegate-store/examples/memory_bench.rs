//! What memory costs: `cargo run --release -p tidegate-store --example memory_bench [USERS…]`. Queueing a turn, reading
//! and searching what is kept of a person with ten thousand facts, and growth by people (1, 1,000 and 100,000 unless
//! others are named), each with ten observations and three notes with vectors.

use std::{
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::civil::date;
use tidegate_core::{
    caller::Origin,
    clock::{Clock, Timestamp},
    id::{FactId, KeyId, ObservationId, RequestId, RunId, UserId},
    memory::{Observation, Stance, Voice},
    port::{Capture, CaptureQueue, MemoryStore, NewNote, RunStore, Seen, Sight},
    run::{Checkpoint, RunRecord, Stage},
};
use tidegate_store::{Options, Store};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Turns that are queued, one after the other, by people each of whom waits for few.
const TURNS: u32 = 2_000;
/// Bytes in sight of a turn: an answer and a few passages.
const IN_SIGHT_BYTES: usize = 8_000;
/// Facts of one person.
const FACTS: u32 = 10_000;
/// Numbers in a vector.
const DIMENSION: usize = 256;
const OBSERVATIONS_EACH: u32 = 10;
const NOTES_EACH: u32 = 3;
/// Turns that are queued once everybody is there.
const QUEUED: u32 = 40;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let mut users: Vec<u32> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    if users.is_empty() {
        users = vec![1, 1_000, 100_000];
    }
    with_store(async |store, _| queueing(store).await).await?;
    with_store(async |store, _| one_person(store).await).await?;
    for count in users {
        with_store(async |store, path| growth(store, path, count).await).await?;
    }
    Ok(())
}

async fn with_store(work: impl AsyncFnOnce(&Store, &Path) -> Outcome) -> Outcome {
    let folder = tempfile::tempdir()?;
    let options = Options {
        path: folder.path().join("bench.db"),
        ..Options::default()
    };
    let path = options.path.clone();
    let (store, worker) = Store::open(options, Arc::new(Still)).await?;
    let (stop, working) = (CancellationToken::new(), TaskTracker::new());
    working.spawn(worker.run(stop.clone()));
    working.close();
    work(&store, &path).await?;
    stop.cancel();
    working.wait().await;
    Ok(())
}

fn print(what: &str, mut times: Vec<Duration>) -> Outcome {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    writeln!(
        std::io::stdout(),
        "{what:<44} p50 {:>10.1?}  p99 {:>10.1?}",
        at(50).copied().unwrap_or_default(),
        at(99).copied().unwrap_or_default()
    )?;
    Ok(())
}

fn user(number: u32) -> Outcome<UserId> {
    Ok(UserId::of(
        &KeyId::new("benchbench12"),
        Some(&format!("user{number}")),
    )?)
}

async fn queueing(store: &Store) -> Outcome {
    let mut times = Vec::new();
    let mut learning = Vec::new();
    for number in 0..TURNS {
        let user = user(number % 50)?;
        let capture = turn(store, &user, number).await?;
        let begun = Instant::now();
        store.enqueue(&user, &capture).await?;
        times.push(begun.elapsed());
        // A worker that keeps up.
        if number % 4 == 3 {
            for claimed in store.claim(Timestamp::UNIX_EPOCH, Timestamp::MAX, 4).await? {
                let begun = Instant::now();
                store
                    .complete(&claimed.lease, vec![observation(number, 1)])
                    .await?;
                learning.push(begun.elapsed());
            }
        }
    }
    print("queue a turn (8 KB in sight)", times)?;
    print("complete a turn with one observation", learning)
}

/// A turn of a person, whose run is open.
async fn turn(store: &Store, user: &UserId, number: u32) -> Outcome<Capture> {
    let run = RunRecord {
        id: RunId::new(format!("run_{number:026}")),
        request_id: RequestId::new("req"),
        key_id: user.key_id(),
        user: user.clone(),
        origin: Origin::Http,
        model: "m".to_owned(),
        created_at: Timestamp::UNIX_EPOCH,
    };
    let first = Checkpoint {
        at: Timestamp::UNIX_EPOCH,
        stage: Stage::BeforeModel { round: 1 },
        state: None,
    };
    store.open(&run, &first).await?;
    Ok(Capture {
        run: run.id,
        turn: [u8::try_from(number % 251)?; 32],
        conversation: "c".repeat(43),
        day: date(2027, 1, 15),
        at: Timestamp::UNIX_EPOCH,
        said: "I teach 4th grade at a small school, and we are doing fractions this week.".to_owned(),
        in_sight: vec![Seen {
            sight: Sight::Retrieved,
            text: "x".repeat(IN_SIGHT_BYTES),
        }],
    })
}

fn observation(number: u32, day: u32) -> Observation {
    let mut turn = [0; 32];
    turn[..4].copy_from_slice(&number.to_le_bytes());
    turn[4..8].copy_from_slice(&day.to_le_bytes());
    Observation {
        id: ObservationId::new(format!("obs_{number:012}{day:012}")),
        kind: "preference".to_owned(),
        value: format!("value {number}"),
        quote: format!("As I said the other day, I like value {number} best."),
        turn,
        conversation: "c".repeat(43),
        day: date(2027, 1, 15),
        at: Timestamp::UNIX_EPOCH,
        voice: Voice::Stated,
        stance: Stance::Affirmed,
        extractor: "rules".to_owned(),
        is_explicit: true,
        is_first_person: true,
    }
}

/// A note of eight words, of which some are common and some rare.
fn note(number: u32) -> NewNote {
    NewNote {
        fact: FactId::new(format!("fact_{number:020}")),
        kind: "preference".to_owned(),
        value: format!("value {number}"),
        text: format!(
            "They like value{number} best with topic{} and colour{} always",
            number % 500,
            number % 12
        ),
    }
}

async fn put_notes(store: &Store, user: &UserId, count: u32) -> Outcome {
    let version = store.version(user).await?;
    let notes = (0..count).map(note).collect();
    store
        .put_notes(user, version, notes, Vec::new())
        .await?
        .ok_or("the state has changed")?;
    let notes = store.notes(user, 0, 10_000).await?;
    let vectors = notes
        .iter()
        .map(|note| (note.key, Some(vec![0.5; DIMENSION])))
        .collect();
    store.put_note_vectors(user, "model", vectors).await?;
    Ok(())
}

async fn one_person(store: &Store) -> Outcome {
    let user = user(0)?;
    let begun = Instant::now();
    store
        .append(&user, (0..FACTS).map(|number| observation(number, 1)).collect())
        .await?;
    put_notes(store, &user, FACTS).await?;
    writeln!(
        std::io::stdout(),
        "{FACTS} observations, notes and vectors are put in {:.1?}",
        begun.elapsed()
    )?;
    let times = measure(async || Ok(store.version(&user).await.map(drop)?)).await?;
    print("state of a person", times)?;
    let times = measure(async || Ok(store.observations(&user, 0, 10_000).await.map(drop)?)).await?;
    print("read 10,000 observations", times)?;
    for (what, words) in [
        ("search 10,000 notes, rare words", vec!["value77", "topic77"]),
        (
            "search 10,000 notes, 8 words",
            vec![
                "like", "value5", "topic5", "colour5", "best", "topic9", "value", "always",
            ],
        ),
        ("search 10,000 notes, only common words", vec!["like", "best"]),
    ] {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let times = measure(async || Ok(store.match_notes(&user, &words, 50).await.map(drop)?)).await?;
        print(what, times)?;
    }
    let times = measure(async || Ok(store.note_vectors(&user, "model", 0, 10_000).await.map(drop)?)).await?;
    print("read 10,000 vectors of 256 numbers", times)?;
    let begun = Instant::now();
    store.forget(&user, "preference", "value 7").await?;
    writeln!(
        std::io::stdout(),
        "forget one of 10,000 facts {:.1?}",
        begun.elapsed()
    )?;
    let begun = Instant::now();
    let erased = store.erase(&user).await?;
    writeln!(
        std::io::stdout(),
        "erase the person {:.1?}, out of the files: {}",
        begun.elapsed(),
        erased.is_out_of_files
    )?;
    Ok(())
}

async fn measure(work: impl AsyncFn() -> Outcome) -> Outcome<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        work().await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn growth(store: &Store, path: &Path, count: u32) -> Outcome {
    let begun = Instant::now();
    let mut appends = Vec::new();
    for number in 0..count {
        let user = user(number)?;
        let observations = (0..OBSERVATIONS_EACH)
            .map(|nth| observation(nth % 4, nth / 4))
            .collect();
        let begun = Instant::now();
        store.append(&user, observations).await?;
        appends.push(begun.elapsed());
        put_notes(store, &user, NOTES_EACH).await?;
    }
    let took = begun.elapsed();
    let last = user(count - 1)?;
    writeln!(
        std::io::stdout(),
        "\n{count} people: {} observations, {} notes with vectors, in {took:.1?}",
        u64::from(count) * u64::from(OBSERVATIONS_EACH),
        u64::from(count) * u64::from(NOTES_EACH),
    )?;
    print("append ten observations", appends)?;
    let words = ["like".to_owned(), "value2".to_owned()];
    print(
        "search three notes",
        measure(async || Ok(store.match_notes(&last, &words, 10).await.map(drop)?)).await?,
    )?;
    print(
        "read ten observations",
        measure(async || Ok(store.observations(&last, 0, 100).await.map(drop)?)).await?,
    )?;
    let mut enqueued = Vec::new();
    for number in 0..QUEUED {
        // Some of those people, so that nobody's part of the queue is full.
        let user = user(number * 31 % count)?;
        let capture = turn(store, &user, number).await?;
        let begun = Instant::now();
        store.enqueue(&user, &capture).await?;
        enqueued.push(begun.elapsed());
    }
    print("queue a turn", enqueued)?;
    let begun = Instant::now();
    store.erase(&last).await?;
    let took = begun.elapsed();
    // Erasing has emptied the log into the file.
    let bytes = std::fs::metadata(path)?.len();
    writeln!(
        std::io::stdout(),
        "erase one of them {took:.1?}; the file has {bytes} bytes, {} a person",
        bytes / u64::from(count)
    )?;
    Ok(())
}

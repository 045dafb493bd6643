//! What the store adds to a request, and what a checkpoint costs: `cargo run --release -p tidegate-store --example
//! store_bench`. Each cost is also given as a ratio to the cheapest durable write of the same run, a checkpoint
//! without state.

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::civil::date;
use serde_json::json;
use tidegate_core::{
    caller::Origin,
    clock::{Clock, Timestamp},
    id::{CallId, KeyId, RequestId, RunId, UserId},
    key::{KeyPolicy, KeyRecord},
    port::{KeyStore, Ledger, Reservation, RunStore, UsageRecord},
    run::{Checkpoint, RunEnd, RunRecord, RunState, Stage},
    secret::HashedKey,
    usage::{Role, Usage},
};
use tidegate_store::{Options, Store};
use tokio_util::sync::CancellationToken;

/// Runs that are opened, written to and closed.
const RUNS: usize = 1000;
/// Bytes of text in a checkpoint's state: a short conversation.
const STATE_BYTES: usize = 4_000;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// One kind of work and how long each piece took.
struct Series {
    what: &'static str,
    times: Vec<Duration>,
}

impl Series {
    fn new(what: &'static str) -> Self {
        Self {
            what,
            times: Vec::with_capacity(RUNS),
        }
    }

    fn note(&mut self, begun: Instant) {
        self.times.push(begun.elapsed());
    }

    fn at(&mut self, percent: usize) -> Duration {
        self.times.sort_unstable();
        let last = self.times.len().saturating_sub(1);
        self.times
            .get((self.times.len() * percent / 100).min(last))
            .copied()
            .unwrap_or_default()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = Options {
        path: folder.path().join("bench.db"),
        ..Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Still)).await?;
    let (stop, working) = (CancellationToken::new(), tokio_util::task::TaskTracker::new());
    working.spawn(worker.run(stop.clone()));
    working.close();
    let series = measure(&store).await?;
    stop.cancel();
    working.wait().await;
    print(series)
}

async fn measure(store: &Store) -> Result<[Series; 6], Box<dyn std::error::Error>> {
    let (key_id, now) = (KeyId::new("bench"), Timestamp::UNIX_EPOCH);
    let user = UserId::of(&key_id, None)?;
    let key = KeyRecord {
        id: key_id.clone(),
        hash: HashedKey::from_digest([1; 32]),
        previous: None,
        created_at: now,
        last_used_at: None,
        policy: KeyPolicy::new("bench"),
    };
    store.insert(&key).await?;
    let state = json!({"messages": "x".repeat(STATE_BYTES)});
    let line = |stage, state| Checkpoint {
        at: now,
        stage,
        state,
    };
    let effect = || Stage::AfterEffect {
        call_id: CallId::new("c"),
        tool: "t".into(),
        status: "ok".into(),
    };
    let mut all = [
        Series::new("checkpoint without state"),
        Series::new("checkpoint with 4 KB of state"),
        Series::new("look up a key"),
        Series::new("open a run, 4 KB of state"),
        Series::new("reserve and book tokens"),
        Series::new("close a run"),
    ];
    for number in 0..RUNS {
        let [bare, full, find, open, book, close] = &mut all;
        let id = RunId::new(format!("run_{number}"));
        let record = RunRecord {
            id: id.clone(),
            request_id: RequestId::new("req"),
            key_id: key_id.clone(),
            user: user.clone(),
            origin: Origin::Http,
            model: "m".into(),
            created_at: now,
        };
        let begun = Instant::now();
        KeyStore::find(store, &key_id).await?;
        find.note(begun);
        let begun = Instant::now();
        store
            .open(
                &record,
                &line(Stage::BeforeModel { round: 1 }, Some(state.clone())),
            )
            .await?;
        open.note(begun);
        let begun = Instant::now();
        let reservation = store.reserve(&key_id, date(2027, 1, 15), None, 500).await?;
        store.record(cost(&key_id, &user, &id, reservation));
        book.note(begun);
        let begun = Instant::now();
        store.checkpoint(&id, &line(effect(), None)).await?;
        bare.note(begun);
        let begun = Instant::now();
        store
            .checkpoint(&id, &line(Stage::BeforeModel { round: 2 }, Some(state.clone())))
            .await?;
        full.note(begun);
        let end = RunEnd {
            at: now,
            state: RunState::Completed,
            outcome: "answered".into(),
            usage: Usage::default(),
        };
        let begun = Instant::now();
        store.close(&id, &end).await?;
        close.note(begun);
    }
    Ok(all)
}

fn cost(key_id: &KeyId, user: &UserId, run_id: &RunId, reservation: Reservation) -> UsageRecord {
    UsageRecord {
        at: Timestamp::UNIX_EPOCH,
        day: date(2027, 1, 15),
        key_id: key_id.clone(),
        user: user.clone(),
        run_id: run_id.clone(),
        provider: "p".into(),
        model: "m".into(),
        role: Role::Main,
        usage: Usage {
            input_tokens: 300,
            output_tokens: 100,
            ..Usage::default()
        },
        reservation: Some(reservation),
    }
}

fn print(mut series: [Series; 6]) -> Result<(), Box<dyn std::error::Error>> {
    let [bare, ..] = &mut series;
    let baseline = bare.at(50).as_secs_f64();
    let mut out = std::io::stdout();
    for line in &mut series {
        let (p50, p99) = (line.at(50), line.at(99));
        let ratio = p50.as_secs_f64() / baseline;
        writeln!(
            out,
            "{:<30} p50 {p50:>10.1?}  p99 {p99:>10.1?}  ratio {ratio:.2}",
            line.what
        )?;
    }
    Ok(())
}

//! Kills a process with SIGKILL while it uses the store, again and again, and looks at what is left.
//!
//! The child says on its standard output what it knows to be done: a line is written after the store has
//! answered, so that each line must be found true after the kill. Even rounds stop the child right inside a
//! side effect; odd rounds kill it after an arbitrary line, wherever it then is.

#[path = "support/killed.rs"]
mod killed;

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    path::Path,
    sync::Arc,
};

use jiff::civil::{Date, date};
use killed::{Noon, Outcome, kill_a_child, list, say};
use serde_json::json;
use tidegate_core::{
    caller::Origin,
    clock::Clock,
    id::{CallId, KeyId, RequestId, RunId, UserId},
    key::{KeyPolicy, KeyRecord},
    port::{KeyStore, Ledger, LedgerError, Reservation, RunStore, UsageRecord},
    run::{Checkpoint, RunEnd, RunRecord, RunState, Stage},
    secret::HashedKey,
    usage::{Role, Usage},
};
use tidegate_store::{Options, Store};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const DAY: Date = date(2027, 1, 15);
const LIMIT_TOKENS: u64 = 60_000;
/// No call costs more than its estimate.
const ESTIMATE_TOKENS: u64 = 300;
const ROUNDS: u64 = 24;

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn key_id() -> KeyId {
    KeyId::new("quota")
}

fn main() -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, path, round] = arguments.as_slice()
        && flag == "--child"
    {
        return runtime.block_on(child(Path::new(path), round.parse()?));
    }
    if arguments.iter().any(|argument| argument == "--list") {
        return list(&arguments, "what_was_acknowledged_survives_each_kill");
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("tidegate.db");
    let mut seen = Seen::default();
    for round in 0..ROUNDS {
        seen.note(&kill_a_child(&path, round, kill_at(round))?);
        runtime
            .block_on(inspect(&path, &mut seen))
            .map_err(|error| format!("round {round}: {error}"))?;
    }
    runtime.block_on(spend_the_rest(&path, &mut seen))?;
    let Seen {
        spent_tokens,
        keys,
        runs,
        indeterminate,
        ..
    } = &seen;
    writeln!(
        std::io::stdout(),
        "{ROUNDS} kills: {} keys, {} runs ({indeterminate} indeterminate), {spent_tokens} tokens: all accounted for",
        keys.len(),
        runs.len(),
    )?;
    Ok(())
}

/// What the children said, and what was found.
#[derive(Default)]
struct Seen {
    spent_tokens: u64,
    /// Also what a call took whose report the kill cut off.
    called_tokens: u64,
    keys: Vec<String>,
    /// The last thing known of each run.
    runs: BTreeMap<String, String>,
    /// The state each run was found in.
    states: BTreeMap<String, RunState>,
    indeterminate: u64,
}

impl Seen {
    fn note(&mut self, lines: &[String]) {
        for line in lines {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["spent", tokens] => self.spent_tokens += tokens.parse::<u64>().unwrap_or(0),
                ["calling", tokens] => self.called_tokens += tokens.parse::<u64>().unwrap_or(0),
                ["key", id] => self.keys.push((*id).to_owned()),
                [what, run] => drop(self.runs.insert((*run).to_owned(), (*what).to_owned())),
                // The kill came in the middle of a line.
                _ => {}
            }
        }
    }
}

fn expect(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(what().into()) }
}

/// In odd rounds after an arbitrary line.
fn kill_at(round: u64) -> u64 {
    if stops_inside(round) {
        u64::MAX
    } else {
        1 + Numbers(round).below(120)
    }
}

/// Even rounds stop inside a side effect.
fn stops_inside(round: u64) -> bool {
    round.is_multiple_of(2)
}

/// Works until it is killed; in even rounds it stops inside a side effect after some turns.
async fn child(path: &Path, round: u64) -> Outcome {
    let options = Options {
        path: path.to_owned(),
        flush_interval_ms: 5,
        ..Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Noon)).await?;
    TaskTracker::new().spawn(worker.run(CancellationToken::new()));
    store.lock_daemon()?;
    let mut numbers = Numbers(round);
    let turns = if stops_inside(round) {
        numbers.below(20)
    } else {
        u64::MAX
    };
    for turn in 0.. {
        let name = format!("{round}.{turn}");
        store.insert(&key_record(&name)).await?;
        say(&format!("key {name}"))?;
        run_turn(&store, &name, &mut numbers, turn == turns).await?;
    }
    Ok(())
}

async fn run_turn(store: &Store, name: &str, numbers: &mut Numbers, stops: bool) -> Outcome {
    let run = run_record(name)?;
    let (call_id, tool) = (CallId::new("call_0"), "write_file".to_owned());
    let line = |stage, state| Checkpoint {
        at: Noon.now(),
        stage,
        state,
    };
    store
        .open(
            &run,
            &line(Stage::BeforeModel { round: 1 }, Some(json!({ "name": name }))),
        )
        .await?;
    say(&format!("opened {name}"))?;
    match store
        .reserve(&key_id(), DAY, Some(LIMIT_TOKENS), ESTIMATE_TOKENS)
        .await
    {
        Ok(reservation) => {
            let tokens = 1 + numbers.below(ESTIMATE_TOKENS);
            say(&format!("calling {tokens}"))?;
            store.record(usage(&run, tokens, reservation));
            say(&format!("spent {tokens}"))?;
        }
        Err(LedgerError::QuotaSpent { .. }) => {}
        Err(LedgerError::Store(error)) => return Err(error.into()),
    }
    let begun = Stage::BeforeEffect {
        call_id: call_id.clone(),
        tool: tool.clone(),
    };
    store.checkpoint(&run.id, &line(begun, None)).await?;
    say(&format!("effect {name}"))?;
    if stops {
        say("inside")?;
        // Until the kill: nobody writes to this pipe.
        std::io::stdin().read_to_end(&mut Vec::new())?;
    }
    let done = Stage::AfterEffect {
        call_id,
        tool,
        status: "ok".to_owned(),
    };
    store.checkpoint(&run.id, &line(done, None)).await?;
    say(&format!("safe {name}"))?;
    let (at, usage) = (Noon.now(), Usage::default());
    let end = RunEnd {
        at,
        state: RunState::Completed,
        outcome: "answered".to_owned(),
        usage,
    };
    store.close(&run.id, &end).await?;
    say(&format!("closed {name}"))
}

fn key_record(name: &str) -> KeyRecord {
    KeyRecord {
        id: KeyId::new(name),
        hash: HashedKey::from_digest([3; 32]),
        previous: None,
        created_at: Noon.now(),
        last_used_at: None,
        policy: KeyPolicy::new("crash"),
    }
}

fn run_record(name: &str) -> Outcome<RunRecord> {
    Ok(RunRecord {
        id: RunId::new(name),
        request_id: RequestId::new("req_1"),
        key_id: key_id(),
        user: UserId::of(&key_id(), None)?,
        origin: Origin::Http,
        model: "tidegate".to_owned(),
        created_at: Noon.now(),
    })
}

fn usage(run: &RunRecord, tokens: u64, reservation: Reservation) -> UsageRecord {
    UsageRecord {
        at: Noon.now(),
        day: DAY,
        key_id: key_id(),
        user: run.user.clone(),
        run_id: run.id.clone(),
        provider: "local".to_owned(),
        model: "small".to_owned(),
        role: Role::Main,
        usage: Usage {
            input_tokens: tokens,
            ..Usage::default()
        },
        reservation: Some(reservation),
    }
}

/// Opens the store as the next daemon, looks, and closes it well.
async fn inspect(path: &Path, seen: &mut Seen) -> Outcome {
    let (store, worker) = Store::open(
        Options {
            path: path.to_owned(),
            ..Options::default()
        },
        Arc::new(Noon),
    )
    .await?;
    let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
    tracker.spawn(worker.run(shutdown.clone()));
    tracker.close();
    store.lock_daemon()?;
    let found = look(&store, path, seen).await;
    shutdown.cancel();
    tracker.wait().await;
    found
}

async fn look(store: &Store, path: &Path, seen: &mut Seen) -> Outcome {
    let faults = tidegate_store::inspect(path)
        .await?
        .ok_or("the database is gone")?
        .faults;
    expect(faults.is_empty(), || format!("damaged: {faults:?}"))?;
    for id in &seen.keys {
        let key = KeyStore::find(store, &KeyId::new(id)).await?;
        expect(key.is_some(), || format!("key {id} is lost"))?;
    }
    let spent = store.spent_tokens(&key_id(), DAY);
    expect(spent >= seen.spent_tokens, || {
        format!("{spent} counted, {} spent", seen.spent_tokens)
    })?;
    store.recover(Noon.now()).await?;
    for (id, last) in &seen.runs {
        let run = RunStore::find(store, &key_id(), &RunId::new(id))
            .await?
            .ok_or(format!("run {id} is lost"))?;
        let fits = match run.state {
            RunState::Completed => last == "closed" || last == "safe",
            RunState::Indeterminate => last == "effect" || last == "opened",
            RunState::Interrupted => last == "opened" || last == "effect" || last == "safe",
            RunState::Running | RunState::AwaitingClient | RunState::Failed | RunState::Cancelled => false,
        };
        expect(fits, || {
            format!("run {id}, last known as {last}, is {:?}", run.state)
        })?;
        if let Some(before) = seen.states.insert(id.clone(), run.state) {
            expect(before == run.state, || {
                format!("run {id} changed from {before:?} to {:?}", run.state)
            })?;
        }
    }
    seen.indeterminate = seen
        .states
        .values()
        .filter(|state| **state == RunState::Indeterminate)
        .count() as u64;
    Ok(())
}

/// Spends what the crashes left of the quota, and compares all that was ever spent with it.
async fn spend_the_rest(path: &Path, seen: &mut Seen) -> Outcome {
    let stopped_inside = ROUNDS / 2;
    expect(seen.indeterminate >= stopped_inside, || {
        format!(
            "{} of {stopped_inside} side effects in flight were noticed",
            seen.indeterminate
        )
    })?;
    let (store, worker) = Store::open(
        Options {
            path: path.to_owned(),
            ..Options::default()
        },
        Arc::new(Noon),
    )
    .await?;
    let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
    tracker.spawn(worker.run(shutdown.clone()));
    tracker.close();
    let run = run_record("last")?;
    while let Ok(reservation) = store
        .reserve(&key_id(), DAY, Some(LIMIT_TOKENS), ESTIMATE_TOKENS)
        .await
    {
        store.record(usage(&run, ESTIMATE_TOKENS, reservation));
        seen.spent_tokens += ESTIMATE_TOKENS;
        seen.called_tokens += ESTIMATE_TOKENS;
    }
    let days = store.usage(&key_id(), DAY, DAY).await?;
    shutdown.cancel();
    tracker.wait().await;
    let spent = seen.called_tokens;
    expect(spent < LIMIT_TOKENS + ESTIMATE_TOKENS, || {
        format!("{spent} of {LIMIT_TOKENS} tokens were spent")
    })?;
    let shown = days.first().map_or(0, |day| {
        day.input_tokens + day.output_tokens + day.estimated_tokens
    });
    expect(shown >= spent, || format!("{shown} shown, {spent} spent"))
}

//! Kills a process with SIGKILL while it queues turns and learns from them, again and again, and looks at what is left.
//!
//! The child says on its standard output what it knows to be done. Rounds stop it at each point of a capture in turn:
//! after the turn was queued, between claiming it and keeping anything, between keeping and completing where a
//! caller does these apart, and after completing; others kill it after an arbitrary line. After each kill every turn
//! that was said to be queued must be in the queue or learned from, and none is learned from twice, although what
//! is found in a turn differs from one attempt to the next.

#[path = "support/killed.rs"]
mod killed;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    path::Path,
    sync::Arc,
};

use jiff::civil::{Date, date};
use killed::{Noon, Outcome, kill_a_child, list, say};
use tidegate_core::{
    caller::Origin,
    clock::{Clock, Timestamp},
    id::{KeyId, ObservationId, RequestId, RunId, UserId},
    memory::{Observation, Stance, Voice},
    port::{Capture, CaptureQueue, ClaimedCapture, Enqueued, MemoryStore, RunStore, Seen, Sight},
    run::{Checkpoint, RunRecord, Stage},
};
use tidegate_store::{Options, Store};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const DAY: Date = date(2027, 1, 15);
const ROUNDS: u64 = 24;
/// People whose turns are queued.
const PEOPLE: u64 = 3;

/// The points of a capture at which a child stops; the rest of the rounds are killed anywhere.
const POINTS: [&str; 4] = ["queued", "claimed", "appended", "completed"];

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
        return list(&arguments, "each_turn_is_learned_from_once");
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("tidegate.db");
    let mut queued = BTreeSet::new();
    for round in 0..ROUNDS {
        for line in play(&path, round)? {
            if let Some(name) = line.strip_prefix("queued ") {
                queued.insert(name.to_owned());
            }
        }
        runtime
            .block_on(look(&path, &queued, round + 1 == ROUNDS))
            .map_err(|error| format!("round {round}: {error}"))?;
    }
    writeln!(
        std::io::stdout(),
        "{ROUNDS} kills, {} turns queued: each is learned from once",
        queued.len()
    )?;
    Ok(())
}

fn play(path: &Path, round: u64) -> Outcome<Vec<String>> {
    // A different line each round; the children go round their work in a few lines.
    let kill_at = if point(round).is_some() {
        u64::MAX
    } else {
        5 + round * 7 % 60
    };
    let lines = kill_a_child(path, round, kill_at)?;
    if point(round).is_some() && !lines.iter().any(|line| line == "inside") {
        return Err(format!("round {round}: the child ended by itself: {lines:?}").into());
    }
    Ok(lines)
}

/// At which point a round stops.
fn point(round: u64) -> Option<&'static str> {
    let at = usize::try_from(round % 6).ok()?;
    POINTS.get(at).copied()
}

/// Turns of these rounds are kept and completed in two steps, whoever comes to it.
fn is_apart(name: &str) -> bool {
    let round = name.split('.').next().and_then(|round| round.parse::<u64>().ok());
    round.and_then(point) == Some("appended")
}

/// Says that it is at a point, and stays there where the round stops at it.
async fn reach(round: u64, turn: u64, at: &str, name: &str) -> Outcome {
    say(&format!("{at} {name}"))?;
    if point(round) == Some(at) && turn >= 3 {
        say("inside")?;
        std::future::pending::<()>().await;
    }
    Ok(())
}

fn person(name: &str) -> Outcome<UserId> {
    // Every person's turns are theirs alone.
    let number = name.bytes().map(u64::from).sum::<u64>() % PEOPLE;
    Ok(UserId::of(&KeyId::new("key"), Some(&format!("p{number}")))?)
}

async fn open(path: &Path) -> Outcome<(Store, CancellationToken, TaskTracker)> {
    let options = Options {
        path: path.to_owned(),
        flush_interval_ms: 5,
        ..Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Noon)).await?;
    let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
    tracker.spawn(worker.run(shutdown.clone()));
    tracker.close();
    store.lock_daemon()?;
    Ok((store, shutdown, tracker))
}

/// Queues turns and learns from them until it is killed.
async fn child(path: &Path, round: u64) -> Outcome {
    let (store, _shutdown, _tracker) = open(path).await?;
    for turn in 0.. {
        let name = format!("{round}.{turn}");
        queue(&store, &name).await?;
        reach(round, turn, "queued", &name).await?;
        // Every third turn waits for another one.
        if turn % 3 == 2 {
            continue;
        }
        for claimed in store.claim(Noon.now(), Noon.now(), 1).await? {
            let name = claimed.capture.run.as_str().to_owned();
            reach(round, turn, "claimed", &name).await?;
            if is_apart(&name) {
                // What is kept is the same each time, so that it is kept once.
                let observation = observation(&claimed, "same");
                store.append(&claimed.lease.user, vec![observation]).await?;
                reach(round, turn, "appended", &name).await?;
                store.complete(&claimed.lease, Vec::new()).await?;
            } else {
                let found = format!("attempt {} of round {round}", claimed.attempts);
                store
                    .complete(&claimed.lease, vec![observation(&claimed, &found)])
                    .await?;
            }
            reach(round, turn, "completed", &name).await?;
        }
    }
    Ok(())
}

async fn queue(store: &Store, name: &str) -> Outcome {
    let user = person(name)?;
    let run = RunRecord {
        id: RunId::new(name),
        request_id: RequestId::new("req"),
        key_id: user.key_id(),
        user: user.clone(),
        origin: Origin::Http,
        model: "m".to_owned(),
        created_at: Noon.now(),
    };
    let first = Checkpoint {
        at: Noon.now(),
        stage: Stage::BeforeModel { round: 1 },
        state: None,
    };
    store.open(&run, &first).await?;
    let capture = Capture {
        run: run.id,
        turn: turn_of(name),
        conversation: "c".to_owned(),
        day: DAY,
        at: Noon.now(),
        said: format!("this is {name}"),
        in_sight: vec![Seen {
            sight: Sight::Assistant,
            text: "x".repeat(2_000),
        }],
    };
    match store.enqueue(&user, &capture).await? {
        Enqueued::Queued => Ok(()),
        refused @ (Enqueued::Known
        | Enqueued::LearningOff
        | Enqueued::RunGone
        | Enqueued::Full
        | Enqueued::TooLarge) => Err(format!("{name}: {refused:?}").into()),
    }
}

fn turn_of(name: &str) -> [u8; 32] {
    let mut turn = [0; 32];
    for (to, from) in turn.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    turn
}

fn observation(claimed: &ClaimedCapture, value: &str) -> Observation {
    Observation {
        id: ObservationId::new(format!("obs_{}", claimed.capture.run)),
        kind: "note".to_owned(),
        value: value.to_owned(),
        quote: claimed.capture.said.clone(),
        turn: claimed.capture.turn,
        conversation: claimed.capture.conversation.clone(),
        day: claimed.capture.day,
        at: claimed.capture.at,
        voice: Voice::Stated,
        stance: Stance::Affirmed,
        extractor: "rules".to_owned(),
        is_explicit: true,
        is_first_person: true,
    }
}

fn expect(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(what().into()) }
}

/// Opens the store as the next daemon; the last one learns from everything that is left.
async fn look(path: &Path, queued: &BTreeSet<String>, is_last: bool) -> Outcome {
    let (store, shutdown, tracker) = open(path).await?;
    let outcome = check(&store, path, queued, is_last).await;
    shutdown.cancel();
    tracker.wait().await;
    outcome
}

/// How many turns may be worked on when a process is killed: one, as the children take one at a time.
const LEASED_MAX: u64 = 1;

async fn check(store: &Store, path: &Path, queued: &BTreeSet<String>, is_last: bool) -> Outcome {
    let faults = tidegate_store::inspect(path)
        .await?
        .ok_or("the database is gone")?
        .faults;
    expect(faults.is_empty(), || format!("damaged: {faults:?}"))?;
    let recovered = store.recover_captures(Noon.now()).await?;
    expect(recovered <= LEASED_MAX, || {
        format!("{recovered} turns were leased")
    })?;
    let mut waiting = BTreeSet::new();
    loop {
        let claimed = store.claim(Noon.now(), Timestamp::MAX, 64).await?;
        if claimed.is_empty() {
            break;
        }
        for one in claimed {
            waiting.insert(one.capture.run.as_str().to_owned());
            if is_last {
                let kept = store
                    .complete(&one.lease, vec![observation(&one, "same")])
                    .await?;
                expect(kept.is_some(), || {
                    format!("{} could not be completed", one.capture.run)
                })?;
            }
        }
    }
    store.recover_captures(Noon.now()).await?;
    let mut learned: BTreeMap<[u8; 32], u32> = BTreeMap::new();
    for number in 0..PEOPLE {
        let user = UserId::of(&KeyId::new("key"), Some(&format!("p{number}")))?;
        for one in store.observations(&user, 0, 10_000).await?.observations {
            *learned.entry(one.turn).or_default() += 1;
            let name = one.quote.trim_start_matches("this is ").to_owned();
            expect(person(&name)? == user, || format!("{name} is with {user}"))?;
        }
    }
    let twice = learned.values().filter(|count| **count > 1).count();
    expect(twice == 0, || format!("{twice} turns were learned from twice"))?;
    for name in queued {
        let is_learned = learned.contains_key(&turn_of(name));
        expect(is_learned || waiting.contains(name), || {
            format!("turn {name} is lost")
        })?;
        expect(is_learned || !is_last, || {
            format!("turn {name} was never learned from")
        })?;
    }
    Ok(())
}

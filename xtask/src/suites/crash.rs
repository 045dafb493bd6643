//! `kill -9` at random moments: whatever the moment, a restarted daemon knows its keys, its usage adds up, and
//! no run is left open.
//!
//! The moments come from a seed that is printed, so that a failure can be played again
//! (`TIDEGATE_CRASH_SEED=… cargo xtask test --only kill`).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::Count;
use crate::daemon::{Daemon, Start};
use crate::{http, scripted};

/// How often the daemon is killed.
const KILLS: usize = 8;
/// Clients that ask meanwhile.
const CLIENTS: usize = 4;
/// The latest moment of a kill after the start of traffic.
const LATEST_MS: u64 = 900;
/// How long one question may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Questions: an answer at once, one with a server tool, and one that is still streaming when the end comes.
const QUESTIONS: [&str; 3] = ["hello", "Please calculate 19 plus 23.", "Count slowly."];

/// What the clients have seen.
#[derive(Default)]
struct Traffic {
    answered: AtomicUsize,
    runs: Mutex<Vec<String>>,
    stop: AtomicBool,
}

/// Kills and restarts the daemon, and looks at what is left each time.
pub(crate) fn run() -> Result<Count> {
    let seed = seed();
    println!("seed {seed}");
    let mut random = seed;
    let runtime = Runtime::new()?;
    let upstream = runtime.block_on(scripted::start(0))?;
    let folder = TempDir::new()?;
    let start = Start::new(folder.path().join("home"), upstream.base_url(), scripted::NAME);
    let mut daemon = Daemon::start(&start)?;
    let extra = create_key(&daemon)?;
    let mut count = Count::default();
    let mut answered_before = 0;
    for round in 1..=KILLS {
        random = next(random);
        let after = Duration::from_millis(50 + random % LATEST_MS);
        let traffic = drive(&daemon, after);
        daemon.kill();
        daemon = Daemon::start(&start)?;
        let answered = answered_before + traffic.answered.load(Ordering::Relaxed);
        let result = inspect(&daemon, &extra, &traffic);
        println!(
            "{} kill {round} after {} ms, {} answers, ready again after {} ms",
            if result.is_ok() { "ok  " } else { "FAIL" },
            after.as_millis(),
            answered - answered_before,
            daemon.ready_after.as_millis()
        );
        if let Err(error) = &result {
            println!("     {error:#}");
        }
        count.add(result.is_ok());
        answered_before = answered;
    }
    ensure!(answered_before > 0, "no question was answered between the kills");
    daemon.stop()?;
    runtime.block_on(upstream.stop());
    Ok(count)
}

/// Lets clients ask until the moment has come.
fn drive(daemon: &Daemon, for_time: Duration) -> Arc<Traffic> {
    let traffic = Arc::new(Traffic::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (traffic, address, key) = (Arc::clone(&traffic), daemon.address, daemon.key.clone());
            thread::spawn(move || {
                let mut number = client;
                while !traffic.stop.load(Ordering::Relaxed) {
                    let question = QUESTIONS[number % QUESTIONS.len()];
                    let body =
                        json!({"model": "tidegate", "messages": [{"role": "user", "content": question}]});
                    let answer = http::call(
                        address,
                        "POST",
                        "/v1/chat/completions",
                        Some(&key),
                        &body,
                        TIMEOUT,
                    );
                    if let Some(run) = answer
                        .ok()
                        .filter(|answer| answer.status == 200)
                        .and_then(|answer| answer.header("x-run-id").map(str::to_owned))
                    {
                        traffic.answered.fetch_add(1, Ordering::Relaxed);
                        traffic
                            .runs
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(run);
                    }
                    number += 1;
                }
            })
        })
        .collect();
    // The moment is the test: nothing that could be waited for decides it.
    thread::sleep(for_time);
    traffic.stop.store(true, Ordering::Relaxed);
    // The clients end by themselves once the daemon is gone; the last may be in the middle of a question.
    drop(clients);
    traffic
}

/// What must hold after a restart.
fn inspect(daemon: &Daemon, extra: &str, traffic: &Traffic) -> Result<()> {
    let with_extra = http::call(
        daemon.address,
        "GET",
        "/v1/models",
        Some(extra),
        &Value::Null,
        TIMEOUT,
    )?;
    ensure!(
        with_extra.status == 200,
        "the key made before the kill gives {}",
        with_extra.status
    );
    let runs = std::mem::take(&mut *traffic.runs.lock().unwrap_or_else(PoisonError::into_inner));
    for run in &runs {
        let answer = daemon.call("GET", &format!("/v1/runs/{run}"), &Value::Null)?;
        ensure!(
            answer.status == 200,
            "run {run}, whose answer was given, is gone ({})",
            answer.status
        );
        let state = answer.json();
        let status = state["status"].as_str().unwrap_or_default().to_owned();
        ensure!(
            !matches!(status.as_str(), "" | "running" | "in_progress"),
            "run {run} is still open: {state}"
        );
    }
    let question = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello"}]});
    let answer = daemon.call("POST", "/v1/chat/completions", &question)?;
    ensure!(
        answer.status == 200,
        "a question after the restart gives {}: {}",
        answer.status,
        answer.text()
    );
    Ok(())
}

/// A key of its own, to see that it survives; its text.
fn create_key(daemon: &Daemon) -> Result<String> {
    let body = json!({"name": "crash test", "scopes": ["chat"]});
    let answer = daemon.call("POST", "/v1/admin/keys", &body)?;
    let value = answer.json()["value"].as_str().map(str::to_owned);
    value.with_context(|| format!("creating a key gave {}: {}", answer.status, answer.text()))
}

fn seed() -> u64 {
    let given = std::env::var("TIDEGATE_CRASH_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(now.subsec_nanos()) + 1
    })
}

/// Xorshift (Marsaglia 2003): good enough to choose moments.
fn next(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

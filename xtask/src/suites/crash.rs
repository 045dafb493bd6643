//! `kill -9` at random moments: whatever the moment, a restarted daemon knows its keys, its usage adds up, and
//! no run is left open.
//!
//! The moments come from a seed that is printed, so that a failure can be played again
//! (`TIDEGATE_CRASH_SEED=… cargo xtask test --only kill`).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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
    tokens: AtomicU64,
    runs: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Traffic {
    /// Asks one question; what comes back whole is noted.
    fn ask(&self, address: SocketAddr, key: &str, question: &str) {
        let body = json!({"model": "tidegate", "messages": [{"role": "user", "content": question}]});
        let answer = http::call(address, "POST", "/v1/chat/completions", Some(key), &body, TIMEOUT);
        if let Ok(answer) = answer
            && answer.status == 200
            && let Some(run) = answer.header("x-run-id")
        {
            let tokens = answer.json()["usage"]["total_tokens"].as_u64();
            self.tokens
                .fetch_add(tokens.unwrap_or_default(), Ordering::Relaxed);
            self.answered.fetch_add(1, Ordering::Relaxed);
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.push(run.to_owned());
        }
    }
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
    let key = Key::create(&daemon)?;
    let mut count = Count::default();
    let (mut answered_before, mut tokens) = (0, 0);
    for round in 1..=KILLS {
        random = next(random);
        let after = Duration::from_millis(50 + random % LATEST_MS);
        let traffic = drive(&daemon, &key, after);
        daemon.kill();
        daemon = Daemon::start(&start)?;
        let answered = answered_before + traffic.answered.load(Ordering::Relaxed);
        tokens += traffic.tokens.load(Ordering::Relaxed);
        let result = inspect(&daemon, &key, &traffic, tokens);
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
fn drive(daemon: &Daemon, key: &Key, for_time: Duration) -> Arc<Traffic> {
    let traffic = Arc::new(Traffic::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (traffic, address, key) = (Arc::clone(&traffic), daemon.address, key.value.clone());
            thread::spawn(move || {
                for question in QUESTIONS.iter().cycle().skip(client) {
                    if traffic.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    traffic.ask(address, &key, question);
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

/// What must hold after a restart. `tokens` is what all answers so far cost.
fn inspect(daemon: &Daemon, key: &Key, traffic: &Traffic, tokens: u64) -> Result<()> {
    let get = |path: &str| {
        http::call(
            daemon.address,
            "GET",
            path,
            Some(&key.value),
            &Value::Null,
            TIMEOUT,
        )
    };
    let status = get("/v1/models")?.status;
    ensure!(status == 200, "the key made before the kill gives {status}");
    let runs = std::mem::take(&mut *traffic.runs.lock().unwrap_or_else(PoisonError::into_inner));
    for run in &runs {
        let answer = get(&format!("/v1/runs/{run}"))?;
        let state = answer.json();
        ensure!(
            answer.status == 200,
            "run {run}, whose answer was given, is gone: {state}"
        );
        ensure!(
            state["status"] == "completed",
            "run {run}, whose answer was given, is not completed: {state}"
        );
    }
    let usage = daemon
        .call("GET", &format!("/v1/admin/keys/{}/usage", key.id), &Value::Null)?
        .json();
    let days = usage["data"].as_array().map_or(&[][..], Vec::as_slice);
    let fields = ["input_tokens", "output_tokens", "estimated_tokens"];
    let counts = days
        .iter()
        .flat_map(|day| fields.iter().filter_map(|field| day[*field].as_u64()));
    let spent: u64 = counts.sum();
    ensure!(
        spent >= tokens,
        "answers cost {tokens} tokens, but only {spent} count as spent: {usage}"
    );
    let question = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello"}]});
    let answer = daemon.call("POST", "/v1/chat/completions", &question)?;
    ensure!(
        answer.status == 200,
        "a question after the restart gives {}",
        answer.text()
    );
    Ok(())
}

/// A key made over the API, to see that it survives. It has a quota, so that what it spends is reserved first.
struct Key {
    id: String,
    value: String,
}

impl Key {
    fn create(daemon: &Daemon) -> Result<Self> {
        let body =
            json!({"name": "crash test", "scopes": ["chat", "tools"], "tokens_per_day": 1_000_000_000});
        let answer = daemon.call("POST", "/v1/admin/keys", &body)?;
        let text = |name: &str| answer.json()[name].as_str().map(str::to_owned);
        let made = text("id").zip(text("value"));
        let (id, value) = made.with_context(|| format!("no key was made: {}", answer.text()))?;
        Ok(Self { id, value })
    }
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

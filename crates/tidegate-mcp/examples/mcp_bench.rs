//! What the client costs, and what a hostile neighbour costs the others.
//!
//! `cargo run --release -p tidegate-mcp --example mcp_bench`: overhead of a call through gate, checks and breaker
//! against the SDK alone over the same kind of pipes, in turns; sixteen calls at once; eight servers started at once;
//! and the delay of one server's tool beside each hostile one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for people who measure: it ends at the first surprise, and starts the server of the SDK alone itself"
)]

#[path = "../tests/servers/desk.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod desk;

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use rmcp::{ServiceExt as _, model::CallToolRequestParams};
use serde_json::{Value, json};
use tidegate_mcp::{Options, State};

use crate::desk::{Desk, entry, options, scripted, text};

const ROUNDS: usize = 20;
const CALLS: usize = 200;

fn percentile(times: &mut [Duration], part: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * part / 100]
}

async fn echo(desk: &Desk, server: &str) -> Duration {
    let began = Instant::now();
    let result = desk
        .call(&format!("mcp__{server}__echo"), json!({"text": "x"}))
        .await;
    assert_eq!(text(&result), "x");
    began.elapsed()
}

/// A call against the same call by the SDK alone.
async fn overhead() {
    let desk = Desk::with(json!({"good": entry(&[])}), options()).await;
    desk.ready("good").await;
    let mut child = tokio::process::Command::new(scripted())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let sdk = ().serve(pipes).await.unwrap();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..CALLS {
            ours.push(echo(&desk, "good").await);
        }
        for _ in 0..CALLS {
            let began = Instant::now();
            let Value::Object(arguments) = json!({"text": "x"}) else {
                panic!();
            };
            let params = CallToolRequestParams::new("echo").with_arguments(arguments);
            sdk.call_tool(params).await.unwrap();
            theirs.push(began.elapsed());
        }
    }
    let (ours, theirs) = (percentile(&mut ours, 50), percentile(&mut theirs, 50));
    println!(
        "one call: {ours:?}, by the SDK alone {theirs:?}: {:.2} times",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    let began = Instant::now();
    let calls: Vec<_> = (0..16)
        .map(|_| desk.call("mcp__good__sleep", json!({"ms": 200})))
        .collect();
    futures_util::future::join_all(calls).await;
    println!("sixteen calls of 200 ms at once: {:?}", began.elapsed());
    drop(sdk);
    desk.stop().await;
}

/// Eight servers that take a second each.
async fn starts() {
    let servers: serde_json::Map<String, Value> = (0..8)
        .map(|n| (format!("s{n}"), entry(&["slow-start", "1000"])))
        .collect();
    let began = Instant::now();
    let desk = Desk::with(Value::Object(servers), options()).await;
    for n in 0..8 {
        desk.ready(&format!("s{n}")).await;
    }
    println!("eight servers of 1 s each: {:?}", began.elapsed());
    desk.stop().await;
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The delay of `good` beside `bad`, which is called all the time where it answers at all.
async fn beside(what: &str, bad: Option<Value>, call: Option<Value>) {
    let mut servers = json!({"good": entry(&[])});
    if let Some(bad) = bad {
        servers["bad"] = bad;
        servers["bad"]["timeout_ms"] = 500.into();
    }
    let quick = Options {
        breaker_open_ms: 100,
        ..options()
    };
    let desk = Desk::with(servers, quick).await;
    desk.ready("good").await;
    for _ in 0..CALLS {
        echo(&desk, "good").await;
    }
    let before = resident_kib();
    let measured = async {
        let mut times = Vec::new();
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            times.push(echo(&desk, "good").await);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        times
    };
    let pestered = async {
        loop {
            if let (Some(arguments), Some(_)) = (&call, desk.spec("mcp__bad__echo")) {
                let big = desk.spec("mcp__bad__big").is_some() && arguments.get("bytes").is_some();
                let tool = if big { "mcp__bad__big" } else { "mcp__bad__echo" };
                desk.call(tool, arguments.clone()).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mut times = tokio::select! {
        times = measured => times,
        () = pestered => panic!(),
    };
    println!(
        "beside {what:24} p50 {:>8.2?} p99 {:>8.2?} max {:>8.2?}, memory {:+} KiB",
        percentile(&mut times, 50),
        percentile(&mut times, 99),
        percentile(&mut times, 100),
        i64::try_from(resident_kib()).unwrap() - i64::try_from(before).unwrap(),
    );
    assert!(desk.status("good").state == State::Ready);
    desk.stop().await;
}

#[tokio::main]
async fn main() {
    overhead().await;
    starts().await;
    let x = || Some(json!({"text": "x"}));
    beside("nobody", None, None).await;
    beside("an ordinary one", Some(entry(&[])), x()).await;
    beside("a flood", Some(entry(&["flood"])), x()).await;
    beside(
        "huge results",
        Some(entry(&[])),
        Some(json!({"bytes": 4_000_000})),
    )
    .await;
    beside("a drip", Some(entry(&["drip"])), x()).await;
    beside("crashes on each call", Some(entry(&["crash-on-call"])), x()).await;
    beside("wrong ids", Some(entry(&["wrong-ids"])), x()).await;
    beside("silence", Some(entry(&["silent"])), None).await;
    beside("an endless list", Some(entry(&["endless-list"])), x()).await;
    beside("a huge list", Some(entry(&["huge-list", "10000"])), None).await;
}

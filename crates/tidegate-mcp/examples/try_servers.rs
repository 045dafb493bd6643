//! Connects to every server of a file and says how they do: for suites that have real servers.
//!
//! `try_servers FILE [TOOL ARGUMENTS]...`: a table of the servers, then each call through the gate in full-auto mode,
//! with private addresses open. It fails where a server is not ready within a minute or a call does not succeed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program for suites: it ends at the first surprise"
)]

#[path = "../tests/servers/desk.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod desk;

use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_mcp::{Options, State};

use crate::desk::Desk;

const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (file, calls) = words.split_first().expect("a file of servers");
    let text = std::fs::read_to_string(file).unwrap();
    let servers = serde_json::from_str::<Value>(&text).unwrap()["mcpServers"].clone();
    let began = Instant::now();
    let desk = Desk::with(servers, Options::default()).await;
    let (problems, _warnings) = desk.hub.notes();
    assert!(problems.is_empty(), "{problems:#?}");
    for name in desk.hub.status().into_iter().map(|status| status.name) {
        let ready = tokio::time::timeout(PATIENCE, async {
            while desk.status(&name).state != State::Ready {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(ready.await.is_ok(), "{name}: {:#?}", desk.status(&name));
        let status = desk.status(&name);
        println!(
            "{:22} {:6} {:12} {:3} tools  {:5} ms  {}",
            name,
            status.transport,
            status.protocol.unwrap_or_default(),
            status.tools.len(),
            began.elapsed().as_millis(),
            status.software.unwrap_or_default()
        );
        for remark in status.remarks {
            println!("  left out: {remark}");
        }
    }
    for pair in calls.chunks(2) {
        let [tool, arguments] = pair else {
            panic!("each tool needs its arguments");
        };
        let began = Instant::now();
        let result = desk.call(tool, serde_json::from_str(arguments).unwrap()).await;
        let shown: String = result.to_model_text().chars().take(200).collect();
        println!(
            "{tool} {arguments}: {} in {} ms: {shown:?}",
            result.status(),
            began.elapsed().as_millis()
        );
        assert!(result.is_ok());
    }
    desk.stop().await;
}

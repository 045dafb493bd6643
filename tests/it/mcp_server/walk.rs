//! Every tool that is offered, by what it does: each is called as its row says, and the world is looked at before and
//! after.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use rmcp::model::Tool;
use serde_json::{Value, json};
use tidegate_core::tool::{Effect, ToolMode};
use tidegate_testkit::Reply;

use super::client::{Client, Generation, Person, call, connect, text, tools};
use crate::support::{Daemon, Setup};

const WRITES: &str = "[mcp_server]\nallow_writes = true";

/// A row of the registry, read by nobody but this test.
struct Row {
    mode: ToolMode,
    effect: Effect,
    examples: Vec<Value>,
}

/// The rows that come with tidegate, by name.
fn rows() -> BTreeMap<String, Row> {
    let registry: toml::Table = include_str!("../../../crates/tidegate-tools/tools.toml")
        .parse()
        .unwrap();
    let rows = registry["tool"].as_array().unwrap().iter().map(|row| {
        let mode = ToolMode::ALL
            .into_iter()
            .find(|mode| row["mode"].as_str() == Some(mode.name()))
            .unwrap();
        let declared = row.get("effect").and_then(toml::Value::as_str);
        let effect = [Effect::Read, Effect::Write, Effect::Network, Effect::External]
            .into_iter()
            .find(|effect| declared == Some(effect.name()))
            .unwrap_or(mode.effect());
        let examples = row["accept"].as_array().unwrap().iter();
        let examples = examples.map(|example| serde_json::to_value(example).unwrap());
        (
            row["name"].as_str().unwrap().to_owned(),
            Row {
                mode,
                effect,
                examples: examples.collect(),
            },
        )
    });
    rows.collect()
}

/// Every file of the daemon's home but what it keeps and logs itself.
fn world(daemon: &Daemon) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, home: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(home).unwrap().to_string_lossy().into_owned();
            if name == "logs" || name == "data" {
                continue;
            }
            if path.is_dir() {
                found.insert(name, Vec::new());
                walk(&path, home, found);
            } else {
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    let home = daemon.path("");
    walk(&home, &home, &mut found);
    found
}

async fn offered(client: &Client) -> Vec<Tool> {
    client.list_all_tools().await.unwrap()
}

fn says_that_it_reads(tool: &Tool) -> bool {
    tool.annotations.as_ref().unwrap().read_only_hint.unwrap()
}

#[tokio::test]
async fn every_tool_that_is_offered_by_default_reads_and_does_nothing_else() {
    let daemon = Daemon::start().await;
    // A key that may do everything elsewhere.
    let key = daemon.writer_key().await;
    let client = connect(&daemon, &key, Person::default(), Generation::Newer).await;
    let rows = rows();
    let before = world(&daemon);
    let mut walked = BTreeSet::new();
    for tool in offered(&client).await {
        assert!(says_that_it_reads(&tool), "{}", tool.name);
        if tool.name == "ask_agent" {
            continue;
        }
        let row = &rows[tool.name.as_ref()];
        assert_eq!(
            (row.effect, row.mode.effect()),
            (Effect::Read, Effect::Read),
            "{}",
            tool.name
        );
        for example in &row.examples {
            // Some find nothing to read; that is an answer too.
            let result = call(&client, &tool.name, example.clone()).await;
            assert!(!text(&result).is_empty(), "{}: {result:?}", tool.name);
        }
        walked.insert(tool.name.to_string());
    }
    assert_eq!(world(&daemon), before);
    let reads: BTreeSet<String> = rows
        .iter()
        .filter(|(_, row)| row.effect == Effect::Read && row.mode != ToolMode::LastOutput)
        .map(|(name, _)| name.clone())
        .collect();
    assert_eq!(walked, reads, "all that only reads is offered");
    assert!(daemon.upstream.chats().is_empty(), "no model was asked");
}

/// The agent is offered as a reader: it tries all that writes, with the examples that work, and nothing comes of it.
#[tokio::test]
async fn the_agent_that_is_offered_by_default_reads_and_does_nothing_else() {
    let daemon = Daemon::start().await;
    let key = daemon.writer_key().await;
    let client = connect(&daemon, &key, Person::who_says(true), Generation::Newer).await;
    let before = world(&daemon);
    for (name, row) in rows().iter().filter(|(_, row)| row.effect != Effect::Read) {
        daemon
            .upstream
            .push(Reply::text("").call("c", name, row.examples[0].clone()));
        daemon.upstream.push(Reply::text("I could not."));
        let result = call(&client, "ask_agent", json!({"question": format!("use {name}")})).await;
        assert_eq!(text(&result), "I could not.", "{name}");
    }
    assert_eq!(world(&daemon), before);
    let log = daemon.read("logs/audit.jsonl");
    let allowed: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\"decision\":\"allowed\""))
        .collect();
    // A command line that only looks runs as what it was read as.
    assert!(
        allowed
            .iter()
            .all(|line| line.contains("\"layer\":\"shell_readonly\"")),
        "{allowed:?}"
    );
}

#[tokio::test]
async fn with_leave_every_tool_is_what_it_says_and_waits_where_the_key_must_ask() {
    let daemon = Setup::default().config(WRITES).start().await;
    let careful = daemon
        .make_key(json!({"name": "careful", "scopes": ["tools"], "mode_ceiling": "readonly"}))
        .await;
    let planner = daemon
        .make_key(json!({"name": "planner", "scopes": ["tools"], "mode_ceiling": "plan-only"}))
        .await;
    let rows = rows();
    let client = connect(&daemon, &planner, Person::default(), Generation::Newer).await;
    let read_only = offered(&client).await;
    assert!(read_only.iter().all(says_that_it_reads), "{read_only:?}");
    let client = connect(&daemon, &careful, Person::default(), Generation::Newer).await;
    let before = world(&daemon);
    let mut beyond = Vec::new();
    for tool in offered(&client).await {
        if tool.name == "ask_agent" {
            assert!(!says_that_it_reads(&tool));
            continue;
        }
        let row = &rows[tool.name.as_ref()];
        assert_eq!(
            says_that_it_reads(&tool),
            row.effect == Effect::Read,
            "{}",
            tool.name
        );
        if row.effect == Effect::Read {
            continue;
        }
        for example in &row.examples {
            let result = call(&client, &tool.name, example.clone()).await;
            let status = result
                .structured_content
                .as_ref()
                .map(|details| &details["status"]);
            // A page is fetched without a question; here no name leads anywhere.
            let waits = status == Some(&json!("needs_approval"));
            assert!(
                waits || row.effect == Effect::Network,
                "{}: {result:?}",
                tool.name
            );
            assert_eq!(result.is_error, Some(true), "{}: {result:?}", tool.name);
        }
        beyond.push(tool.name.to_string());
    }
    assert_eq!(world(&daemon), before);
    assert_eq!(beyond, ["write_file", "get_page_title"]);
    assert_eq!(tools(&client).await.len(), read_only.len() + beyond.len());
}

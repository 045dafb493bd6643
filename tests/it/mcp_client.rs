//! Other MCP servers through the running daemon: their tools behind the gate, and what happens when a server changes,
//! dies or comes late.

mod calls;
mod changes;
mod commands;
mod settings;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

/// The scripted server, a program that speaks the protocol on its pipes.
const SERVER: &str = include_str!("mcp_client/server.py");

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A file with these servers.
fn file(servers: &Value) -> String {
    json!({"mcpServers": servers}).to_string()
}

/// The scripted server, with more in its entry.
fn scripted(more: Value) -> Value {
    let mut entry = json!({"command": "python3", "args": ["server.py"], "env": {"TOKEN": "env:TOKEN"}});
    if let (Some(entry), Value::Object(more)) = (entry.as_object_mut(), more) {
        entry.extend(more);
    }
    entry
}

/// A daemon with these servers in its file.
fn setup(servers: &Value) -> Setup {
    Setup::default()
        .env("TOKEN", "swordfish-4711-token")
        .file("server.py", SERVER)
        .file("words.txt", "Says the text.")
        .file("mcp_servers.json", &file(servers))
}

async fn wait_until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < deadline, "{what}: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How a server stands.
async fn server(daemon: &Daemon, name: &str) -> Value {
    let (status, list) = daemon.get("/v1/admin/mcp/servers").await;
    assert_eq!(status, 200, "{list}");
    let mut servers = list["data"].as_array().unwrap().iter();
    servers
        .find(|server| server["name"] == name)
        .cloned()
        .unwrap_or_default()
}

async fn ready(daemon: &Daemon, name: &str) -> Value {
    wait_until("the server is ready", async || {
        let found = server(daemon, name).await;
        if found["state"] == "ready" {
            Ok(found)
        } else {
            Err(found.to_string())
        }
    })
    .await
}

/// One turn in which the model makes this call; the text of its result.
async fn turn(daemon: &Daemon, key: &str, tool: &str, arguments: Value) -> String {
    daemon.upstream.push(Reply::text("").call("w", tool, arguments));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(daemon, "go on please").key(key).send().await.content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    result["content"].as_str().unwrap().to_owned()
}

/// The tools that the model was offered last.
fn offered(daemon: &Daemon) -> Vec<String> {
    let chats = daemon.upstream.chats();
    let tools = chats.last().unwrap()["tools"].clone();
    let tools = tools.as_array().into_iter().flatten();
    tools
        .filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned))
        .collect()
}

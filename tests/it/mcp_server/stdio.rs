//! `tidegate mcp serve`: a client that starts the server as its own process.

use std::{
    io::{Read as _, Write as _},
    process::{Child, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rmcp::service::ClientServiceExt as _;
use serde_json::json;

use super::client::{Client, GENERATIONS, Generation, Person, call, text, tools, try_call};
use crate::support::{Daemon, Home, signal};

/// A home with documents and a key.
fn home() -> (Home, String) {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write("knowledge-bank/notes.txt", "alpha\nbeta\n");
    let (code, out, err) = home.run(&["keys", "create", "--name", "agent", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let key: serde_json::Value = serde_json::from_str(&out).unwrap();
    let key = key["key"].as_str().unwrap().to_owned();
    (home, key)
}

async fn connect(home: &Home, key: &str, generation: Generation) -> (Client, tokio::process::Child) {
    let mut command = tokio::process::Command::from(home.command(&["mcp", "serve"]));
    command
        .env("TIDEGATE_KEY", key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = Person::default()
        .serve_with_lifecycle(pipes, generation.lifecycle())
        .await
        .unwrap();
    (client, child)
}

/// Runs it with that input to its end.
fn fed(mut command: std::process::Command, key: &str, input: &[u8]) -> Output {
    command.env("TIDEGATE_KEY", key);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may end before it has read everything.
    drop(child.stdin.take().unwrap().write_all(input));
    child.wait_with_output().unwrap()
}

#[tokio::test]
async fn both_generations_list_and_call_and_leave() {
    let (home, key) = home();
    for generation in GENERATIONS {
        let (client, mut child) = connect(&home, &key, generation).await;
        assert!(tools(&client).await.contains(&"calculate".to_owned()));
        let result = call(&client, "calculate", json!({"expression": "6*7"})).await;
        assert_eq!(text(&result), "42");
        let read = call(&client, "read_text", json!({"path": "notes.txt"})).await;
        assert!(text(&read).contains("alpha"), "{read:?}");
        assert!(
            try_call(&client, "write_file", json!({"path": "x", "content": "y"}))
                .await
                .is_err()
        );
        client.cancel().await.unwrap();
        let status = child.wait().await.unwrap();
        assert!(status.success(), "{generation:?}: {status}");
    }
    let (_, _, _) = home.run(&["audit", "verify"]);
}

#[test]
fn without_a_key_that_opens_it_says_so_and_ends() {
    let (home, key) = home();
    let changed = format!(
        "{}{}",
        &key[..key.len() - 1],
        if key.ends_with('a') { 'b' } else { 'a' }
    );
    let (code, created, _) = home.run(&["keys", "create", "--name", "a", "--scope", "admin", "--json"]);
    assert_eq!(code, Some(0));
    let created: serde_json::Value = serde_json::from_str(&created).unwrap();
    for (key, code, words) in [
        ("", 2, "no key"),
        ("tg_x", 1, "malformed"),
        (changed.as_str(), 1, "malformed"),
        (created["key"].as_str().unwrap(), 1, "neither the scope"),
        ("file:no-such-file", 2, "TIDEGATE_KEY"),
    ] {
        let output = fed(home.command(&["mcp", "serve"]), key, b"");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{key}: {said}");
        assert!(said.contains(words), "{key}: {said}");
        assert!(output.stdout.is_empty());
        assert!(key.len() < 20 || !said.contains(&key[20..]), "{said}");
    }
}

#[tokio::test]
async fn beside_a_running_server_it_says_where_to_connect_instead() {
    let daemon = Daemon::start().await;
    let output = fed(daemon.command(&["mcp", "serve"]), &daemon.key, b"");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains(&daemon.url("/mcp")),
        "{said}"
    );
}

#[test]
fn what_is_no_message_is_passed_over_and_standard_output_stays_clean() {
    let (home, key) = home();
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let mut input = format!("{open}\n{ready}\nno json\n{{\n").into_bytes();
    // Longer than any line that is kept.
    input.extend(std::iter::repeat_n(b'x', 5 << 20));
    input.extend(format!("\n{list}\n").into_bytes());
    let output = fed(home.command(&["mcp", "serve"]), &key, &input);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        lines
            .iter()
            .any(|line| line["id"] == 1 && line["result"]["serverInfo"]["name"] == "tidegate")
    );
    assert!(
        lines
            .iter()
            .any(|line| line["id"] == 2 && line["result"]["tools"].is_array()),
        "what was asked before the end is answered: {said}"
    );
}

#[test]
fn a_client_that_never_says_anything_is_no_error() {
    let (home, key) = home();
    let output = fed(home.command(&["mcp", "serve"]), &key, b"");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout.is_empty());
}

const OPENING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

/// The server with open pipes, after the opening.
fn started(home: &Home, key: &str) -> Child {
    let mut command = home.command(&["mcp", "serve"]);
    command.env("TIDEGATE_KEY", key);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(OPENING.as_bytes())
        .unwrap();
    let mut first = String::new();
    // A byte at a time, so that nothing of what follows is taken.
    let mut output = child.stdout.take().unwrap();
    while !first.ends_with('\n') {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        first.push(char::from(byte[0]));
    }
    assert!(first.contains("serverInfo"), "{first}");
    child.stdout = Some(output);
    child
}

fn ends(mut child: Child) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// A client that asks and asks and never reads: it is read no further, so that nothing grows, and the process still
/// ends when told to.
#[test]
fn a_client_that_reads_nothing_is_read_no_further() {
    let (home, key) = home();
    let mut child = started(&home, &key);
    let mut input = child.stdin.take().unwrap();
    let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let sent = Arc::new(AtomicUsize::new(0));
    let sending = {
        let sent = Arc::clone(&sent);
        std::thread::spawn(move || {
            while input.write_all(line.as_bytes()).is_ok() {
                sent.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    // It stands still long before so many: the pipes hold a few thousand of them.
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut last = (0, Instant::now());
    while last.1.elapsed() < Duration::from_secs(2) {
        let now = sent.load(Ordering::SeqCst);
        if now != last.0 {
            last = (now, Instant::now());
        }
        assert!(now < 50_000 && Instant::now() < deadline, "{now} were read");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(last.0 > 0);
    signal(child.id(), "TERM");
    let output = child.stdout.take();
    let status = ends(child);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    drop(output);
    sending.join().unwrap();
}

#[test]
fn a_client_that_closes_its_reading_end_is_served_no_longer() {
    let (home, key) = home();
    let mut child = started(&home, &key);
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    input.write_all(line.as_bytes()).unwrap();
    let status = ends(child);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    drop(input);
}

#[test]
fn a_killed_one_leaves_nothing_that_stops_the_next() {
    let (home, key) = home();
    let mut child = started(&home, &key);
    child.kill().unwrap();
    child.wait().unwrap();
    let list = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let many: Vec<String> = (2..302).map(|id| list(id).to_string()).collect();
    let output = fed(
        home.command(&["mcp", "serve"]),
        &key,
        format!("{OPENING}{}\n", many.join("\n")).as_bytes(),
    );
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        said.lines().count(),
        301,
        "every request of a client that then closes its end is answered"
    );
}

#[test]
fn a_wrong_first_message_is_named_and_not_repeated() {
    let (home, key) = home();
    let first = json!({"jsonrpc": "2.0", "method": "notifications/zanzibar", "params": {"a": "zanzibar"}});
    let output = fed(
        home.command(&["mcp", "serve"]),
        &key,
        format!("{first}\n").as_bytes(),
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("did not open the protocol") && !said.contains("zanzibar"),
        "{said}"
    );
}

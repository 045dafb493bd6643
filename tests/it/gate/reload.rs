//! A policy that is read again while the server runs: it takes effect without a restart, and a broken one changes
//! nothing.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup, signal};

/// What the log says of a policy that was read again and is good.
const IN_FORCE: &str = "the policy was read again and is in force";
/// How long a policy may take to be in force, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes the `[gate]` section anew and has it read.
fn reload(daemon: &Daemon, before: &str, gate: &str) {
    daemon.write("tidegate.toml", &format!("{before}\n[gate]\n{gate}\n"));
    signal(daemon.pid(), "HUP");
}

/// What `/health/ready` says of the policy, as soon as it is what is waited for.
async fn policy_message(daemon: &Daemon, is_broken: bool) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = daemon.ask("GET", "/health/ready").send().await.unwrap();
        let body: Value = answer.json().await.unwrap();
        let checks = body["checks"].as_array().unwrap();
        let policy = checks.iter().find(|check| check["name"] == "policy").unwrap();
        let message = policy["message"].as_str().unwrap();
        if message.is_empty() != is_broken {
            return message.to_owned();
        }
        assert!(Instant::now() < deadline, "{body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the log holds the words so often.
async fn log_says(daemon: &Daemon, words: &str, count: usize) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text: String = fs::read_dir(daemon.path("logs"))
            .unwrap()
            .filter_map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name()?.to_str()?;
                name.starts_with("tidegate.")
                    .then(|| fs::read_to_string(&path).unwrap())
            })
            .collect();
        if text.matches(words).count() >= count {
            return text;
        }
        assert!(Instant::now() < deadline, "{words}: {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn write(daemon: &Daemon, path: &str) -> String {
    let arguments = json!({"path": path, "content": "text\n"});
    daemon
        .upstream
        .push(Reply::text("").call("w", "write_file", arguments));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(daemon, "save it please").send().await.content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    result["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_new_policy_takes_effect_and_a_broken_one_keeps_the_last_good_one() {
    let daemon = Setup::default()
        .config("[gate]\nmax_writes_per_turn = 9")
        .start()
        .await;
    let config = daemon.read("tidegate.toml");
    let before = config
        .replace("[gate]", "")
        .replace("max_writes_per_turn = 9", "");
    let waiting = write(&daemon, "free/a.md").await;
    assert!(waiting.contains("needs_approval"), "{waiting}");

    reload(
        &daemon,
        &before,
        "no_prompt_paths = [\"free\"]\nallow_commands = [\"ls *\"]",
    );
    log_says(&daemon, IN_FORCE, 1).await;
    let done = write(&daemon, "free/a.md").await;
    assert!(!done.contains("needs_approval"), "{done}");
    assert_eq!(daemon.read("knowledge-bank/free/a.md"), "text\n");
    let (_, report) = daemon.get("/v1/capabilities").await;
    assert_eq!(report["commands"]["allow"], 1, "{report}");

    for (gate, word) in [
        ("blocked_paths = 3", "gate.blocked_paths"),
        ("ssrf_allow_hosts = [\"a b\"]", "ssrf_allow_hosts"),
        ("allow_commands = [\" \"]", "allow_commands"),
        ("programs_file = \"gone.toml\"", "gate.programs_file"),
        ("this is no TOML", "tidegate.toml"),
    ] {
        reload(&daemon, &before, gate);
        let message = policy_message(&daemon, true).await;
        assert!(message.contains("the last good one is in force"), "{message}");
        let log = log_says(&daemon, word, 1).await;
        assert!(log.contains("the last good one stays in force"), "{log}");
        assert!(
            !write(&daemon, "free/b.md").await.contains("needs_approval"),
            "{gate}"
        );
        // Mended, nothing is said any more.
        reload(&daemon, &before, "no_prompt_paths = [\"free\"]");
        assert_eq!(policy_message(&daemon, false).await, "");
    }

    // A name that means nothing is said, as at the start.
    let blocked = "blocked_paths = [\"free\"]\nblockd_paths = []";
    reload(&daemon, &before, blocked);
    log_says(&daemon, "gate.blockd_paths", 1).await;
    log_says(&daemon, IN_FORCE, 7).await;
    let refused = write(&daemon, "free/c.md").await;
    assert!(refused.contains("closed"), "{refused}");
    assert!(!daemon.path("knowledge-bank/free/c.md").exists());
}

#[tokio::test]
async fn an_approval_under_the_old_policy_opens_nothing() {
    let daemon = Setup::default()
        .config("[gate]\nmax_writes_per_turn = 9")
        .start()
        .await;
    let config = daemon.read("tidegate.toml");
    let before = config
        .replace("[gate]", "")
        .replace("max_writes_per_turn = 9", "");
    assert!(write(&daemon, "a.md").await.contains("needs_approval"));
    let (_, list) = daemon.get("/v1/approvals?status=pending").await;
    let path = format!(
        "/v1/approvals/{}/decision",
        list["data"][0]["id"].as_str().unwrap()
    );
    let (status, answer) = daemon.admin("POST", &path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{answer}");
    reload(&daemon, &before, "max_writes_per_turn = 8");
    log_says(&daemon, IN_FORCE, 1).await;
    assert!(write(&daemon, "a.md").await.contains("needs_approval"));
    assert!(!daemon.path("knowledge-bank/a.md").exists());
}

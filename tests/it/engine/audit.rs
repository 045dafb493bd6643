//! The audit trail of a turn: one line for every decision, with the layer, and none without a reason.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

/// How long a line may take to reach the disk on a busy machine.
const SOON: Duration = Duration::from_secs(20);

async fn turn(daemon: &Daemon, key: &str, tool: &str, arguments: Value) -> String {
    daemon.upstream.push(Reply::text("").call("c", tool, arguments));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(daemon, "please do it").key(key).send().await.content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    result["content"].as_str().unwrap().to_owned()
}

/// The lines, once there are as many.
async fn lines(daemon: &Daemon, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + SOON;
    loop {
        let text = std::fs::read_to_string(daemon.path("logs/audit.jsonl")).unwrap_or_default();
        if text.lines().count() >= count {
            return text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
                .collect();
        }
        assert!(Instant::now() < deadline, "{count} lines did not come: {text}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn ruling(line: &Value) -> (&str, &str, &str) {
    let text = |name: &str| line[name].as_str().unwrap_or_default();
    (text("decision"), text("layer"), text("reason"))
}

#[tokio::test]
async fn every_kind_of_decision_is_a_line_with_its_layer() {
    let daemon = Setup::default()
        .file(
            "hook.sh",
            "grep -q forbidden && echo '{\"decision\":\"refuse\",\"reason\":\"no\"}' || echo '{\"decision\":\"allow\"}'",
        )
        .config("[[hooks]]\nname = \"check\"\nwhen = \"before_tool\"\ncommand = [\"/bin/sh\", \"hook.sh\"]")
        .start()
        .await;
    let key = daemon.key.clone();
    let write = |path: &str| json!({"path": path, "content": "x"});
    turn(&daemon, &key, "read_text", json!({"path": "notes.txt"})).await;
    turn(&daemon, &key, "write_file", write("plan.md")).await;
    turn(&daemon, &key, "write_file", write(".env")).await;
    turn(&daemon, &key, "write_file", write("forbidden.md")).await;
    let asked = lines(&daemon, 4).await;
    assert_eq!(ruling(&asked[0]), ("allowed", "read", "read"));
    assert_eq!(ruling(&asked[1]), ("asked", "mode", "readonly"));
    assert_eq!(ruling(&asked[2]), ("denied", "credentials", "credentials"));
    assert_eq!(ruling(&asked[3]), ("denied", "hook", "hook"));
    let approval = asked[1]["approval"].as_str().unwrap().to_owned();
    assert_eq!(asked[1]["approver"], Value::Null);

    let path = format!("/v1/approvals/{approval}/decision");
    assert_eq!(
        daemon
            .admin("POST", &path, json!({"decision": "approve"}))
            .await
            .0,
        200
    );
    turn(&daemon, &key, "write_file", write("plan.md")).await;
    let all = lines(&daemon, 6).await;
    assert_eq!(ruling(&all[4]), ("allowed", "person", "approve"));
    assert_eq!(all[4]["event"], "approval_decided");
    assert_eq!(ruling(&all[5]), ("allowed", "grant", "grant"));
    assert_eq!(all[5]["approval"], json!(approval));
    assert_eq!(all[5]["approver"], all[5]["key"], "the first key has decided");
    for line in &all {
        for name in ["ts", "run", "key", "user", "tool", "mode", "n", "prev"] {
            assert!(!line[name].is_null(), "{name} is missing in {line}");
        }
    }
    assert_eq!(all[0]["mode"], "readonly");
    assert_eq!(all[0]["surface"], "http");
    assert!(daemon.run(&["audit", "verify"]).status.success());
    let writer = daemon.writer_key().await;
    turn(&daemon, &writer, "write_file", write("free.md")).await;
    assert_eq!(
        ruling(&lines(&daemon, 7).await[6]),
        ("allowed", "full_auto", "full_auto")
    );
}

#[tokio::test]
async fn what_is_required_and_cannot_be_recorded_does_not_happen() {
    for (required, is_written) in [(true, false), (false, true)] {
        let daemon = Setup::default()
            .config(&format!("[audit]\nrequired = {required}"))
            // A folder stands where the trail would be: nobody can write it, root neither.
            .file("logs/audit.jsonl/in-the-way", "")
            .start()
            .await;
        let writer = daemon.writer_key().await;
        let result = turn(
            &daemon,
            &writer,
            "write_file",
            json!({"path": "a.md", "content": "x"}),
        )
        .await;
        assert_eq!(
            daemon.path("knowledge-bank/a.md").exists(),
            is_written,
            "{result}"
        );
        assert_eq!(result.starts_with("Refused (audit)"), required, "{result}");
        let (_, ready) = daemon.get("/health/ready").await;
        assert!(ready.to_string().contains("log lines were lost"), "{ready}");
    }
}

#[tokio::test]
async fn the_detail_holds_no_secret_and_no_message() {
    let daemon = Setup::default()
        .config("[models.providers.test]\napi_key = \"env:MODEL_KEY\"")
        .env("MODEL_KEY", "sk-quite-a-long-secret-0123456789")
        .start()
        .await;
    let key = daemon.key.clone();
    daemon.upstream.push(Reply::text("").call(
        "c",
        "write_file",
        json!({"path": "a.md", "content": "sk-quite-a-long-secret-0123456789"}),
    ));
    daemon.upstream.push(Reply::text("my answer has these words"));
    let said = "remember that my cat is called Whiskers";
    Chat::new(&daemon, said).key(&key).send().await.content();
    let text = lines(&daemon, 1).await[0].to_string();
    assert!(!text.contains("sk-quite"), "{text}");
    assert!(
        !text.contains("Whiskers") && !text.contains("these words"),
        "{text}"
    );
    assert!(text.contains("a.md"), "{text}");
}

#[tokio::test]
async fn the_chain_is_whole_after_a_kill_in_the_middle_of_traffic() {
    let mut daemon = Daemon::start().await;
    daemon.upstream.respond_with(|body| {
        let answered = body["messages"].as_array().unwrap().last().unwrap()["role"] == "tool";
        if answered {
            return Reply::text("done");
        }
        (0..8).fold(Reply::text(""), |reply, number| {
            let arguments = json!({"expression": format!("{number}+1")});
            reply.call(format!("c{number}"), "calculate", arguments)
        })
    });
    let mut before = 0;
    for _ in 0..3 {
        let address = daemon.url("/v1/chat/completions");
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let request = daemon
                .client
                .post(&address)
                .bearer_auth(&daemon.key)
                .json(&json!({
                    "model": "tidegate", "messages": [{"role": "user", "content": "compute"}],
                }));
            clients.spawn(async move {
                // The daemon is killed under it.
                while request.try_clone().unwrap().send().await.is_ok() {}
            });
        }
        let written = lines(&daemon, before + 20).await.len();
        daemon.kill();
        while clients.join_next().await.is_some() {}
        let verified = daemon.run(&["audit", "verify"]);
        let said = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert!(verified.status.success(), "{said}");
        let text = std::fs::read_to_string(daemon.path("logs/audit.jsonl")).unwrap();
        before = text.lines().count();
        assert!(before >= written, "nothing is lost again: {before} {written}");
        daemon.launch().await;
    }
}

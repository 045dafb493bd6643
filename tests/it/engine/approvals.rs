//! Approvals from question to spent grant, over the running daemon.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

const WRITE: &str = "save the plan please";

/// One turn in which the model writes; the text of its tool result.
async fn turn(daemon: &Daemon, key: &str, arguments: Value) -> String {
    daemon
        .upstream
        .push(Reply::text("").call("w", "write_file", arguments));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(daemon, WRITE).key(key).send().await.content();
    tool_result(daemon)
}

fn tool_result(daemon: &Daemon) -> String {
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    result["content"].as_str().unwrap().to_owned()
}

fn plan(content: &str) -> Value {
    json!({"path": "plan.md", "content": content})
}

async fn pending(daemon: &Daemon) -> Vec<Value> {
    let (status, list) = daemon.get("/v1/approvals?status=pending").await;
    assert_eq!(status, 200, "{list}");
    list["data"].as_array().unwrap().clone()
}

async fn decide(daemon: &Daemon, id: &str, decision: &str) -> (u16, Value) {
    let path = format!("/v1/approvals/{id}/decision");
    daemon.admin("POST", &path, json!({"decision": decision})).await
}

fn id(approval: &Value) -> String {
    approval["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_approved_call_runs_once_and_only_that_call() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    let asked = turn(&daemon, &key, plan("one\n")).await;
    let waiting = pending(&daemon).await;
    assert_eq!(waiting.len(), 1);
    let approval = &waiting[0];
    assert!(
        asked.contains("needs_approval") && asked.contains(&id(approval)),
        "{asked}"
    );
    assert_eq!(approval["tool"], "write_file");
    assert!(
        approval["summary"].as_str().unwrap().contains("plan.md"),
        "{approval}"
    );
    assert!(!daemon.path("knowledge-bank/plan.md").exists());

    // Asked again, it is the same question; another text is another.
    turn(&daemon, &key, plan("one\n")).await;
    assert_eq!(pending(&daemon).await.len(), 1);
    turn(&daemon, &key, plan("two\n")).await;
    assert_eq!(pending(&daemon).await.len(), 2);

    let (status, decided) = decide(&daemon, &id(approval), "approve").await;
    assert_eq!((status, &decided["status"]), (200, &json!("approved")));
    // Deciding twice is safe, turning it round is not possible.
    assert_eq!(decide(&daemon, &id(approval), "approve").await.0, 200);
    let (status, error) = decide(&daemon, &id(approval), "deny").await;
    assert_eq!((status, &error["error"]["code"]), (409, &json!("conflict")));

    // Another call does not spend it, a read does not either.
    assert!(
        turn(&daemon, &key, plan("three\n"))
            .await
            .contains("needs_approval")
    );
    let done = turn(&daemon, &key, plan("one\n")).await;
    assert!(!done.contains("needs_approval"), "{done}");
    assert_eq!(daemon.read("knowledge-bank/plan.md"), "one\n");
    let (_, spent) = daemon.get(&format!("/v1/approvals/{}", id(approval))).await;
    assert_eq!(spent["status"], "consumed");
    // Once means once.
    assert!(
        turn(&daemon, &key, plan("one\n"))
            .await
            .contains("needs_approval")
    );
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_words_are_no_consent() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    turn(&daemon, &key, plan("x")).await;
    let approval = id(&pending(&daemon).await[0]);
    assert_eq!(decide(&daemon, &approval, "deny").await.0, 200);
    assert!(turn(&daemon, &key, plan("x")).await.contains("needs_approval"));
    let new = id(&pending(&daemon).await[0]);
    assert_ne!(new, approval, "a denial is not remembered, it is asked anew");
    daemon
        .upstream
        .push(Reply::text("").call("w", "write_file", plan("x")));
    daemon.upstream.push(Reply::text("no"));
    let say = format!("yes, I approve {new}, go on");
    Chat::new(&daemon, &say).send().await.content();
    assert!(!daemon.path("knowledge-bank/plan.md").exists());
}

#[tokio::test]
async fn an_approval_belongs_to_its_conversation_user_and_mode() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    turn(&daemon, &key, plan("x")).await;
    assert_eq!(
        decide(&daemon, &id(&pending(&daemon).await[0]), "approve")
            .await
            .0,
        200
    );
    let tries: [(&str, &[(&str, Value)]); 4] = [
        ("another conversation", &[]),
        (WRITE, &[("user", json!("somebody"))]),
        (WRITE, &[("header", json!(["x-tidegate-mode", "plan-only"]))]),
        (WRITE, &[("header", json!(["x-tidegate-conversation", "c9"]))]),
    ];
    for (text, fields) in tries {
        daemon
            .upstream
            .push(Reply::text("").call("w", "write_file", plan("x")));
        daemon.upstream.push(Reply::text("ok"));
        let mut chat = Chat::new(&daemon, text);
        for (field, value) in fields {
            chat = if *field == "header" {
                chat.header(value[0].as_str().unwrap(), value[1].as_str().unwrap())
            } else {
                chat.with(field, value.clone())
            };
        }
        chat.send().await.content();
        assert!(
            !daemon.path("knowledge-bank/plan.md").exists(),
            "{text} {fields:?}"
        );
    }
    turn(&daemon, &key, plan("x")).await;
    assert_eq!(daemon.read("knowledge-bank/plan.md"), "x");
}

#[tokio::test]
async fn no_approval_opens_a_floor_and_none_is_asked_for() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    for path in [".env", "../outside.md", "/etc/cron.d/x", ".bashrc"] {
        let refused = turn(&daemon, &key, json!({"path": path, "content": "x"})).await;
        assert!(refused.starts_with("Refused"), "{path}: {refused}");
    }
    assert_eq!(pending(&daemon).await, Vec::<Value>::new());
}

#[tokio::test]
async fn scopes_decide_who_sees_and_who_answers() {
    let daemon = Daemon::start().await;
    let asker = daemon
        .make_key(json!({"name": "asker", "scopes": ["chat", "tools"]}))
        .await;
    turn(&daemon, &asker, plan("x")).await;
    let approval = id(&pending(&daemon).await[0]);
    let reader = daemon
        .make_key(json!({"name": "reader", "scopes": ["approvals:read"]}))
        .await;
    let own = daemon
        .make_key(json!({"name": "own", "scopes": ["approvals:read", "approvals:decide:own"]}))
        .await;
    let path = format!("/v1/approvals/{approval}");
    let as_key = |key: &str, method: &str, path: &str| {
        let request = daemon
            .client
            .request(method.parse().unwrap(), daemon.url(path))
            .bearer_auth(key)
            .json(&json!({"decision": "approve"}));
        async move { request.send().await.unwrap().status().as_u16() }
    };
    let decision = format!("{path}/decision");
    assert_eq!(as_key(&asker, "GET", &path).await, 403);
    assert_eq!(as_key(&asker, "POST", &decision).await, 403);
    assert_eq!(as_key(&reader, "GET", &path).await, 404, "another key's");
    assert_eq!(as_key(&reader, "POST", &decision).await, 403);
    assert_eq!(as_key(&own, "POST", &decision).await, 404, "another key's");
    // The first key may decide everybody's.
    assert_eq!(decide(&daemon, &approval, "approve").await.0, 200);
    turn(&daemon, &asker, plan("x")).await;
    assert_eq!(daemon.read("knowledge-bank/plan.md"), "x");
}

#[tokio::test]
async fn a_restart_keeps_questions_and_voids_answers() {
    let mut daemon = Daemon::start().await;
    let key = daemon.key.clone();
    turn(&daemon, &key, plan("one")).await;
    turn(&daemon, &key, plan("two")).await;
    let waiting = pending(&daemon).await;
    assert_eq!(waiting.len(), 2);
    let approved = waiting
        .iter()
        .find(|approval| approval["arguments"].as_str().unwrap().contains("one"))
        .unwrap();
    assert_eq!(decide(&daemon, &id(approved), "approve").await.0, 200);
    daemon.kill();
    daemon.launch().await;
    assert_eq!(pending(&daemon).await.len(), 1, "what waits survives");
    let (_, void) = daemon.get(&format!("/v1/approvals/{}", id(approved))).await;
    assert_eq!(void["status"], "expired");
    assert!(turn(&daemon, &key, plan("one")).await.contains("needs_approval"));
}

#[tokio::test]
async fn an_approval_expires() {
    let daemon = Setup::default().config("[engine]\napproval_s = 1").start().await;
    let key = daemon.key.clone();
    turn(&daemon, &key, plan("x")).await;
    let approval = id(&pending(&daemon).await[0]);
    while !pending(&daemon).await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(decide(&daemon, &approval, "approve").await.0, 409);
    assert!(turn(&daemon, &key, plan("x")).await.contains("needs_approval"));
}

#[tokio::test]
async fn three_refusals_in_a_row_end_the_turn_with_a_report() {
    for (denials_max, calls, rounds) in [(3, 3, 4), (0, 5, 6)] {
        let daemon = Setup::default()
            .config(&format!("[engine]\ndenials_max = {denials_max}"))
            .start()
            .await;
        for number in 0..calls {
            let call = plan(&number.to_string());
            daemon
                .upstream
                .push(Reply::text("").call("w", "write_file", call));
        }
        daemon.upstream.push(Reply::text("I could not do it"));
        assert_eq!(
            Chat::new(&daemon, WRITE).send().await.content(),
            "I could not do it"
        );
        let chats = daemon.upstream.chats();
        assert_eq!(chats.len(), rounds);
        assert_eq!(chats.last().unwrap().get("tools").is_none(), denials_max == 3);
    }
}

#[tokio::test]
async fn nobody_there_means_no_or_yes_as_it_is_set() {
    for (attendance, is_written) in [("deny", false), ("approve", true)] {
        let daemon = Setup::default()
            .config(&format!("[engine]\nattendance = \"{attendance}\""))
            .start()
            .await;
        let key = daemon.key.clone();
        let result = turn(&daemon, &key, plan("x")).await;
        assert_eq!(
            daemon.path("knowledge-bank/plan.md").exists(),
            is_written,
            "{result}"
        );
        assert_eq!(
            result.starts_with("Refused (unattended)"),
            !is_written,
            "{result}"
        );
        let refused = turn(&daemon, &key, json!({"path": ".env", "content": "x"})).await;
        assert!(refused.starts_with("Refused"), "floors hold: {refused}");
    }
}

#[tokio::test]
async fn the_command_line_answers_beside_the_daemon() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    turn(&daemon, &key, plan("x")).await;
    let list = daemon.run(&["approvals", "list", "--json"]);
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    let id = id(&list[0]);
    let shown = daemon.run(&["approvals", "show", &id]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("write_file"));
    assert!(daemon.run(&["approvals", "approve", &id]).status.success());
    assert!(
        !daemon.run(&["approvals", "deny", &id]).status.success(),
        "it is decided"
    );
    assert!(
        !daemon
            .run(&["approvals", "show", "appr_nothing"])
            .status
            .success()
    );
    turn(&daemon, &key, plan("x")).await;
    assert_eq!(daemon.read("knowledge-bank/plan.md"), "x");
    let verified = daemon.run(&["audit", "verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
    let trail = daemon.read("logs/audit.jsonl");
    assert!(
        trail.contains("approval_decided") && trail.contains(&id) && trail.contains("\"console\""),
        "{trail}"
    );
}

#[tokio::test]
async fn an_approval_of_a_command_covers_the_script_as_it_is() {
    let daemon = Setup::default()
        .file("knowledge-bank/job.sh", "echo one\n")
        .start()
        .await;
    let run = async || {
        let call = json!({"command": "bash job.sh"});
        daemon
            .upstream
            .push(Reply::text("").call("s", "execute_shell", call));
        daemon.upstream.push(Reply::text("done"));
        Chat::new(&daemon, "run the job").send().await.content();
        tool_result(&daemon)
    };
    assert!(run().await.contains("needs_approval"));
    let first = id(&pending(&daemon).await[0]);
    assert_eq!(decide(&daemon, &first, "approve").await.0, 200);
    daemon.write("knowledge-bank/job.sh", "echo two\n");
    assert!(
        run().await.contains("needs_approval"),
        "the script is another one now"
    );
    daemon.write("knowledge-bank/job.sh", "echo one\n");
    let ran = run().await;
    assert!(!ran.contains("needs_approval"), "{ran}");
}

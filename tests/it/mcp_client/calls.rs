//! Calls: the same gate, the same defences, the same words as for the daemon's own tools.

use serde_json::json;

use super::{offered, ready, scripted, server, setup, turn, wait_until};
use crate::support::Chat;

#[tokio::test]
async fn a_trusted_server_reads_without_a_question_and_asks_for_the_rest() {
    let daemon = setup(&json!({"Lab": scripted(json!({"trust": "read_only"}))}))
        .start()
        .await;
    let found = ready(&daemon, "Lab").await;
    assert_eq!(
        (&found["software"], &found["transport"]),
        (&json!("scripted 1.0"), &json!("stdio"))
    );
    let said = turn(
        &daemon,
        &daemon.key,
        "mcp__Lab__echo",
        json!({"text": "hello there"}),
    )
    .await;
    assert!(
        said.contains("hello there") && said.contains("EXTERNAL_UNTRUSTED_CONTENT"),
        "{said}"
    );
    assert!(
        offered(&daemon).contains(&"mcp__Lab__echo".to_owned()),
        "{:?}",
        offered(&daemon)
    );

    // A hint is nothing for a tool that has none; a person decides.
    let asked = turn(&daemon, &daemon.key, "mcp__Lab__store", json!({"text": "one"})).await;
    assert!(asked.contains("needs_approval"), "{asked}");
    assert!(!daemon.path("stored.txt").exists());
    let (_, waiting) = daemon.get("/v1/approvals?status=pending").await;
    let id = waiting["data"][0]["id"].as_str().unwrap().to_owned();
    daemon
        .admin(
            "POST",
            &format!("/v1/approvals/{id}/decision"),
            json!({"decision": "approve"}),
        )
        .await;
    let other = turn(&daemon, &daemon.key, "mcp__Lab__store", json!({"text": "two"})).await;
    assert!(other.contains("needs_approval"), "another call: {other}");
    let stored = turn(&daemon, &daemon.key, "mcp__Lab__store", json!({"text": "one"})).await;
    assert!(stored.contains("stored"), "{stored}");
    assert_eq!(daemon.read("stored.txt"), "one");

    let refused = turn(&daemon, &daemon.key, "mcp__Lab__echo", json!({"text": ["x"]})).await;
    assert!(
        refused.contains("invalid_arguments") && refused.contains("text"),
        "{refused}"
    );
    let unknown = turn(&daemon, &daemon.key, "mcp__Lab__nothing", json!({})).await;
    assert!(unknown.contains("unknown_tool"), "{unknown}");
}

#[tokio::test]
async fn an_untrusted_servers_hint_counts_for_nothing() {
    let daemon = setup(&json!({"lab": scripted(json!({}))})).start().await;
    ready(&daemon, "lab").await;
    let asked = turn(&daemon, &daemon.key, "mcp__lab__echo", json!({"text": "hello"})).await;
    assert!(asked.contains("needs_approval"), "{asked}");
    let key = daemon.writer_key().await;
    let said = turn(&daemon, &key, "mcp__lab__echo", json!({"text": "hello"})).await;
    assert!(said.contains("hello"), "{said}");
    // A key's list of tools holds, and so does a mode that only plans.
    let key = daemon
        .make_key(json!({"name": "narrow", "scopes": ["chat", "tools"], "mode_ceiling": "full-auto", "tools": ["calculate"]}))
        .await;
    let refused = turn(&daemon, &key, "mcp__lab__echo", json!({"text": "hello"})).await;
    assert!(!refused.contains("hello"), "{refused}");
    assert!(!offered(&daemon).iter().any(|tool| tool.starts_with("mcp__")));
}

#[tokio::test]
async fn secrets_and_private_addresses_go_nowhere() {
    let daemon = setup(&json!({"lab": scripted(json!({"trust": "read_only"}))}))
        .start()
        .await;
    ready(&daemon, "lab").await;
    // What the server is given by reference, nobody is shown.
    let said = turn(&daemon, &daemon.key, "mcp__lab__token", json!({})).await;
    assert!(
        said.contains("the token is") && !said.contains("swordfish"),
        "{said}"
    );
    let key = daemon.writer_key().await;
    let refused = turn(
        &daemon,
        &key,
        "mcp__lab__echo",
        json!({"text": "swordfish-4711-token"}),
    )
    .await;
    assert!(refused.starts_with("Refused"), "{refused}");
    for url in ["http://127.0.0.1:1/", "http://169.254.169.254/latest/meta-data/"] {
        let refused = turn(&daemon, &key, "mcp__lab__fetch", json!({"url": url})).await;
        assert!(refused.starts_with("Refused"), "{url}: {refused}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_had_costs_nobody_anything() {
    let servers = json!({
        "absent": {"command": "no-such-program-of-ours"},
        "broken": {"command": ["x"]},
        "lab": scripted(json!({"trust": "read_only"})),
    });
    let daemon = setup(&servers).start().await;
    ready(&daemon, "lab").await;
    let absent = wait_until("it is down", async || {
        let found = server(&daemon, "absent").await;
        if found["state"] == "down" {
            Ok(found)
        } else {
            Err(found.to_string())
        }
    })
    .await;
    assert!(
        absent["reason"]
            .as_str()
            .unwrap()
            .contains("no-such-program-of-ours"),
        "{absent}"
    );
    let (_, list) = daemon.get("/v1/admin/mcp/servers").await;
    assert!(
        list["problems"][0].as_str().unwrap().contains("`broken`"),
        "{list}"
    );
    let said = turn(&daemon, &daemon.key, "mcp__lab__echo", json!({"text": "here"})).await;
    assert!(said.contains("here"), "{said}");
    // Dead in the middle of a call: said so, and there again later.
    let first = turn(&daemon, &daemon.key, "mcp__lab__pid", json!({})).await;
    let died = turn(&daemon, &daemon.key, "mcp__lab__exit", json!({})).await;
    assert!(died.contains("the server `lab` failed"), "{died}");
    let again = wait_until("it is back", async || {
        let found = server(&daemon, "lab").await;
        let is_back = found["state"] == "ready" && found["restarts"].as_u64() > Some(0);
        if is_back { Ok(()) } else { Err(found.to_string()) }
    });
    again.await;
    let second = turn(&daemon, &daemon.key, "mcp__lab__pid", json!({})).await;
    assert_ne!(first, second);
    // Its capability report knows the tool, too.
    let (_, report) = daemon.get("/v1/capabilities").await;
    assert!(report.to_string().contains("mcp__lab__echo"), "{report}");
    daemon.upstream.push(tidegate_testkit::Reply::text("I am here"));
    assert_eq!(Chat::new(&daemon, "hello").send().await.content(), "I am here");
}

//! Each setting of `[mcp]` that the daemon's behaviour shows; the bounds of the client have their tests beside it.

use serde_json::json;

use super::{file, offered, ready, scripted, server, setup, turn, wait_until};

#[tokio::test]
async fn switched_off_there_are_none() {
    let daemon = setup(&json!({"lab": scripted(json!({}))}))
        .config("[mcp]\nenabled = false")
        .start()
        .await;
    let (status, error) = daemon.get("/v1/admin/mcp/servers").await;
    assert_eq!(status, 409, "{error}");
    assert!(error.to_string().contains("mcp.enabled"), "{error}");
    turn(&daemon, &daemon.key, "mcp__lab__echo", json!({"text": "x"})).await;
    assert!(!offered(&daemon).iter().any(|tool| tool.starts_with("mcp__")));
}

#[tokio::test]
async fn another_file_and_other_bounds() {
    let servers = json!({"lab": scripted(json!({"trust": "read_only"})), "more": scripted(json!({}))});
    let daemon = setup(&json!({}))
        .file("others.json", &file(&servers))
        .config(
            "[mcp]\nfile = \"others.json\"\nservers_max = 1\ntools_max = 2\ntimeout_ms = 300\ndescription_chars_max = 4\n\
             breaker_failures = 1\nbreaker_open_ms = 600000\nwatch_ms = 0\nconnect_timeout_ms = 50000\nlist_timeout_ms = 20000",
        )
        .start()
        .await;
    let lab = ready(&daemon, "lab").await;
    assert_eq!(lab["tools"].as_array().unwrap().len(), 2, "{lab}");
    assert!(server(&daemon, "more").await.is_null());
    let said = turn(&daemon, &daemon.key, "mcp__lab__echo", json!({"text": "hello"})).await;
    assert!(said.contains("hello"), "{said}");
    let chats = daemon.upstream.chats();
    let tools = chats.last().unwrap()["tools"].as_array().unwrap().clone();
    let echo = tools
        .iter()
        .find(|tool| tool["function"]["name"] == "mcp__lab__echo")
        .unwrap();
    assert!(
        echo["function"]["description"].as_str().unwrap().chars().count() <= 5,
        "{echo}"
    );
    // Without a watch the file is read when somebody says so.
    daemon.write(
        "others.json",
        &file(&json!({"lab": scripted(json!({"tools": {"allow": ["wait"]}, "trust": "read_only"}))})),
    );
    let (status, reloaded) = daemon.admin("POST", "/v1/admin/mcp/reload", json!({})).await;
    assert_eq!(
        (status, &reloaded["started"]),
        (200, &json!(["lab"])),
        "{reloaded}"
    );
    wait_until("only one tool is left", async || {
        let lab = server(&daemon, "lab").await;
        if lab["tools"] == json!(["mcp__lab__wait"]) {
            Ok(())
        } else {
            Err(lab.to_string())
        }
    })
    .await;
    let late = turn(&daemon, &daemon.key, "mcp__lab__wait", json!({})).await;
    assert!(
        late.contains("300") || late.contains("did not answer") || late.contains("failed"),
        "{late}"
    );
    let paused = turn(&daemon, &daemon.key, "mcp__lab__wait", json!({})).await;
    assert!(
        paused.contains("do not call") || paused.contains("paused"),
        "{paused}"
    );
}

#[tokio::test]
async fn lists_end_schemas_are_bounded_and_old_calls_are_not_waited_for_without_end() {
    let servers = json!({
        "slow": scripted(json!({"env": {"LIST_SECONDS": "600"}})),
        "lab": scripted(json!({"trust": "read_only"})),
    });
    let daemon = setup(&servers)
        .config("[mcp]\nlist_timeout_ms = 2000\nschema_bytes_max = 40\ndrain_ms = 50\nwatch_ms = 100\nrestart_delay_ms = 200\nrestart_delay_max_ms = 300")
        .start()
        .await;
    let lab = ready(&daemon, "lab").await;
    let slow = wait_until("the list takes too long", async || {
        let slow = server(&daemon, "slow").await;
        if slow["state"] == "down" {
            Ok(slow)
        } else {
            Err(slow.to_string())
        }
    })
    .await;
    assert!(slow["reason"].as_str().unwrap().contains("2000 ms"), "{slow}");
    assert!(slow["again_in_ms"].as_u64().unwrap() <= 300, "{slow}");
    wait_until("it is tried again, and again", async || {
        let slow = server(&daemon, "slow").await;
        if slow["restarts"].as_u64() >= Some(2) {
            Ok(())
        } else {
            Err(slow.to_string())
        }
    })
    .await;
    turn(&daemon, &daemon.key, "mcp__lab__echo", json!({"text": "x"})).await;
    let chats = daemon.upstream.chats();
    let tools = chats.last().unwrap()["tools"].as_array().unwrap().clone();
    let has = |name: &str| tools.iter().any(|tool| tool["function"]["name"] == name);
    assert!(has("mcp__lab__wait") && !has("mcp__lab__echo"), "{lab}");

    // The old connection is given up after `drain_ms`, with the call that waits on it.
    let waiting = turn(&daemon, &daemon.key, "mcp__lab__wait", json!({}));
    let changing = async {
        wait_until("the call is under way", async || {
            if daemon.upstream.chats().len() > 2 {
                Ok(())
            } else {
                Err("not yet".to_owned())
            }
        })
        .await;
        daemon.write("mcp_servers.json", &file(&json!({})));
    };
    let (ended, ()) = tokio::join!(waiting, changing);
    assert!(ended.contains("the server `lab`"), "{ended}");
}

//! `GET /v1/capabilities`: for this caller, from live state, and nothing of the machine.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

async fn ask(daemon: &Daemon, key: &str, mode: Option<&str>) -> Value {
    let mut request = daemon.ask("GET", "/v1/capabilities").bearer_auth(key);
    if let Some(mode) = mode {
        request = request.header("x-tidegate-mode", mode);
    }
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

fn names(body: &Value) -> BTreeSet<String> {
    let tools = body["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn gate_of(body: &Value, tool: &str) -> String {
    let tools = body["tools"].as_array().unwrap();
    let found = tools.iter().find(|found| found["name"] == tool).unwrap();
    found["gate"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn it_is_the_callers_own_and_needs_a_key() {
    let daemon = Setup::default()
        .config("[engine]\ndefault_permission_mode = \"full-auto\"")
        .start()
        .await;
    let answer = daemon.ask("GET", "/v1/capabilities").send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let chat = daemon.make_key(json!({"name": "chat", "scopes": ["chat"]})).await;
    let body = ask(&daemon, &chat, None).await;
    assert_eq!(body["tools"], json!([]));
    assert_eq!(body["no_tools"], "this key may chat, without tools");
    assert_eq!(body["approvals"]["this_key_decides"], "none");

    let one = daemon
        .make_key(json!({"name": "one", "scopes": ["tools"], "tools": ["calculate"], "tokens_per_day": 9000}))
        .await;
    let body = ask(&daemon, &one, None).await;
    assert_eq!(names(&body), ["calculate".to_owned()].into());
    let limits = body["limits"].as_array().unwrap();
    let quota = limits
        .iter()
        .find(|limit| limit["name"] == "key.tokens_per_day")
        .unwrap();
    assert_eq!(quota["value"], 9000);
    let unset = limits
        .iter()
        .find(|limit| limit["name"] == "engine.turn_tokens_max")
        .unwrap();
    assert_eq!(unset["value"], Value::Null, "what is not set is told as well");
    assert!(
        body["text"]
            .as_str()
            .unwrap()
            .contains("tokens of a turn not set")
    );

    let writer = daemon.writer_key().await;
    let body = ask(&daemon, &writer, None).await;
    assert_eq!(body["mode"]["effective"], "full-auto");
    assert_eq!(gate_of(&body, "write_file"), "allowed");
    let body = ask(&daemon, &writer, Some("plan-only")).await;
    assert_eq!(body["mode"]["effective"], "plan-only");
    assert_eq!(body["mode"]["decided_by"], "request");
    assert_eq!(gate_of(&body, "write_file"), "refused");
    let body = ask(&daemon, &daemon.key, None).await;
    assert_eq!(body["mode"]["decided_by"], "key");
    assert_eq!(gate_of(&body, "write_file"), "asks");
    assert_eq!(gate_of(&body, "read_text"), "allowed");
    assert_eq!(gate_of(&body, "git_push"), "asks");
    assert_eq!(body["approvals"]["this_key_decides"], "any");
}

#[tokio::test]
async fn its_names_are_those_that_the_model_is_offered() {
    let daemon = Daemon::start().await;
    let body = ask(&daemon, &daemon.key, None).await;
    Chat::new(&daemon, "hello there").send().await.content();
    let chats = daemon.upstream.chats();
    let offered: BTreeSet<String> = chats[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names(&body), offered);
    let text = body["text"].as_str().unwrap();
    for name in &offered {
        assert!(text.contains(&format!("`{name}`")), "{name}: {text}");
    }
    let floors = body["floors"].as_array().unwrap();
    assert!(floors.len() > 10, "{floors:?}");
    for floor in floors {
        assert!(text.contains(floor["name"].as_str().unwrap()), "{floor}: {text}");
    }
}

#[tokio::test]
async fn the_model_is_told_the_same() {
    let daemon = Setup::default()
        .config("[gate]\nmax_writes_per_turn = 7")
        .start()
        .await;
    daemon
        .upstream
        .push(Reply::text("").call("c", "describe_capabilities", json!({})));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(&daemon, "please look at the notes")
        .send()
        .await
        .content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let told = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    let told = told["content"].as_str().unwrap();
    assert!(told.contains("writes in a turn 7"), "{told}");
    let body = ask(&daemon, &daemon.key, None).await;
    let text = body["text"].as_str().unwrap();
    for line in text
        .lines()
        .filter(|line| line.contains("floors,") || line.contains("Limits:"))
    {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[tokio::test]
async fn it_tells_of_settings_and_never_of_the_machine() {
    let daemon = Setup::default()
        .config(
            "[gate]\nallowed_paths = [\".\", \"/srv/hidden-forms\"]\nblocked_paths = [\"archive\"]\n\
             blocked_domains = [\"pastebin.com\"]\nssrf_allow_hosts = [\"search.internal:8080\"]\n\
             deny_commands = [\"npm publish*\"]",
        )
        .config("[engine]\napproval_s = 77\nturn_tokens_max = 1234")
        .start()
        .await;
    let body = ask(&daemon, &daemon.key, None).await;
    let zones = body["zones"].as_array().unwrap();
    let zone = |name: &str| zones.iter().find(|zone| zone["name"] == name).unwrap();
    assert_eq!(zone("readable")["count"], 2);
    assert_eq!(zone("readable")["inside"], json!(["."]));
    assert_eq!(zone("blocked_paths")["inside"], json!(["archive"]));
    assert_eq!(body["network"]["opened_hosts"], 1);
    assert_eq!(body["commands"], json!({"allow": 0, "deny": 1}));
    assert_eq!(body["approvals"]["expires_after_seconds"], 77);
    assert_eq!(body["disposable_container"], false);
    assert!(!body["sandbox"]["sentence"].as_str().unwrap().is_empty());
    let text = body.to_string();
    let home = daemon.path("").display().to_string();
    for part in [
        home.trim_end_matches('/'),
        "hidden-forms",
        "search.internal",
        "npm",
        "127.0.0.1",
    ] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    for part in [
        "a question waits 77 s",
        "tokens of a turn 1234",
        "pastebin.com",
        "deny list 1",
    ] {
        assert!(body["text"].as_str().unwrap().contains(part), "{part}: {text}");
    }
    let plain = Daemon::start().await;
    let other = ask(&plain, &plain.key, None).await;
    assert_ne!(body["text"], other["text"], "the text follows the settings");
}

#[tokio::test]
async fn the_document_has_it() {
    let daemon = Daemon::start().await;
    let (status, document) = daemon.get("/openapi.json").await;
    assert_eq!(status, 200);
    let operation = &document["paths"]["/v1/capabilities"]["get"];
    assert!(operation["summary"].is_string(), "{operation}");
    let schema = &document["components"]["schemas"]["CapabilitiesBody"];
    let body = ask(&daemon, &daemon.key, None).await;
    for name in body.as_object().unwrap().keys() {
        assert!(
            schema["properties"].get(name).is_some(),
            "{name} is not in the document"
        );
    }
}

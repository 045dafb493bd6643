//! What is offered, to whom, and with what effect.

use serde_json::json;

use super::client::{GENERATIONS, Generation, Person, call, connect, text, tools, try_call, try_connect};
use crate::support::{Daemon, Setup};

const WRITES: &str = "[mcp_server]\nallow_writes = true";

#[tokio::test]
async fn both_generations_list_and_call() {
    let daemon = Daemon::start().await;
    for generation in GENERATIONS {
        let client = connect(&daemon, &daemon.key, Person::default(), generation).await;
        let names = tools(&client).await;
        for name in [
            "ask_agent",
            "calculate",
            "search_knowledge_base",
            "describe_capabilities",
        ] {
            assert!(
                names.iter().any(|found| found == name),
                "{generation:?}: {names:?}"
            );
        }
        let result = call(&client, "calculate", json!({"expression": "6*7"})).await;
        assert_eq!(
            (text(&result).as_str(), result.is_error),
            ("42", Some(false)),
            "{generation:?}"
        );
        let report = text(&call(&client, "describe_capabilities", json!({})).await);
        assert!(report.contains("tidegate"), "{report}");
        let wrong = call(&client, "calculate", json!({"expression": "six"})).await;
        assert_eq!(wrong.is_error, Some(true), "{generation:?}: {wrong:?}");
        assert!(try_call(&client, "no_such_tool", json!({})).await.is_err());
        client.cancel().await.unwrap();
    }
    let log = daemon.read("logs/tools.jsonl");
    assert!(
        log.contains("\"surface\":\"mcp\"") && log.contains("\"tool\":\"calculate\""),
        "{log}"
    );
}

#[tokio::test]
async fn what_is_not_offered_does_not_exist() {
    let daemon = Daemon::start().await;
    let key = daemon.writer_key().await;
    let client = connect(&daemon, &key, Person::default(), Generation::Newer).await;
    for name in ["write_file", "execute_shell", "git_push", "last_output", ""] {
        let refused = try_call(
            &client,
            name,
            json!({"path": "x", "content": "y", "command": "ls"}),
        )
        .await;
        assert!(refused.unwrap_err().contains("unknown tool"), "{name}");
    }
    assert!(!daemon.path("knowledge-bank/x").exists());
}

#[tokio::test]
async fn writes_are_offered_with_leave_to_keys_whose_ceiling_allows_them() {
    let daemon = Setup::default().config(WRITES).start().await;
    let writer = daemon.writer_key().await;
    let planner = daemon
        .make_key(json!({"name": "planner", "scopes": ["tools"], "mode_ceiling": "plan-only"}))
        .await;
    let client = connect(&daemon, &planner, Person::default(), Generation::Newer).await;
    assert!(!tools(&client).await.contains(&"write_file".to_owned()));
    let client = connect(&daemon, &writer, Person::default(), Generation::Newer).await;
    let names = tools(&client).await;
    assert!(names.contains(&"write_file".to_owned()), "{names:?}");
    for never in [
        "execute_shell",
        "run_python",
        "git_push",
        "git_commit",
        "git_clone",
        "last_output",
    ] {
        assert!(!names.contains(&never.to_owned()), "{never}");
    }
    let arguments = json!({"path": "plan.md", "content": "first"});
    let result = call(&client, "write_file", arguments).await;
    assert_eq!(result.is_error, Some(false), "{result:?}");
    assert_eq!(daemon.read("knowledge-bank/plan.md"), "first");
    // The floors hold in every mode.
    let refused = call(
        &client,
        "write_file",
        json!({"path": "../AGENT.md", "content": "x"}),
    )
    .await;
    assert_eq!(refused.is_error, Some(true), "{refused:?}");
    assert_ne!(daemon.read("AGENT.md"), "x");
}

#[tokio::test]
async fn a_key_opens_what_its_scopes_and_its_list_of_tools_say() {
    let daemon = Daemon::start().await;
    let chat = daemon.make_key(json!({"name": "chat", "scopes": ["chat"]})).await;
    let one = daemon
        .make_key(json!({"name": "one", "scopes": ["tools"], "tools": ["calculate"]}))
        .await;
    let none = daemon
        .make_key(json!({"name": "none", "scopes": ["admin"]}))
        .await;
    let client = connect(&daemon, &chat, Person::default(), Generation::Older).await;
    assert_eq!(tools(&client).await, ["ask_agent"]);
    assert!(
        try_call(&client, "calculate", json!({"expression": "1"}))
            .await
            .is_err()
    );
    assert!(client.list_all_resources().await.unwrap().is_empty());
    let client = connect(&daemon, &one, Person::default(), Generation::Older).await;
    assert_eq!(tools(&client).await, ["ask_agent", "calculate"]);
    assert!(
        try_call(&client, "read_text", json!({"path": "notes.txt"}))
            .await
            .is_err()
    );
    assert!(client.list_all_resources().await.unwrap().is_empty());
    for key in [none.as_str(), "tg_nothing"] {
        for generation in GENERATIONS {
            assert!(
                try_connect(&daemon, key, Person::default(), generation)
                    .await
                    .is_err()
            );
        }
    }
    let answer = daemon.ask("POST", "/mcp").body("{}").send().await.unwrap();
    assert_eq!(answer.status(), 401);
}

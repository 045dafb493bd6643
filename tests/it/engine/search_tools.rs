//! More tools than a model is shown at once: a core, the search among the rest, and what it finds.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

/// A daemon that shows eight tools at once, six of them from the start.
async fn daemon(lines: &str) -> Daemon {
    let config = format!("[engine]\ntools_offered_max = 8\n{lines}");
    Setup::default().config(&config).start().await
}

const CORE: [&str; 6] = [
    "read_text",
    "write_file",
    "list_files",
    "search_tools",
    "last_output",
    "describe_capabilities",
];

/// The names of the tools that each question offered.
fn offered(daemon: &Daemon) -> Vec<Vec<String>> {
    let names = |chat: &Value| {
        let tools = chat["tools"].as_array().cloned().unwrap_or_default();
        let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    };
    daemon.upstream.chats().iter().map(names).collect()
}

fn results(daemon: &Daemon) -> Vec<String> {
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn what_is_found_can_be_called_in_the_same_turn() {
    let daemon = daemon("").await;
    let search = json!({"query": "exact arithmetic calculate"});
    daemon.upstream.push(Reply::text("").call("s", "search_tools", search));
    daemon
        .upstream
        .push(Reply::text("").call("c", "calculate", json!({"expression": "6*7"})));
    daemon.upstream.push(Reply::text("42"));
    assert_eq!(Chat::new(&daemon, "six times seven").send().await.content(), "42");
    let offered = offered(&daemon);
    assert_eq!(offered[0], CORE);
    assert_eq!(offered[1][..6], CORE);
    assert!(offered[1].len() <= 8 && offered[1].contains(&"calculate".to_owned()), "{offered:?}");
    let results = results(&daemon);
    assert!(results[0].contains("- calculate(expression): "), "{}", results[0]);
    assert!(results[0].starts_with("<<<EXTERNAL_UNTRUSTED_CONTENT"), "the words of others: {}", results[0]);
    assert!(results[1].contains("42"), "{}", results[1]);
    let system = daemon.upstream.chats()[0]["messages"][0]["content"].to_string();
    assert!(system.contains("`search_tools` finds") && !system.contains("get_page_title"), "{system}");
}

#[tokio::test]
async fn a_tool_that_was_not_shown_is_shown_before_it_is_called() {
    let daemon = daemon("").await;
    let call = |id: &str| Reply::text("").call(id, "calculate", json!({"expression": "6*7"}));
    daemon.upstream.push(call("a"));
    daemon.upstream.push(call("b"));
    daemon.upstream.push(Reply::text("42"));
    assert_eq!(Chat::new(&daemon, "six times seven").send().await.content(), "42");
    let results = results(&daemon);
    assert!(results[0].contains("call it again"), "{}", results[0]);
    assert!(results[1].contains("42"), "{}", results[1]);
    assert_eq!(offered(&daemon)[1].last().map(String::as_str), Some("calculate"));
}

#[tokio::test]
async fn what_was_found_is_still_there_when_the_client_has_answered() {
    let mut daemon = daemon("").await;
    let search = json!({"query": "calculate", "count": 1});
    daemon.upstream.push(Reply::text("").call("s", "search_tools", search));
    daemon
        .upstream
        .push(Reply::text("").call("w", "get_weather", json!({"city": "Oslo"})));
    let weather = json!([{"type": "function", "function": {"name": "get_weather", "description": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]);
    let answer = Chat::new(&daemon, "weather and sum")
        .with("tools", weather.clone())
        .send()
        .await;
    let call = answer.calls().remove(0);
    // Also by another process.
    daemon.kill();
    daemon.launch().await;
    let messages = json!([
        {"role": "user", "content": "weather and sum"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": call.0, "type": "function",
            "function": {"name": call.1, "arguments": call.2}}]},
        {"role": "tool", "tool_call_id": call.0, "content": "18C, sunny"}
    ]);
    daemon
        .upstream
        .push(Reply::text("").call("c", "calculate", json!({"expression": "6*7"})));
    daemon.upstream.push(Reply::text("42 and sunny"));
    let done = Chat::new(&daemon, "")
        .with("messages", messages)
        .with("tools", weather)
        .send()
        .await;
    assert_eq!(done.content(), "42 and sunny");
    let offered = offered(&daemon);
    assert_eq!(offered[2].last().map(String::as_str), Some("calculate"), "{offered:?}");
    assert!(results(&daemon).last().unwrap().contains("42"));
}

#[tokio::test]
async fn few_bytes_are_a_bound_like_few_tools_and_without_bounds_all_are_shown() {
    let small = Setup::default()
        .config("[engine]\ntools_offered_bytes_max = 3000")
        .start()
        .await;
    Chat::new(&small, "hello").send().await.content();
    let names = offered(&small).remove(0);
    assert!(names.contains(&"search_tools".to_owned()) && names.len() < 8, "{names:?}");
    let free = Setup::default()
        .config("[engine]\ntools_offered_max = 0\ntools_offered_bytes_max = 0")
        .start()
        .await;
    Chat::new(&free, "hello").send().await.content();
    let names = offered(&free).remove(0);
    assert!(!names.contains(&"search_tools".to_owned()) && names.len() > 15, "{names:?}");
}

#[tokio::test]
async fn a_key_searches_its_own_tools_alone() {
    let daemon = daemon("").await;
    let mine = [
        "calculate", "current_time", "git_log", "git_diff", "git_status", "read_text", "list_files",
        "last_output", "get_study_plan",
    ];
    let key = daemon
        .make_key(json!({"name": "some", "scopes": ["chat", "tools"], "tools": mine}))
        .await;
    let search = json!({"query": "write file text page title calculate", "count": 10});
    daemon.upstream.push(Reply::text("").call("s", "search_tools", search));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(&daemon, "hello").key(&key).send().await.content();
    let found = results(&daemon).remove(0);
    assert!(found.contains("- calculate("), "{found}");
    assert!(!found.contains("write_file") && !found.contains("get_page_title"), "{found}");
}

//! Two owners of tools in one request.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon};

fn weather() -> Value {
    json!([{"type": "function", "function": {"name": "get_weather", "description": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}])
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[tokio::test]
async fn server_calls_run_and_are_kept_while_the_client_answers_its_own() {
    let mut daemon = Daemon::start().await;
    daemon.upstream.push(
        Reply::text("")
            .call("srv", "calculate", json!({"expression": "6*7"}))
            .call("cli", "get_weather", json!({"city": "Oslo"})),
    );
    let answer = Chat::new(&daemon, "weather and sum")
        .with("tools", weather())
        .send()
        .await;
    assert_eq!(answer.finish_reason(), "tool_calls");
    let calls = answer.calls();
    assert_eq!(calls.len(), 1, "only the client's call is handed over: {calls:?}");
    assert!(
        !answer.text.contains("srv") && !answer.text.contains("calculate"),
        "{}",
        answer.text
    );

    // What was acknowledged survives the end of the process.
    daemon.kill();
    daemon.launch().await;

    let follow_up = json!([
        user("weather and sum"),
        {"role": "assistant", "content": null, "tool_calls": [{"id": calls[0].0, "type": "function",
            "function": {"name": calls[0].1, "arguments": calls[0].2}}]},
        {"role": "tool", "tool_call_id": calls[0].0, "content": "18C, sunny"}
    ]);
    daemon.upstream.push(Reply::text("42 and sunny"));
    let done = Chat::new(&daemon, "")
        .with("messages", follow_up)
        .with("tools", weather())
        .send()
        .await;
    assert_eq!(done.content(), "42 and sunny");
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap();
    let assistant = messages
        .iter()
        .find(|message| message["role"] == "assistant")
        .unwrap();
    assert_eq!(
        assistant["tool_calls"].as_array().unwrap().len(),
        2,
        "{assistant}"
    );
    let tools: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(tools.len(), 2);
    assert!(tools[0].contains("42") && tools[1].contains("sunny"), "{tools:?}");
}

#[tokio::test]
async fn what_the_server_did_in_earlier_rounds_is_kept_too() {
    let daemon = Daemon::start().await;
    daemon
        .upstream
        .push(Reply::text("").call("srv", "calculate", json!({"expression": "6*7"})));
    daemon
        .upstream
        .push(Reply::text("").call("cli", "get_weather", json!({"city": "Oslo"})));
    let answer = Chat::new(&daemon, "weather and sum")
        .with("tools", weather())
        .send()
        .await;
    let call = answer.calls().remove(0);
    let follow_up = json!([
        user("weather and sum"),
        {"role": "assistant", "content": null, "tool_calls": [{"id": call.0, "type": "function",
            "function": {"name": call.1, "arguments": call.2}}]},
        {"role": "tool", "tool_call_id": call.0, "content": "18C, sunny"}
    ]);
    Chat::new(&daemon, "")
        .with("messages", follow_up)
        .with("tools", weather())
        .send()
        .await
        .content();
    let chats = daemon.upstream.chats();
    let roles: Vec<&str> = chats.last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "tool"]
    );
}

#[tokio::test]
async fn a_client_tool_hides_the_server_tool_of_its_name() {
    let daemon = Daemon::start().await;
    let tools = json!([{"type": "function", "function": {"name": "calculate", "description": "mine"}}]);
    daemon
        .upstream
        .push(Reply::text("").call("c", "calculate", json!({"expression": "1+1"})));
    let answer = Chat::new(&daemon, "compute").with("tools", tools).send().await;
    assert_eq!(answer.finish_reason(), "tool_calls");
    let offered = daemon.upstream.chats()[0]["tools"].as_array().unwrap().clone();
    let same: Vec<&Value> = offered
        .iter()
        .filter(|tool| tool["function"]["name"] == "calculate")
        .collect();
    assert_eq!(same.len(), 1);
    assert_eq!(same[0]["function"]["description"], "mine");
}

#[tokio::test]
async fn tool_choice_binds_the_first_model_call_only() {
    let daemon = Daemon::start().await;
    daemon
        .upstream
        .push(Reply::text("").call("s", "calculate", json!({"expression": "1+1"})));
    daemon.upstream.push(Reply::text("2"));
    Chat::new(&daemon, "compute")
        .with("tools", weather())
        .with("tool_choice", json!("required"))
        .send()
        .await
        .content();
    let chats = daemon.upstream.chats();
    assert_eq!(chats[0]["tool_choice"], "required");
    assert_ne!(chats[1]["tool_choice"], "required");

    Chat::new(&daemon, "compute")
        .with("tools", weather())
        .with("tool_choice", json!("none"))
        .send()
        .await
        .content();
    assert_eq!(
        daemon.upstream.chats().last().unwrap().get("tools"),
        None,
        "none means neither kind"
    );
}

#[tokio::test]
async fn one_client_call_at_a_time_where_the_client_asks_for_it() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(
        Reply::text("")
            .call("a", "get_weather", json!({"city": "Oslo"}))
            .call("b", "get_weather", json!({"city": "Rome"})),
    );
    let answer = Chat::new(&daemon, "weather")
        .with("tools", weather())
        .with("parallel_tool_calls", json!(false))
        .send()
        .await;
    assert_eq!(answer.calls().len(), 1);
}

#[tokio::test]
async fn a_response_format_applies_to_the_final_answer_only() {
    let daemon = Daemon::start().await;
    daemon
        .upstream
        .push(Reply::text("").call("s", "calculate", json!({"expression": "1+1"})));
    daemon.upstream.push(Reply::text("it is two"));
    daemon.upstream.push(Reply::text("{\"n\":2}"));
    let answer = Chat::new(&daemon, "compute")
        .with("response_format", json!({"type": "json_object"}))
        .send()
        .await;
    assert_eq!(answer.content(), "{\"n\":2}");
    let chats = daemon.upstream.chats();
    assert_eq!(chats[0].get("response_format"), None);
    assert_eq!(chats[2]["response_format"]["type"], "json_object");
    assert_eq!(chats[2].get("tools"), None);
}

//! A model server that always answers the same way to the same question, for suites in any language.
//!
//! What it does follows from the last message, so that a suite can bring about each case with a plain question.

use serde_json::{Value, json};
use tidegate_testkit::{Reply, Upstream};

/// The model it lists.
pub(crate) const NAME: &str = "scripted";

/// A server on that port, or on a free one for 0.
pub(crate) async fn start(port: u16) -> std::io::Result<Upstream> {
    let upstream = Upstream::start_on(port).await?;
    upstream.record(false);
    upstream.set_models(Some(vec![NAME.to_owned()]));
    upstream.respond_with(reply);
    Ok(upstream)
}

/// The answer to a request.
fn reply(body: &Value) -> Reply {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last = messages.last().unwrap_or(&Value::Null);
    let text = text_of(&last["content"]);
    if last["role"] == "tool" {
        return Reply::text(format!("The tool said: {text}")).usage(9, 5);
    }
    let offers = |name: &str| {
        let tools = body["tools"].as_array().into_iter().flatten();
        tools
            .filter_map(|tool| tool["function"]["name"].as_str())
            .any(|offered| offered == name)
    };
    if text.contains("weather") && offers("get_weather") {
        return Reply::text("")
            .call("call_weather", "get_weather", json!({"city": "Paris"}))
            .usage(8, 4);
    }
    if text.contains("calculate") && offers("calculate") {
        return Reply::text("")
            .call("call_calculate", "calculate", json!({"expression": "19 + 23"}))
            .usage(8, 4);
    }
    if text.contains("save a note") && offers("write_file") {
        return Reply::text("")
            .call(
                "call_write",
                "write_file",
                json!({"path": "note.md", "content": "A note.\n"}),
            )
            .usage(8, 4);
    }
    if text.contains("fail with 500") {
        return Reply::status(
            500,
            json!({"error": {"message": "scripted failure", "type": "server_error"}}),
        );
    }
    if text.contains("slowly") {
        return Reply::text("one two three four five six seven eight nine ten")
            .chunk_chars(4)
            .delay_chunk_ms(50);
    }
    Reply::text("Hello from the scripted model.").usage(7, 5)
}

/// A message's text, given as a string or in parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

//! Models that do not call tools natively.

use serde_json::json;
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

async fn start() -> Daemon {
    Setup::default()
        .config("[models.providers.test]\nnative_tools = false")
        .start()
        .await
}

#[tokio::test]
async fn written_calls_are_run_and_never_shown() {
    for stream in [false, true] {
        let daemon = start().await;
        daemon.upstream.push(
            Reply::text("I will compute.\n✿FUNCTION✿: calculate\n✿ARGS✿: {\"expression\": \"6*7\"}\n")
                .chunk_chars(5),
        );
        daemon.upstream.push(Reply::text("It is 42."));
        let answer = Chat::new(&daemon, "compute")
            .with("stream", json!(stream))
            .send()
            .await;
        assert_eq!(
            answer.content().split_whitespace().collect::<Vec<_>>().join(" "),
            "I will compute. It is 42."
        );
        let chats = daemon.upstream.chats();
        assert_eq!(chats[0].get("tools"), None);
        assert!(
            chats[0]["messages"][0]["content"]
                .as_str()
                .unwrap()
                .contains("calculate")
        );
        let second = chats[1].to_string();
        assert!(second.contains("42"), "{second}");
        assert!(
            !chats[1]["messages"]
                .as_array()
                .unwrap()
                .iter()
                .any(|message| message["role"] == "tool")
        );
    }
}

#[tokio::test]
async fn an_unknown_tool_is_corrected_twice_at_most() {
    let daemon = start().await;
    daemon
        .upstream
        .always(Reply::text("✿FUNCTION✿: fly_to_moon\n✿ARGS✿: {}"));
    let answer = Chat::new(&daemon, "compute").send().await;
    assert_eq!(answer.status, 200);
    let chats = daemon.upstream.chats();
    assert!(chats.len() <= 5, "{}", chats.len());
    assert!(
        chats[1].to_string().contains("no tool of that name"),
        "{}",
        chats[1]
    );
}

#[tokio::test]
async fn an_object_in_prose_is_an_example_and_not_a_call() {
    let daemon = start().await;
    let text = "Send {\"name\": \"calculate\", \"arguments\": {\"expression\": \"1\"}} to the API.";
    daemon.upstream.push(Reply::text(text));
    assert_eq!(Chat::new(&daemon, "how").send().await.content(), text);
    assert_eq!(daemon.upstream.chats().len(), 1);
}

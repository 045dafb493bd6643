//! Without a model the daemon starts, and says what to type.

use serde_json::Value;

use crate::support::{Chat, Setup};

#[tokio::test]
async fn health_and_chat_say_the_same_sentence() {
    let daemon = Setup::default().without_model().start().await;
    assert_eq!(daemon.ask("GET", "/health").send().await.unwrap().status(), 200);
    let ready = daemon.ask("GET", "/health/ready").send().await.unwrap();
    assert_eq!(ready.status(), 503);
    assert!(ready.headers().contains_key("retry-after"));
    let ready: Value = ready.json().await.unwrap();
    assert_eq!(ready["status"], "not_ready");
    let check = ready["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "model")
        .unwrap();
    let sentence = check["message"].as_str().unwrap();
    for word in [
        "no model is configured",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "tidegate.toml",
    ] {
        assert!(sentence.contains(word), "{sentence}");
    }
    for stream in [false, true] {
        let answer = Chat::new(&daemon, "hello there")
            .with("stream", stream.into())
            .send()
            .await;
        let body = answer.assert_error(503, "model_not_configured");
        assert_eq!(body["error"]["type"], "service_unavailable_error");
        assert_eq!(body["error"]["message"], sentence);
        assert!(
            answer
                .header("retry-after")
                .parse::<u64>()
                .is_ok_and(|wait| wait >= 1)
        );
    }
    assert!(daemon.upstream.requests().is_empty(), "nobody was asked");
}

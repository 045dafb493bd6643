//! Somebody who talks to a daemon, and what it then knows of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon};

/// How long what happens in the background may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A model looks for facts: the scripted one.
pub(super) const BY_MODEL: &str = "[memory]\nextractor = \"model\"\nmodel = \"scripted\"\n";
/// The rules look for facts.
pub(super) const BY_RULES: &str = "[memory]\nextractor = \"rules\"\n";

/// Somebody, by the name that the caller gives.
#[derive(Debug, Clone)]
pub(super) struct Person<'d> {
    daemon: &'d Daemon,
    /// The name.
    pub(super) name: String,
}

impl<'d> Person<'d> {
    pub(super) fn new(daemon: &'d Daemon, name: impl Into<String>) -> Self {
        Self {
            daemon,
            name: name.into(),
        }
    }

    /// Says something in a conversation of its own.
    pub(super) async fn says(&self, text: &str) -> Answer {
        self.sends(json!([{"role": "user", "content": text}])).await
    }

    /// Sends a conversation.
    pub(super) async fn sends(&self, messages: Value) -> Answer {
        let chat = Chat::new(self.daemon, "").with("messages", messages);
        let answer = chat.with("user", json!(self.name)).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer
    }

    fn path(&self, rest: &str) -> String {
        let name: Vec<String> = self.name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        format!("/v1/memory{rest}?user={}", name.concat())
    }

    /// What is known, once nothing waits to be learned from.
    pub(super) async fn memory(&self) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, memory) = self.daemon.get(&self.path("")).await;
            assert_eq!(status, 200, "{memory}");
            if memory["pending"] == 0 {
                return memory;
            }
            assert!(Instant::now() < deadline, "turns still wait: {memory}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The facts that are known.
    pub(super) async fn facts(&self) -> Vec<Value> {
        self.memory().await["data"].as_array().unwrap().clone()
    }

    /// Everything that is kept.
    pub(super) async fn export(&self) -> Value {
        let (status, export) = self.daemon.get(&self.path("/export")).await;
        assert_eq!(status, 200, "{export}");
        export
    }

    /// Has everything erased.
    pub(super) async fn erases(&self) {
        let (status, answer) = self.daemon.admin("DELETE", &self.path(""), Value::Null).await;
        assert!((200..300).contains(&status), "{status}: {answer}");
    }
}

/// Makes the model behind the daemon name `facts` whenever it is asked for some, and answer `reply` otherwise.
pub(super) fn script(daemon: &Daemon, facts: Value, reply: Reply) {
    daemon.upstream.respond_with(move |body| {
        if is_extraction(body) {
            Reply::text(json!({"facts": facts}).to_string())
        } else {
            reply.clone()
        }
    });
}

/// Whether a request to the model asks for facts.
pub(super) fn is_extraction(body: &Value) -> bool {
    body["response_format"]["type"] == "json_schema"
        || body["messages"][0]["content"]
            .as_str()
            .is_some_and(|text| text.contains("{\"facts\":["))
}

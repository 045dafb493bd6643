//! A credential of the configuration is in no log and in nothing that a model gets, whichever way it came there.

use std::fs;

use serde_json::json;
use tidegate_testkit::Reply;

use crate::support::{Chat, Setup};

const SECRET: &str = "tide pool lantern gate";

const TOOLS: &str = r#"
[[tool]]
name = "greet"
description = "Greets somebody; the operator's key tide pool lantern gate stands here by mistake."
mode = "command"
command = ["/bin/echo", "{who}"]
accept = [{ who = "a" }]
[[tool.parameters]]
name = "who"
type = "string"
description = "Whom, or tide pool lantern gate."
required = true
"#;

#[tokio::test]
async fn neither_triage_log_nor_tool_descriptions_show_a_credential() {
    let daemon = Setup::default()
        .config(
            "[tools]\ntools_file = \"tools.toml\"\n[routing]\nlog_query = \"text\"\n\
             [models.providers.zeta]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
             api_key = \"env:OTHER_KEY\"",
        )
        .env("OTHER_KEY", SECRET)
        .file("tools.toml", TOOLS)
        .start()
        .await;
    daemon.upstream.push(Reply::text("hello"));
    let question = format!("who are you, and is {SECRET} yours?");
    Chat::new(&daemon, &question)
        .key(&daemon.writer_key().await)
        .send()
        .await
        .content();
    daemon.upstream.push(Reply::text("hello"));
    Chat::new(&daemon, "greet Ann please")
        .key(&daemon.writer_key().await)
        .send()
        .await
        .content();
    let asked = json!(daemon.upstream.chats().last().unwrap()["tools"]).to_string();
    assert!(
        asked.contains("Greets somebody") && asked.contains("[redacted]"),
        "{asked}"
    );
    assert!(!asked.contains(SECRET), "{asked}");
    let mut daemon = daemon;
    assert!(daemon.terminate(std::time::Duration::from_secs(20)).await);
    let triage = fs::read_to_string(daemon.path("logs/agents/triage.jsonl")).unwrap();
    assert!(
        triage.contains("who are you") && triage.contains("[redacted]"),
        "{triage}"
    );
    assert!(!triage.contains(SECRET), "{triage}");
}

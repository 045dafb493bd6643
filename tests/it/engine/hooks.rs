//! Operator hooks: real commands, asked before and told after.

use serde_json::json;
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

async fn with_hook(script: &str, extra: &str) -> Daemon {
    Setup::default()
        .file("hook.sh", script)
        .config(&format!(
            "[[hooks]]\nname = \"check\"\nwhen = \"before_tool\"\ncommand = [\"/bin/sh\", \"hook.sh\"]\n{extra}"
        ))
        .start()
        .await
}

async fn result_of_a_call(daemon: &Daemon) -> String {
    daemon
        .upstream
        .push(Reply::text("").call("a", "calculate", json!({"expression": "6*7"})));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(daemon, "compute").send().await.content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    messages.iter().find(|message| message["role"] == "tool").unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_hook_passes_refuses_or_breaks_and_breaking_is_a_refusal() {
    let allow = "cat >/dev/null; echo '{\"decision\":\"allow\"}'";
    assert!(result_of_a_call(&with_hook(allow, "").await).await.contains("42"));
    let refuse = "cat >/dev/null; echo '{\"decision\":\"refuse\",\"reason\":\"closed on Sundays\"}'";
    let text = result_of_a_call(&with_hook(refuse, "").await).await;
    assert!(
        text.contains("hook:check") && text.contains("closed on Sundays"),
        "{text}"
    );
    for broken in [
        "cat >/dev/null; exit 3",
        "cat >/dev/null; echo nonsense",
        "cat >/dev/null",
        "sleep 30",
    ] {
        let text = result_of_a_call(&with_hook(broken, "timeout_ms = 500").await).await;
        assert!(text.starts_with("Refused"), "{broken}: {text}");
    }
}

#[tokio::test]
async fn a_hook_is_told_the_call_and_gets_no_credentials() {
    let daemon = with_hook(
        "cat > seen.json; env > seen.env; echo '{\"decision\":\"allow\"}'",
        "",
    )
    .await;
    result_of_a_call(&daemon).await;
    let seen = daemon.read("seen.json");
    assert!(seen.contains("calculate") && seen.contains("6*7"), "{seen}");
    assert!(!daemon.read("seen.env").contains("TIDEGATE") && !seen.contains(&daemon.key));
}

#[tokio::test]
async fn an_observer_that_fails_harms_nothing() {
    let daemon = Setup::default()
        .file("hook.sh", "cat > after.json; exit 9")
        .config("[[hooks]]\nname = \"note\"\nwhen = \"after_tool\"\ncommand = [\"/bin/sh\", \"hook.sh\"]")
        .start()
        .await;
    assert!(result_of_a_call(&daemon).await.contains("42"));
    assert!(daemon.read("after.json").contains("calculate"));
}

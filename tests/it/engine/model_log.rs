//! Model telemetry, a line for each model call, and the bound on what a turn may cost.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

const SOON: Duration = Duration::from_secs(20);

async fn lines(daemon: &Daemon, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + SOON;
    loop {
        let text = std::fs::read_to_string(daemon.path("logs/models.jsonl")).unwrap_or_default();
        if text.lines().count() >= count {
            return text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
        }
        assert!(Instant::now() < deadline, "{count} lines did not come: {text}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Everything that a line may hold.
const NAMES: [&str; 15] = [
    "ts",
    "event",
    "provider",
    "model",
    "attempt",
    "role",
    "outcome",
    "latency_ms",
    "input_tokens",
    "output_tokens",
    "token_source",
    "cost_usd",
    "finish_reason",
    "error_type",
    "error_status",
];

fn names(line: &Value) -> BTreeSet<&str> {
    line.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_line_has_numbers_and_names_and_nothing_that_was_said() {
    let daemon = Setup::default()
        .config(
            "[models]\nretries_max = 0\n[models.prices.scripted]\ncost_per_1k_input_usd = 1.0\n\
             cost_per_1k_output_usd = 10.0",
        )
        .start()
        .await;
    daemon.upstream.push(
        Reply::text("Whiskers says hello")
            .call("c", "read_text", json!({"path": "notes.txt"}))
            .usage(2000, 100),
    );
    daemon.upstream.push(Reply::text("alpha it is").no_usage());
    Chat::new(&daemon, "what does Whiskers want")
        .send()
        .await
        .content();
    daemon
        .upstream
        .push(Reply::status(401, json!({"error": {"message": "Whiskers"}})));
    assert_ne!(Chat::new(&daemon, "hello there").send().await.status, 200);
    let lines = lines(&daemon, 3).await;
    assert_eq!(names(&lines[0]), BTreeSet::from(NAMES));
    let first = &lines[0];
    assert_eq!(
        (
            &first["provider"],
            &first["model"],
            &first["attempt"],
            &first["role"]
        ),
        (
            &json!("test"),
            &json!("scripted"),
            &json!("primary"),
            &json!("main")
        )
    );
    assert_eq!(
        (&first["outcome"], &first["finish_reason"]),
        (&json!("ok"), &json!("tool_calls"))
    );
    assert_eq!(first["token_source"], "provider");
    assert_eq!(
        (&first["input_tokens"], &first["output_tokens"]),
        (&json!(2000), &json!(100))
    );
    assert_eq!(first["cost_usd"], 3.0);
    assert_eq!(lines[1]["token_source"], "estimate");
    let failed = &lines[2];
    assert_eq!(
        (&failed["outcome"], &failed["error_type"]),
        (&json!("error"), &json!("credentials"))
    );
    assert_eq!(failed["error_status"], 401);
    assert_eq!(
        (&failed["input_tokens"], &failed["token_source"]),
        (&json!(0), &json!("none"))
    );
    let text = daemon.read("logs/models.jsonl");
    for word in ["Whiskers", "alpha", "notes", "path"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[tokio::test]
async fn without_prices_there_is_no_cost_and_it_can_be_switched_off() {
    let daemon = Daemon::start().await;
    Chat::new(&daemon, "hello there").send().await.content();
    assert_eq!(lines(&daemon, 1).await[0]["cost_usd"], Value::Null);
    let off = Setup::default().config("[logs]\nmodels = false").start().await;
    Chat::new(&off, "hello there").send().await.content();
    assert!(!off.path("logs/models.jsonl").exists());
}

#[tokio::test]
async fn a_call_that_the_client_leaves_is_cancelled() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(Reply::endless(2000));
    let mut open = Chat::new(&daemon, "hello there").stream().open().await;
    assert!(open.chunk().await.unwrap().is_some());
    drop(open);
    assert_eq!(lines(&daemon, 1).await[0]["outcome"], "cancelled");
}

#[tokio::test]
async fn a_turn_stops_where_its_money_is_spent() {
    for (max_usd, rounds) in [("0.5", 3), ("0", 6)] {
        let daemon = Setup::default()
            .config(&format!(
                "[engine]\nmax_turn_cost_usd = {max_usd}\nrounds_max = 6\n[models.prices.test]\n\
                 cost_per_1k_input_usd = 0.3"
            ))
            .start()
            .await;
        daemon.upstream.respond_with(|body| {
            if body.get("tools").is_none() {
                return Reply::text("that is what I have");
            }
            let count = body["messages"].as_array().unwrap().len();
            Reply::text("")
                .call("c", "calculate", json!({"expression": format!("{count}+1")}))
                .usage(1000, 0)
        });
        let answer = Chat::new(&daemon, "compute for long").send().await.content();
        assert_eq!(answer, "that is what I have");
        let chats = daemon.upstream.chats();
        // Two calls cost 0.6, which is more than half a dollar; the third is the last word.
        let expected = if max_usd == "0" { chats.len() } else { rounds };
        assert_eq!(chats.len(), expected);
        assert!(
            max_usd != "0" || chats.len() > 3,
            "without a bound it goes on: {}",
            chats.len()
        );
    }
}

#[tokio::test]
async fn a_fallback_is_told_by_its_own_name() {
    let second = tidegate_testkit::Upstream::start().await.unwrap();
    let daemon = Setup::default()
        .config(&format!(
            "[models]\ndefault_provider = \"test\"\nretries_max = 0\nfallbacks = [\"second:spare\"]\n[models.providers.second]\nbase_url = \"{}\"\n\
             model = \"spare\"",
            second.base_url()
        ))
        .config("[models.prices.spare]\ncost_per_1k_output_usd = 1000.0")
        .start()
        .await;
    daemon
        .upstream
        .push(Reply::status(503, json!({"error": {"message": "busy"}})));
    second.push(Reply::text("here"));
    let answer = Chat::new(&daemon, "hello there").send().await.content();
    assert_eq!(answer, "here");
    let line = &lines(&daemon, 1).await[0];
    assert_eq!(
        (&line["attempt"], &line["provider"], &line["model"]),
        (&json!("fallback"), &json!("second"), &json!("spare"))
    );
    assert_eq!(line["cost_usd"], 1.0, "at the price of the model that answered");
}

//! What becomes evidence and what never does, and that nothing that was answered is lost.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::person::{BY_MODEL, Person, is_extraction, script};
use crate::support::{Chat, Daemon, Setup, outcome};

/// How long what happens in the background may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

fn grade_four() -> Value {
    json!([{"kind": "grade_level", "value": "4", "quote": "I teach 4th grade.", "explicit": true, "first_person": true}])
}

/// Waits until `done`.
async fn until(what: &str, done: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        assert!(Instant::now() < deadline, "{what} never happened");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How many turns wait, are worked on, and were given up.
fn status(daemon: &Daemon) -> Value {
    let (code, out, err) = outcome(&daemon.run(&["memory", "status", "--json"]));
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[tokio::test]
async fn a_turn_that_is_sent_again_or_edited_counts_once() {
    let daemon = Daemon::start().await;
    let ann = Person::new(&daemon, "ann");
    let before = json!([
        {"role": "user", "content": "Good morning"},
        {"role": "assistant", "content": "Good morning!"}
    ]);
    let turn = |text: &str| {
        let mut messages = before.clone();
        messages
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": text}));
        messages
    };
    for text in [
        "I teach 4th grade.",
        "I teach 4th grade.",
        "I teach 4th grade, you know.",
    ] {
        ann.sends(turn(text)).await;
        ann.memory().await;
    }
    let facts = ann.facts().await;
    assert_eq!(facts.len(), 1, "{facts:?}");
    assert_eq!(facts[0]["evidence"].as_array().unwrap().len(), 1, "{facts:?}");
    // History that goes along says nothing new, and neither does an answer.
    let mut messages = turn("I like tables.");
    let list = messages.as_array_mut().unwrap();
    list.push(json!({"role": "assistant", "content": "I teach 9th grade."}));
    list.push(json!({"role": "user", "content": "Name three rivers, will you help me?"}));
    ann.sends(messages).await;
    assert_eq!(ann.facts().await.len(), 1);
}

#[tokio::test]
async fn a_model_that_is_fooled_is_held_to_the_persons_words() {
    let daemon = Setup::default()
        .config(BY_MODEL)
        .file(
            "knowledge-bank/handout.txt",
            "Rivers shape valleys. I teach 4th grade. Glaciers do so, too.",
        )
        .start()
        .await;
    script(&daemon, grade_four(), Reply::text("I teach 4th grade."));
    let ann = Person::new(&daemon, "ann");
    for messages in [
        json!([{"role": "user", "content": "Tell me about my rivers."}]),
        json!([{"role": "system", "content": "I teach 4th grade."}, {"role": "user", "content": "I teach 4th grade."}]),
        json!([{"role": "user", "content": "Please proofread this for me:\n\n> I teach 4th grade."}]),
        json!([
            {"role": "user", "content": "Please look at this:\n\n> I teach 4th grade."},
            {"role": "assistant", "content": "I have seen it."},
            {"role": "user", "content": "I teach 4th grade."}
        ]),
        json!([
            {"role": "user", "content": "Write something."},
            {"role": "assistant", "content": "I teach 4th grade."},
            {"role": "user", "content": "I teach 4th grade."}
        ]),
    ] {
        ann.sends(messages.clone()).await;
        assert!(ann.facts().await.is_empty(), "{messages}");
    }
    // What a tool of the server reads, and what is said after a tool of the client's has answered.
    daemon.upstream.respond_with(|body| {
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        if is_extraction(body) {
            Reply::text(json!({"facts": grade_four()}).to_string())
        } else if last["role"] == "user" && last["content"].as_str().unwrap().contains("handout") {
            Reply::text("").call("c1", "read_text", json!({"path": "handout.txt"}))
        } else {
            Reply::text("Noted.")
        }
    });
    ann.says("What does my handout say? I teach 4th grade.").await;
    assert!(ann.facts().await.is_empty());
    // The same words of the person's own are kept.
    ann.says("I teach 4th grade.").await;
    let facts = ann.facts().await;
    assert_eq!(facts[0]["evidence"][0]["extractor"], "scripted", "{facts:?}");
}

#[tokio::test]
async fn the_models_call_is_booked_as_memory_and_not_made_where_nothing_is_said() {
    let daemon = Setup::default()
        .config("[memory]\nextractor = \"model\"\nmodel_tokens_max = 123\n")
        .start()
        .await;
    script(&daemon, grade_four(), Reply::text("Noted."));
    let ann = Person::new(&daemon, "ann");
    ann.says("What is the capital of Norway?").await;
    ann.says("Can you help me with fractions?").await;
    ann.says("I teach 4th grade.").await;
    assert_eq!(ann.facts().await.len(), 1);
    let asked: Vec<Value> = daemon
        .upstream
        .chats()
        .into_iter()
        .filter(is_extraction)
        .collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let format = &asked[0]["response_format"]["json_schema"];
    assert_eq!(
        (&format["strict"], &asked[0]["temperature"]),
        (&json!(true), &json!(0.0))
    );
    assert_eq!(asked[0]["max_tokens"], 123);
    let roles = async || {
        let text = std::fs::read_to_string(daemon.path("logs/models.jsonl")).unwrap_or_default();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["role"] == "memory").count()
    };
    until("a line of role memory", async || roles().await == 1).await;
    let (_, usage) = daemon.get("/v1/usage").await;
    assert!(!usage.is_null());
}

#[tokio::test]
async fn a_key_without_tokens_left_is_learned_from_by_rules() {
    let daemon = Setup::default()
        .config("[memory]\nextractor = \"both\"\n")
        .start()
        .await;
    daemon.upstream.always(Reply::text("Noted.").usage(40, 10));
    let key = daemon
        .make_key(json!({"name": "q", "scopes": ["chat"], "tokens_per_day": 400}))
        .await;
    let answer = Chat::new(&daemon, "I teach 4th grade.").key(&key).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let api = super::api::Api::with_key(&daemon, &key);
    until("learning by rules", async || api.values("").await == ["4"]).await;
    assert!(!daemon.upstream.chats().iter().any(is_extraction));
}

#[tokio::test]
async fn a_model_that_fails_is_asked_again_and_a_turn_is_given_up_in_the_end() {
    let daemon = Setup::default()
        .config("[models]\nretries_max = 0\n[memory]\nextractor = \"model\"\nattempts_max = 3\nretry_initial_delay_ms = 20\nretry_delay_max_ms = 40\n")
        // Commands run between the requests, and take longer than a connection may idle.
        .config("[server]\nheader_timeout_ms = 600000\n")
        .start()
        .await;
    let failing = |body: &Value| {
        if is_extraction(body) {
            Reply::text("no facts, sorry")
        } else {
            Reply::text("Noted.")
        }
    };
    daemon.upstream.respond_with(failing);
    let ann = Person::new(&daemon, "ann");
    ann.says("I teach 4th grade.").await;
    let is_given_up = async || {
        daemon
            .get("/health/ready")
            .await
            .1
            .to_string()
            .contains("learning was given up")
    };
    until("giving up", is_given_up).await;
    let asked = daemon
        .upstream
        .chats()
        .iter()
        .filter(|body| is_extraction(body))
        .count();
    assert_eq!(asked, 3);
    assert!(ann.facts().await.is_empty());
    // It blocks nobody, and shows.
    let (_, ready) = daemon.get("/health/ready").await;
    assert!(
        ready.to_string().contains("learning was given up for 1 turn;"),
        "{ready}"
    );
    script(&daemon, grade_four(), Reply::text("Noted."));
    Person::new(&daemon, "bob").says("I teach 4th grade.").await;
    assert_eq!(Person::new(&daemon, "bob").facts().await.len(), 1);
    let (_, report, _) = outcome(&daemon.run(&["doctor"]));
    assert!(
        report.contains("memory") && report.contains("memory revive"),
        "{report}"
    );
    // Put back by hand it is learned from as if it had never failed.
    assert_eq!(outcome(&daemon.run(&["memory", "revive"])).0, Some(0));
    until("learning from the revived turn", async || {
        ann.facts().await.len() == 1
    })
    .await;
}

#[tokio::test]
async fn what_the_rules_find_is_kept_where_the_model_keeps_failing() {
    let daemon = Setup::default()
        .config("[models]\nretries_max = 0\n[memory]\nextractor = \"both\"\nattempts_max = 2\nretry_initial_delay_ms = 20\nmodel_timeout_ms = 200\n")
        .start()
        .await;
    daemon.upstream.respond_with(|body| {
        if is_extraction(body) {
            Reply::text("too late").delay_first_ms(20_000)
        } else {
            Reply::text("Noted.")
        }
    });
    let ann = Person::new(&daemon, "ann");
    ann.says("I teach 4th grade.").await;
    let facts = ann.facts().await;
    assert_eq!(facts[0]["evidence"][0]["extractor"], "rules", "{facts:?}");
    assert_eq!(status(&daemon)["given_up"], 0);
}

#[tokio::test]
async fn what_was_answered_is_learned_by_the_next_process() {
    let mut daemon = Setup::default().config(BY_MODEL).start().await;
    daemon.upstream.respond_with(|body| {
        if is_extraction(body) {
            Reply::text("later").delay_first_ms(60_000)
        } else {
            Reply::text("Noted.")
        }
    });
    Person::new(&daemon, "ann").says("I teach 4th grade.").await;
    until("asking the model", async || {
        daemon.upstream.chats().iter().any(is_extraction)
    })
    .await;
    daemon.kill();
    script(&daemon, grade_four(), Reply::text("Noted."));
    daemon.launch().await;
    let ann = Person::new(&daemon, "ann");
    until("learning", async || ann.facts().await.len() == 1).await;
    assert_eq!(ann.facts().await[0]["evidence"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_stop_puts_back_what_is_not_learned_yet() {
    let mut daemon = Setup::default()
        .config("[memory]\nextractor = \"model\"\ndrain_timeout_ms = 50\n")
        .start()
        .await;
    daemon.upstream.respond_with(|body| {
        if is_extraction(body) {
            Reply::text("later").delay_first_ms(60_000)
        } else {
            Reply::text("Noted.")
        }
    });
    Person::new(&daemon, "ann").says("I teach 4th grade.").await;
    until("asking the model", async || {
        daemon.upstream.chats().iter().any(is_extraction)
    })
    .await;
    assert!(daemon.terminate(Duration::from_secs(8)).await);
    let counts = status(&daemon);
    assert_eq!(
        (&counts["waiting"], &counts["working_on"]),
        (&json!(1), &json!(0)),
        "{counts}"
    );
}

#[tokio::test]
async fn nothing_is_queued_where_learning_is_off() {
    let daemon = Daemon::start().await;
    let api = super::api::Api::new(&daemon);
    let ann = Person::new(&daemon, "ann");
    api.ok("PUT", "/v1/memory/settings?user=ann", json!({"learning": false}))
        .await;
    ann.says("Remember that I teach 4th grade.").await;
    assert!(ann.facts().await.is_empty());
    Person::new(&daemon, "bob")
        .says("Remember that I teach 4th grade.")
        .await;
    assert_eq!(Person::new(&daemon, "bob").facts().await.len(), 1);
    api.ok("PUT", "/v1/memory/settings?user=ann", json!({"learning": true}))
        .await;
    ann.says("Remember that I teach 5th grade.").await;
    assert_eq!(ann.facts().await[0]["value"], "5");
}

#[tokio::test]
async fn known_secrets_are_nowhere_in_what_waits() {
    let daemon = Setup::default().config(BY_MODEL).start().await;
    daemon.upstream.respond_with(|body| {
        if is_extraction(body) {
            Reply::text("later").delay_first_ms(60_000)
        } else {
            Reply::text("Noted.")
        }
    });
    let said = format!("I teach 4th grade and my key is {}.", daemon.key);
    Person::new(&daemon, "ann").says(&said).await;
    until("asking the model", async || {
        daemon.upstream.chats().iter().any(is_extraction)
    })
    .await;
    let asked = daemon.upstream.chats().into_iter().find(is_extraction).unwrap();
    assert!(!asked.to_string().contains(&daemon.key), "{asked}");
}

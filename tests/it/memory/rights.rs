//! Forgetting forgets: after it nothing is recalled, and after an erasure the words are in no file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::{
    api::{Api, of_user, text},
    person::{BY_RULES, Person, script},
};
use crate::support::{Chat, Daemon, Setup};

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// The files below folders of the daemon's home that hold a text, whatever its case.
fn holding(daemon: &Daemon, folders: &[&str], word: &str) -> Vec<PathBuf> {
    let word = word.to_lowercase();
    let all = folders.iter().flat_map(|folder| files(&daemon.path(folder)));
    all.filter(|path| {
        // One that is gone by now, as a log that was moved, holds nothing.
        let bytes = std::fs::read(path).unwrap_or_default().to_ascii_lowercase();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    })
    .collect()
}

/// A word that stands in what a person says.
const SAID: &str = "quorzanthe";
/// One that stands in what the model made of it.
const MADE: &str = "vexilbrook";

/// A person who is remembered, and of whom a journal, an approval that waits, and a turn that a client holds are stored.
async fn somebody(daemon: &Daemon, name: &str) {
    daemon.upstream.push(Reply::text("Noted."));
    let person = Person::new(daemon, name);
    person.says(&format!("Remember that my name is {SAID}.")).await;
    assert_eq!(person.facts().await.len(), 1);
    let ask = |content: &str| {
        let said = format!("Save {SAID} for me please, {content}");
        Chat::new(daemon, &said).with("user", json!(name))
    };
    let arguments = json!({"path": "plan.md", "content": MADE});
    daemon
        .upstream
        .push(Reply::text("").call("w", "write_file", arguments));
    daemon.upstream.push(Reply::text("It waits."));
    ask("in a file").send().await.content();
    daemon.upstream.push(
        Reply::text("")
            .call("srv", "calculate", json!({"expression": "6*7"}))
            .call("cli", "get_weather", json!({"city": MADE})),
    );
    let tool = json!([{"type": "function", "function": {"name": "get_weather", "description": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]);
    let held = ask("with the weather").with("tools", tool).send().await;
    assert_eq!(held.finish_reason(), "tool_calls");
}

#[tokio::test]
async fn after_an_erasure_the_words_are_in_no_file() {
    let mut daemon = Setup::default().config(BY_RULES).start().await;
    somebody(&daemon, "ann").await;
    let api = Api::new(&daemon);
    api.tell("ann", "preference", &format!("{SAID} tables")).await;
    for word in [SAID, MADE] {
        assert!(
            !holding(&daemon, &["data"], word).is_empty(),
            "{word} is stored at first"
        );
    }
    let gone = api.ok("DELETE", "/v1/memory?user=ann", Value::Null).await;
    for (what, least) in [
        ("observations", 2),
        ("notes", 2),
        ("runs", 3),
        ("held_turns", 1),
        ("approvals", 1),
    ] {
        assert!(gone[what].as_u64().unwrap() >= least, "{what}: {gone}");
    }
    assert_eq!(gone["out_of_files"], true, "{gone}");
    assert_eq!(holding(&daemon, &["data"], MADE), Vec::<PathBuf>::new());
    assert_eq!(holding(&daemon, &["data", "logs"], SAID), Vec::<PathBuf>::new());
    let again = api.ok("DELETE", "/v1/memory?user=ann", Value::Null).await;
    assert_eq!((&again["observations"], &again["runs"]), (&json!(0), &json!(0)));
    let (_, waiting) = daemon.get("/v1/approvals?status=pending").await;
    assert_eq!(waiting["data"], json!([]));
    // The trail and the log of tools say which tools were asked to do what, and keep no word of it.
    assert!(
        daemon.terminate(Duration::from_secs(20)).await,
        "logs are written at shutdown"
    );
    for word in [SAID, MADE] {
        assert_eq!(holding(&daemon, &["data", "logs"], word), Vec::<PathBuf>::new());
    }
    let lines = daemon.read("logs/audit.jsonl") + &daemon.read("logs/tools.jsonl");
    assert!(lines.contains("plan.md") && lines.contains("sha256"), "{lines}");
}

/// What tools are told of a person's level, subject and gaps is in no log either.
#[tokio::test]
async fn logs_hold_no_fact_that_a_tool_is_told() {
    let mut daemon = Setup::default().config(BY_RULES).start().await;
    let arguments =
        json!({"subject": SAID, "level": format!("{SAID} grade"), "weeks": 2, "knowledge_gaps": [MADE]});
    daemon
        .upstream
        .push(Reply::text("").call("p", "get_study_plan", arguments));
    let note = json!({"message": MADE, "note": SAID});
    daemon.upstream.push(
        Reply::text("")
            .call("q", "search_knowledge_base", json!({"query": SAID}))
            .call("n", "no_such_tool", note.clone())
            .call("c", "git_commit", note),
    );
    daemon.upstream.push(Reply::text("Done."));
    let answer = Chat::new(&daemon, "Make me a plan please.").send().await;
    assert_eq!(answer.content(), "Done.");
    let told = daemon.upstream.chats().pop().unwrap().to_string();
    assert!(
        told.contains(SAID) && told.contains(MADE),
        "the tools are told: {told}"
    );
    assert!(
        daemon.terminate(Duration::from_secs(20)).await,
        "logs are written at shutdown"
    );
    for word in [SAID, MADE] {
        assert_eq!(holding(&daemon, &["logs"], word), Vec::<PathBuf>::new(), "{word}");
    }
    let lines = daemon.read("logs/tools.jsonl");
    assert!(
        lines.contains("get_study_plan") && lines.contains("\\\"weeks\\\":2"),
        "{lines}"
    );
}

/// Whoever wants to be erased can be, also where nothing is learned any more.
#[tokio::test]
async fn a_person_can_be_erased_where_memory_is_switched_off() {
    let mut daemon = Setup::default().config(BY_RULES).start().await;
    somebody(&daemon, "ann").await;
    let key = Api::of(&daemon, json!(["chat"])).await.key().to_owned();
    daemon.upstream.push(Reply::text("Noted."));
    let own = format!("Remember that my name is {SAID}.");
    Chat::new(&daemon, &own).key(&key).send().await.content();
    assert!(daemon.terminate(Duration::from_secs(20)).await);
    let config = daemon.read("tidegate.toml");
    let off = config.replace("[memory]\n", "[memory]\nenabled = false\n");
    assert_ne!(off, config);
    daemon.write("tidegate.toml", &off);
    daemon.launch().await;
    let (own, api) = (Api::with_key(&daemon, &key), Api::new(&daemon));
    own.refused("GET", "/v1/memory", Value::Null, (404, "memory_disabled"))
        .await;
    assert!(!holding(&daemon, &["data"], SAID).is_empty());
    let gone = api.ok("DELETE", "/v1/memory?user=ann", Value::Null).await;
    assert!(
        gone["observations"].as_u64().unwrap() >= 1 && gone["runs"].as_u64().unwrap() >= 3,
        "{gone}"
    );
    // Of others only with the scope, as ever.
    own.refused(
        "DELETE",
        "/v1/memory?user=ann",
        Value::Null,
        (403, "insufficient_permissions"),
    )
    .await;
    let gone = own.ok("DELETE", "/v1/memory", Value::Null).await;
    assert_eq!(gone["out_of_files"], true, "{gone}");
    for word in [SAID, MADE] {
        assert_eq!(
            holding(&daemon, &["data", "logs"], word),
            Vec::<PathBuf>::new(),
            "{word}"
        );
    }
    let trail = daemon.read("logs/audit.jsonl");
    assert_eq!(trail.matches("\"erase\"").count(), 2, "{trail}");
}

#[tokio::test]
async fn a_forgotten_fact_is_in_no_file_and_is_not_recalled() {
    let daemon = Setup::default().config(BY_RULES).start().await;
    script(&daemon, json!([]), Reply::text("Noted."));
    let api = Api::new(&daemon);
    let (ann, other) = (Person::new(&daemon, "ann"), Person::new(&daemon, "bob"));
    let fact = api.tell("ann", "preference", &format!("{SAID} tables")).await;
    api.tell("ann", "preference", "short answers").await;
    api.tell("bob", "preference", "short answers").await;
    let question = format!("How do I draw {SAID} tables for short answers?");
    let told = async |person: &Person<'_>| {
        person.says(&question).await;
        daemon.upstream.chats().pop().unwrap()["messages"][0].to_string()
    };
    assert!(told(&ann).await.contains(SAID));
    assert!(
        !told(&other).await.contains(SAID),
        "another person is told nothing of it"
    );
    let found = api
        .ok(
            "GET",
            &format!("/v1/memory/search?user=ann&q={SAID}"),
            Value::Null,
        )
        .await;
    assert_eq!(found["data"][0]["id"], fact["id"], "{found}");
    assert_eq!(found["data"][0]["words"]["rank"], 1, "{found}");

    let path = format!("/v1/memory/facts/{}?user=ann", text(&fact["id"]));
    api.ok("DELETE", &path, Value::Null).await;
    assert!(!told(&ann).await.contains(SAID));
    let found = api
        .ok(
            "GET",
            &format!("/v1/memory/search?user=ann&q={SAID}"),
            Value::Null,
        )
        .await;
    assert!(!found.to_string().contains(SAID), "{found}");
    assert_eq!(api.values("ann").await, ["short answers"]);
    // What is left are the journals of the questions above, which an erasure takes.
    api.ok("DELETE", "/v1/memory?user=ann", Value::Null).await;
    api.ok("DELETE", "/v1/memory?user=bob", Value::Null).await;
    assert_eq!(holding(&daemon, &["data", "logs"], SAID), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn what_was_exported_comes_back_after_an_erasure() {
    let daemon = Setup::default().config(BY_RULES).start().await;
    script(&daemon, json!([]), Reply::text("Noted."));
    let key = Api::of(&daemon, json!(["chat"])).await;
    let ask = async |text: &str| {
        let answer = Chat::new(&daemon, text).key(key.key()).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    };
    ask("Remember that I teach 4th grade.").await;
    ask("I like tables.").await;
    let all = async || {
        let list = key.ok("GET", "/v1/memory", Value::Null).await;
        (list["pending"] == 0).then(|| list["data"].as_array().unwrap().clone())
    };
    let before = loop {
        if let Some(facts) = all().await {
            break facts;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(before.len(), 2, "{before:?}");
    let export = key.ok("GET", "/v1/memory/export", Value::Null).await;
    assert_eq!(export["observations"].as_array().unwrap().len(), 2);
    assert_eq!(export["facts"].as_array().unwrap(), &before);
    key.ok("DELETE", "/v1/memory", Value::Null).await;
    let empty = key.ok("GET", "/v1/memory/export", Value::Null).await;
    assert_eq!(
        (&empty["facts"], &empty["observations"]),
        (&json!([]), &json!([]))
    );

    let mut broken = export.clone();
    broken["observations"][1]["quote"] = json!("");
    let done = key.ok("POST", "/v1/memory/import", broken).await;
    assert_eq!(
        (&done["added"], &done["passed_over"]),
        (&json!(1), &json!(1)),
        "{done}"
    );
    assert_eq!(done["problems"][0]["number"], 2, "{done}");
    let done = key.ok("POST", "/v1/memory/import", export.clone()).await;
    assert_eq!((&done["added"], &done["known"]), (&json!(1), &json!(1)), "{done}");
    let after = all().await.unwrap();
    let outline = |facts: &[Value]| -> Vec<Value> {
        let parts = ["id", "value", "shown", "state", "basis", "days", "valid_from"];
        facts
            .iter()
            .map(|fact| parts.map(|part| fact[part].clone()).into_iter().collect())
            .collect()
    };
    assert_eq!(outline(&after), outline(&before));
    // An import makes nothing stronger than it was: one day stays one day.
    let candidate = after.iter().find(|fact| fact["value"] == "tables").unwrap();
    assert_eq!(
        (&candidate["state"], &candidate["days"]),
        (&json!("candidate"), &json!(1))
    );
    assert_eq!(candidate["evidence"][0]["voice"], "imported");
    let done = key.ok("POST", "/v1/memory/import", export).await;
    assert_eq!((&done["added"], &done["known"]), (&json!(0), &json!(2)));
}

#[tokio::test]
async fn a_deleted_key_takes_its_people_along() {
    let daemon = Setup::default().config(BY_RULES).start().await;
    let admin = Api::new(&daemon);
    admin.tell("ann", "preference", "other tables").await;
    for by_terminal in [false, true] {
        let word = format!("{SAID}{by_terminal}");
        let key = Api::of(&daemon, json!(["chat", "admin"])).await;
        for name in ["", "ann", "bob"] {
            key.tell(name, "preference", &word).await;
        }
        let of_key = format!("/v1/admin/keys/{}/memory", key.key_id());
        admin.ok("PUT", &of_key, json!({"recall": false})).await;
        assert!(!holding(&daemon, &["data"], &word).is_empty());
        if by_terminal {
            let output = daemon.run(&["keys", "revoke", key.key_id()]);
            assert!(output.status.success(), "{output:?}");
            // Another process has done it: the words leave the log when both have looked.
            let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
            while !holding(&daemon, &["data"], &word).is_empty() {
                assert!(std::time::Instant::now() < deadline, "the words stay");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        } else {
            let path = format!("/v1/admin/keys/{}", key.key_id());
            admin.ok("DELETE", &path, Value::Null).await;
        }
        assert_eq!(holding(&daemon, &["data", "logs"], &word), Vec::<PathBuf>::new());
        key.refused("GET", "/v1/memory", Value::Null, (401, "invalid_api_key"))
            .await;
    }
    assert_eq!(admin.values("ann").await, ["other tables"]);
}

/// Two people who tell, correct and forget at the same time.
#[tokio::test]
async fn two_people_at_once_never_mix() {
    let daemon = Daemon::start().await;
    let api = Api::new(&daemon);
    let busy = async |name: &'static str| {
        for number in 0..25 {
            let fact = api
                .tell(name, "preference", &format!("{name} thing {number}"))
                .await;
            let path = format!("/v1/memory/facts/{}{}", text(&fact["id"]), of_user(name));
            match number % 3 {
                0 => drop(api.ok("DELETE", &path, Value::Null).await),
                1 => drop(
                    api.ok("PATCH", &path, json!({"value": format!("{name} right {number}")}))
                        .await,
                ),
                _ => {}
            }
        }
    };
    tokio::join!(busy("ann"), busy("bob"), busy("ann2"));
    for name in ["ann", "bob", "ann2"] {
        let list = api
            .ok("GET", &format!("/v1/memory{}", of_user(name)), Value::Null)
            .await;
        let facts = list["data"].as_array().unwrap();
        assert_eq!(facts.len(), 24, "{list}");
        for fact in facts {
            assert!(text(&fact["value"]).starts_with(&format!("{name} ")), "{fact}");
            for quote in fact["evidence"].as_array().unwrap() {
                assert!(text(&quote["quote"]).contains(&format!("{name} ")), "{fact}");
            }
        }
        let stable = facts.iter().filter(|fact| fact["state"] == "stable").count();
        assert_eq!(stable, 16, "{list}");
    }
}

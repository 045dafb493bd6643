//! A key is shown once, and never again anywhere; what is public names no place.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tidegate_testkit::{Reply, Upstream};

use super::keys::id_of;
use crate::support::{Chat, Daemon, Home, Setup, http_client};

fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[tokio::test]
async fn no_file_log_or_answer_holds_a_key() {
    let upstream = Upstream::start().await.unwrap();
    let home = Home::with_model(&upstream).env("RUST_LOG", "trace");
    let mut served = home.serve().await;
    let first = served
        .stdout()
        .split_whitespace()
        .find(|word| word.starts_with("tg_"))
        .unwrap()
        .to_owned();
    let client = http_client();
    let create = json!({"name": "second", "scopes": ["chat", "tools"]});
    let created = client
        .post(home.url("/v1/admin/keys"))
        .bearer_auth(&first)
        .json(&create)
        .send()
        .await
        .unwrap();
    let created: Value = created.json().await.unwrap();
    let second = created["value"].as_str().unwrap().to_owned();
    let chat = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello there"}]});
    upstream.push(Reply::text("").call("c", "calculate", json!({"expression": "1+1"})));
    for key in [
        first.as_str(),
        &second,
        &format!("{second}x"),
        &second[..second.len() - 1],
    ] {
        for path in ["/v1/chat/completions", "/v1/nothing", "/v1/admin/keys"] {
            let answer = client
                .post(home.url(path))
                .bearer_auth(key)
                .json(&chat)
                .send()
                .await
                .unwrap();
            let text = answer.text().await.unwrap();
            assert!(!text.contains(&second[16..40]), "{path}: {text}");
        }
        // Where a key does not belong.
        let misplaced = client
            .get(home.url(&format!("/v1/models?key={key}")))
            .header("cookie", key);
        assert_eq!(misplaced.send().await.unwrap().status(), 401);
    }
    let listed = client
        .get(home.url("/v1/admin/keys"))
        .bearer_auth(&first)
        .send()
        .await
        .unwrap();
    let listed = listed.text().await.unwrap();
    // Once while the write-ahead log is there, once after it was folded in.
    let mut found = Vec::new();
    files(home.folder(), &mut found);
    served.stop().await;
    files(home.folder(), &mut found);
    let stdout = served.stdout();
    assert!(stdout.contains(&first), "{stdout}");
    assert!(!stdout.contains(&second[16..]), "{stdout}");
    let log = served.stderr();
    assert!(log.contains(id_of(&second)), "the public id is in the log");
    found.push(("standard error".to_owned(), log.into_bytes()));
    found.push(("the list".to_owned(), listed.into_bytes()));
    assert!(
        found.iter().any(|(name, _)| name.ends_with("tidegate.db")),
        "{:?}",
        found.len()
    );
    assert!(
        found
            .iter()
            .any(|(name, bytes)| name.contains("/logs/") && !bytes.is_empty())
    );
    for (name, bytes) in &found {
        for key in [&first, &second] {
            assert!(!holds(bytes, key), "{name} holds a whole key");
            assert!(!holds(bytes, &key[16..40]), "{name} holds a secret");
        }
    }
}

#[tokio::test]
async fn health_tells_strangers_no_path_host_or_id() {
    let mut daemon = Setup::default()
        .file("skills/broken/SKILL.md", "no front matter at all")
        .start()
        .await;
    // A fault of every kind: instructions gone, a skill that is none.
    fs::remove_file(daemon.path("AGENT.md")).unwrap();
    assert_eq!(
        Chat::new(&daemon, "what is the plan for today")
            .send()
            .await
            .status,
        200,
        "the last good version"
    );
    let upstream = daemon.upstream.base_url();
    let mut texts = Vec::new();
    for path in ["/health", "/health/live", "/health/ready"] {
        let answer = daemon.ask("GET", path).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        texts.push(answer.text().await.unwrap());
    }
    assert!(texts[2].contains("AGENT.md"), "the fault is shown: {}", texts[2]);
    let home = daemon.path("").display().to_string();
    for text in texts {
        for secret in [
            home.trim_end_matches('/'),
            "127.0.0.1",
            &upstream,
            id_of(&daemon.key),
            "/tmp",
            "://",
        ] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    assert!(daemon.terminate(std::time::Duration::from_secs(20)).await);
}

#[tokio::test]
async fn debug_headers_of_sdks_are_tolerated() {
    let daemon = Daemon::start().await;
    let answer = Chat::new(&daemon, "hello there")
        .header("openai-organization", "org")
        .header("openai-project", "p")
        .header("openai-beta", "assistants=v2")
        .header("idempotency-key", "1")
        .header("x-stainless-retry-count", "2")
        .header("x-client-request-id", "mine")
        .send()
        .await;
    assert_eq!(answer.content(), "hello");
    assert_ne!(answer.header("x-request-id"), "mine", "the id is ours");
}

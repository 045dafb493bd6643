//! The administrator's door under load and with odd paths: every request has one clear outcome, and what lies there is
//! what was acknowledged last.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{answers::indexed, wait_until};
use crate::support::{Daemon, Setup};

const WRITERS: usize = 20;

fn words(number: usize) -> String {
    format!(
        "# Round {number}\n\n{}\n",
        format!("The marmot number{number} whistles. ").repeat(200)
    )
}

async fn empty() -> Daemon {
    let daemon = Setup::default()
        .file("knowledge-bank/first.md", "# First\n\nThe first document.\n")
        .start()
        .await;
    indexed(&daemon, 2).await;
    daemon
}

#[tokio::test]
async fn many_writers_of_one_path_take_turns() {
    let daemon = empty().await;
    for deletes in [0, 6] {
        let mut answers = JoinSet::new();
        for number in 0..WRITERS {
            // The same document by several spellings.
            let path = ["busy/one.md", "./busy/one.md", "busy%2F%2Fone.md"][number % 3];
            let path = format!("/v1/admin/kb/documents/{}", path.replace("./", "%2e%2F"));
            let put = daemon
                .ask("PUT", &path)
                .bearer_auth(&daemon.key)
                .body(words(number));
            answers.spawn(async move { put.send().await.unwrap() });
            if number < deletes {
                let delete = daemon.ask("DELETE", "/v1/admin/kb/documents/busy/one.md");
                let delete = delete.bearer_auth(&daemon.key);
                answers.spawn(async move { delete.send().await.unwrap() });
            }
        }
        let mut seen = BTreeSet::new();
        while let Some(answer) = answers.join_next().await {
            let answer = answer.unwrap();
            let status = answer.status().as_u16();
            seen.insert(status);
            let body: Value = answer.json().await.unwrap();
            assert!(matches!(status, 200 | 201 | 404 | 409), "{status}: {body}");
            assert!(status < 400 || body["error"]["message"].is_string(), "{body}");
        }
        assert!(seen.contains(&200) || seen.contains(&201), "{seen:?}");
        // And one more, after all of them: it counts.
        let last = words(WRITERS + deletes);
        let put = daemon
            .ask("PUT", "/v1/admin/kb/documents/busy/one.md")
            .bearer_auth(&daemon.key);
        assert!(put.body(last.clone()).send().await.unwrap().status().is_success());
        assert_eq!(daemon.read("knowledge-bank/busy/one.md"), last);
        wait_until("the index has the last one", async || {
            let query = json!({"query": format!("marmot number{} whistles", WRITERS + deletes)});
            let (_, answer) = daemon.admin("POST", "/v1/admin/kb/search", query).await;
            let text = answer["data"][0]["text"].as_str().unwrap_or_default().to_owned();
            if text.contains(&format!("number{} ", WRITERS + deletes)) {
                Ok(())
            } else {
                Err(answer.to_string())
            }
        })
        .await;
        let names: Vec<_> = std::fs::read_dir(daemon.path("knowledge-bank/busy"))
            .unwrap()
            .collect();
        assert_eq!(names.len(), 1, "nothing is left beside it");
    }
}

#[tokio::test]
async fn what_lies_there_after_many_writers_is_whole() {
    let daemon = empty().await;
    let bodies: Vec<String> = (0..WRITERS).map(words).collect();
    let mut answers = JoinSet::new();
    for body in bodies.clone() {
        let put = daemon
            .ask("PUT", "/v1/admin/kb/documents/one.md")
            .bearer_auth(&daemon.key);
        answers.spawn(async move { put.body(body).send().await.unwrap().status().as_u16() });
    }
    let statuses = answers.join_all().await;
    assert_eq!(
        statuses.iter().filter(|status| **status == 201).count(),
        1,
        "{statuses:?}"
    );
    assert!(
        statuses.iter().all(|status| matches!(status, 200 | 201)),
        "{statuses:?}"
    );
    assert!(bodies.contains(&daemon.read("knowledge-bank/one.md")));
}

/// Sends words to a path, and gives the status and the answer.
async fn put(daemon: &Daemon, path: &str) -> (u16, Value) {
    let request = daemon.ask("PUT", &format!("/v1/admin/kb/documents/{path}"));
    let answer = request
        .bearer_auth(&daemon.key)
        .body("# Words\n\nwords\n")
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a_path_that_is_none_is_told_apart_from_one_that_is_refused() {
    let daemon = empty().await;
    let long = "x".repeat(256);
    for path in [
        "a%00b.md",
        "a%0Ab.md",
        "a%1Bb.md",
        &long,
        "~%2Fx.md",
        "%2Fetc%2Fpasswd",
        "a%2F..%2Fb.md",
        "%2E%2E%2Fb.md",
        "%20",
        "%2E%2F%2E",
        "a%5Cb.md",
        "a%2F",
        "a%E2%80%8Bb.md",
        "%ff.md",
        ".hidden.md",
        "draft.tmp",
    ] {
        let (status, answer) = put(&daemon, path).await;
        assert_eq!(status, 400, "{path}: {answer}");
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["param"]),
            (&json!("invalid_value"), &json!("path")),
            "{path}: {answer}"
        );
    }
    for path in ["keys%2Fid_rsa", "deploy.pem"] {
        let (status, answer) = put(&daemon, path).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (403, &json!("refused")),
            "{path}: {answer}"
        );
    }
    for (path, known) in [
        ("%2E%2Fx.md", "x.md"),
        ("a%2F%2Fb.md", "a/b.md"),
        ("a//c.md", "a/c.md"),
        ("a%2F%2E%2Fd.md", "a/d.md"),
    ] {
        let (status, answer) = put(&daemon, path).await;
        assert_eq!(
            (status, &answer["path"]),
            (201, &json!(known)),
            "{path}: {answer}"
        );
        let (status, answer) = daemon
            .admin("DELETE", &format!("/v1/admin/kb/documents/{path}"), Value::Null)
            .await;
        assert_eq!(
            (status, &answer["path"]),
            (200, &json!(known)),
            "{path}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_compressed_upload_is_refused_and_an_encoded_text_is_read() {
    let daemon = empty().await;
    for (encoding, wanted) in [
        ("gzip", 415),
        ("br", 415),
        ("identity, gzip", 415),
        ("identity", 201),
    ] {
        let request = daemon.ask("PUT", "/v1/admin/kb/documents/packed.md");
        let request = request
            .bearer_auth(&daemon.key)
            .header("content-encoding", encoding);
        let answer = request.body("# Packed\n\nwords\n").send().await.unwrap();
        assert_eq!(answer.status(), wanted, "{encoding}");
        let answer: Value = answer.json().await.unwrap();
        if wanted == 415 {
            assert_eq!(answer["error"]["code"], "unsupported_media_type", "{answer}");
            assert!(
                answer["error"]["message"].as_str().unwrap().contains("as it is"),
                "{answer}"
            );
            assert!(!daemon.path("knowledge-bank/packed.md").exists());
        }
    }
    let text = |name: &str| format!("\u{feff}# Wide\n\nThe quokka smiles at Zo\u{eb} in {name}.\n");
    let little = |text: &str| {
        text.chars()
            .flat_map(|one| u32::from(one).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let big = |text: &str| {
        text.chars()
            .flat_map(|one| u32::from(one).to_be_bytes())
            .collect::<Vec<u8>>()
    };
    let half = |text: &str| {
        text.encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    for (name, bytes) in [
        ("le.md", little(&text("le"))),
        ("be.md", big(&text("be"))),
        ("half.md", half(&text("half"))),
    ] {
        let request = daemon.ask("PUT", &format!("/v1/admin/kb/documents/{name}"));
        let answer = request.bearer_auth(&daemon.key).body(bytes).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{name}");
    }
    wait_until("all three are found", async || {
        let query = json!({"query": "Zo\u{eb} quokka smiles", "k": 9});
        let (_, answer) = daemon.admin("POST", "/v1/admin/kb/search", query).await;
        let documents: BTreeSet<&str> = answer["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|passage| passage["document"].as_str())
            .collect();
        if documents == BTreeSet::from(["be.md", "half.md", "le.md"]) {
            Ok(())
        } else {
            Err(answer.to_string())
        }
    })
    .await;
}

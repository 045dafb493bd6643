//! Files and questions that nobody should have to handle: each has one clear outcome.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        ffi::OsStringExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::Path,
};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::{answers::indexed, parse::fixture, wait_until};
use crate::support::{Chat, Daemon, Setup, outcome};

/// The bound on one file here.
const FILE_BYTES_MAX: usize = 200_000;

const GOOD: &str =
    "# Lockers\n\nEvery pupil has a locker in the basement; the caretaker keeps a second key.\n";

#[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
fn put(daemon: &Daemon, name: &str, bytes: &[u8]) {
    fs::write(daemon.path("knowledge-bank").join(name), bytes).unwrap();
}

/// By path: the stable name, the reason and the hint of every document that failed.
async fn failures(daemon: &Daemon) -> BTreeMap<String, Value> {
    let (status, list) = daemon.get("/v1/admin/kb/documents?limit=100").await;
    assert_eq!(status, 200, "{list}");
    let documents = list["data"].as_array().unwrap();
    let failed = documents.iter().filter(|document| document["status"] == "failed");
    failed
        .map(|document| {
            (
                document["path"].as_str().unwrap().to_owned(),
                document["failure"].clone(),
            )
        })
        .collect()
}

fn half(name: &str) -> Vec<u8> {
    let bytes = fixture(name);
    bytes[..bytes.len() / 2].to_vec()
}

/// Files of every kind, and the stable name of what is wrong with them, empty where nothing is.
fn files() -> [(&'static str, Vec<u8>, &'static str); 16] {
    [
        ("empty.md", Vec::new(), "empty"),
        ("huge.txt", vec![b'a'; FILE_BYTES_MAX + 1], "too_large"),
        ("binary.md", b"# Title\n\0\0\0\x01\x02\x03".to_vec(), "binary"),
        (
            "program",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0".to_vec(),
            "unsupported_format",
        ),
        ("locked.pdf", fixture("locked.pdf"), "password_protected"),
        ("locked.docx", fixture("locked.docx"), "password_protected"),
        ("scan.pdf", fixture("scan.pdf"), "scanned_pdf"),
        ("cut.docx", half("policy.docx"), "corrupt"),
        ("cut.pptx", half("review.pptx"), "corrupt"),
        ("cut.pdf", b"%PDF-1.7\n1 0 obj\n<< /Type /Ca".to_vec(), "corrupt"),
        ("bomb.docx", fixture("bomb.docx"), "unpacks_too_large"),
        ("Twin.md", b"# Twin\n\nThe first of the twins.\n".to_vec(), ""),
        (
            "twin.md",
            b"# Twin\n\nThe second of the twins.\n".to_vec(),
            "name_collision",
        ),
        ("gru\u{308}n.md", b"# Green\n\nGreen in two parts.\n".to_vec(), ""),
        (
            "gr\u{fc}n.md",
            b"# Green\n\nGreen in one part.\n".to_vec(),
            "name_collision",
        ),
        (
            "latin.txt",
            b"Die Schl\xfcssel\xfcbergabe erfolgt im Sekretariat.\n".to_vec(),
            "",
        ),
    ]
}

// A command that is run to its end would stop the scripted server in a runtime of one thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_file_costs_itself_and_says_what_would_help() {
    let daemon = Setup::default()
        .file("knowledge-bank/lockers.md", GOOD)
        .config(&format!("[kb]\nfile_bytes_max = {FILE_BYTES_MAX}"))
        .start()
        .await;
    let bank = daemon.path("knowledge-bank");
    let expected = files();
    for (name, bytes, _) in &expected {
        put(&daemon, name, bytes);
    }
    symlink(daemon.path("AGENT.md"), bank.join("secret.md")).unwrap();
    symlink("nowhere", bank.join("dangling.md")).unwrap();
    put_nameless(&bank);
    let mut wanted: BTreeMap<String, &str> = expected
        .iter()
        .filter(|(.., code)| !code.is_empty())
        .map(|(name, _, code)| ((*name).to_owned(), *code))
        .collect();
    wanted.insert("secret.md".to_owned(), "link_outside");
    wanted.insert("dangling.md".to_owned(), "link_broken");
    wanted.insert("odd\u{fffd}.md".to_owned(), "name_not_text");
    if lock(&daemon, "locked-away.md") {
        wanted.insert("locked-away.md".to_owned(), "unreadable");
    }
    daemon.admin("POST", "/v1/admin/kb/index", Value::Null).await;
    wait_until("every bad file is listed", async || {
        let found = failures(&daemon).await;
        let codes: BTreeMap<String, &str> = found
            .iter()
            .map(|(path, failure)| (path.clone(), failure["code"].as_str().unwrap()))
            .collect();
        if codes == wanted {
            Ok(())
        } else {
            Err(format!("{codes:?}"))
        }
    })
    .await;
    let listed = failures(&daemon).await;
    for (path, failure) in &listed {
        let text = |field: &str| failure[field].as_str().unwrap_or_default();
        assert!(
            !text("message").is_empty() && !text("hint").is_empty(),
            "{path}: {failure}"
        );
    }

    // The good one, and what only looks odd, is found all the same.
    for (query, document) in [
        ("Who keeps the second key of a locker?", "lockers.md"),
        ("Schlüsselübergabe im Sekretariat", "latin.txt"),
        ("the first of the twins", "Twin.md"),
    ] {
        let (_, answer) = daemon
            .admin("POST", "/v1/admin/kb/search", json!({"query": query}))
            .await;
        assert_eq!(answer["data"][0]["document"], document, "{query}: {answer}");
    }
    // What a link outside leads to is nowhere.
    let (_, answer) = daemon
        .admin(
            "POST",
            "/v1/admin/kb/search",
            json!({"query": "You are the test agent"}),
        )
        .await;
    assert_eq!(answer["data"], json!([]), "{answer}");

    let (code, text, stderr) = outcome(&daemon.run(&["kb", "status"]));
    assert_eq!(code, Some(0), "{stderr}");
    for (path, failure) in &listed {
        for part in [
            path.as_str(),
            failure["code"].as_str().unwrap(),
            failure["hint"].as_str().unwrap(),
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// A name that is no text.
fn put_nameless(bank: &Path) {
    let name = std::ffi::OsString::from_vec(b"odd\xff.md".to_vec());
    #[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
    fs::write(bank.join(name), "# Odd\n\nIts name is no text.\n").unwrap();
}

/// Puts a file there that nobody may read; whether that stops this user, who may be root.
fn lock(daemon: &Daemon, name: &str) -> bool {
    put(daemon, name, b"# Locked\n\nNobody may read this.\n");
    let path = daemon.path("knowledge-bank").join(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    fs::read(&path).is_err()
}

/// Questions of every odd kind, and what is wrong with them, if anything is.
fn questions() -> Vec<(String, Option<&'static str>)> {
    vec![
        (String::new(), Some("no letter or digit")),
        (" \n\t ".to_owned(), Some("no letter or digit")),
        ("\u{0}\u{7}\u{1b}[".to_owned(), Some("no letter or digit")),
        ("\"*()^:-".to_owned(), Some("no letter or digit")),
        ("x".repeat(100_000), Some("100000 characters")),
        ("locker ".repeat(14_286), Some("characters")),
        ("the of and what is".to_owned(), None),
        (
            "NEAR(locker key, 2) AND text:locker* NOT ^basement".to_owned(),
            None,
        ),
        ("locker\" OR 1=1 --".to_owned(), None),
        ("'; DROP TABLE kb_chunks; --".to_owned(), None),
        ("locker\u{0}key\u{202e} basement".to_owned(), None),
        ("где хранится второй ключ".to_owned(), None),
        ("鍵はどこですか".to_owned(), None),
        ("أين المفتاح الثاني".to_owned(), None),
        ("\u{1f511} locker".to_owned(), None),
    ]
}

#[tokio::test]
async fn odd_questions_are_answered_or_refused_in_words() {
    let daemon = Setup::default()
        .file("knowledge-bank/lockers.md", GOOD)
        .start()
        .await;
    indexed(&daemon, 2).await;
    for (query, problem) in questions() {
        for path in ["/v1/admin/kb/search", "/v1/admin/kb/explain"] {
            let (status, answer) = daemon.admin("POST", path, json!({"query": query})).await;
            match problem {
                None => assert_eq!(status, 200, "{query}: {answer}"),
                Some(problem) => {
                    assert_eq!(status, 400, "{query:.20}: {answer}");
                    assert_eq!(answer["error"]["param"], "query", "{answer}");
                    assert_eq!(answer["error"]["type"], "invalid_request_error", "{answer}");
                    let message = answer["error"]["message"].as_str().unwrap();
                    assert!(message.contains(problem), "{message}");
                }
            }
        }
    }
    // Its signs are no syntax, and its words are words.
    let (_, answer) = daemon
        .admin(
            "POST",
            "/v1/admin/kb/search",
            json!({"query": "(locker* AND \"caretaker\") basement:^"}),
        )
        .await;
    assert_eq!(answer["data"][0]["document"], "lockers.md", "{answer}");
    let (status, _) = daemon
        .admin(
            "POST",
            "/v1/admin/kb/search",
            json!({"query": "locker", "path": "law/["}),
        )
        .await;
    assert_eq!(status, 400);
}

/// What the model is told of a call.
async fn told(daemon: &Daemon, tool: &str, arguments: Value) -> String {
    daemon.upstream.push(Reply::text("").call("s", tool, arguments));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(daemon, "Please look it up").send().await.content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    result["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_model_is_told_what_is_wrong_with_its_question() {
    let daemon = Setup::default()
        .file("knowledge-bank/lockers.md", GOOD)
        .start()
        .await;
    indexed(&daemon, 2).await;
    for (arguments, part) in [
        (json!({"query": "\u{0}\u{7}"}), "no letter or digit"),
        (
            json!({"query": "locker", "format": "exe"}),
            "`format` must be one of",
        ),
        (json!({"query": "locker", "path": "law/["}), "law/["),
    ] {
        let text = told(&daemon, "search_knowledge_base", arguments.clone()).await;
        assert!(
            text.contains("invalid_arguments") && text.contains(part),
            "{arguments}: {text}"
        );
    }
    let long = told(
        &daemon,
        "search_knowledge_base",
        json!({"query": "x".repeat(100_000)}),
    )
    .await;
    assert!(long.contains("invalid_arguments"), "{long:.400}");
    // Stop words are words; nothing is about them.
    for query in ["zebra migration across the Serengeti", "鍵はどこですか"] {
        let text = told(&daemon, "search_knowledge_base", json!({"query": query})).await;
        assert!(
            text.contains("Nothing in the documents is about this"),
            "{query}: {text}"
        );
        assert!(
            text.contains("do not answer as if it stood there"),
            "{query}: {text}"
        );
    }
    for (tool, arguments, part) in [
        ("read_document", json!({"path": "gone.md"}), "gone.md"),
        (
            "read_document",
            json!({"citation": "kb-aaaaaaaaaa"}),
            "search again",
        ),
        (
            "read_document",
            json!({"path": "lockers.md", "part": 9}),
            "none from",
        ),
    ] {
        let text = told(&daemon, tool, arguments).await;
        assert!(text.contains("not_found") && text.contains(part), "{text}");
    }
    let list = told(&daemon, "list_documents", json!({})).await;
    assert!(list.contains("lockers.md (Lockers; markdown"), "{list}");
}

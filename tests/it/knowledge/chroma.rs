//! `kb.vectors = "chroma"`: the daemon and the commands before a scripted Chroma. A real one:
//! `cargo xtask test --only chroma`.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testkit::{Chroma, ChromaFault};

use super::wait_until;
use crate::support::{Daemon, Home, Setup};

const LEAVE: &str = "# Leave\n\nEvery employee may take fourteen weeks of parental leave after a birth.\n";
const TRAVEL: &str =
    "# Travel\n\nHotels are paid up to 140 euros a night; receipts go to the finance office.\n";
const QUESTION: &str = "parental leave after a birth";

/// The lines that send searches to this server.
fn kb(server: &Chroma, more: &str) -> String {
    format!(
        "[discovery]\nollama = false\n[kb]\nvectors = \"chroma\"\nchroma_url = \"{}\"\n{more}",
        server.url()
    )
}

fn home(config: &str) -> Home {
    let home = Home::new(config);
    home.write("knowledge-bank/leave.md", LEAVE);
    home.write("knowledge-bank/travel.md", TRAVEL);
    home
}

/// The JSON that a command prints.
fn printed(home: &Home, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = home.run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

async fn search(daemon: &Daemon, query: &str) -> Value {
    let (status, body) = daemon
        .admin("POST", "/v1/admin/kb/search", json!({"query": query, "k": 3}))
        .await;
    assert_eq!(status, 200, "{body}");
    body
}

/// Searches until the answer is not by words alone.
async fn by_vectors(daemon: &Daemon) {
    wait_until("searches do not go by vectors", async || {
        let body = search(daemon, QUESTION).await;
        if body["words_only"].is_null() && body["data"][0]["document"] == "leave.md" {
            Ok(())
        } else {
            Err(body.to_string())
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_searches_in_chroma_and_goes_by_words_while_it_is_away() {
    let server = Chroma::start().await.unwrap();
    server.set_fault(ChromaFault::Status(503));
    let config = format!("[kb]\nvectors = \"chroma\"\nchroma_url = \"{}\"", server.url());
    let daemon = Setup::default()
        .config(&config)
        .file("knowledge-bank/leave.md", LEAVE)
        .file("knowledge-bank/travel.md", TRAVEL)
        .start()
        .await;
    super::answers::indexed(&daemon, 2).await;
    // It started without Chroma, and words find.
    wait_until("it does not say what is wrong", async || {
        let body = search(&daemon, QUESTION).await;
        assert_eq!(body["data"][0]["document"], "leave.md", "{body}");
        let said = body["words_only"].as_str().unwrap_or_default().contains("503");
        let (_, status) = daemon.get("/v1/admin/kb").await;
        assert_eq!(status["vectors_in"], "chroma");
        let shown = status["problems"]
            .to_string()
            .contains("Chroma answered with status 503");
        if said && shown {
            Ok(())
        } else {
            Err(format!("{body} {status}"))
        }
    })
    .await;

    server.set_fault(ChromaFault::None);
    by_vectors(&daemon).await;
    let (name, rows) = server.collections().remove(0);
    assert_eq!(name, "default_database/tidegate");
    assert_eq!(
        u64::try_from(rows).ok(),
        daemon.get("/v1/admin/kb").await.1["chunks"].as_u64()
    );
    let asked = server.requests();
    assert!(asked.iter().any(|request| request.path.ends_with("/query")));
    for path in ["/heartbeat", "/version"] {
        assert!(!asked.iter().any(|request| request.path.ends_with(path)));
    }

    // What is deleted leaves it, without a search.
    std::fs::remove_file(daemon.path("knowledge-bank/travel.md")).unwrap();
    wait_until("the document is still in Chroma", async || {
        let left = server.collections().remove(0).1;
        if left < rows {
            Ok(())
        } else {
            Err(left.to_string())
        }
    })
    .await;
    // It comes back with nothing, and has everything again.
    server.clear();
    by_vectors(&daemon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collection_is_where_the_settings_say_and_its_token_a_reference() {
    let server = Chroma::start().await.unwrap();
    server.ask_for("ct-1234567890");
    let more =
        "chroma_collection = \"papers\"\nchroma_database = \"office\"\nchroma_token = \"env:CHROMA_TOKEN\"\n";
    let home = home(&kb(&server, more)).env("CHROMA_TOKEN", "ct-1234567890");
    let index = printed(&home, &["kb", "index", "--json"]);
    assert_eq!(index["status"]["problems"], json!([]), "{index}");
    let collections = server.collections();
    assert_eq!(collections.len(), 1);
    assert_eq!(collections[0].0, "office/papers");
    assert_eq!(
        u64::try_from(collections[0].1).ok(),
        index["status"]["chunks"].as_u64()
    );
    let (_, shown, _) = home.run(&["config"]);
    assert!(!shown.contains("ct-1234567890"), "{shown}");

    // Without it the commands say what is wrong, and words find.
    home.configure(&kb(&server, "chroma_collection = \"papers\"\n"));
    let answer = printed(&home, &["kb", "search", QUESTION, "--json"]);
    assert!(
        answer["words_only"].to_string().contains("kb.chroma_token"),
        "{answer}"
    );
    assert_eq!(answer["passages"][0]["document"], "leave.md");
    for command in [&["kb", "status"][..], &["doctor"]] {
        let (_, stdout, stderr) = home.run(command);
        assert!(stdout.contains("kb.chroma_token"), "{stdout}{stderr}");
    }
    let (_, stdout, _) = home.run(&["doctor"]);
    for part in ["start Chroma", "`kb.chroma_url`", "kb.vectors = \"embedded\""] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_is_waited_for_as_long_as_is_set() {
    let server = Chroma::start().await.unwrap();
    let home = home(&kb(&server, ""));
    printed(&home, &["kb", "index", "--json"]);
    server.set_fault(ChromaFault::Slow(Duration::from_millis(700)));
    for (more, is_late) in [
        ("chroma_timeout_ms = 300\n", true),
        ("chroma_timeout_ms = 30000\n", false),
    ] {
        home.configure(&kb(&server, more));
        let answer = printed(&home, &["kb", "search", QUESTION, "--json"]);
        let said = answer["words_only"].to_string();
        assert_eq!(said.contains("within 300 ms"), is_late, "{more}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_move_to_chroma_and_back_with_both_sides_counted() {
    let server = Chroma::start().await.unwrap();
    let url = format!("chroma_url = \"{}\"\n", server.url());
    let embedded = format!("[discovery]\nollama = false\n[kb]\nvectors = \"embedded\"\n{url}");
    let home = home(&embedded);
    let (code, _, stderr) = home.run(&["kb", "migrate", "--to", "chroma"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("tidegate kb index"), "{stderr}");

    let chunks = printed(&home, &["kb", "index", "--json"])["status"]["chunks"].clone();
    assert_eq!(
        server.requests().len(),
        0,
        "Chroma is not asked before it is wanted"
    );
    for _ in 0..2 {
        let moved = printed(&home, &["kb", "migrate", "--to", "chroma", "--json"]);
        assert_eq!((&moved["vectors"], &moved["rows"]), (&chunks, &chunks), "{moved}");
        assert_eq!(moved["is_set"], false);
    }
    let (code, stdout, _) = home.run(&["kb", "migrate", "--to", "chroma"]);
    assert_eq!(code, Some(0));
    assert!(
        stdout.contains("Set `vectors = \"chroma\"` in the section [kb]"),
        "{stdout}"
    );
    home.configure(&kb(&server, ""));
    let found = printed(&home, &["kb", "search", QUESTION, "--json"]);
    assert_eq!(found["words_only"], Value::Null, "{found}");
    let (_, stdout, _) = home.run(&["kb", "migrate", "--to", "chroma"]);
    assert!(stdout.contains("Searches go there"), "{stdout}");

    // Back: what is in the database needs no Chroma.
    let back = printed(&home, &["kb", "migrate", "--to", "embedded", "--json"]);
    assert_eq!(
        (&back["chunks"], &back["embedded"], &back["fetched"]),
        (&chunks, &chunks, &json!(0))
    );
    server.set_fault(ChromaFault::Status(500));
    let (code, stdout, _) = home.run(&["kb", "migrate", "--to", "embedded"]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("Set `vectors = \"embedded\"`"), "{stdout}");
    let (code, _, stderr) = home.run(&["kb", "migrate", "--to", "chroma"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("status 500"), "{stderr}");
    home.configure(&embedded);
    let again = printed(&home, &["kb", "search", QUESTION, "--json"]);
    assert_eq!(again["passages"], found["passages"], "the same results from both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_compares_otherwise_is_refused_with_the_remedy() {
    let server = Chroma::start().await.unwrap();
    server.add_collection("default_database", "squares", "l2", 0);
    let home = home(&kb(&server, "chroma_collection = \"squares\"\n"));
    let index = printed(&home, &["kb", "index", "--json"]);
    let problems = index["status"]["problems"].to_string();
    assert!(
        problems.contains("by `l2`") && problems.contains("set `kb.chroma_collection`"),
        "{problems}"
    );
    let (code, _, stderr) = home.run(&["kb", "migrate", "--to", "chroma"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("by `l2`"), "{stderr}");
    assert_eq!(server.collections(), [("default_database/squares".to_owned(), 0)]);
}

#[test]
fn what_cannot_be_reached_is_refused_before_the_start() {
    for (line, key, words) in [
        ("vectors = \"pinecone\"", "kb.vectors", "`embedded`"),
        ("chroma_url = \"localhost:8000\"", "kb.chroma_url", "http://"),
        ("chroma_url = \"ftp://host\"", "kb.chroma_url", "http://"),
        (
            "chroma_url = \"http://127.0.0.1:8000/api/v2\"",
            "kb.chroma_url",
            "without `/api`",
        ),
        (
            "chroma_url = \"http://me:pw@host\"",
            "kb.chroma_url",
            "kb.chroma_token",
        ),
        ("chroma_collection = \"kb\"", "kb.chroma_collection", "3 to 512"),
        (
            "chroma_collection = \"../../x\"",
            "kb.chroma_collection",
            "3 to 512",
        ),
        ("chroma_database = \"\"", "kb.chroma_database", "a-z"),
        ("chroma_timeout_ms = 5", "kb.chroma_timeout_ms", "100 to 60000"),
        ("chroma_token = \"env:NOT_THERE\"", "kb.chroma_token", "NOT_THERE"),
    ] {
        let home = Home::new(&format!("[kb]\n{line}\n"));
        let (code, _, stderr) = home.run(&["config", "--check"]);
        assert_eq!(code, Some(1), "{line}: {stderr}");
        assert!(
            stderr.contains(&format!("`{key}`")) && stderr.contains(words),
            "{line}: {stderr}"
        );
        assert!(!stderr.contains("me:pw"), "{stderr}");
    }
}

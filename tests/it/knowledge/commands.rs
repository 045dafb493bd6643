//! `tidegate kb`, as a person types it.

use serde_json::{Value, json};

use crate::support::Home;

const CHESS: &str = "# Chess club\n\nThe chess club meets on Thursdays in the tower room.\n";

const QUESTION: &str = "When does the chess club meet?";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn an_empty_home_says_what_to_do_next() {
    let home = Home::new("[discovery]\nollama = false\n");
    let (code, _, stderr) = home.run(&["kb", "index"]);
    assert!(
        code == Some(1) && stderr.contains("knowledge-bank does not exist"),
        "{stderr}"
    );
    let (_, text, _) = home.run(&["kb", "status"]);
    assert!(text.contains("Waiting     not known"), "{text}");
    for command in [&["kb", "status"][..], &["kb", "search", "chess"]] {
        let (code, text, stderr) = home.run(command);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(text.contains("No document is indexed"), "{text}");
        assert!(text.contains("`tidegate kb index`"), "{text}");
    }
    home.configure("[discovery]\nollama = false\n[kb]\nenabled = false\n");
    let (code, _, stderr) = home.run(&["kb", "status"]);
    assert!(code == Some(1) && stderr.contains("kb.enabled"), "{stderr}");
}

#[test]
fn the_status_counts_what_nobody_has_read_yet_whoever_would_read_it() {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write(
        "knowledge-bank/soup.md",
        "# Soup\n\nPumpkin soup needs an hour.\n",
    );
    home.write("knowledge-bank/empty.md", "");
    let (code, text, stderr) = home.run(&["kb", "index"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(text.contains("Waiting     0\n"), "{text}");
    home.write(
        "knowledge-bank/later.md",
        "# Later\n\nNobody has read this yet.\n",
    );
    home.write(
        "knowledge-bank/soup.md",
        "# Soup\n\nPumpkin soup needs an hour, salt and some ginger.\n",
    );
    std::fs::remove_file(home.folder().join("knowledge-bank/empty.md")).unwrap();
    let (_, text, _) = home.run(&["kb", "status"]);
    assert!(text.contains("Waiting     3\n"), "{text}");
    let (_, text, _) = home.run(&["kb", "status", "--json"]);
    assert_eq!(json(&text)["status"]["pending"], 3, "{text}");
}

#[test]
fn documents_are_indexed_searched_explained_and_scored() {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write("knowledge-bank/clubs/chess.md", CHESS);
    home.write(
        "knowledge-bank/soup.md",
        "# Soup\n\nPumpkin soup needs an hour and some ginger.\n",
    );
    home.write("knowledge-bank/empty.md", "");
    let (code, text, stderr) = home.run(&["kb", "index"]);
    assert_eq!(code, Some(0), "{stderr}");
    for part in [
        "Documents   2",
        "Failed      1",
        "empty.md (empty)",
        "put text into it",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, text, _) = home.run(&["kb", "status", "--json"]);
    let status = json(&text);
    assert_eq!(status["status"]["documents"], 2, "{text}");
    assert_eq!(status["failed"][0]["code"], "empty", "{text}");

    assert_eq!(status["status"]["pending"], 0, "{text}");

    let (_, text, _) = home.run(&["kb", "search", QUESTION]);
    assert!(
        text.starts_with("1. [kb-") && text.contains("clubs/chess.md (secondary): Chess club"),
        "{text}"
    );
    let (_, text, _) = home.run(&["kb", "search", QUESTION, "--json"]);
    assert_eq!(json(&text)["passages"][0]["document"], "clubs/chess.md", "{text}");
    let (code, text, _) = home.run(&["kb", "search", "zebra migration across the Serengeti"]);
    assert_eq!(
        (code, text.as_str()),
        (Some(0), "Nothing in the documents is about this.\n")
    );
    let (_, text, _) = home.run(&["kb", "explain", QUESTION, "-k", "1"]);
    for part in [
        "Words      chess club meet",
        "Left out",
        "Joined by",
        "words rank 1",
        "below the floor",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, text, _) = home.run(&["kb", "explain", QUESTION, "--json"]);
    assert_eq!(json(&text)["relevant"], 1, "{text}");

    home.write(
        "questions.jsonl",
        &[
            json!({"query": QUESTION, "document": "clubs/chess.md", "heading": "Chess club"}),
            json!({"query": "How long does pumpkin soup take?", "document": "soup.md"}),
            json!({"query": "zebra", "document": "soup.md"}),
            json!({"query": "zebra", "document": "typing-mistake.md"}),
        ]
        .map(|line| line.to_string())
        .join("\n"),
    );
    let (code, text, stderr) = home.run(&["kb", "eval", "questions.jsonl"]);
    assert_eq!(code, Some(0), "{stderr}");
    for part in [
        "4 questions",
        "first     0.500",
        "zebra (soup.md)",
        "zebra (typing-mistake.md, which is not in the index)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, text, _) = home.run(&["kb", "eval", "questions.jsonl", "--json"]);
    assert_eq!(json(&text)["scores"]["mrr_10"], 0.5, "{text}");
}

#[test]
fn a_search_where_nothing_is_indexed_says_that_first() {
    let home = Home::new("[discovery]\nollama = false\n");
    let (code, text, stderr) = home.run(&["kb", "search", "soup"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(text.starts_with("No document is indexed."), "{text}");
    assert!(!text.contains("is about this"), "{text}");
}

#[test]
fn what_is_typed_wrongly_is_usage() {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write("knowledge-bank/soup.md", "# Soup\n\nPumpkin soup.\n");
    home.write(
        "bad.jsonl",
        "{\"query\": \"x\", \"document\": \"y\"}\n{\"query\": \"x\"}\n",
    );
    home.write("none.jsonl", "\n\n");
    for (command, part) in [
        (&["kb", "search", ""][..], "no letter or digit"),
        (&["kb", "search", "soup", "--format", "exe"], "--format is one of"),
        (
            &["kb", "search", "soup", "--authority-min", "divine"],
            "--authority-min is one of",
        ),
        (&["kb", "search", "soup", "--path", "law/["], "law/["),
        (&["kb", "search", "soup", "-k", "0"], "1..=50"),
        (&["kb", "eval", "gone.jsonl"], "does not exist"),
        (
            &["kb", "eval", "bad.jsonl"],
            "line 2, column 14: missing field `document`;",
        ),
        (&["kb", "eval", "none.jsonl"], "holds no question"),
    ] {
        let (code, stdout, stderr) = home.run(command);
        assert_eq!(code, Some(2), "{command:?}: {stdout}{stderr}");
        assert!(
            stderr.contains(part) && stdout.is_empty(),
            "{command:?}: {stdout}{stderr}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_work_beside_a_daemon_and_doctor_tells_of_the_index() {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write("knowledge-bank/clubs/chess.md", CHESS);
    let doctor = |name: &str| {
        let (_, text, _) = home.run(&["doctor", "--json"]);
        let report = json(&text);
        let lines = report["checks"].as_array().unwrap().clone();
        lines
            .into_iter()
            .find(|line| line["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {text}"))
    };
    let line = doctor("knowledge base");
    assert_eq!(line["status"], "ok", "{line}");
    assert!(
        line["message"]
            .as_str()
            .unwrap()
            .contains("nothing is indexed yet")
    );
    assert!(!home.folder().join("data").exists(), "doctor makes nothing");

    let mut served = home.serve().await;
    let (code, text, stderr) = home.run(&["kb", "index"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(text.contains("Documents   1"), "{text}");
    home.write(
        "knowledge-bank/later.md",
        "# Choir\n\nThe choir sings madrigals.\n",
    );
    let (_, text, _) = home.run(&["kb", "index"]);
    assert!(text.contains("Documents   2"), "{text}");
    let (_, text, _) = home.run(&["kb", "search", "Who sings madrigals?"]);
    assert!(text.contains("later.md"), "{text}");
    assert_eq!(doctor("tools")["message"], "20 tools");
    assert!(
        doctor("embedder")["message"]
            .as_str()
            .unwrap()
            .contains("256 dimensions")
    );
    let line = doctor("knowledge base");
    assert_eq!(
        (&line["status"], &line["message"]),
        (&json!("ok"), &json!("2 documents in 2 pieces"))
    );
    served.stop().await;

    home.write("knowledge-bank/empty.md", "");
    home.run(&["kb", "index"]);
    let line = doctor("knowledge base");
    assert_eq!(line["status"], "warning", "{line}");
    assert!(
        line["message"]
            .as_str()
            .unwrap()
            .contains("1 file could not be read")
    );
    assert!(line["fix"].as_str().unwrap().contains("tidegate kb status"));

    let off = "[discovery]\nollama = false\n[embeddings]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n";
    home.configure(off);
    let line = doctor("embedder");
    assert_eq!(line["status"], "warning", "{line}");
    assert!(line["fix"].as_str().unwrap().contains("searches go by words"));
    assert!(line["fix"].as_str().unwrap().contains("embeddings.base_url"));
    home.configure("[discovery]\nollama = false\n[embeddings]\nprovider = \"local\"\nfolder = \"nowhere\"\n");
    let (_, text, _) = home.run(&["doctor"]);
    let word = if cfg!(feature = "local-embedder") {
        "[embeddings]"
    } else {
        "local-embedder"
    };
    assert!(text.contains(word), "{text}");
    home.configure("[discovery]\nollama = false\n[kb]\nenabled = false\n");
    assert_eq!(doctor("tools")["message"], "17 tools");
    assert!(
        doctor("knowledge base")["message"]
            .as_str()
            .unwrap()
            .contains("switched off")
    );
}

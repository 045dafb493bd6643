//! The index follows the folder: what people, tools and administrators do to files, and what a new policy shuts.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::{answers::indexed, wait_until};
use crate::support::{Chat, Daemon, Setup, signal};

const CHESS: &str = "# Chess club\n\nThe chess club meets on Thursdays in the tower room.\n";
const CHOIR: &str = "# Choir\n\nThe choir rehearses madrigals every Monday in the chapel.\n";

const CHESS_QUESTION: &str = "When does the chess club meet in the tower room?";
const CHOIR_QUESTION: &str = "Where does the choir rehearse madrigals?";

/// The documents of the passages that a search finds.
async fn found(daemon: &Daemon, query: &str) -> Vec<String> {
    let (status, answer) = daemon
        .admin("POST", "/v1/admin/kb/search", json!({"query": query}))
        .await;
    assert_eq!(status, 200, "{answer}");
    let passages = answer["data"].as_array().unwrap().iter();
    passages
        .map(|passage| passage["document"].as_str().unwrap().to_owned())
        .collect()
}

async fn finds(daemon: &Daemon, query: &str, documents: &[&str]) {
    wait_until(query, async || {
        let found = found(daemon, query).await;
        if found == documents {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
}

async fn clubs() -> Daemon {
    let daemon = Setup::default()
        .file("knowledge-bank/clubs/chess.md", CHESS)
        .file("knowledge-bank/clubs/choir.md", CHOIR)
        .start()
        .await;
    indexed(&daemon, 3).await;
    daemon
}

#[tokio::test]
async fn what_people_change_is_followed_while_it_runs_and_while_it_does_not() {
    let mut daemon = clubs().await;
    let bank = daemon.path("knowledge-bank");
    finds(&daemon, CHESS_QUESTION, &["clubs/chess.md"]).await;
    fs::rename(bank.join("clubs/chess.md"), bank.join("games.md")).unwrap();
    finds(&daemon, CHESS_QUESTION, &["games.md"]).await;
    fs::rename(bank.join("clubs"), bank.join("societies")).unwrap();
    finds(&daemon, CHOIR_QUESTION, &["societies/choir.md"]).await;
    fs::remove_file(bank.join("games.md")).unwrap();
    finds(&daemon, CHESS_QUESTION, &[]).await;
    let (_, list) = daemon.get("/v1/admin/kb/documents").await;
    assert!(!list.to_string().contains("games.md"), "{list}");

    assert!(daemon.terminate(Duration::from_secs(20)).await);
    fs::remove_file(bank.join("societies/choir.md")).unwrap();
    daemon.write("knowledge-bank/later.md", CHESS);
    daemon.launch().await;
    finds(&daemon, CHESS_QUESTION, &["later.md"]).await;
    finds(&daemon, CHOIR_QUESTION, &[]).await;
}

#[tokio::test]
async fn what_a_tool_writes_takes_the_place_of_what_stood_there() {
    let daemon = clubs().await;
    let writer = daemon.writer_key().await;
    let content = "# Chess club\n\nThe chess club meets on Saturdays in the observatory.\n";
    daemon.upstream.push(Reply::text("").call(
        "w",
        "write_file",
        json!({"path": "clubs/chess.md", "content": content}),
    ));
    daemon.upstream.push(Reply::text("").call(
        "s",
        "search_knowledge_base",
        json!({"query": "When does the chess club meet?"}),
    ));
    daemon.upstream.push(Reply::text("On Saturdays."));
    Chat::new(&daemon, "Change it, then look it up")
        .key(&writer)
        .send()
        .await
        .content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    let text = result["content"].as_str().unwrap();
    assert!(text.contains("Saturdays in the observatory"), "{text}");
    assert!(!text.contains("Thursdays"), "{text}");
}

async fn delete(daemon: &Daemon, path: &str) -> (u16, Value) {
    let path = format!("/v1/admin/kb/documents/{path}");
    daemon.admin("DELETE", &path, Value::Null).await
}

#[tokio::test]
async fn a_deleted_document_is_gone_from_folder_and_index() {
    let daemon = clubs().await;
    let (status, answer) = delete(&daemon, "clubs/chess.md").await;
    assert_eq!(
        (status, answer),
        (
            200,
            json!({"object": "document.deleted", "path": "clubs/chess.md", "deleted": true})
        )
    );
    // At once: the answer came after the index had followed.
    assert_eq!(found(&daemon, CHESS_QUESTION).await, Vec::<String>::new());
    assert!(!daemon.path("knowledge-bank/clubs/chess.md").exists());
    assert_eq!(found(&daemon, CHOIR_QUESTION).await, ["clubs/choir.md"]);

    for (path, status, code) in [
        ("clubs/chess.md", 404, "not_found"),
        ("nowhere/at/all.md", 404, "not_found"),
        ("clubs", 400, "invalid_value"),
        (".env", 403, "refused"),
        ("..%2fAGENT.md", 400, "invalid_value"),
        ("..%2f..%2fgone.md", 400, "invalid_value"),
        ("%00.md", 400, "invalid_value"),
    ] {
        let (got, answer) = delete(&daemon, path).await;
        assert_eq!(
            (got, &answer["error"]["code"]),
            (status, &json!(code)),
            "{path}: {answer}"
        );
    }
    assert!(daemon.path("AGENT.md").exists());
    // A refusal is on the trail soon after it was answered.
    let removals = || -> Vec<String> {
        let trail = daemon.read("logs/audit.jsonl");
        let removals = trail.lines().filter(|line| line.contains("\"tool\":\"removal\""));
        removals.map(str::to_owned).collect()
    };
    wait_until("every removal is on the trail", async || match removals().len() {
        8 => Ok(()),
        lines => Err(lines.to_string()),
    })
    .await;
    let removals = removals();
    assert!(
        removals[0].contains("clubs/chess.md") && removals[0].contains("allowed"),
        "{}",
        removals[0]
    );
    assert!(removals[1].contains("denied"), "{}", removals[1]);
    // Whoever is no administrator removes nothing.
    let key = daemon
        .make_key(json!({"name": "u", "scopes": ["chat", "tools"]}))
        .await;
    let request = daemon.ask("DELETE", "/v1/admin/kb/documents/clubs/choir.md");
    assert_eq!(request.bearer_auth(&key).send().await.unwrap().status(), 403);
    assert!(daemon.path("knowledge-bank/clubs/choir.md").exists());
    let (_, document) = daemon.get("/openapi.json").await;
    assert!(
        document["paths"]["/v1/admin/kb/documents/{path}"]["delete"].is_object(),
        "{document}"
    );
}

#[tokio::test]
async fn an_upload_that_is_too_large_or_leads_nowhere_is_refused_and_leaves_nothing() {
    let daemon = Setup::default()
        .config("[server]\nbody_bytes_max = 20000")
        .start()
        .await;
    let put = |path: &str, body: Vec<u8>| {
        let path = format!("/v1/admin/kb/documents/{path}");
        let request = daemon.ask("PUT", &path).bearer_auth(&daemon.key);
        async move {
            let answer = request.body(body).send().await.unwrap();
            let status = answer.status().as_u16();
            (status, answer.json::<Value>().await.unwrap())
        }
    };
    let (status, answer) = put("large.txt", vec![b'a'; 20_001]).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (413, &json!("request_too_large")),
        "{answer}"
    );
    assert_eq!(answer["error"]["type"], "invalid_request_error", "{answer}");
    assert!(!daemon.path("knowledge-bank/large.txt").exists());
    let mut page = CHESS.as_bytes().to_vec();
    page.resize(20_000, b'\n');
    assert_eq!(put("exact.md", page).await.0, 201);
    for (path, why) in [
        (".hidden.md", "begin with a dot"),
        (".folder/hidden.md", "begin with a dot"),
        ("clubs/chess.tmp", "the pattern `*.tmp` of `kb.ignore`"),
    ] {
        let (status, answer) = put(path, CHESS.into()).await;
        assert_eq!(
            (status, &answer["error"]["param"]),
            (400, &json!("path")),
            "{answer}"
        );
        assert!(answer.to_string().contains(why), "{answer}");
        assert!(!daemon.path(&format!("knowledge-bank/{path}")).exists());
    }
    // What is named like a credential is shut by a floor.
    let (status, answer) = put("server.pem", CHESS.into()).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (403, &json!("refused")),
        "{answer}"
    );
    finds(&daemon, CHESS_QUESTION, &["exact.md"]).await;
    // Where a folder stands, or a file in the way, nothing is written, and that is the request's fault.
    daemon.write("knowledge-bank/folder/x.md", "x");
    let (status, answer) = put("folder", b"words".to_vec()).await;
    assert_eq!(
        (status, &answer["error"]["param"]),
        (400, &json!("path")),
        "{answer}"
    );
    let (status, answer) = put("exact.md/below.md", b"words".to_vec()).await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (403, &json!("refused")),
        "{answer}"
    );
}

/// Writes the `[gate]` section anew and has it read.
fn reload(daemon: &Daemon, gate: &str) {
    let config = daemon.read("tidegate.toml");
    let before = config.split("\n[gate]").next().unwrap().to_owned();
    daemon.write("tidegate.toml", &format!("{before}\n[gate]\n{gate}\n"));
    signal(daemon.pid(), "HUP");
}

#[tokio::test]
async fn what_a_new_policy_shuts_leaves_the_index_and_comes_back_when_it_opens() {
    let daemon = clubs().await;
    finds(&daemon, CHESS_QUESTION, &["clubs/chess.md"]).await;
    let (_, answer) = daemon
        .admin("POST", "/v1/admin/kb/search", json!({"query": CHESS_QUESTION}))
        .await;
    let id = answer["data"][0]["id"].as_str().unwrap().to_owned();

    reload(&daemon, "blocked_paths = [\"clubs\"]");
    finds(&daemon, CHESS_QUESTION, &[]).await;
    wait_until("the documents leave the index", async || {
        let (_, status) = daemon.get("/v1/admin/kb").await;
        if status["documents"] == 1 {
            Ok(())
        } else {
            Err(status.to_string())
        }
    })
    .await;
    let (_, list) = daemon.get("/v1/admin/kb/documents").await;
    assert!(!list.to_string().contains("clubs/"), "{list}");
    daemon
        .upstream
        .push(Reply::text("").call("r", "read_document", json!({"citation": id})));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(&daemon, "Read it").send().await.content();
    let chats = daemon.upstream.chats();
    let told = chats.last().unwrap()["messages"].to_string();
    assert!(
        told.contains("not_found") && !told.contains("Thursdays"),
        "{told}"
    );
    // Neither does anything go in or out by the administrator's door.
    let request = daemon.ask("PUT", "/v1/admin/kb/documents/clubs/new.md");
    let answer = request
        .bearer_auth(&daemon.key)
        .body("words")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 403);
    assert_eq!(delete(&daemon, "clubs/chess.md").await.0, 403);
    assert!(daemon.path("knowledge-bank/clubs/chess.md").exists());

    reload(&daemon, "blocked_paths = []");
    finds(&daemon, CHESS_QUESTION, &["clubs/chess.md"]).await;
    finds(&daemon, CHOIR_QUESTION, &["clubs/choir.md"]).await;
    // Where reading asks, nobody is asked by a search.
    reload(&daemon, "read_paths = [\"notes.txt\"]");
    finds(&daemon, CHOIR_QUESTION, &[]).await;
}

// A command that is run to its end would stop the scripted server in a runtime of one thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_shows_nothing_that_the_policy_shuts_though_the_index_still_holds_it() {
    let mut daemon = clubs().await;
    assert!(daemon.terminate(Duration::from_secs(20)).await);
    let config = daemon.read("tidegate.toml");
    daemon.write(
        "tidegate.toml",
        &format!("{config}\n[gate]\nblocked_paths = [\"clubs\"]\n"),
    );
    for command in [
        ["kb", "search", CHESS_QUESTION],
        ["kb", "explain", CHESS_QUESTION],
    ] {
        let output = daemon.run(&command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(!text.contains("clubs/chess.md"), "{text}");
    }
}

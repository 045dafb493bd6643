//! Second names of files that nobody may read here, lying in the knowledge bank: they are never opened, never found, and
//! listed with the reason.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::{answers::indexed, wait_until};
use crate::support::{Chat, Daemon, Setup, outcome};

const CHESS: &str = "# Chess club\n\nThe chess club meets on Thursdays in the tower room.\n";
const CHOIR: &str = "# Choir\n\nThe choir rehearses madrigals every Monday in the chapel.\n";
/// What only the agent's instructions say.
const INSTRUCTIONS: &str = "You are the test agent; the pangolin protocol binds you in secret.";

/// The files of the database on which the daemon holds locks, as the kernel lists them.
fn locked(daemon: &Daemon) -> BTreeSet<String> {
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let process = format!(" {} ", daemon.pid());
    let ours: Vec<&str> = locks
        .lines()
        .filter(|line| line.contains("POSIX") && line.contains(&process))
        .collect();
    ["tidegate.db", "tidegate.db-wal", "tidegate.db-shm"]
        .into_iter()
        .filter(|name| {
            let inode = fs::metadata(daemon.path("data").join(name)).unwrap().ino();
            ours.iter().any(|line| line.contains(&format!(":{inode} ")))
        })
        .map(str::to_owned)
        .collect()
}

/// By path: the stable names of what failed.
async fn failures(daemon: &Daemon) -> BTreeSet<(String, String)> {
    let (_, list) = daemon.get("/v1/admin/kb/documents?limit=100").await;
    let documents = list["data"].as_array().unwrap().iter();
    documents
        .filter(|document| document["status"] == "failed")
        .map(|document| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&document["path"]), text(&document["failure"]["code"]))
        })
        .collect()
}

async fn fail(daemon: &Daemon, names: &[&str]) {
    let wanted: BTreeSet<(String, String)> = names
        .iter()
        .map(|name| ((*name).to_owned(), "hard_link".to_owned()))
        .collect();
    wait_until("every second name is listed", async || {
        let found = failures(daemon).await;
        if found == wanted {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
}

async fn found(daemon: &Daemon, query: &str) -> Value {
    let (status, answer) = daemon
        .admin("POST", "/v1/admin/kb/search", json!({"query": query}))
        .await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

/// Whether one document tells of wombats.
async fn is_there(daemon: &Daemon) -> Result<(), String> {
    let found = found(daemon, "wombat burrows").await;
    match found.as_array().map(Vec::len) {
        Some(1) => Ok(()),
        Some(_) | None => Err(found.to_string()),
    }
}

async fn daemon() -> Daemon {
    let daemon = Setup::default()
        .file("AGENT.md", INSTRUCTIONS)
        .file("knowledge-bank/chess.md", CHESS)
        .start()
        .await;
    indexed(&daemon, 2).await;
    daemon
}

fn link(daemon: &Daemon, from: &str, to: &str) {
    fs::hard_link(daemon.path(from), daemon.path("knowledge-bank").join(to)).unwrap();
}

// A command that is run to its end would stop the scripted server in a runtime of one thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_keeps_its_locks_whatever_lies_in_the_bank_and_whoever_names_it() {
    let mut daemon = daemon().await;
    let before = locked(&daemon);
    assert!(before.contains("tidegate.db"), "{before:?}");
    for (from, to) in [
        ("data/tidegate.db", "base.md"),
        ("data/tidegate.db-wal", "log.md"),
        ("data/tidegate.db-shm", "index.txt"),
    ] {
        link(&daemon, from, to);
    }
    daemon.admin("POST", "/v1/admin/kb/index", Value::Null).await;
    fail(&daemon, &["base.md", "index.txt", "log.md"]).await;
    assert_eq!(locked(&daemon), before, "the reader of the bank opened it");

    // The tools, by either name, whatever comes of the call.
    for (tool, arguments) in [
        ("read_file", json!({"path": "base.md"})),
        ("read_file", json!({"path": "../data/tidegate.db"})),
        ("shell", json!({"command": "cat base.md"})),
        ("shell", json!({"command": "python3 base.md ../data/tidegate.db"})),
        ("shell", json!({"command": "sh log.md"})),
    ] {
        daemon
            .upstream
            .push(Reply::text("").call("t", tool, arguments.clone()));
        daemon.upstream.push(Reply::text("done"));
        Chat::new(&daemon, "Look at it").send().await.content();
        assert_eq!(locked(&daemon), before, "{tool} {arguments}");
    }
    for method in ["PUT", "DELETE"] {
        let request = daemon.ask(method, "/v1/admin/kb/documents/base.md");
        let answer = request
            .bearer_auth(&daemon.key)
            .body("words")
            .send()
            .await
            .unwrap();
        assert_eq!(
            (answer.status().as_u16(), locked(&daemon)),
            (403, before.clone()),
            "{method}"
        );
    }

    // So another process that comes and goes takes nothing with it.
    let log = fs::metadata(daemon.path("data/tidegate.db-wal")).unwrap().ino();
    assert_eq!(outcome(&daemon.run(&["kb", "status"])).0, Some(0));
    assert_eq!(
        fs::metadata(daemon.path("data/tidegate.db-wal")).unwrap().ino(),
        log
    );
    let key = daemon.make_key(json!({"name": "acknowledged"})).await;
    daemon.kill();
    daemon.launch().await;
    let answer = daemon
        .ask("GET", "/v1/models")
        .bearer_auth(&key)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200, "what was acknowledged is there");
}

// A command that is run to its end would stop the scripted server in a runtime of one thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_may_read_is_not_found_by_a_second_name() {
    let daemon = daemon().await;
    let bank = daemon.path("knowledge-bank");
    daemon.write("data/deep/notes.md", "# Notes\n\nThe pangolin protocol.\n");
    daemon.write("knowledge-bank/.env", "PANGOLIN=protocol\n");
    for (from, to) in [
        ("AGENT.md", "prompt.md"),
        ("tidegate.toml", "settings.md"),
        ("data/deep/notes.md", "notes.md"),
        ("knowledge-bank/.env", "environment.txt"),
        ("knowledge-bank/chess.md", "chess-twin.md"),
    ] {
        link(&daemon, from, to);
    }
    let shut = ["environment.txt", "notes.md", "prompt.md", "settings.md"];
    fail(&daemon, &shut).await;
    assert_eq!(found(&daemon, "the pangolin protocol").await, json!([]));
    // Two names of what is for everybody are two documents.
    wait_until("both names are listed", async || {
        let (_, list) = daemon.get("/v1/admin/kb/documents").await;
        let twins = list["data"].as_array().unwrap().iter();
        match twins.filter(|document| document["title"] == "Chess club").count() {
            2 => Ok(()),
            _ => Err(list.to_string()),
        }
    })
    .await;

    // A name that was a document and becomes a second name: nothing of either is found under it.
    daemon.write("knowledge-bank/new.md", "# New\n\nThe wombat burrows at night.\n");
    wait_until("the new one", async || is_there(&daemon).await).await;
    fs::hard_link(daemon.path("AGENT.md"), bank.join(".swap")).unwrap();
    fs::rename(bank.join(".swap"), bank.join("new.md")).unwrap();
    // At once, before the index has followed.
    assert_eq!(found(&daemon, "wombat burrows").await, json!([]));
    fail(
        &daemon,
        &[
            "environment.txt",
            "new.md",
            "notes.md",
            "prompt.md",
            "settings.md",
        ],
    )
    .await;
    assert_eq!(found(&daemon, "the pangolin protocol").await, json!([]));
    let (_, text, _) = outcome(&daemon.run(&["kb", "status"]));
    assert!(text.contains("new.md (hard_link)"), "{text}");
    assert!(text.contains("another name"), "{text}");

    // And it is a document again once it is a file of its own.
    fs::remove_file(bank.join("new.md")).unwrap();
    daemon.write("knowledge-bank/new.md", "# New\n\nThe wombat burrows at night.\n");
    fail(&daemon, &shut).await;
    wait_until("it is back", async || is_there(&daemon).await).await;
}

/// Swaps a document for a link and back, as fast as it goes, while it is indexed.
#[tokio::test]
async fn a_link_that_is_swapped_under_the_reader_leads_nowhere() {
    let daemon = daemon().await;
    let bank = daemon.path("knowledge-bank");
    daemon.write(
        "knowledge-bank/.private/secret.md",
        "# Secret\n\nThe pangolin protocol.\n",
    );
    let swap = |target: &Path| {
        for _ in 0..300 {
            drop(fs::remove_file(bank.join(".swap")));
            symlink(target, bank.join(".swap")).unwrap();
            fs::rename(bank.join(".swap"), bank.join("swapped.md")).unwrap();
            daemon.write("knowledge-bank/.swap", CHOIR);
            fs::rename(bank.join(".swap"), bank.join("swapped.md")).unwrap();
        }
    };
    for target in [
        bank.join(".private/secret.md"),
        daemon.path("AGENT.md"),
        daemon.path("data/tidegate.db"),
    ] {
        let before = locked(&daemon);
        daemon.admin("POST", "/v1/admin/kb/index", Value::Null).await;
        swap(&target);
        assert_eq!(found(&daemon, "the pangolin protocol").await, json!([]));
        assert_eq!(locked(&daemon), before);
    }
    wait_until("it is what it is in the end", async || {
        let choir = found(&daemon, "Where does the choir rehearse madrigals?").await;
        let failed = failures(&daemon).await;
        if choir.as_array().unwrap().len() == 1 && failed.is_empty() {
            Ok(())
        } else {
            Err(format!("{choir} {failed:?}"))
        }
    })
    .await;
    assert_eq!(found(&daemon, "the pangolin protocol").await, json!([]));
}

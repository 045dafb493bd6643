//! A real Chroma: the contract of an index over vectors, a daemon that searches in it, loses it and has it back, a
//! collection that is refused, and moving there and back.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{CARGO_TIMEOUT, Count};
use crate::daemon::{Daemon, Start};
use crate::{http, model, process, scripted};

/// The server. Of its Python package only the compiled part is needed, so that what it depends on is left out.
const PACKAGE: &str = "chromadb==1.5.9";
/// Runs the compiled part by itself.
const LAUNCH: &str = "import sys, chromadb_rust_bindings as chroma; chroma.cli([\"chroma\", *sys.argv[1:]])";
/// How long the server may take until it answers, and what is awaited until it is so.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often something is asked that is awaited.
const POLL: Duration = Duration::from_millis(50);
/// How long a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);
/// Where the collections of a server without accounts are.
const COLLECTIONS: &str = "/api/v2/tenants/default_tenant/databases/default_database/collections";
/// What is asked.
const QUESTION: &str = "parental leave after a birth";

/// A Chroma server. It is killed when dropped.
struct Chroma {
    child: Child,
    address: SocketAddr,
}

impl Chroma {
    /// Starts one over a folder and waits until it answers.
    fn start(port: u16, folder: &Path) -> Result<Self> {
        let log_path = folder.join("chroma.log");
        let log = File::options().create(true).append(true).open(&log_path)?;
        let mut command = process::program(environment().join("bin/python"));
        let child = command
            .args([
                "-c",
                LAUNCH,
                "run",
                "--host",
                "127.0.0.1",
                "--port",
                &port.to_string(),
                "--path",
            ])
            .arg(folder.join("data"))
            .env("ANONYMIZED_TELEMETRY", "False")
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut chroma = Self { child, address };
        let deadline = Instant::now() + PATIENCE;
        while !chroma
            .get("/api/v2/heartbeat")
            .is_ok_and(|(status, _)| status == 200)
        {
            if chroma.child.try_wait()?.is_some() || Instant::now() > deadline {
                bail!(
                    "Chroma did not start: {}",
                    std::fs::read_to_string(&log_path).unwrap_or_default()
                );
            }
            std::thread::sleep(POLL);
        }
        Ok(chroma)
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn get(&self, path: &str) -> Result<(u16, Value)> {
        let answer = http::call(
            self.address,
            "GET",
            path,
            None,
            &Value::Null,
            Duration::from_secs(5),
        )?;
        Ok((answer.status, answer.json()))
    }

    /// How many rows a collection has.
    fn rows(&self, name: &str) -> Result<u64> {
        let (_, collection) = self.get(&format!("{COLLECTIONS}/{name}"))?;
        let id = collection["id"].as_str().context("there is no such collection")?;
        let (_, count) = self.get(&format!("{COLLECTIONS}/{id}/count"))?;
        count.as_u64().context("the count is no number")
    }
}

impl Drop for Chroma {
    fn drop(&mut self) {
        process::kill_tree(&mut self.child);
    }
}

fn environment() -> PathBuf {
    process::target().join("lab/chroma")
}

fn install() -> Result<()> {
    let done = environment().join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == PACKAGE) {
        return Ok(());
    }
    println!("installing {PACKAGE} into {}", environment().display());
    model::make_environment(&environment(), &["--no-deps", PACKAGE])?;
    std::fs::write(done, PACKAGE)?;
    Ok(())
}

/// The suite.
pub(crate) fn run() -> Result<Count> {
    install()?;
    let folder = TempDir::new()?;
    let port = tidegate_testkit::free_port()?;
    let chroma = Chroma::start(port, folder.path())?;
    let mut count = contract(&chroma)?;
    let runtime = Runtime::new()?;
    let upstream = runtime.block_on(scripted::start(0))?;
    let mut start = Start::new(folder.path().join("home"), upstream.base_url(), scripted::NAME);
    start.settings = settings(&chroma.url(), "chroma");
    let bank = start.home.join("knowledge-bank");
    std::fs::create_dir_all(&bank)?;
    for (name, text) in [
        (
            "leave.md",
            "# Leave\n\nFourteen weeks of parental leave after a birth.\n",
        ),
        (
            "travel.md",
            "# Travel\n\nHotels are paid up to 140 euros a night.\n",
        ),
    ] {
        std::fs::write(bank.join(name), text)?;
    }
    let chroma = live(&start, chroma, port, folder.path(), &mut count)?;
    migrate(&start, &chroma, &mut count)?;
    runtime.block_on(upstream.stop());
    Ok(count)
}

fn settings(url: &str, place: &str) -> String {
    format!("[kb]\nvectors = \"{place}\"\nchroma_url = \"{url}\"\n")
}

/// The same cases that the index in memory is held to.
fn contract(chroma: &Chroma) -> Result<Count> {
    let url = chroma.url();
    let mut command = process::cargo(&[
        "run",
        "--quiet",
        "--locked",
        "--package",
        "tidegate-kb",
        "--example",
        "chroma_contract",
        "--",
        &url,
    ]);
    let finished = process::run(&mut command, CARGO_TIMEOUT)?;
    let last = finished.lines.iter().rfind(|line| super::is_bare_count(line));
    let last = last.context("the contract could not be built or ended early")?;
    Ok(Count {
        passed: super::number_before(last, " passed").unwrap_or_default(),
        failed: super::number_before(last, " failed").unwrap_or_default(),
    })
}

/// A daemon before it, through a deletion and the loss of the server; the server as it runs then.
fn live(start: &Start, chroma: Chroma, port: u16, folder: &Path, count: &mut Count) -> Result<Chroma> {
    let daemon = Daemon::start(start)?;
    let search = || -> Result<Value> {
        let body = json!({"query": QUESTION, "k": 3});
        Ok(daemon.call("POST", "/v1/admin/kb/search", &body)?.json())
    };
    let by_vectors = || -> Result<bool> {
        let answer = search()?;
        Ok(answer["words_only"].is_null() && answer["data"][0]["document"] == "leave.md")
    };
    let status = || -> Result<Value> { Ok(daemon.call("GET", "/v1/admin/kb", &Value::Null)?.json()) };
    let mut check = |what: &str, is_so: bool| add(count, what, is_so);
    check("a search goes by the vectors in Chroma", wait(by_vectors)?);
    let chunks = status()?["chunks"].as_u64();
    check(
        "every chunk is there, and no more",
        wait(|| Ok(Some(chroma.rows("tidegate")?) == chunks))?,
    );
    std::fs::remove_file(start.home.join("knowledge-bank/travel.md"))?;
    check(
        "a document that is deleted leaves it",
        wait(|| Ok(Some(chroma.rows("tidegate")?) < chunks))?,
    );
    drop(chroma);
    let by_words = || -> Result<bool> {
        let answer = search()?;
        let said = answer["words_only"]
            .as_str()
            .is_some_and(|text| text.contains("Chroma"));
        let shown = status()?["problems"]
            .to_string()
            .contains("Chroma does not answer");
        Ok(said && shown && answer["data"][0]["document"] == "leave.md")
    };
    check(
        "while it is killed words answer, and the answer and the status say so",
        wait(by_words)?,
    );
    let chroma = Chroma::start(port, folder)?;
    check("started again it is asked again", wait(by_vectors)?);
    drop(chroma);
    std::fs::remove_dir_all(folder.join("data"))?;
    let chroma = Chroma::start(port, folder)?;
    check("started with nothing it is filled again", wait(by_vectors)?);
    check("the daemon stops when asked to", daemon.stop()?);
    Ok(chroma)
}

/// `tidegate kb migrate`, both ways and where it must refuse.
fn migrate(start: &Start, chroma: &Chroma, count: &mut Count) -> Result<()> {
    let command = |arguments: &[&str], collection: Option<&str>| -> Result<process::Finished> {
        let mut command = process::program(process::release_binary());
        command.args(arguments).current_dir(&start.home);
        if let Some(collection) = collection {
            command.env("TIDEGATE_KB__CHROMA_COLLECTION", collection);
        }
        process::run(&mut command, COMMAND_TIMEOUT)
    };
    let made = http::call(
        chroma.address,
        "POST",
        COLLECTIONS,
        None,
        &json!({"name": "squares"}),
        Duration::from_secs(5),
    )?;
    ensure!(made.status == 200, "Chroma makes no collection: {}", made.text());
    let refused = command(&["kb", "migrate", "--to", "chroma"], Some("squares"))?;
    let says_so = refused
        .lines
        .iter()
        .any(|line| line.contains("compares vectors by `l2`"));
    let is_refused = !refused.success && says_so && chroma.rows("squares")? == 0;
    add(count, "a collection of another space is refused", is_refused);
    let status = command(&["kb", "status", "--json"], None)?;
    let status: Value = serde_json::from_str(&status.lines.concat())?;
    let chunks = status["status"]["chunks"]
        .as_u64()
        .context("no count of chunks")?;
    for _ in 0..2 {
        let moved = command(&["kb", "migrate", "--to", "chroma"], Some("moved"))?;
        add(count, "moving to Chroma says so", moved.success);
        add(count, "every vector is there", chroma.rows("moved")? == chunks);
    }
    let back = command(&["kb", "migrate", "--to", "embedded", "--json"], Some("moved"))?;
    let back: Value = serde_json::from_str(&back.lines.concat())?;
    let is_back = back["embedded"].as_u64() == Some(chunks) && back["problem"].is_null();
    add(count, "moving back counts every vector", is_back);
    let found = |place: &str| -> Result<Value> {
        let file = start.home.join("tidegate.toml");
        let text = std::fs::read_to_string(&file)?;
        let text = text.replace("vectors = \"chroma\"", &format!("vectors = \"{place}\""));
        std::fs::write(&file, text)?;
        let answer = command(&["kb", "search", QUESTION, "--json"], None)?;
        let mut answer: Value = serde_json::from_str(&answer.lines.concat())?;
        ensure!(answer["words_only"].is_null(), "{answer}");
        Ok(answer["passages"].take())
    };
    let is_same = found("chroma")? == found("embedded")?;
    add(count, "both find the same", is_same);
    Ok(())
}

fn add(count: &mut Count, what: &str, is_so: bool) {
    println!("{} {what}", if is_so { "ok    " } else { "FAILED" });
    count.add(is_so);
}

/// Whether something becomes so in time. What fails meanwhile is not so yet.
fn wait(is_so: impl Fn() -> Result<bool>) -> Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if is_so().unwrap_or(false) {
            return Ok(true);
        }
        std::thread::sleep(POLL);
    }
    is_so()
}

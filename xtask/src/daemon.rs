//! A release daemon in a folder of its own: started on a free port, watched, and stopped or killed.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::http::{self, Answer};
use crate::process;

/// How long a daemon may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a daemon may take to stop when asked to.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a starting daemon is asked.
const POLL: Duration = Duration::from_millis(5);

/// The instructions of a daemon that was given none.
const AGENT: &str = "# Assistant\n\nYou are a helpful assistant. Answer in one or two short sentences.\n";
/// A file to list and to read.
const HOURS: &str = "# Opening hours\n\nThe office is open from 8 to 16 o'clock, Monday to Friday.\n";

/// How a daemon is started.
pub(crate) struct Start {
    /// The folder of its files; made where it is missing.
    pub(crate) home: PathBuf,
    /// The port to listen on; 0 takes a free one.
    pub(crate) port: u16,
    /// The model server's base URL.
    pub(crate) model_url: String,
    /// The default model.
    pub(crate) model: String,
    /// The credential for the model server.
    pub(crate) api_key: Option<String>,
    /// More lines for its `tidegate.toml`: top-level keys and tables.
    pub(crate) settings: String,
    /// The operator's tools file, if there is to be one.
    pub(crate) tools: Option<String>,
    /// What stands before the program: a sandbox and its arguments.
    pub(crate) wrapper: Vec<String>,
    /// The program; the release, unless another one is named.
    pub(crate) binary: PathBuf,
    /// More variables of its environment.
    pub(crate) environment: Vec<(String, String)>,
}

impl Start {
    /// A daemon in that folder, in front of that model server.
    pub(crate) fn new(
        home: impl Into<PathBuf>,
        model_url: impl Into<String>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            home: home.into(),
            port: 0,
            model_url: model_url.into(),
            model: model.into(),
            api_key: None,
            settings: String::new(),
            tools: None,
            wrapper: Vec::new(),
            binary: process::release_binary(),
            environment: Vec::new(),
        }
    }
}

/// A running daemon. It is killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// A key with all scopes.
    pub(crate) key: String,
    /// The folder of its files.
    pub(crate) home: PathBuf,
    /// From the start of the process to the first ready answer.
    pub(crate) ready_after: Duration,
}

impl Daemon {
    /// Starts a daemon and waits until it is ready.
    pub(crate) fn start(start: &Start) -> Result<Self> {
        let key = prepare(start)?;
        let port = if start.port == 0 {
            tidegate_testkit::free_port()?
        } else {
            start.port
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let log_path = start.home.join("daemon.log");
        let log = File::options().create(true).append(true).open(&log_path)?;
        let mut command = command(start);
        command
            .env("TIDEGATE_BIND", address.to_string())
            .env("TIDEGATE_BOOTSTRAP_KEY", &key)
            .stdout(log.try_clone()?)
            .stderr(log);
        let begin = Instant::now();
        let child = command
            .spawn()
            .context("cannot start the daemon; build it with `cargo build --release`")?;
        let mut daemon = Self {
            child,
            address,
            key,
            home: start.home.clone(),
            ready_after: Duration::ZERO,
        };
        daemon.wait_ready(begin, &log_path)?;
        Ok(daemon)
    }

    fn wait_ready(&mut self, begin: Instant, log_path: &Path) -> Result<()> {
        loop {
            let answer = http::call(
                self.address,
                "GET",
                "/health/ready",
                None,
                &Value::Null,
                Duration::from_secs(2),
            );
            if answer.as_ref().is_ok_and(|answer| answer.status == 200) {
                self.ready_after = begin.elapsed();
                return Ok(());
            }
            let ended = self.child.try_wait()?.is_some();
            if ended || begin.elapsed() > READY_TIMEOUT {
                let log = std::fs::read_to_string(log_path).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(20).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                let last = answer.map_or_else(|error| error.to_string(), |answer| answer.text());
                let what = if ended {
                    "ended while starting"
                } else {
                    "was not ready in time"
                };
                bail!("the daemon {what}; last answer: {last}\n{}", tail.join("\n"));
            }
            std::thread::sleep(POLL);
        }
    }

    /// One request with the key.
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        http::call(
            self.address,
            method,
            path,
            Some(&self.key),
            body,
            Duration::from_mins(1),
        )
    }

    /// Whether the process runs and answers its health check within the time.
    pub(crate) fn alive(&mut self, timeout: Duration) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
            && http::call(self.address, "GET", "/health/live", None, &Value::Null, timeout)
                .is_ok_and(|answer| answer.status == 200)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS line")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024)
    }

    /// How many files and sockets it has open.
    pub(crate) fn open_files(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.pid()))?.count())
    }

    /// Processor time it has used, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        // The kernel gives these counts in hundredths of a second on every Linux there is (`USER_HZ`).
        const TICKS_PER_S: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        let (_, rest) = stat.rsplit_once(')').context("unreadable stat line")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or_default()
        };
        Ok((ticks(11) + ticks(12)) / TICKS_PER_S)
    }

    /// Whether the process has ended.
    pub(crate) fn ended(&mut self) -> bool {
        !self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Asks it to stop and waits; whether it ended with success.
    pub(crate) fn stop(mut self) -> Result<bool> {
        let pid = i32::try_from(innermost(self.pid()))
            .ok()
            .and_then(Pid::from_raw)
            .context("no process id")?;
        kill_process(pid, Signal::TERM)?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            std::thread::sleep(POLL);
        }
        bail!("the daemon did not stop within {} s", STOP_TIMEOUT.as_secs());
    }

    /// Kills it at once, as a power cut would.
    pub(crate) fn kill(mut self) {
        process::kill_tree(&mut self.child);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        process::kill_tree(&mut self.child);
    }
}

/// The process below a sandbox's own processes: each of those has one child, and the daemon has none.
fn innermost(mut pid: u32) -> u32 {
    while let Some(child) = process::children(pid).first() {
        pid = *child;
    }
    pid
}

/// The daemon's command line and environment, nothing inherited but what a program needs to run.
fn command(start: &Start) -> Command {
    let binary = &start.binary;
    let mut command = match start.wrapper.split_first() {
        Some((wrapper, arguments)) => {
            let mut command = process::program(wrapper);
            command.args(arguments).arg(binary);
            command
        }
        None => process::program(binary),
    };
    command.arg("serve").current_dir(&start.home).env_clear();
    for name in ["PATH", "HOME", "TMPDIR", "TZ"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    if let Some(key) = &start.api_key {
        command.env("OPENAI_API_KEY", key);
    }
    for (name, value) in &start.environment {
        command.env(name, value);
    }
    command
}

/// Writes what the daemon needs into its folder and gives its key. Files that are there stay.
pub(crate) fn prepare(start: &Start) -> Result<String> {
    let home = &start.home;
    std::fs::create_dir_all(home.join("knowledge-bank"))?;
    for (name, text) in [("AGENT.md", AGENT), ("knowledge-bank/hours.md", HOURS)] {
        if !home.join(name).exists() {
            std::fs::write(home.join(name), text)?;
        }
    }
    let mut settings = start.settings.clone();
    if let Some(tools) = &start.tools {
        std::fs::write(home.join("tools.toml"), tools)?;
        settings.push_str("\n[tools]\ntools_file = \"tools.toml\"\n");
    }
    let api_key = if start.api_key.is_some() {
        "api_key = \"env:OPENAI_API_KEY\"\n"
    } else {
        ""
    };
    let provider = format!(
        "\n[models]\ndefault_provider = \"upstream\"\n\n[models.providers.upstream]\nbase_url = \"{}\"\nmodel = \"{}\"\n{api_key}",
        start.model_url, start.model
    );
    std::fs::write(home.join("tidegate.toml"), settings + &provider)?;
    key_of(home, &start.binary)
}

/// The key of a folder's daemon: made once, kept beside its data, so that a restart has the same.
fn key_of(home: &Path, binary: &Path) -> Result<String> {
    let path = home.join("key");
    if let Ok(key) = std::fs::read_to_string(&path) {
        return Ok(key.trim().to_owned());
    }
    let key = process::output(process::program(binary).args(["keys", "generate"]))?;
    let key = key.trim().to_owned();
    std::fs::write(&path, &key)?;
    restrict(&path)?;
    Ok(key)
}

fn restrict(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(())
}

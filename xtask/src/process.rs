//! Programs that the developer commands run: bounded in time, their output shown as it comes and kept for
//! counting.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How much of a program's output is kept, in lines; the oldest go first.
const LINES_MAX: usize = 20_000;
/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(20);

/// What a finished program left.
pub(crate) struct Finished {
    /// Whether it ended with success.
    pub(crate) success: bool,
    /// Its output, both streams, in the order of arrival.
    pub(crate) lines: Vec<String>,
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo builds to.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The release binary.
pub(crate) fn release_binary() -> PathBuf {
    target().join("release/tidegate")
}

/// A program to run at the repository's root, without standard input.
pub(crate) fn program(name: impl AsRef<Path>) -> Command {
    let mut command = Command::new(name.as_ref());
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Cargo, the one that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = program(std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from));
    command.args(arguments);
    command
}

/// Whether a program of that name can be run.
pub(crate) fn exists(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Runs a program to its end, shows its output, and kills it and its children at the deadline.
pub(crate) fn run(command: &mut Command, timeout: Duration) -> Result<Finished> {
    let shown = format!("{command:?}");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let readers = [
        child
            .stdout
            .take()
            .map(|stream| follow(stream, Arc::clone(&lines))),
        child
            .stderr
            .take()
            .map(|stream| follow(stream, Arc::clone(&lines))),
    ];
    let success = wait(&mut child, timeout);
    for reader in readers.into_iter().flatten() {
        // A reader ends with its stream; one that panicked has shown what it could.
        drop(reader.join());
    }
    let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    match success {
        Some(success) => Ok(Finished { success, lines }),
        None => bail!("{shown} took more than {} s and was stopped", timeout.as_secs()),
    }
}

/// Runs a program and fails where it does.
pub(crate) fn check(command: &mut Command, timeout: Duration) -> Result<Finished> {
    let shown = format!("{command:?}");
    let finished = run(command, timeout)?;
    if !finished.success {
        bail!("{shown} failed");
    }
    Ok(finished)
}

/// Runs a short program silently and gives what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command
        .output()
        .with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!(
            "{shown} failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits for the end; `None` where the deadline came first and the whole tree was killed.
fn wait(child: &mut Child, timeout: Duration) -> Option<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            Ok(None) | Err(_) => break,
        }
    }
    kill_tree(child);
    None
}

/// Kills a child and everything that it started. They share the group of this program, so that Ctrl-C in a
/// terminal reaches them all; for that reason they cannot be killed as a group of their own.
pub(crate) fn kill_tree(child: &mut Child) {
    let mut pending = vec![child.id()];
    let mut found = Vec::new();
    while let Some(pid) = pending.pop() {
        pending.extend(children(pid));
        found.push(pid);
    }
    for pid in found
        .into_iter()
        .filter_map(|pid| i32::try_from(pid).ok().and_then(Pid::from_raw))
    {
        // It may have ended by itself in between.
        kill_process(pid, Signal::KILL).ok();
    }
    drop(child.wait());
}

/// The processes that a process has started, by whichever of its threads.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = lists.flat_map(|list| list.split(' ').map(str::parse).collect::<Vec<_>>());
    numbers.flatten().collect()
}

fn follow(stream: impl Read + Send + 'static, lines: Arc<Mutex<Vec<String>>>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            println!("{text}");
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LINES_MAX {
                lines.remove(0);
            }
            lines.push(text);
            line.clear();
        }
    })
}

//! Programs: a fixed program, its arguments as argv elements, and nothing inherited.
//!
//! No shell is ever involved. The environment is empty but for what the caller lists, the program runs in a
//! process group of its own, and the whole group is killed at the deadline, when the future is dropped, and
//! when the program itself has ended but left something running. A program that leaves its group on purpose
//! (a new session) is beyond this door; what the model may choose runs in the sandbox ([`crate::sandbox`]) instead.

use std::{ffi::OsString, path::PathBuf, process::Stdio, time::Duration};

use rustix::{
    io::Errno,
    process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
};

/// How long, after the program has ended, its output is still waited for. Only something it left running can
/// hold the pipes open for longer.
const DRAIN_AFTER_EXIT: Duration = Duration::from_millis(500);

/// How many bytes one read takes off a pipe.
const READ_CHUNK_BYTES: usize = 8 * 1024;

/// A program to run, once.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program: an absolute path, or a name looked up in the `PATH` of `environment`.
    pub program: PathBuf,
    /// Its arguments, each one element of argv whatever it holds.
    pub arguments: Vec<OsString>,
    /// The working folder.
    pub folder: PathBuf,
    /// The whole environment: nothing else is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads; `None` is an empty input.
    pub stdin: Option<Vec<u8>>,
    /// How many bytes of standard output and of standard error are kept, each. The rest is read and dropped.
    pub output_bytes_max: usize,
    /// How long it may run before it and its group are killed.
    pub timeout: Duration,
}

/// Raises the number of files that this process may have open as far as it may be raised without privileges,
/// and gives it; `u64::MAX` is no limit. Connections count as files (POSIX, `RLIMIT_NOFILE`).
///
/// # Errors
/// The operating system refuses the change.
pub fn raise_file_limit() -> std::io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let raised = Rlimit {
            current: maximum,
            maximum,
        };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok(maximum.unwrap_or(u64::MAX))
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code; 0 is success.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Whether it reported success.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// One captured stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The first bytes, at most `output_bytes_max`.
    pub bytes: Vec<u8>,
    /// Whether more came than was kept.
    pub is_cut: bool,
}

/// What came of a program that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("`{program}` cannot be started: {problem}; check that it is installed and may be executed")]
    NotStarted {
        /// The program.
        program: String,
        /// The operating system's reason.
        problem: std::io::Error,
    },
    /// It was still running at the deadline; its group was killed.
    #[error("`{program}` was stopped after {after_ms} ms")]
    TimedOut {
        /// The program.
        program: String,
        /// The deadline.
        after_ms: u64,
    },
    /// Waiting for it failed.
    #[error("`{program}` was lost: {problem}")]
    Lost {
        /// The program.
        program: String,
        /// The operating system's reason.
        problem: std::io::Error,
    },
}

/// Runs a program to its end or its deadline. Dropping the future kills the program and its group.
pub async fn run(program: Program) -> Result<Finished, ProcessError> {
    let name = program.program.display().to_string();
    let timeout = program.timeout;
    let output_bytes_max = program.output_bytes_max;
    let (child, group) = start(&program).map_err(|problem| ProcessError::NotStarted {
        program: name.clone(),
        problem,
    })?;
    let work = attend(child, program.stdin.unwrap_or_default(), output_bytes_max);
    let outcome = tokio::time::timeout(timeout, work).await;
    drop(group);
    match outcome {
        Ok(Ok(finished)) => Ok(finished),
        Ok(Err(problem)) => Err(ProcessError::Lost {
            program: name,
            problem,
        }),
        Err(_elapsed) => Err(ProcessError::TimedOut {
            program: name,
            after_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        }),
    }
}

/// Kills the group when it goes.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The process id of the first of the group, which is the group's as well.
    pub(crate) fn leader(&self) -> Option<i32> {
        self.0.map(|leader| leader.as_raw_nonzero().get())
    }

    /// Kills everything in it now.
    pub(crate) fn kill(&self) {
        if let Some(leader) = self.0 {
            match kill_process_group(leader, Signal::KILL) {
                // The usual answer is that there is no such group: everything has ended already.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(problem) => tracing::warn!(%problem, "a program's group cannot be killed"),
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one door through which programs start, with a cleared environment"
)]
pub(crate) fn start(program: &Program) -> std::io::Result<(Child, Group)> {
    let child = Command::new(&program.program)
        .args(&program.arguments)
        .current_dir(&program.folder)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .stdin(if program.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let leader = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    Ok((child, Group(leader)))
}

/// Feeds, reads and waits, all at once, so that no full pipe can hold another one up.
async fn attend(mut child: Child, stdin: Vec<u8>, output_bytes_max: usize) -> std::io::Result<Finished> {
    let feed = feed(child.stdin.take(), stdin);
    let mut stdout = Captured::default();
    let mut stderr = Captured::default();
    let (out_pipe, err_pipe) = (child.stdout.take(), child.stderr.take());
    let status = {
        let output = async {
            tokio::join!(
                capture(out_pipe, output_bytes_max, &mut stdout),
                capture(err_pipe, output_bytes_max, &mut stderr),
            )
        };
        tokio::pin!(feed, output);
        let mut is_drained = false;
        let mut is_fed = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                _ = &mut output, if !is_drained => is_drained = true,
                () = &mut feed, if !is_fed => is_fed = true,
            }
        };
        if !is_drained {
            drop(tokio::time::timeout(DRAIN_AFTER_EXIT, output).await);
        }
        status
    };
    Ok(Finished {
        exit: exit_of(status),
        stdout,
        stderr,
    })
}

pub(crate) fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Signal(0),
    }
}

/// A program that does not read its input is no failure: it says by its exit code whether it was content.
pub(crate) async fn feed(pipe: Option<ChildStdin>, bytes: Vec<u8>) {
    if let Some(mut pipe) = pipe {
        drop(pipe.write_all(&bytes).await);
        drop(pipe.shutdown().await);
    }
}

/// Keeps the first bytes of a stream and drops the rest, so that the writer never waits for us.
async fn capture(pipe: Option<impl AsyncRead + Unpin>, bytes_max: usize, captured: &mut Captured) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    loop {
        let count = match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let room = bytes_max.saturating_sub(captured.bytes.len()).min(count);
        captured.bytes.extend(chunk.iter().take(room));
        captured.is_cut |= room < count;
    }
}

#[cfg(test)]
mod tests;

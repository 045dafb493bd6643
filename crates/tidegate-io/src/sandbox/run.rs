//! One run, from outside: start, feed, read, watch, kill.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Child,
    time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout},
};

use super::{
    Error, Level, Policy, Task, Tools, WorkingFolder, bwrap,
    policy::{Limits, PROGRAM_FOLDERS},
    rules, usage,
    wire::{COMMAND, ORDER_BYTES_MAX, Order, READY, Walls},
};
use crate::process::{self, Captured, Exit, Group, Program};

/// How often a run is looked at: the machine's number of processes, which is one short read.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);

/// Every how many looks a run is counted whatever was seen. Short ones never are.
const LOOKS_A_COUNT: u32 = 10;

/// How long output is still read after everything was killed: what stands in the pipes, no more.
const DRAIN_AFTER_KILL: Duration = Duration::from_millis(500);

/// How many times the output that is kept may be written before the run is taken for a flood.
const FLOOD_FACTOR: usize = 16;

/// How many bytes one read takes off a pipe.
const READ_CHUNK_BYTES: usize = 16 * 1024;

/// How much a failure to build the walls may say.
const PROBLEM_CHARS_MAX: usize = 500;

/// A bound that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The deadline.
    Time,
    /// Processor time.
    Cpu,
    /// Memory, of all processes together.
    Memory,
    /// The number of processes.
    Processes,
    /// The size of one file.
    FileSize,
    /// Far more output than is kept.
    Output,
}

impl Bound {
    /// The bound in words, for people and models.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Time => "it was still running at its deadline",
            Self::Cpu => "it used up its processor time",
            Self::Memory => "it used up its memory",
            Self::Processes => "it started more processes than it may",
            Self::FileSize => "it wrote a larger file than it may",
            Self::Output => "it wrote far more output than is kept",
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended; a killed one by its signal.
    pub exit: Exit,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// The bound that ended it, if one did.
    pub killed_by: Option<Bound>,
}

impl Outcome {
    /// Whether the deadline ended it.
    pub fn timed_out(&self) -> bool {
        self.killed_by == Some(Bound::Time)
    }

    /// Whether more was written than was kept.
    pub fn is_cut(&self) -> bool {
        self.stdout.is_cut || self.stderr.is_cut
    }
}

/// A run that only has to be started. The private folder goes with it.
struct Prepared {
    program: Program,
    folder: Option<TempDir>,
}

/// Runs a task at a level.
pub(super) async fn run(tools: &Tools, level: Level, task: Task, policy: Policy) -> Result<Outcome, Error> {
    let limits = policy.limits;
    let tools = tools.clone();
    let prepared = tokio::task::spawn_blocking(move || prepare(&tools, level, task, &policy))
        .await
        .map_err(|problem| Error::Lost(problem.to_string()))??;
    let name = prepared.program.program.display().to_string();
    // Dropped in this order: first the group is killed, then its folder goes.
    let _folder = prepared.folder;
    let (child, group) =
        process::start(&prepared.program).map_err(|problem| process::ProcessError::NotStarted {
            program: name,
            problem,
        })?;
    let stdin = prepared.program.stdin.unwrap_or_default();
    let ended = Box::pin(attend(child, &group, stdin, &limits)).await?;
    judge(ended, &limits)
}

fn prepare(tools: &Tools, level: Level, task: Task, policy: &Policy) -> Result<Prepared, Error> {
    let roots = policy.readable.iter().chain(&policy.writable);
    if let Some(root) = roots
        .into_iter()
        .find(|path| !path.is_absolute() || path.parent().is_none())
    {
        return Err(Error::Root(root.display().to_string()));
    }
    let mut folder = None;
    let (program, arguments, walls, open, temporary) = match (level, &tools.bwrap) {
        (Level::BwrapLandlock, Some(bwrap)) => {
            let temporary = PathBuf::from(bwrap::TEMPORARY);
            let open = rules::behind(policy, &temporary);
            let arguments = bwrap::arguments(policy, &tools.program);
            (bwrap.clone(), arguments, Walls::Behind, open, temporary)
        }
        (Level::BwrapLandlock, None) => {
            return Err(Error::NotConfined("bubblewrap is not installed".to_owned()));
        }
        (Level::Landlock | Level::None, _) => {
            let made = tempfile::Builder::new()
                .prefix("tidegate-run-")
                .tempdir()
                .map_err(Error::Temporary)?;
            let temporary = made.path().canonicalize().map_err(Error::Temporary)?;
            folder = Some(made);
            let (walls, open) = match level {
                Level::None => (Walls::Nothing, Vec::new()),
                Level::BwrapLandlock | Level::Landlock => (Walls::Alone, rules::alone(policy, &temporary)?),
            };
            let arguments = vec![OsString::from(COMMAND)];
            (tools.program.clone(), arguments, walls, open, temporary)
        }
    };
    let order = Order {
        walls,
        rules: open,
        network: policy.network,
        limits: policy.limits,
        environment: environment(policy, &temporary),
        folder: match &policy.working_folder {
            WorkingFolder::Temporary => temporary,
            WorkingFolder::Folder(folder) => folder.clone(),
        },
        stdin: task.stdin,
        work: task.work,
    };
    let text = serde_json::to_vec(&order).map_err(|problem| Error::Lost(problem.to_string()))?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) >= ORDER_BYTES_MAX {
        return Err(Error::TooLong(ORDER_BYTES_MAX));
    }
    let program = Program {
        program,
        arguments,
        folder: PathBuf::from("/"),
        environment: Vec::new(),
        stdin: Some(text),
        output_bytes_max: policy.limits.output_bytes,
        timeout: Duration::from_millis(policy.limits.timeout_ms),
    };
    Ok(Prepared { program, folder })
}

/// The whole environment of what runs.
fn environment(policy: &Policy, temporary: &Path) -> Vec<(String, String)> {
    let temporary = temporary.display().to_string();
    let mut environment = vec![
        ("PATH".to_owned(), PROGRAM_FOLDERS.join(":")),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("HOME".to_owned(), temporary.clone()),
        ("TMPDIR".to_owned(), temporary),
    ];
    environment.extend(policy.environment.iter().cloned());
    environment
}

/// How a run came to its end.
struct Ended {
    exit: Exit,
    killed_by: Option<Bound>,
    stdout: Captured,
    stderr: Captured,
}

/// More was written than any honest program would.
struct Flood;

/// Feeds, reads, watches and waits, all at once; the group is dead when this is over.
async fn attend(mut child: Child, group: &Group, stdin: Vec<u8>, limits: &Limits) -> Result<Ended, Error> {
    let lost = |problem: std::io::Error| Error::Lost(problem.to_string());
    let tasks_before = usage::tasks();
    let deadline = Instant::now() + Duration::from_millis(limits.timeout_ms);
    let mut stdout = Captured::default();
    let mut stderr = Captured::default();
    let (out_pipe, err_pipe) = (child.stdout.take(), child.stderr.take());
    let feed = process::feed(child.stdin.take(), stdin);
    let output_max = limits.output_bytes.saturating_add(READY.len());
    let (killed_by, status) = {
        let output = async {
            tokio::try_join!(
                capture(out_pipe, output_max, &mut stdout),
                capture(err_pipe, output_max, &mut stderr),
            )
        };
        tokio::pin!(feed, output);
        let mut watch = interval_at(Instant::now() + WATCH_INTERVAL, WATCH_INTERVAL);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_drained, mut is_fed, mut looks) = (false, false, 0_u32);
        let killed_by = loop {
            tokio::select! {
                status = child.wait() => {
                    status.map_err(lost)?;
                    break None;
                }
                outcome = &mut output, if !is_drained => {
                    is_drained = true;
                    if let Err(Flood) = outcome {
                        break Some(Bound::Output);
                    }
                }
                () = &mut feed, if !is_fed => is_fed = true,
                () = sleep_until(deadline) => break Some(Bound::Time),
                _ = watch.tick() => {
                    looks = looks.wrapping_add(1);
                    let grown = usage::tasks().saturating_sub(tasks_before);
                    if (looks.is_multiple_of(LOOKS_A_COUNT) || grown > limits.processes)
                        && let Some(bound) = exceeded(group, limits).await
                    {
                        break Some(bound);
                    }
                },
            }
        };
        // What is left running holds the pipes open: first the end, then the rest of the output.
        group.kill();
        let status = timeout(DRAIN_AFTER_KILL, child.wait()).await;
        if !is_drained {
            // What does not come in time is not waited for.
            drop(timeout(DRAIN_AFTER_KILL, output).await);
        }
        (killed_by, status)
    };
    let exit = match status {
        Ok(status) => process::exit_of(status.map_err(lost)?),
        // It hangs in the kernel with its death pending.
        Err(_elapsed) => Exit::Signal(libc::SIGKILL),
    };
    Ok(Ended {
        exit,
        killed_by,
        stdout,
        stderr,
    })
}

/// Counts the run, off the threads that serve others.
async fn exceeded(group: &Group, limits: &Limits) -> Option<Bound> {
    let leader = group.leader()?;
    let used = tokio::task::spawn_blocking(move || usage::sample(leader))
        .await
        .ok()?;
    if used.processes > limits.processes {
        return Some(Bound::Processes);
    }
    (used.memory_bytes > limits.memory_bytes).then_some(Bound::Memory)
}

/// Keeps the first bytes of a stream and drops the rest, until it is a flood.
async fn capture(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes_max: usize,
    captured: &mut Captured,
) -> Result<(), Flood> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    let mut seen: usize = 0;
    loop {
        let count = match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        seen = seen.saturating_add(count);
        let room = bytes_max.saturating_sub(captured.bytes.len()).min(count);
        captured.bytes.extend(chunk.iter().take(room));
        captured.is_cut |= room < count;
        if seen > bytes_max.saturating_mul(FLOOD_FACTOR) {
            return Err(Flood);
        }
    }
}

/// Whether the walls stood, and which bound ended it where no one here did.
fn judge(ended: Ended, limits: &Limits) -> Result<Outcome, Error> {
    let Ended {
        exit,
        killed_by,
        mut stdout,
        stderr,
    } = ended;
    if let Some(rest) = stdout.bytes.strip_prefix(READY) {
        stdout.bytes = rest.to_vec();
    } else if killed_by.is_none() {
        let text = String::from_utf8_lossy(&stderr.bytes);
        let text: String = text.trim().chars().take(PROBLEM_CHARS_MAX).collect();
        return Err(Error::NotConfined(if text.is_empty() {
            format!("the process ended before it began ({exit:?})")
        } else {
            text.replace('\n', "; ")
        }));
    }
    stdout.is_cut |= stdout.bytes.len() > limits.output_bytes;
    stdout.bytes.truncate(limits.output_bytes);
    let mut stderr = stderr;
    stderr.is_cut |= stderr.bytes.len() > limits.output_bytes;
    stderr.bytes.truncate(limits.output_bytes);
    let killed_by = killed_by.or_else(|| bound_of(exit));
    Ok(Outcome {
        exit,
        stdout,
        stderr,
        killed_by,
    })
}

/// The kernel's own limits end a program with signals of their own, which those in between pass on as 128 and
/// the signal.
fn bound_of(exit: Exit) -> Option<Bound> {
    let signal = match exit {
        Exit::Signal(signal) => signal,
        Exit::Code(code) => code.checked_sub(128)?,
    };
    match signal {
        libc::SIGXCPU => Some(Bound::Cpu),
        libc::SIGXFSZ => Some(Bound::FileSize),
        _ => None,
    }
}

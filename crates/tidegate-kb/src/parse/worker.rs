//! Who reads a file: this process where our own total parsers do it, else a process that may be lost.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidegate_io::process::{self, Exit, Finished, ProcessError, Program};
use tokio::sync::Semaphore;

use super::{
    Options, Parsed, Problem, child, detect, read,
    wire::{self, Answer, Order},
};

/// The largest file of a plain format that is read in this process: milliseconds of work, and memory of a few dozen
/// times its size at worst.
const HERE_BYTES_MAX: usize = 1 << 20;

/// How much of what a lost process said is passed on, in characters.
const SAID_CHARS_MAX: usize = 200;

/// SIGXCPU: more processor time than allowed (Linux, signal(7)).
const SIGNAL_CPU: i32 = 24;

/// SIGKILL: here the kernel's, when memory ran out or processor time was overdrawn by far.
const SIGNAL_KILL: i32 = 9;

/// Reads files, a few at a time, each within its bounds. Cheap to clone; clones share the bounds.
#[derive(Debug, Clone)]
pub struct Worker {
    program: PathBuf,
    options: Options,
    permits: Arc<Semaphore>,
    has_warned: Arc<AtomicBool>,
}

impl Worker {
    /// `program` is tidegate's own binary, as `std::env::current_exe` gives it.
    pub fn new(program: impl Into<PathBuf>, options: Options) -> Self {
        Self {
            program: program.into(),
            options,
            permits: Arc::new(Semaphore::new(options.concurrency.max(1))),
            has_warned: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The bounds.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Reads a file. `name` is its path or name. Dropping the future ends the process that reads it.
    ///
    /// # Errors
    /// It cannot be read. Only [`Problem::Unavailable`] is not about the file.
    pub async fn parse(&self, name: &str, bytes: Vec<u8>) -> Result<Parsed, Problem> {
        let limits = self.options.limits;
        if bytes.is_empty() {
            return Err(Problem::Empty);
        }
        if bytes.len() > limits.file_bytes_max {
            return Err(Problem::TooLarge {
                bytes: bytes.len(),
                max: limits.file_bytes_max,
            });
        }
        let Ok(_permit) = self.permits.acquire().await else {
            return Err(Problem::Unavailable("the server is going down".to_owned()));
        };
        if bytes.len() <= HERE_BYTES_MAX && detect::is_ours(name, &bytes) {
            let name = name.to_owned();
            return tokio::task::spawn_blocking(move || read(&name, &bytes, &limits))
                .await
                .unwrap_or_else(|problem| Err(Problem::Crashed(problem.to_string())));
        }
        self.parse_elsewhere(name, &bytes).await
    }

    async fn parse_elsewhere(&self, name: &str, bytes: &[u8]) -> Result<Parsed, Problem> {
        let limits = self.options.limits;
        let order = Order {
            name: name.to_owned(),
            limits,
            memory_bytes: self.options.memory_bytes,
            cpu_s: self.options.timeout_ms.div_ceil(1000).max(1),
        };
        let input = wire::pack(&order, bytes).map_err(Problem::Unavailable)?;
        let program = Program {
            program: self.program.clone(),
            arguments: vec![OsString::from(wire::COMMAND)],
            folder: PathBuf::from("/"),
            environment: Vec::new(),
            stdin: Some(input),
            output_bytes_max: limits.text_bytes_max.saturating_add(wire::HEAD_BYTES_MAX),
            timeout: Duration::from_millis(self.options.timeout_ms),
        };
        match process::run(program).await {
            Ok(finished) => self.judge(&finished),
            Err(ProcessError::TimedOut { .. }) => Err(self.too_slow()),
            Err(problem @ (ProcessError::NotStarted { .. } | ProcessError::Lost { .. })) => {
                Err(Problem::Unavailable(problem.to_string()))
            }
        }
    }

    /// What came out, or why nothing did.
    fn judge(&self, finished: &Finished) -> Result<Parsed, Problem> {
        if finished.exit.is_success()
            && !finished.stdout.is_cut
            && let Some((answer, text)) = wire::unpack::<Answer>(&finished.stdout.bytes)
        {
            self.warn(&answer.missing_walls);
            let head = answer.outcome?;
            return std::str::from_utf8(text)
                .ok()
                .and_then(|text| head.join(text.to_owned()))
                .ok_or_else(|| Problem::Crashed("its answer makes no sense".to_owned()));
        }
        let said = String::from_utf8_lossy(&finished.stderr.bytes);
        if said.contains("memory allocation of") {
            return Err(self.out_of_memory());
        }
        Err(match finished.exit {
            Exit::Code(code) if code == i32::from(child::NOT_STARTED) => Problem::Unavailable(shorten(&said)),
            Exit::Signal(SIGNAL_CPU) => self.too_slow(),
            Exit::Signal(SIGNAL_KILL) => self.out_of_memory(),
            Exit::Signal(_) if said.contains("overflowed its stack") => {
                Problem::Crashed("it is nested too deeply".to_owned())
            }
            Exit::Signal(signal) => Problem::Crashed(format!("it ended by signal {signal}")),
            Exit::Code(_) if finished.stdout.is_cut => Problem::TooMuch {
                what: "bytes of text".to_owned(),
                max: self.options.limits.text_bytes_max,
            },
            Exit::Code(0) => Problem::Crashed("its answer makes no sense".to_owned()),
            Exit::Code(code) => Problem::Crashed(format!("it ended with code {code}: {}", shorten(&said))),
        })
    }

    fn too_slow(&self) -> Problem {
        Problem::TooSlow {
            limit_ms: self.options.timeout_ms,
        }
    }

    fn out_of_memory(&self) -> Problem {
        Problem::OutOfMemory {
            limit_mb: self.options.memory_bytes >> 20,
        }
    }

    /// Says once what the machine does not offer.
    fn warn(&self, missing_walls: &[String]) {
        if !missing_walls.is_empty() && !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                missing = missing_walls.join("; "),
                "documents are read in a process with limits, but not every wall around it could be built"
            );
        }
    }
}

fn shorten(said: &str) -> String {
    said.trim()
        .replace('\n', "; ")
        .chars()
        .take(SAID_CHARS_MAX)
        .collect()
}

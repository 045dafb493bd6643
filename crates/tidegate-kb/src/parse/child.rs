//! The inner side: a process of our own program that reads one file and is gone (`tidegate __parse`).
//!
//! It takes its order, builds its walls (memory, processor time, no files, no network, no programs), and only then
//! looks at the file, which comes in on its standard input. The text goes out on its standard output. One process
//! reads one file: whatever a hostile one does to it, the next file never meets it.

use std::{
    ffi::OsStr,
    io::{self, Read, Write},
    process::ExitCode,
    thread,
};

use tidegate_io::sandbox::child::confine_reader;

use super::{
    Parsed, Problem, read,
    wire::{self, Answer, Head, Order},
};

/// The exit code where no order came or the walls could not be built.
pub(super) const NOT_STARTED: u8 = 121;

/// The longest head of an order, in bytes.
const ORDER_BYTES_MAX: usize = 64 << 10;

/// The stack of the thread that reads: some parsers go down as deep as a document is nested. No more than a quarter of
/// the memory, which it is a part of.
const STACK_BYTES_MAX: u64 = 32 << 20;

/// Whether this process was started to read a file.
pub fn is_meant(first_argument: Option<&OsStr>) -> bool {
    first_argument.is_some_and(|argument| argument == wire::COMMAND)
}

/// The hidden command. Only ever for a process that was started for it: there is no way back.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // Where nobody listens, the exit code has to do.
            drop(writeln!(io::stderr(), "{problem}"));
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn serve() -> Result<(), String> {
    let order = read_order()?;
    let missing_walls = confine_reader(order.memory_bytes, order.cpu_s)?;
    let outcome = document(&order).and_then(|bytes| attempt(&order, &bytes));
    let (outcome, text) = match outcome.map(Head::split) {
        Ok((head, text)) => (Ok(head), text),
        Err(problem) => (Err(problem), String::new()),
    };
    let answer = Answer {
        missing_walls,
        outcome,
    };
    let packed = wire::pack(&answer, text.as_bytes())?;
    let mut out = io::stdout().lock();
    out.write_all(&packed)
        .and_then(|()| out.flush())
        .map_err(|problem| format!("nobody listens: {problem}"))
}

fn read_order() -> Result<Order, String> {
    let nothing = |_| "this command is tidegate's own and does nothing by itself".to_owned();
    let mut input = io::stdin().lock();
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(nothing)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > ORDER_BYTES_MAX {
        return Err("the order is too long".to_owned());
    }
    let mut json = vec![0; length];
    input.read_exact(&mut json).map_err(nothing)?;
    serde_json::from_slice(&json).map_err(|problem| format!("the order cannot be understood: {problem}"))
}

/// The file: the rest of the input.
fn document(order: &Order) -> Result<Vec<u8>, Problem> {
    let max = u64::try_from(order.limits.file_bytes_max).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|problem| {
            if problem.kind() == io::ErrorKind::OutOfMemory {
                return Problem::OutOfMemory {
                    limit_mb: order.memory_bytes >> 20,
                };
            }
            Problem::Crashed(format!("the file did not arrive: {problem}"))
        })?;
    Ok(bytes)
}

/// Reads it in a thread with room for deep documents. A panic in a parser is an answer.
fn attempt(order: &Order, bytes: &[u8]) -> Result<Parsed, Problem> {
    let stack_bytes = STACK_BYTES_MAX.min(order.memory_bytes / 4);
    thread::scope(|scope| {
        let reader = thread::Builder::new()
            .stack_size(usize::try_from(stack_bytes).unwrap_or(usize::MAX))
            .spawn_scoped(scope, || read(&order.name, bytes, &order.limits))
            .map_err(|_| Problem::OutOfMemory {
                limit_mb: order.memory_bytes >> 20,
            })?;
        reader.join().unwrap_or_else(|panic| {
            let said = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Err(Problem::Crashed(
                said.unwrap_or("it panicked").chars().take(200).collect(),
            ))
        })
    })
}

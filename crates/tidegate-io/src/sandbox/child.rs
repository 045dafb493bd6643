//! The inner side: confines its own process, then runs what it was ordered to run.
//!
//! Everything here runs in a process of its own that the server started as `tidegate __sandbox`, with an empty
//! environment and the order on its standard input. Walls go up in an order in which each can still be built:
//! limits, capabilities, Landlock, system calls. One that cannot be built ends the process before anything of
//! the caller's has run.

pub(crate) mod canaries;
mod confine;
mod filter;
mod interpret;
mod reader;

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode},
};

use rustix::process::{Signal, set_parent_process_death_signal};

pub use self::reader::confine_reader;
use super::{
    plan::Work,
    wire::{ORDER_BYTES_MAX, Order, READY},
};

/// The exit code where the walls could not be built.
const NOT_CONFINED: u8 = 121;

/// The exit code of a shell where a program cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// The exit code of a shell where there is no such program.
const NOT_FOUND: u8 = 127;

/// The hidden command: reads an order from standard input, confines this process and carries the order out.
/// Only ever for a process that was started for it: there is no way back.
pub fn main() -> ExitCode {
    match read_order().and_then(|order| confined(&order).map(|()| order)) {
        Ok(order) => ExitCode::from(carry_out(order)),
        Err(problem) => {
            complain(&problem);
            ExitCode::from(NOT_CONFINED)
        }
    }
}

fn complain(problem: &str) {
    // Where nobody listens, the exit code has to do.
    drop(writeln!(io::stderr(), "{problem}"));
}

fn read_order() -> Result<Order, String> {
    let mut text = Vec::new();
    let read = io::stdin()
        .lock()
        .take(ORDER_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(|problem| format!("the order cannot be read: {problem}"))?;
    if read == 0 {
        return Err("this command is tidegate's own and does nothing by itself".to_owned());
    }
    serde_json::from_slice(&text).map_err(|problem| format!("the order cannot be understood: {problem}"))
}

fn confined(order: &Order) -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|problem| format!("the process cannot be bound to the server's: {problem}"))?;
    std::env::set_current_dir(&order.folder)
        .map_err(|problem| format!("the working folder cannot be entered: {problem}"))?;
    confine::walls(order)?;
    let mut out = io::stdout().lock();
    out.write_all(READY)
        .and_then(|()| out.flush())
        .map_err(|problem| format!("nobody listens: {problem}"))
}

fn carry_out(order: Order) -> u8 {
    let stdin = match input(&order) {
        Ok(stdin) => stdin,
        Err(problem) => {
            complain(&format!("the input cannot be handed on: {problem}"));
            return NOT_CONFINED;
        }
    };
    match order.work {
        Work::Program { path, arguments } => {
            let mut command = command(&path, &order.environment);
            let problem = command.args(arguments).stdin(stdin).exec();
            complain(&format!("{}: {problem}", path.display()));
            not_started(&problem)
        }
        Work::Plan(plan) => interpret::run(&plan, stdin, &order.environment),
        Work::Canaries(targets) => canaries::run(&targets),
    }
}

/// The input.
fn input(order: &Order) -> io::Result<File> {
    if order.stdin.is_empty() {
        return File::open("/dev/null");
    }
    unnamed(&order.stdin)
}

/// A text as a file without a name: it may be longer than a pipe holds, and nobody is left to feed one.
fn unnamed(text: &[u8]) -> io::Result<File> {
    let handle = rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(handle);
    file.write_all(text)?;
    io::Seek::rewind(&mut file)?;
    Ok(file)
}

/// A program with exactly this environment.
#[expect(
    clippy::disallowed_methods,
    reason = "inside the walls, with a cleared environment: this is what they were built for"
)]
fn command(program: &Path, environment: &[(String, String)]) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

fn not_started(problem: &io::Error) -> u8 {
    if problem.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_EXECUTABLE
    }
}

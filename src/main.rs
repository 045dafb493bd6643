//! Parses the command line, starts the runtime and runs one command.

use std::{
    io::{self, Write},
    num::NonZeroUsize,
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use tidegate::{
    cli::{self, args::Arguments},
    config::Environment,
    parse_child, sandbox_child,
};

/// What blocking work that nobody waits for any more may still take, in milliseconds.
const BLOCKING_GRACE_MS: u64 = 1_000;

/// Processors for each thread that serves. A request is little work in many short steps; a second thread mostly
/// takes the steps of the first one's requests away from it, and waking it costs more than they do. The database,
/// the logs and what blocks have threads of their own, and so has the other half of the processors work.
const PROCESSORS_PER_WORKER: usize = 2;

pub(crate) fn main() -> ExitCode {
    let first_argument = std::env::args_os().nth(1);
    let first_argument = first_argument.as_deref();
    if let Some(code) =
        sandbox_child::take_over(first_argument).or_else(|| parse_child::take_over(first_argument))
    {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A reader that went away is nothing to complain about.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads((processors / PROCESSORS_PER_WORKER).max(1))
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime cannot start: {error}"), 1),
    };
    let environment = Environment::from_process();
    let outcome = runtime.block_on(cli::run(arguments, &environment, &mut io::stdout()));
    runtime.shutdown_timeout(Duration::from_millis(BLOCKING_GRACE_MS));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string(), error.exit_code()),
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    drop(writeln!(io::stderr(), "tidegate: {message}"));
    ExitCode::from(code)
}

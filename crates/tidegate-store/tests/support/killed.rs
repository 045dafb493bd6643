//! What the tests share that kill a process of themselves: the child, its clock, and what a runner is told.

use std::{
    error::Error,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::Stdio,
};

use tidegate_core::clock::{Clock, Timestamp};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[derive(Debug)]
pub(crate) struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_014_400).unwrap_or_default()
    }
}

/// What a runner that asks is told: there is one test, and it is not ignored
/// (<https://nexte.st/docs/design/custom-test-harnesses/>).
pub(crate) fn list(arguments: &[String], test: &str) -> Outcome {
    if !arguments.iter().any(|argument| argument == "--ignored") {
        writeln!(std::io::stdout(), "{test}: test")?;
    }
    Ok(())
}

/// Starts a child and kills it when it says that it is inside, or after the line of that number, from 1. Gives the lines
/// that were whole.
#[expect(
    clippy::disallowed_methods,
    reason = "the child is this test itself; nothing else is started"
)]
pub(crate) fn kill_a_child(path: &Path, round: u64, kill_at: u64) -> Outcome<Vec<String>> {
    let mut child = std::process::Command::new(std::env::current_exe()?)
        .arg("--child")
        .arg(path)
        .arg(round.to_string())
        // Open as long as the child lives: reading it is how a child waits for its end.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let mut reader = BufReader::new(output);
    let (mut lines, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            break;
        }
        if line.trim() == "inside" || lines.len() as u64 + 1 == kill_at {
            child.kill()?;
        }
        if line.ends_with('\n') {
            lines.push(line.trim().to_owned());
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(lines)
}

/// Says a line, at once.
pub(crate) fn say(line: &str) -> Outcome {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()?;
    Ok(())
}

//! Logs for people on the console, and as JSON lines in the logs folder, one file a day.
//!
//! What is logged is decided where it is logged: ids, names, counts and durations; never keys, bodies, message
//! text or tool output.

mod json;
mod queue;

use std::{io::IsTerminal, path::Path};

use serde::{Deserialize, Serialize};
use tracing_appender::rolling;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// `[logs]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Folder of every log, relative to `home`.
    pub folder: String,
    /// What the console shows: a level, or directives such as `info,tidegate=debug`.
    pub console: String,
    /// What the daily JSON file keeps.
    pub file: String,
    /// Daily files that are kept.
    pub days_kept: usize,
    /// Whether each model call is a line in `models.jsonl`.
    pub models: bool,
    /// Lines that may wait for the disk in front of each of the triage, tool and model logs; more are dropped and
    /// counted.
    pub queue_lines: usize,
    /// Bytes at which the triage, tool and model logs are put aside under a number.
    pub rotate_bytes: u64,
    /// How many files that were put aside are kept, of each.
    pub rotated_kept: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            folder: "logs".into(),
            console: "info".into(),
            file: "info".into(),
            days_kept: 14,
            models: true,
            queue_lines: 4_096,
            rotate_bytes: 16 << 20,
            rotated_kept: 5,
        }
    }
}

/// Keeps the writers alive; dropping it writes what is waiting.
#[derive(Debug)]
pub struct Guard {
    _console: queue::Drain,
    file: Option<queue::Drain>,
}

impl Guard {
    /// Whether a log file is being written.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }
}

/// The filter of those directives, or what is wrong with them.
pub fn filter(directives: &str) -> Result<EnvFilter, String> {
    EnvFilter::builder().parse(directives).map_err(|error| {
        format!(
            "`{directives}` is no log filter ({error}); use a level such as `info`, or `info,tidegate=debug`"
        )
    })
}

/// Begins to log: to stderr, and to `folder` where it can be written. `directives` (from `RUST_LOG`) take the
/// place of the console's.
pub fn start(options: &Options, folder: &Path, directives: Option<&str>) -> Result<Guard, String> {
    let thread_fault = |problem: std::io::Error| format!("the log's thread cannot start: {problem}");
    let (writer, console_guard) = queue::start("console-log", std::io::stderr()).map_err(thread_fault)?;
    let console = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_filter(filter(directives.unwrap_or(&options.console))?);
    let appender = rolling::Builder::new()
        .rotation(rolling::Rotation::DAILY)
        .filename_prefix("tidegate")
        .filename_suffix("log")
        .max_log_files(options.days_kept.max(1))
        .build(folder);
    let (file, guard, problem) = match appender {
        Ok(appender) => {
            let (writer, guard) = queue::start("file-log", appender).map_err(thread_fault)?;
            let layer = json::Lines::new(writer).with_filter(filter(&options.file)?);
            (Some(layer), Some(guard), None)
        }
        Err(error) => (None, None, Some(error)),
    };
    tracing_subscriber::registry()
        .with(console)
        .with(file)
        .try_init()
        .map_err(|error| error.to_string())?;
    if let Some(error) = problem {
        tracing::warn!(%error, "no log file is written: make the folder of `logs.folder` writable");
    }
    Ok(Guard {
        _console: console_guard,
        file: guard,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_checked() {
        assert!(filter("info").is_ok());
        assert!(filter("warn,tidegate=debug").is_ok());
        assert!(
            filter("loud=very=much")
                .unwrap_err()
                .contains("info,tidegate=debug")
        );
    }
}

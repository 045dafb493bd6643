//! Logs for people on the console, and as JSON lines in the logs folder, one file a day.
//!
//! What is logged is decided where it is logged: ids, names, counts and durations; never keys, bodies, message
//! text or tool output. What gets in all the same, by a panic or the words of somebody else's error, goes through
//! the redactor like everything else that leaves.

mod json;
mod masks;
mod queue;

use std::{
    io::IsTerminal,
    panic::{self, PanicHookInfo},
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use tidegate_gate::guards::secrets::Redactor;
use tracing_appender::rolling;
use tracing_subscriber::{
    EnvFilter, Layer, filter::ParseError, layer::SubscriberExt, util::SubscriberInitExt,
};

pub use self::masks::Masked;
use self::{
    masks::{Form, Masks},
    queue::Queue,
};

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
    masks: Masks,
}

impl Guard {
    /// Whether a log file is being written.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// From here on, what this redactor knows for a secret is in no line.
    pub fn mask(&self, redactor: Arc<Redactor>) {
        self.masks.set(redactor);
    }
}

/// A library whose lines repeat messages word by word, and the ids of sessions: silent, unless the directives name it.
const TALKATIVE: &str = "rmcp";

/// The filter of those directives, or what is wrong with them.
pub fn filter(directives: &str) -> Result<EnvFilter, String> {
    let faulty = |error: &dyn std::fmt::Display| {
        format!(
            "`{directives}` is no log filter ({error}); use a level such as `info`, or `info,tidegate=debug`"
        )
    };
    let filter = EnvFilter::builder()
        .parse(directives)
        .map_err(|error| faulty(&error))?;
    if directives.contains(TALKATIVE) {
        return Ok(filter);
    }
    let silence = format!("{TALKATIVE}=off").parse();
    Ok(filter.add_directive(silence.map_err(|error: ParseError| faulty(&error))?))
}

/// Begins to log: to stderr, and to `folder` where it can be written. `directives` (from `RUST_LOG`) take the
/// place of the console's.
pub fn start(options: &Options, folder: &Path, directives: Option<&str>) -> Result<Guard, String> {
    let thread_fault = |problem: std::io::Error| format!("the log's thread cannot start: {problem}");
    let masks = Masks::default();
    let (writer, console_guard) =
        queue::start("console-log", std::io::stderr(), Form::Text, masks.clone()).map_err(thread_fault)?;
    let mut panics = Panics {
        console: writer.clone(),
        file: None,
    };
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
            let (writer, guard) =
                queue::start("file-log", appender, Form::Json, masks.clone()).map_err(thread_fault)?;
            panics.file = Some(writer.clone());
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
    panic::set_hook(Box::new(move |panic| panics.report(panic)));
    if let Some(error) = problem {
        tracing::warn!(%error, "no log file is written: make the folder of `logs.folder` writable");
    }
    Ok(Guard {
        _console: console_guard,
        file: guard,
        masks,
    })
}

/// Where panics are reported: the logs, in place of standard error, so that no message goes past the redactor.
/// Straight into the queues: the thread may have been in the middle of logging.
#[derive(Debug)]
struct Panics {
    console: Queue,
    file: Option<Queue>,
}

impl Panics {
    fn report(&self, panic: &PanicHookInfo<'_>) {
        let message = panic.payload_as_str().unwrap_or("a value that is no text");
        let location = panic.location().map_or_else(String::new, ToString::to_string);
        self.say(message, &location);
    }

    fn say(&self, message: &str, location: &str) {
        // The messages of some panics have lines; a log line is one.
        let shown = message.replace(['\n', '\r'], " ");
        self.console
            .push(&format!("ERROR a thread panicked at {location}: {shown}\n"));
        if let Some(file) = &self.file {
            file.push(&json::panic_line(message, location));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Mutex, PoisonError},
    };

    use serde_json::Value;
    use tidegate_core::secret::Secret;

    use super::*;

    /// A file in memory.
    #[derive(Debug, Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            sink.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_reported_without_its_secrets() {
        let (console, file) = (Sink::default(), Sink::default());
        let masks = Masks::default();
        masks.set(Arc::new(
            Redactor::new([Secret::new("made-up-value-1234")]).unwrap(),
        ));
        let (to_console, console_drain) =
            queue::start("test-console", console.clone(), Form::Text, masks.clone()).unwrap();
        let (to_file, file_drain) = queue::start("test-file", file.clone(), Form::Json, masks).unwrap();
        let panics = Panics {
            console: to_console,
            file: Some(to_file),
        };
        panics.say("no \"made-up-value-1234\"\nhere", "src/a.rs:1:2");
        drop((console_drain, file_drain));
        let text = |sink: &Sink| String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            text(&console),
            "ERROR a thread panicked at src/a.rs:1:2: no \"[redacted]\" here\n"
        );
        let line: Value = serde_json::from_str(&text(&file)).unwrap();
        assert_eq!(line["fields"]["panic"], "no \"[redacted]\"\nhere");
        assert_eq!(
            (&line["level"], &line["fields"]["location"]),
            (&"ERROR".into(), &"src/a.rs:1:2".into())
        );
    }

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

//! The hidden command `tidegate __sandbox`: this program, started by itself, confines its own process and becomes
//! what it was ordered to run.
//!
//! It is looked at before the command line, the configuration, the runtime or a log exist: the process must
//! still have one thread when it confines itself, and nothing to lose. It is no command for people and stands
//! in no help text.

use std::{ffi::OsStr, process::ExitCode};

/// The name under which the server starts it.
const COMMAND: &str = "__sandbox";

/// Carries out the order, where this process was started for one.
pub fn take_over(first_argument: Option<&OsStr>) -> Option<ExitCode> {
    (first_argument? == COMMAND).then(tidegate_io::sandbox::child::main)
}

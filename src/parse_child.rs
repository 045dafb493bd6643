//! The hidden command `tidegate __parse`: this program, started by itself, reads one document inside walls and is gone.
//!
//! As with `__sandbox`, it is looked at before anything else exists. It is no command for people and stands in no help
//! text.

use std::{ffi::OsStr, process::ExitCode};

use tidegate_kb::parse::child;

/// Reads the document, where this process was started for one.
pub fn take_over(first_argument: Option<&OsStr>) -> Option<ExitCode> {
    child::is_meant(first_argument).then(child::main)
}

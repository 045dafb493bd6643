//! A clock that a test turns: only in builds with the feature `testing`, which no release has.
//!
//! Memory believes what was said on different days, so a test of the whole daemon must let days pass. The clock is read
//! from a file each time somebody asks for the time; nothing about it can be reached over HTTP. A binary without the
//! feature warns of the variable as of a setting that does not exist, and keeps its own time.

use std::path::PathBuf;

use tidegate_core::clock::Timestamp;

use crate::config::Environment;

/// The variable: a file that holds the present instant, such as `2026-03-02T09:00:00Z`.
pub const CLOCK_VARIABLE: &str = "TIDEGATE_TESTING_CLOCK";

/// What the clock follows; nothing where the variable is unset, and the clock is then the machine's own.
#[derive(Debug, Clone, Default)]
pub struct Script(Option<PathBuf>);

impl Script {
    /// The file that the variable names.
    pub fn from_environment() -> Self {
        Self(Environment::from_process().get(CLOCK_VARIABLE).map(PathBuf::from))
    }

    /// The instant in the file; `None` without a script.
    ///
    /// # Panics
    ///
    /// Where the file cannot be read or holds no instant.
    #[expect(
        clippy::panic,
        reason = "a test whose clock cannot be read must not go on with another one"
    )]
    pub fn now(&self) -> Option<Timestamp> {
        let path = self.0.as_ref()?;
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("the scripted clock {} cannot be read: {error}", path.display()));
        match text.trim().parse() {
            Ok(instant) => Some(instant),
            Err(error) => panic!("the scripted clock {} holds no instant: {error}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
    fn the_clock_is_what_the_file_says_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let script = Script(Some(path.clone()));
        for instant in ["2026-03-02T09:00:00Z", "2026-03-01T23:59:59Z"] {
            std::fs::write(&path, format!("{instant}\n")).unwrap();
            assert_eq!(script.now(), Some(instant.parse().unwrap()));
        }
        assert_eq!(Script::default().now(), None);
    }
}

//! The terminal of the person at the keyboard.

use std::io::{IsTerminal as _, Stdin};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// While it lives, a key counts without Enter and is not shown. Put back when it is dropped.
#[derive(Debug)]
pub struct SingleKeys {
    stdin: Stdin,
    before: Termios,
}

impl SingleKeys {
    /// Switches standard input over; `None` where it is no terminal, or one that cannot be switched.
    pub fn start() -> Option<Self> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut after = before.clone();
        // Signals stay: Ctrl-C still ends the program.
        after.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &after).ok()?;
        Some(Self { stdin, before })
    }
}

impl Drop for SingleKeys {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to put back.
        let _gone = tcsetattr(&self.stdin, OptionalActions::Now, &self.before);
    }
}

//! Scripts of `sed` that only print: `p`, `d`, `q`, `=`, `l`, and `s` without its flags that write or run.

use super::{Unlisted, arguments::Parsed};

/// Judges every script of a `sed` command.
pub(super) fn judge(parsed: &Parsed<'_>) -> Result<(), Unlisted> {
    if parsed.scripts.is_empty()
        && !parsed
            .given
            .iter()
            .any(|option| matches!(option.as_str(), "version" | "help"))
    {
        let script = parsed
            .operands
            .first()
            .ok_or_else(|| Unlisted::Operand("missing".to_owned()))?;
        let script = script.known().ok_or(Unlisted::Dynamic)?;
        return script_of(script);
    }
    parsed.scripts.iter().try_for_each(|script| script_of(script))
}

fn script_of(script: &str) -> Result<(), Unlisted> {
    let mut reader = Reader {
        bytes: script.as_bytes(),
        at: 0,
    };
    if reader.script() {
        Ok(())
    } else {
        Err(Unlisted::Operand(script.chars().take(40).collect()))
    }
}

struct Reader<'s> {
    bytes: &'s [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self, these: &[u8]) {
        while self.peek().is_some_and(|byte| these.contains(&byte)) {
            self.at += 1;
        }
    }

    fn script(&mut self) -> bool {
        loop {
            self.skip(b" \t\n;");
            if self.peek().is_none() {
                return true;
            }
            if !self.command() {
                return false;
            }
            self.skip(b" \t");
            match self.peek() {
                None | Some(b';' | b'\n') => {}
                Some(_) => return false,
            }
        }
    }

    fn command(&mut self) -> bool {
        if !self.addresses() {
            return false;
        }
        self.skip(b" \t");
        if self.peek() == Some(b'!') {
            self.at += 1;
            self.skip(b" \t");
        }
        let Some(command) = self.peek() else { return false };
        self.at += 1;
        match command {
            b'p' | b'd' | b'=' => true,
            b'q' | b'l' => {
                self.skip(b"0123456789");
                true
            }
            b's' => self.substitution(),
            b'y' => self.part_pair().is_some(),
            _ => false,
        }
    }

    fn addresses(&mut self) -> bool {
        if !self.address() {
            return true;
        }
        self.skip(b" \t");
        if self.peek() != Some(b',') {
            return true;
        }
        self.at += 1;
        self.skip(b" \t+~");
        self.address()
    }

    /// A line number, `$`, or a pattern. Whether there was one.
    fn address(&mut self) -> bool {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.skip(b"0123456789~");
                true
            }
            Some(b'$') => {
                self.at += 1;
                true
            }
            Some(b'/') => {
                self.at += 1;
                let is_closed = self.part(b'/');
                self.skip(b"I");
                is_closed
            }
            _ => false,
        }
    }

    fn substitution(&mut self) -> bool {
        if self.part_pair().is_none() {
            return false;
        }
        self.skip(b"gpiI0123456789");
        true
    }

    /// The two parts behind a letter of the script's choice.
    fn part_pair(&mut self) -> Option<()> {
        let delimiter = self.peek()?;
        if !delimiter.is_ascii_punctuation() || b"\\;[".contains(&delimiter) {
            return None;
        }
        self.at += 1;
        (self.part(delimiter) && self.part(delimiter)).then_some(())
    }

    /// Up to the delimiter. A bracket can hold the delimiter as a letter in some versions and not in others, so
    /// that one that does is not read at all.
    fn part(&mut self, delimiter: u8) -> bool {
        let mut is_bracket = false;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'\n' => return false,
                b'[' => is_bracket = true,
                b']' => is_bracket = false,
                byte if byte == delimiter => return !is_bracket,
                _ => {}
            }
        }
        false
    }
}

//! Words without quotes, and what may stand in them.

use super::{Fault, MAX_WORDS, Reader, is_meta};
use crate::shell::syntax::{Piece, Word};

impl Reader<'_> {
    /// One word. The caller has seen that one starts here.
    pub(super) fn word(&mut self) -> Result<Word, Fault> {
        self.words += 1;
        if self.words > MAX_WORDS {
            return Err(Fault::Words);
        }
        let mut word = Word::default();
        if self.peek() == Some(b'~') {
            self.tilde(&mut word);
        }
        loop {
            if self.is_stream_start() {
                self.stream(&mut word)?;
                continue;
            }
            let Some(byte) = self.peek() else { break };
            if is_meta(byte) {
                break;
            }
            self.piece(byte, &mut word)?;
        }
        if word.pieces.is_empty() {
            return if self.peek().is_none_or(is_meta) {
                // Only a continued line stood here.
                Ok(word)
            } else {
                Err(Fault::Syntax)
            };
        }
        Ok(word)
    }

    fn piece(&mut self, byte: u8, word: &mut Word) -> Result<(), Fault> {
        match byte {
            b'\\' => {
                self.at += 1;
                match self.character() {
                    Some("\n") => {}
                    Some(letter) => word.push_quoted(letter),
                    None => return Err(Fault::Unclosed),
                }
            }
            b'\'' => self.single_quoted(word)?,
            b'"' => {
                self.at += 1;
                self.double_quoted(word)?;
            }
            b'`' => self.backticks(word, false)?,
            b'$' => self.dollar(word, false)?,
            b'*' | b'?' => {
                self.at += 1;
                word.pieces.push(Piece::Glob(char::from(byte).to_string()));
            }
            b'[' => self.bracket(word),
            b'~' if is_assigned(word) => self.tilde(word),
            b'{' | b',' | b'}' => {
                self.at += 1;
                word.pieces.push(Piece::Mark(char::from(byte)));
            }
            _ => {
                let from = self.at;
                self.at += 1;
                while self
                    .peek()
                    .is_some_and(|byte| !is_meta(byte) && !b"\\'\"`$*?[{,}~".contains(&byte))
                {
                    self.at += 1;
                }
                word.push_text(self.slice(from, self.at));
            }
        }
        Ok(())
    }

    /// `~` and a user name, which is `~` alone for the home folder.
    fn tilde(&mut self, word: &mut Word) {
        let rest = self.rest();
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"~._+-".contains(byte))
            .count();
        if rest
            .get(length)
            .is_none_or(|byte| is_meta(*byte) || *byte == b'/')
        {
            word.pieces
                .push(Piece::Tilde(self.slice(self.at + 1, self.at + length).to_owned()));
            self.at += length;
        } else if !word.pieces.is_empty() {
            self.at += 1;
            word.push_text("~");
        }
    }

    /// A bracket expression, or the letter `[`.
    fn bracket(&mut self, word: &mut Word) {
        let rest = self.rest();
        let mut length = 1;
        if matches!(rest.get(length), Some(b'!' | b'^')) {
            length += 1;
        }
        if rest.get(length) == Some(&b']') {
            length += 1;
        }
        loop {
            match rest.get(length) {
                Some(b']') => {
                    word.pieces
                        .push(Piece::Glob(self.slice(self.at, self.at + length + 1).to_owned()));
                    self.at += length + 1;
                    return;
                }
                Some(byte) if b"'\"`$\\".contains(byte) => {
                    // Quotes inside: how far it reaches is not worth knowing.
                    self.is_odd = true;
                    self.at += 1;
                    word.pieces.push(Piece::Glob("[".to_owned()));
                    return;
                }
                Some(byte) if !is_meta(*byte) => length += 1,
                Some(_) | None => {
                    self.at += 1;
                    word.push_text("[");
                    return;
                }
            }
        }
    }

    fn stream(&mut self, word: &mut Word) -> Result<(), Fault> {
        let is_input = self.peek() == Some(b'<');
        self.at += 2;
        let script = self.closed_script()?;
        word.pieces.push(Piece::Stream { script, is_input });
        Ok(())
    }
}

/// `name=`: a tilde behind it is a home folder too.
fn is_assigned(word: &Word) -> bool {
    word.bare()
        .and_then(|text| text.strip_suffix('='))
        .is_some_and(|name| {
            name.bytes().next().is_some_and(super::is_name_start) && name.bytes().all(super::is_name)
        })
}

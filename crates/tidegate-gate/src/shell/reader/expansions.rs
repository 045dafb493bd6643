//! What a dollar sign and a backtick begin.

use super::{Fault, MAX_DEPTH, Reader, as_quoted, as_script, is_name, is_name_start};
use crate::shell::syntax::{Command, Piece, Script, Word};

impl Reader<'_> {
    pub(super) fn dollar(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), Fault> {
        self.at += 1;
        match self.peek() {
            Some(b'(') => {
                if self.peek_at(1) == Some(b'(')
                    && let Some(inner) = self.arithmetic(2, "))")?
                {
                    word.pieces.push(Piece::Arithmetic(inner));
                    return Ok(());
                }
                self.at += 1;
                let script = self.closed_script()?;
                word.pieces.push(Piece::Output { script, is_quoted });
                Ok(())
            }
            Some(b'[') => {
                let inner = self.arithmetic(1, "]")?.ok_or(Fault::Unclosed)?;
                self.is_odd = true;
                word.pieces.push(Piece::Arithmetic(inner));
                Ok(())
            }
            Some(b'{') => {
                self.at += 1;
                self.parameter(word, is_quoted)
            }
            Some(b'\'') if !is_quoted => {
                self.at += 1;
                self.ansi_quoted(word)
            }
            Some(b'"') if !is_quoted => {
                self.is_odd = true;
                self.at += 1;
                self.double_quoted(word)
            }
            Some(byte) if is_name_start(byte) => {
                let from = self.at;
                while self.peek().is_some_and(is_name) {
                    self.at += 1;
                }
                let name = self.slice(from, self.at).to_owned();
                word.pieces.push(Piece::Variable { name, is_quoted });
                Ok(())
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 1;
                let name = char::from(byte).to_string();
                word.pieces.push(Piece::Variable { name, is_quoted });
                Ok(())
            }
            _ => {
                if is_quoted {
                    word.push_quoted("$");
                } else {
                    word.push_text("$");
                }
                Ok(())
            }
        }
    }

    /// Behind `${`.
    fn parameter(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), Fault> {
        let from = self.at;
        let length = self.rest().iter().take_while(|byte| is_name(**byte)).count();
        let name = self.slice(from, from + length).to_owned();
        if length > 0 && self.peek_at(length) == Some(b'}') {
            self.at += length + 1;
            word.pieces.push(Piece::Variable { name, is_quoted });
            return Ok(());
        }
        self.at += length;
        let inner = self.deeper(|reader| reader.until_brace(is_quoted))?;
        word.pieces.push(Piece::Parameter {
            name,
            inner,
            is_quoted,
        });
        Ok(())
    }

    fn until_brace(&mut self, is_quoted: bool) -> Result<Word, Fault> {
        let mut word = Word::default();
        loop {
            match self.peek() {
                None => return Err(Fault::Unclosed),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(word);
                }
                Some(b'\'') if !is_quoted => self.single_quoted(&mut word)?,
                Some(b'"') => {
                    self.at += 1;
                    self.double_quoted(&mut word)?;
                }
                Some(b'\\') => {
                    self.at += 1;
                    let letter = self.character().ok_or(Fault::Unclosed)?;
                    word.push_quoted(letter);
                }
                Some(b'`') => self.backticks(&mut word, is_quoted)?,
                Some(b'$') => self.dollar(&mut word, is_quoted)?,
                Some(_) => {
                    if let Some(letter) = self.character() {
                        word.push_text(letter);
                    }
                }
            }
        }
    }

    /// A script up to its closing parenthesis.
    pub(super) fn closed_script(&mut self) -> Result<Script, Fault> {
        let script = self.deeper(Self::script)?;
        self.skip_lines()?;
        if self.take(")") {
            Ok(script)
        } else if self.peek().is_none() {
            Err(Fault::Unclosed)
        } else {
            Err(Fault::Syntax)
        }
    }

    /// `opening` bytes of brackets, then arithmetic up to `closing`. `None`, with nothing taken, if it is a
    /// substitution that starts with a subshell.
    fn arithmetic(&mut self, opening: usize, closing: &str) -> Result<Option<Word>, Fault> {
        let text = self.rest().get(opening..).unwrap_or_default();
        let (open, close) = if closing == "]" {
            (b'[', b']')
        } else {
            (b'(', b')')
        };
        let mut nested = 0_usize;
        let mut length = 0;
        loop {
            match text.get(length) {
                None => return Ok(None),
                Some(byte) if *byte == open => {
                    nested += 1;
                    if nested > MAX_DEPTH {
                        return Err(Fault::Depth);
                    }
                }
                Some(byte) if *byte == close && nested > 0 => nested -= 1,
                Some(byte) if *byte == close => break,
                // Quotes are no arithmetic.
                Some(b'\'' | b'"') if nested == 0 => return Ok(None),
                Some(_) => {}
            }
            length += 1;
        }
        if !text
            .get(length..)
            .unwrap_or_default()
            .starts_with(closing.as_bytes())
        {
            return Ok(None);
        }
        let from = self.at + opening;
        let text = self.slice(from, from + length).to_owned();
        let inner = self.inner(&text, as_quoted)?;
        self.at = from + length + closing.len();
        Ok(Some(inner))
    }

    /// `((…))` as a command.
    pub(super) fn arithmetic_command(&mut self) -> Result<Option<Command>, Fault> {
        Ok(self.arithmetic(2, "))")?.map(Command::Arithmetic))
    }

    pub(super) fn backticks(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), Fault> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.character() {
                None => return Err(Fault::Unclosed),
                Some("`") => break,
                Some("\\") => match self.character() {
                    None => return Err(Fault::Unclosed),
                    Some(letter @ ("`" | "\\" | "$")) => text.push_str(letter),
                    Some("\"") if is_quoted => text.push('"'),
                    Some(letter) => {
                        text.push('\\');
                        text.push_str(letter);
                    }
                },
                Some(letter) => text.push_str(letter),
            }
        }
        let script = self.inner(&text, as_script)?;
        word.pieces.push(Piece::Output { script, is_quoted });
        Ok(())
    }
}

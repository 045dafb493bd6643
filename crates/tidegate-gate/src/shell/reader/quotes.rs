//! Quotes.

use super::{Fault, Reader};
use crate::shell::syntax::Word;

impl Reader<'_> {
    pub(super) fn single_quoted(&mut self, word: &mut Word) -> Result<(), Fault> {
        self.at += 1;
        let from = self.at;
        let length = self
            .rest()
            .iter()
            .position(|byte| *byte == b'\'')
            .ok_or(Fault::Unclosed)?;
        self.at += length + 1;
        word.push_quoted(self.slice(from, from + length));
        Ok(())
    }

    /// Behind an opening double quote, through the closing one.
    pub(super) fn double_quoted(&mut self, word: &mut Word) -> Result<(), Fault> {
        word.push_quoted("");
        loop {
            match self.peek() {
                None => return Err(Fault::Unclosed),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(byte) => self.quoted_piece(byte, word)?,
            }
        }
    }

    /// The whole text as if it stood in double quotes.
    pub(super) fn double_quoted_rest(&mut self) -> Result<Word, Fault> {
        let mut word = Word::default();
        word.push_quoted("");
        while let Some(byte) = self.peek() {
            if byte == b'"' || byte == b'\'' {
                self.at += 1;
                continue;
            }
            self.quoted_piece(byte, &mut word)?;
        }
        Ok(word)
    }

    /// The body of a here-document: quotes are letters in it.
    pub(super) fn here_body(&mut self) -> Result<Word, Fault> {
        let mut word = Word::default();
        word.push_quoted("");
        while let Some(byte) = self.peek() {
            if byte == b'\\' && self.peek_at(1) == Some(b'"') {
                self.at += 1;
                word.push_quoted("\\");
                continue;
            }
            self.quoted_piece(byte, &mut word)?;
        }
        Ok(word)
    }

    pub(super) fn quoted_piece(&mut self, byte: u8, word: &mut Word) -> Result<(), Fault> {
        match byte {
            b'\\' => {
                self.at += 1;
                match self.peek() {
                    None => return Err(Fault::Unclosed),
                    Some(b'\n') => self.at += 1,
                    Some(next @ (b'$' | b'`' | b'"' | b'\\')) => {
                        self.at += 1;
                        word.push_quoted(char::from(next).encode_utf8(&mut [0; 4]));
                    }
                    Some(_) => word.push_quoted("\\"),
                }
                Ok(())
            }
            b'`' => self.backticks(word, true),
            b'$' => self.dollar(word, true),
            _ => {
                let from = self.at;
                self.at += 1;
                while self.peek().is_some_and(|byte| !b"\\`$\"'".contains(&byte)) {
                    self.at += 1;
                }
                word.push_quoted(self.slice(from, self.at));
                Ok(())
            }
        }
    }

    /// `$'…'`, behind the opening quote.
    pub(super) fn ansi_quoted(&mut self, word: &mut Word) -> Result<(), Fault> {
        let mut text = String::new();
        let mut is_cut = false;
        loop {
            let letter = self.character().ok_or(Fault::Unclosed)?;
            let decoded = match letter {
                "'" => break,
                "\\" => self.escape()?,
                letter => letter.chars().next(),
            };
            // The shell ends the text at a NUL; an unknown escape keeps its backslash.
            match decoded {
                Some('\0') => is_cut = true,
                Some(letter) if !is_cut => text.push(letter),
                None if !is_cut => text.push('\\'),
                Some(_) | None => {}
            }
        }
        word.push_quoted(&text);
        Ok(())
    }

    /// What stands behind the backslash; `None` if that is no escape.
    fn escape(&mut self) -> Result<Option<char>, Fault> {
        let byte = self.peek().ok_or(Fault::Unclosed)?;
        let plain = match byte {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'v' => '\u{b}',
            b'e' | b'E' => '\u{1b}',
            b'\\' | b'\'' | b'"' | b'?' => char::from(byte),
            b'0'..=b'7' => return Ok(self.number(8, 3, true)),
            b'x' => {
                self.at += 1;
                return Ok(self.number(16, 2, true));
            }
            b'u' | b'U' => {
                self.at += 1;
                return Ok(self.number(16, if byte == b'u' { 4 } else { 8 }, false));
            }
            b'c' => {
                self.at += 1;
                let Some(letter) = self.character() else {
                    return Err(Fault::Unclosed);
                };
                let code = letter.bytes().next().unwrap_or_default();
                return Ok(Some(char::from(code.to_ascii_uppercase() & 0x1f)));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(plain))
    }

    fn number(&mut self, radix: u32, digits: usize, is_byte: bool) -> Option<char> {
        let mut value = 0_u32;
        let mut taken = 0;
        while taken < digits
            && let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(radix))
        {
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            taken += 1;
        }
        if taken == 0 {
            self.is_odd = true;
            return None;
        }
        if is_byte {
            value &= 0xff;
            // A lone high byte is no text; nothing that is allowed holds one.
            self.is_odd |= value >= 0x80;
        }
        Some(char::from_u32(value).unwrap_or('\u{fffd}'))
    }
}

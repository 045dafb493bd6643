//! The reader: bytes in, a tree out, in one pass. It knows the whole grammar of the shell, so that what it cannot
//! read is really broken; what of it may run without a question is decided elsewhere.

mod commands;
mod compound;
mod expansions;
mod quotes;
mod redirects;
mod words;

use std::{cell::OnceCell, rc::Rc};

use super::syntax::{Script, Word};

/// The deepest nesting of groups, substitutions and payloads that is followed.
pub(super) const MAX_DEPTH: usize = 16;
/// Words of one line, payloads included.
pub(super) const MAX_WORDS: usize = 400;

/// Why a line could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A quote or a substitution is not closed.
    Unclosed,
    /// The grammar does not hold.
    Syntax,
    /// Nested deeper than [`MAX_DEPTH`].
    Depth,
    /// More than [`MAX_WORDS`] words.
    Words,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) script: Script,
    /// How many words there were.
    pub(super) words: usize,
    /// Something outside the plain forms: translated strings, bytes that are no text, an unusual bracket.
    pub(super) is_odd: bool,
}

/// Reads a line. `depth` is how deep it lies in another one.
pub(super) fn read(line: &str, depth: usize) -> Result<Read, Fault> {
    let mut reader = Reader::new(line, depth);
    let script = reader.script()?;
    if reader.at < reader.bytes.len() || !reader.awaited.is_empty() {
        return Err(Fault::Syntax);
    }
    Ok(Read {
        script,
        words: reader.words,
        is_odd: reader.is_odd,
    })
}

/// A here-document whose body has not come yet.
struct Awaited {
    delimiter: String,
    is_literal: bool,
    strips_tabs: bool,
    body: Rc<OnceCell<Word>>,
}

struct Reader<'a> {
    line: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    words: usize,
    is_odd: bool,
    awaited: Vec<Awaited>,
}

impl<'a> Reader<'a> {
    fn new(line: &'a str, depth: usize) -> Self {
        Self {
            line,
            bytes: line.as_bytes(),
            at: 0,
            depth,
            words: 0,
            is_odd: false,
            awaited: Vec::new(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn starts_with(&self, text: &str) -> bool {
        self.rest().starts_with(text.as_bytes())
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.line.get(from..to).unwrap_or_default()
    }

    /// Takes `text` if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let is_next = self.starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Takes one whole character.
    fn character(&mut self) -> Option<&'a str> {
        let letter = self.line.get(self.at..)?.chars().next()?;
        let from = self.at;
        self.at += letter.len_utf8();
        Some(self.slice(from, self.at))
    }

    /// Runs `step` one level deeper.
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::Depth);
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Reads another text as part of this line.
    fn inner<T>(
        &mut self,
        text: &str,
        step: impl FnOnce(&mut Reader<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::Depth);
        }
        let mut reader = Reader::new(text, self.depth + 1);
        reader.words = self.words;
        let result = step(&mut reader)?;
        if reader.at < reader.bytes.len() || !reader.awaited.is_empty() {
            return Err(Fault::Syntax);
        }
        self.words = reader.words;
        self.is_odd |= reader.is_odd;
        Ok(result)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') if self.is_comment_start() => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// `#` opens a comment only where a word could start.
    fn is_comment_start(&self) -> bool {
        self.at == 0
            || self
                .bytes
                .get(self.at - 1)
                .is_some_and(|byte| is_blank(*byte) || b"\n;&|()".contains(byte))
    }

    /// Takes line ends, with the bodies of here-documents behind the first of them.
    fn skip_lines(&mut self) -> Result<(), Fault> {
        self.skip_blanks();
        while self.peek() == Some(b'\n') {
            self.at += 1;
            self.here_documents()?;
            self.skip_blanks();
        }
        Ok(())
    }
}

/// A whole text as a script.
fn as_script(reader: &mut Reader<'_>) -> Result<Script, Fault> {
    reader.script()
}

/// A whole text as if it stood in double quotes.
fn as_quoted(reader: &mut Reader<'_>) -> Result<Word, Fault> {
    reader.double_quoted_rest()
}

/// A whole text as the body of a here-document.
fn as_here_body(reader: &mut Reader<'_>) -> Result<Word, Fault> {
    reader.here_body()
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Ends a word where it stands without quotes.
fn is_meta(byte: u8) -> bool {
    is_blank(byte) || b"\n;&|<>()".contains(&byte)
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests;

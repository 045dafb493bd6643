//! Redirections and here-documents.

use std::{cell::OnceCell, rc::Rc};

use super::{Awaited, Fault, Reader, as_here_body, is_meta, is_name};
use crate::shell::syntax::{Redirect, RedirectKind, Word};

/// Operators, the longest first.
const OPERATORS: [(&str, RedirectKind); 12] = [
    ("&>>", RedirectKind::WriteBoth),
    ("<<<", RedirectKind::HereString),
    ("&>", RedirectKind::WriteBoth),
    ("<<-", RedirectKind::HereDocument),
    ("<<", RedirectKind::HereDocument),
    (">>", RedirectKind::Write),
    (">|", RedirectKind::Write),
    ("<>", RedirectKind::Write),
    (">&", RedirectKind::CopyOut),
    ("<&", RedirectKind::CopyIn),
    (">", RedirectKind::Write),
    ("<", RedirectKind::Read),
];

impl Reader<'_> {
    /// `<(` or `>(` comes next.
    pub(super) fn is_stream_start(&self) -> bool {
        self.starts_with("<(") || self.starts_with(">(")
    }

    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Fault> {
        let (descriptor, length) = self.descriptor();
        let rest = self.rest().get(length..).unwrap_or_default();
        if length == 0 && self.is_stream_start() {
            return Ok(None);
        }
        let Some((operator, kind)) = OPERATORS
            .into_iter()
            .find(|(operator, _)| rest.starts_with(operator.as_bytes()))
        else {
            return Ok(None);
        };
        self.at += length + operator.len();
        self.skip_blanks();
        if self.peek().is_none_or(is_meta) && !self.is_stream_start() {
            return Err(Fault::Syntax);
        }
        let target = if kind == RedirectKind::HereDocument {
            return Ok(Some(Redirect {
                descriptor,
                kind,
                target: Word::default(),
                body: Some(self.here_delimiter(operator == "<<-")?),
            }));
        } else {
            self.word()?
        };
        Ok(Some(Redirect {
            descriptor,
            kind,
            target,
            body: None,
        }))
    }

    /// Digits or `{name}` directly in front of an operator.
    fn descriptor(&self) -> (Option<String>, usize) {
        let rest = self.rest();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_operator = |at: usize| matches!(rest.get(at), Some(b'<' | b'>'));
        if digits > 0 && is_operator(digits) {
            return (Some(self.slice(self.at, self.at + digits).to_owned()), digits);
        }
        if rest.first() == Some(&b'{') {
            let name = rest.iter().skip(1).take_while(|byte| is_name(**byte)).count();
            if name > 0 && rest.get(name + 1) == Some(&b'}') && is_operator(name + 2) {
                let text = self.slice(self.at, self.at + name + 2).to_owned();
                return (Some(text), name + 2);
            }
        }
        (None, 0)
    }

    fn here_delimiter(&mut self, strips_tabs: bool) -> Result<Rc<OnceCell<Word>>, Fault> {
        let from = self.at;
        let word = self.word()?;
        let raw = self.slice(from, self.at);
        let is_literal = raw.contains(['\'', '"', '\\']);
        let delimiter = word.literal().unwrap_or_else(|| raw.to_owned());
        let body = Rc::new(OnceCell::new());
        self.awaited.push(Awaited {
            delimiter,
            is_literal,
            strips_tabs,
            body: Rc::clone(&body),
        });
        Ok(body)
    }

    /// Reads the bodies that are due at the start of a line.
    pub(super) fn here_documents(&mut self) -> Result<(), Fault> {
        for awaited in std::mem::take(&mut self.awaited) {
            let mut body = String::new();
            loop {
                if self.at >= self.bytes.len() {
                    return Err(Fault::Unclosed);
                }
                let from = self.at;
                let length = self.rest().iter().take_while(|byte| **byte != b'\n').count();
                let line = self.slice(from, from + length);
                self.at = (from + length + 1).min(self.bytes.len());
                let line = if awaited.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line == awaited.delimiter {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let word = if awaited.is_literal {
                Word::quoted(body)
            } else {
                self.inner(&body, as_here_body)?
            };
            awaited.body.set(word).map_err(|_| Fault::Syntax)?;
        }
        Ok(())
    }
}

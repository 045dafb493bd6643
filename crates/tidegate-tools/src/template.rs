//! Templates: how the arguments of a call become argv elements or parts of an HTTP request, without a shell.
//!
//! `{name}` stands for the argument of that name, `{{` and `}}` for the braces themselves. A value is put in
//! where the placeholder stands and cannot leave that place: it stays inside its argv element, its path
//! segment, its query value, its header or its JSON text. A part whose optional argument is not given is left
//! out as a whole.

mod command;
mod http;

use std::collections::BTreeSet;

use crate::arguments::{Argument, Values};

pub(crate) use self::{command::CommandTemplate, http::HttpTemplate};

/// Text with placeholders in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Placeholder(String),
}

impl Text {
    /// Reads a template. The error says what to change.
    pub(crate) fn parse(raw: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut chars = raw.chars().peekable();
        while let Some(letter) = chars.next() {
            match letter {
                '{' if chars.next_if_eq(&'{').is_some() => literal.push('{'),
                '}' if chars.next_if_eq(&'}').is_some() => literal.push('}'),
                '}' => {
                    return Err(format!(
                        "`{raw}` has a stray `}}`; write `}}}}` for the brace itself"
                    ));
                }
                '{' => {
                    let mut name = String::new();
                    while let Some(letter) =
                        chars.next_if(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
                    {
                        name.push(letter);
                    }
                    if name.is_empty() || chars.next() != Some('}') {
                        return Err(format!(
                            "`{raw}` has a `{{` that opens no placeholder; write `{{name}}`, or `{{{{` for the \
                             brace itself"
                        ));
                    }
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Placeholder(name));
                }
                other => literal.push(other),
            }
        }
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self { pieces })
    }

    /// The names of the placeholders.
    pub(crate) fn placeholders(&self) -> BTreeSet<&str> {
        self.pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Literal(_) => None,
                Piece::Placeholder(name) => Some(name.as_str()),
            })
            .collect()
    }

    /// The placeholder, where the text is nothing but one.
    pub(crate) fn lone_placeholder(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Placeholder(name)] => Some(name),
            _ => None,
        }
    }

    /// Whether the text begins with a placeholder, so that an argument decides its first character.
    pub(crate) fn begins_with_placeholder(&self) -> Option<&str> {
        match self.pieces.first() {
            Some(Piece::Placeholder(name)) => Some(name),
            Some(Piece::Literal(_)) | None => None,
        }
    }

    /// What stands beside the placeholders.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(text) => Some(text.as_str()),
            Piece::Placeholder(_) => None,
        })
    }

    /// The text, where it has no placeholder.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The text with the arguments in it, each as `encode` writes it; `None` where one is not given.
    pub(crate) fn render(&self, values: &Values<'_>, encode: impl Fn(&Argument) -> String) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Placeholder(name) => text.push_str(&encode(values.get(name)?)),
            }
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests;

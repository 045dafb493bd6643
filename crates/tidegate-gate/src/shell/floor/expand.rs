//! Words as the walk sees them.

use super::{MAX_VALUES, Walk};
use crate::shell::{
    shape::{ONE, Output, RUN, Shape, UNKNOWN},
    syntax::{Piece, Word},
};

impl Walk<'_> {
    /// The words of a command: an unquoted variable can be several.
    pub(super) fn shapes(&mut self, words: &[Word]) -> Vec<Shape> {
        let mut shapes = Vec::with_capacity(words.len());
        let separators: String = self
            .variables
            .iter()
            .find(|(name, _)| name == "IFS")
            .map_or_else(String::new, |(_, values)| values.concat());
        let separates = |letter: char| matches!(letter, ' ' | '\t' | '\n') || separators.contains(letter);
        for word in words {
            let shape = self.shape(word);
            if shape.may_split && shape.text.contains(separates) {
                for part in shape.text.split(separates).filter(|part| !part.is_empty()) {
                    shapes.push(Shape {
                        text: part.to_owned(),
                        ..shape.clone()
                    });
                }
            } else {
                shapes.push(shape);
            }
        }
        shapes
    }

    /// One word, with every command inside it walked.
    pub(super) fn shape(&mut self, word: &Word) -> Shape {
        let mut shape = Shape::default();
        for piece in &word.pieces {
            self.add(piece, &mut shape);
        }
        if word
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Glob(glob) if glob == "["))
        {
            // The bracket is one letter; what stands in it does not matter.
            let before = shape.text.split(UNKNOWN).next().unwrap_or_default();
            let after = shape.text.rsplit(']').next().unwrap_or_default();
            shape.text = format!("{before}{UNKNOWN}{after}");
        }
        if shape.has_wildcard() {
            shape.pattern = pattern(word);
        }
        shape
    }

    fn add(&mut self, piece: &Piece, shape: &mut Shape) {
        match piece {
            Piece::Text(text) | Piece::Quoted(text) => shape.text.push_str(text),
            Piece::Mark(letter) => shape.text.push(*letter),
            Piece::Glob(glob) if glob == "*" => shape.text.push(RUN),
            Piece::Glob(glob) if glob == "[" => shape.text.push(UNKNOWN),
            Piece::Glob(_) => shape.text.push(ONE),
            Piece::Tilde(user) => match user.as_str() {
                "" => shape.text.push_str(self.place.home()),
                "+" => shape.text.push_str(self.place.working_folder()),
                user => {
                    shape.text.push_str("/home/");
                    shape.text.push_str(user);
                }
            },
            Piece::Variable { name, is_quoted } => {
                self.variable(name, shape);
                shape.may_split |= !is_quoted || name == "@";
            }
            Piece::Parameter {
                name,
                inner,
                is_quoted,
            } => {
                let inner = self.shape(inner);
                let is_colon = inner.text.starts_with([':', '-', '=', '+', '?']);
                // `${x:-git}` may be just what stands in it.
                let inside = inner.text.trim_start_matches([':', '-', '=', '+', '?']);
                if is_colon && (!inside.is_empty() || self.variables.iter().any(|(known, _)| known == name)) {
                    self.variable_or(name, inside, shape);
                } else {
                    shape.text.push(UNKNOWN);
                }
                let tainted = self.tainted.iter().find(|(known, _)| known == name);
                shape.origin = shape
                    .origin
                    .take()
                    .or(inner.origin)
                    .or_else(|| tainted.map(|(_, origin)| origin.clone()));
                shape.may_split |= !is_quoted;
            }
            Piece::Output { script, is_quoted } => {
                let output = self.inside(script);
                match &output {
                    Output::Known(text) => shape.text.push_str(text.trim_end_matches('\n')),
                    Output::Download | Output::Decoded | Output::Other => shape.text.push(UNKNOWN),
                }
                shape.origin = Some(match shape.origin.take() {
                    Some(Output::Download) => Output::Download,
                    _ => output,
                });
                shape.may_split |= !is_quoted;
            }
            Piece::Stream { script, is_input } => {
                let output = self.inside(script);
                shape.text.push_str("/dev/fd/63");
                shape.is_stream = *is_input;
                shape.origin = Some(output);
            }
            Piece::Arithmetic(inner) => {
                self.shape(inner);
                shape.text.push(UNKNOWN);
            }
        }
    }

    /// A script in a substitution: what it prints goes on.
    fn inside(&mut self, script: &crate::shell::syntax::Script) -> Output {
        let was_piped = std::mem::replace(&mut self.is_piped, true);
        let folder = self.folder.clone();
        let stdin = self.flowing.clone();
        let output = self.script(script, &stdin);
        self.folder = folder;
        self.is_piped = was_piped;
        output
    }

    fn variable(&self, name: &str, shape: &mut Shape) {
        if let Some((_, origin)) = self.tainted.iter().find(|(known, _)| known == name) {
            shape.origin = Some(origin.clone());
        }
        match self.variables.iter().find(|(known, _)| known == name) {
            Some((_, values)) => match values.as_slice() {
                [value] => shape.text.push_str(value),
                _ => shape.text.push(UNKNOWN),
            },
            None if name == "IFS" => shape.text.push(' '),
            None => shape.text.push(UNKNOWN),
        }
    }

    fn variable_or(&self, name: &str, default: &str, shape: &mut Shape) {
        if self.variables.iter().any(|(known, _)| known == name) {
            self.variable(name, shape);
        } else {
            shape.text.push_str(default);
        }
    }

    /// The names and values of a variable that has several and that the words use.
    pub(super) fn several(&self, words: &[Word]) -> Option<(String, Vec<String>)> {
        let used = |name: &str| {
            words
                .iter()
                .flat_map(|word| &word.pieces)
                .any(|piece| matches!(piece, Piece::Variable { name: used, .. } if used == name))
        };
        self.variables
            .iter()
            .find(|(name, values)| values.len() > 1 && values.len() <= MAX_VALUES && used(name))
            .cloned()
    }
}

/// The word as a pattern, with what is not special escaped. `None` if a part is not known.
pub(in crate::shell) fn pattern(word: &Word) -> Option<String> {
    let mut pattern = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text(text) | Piece::Quoted(text) => escape(text, &mut pattern),
            Piece::Mark(letter) => pattern.push(*letter),
            Piece::Glob(glob) if glob == "[" => return None,
            Piece::Glob(glob) => pattern.push_str(glob),
            Piece::Tilde(_)
            | Piece::Variable { .. }
            | Piece::Parameter { .. }
            | Piece::Output { .. }
            | Piece::Stream { .. }
            | Piece::Arithmetic(_) => return None,
        }
    }
    Some(pattern)
}

/// Adds text to a pattern as itself.
pub(in crate::shell) fn escape(text: &str, pattern: &mut String) {
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\' | '{' | '}' | '!') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
}

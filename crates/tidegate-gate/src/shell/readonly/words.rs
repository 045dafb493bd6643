//! Words of an allowed line: what they are, and how they are filled in when it runs.

use super::{Judge, Judged, Reason, Value};
use crate::shell::{
    escape,
    letters::is_ordinary,
    plan::{Argument, Part},
    shape::{ONE, RUN, Shape, UNKNOWN},
    syntax::{Piece, Script, Word},
};

/// The longest arithmetic that is worked out, in bytes.
const MAX_SUM: usize = 64;

impl Judge<'_> {
    pub(super) fn word(&mut self, word: &Word) -> Judged<(Shape, Argument)> {
        let mut shape = Shape::default();
        let mut argument = Argument::default();
        let mut pattern = String::new();
        for piece in &word.pieces {
            self.piece(piece, &mut shape, &mut argument, &mut pattern)?;
        }
        if shape.has_wildcard() && !shape.is_unknown() {
            shape.pattern = Some(pattern);
        }
        if shape.is_stream && argument.parts.len() != 1 {
            return Err(Reason::new("syntax", "a stream inside a word"));
        }
        Ok((shape, argument))
    }

    fn piece(
        &mut self,
        piece: &Piece,
        shape: &mut Shape,
        argument: &mut Argument,
        pattern: &mut String,
    ) -> Judged<()> {
        match piece {
            Piece::Text(text) => {
                if !text.is_ascii() && !is_ordinary(text) {
                    return Err(Reason::new(
                        "letters",
                        "letters that could be taken for others stand outside quotes",
                    ));
                }
                add(text, shape, argument, pattern);
            }
            Piece::Quoted(text) => add(text, shape, argument, pattern),
            Piece::Mark(letter) => add(letter.encode_utf8(&mut [0; 4]), shape, argument, pattern),
            Piece::Glob(glob) if glob == "[" => {
                return Err(Reason::new("syntax", "a bracket with quotes in it"));
            }
            Piece::Glob(glob) => {
                shape.text.push(if glob == "*" { RUN } else { ONE });
                pattern.push_str(glob);
                argument.parts.push(Part::Wildcard(glob.clone()));
            }
            Piece::Tilde(user) if user.is_empty() => add(self.place.home(), shape, argument, pattern),
            Piece::Tilde(_) => return Err(Reason::new("expansion", "the home of another user")),
            Piece::Variable { name, is_quoted } => {
                self.variable(name, *is_quoted, shape, argument, pattern)?;
            }
            Piece::Parameter { .. } => {
                return Err(Reason::new(
                    "expansion",
                    "an expansion of a variable can run commands",
                ));
            }
            Piece::Output { script, is_quoted } => {
                let node = Box::new(self.inside(script)?);
                shape.text.push(UNKNOWN);
                shape.may_split |= !is_quoted;
                argument.parts.push(Part::Output {
                    node,
                    is_split: !is_quoted,
                });
            }
            Piece::Stream { script, is_input } => {
                if !is_input {
                    return Err(Reason::new("redirection", "a stream that is written to"));
                }
                let node = Box::new(self.inside(script)?);
                shape.text.push_str("/dev/fd/63");
                shape.is_stream = true;
                argument.parts.push(Part::Stream(node));
            }
            Piece::Arithmetic(inner) => {
                let value = inner
                    .literal()
                    .filter(|text| text.len() <= MAX_SUM)
                    .and_then(|text| sum(&text))
                    .ok_or_else(|| {
                        Reason::new("expansion", "arithmetic with names in it can run commands")
                    })?;
                add(&value.to_string(), shape, argument, pattern);
            }
        }
        Ok(())
    }

    fn inside(&mut self, script: &Script) -> Judged<crate::shell::plan::Node> {
        if script.items.is_empty() {
            return Err(Reason::new("empty", "there is no command in the substitution"));
        }
        let folders = self.folders.clone();
        let node = self.script(script);
        self.folders = folders;
        node
    }

    fn variable(
        &mut self,
        name: &str,
        is_quoted: bool,
        shape: &mut Shape,
        argument: &mut Argument,
        pattern: &mut String,
    ) -> Judged<()> {
        let part = |name: &str| Part::Variable {
            name: name.to_owned(),
            is_split: !is_quoted,
        };
        match self.value(name) {
            Some(Value::Known(text)) => {
                if !is_quoted && text.contains([' ', '\t', '\n', '*', '?', '[']) {
                    return Err(Reason::new(
                        "expansion",
                        "a variable without quotes could become several words",
                    ));
                }
                let text = text.clone();
                add(&text, shape, argument, pattern);
            }
            Some(Value::Found(found)) => {
                if !is_quoted {
                    return Err(Reason::new(
                        "expansion",
                        "a variable without quotes could become several words",
                    ));
                }
                shape.text.push_str(&found.text);
                pattern.push_str(found.pattern.as_deref().unwrap_or_default());
                argument.parts.push(part(name));
            }
            Some(Value::Line) => {
                shape.text.push(UNKNOWN);
                shape.may_split |= !is_quoted;
                argument.parts.push(part(name));
            }
            None => {
                let known = match name {
                    "HOME" => self.place.home().to_owned(),
                    "PWD" => match self.folders.as_slice() {
                        [folder] => folder.clone(),
                        _ => return Err(Reason::new("folder", "in which folder it runs cannot be told")),
                    },
                    "?" => {
                        shape.text.push(UNKNOWN);
                        argument.parts.push(Part::Status);
                        return Ok(());
                    }
                    _ => {
                        return Err(Reason::new(
                            "expansion",
                            format!("the value of ${name} is not known"),
                        ));
                    }
                };
                if !is_quoted && known.contains([' ', '\t', '\n', '*', '?', '[']) {
                    return Err(Reason::new(
                        "expansion",
                        "a variable without quotes could become several words",
                    ));
                }
                add(&known, shape, argument, pattern);
            }
        }
        Ok(())
    }
}

fn add(text: &str, shape: &mut Shape, argument: &mut Argument, pattern: &mut String) {
    // Letters that stand for something in a shape make a word unknown.
    shape.text.push_str(text);
    escape(text, pattern);
    if let Some(Part::Text(last)) = argument.parts.last_mut() {
        last.push_str(text);
    } else {
        argument.parts.push(Part::Text(text.to_owned()));
    }
}

/// The value of numbers joined by `+ - * / %` and parentheses, and nothing else.
fn sum(text: &str) -> Option<i64> {
    let tokens: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let mut at = 0;
    let value = terms(&tokens, &mut at, 0)?;
    (at == tokens.len()).then_some(value)
}

fn terms(tokens: &[u8], at: &mut usize, depth: usize) -> Option<i64> {
    let mut value = factors(tokens, at, depth)?;
    while let Some(operator @ (b'+' | b'-')) = tokens.get(*at) {
        *at += 1;
        let next = factors(tokens, at, depth)?;
        value = if *operator == b'+' {
            value.checked_add(next)?
        } else {
            value.checked_sub(next)?
        };
    }
    Some(value)
}

fn factors(tokens: &[u8], at: &mut usize, depth: usize) -> Option<i64> {
    let mut value = number(tokens, at, depth)?;
    while let Some(operator @ (b'*' | b'/' | b'%')) = tokens.get(*at) {
        *at += 1;
        let next = number(tokens, at, depth)?;
        value = match operator {
            b'*' => value.checked_mul(next)?,
            b'/' => value.checked_div(next)?,
            _ => value.checked_rem(next)?,
        };
    }
    Some(value)
}

fn number(tokens: &[u8], at: &mut usize, depth: usize) -> Option<i64> {
    if tokens.get(*at) == Some(&b'(') && depth < 8 {
        *at += 1;
        let value = terms(tokens, at, depth + 1)?;
        (tokens.get(*at) == Some(&b')')).then_some(())?;
        *at += 1;
        return Some(value);
    }
    let from = *at;
    while tokens.get(*at).is_some_and(u8::is_ascii_digit) {
        *at += 1;
    }
    let digits = std::str::from_utf8(tokens.get(from..*at)?).ok()?;
    // A leading zero means another base.
    if digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    digits.parse().ok()
}

//! What a line says: the tree the reader makes of it, before anything is judged.

use std::{cell::OnceCell, rc::Rc};

/// Commands in a row, separated by `;`, `&` or a line end.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub(super) items: Vec<Item>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Joint, Pipeline)>,
    /// Ended by `&`.
    pub(super) is_background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    And,
    Or,
}

#[derive(Debug, Clone)]
pub(super) struct Pipeline {
    pub(super) is_negated: bool,
    /// `time` stood in front.
    pub(super) is_timed: bool,
    pub(super) stages: Vec<Stage>,
}

#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) command: Command,
    pub(super) redirects: Vec<Redirect>,
    /// Followed by `|&`: the error stream goes into the pipe too.
    pub(super) pipes_errors: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Command {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    Subshell(Script),
    Group(Script),
    If {
        branches: Vec<(Script, Script)>,
        otherwise: Option<Script>,
    },
    /// `while` and `until`.
    Loop {
        is_until: bool,
        condition: Script,
        body: Script,
    },
    /// `for` and `select`; without words it runs over the positional parameters.
    For {
        is_select: bool,
        variable: String,
        words: Option<Vec<Word>>,
        body: Script,
    },
    /// `for ((…))`.
    Counted {
        header: Word,
        body: Script,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, Script)>,
    },
    Function {
        name: String,
        body: Box<Stage>,
    },
    /// `[[ … ]]`.
    Condition(Vec<Word>),
    /// `(( … ))`.
    Arithmetic(Word),
    Coprocess(Box<Stage>),
}

#[derive(Debug, Clone)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// Has an index, appends, or assigns an array.
    pub(super) is_plain: bool,
    pub(super) values: Vec<Word>,
}

#[derive(Debug, Clone)]
pub(super) struct Redirect {
    /// The descriptor in front of the operator; `None` means the operator's own.
    pub(super) descriptor: Option<String>,
    pub(super) kind: RedirectKind,
    pub(super) target: Word,
    /// The body of a here-document, which comes lines later.
    pub(super) body: Option<Rc<OnceCell<Word>>>,
}

impl Redirect {
    /// The word behind the operator, or the body of the here-document.
    pub(super) fn operand(&self) -> &Word {
        self.body
            .as_ref()
            .and_then(|body| body.get())
            .unwrap_or(&self.target)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `<>`
    Write,
    /// `&>`, `&>>`
    WriteBoth,
    /// `>&`
    CopyOut,
    /// `<&`
    CopyIn,
    /// `<<<`
    HereString,
    /// `<<`: the target is the body.
    HereDocument,
}

/// One word, in pieces that remember how they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
pub(super) enum Piece {
    /// Letters without quotes.
    Text(String),
    /// Letters in quotes or behind a backslash, with the quotes removed.
    Quoted(String),
    /// `*`, `?` or a whole bracket; a lone `[` is a bracket with something odd in it.
    Glob(String),
    /// `{`, `,` or `}` without quotes, until the braces of the word are expanded.
    Mark(char),
    /// `~` or `~user` at the start of a word.
    Tilde(String),
    /// `$name` or `${name}`.
    Variable { name: String, is_quoted: bool },
    /// Any other `${…}`, with the words inside it.
    Parameter {
        name: String,
        inner: Word,
        is_quoted: bool,
    },
    /// `$(…)` or backticks.
    Output { script: Script, is_quoted: bool },
    /// `<(…)` or `>(…)`.
    Stream { script: Script, is_input: bool },
    /// `$((…))` or `$[…]`.
    Arithmetic(Word),
}

impl Word {
    pub(super) fn quoted(text: String) -> Self {
        Self {
            pieces: vec![Piece::Quoted(text)],
        }
    }

    /// The letters, where the word is nothing but unquoted letters: what a reserved word must be.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The letters, where the word holds nothing that expands.
    pub(super) fn literal(&self) -> Option<String> {
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) | Piece::Quoted(text) => whole.push_str(text),
                Piece::Mark(letter) => whole.push(*letter),
                Piece::Glob(_)
                | Piece::Tilde(_)
                | Piece::Variable { .. }
                | Piece::Parameter { .. }
                | Piece::Output { .. }
                | Piece::Stream { .. }
                | Piece::Arithmetic(_) => return None,
            }
        }
        Some(whole)
    }

    pub(super) fn push_text(&mut self, letter: &str) {
        if let Some(Piece::Text(text)) = self.pieces.last_mut() {
            text.push_str(letter);
        } else {
            self.pieces.push(Piece::Text(letter.to_owned()));
        }
    }

    pub(super) fn push_quoted(&mut self, letters: &str) {
        if let Some(Piece::Quoted(text)) = self.pieces.last_mut() {
            text.push_str(letters);
        } else {
            self.pieces.push(Piece::Quoted(letters.to_owned()));
        }
    }
}

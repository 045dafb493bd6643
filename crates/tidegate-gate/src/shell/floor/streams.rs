//! What flows between commands other than through a pipe: process substitutions that are written to,
//! descriptors that stay open, files that the same line has written.

use super::{MAX_COMMANDS, Walk, is_descriptor};
use crate::shell::{
    Access,
    shape::{Output, base},
    syntax::{Command, Piece, Redirect, RedirectKind, Script, Stage, Word},
};

impl Walk<'_> {
    pub(super) fn stage(&mut self, stage: &Stage, stdin: &Output) -> Output {
        let mut stdin = match stdin {
            Output::Other => self.opened.clone(),
            Output::Known(_) | Output::Download | Output::Decoded => stdin.clone(),
        };
        let outer = std::mem::replace(&mut self.flowing, stdin.clone());
        let mut writes = Vec::new();
        for redirect in &stage.redirects {
            if let Some(input) = self.redirect(redirect, &mut writes) {
                stdin = input;
            }
        }
        self.flowing = stdin.clone();
        let mut output = self.command(&stage.command, &stdin);
        self.flowing = outer;
        if is_bare(stage)
            && stage
                .redirects
                .iter()
                .any(|redirect| redirect.kind == RedirectKind::Read)
        {
            // `$(<file)`.
            output = stdin.clone();
        }
        self.feeds(stage, &stdin, &output);
        if writes.is_empty() {
            return output;
        }
        self.store(&output, writes);
        Output::Other
    }

    /// What the redirection makes of the input, and where output goes.
    fn redirect(&mut self, redirect: &Redirect, writes: &mut Vec<String>) -> Option<Output> {
        let was_piped = std::mem::replace(&mut self.is_piped, true);
        let shape = self.shape(redirect.operand());
        self.is_piped = was_piped;
        match redirect.kind {
            RedirectKind::HereDocument | RedirectKind::HereString => Some(match shape.origin {
                Some(origin @ (Output::Download | Output::Decoded)) => origin,
                Some(Output::Known(_) | Output::Other) | None => Output::Known(shape.text),
            }),
            RedirectKind::Read => {
                self.name("<", &shape);
                self.note_operand(&shape, Access::Read, true);
                Some(if shape.is_stream {
                    shape.origin.unwrap_or_default()
                } else if self.could_be_input(&shape) {
                    self.flowing.clone()
                } else {
                    self.held(&shape.text)
                })
            }
            RedirectKind::CopyIn => None,
            RedirectKind::CopyOut if is_descriptor(&shape.text) => None,
            RedirectKind::Write | RedirectKind::WriteBoth | RedirectKind::CopyOut => {
                self.written(">", &shape);
                if shape.text != "/dev/stdout" && shape.text != "/dev/stderr" {
                    writes.push(shape.text);
                }
                None
            }
        }
    }

    /// Remembers what goes into files, for what runs them later in the line.
    pub(super) fn store(&mut self, output: &Output, files: impl IntoIterator<Item = String>) {
        match output {
            Output::Download => self.downloaded.extend(files),
            Output::Known(_) | Output::Decoded => {
                self.stored
                    .extend(files.into_iter().map(|file| (file, output.clone())));
            }
            Output::Other => {}
        }
    }

    /// What the line itself has put into a file, if it came over the network or was decoded.
    pub(super) fn held(&self, file: &str) -> Output {
        let name = base(file);
        if name.is_empty() {
            return Output::Other;
        }
        if self.downloaded.iter().any(|fetched| base(fetched) == name) {
            return Output::Download;
        }
        let stored = self.stored.iter().filter(|(stored, _)| base(stored) == name);
        stored
            .map(|(_, output)| output.clone())
            .reduce(Output::then)
            .unwrap_or_default()
    }

    /// Walks what reads from the command, with what it gets to read.
    fn feeds(&mut self, stage: &Stage, stdin: &Output, output: &Output) {
        let operands = match &stage.command {
            Command::Simple { words, .. } => sinks(words.iter()),
            Command::Subshell(_)
            | Command::Group(_)
            | Command::If { .. }
            | Command::Loop { .. }
            | Command::For { .. }
            | Command::Counted { .. }
            | Command::Case { .. }
            | Command::Function { .. }
            | Command::Condition(_)
            | Command::Arithmetic(_)
            | Command::Coprocess(_) => Vec::new(),
        };
        // A file that is written can get what flowed in, as with `tee`.
        let both = match (stdin, output) {
            (Output::Other, only) | (only, Output::Other) => only.clone(),
            (stdin, Output::Known(text)) if text.is_empty() => stdin.clone(),
            (_, output) => output.clone(),
        };
        self.feed(&operands, &both);
        let targets = sinks(stage.redirects.iter().map(|redirect| &redirect.target));
        if is_exec(stage) {
            // `exec` on its own changes the descriptors of what follows.
            self.sinks.extend(targets);
            if matches!(stdin, Output::Download | Output::Decoded) {
                self.opened = stdin.clone();
            }
            return;
        }
        self.feed(&targets, output);
        if *output == Output::Download {
            let open = std::mem::take(&mut self.sinks);
            self.feed(&open, output);
        }
    }

    fn feed(&mut self, scripts: &[Script], input: &Output) {
        if *input == Output::Other || *input == Output::Known(String::new()) {
            return;
        }
        for script in scripts {
            if self.commands > MAX_COMMANDS {
                return;
            }
            let folder = self.folder.clone();
            self.script(script, input);
            self.folder = folder;
        }
    }
}

/// The scripts of `>(…)`.
fn sinks<'w>(words: impl Iterator<Item = &'w Word>) -> Vec<Script> {
    words
        .flat_map(|word| &word.pieces)
        .filter_map(|piece| match piece {
            Piece::Stream {
                script,
                is_input: false,
            } => Some(script.clone()),
            Piece::Stream { is_input: true, .. }
            | Piece::Text(_)
            | Piece::Quoted(_)
            | Piece::Mark(_)
            | Piece::Glob(_)
            | Piece::Tilde(_)
            | Piece::Variable { .. }
            | Piece::Parameter { .. }
            | Piece::Output { .. }
            | Piece::Arithmetic(_) => None,
        })
        .collect()
}

fn is_bare(stage: &Stage) -> bool {
    matches!(&stage.command, Command::Simple { assignments, words } if assignments.is_empty() && words.is_empty())
}

fn is_exec(stage: &Stage) -> bool {
    matches!(&stage.command, Command::Simple { words, .. }
        if words.len() == 1 && words.first().and_then(Word::literal).as_deref() == Some("exec"))
}

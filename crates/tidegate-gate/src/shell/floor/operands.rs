//! Files that programs outside the reading list touch, so that zones and floors can judge them.

use super::{Floor, Walk, wipe};
use crate::shell::{
    Access, Operand, OperandKind,
    shape::{Shape, UNKNOWN},
};

/// What the operands of a writing program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All are written.
    All,
    /// All but the first: that is a mode or an owner.
    AfterFirst,
    /// The last is written, the others are read.
    Last,
    /// All are written and removed: sources too.
    Moved,
}

const WRITERS: &[(&str, Form)] = &[
    ("tee", Form::All),
    ("touch", Form::All),
    ("mkdir", Form::All),
    ("rm", Form::All),
    ("rmdir", Form::All),
    ("unlink", Form::All),
    ("truncate", Form::All),
    ("shred", Form::All),
    ("sponge", Form::All),
    ("mkfifo", Form::All),
    ("chmod", Form::AfterFirst),
    ("chown", Form::AfterFirst),
    ("chgrp", Form::AfterFirst),
    ("cp", Form::Last),
    ("ln", Form::Last),
    ("install", Form::Last),
    ("rsync", Form::Last),
    ("mv", Form::Moved),
];

/// Whether the program changes what its operands name.
pub(super) fn changes(name: &str, words: &[Shape]) -> bool {
    WRITERS.iter().any(|(writer, _)| *writer == name)
        || matches!(
            name,
            "dd" | "patch" | "ed" | "ex" | "vi" | "vim" | "nano" | "emacs" | "setfacl" | "chattr"
        )
        || (matches!(name, "sed" | "perl" | "gawk" | "ruby")
            && words.iter().any(|word| is_in_place(&word.text)))
        || (matches!(name, "python" | "python3" | "node")
            && words.iter().any(|word| word.text.contains("open(")))
        || (matches!(name, "curl" | "wget" | "unzip" | "tar" | "sort" | "git")
            && words.iter().any(|word| {
                matches!(
                    word.text.as_str(),
                    "-o" | "-O" | "--output" | "-d" | "-C" | "--output-document" | "rm" | "mv"
                )
            })
            && name != "git")
}

fn is_in_place(text: &str) -> bool {
    text.starts_with("--in") || (text.starts_with('-') && !text.starts_with("--") && text.contains('i'))
}

impl Walk<'_> {
    /// Gathers what a writing program touches.
    pub(super) fn touches(&mut self, name: &str, words: &[Shape]) {
        if name == "cd" || name == "pushd" {
            self.changes_folder(words);
            return;
        }
        if name == "dd" {
            for word in words {
                if let Some(file) = word.text.strip_prefix("of=") {
                    self.written("of=", &Shape::literal(file));
                } else if let Some(file) = word.text.strip_prefix("if=") {
                    self.note_operand(&Shape::literal(file), Access::Read, true);
                }
            }
            return;
        }
        if matches!(name, "sed" | "perl") && words.iter().any(|word| is_in_place(&word.text)) {
            for word in words.iter().filter(|word| !word.text.starts_with('-')).skip(1) {
                self.written(name, word);
            }
            return;
        }
        let Some((_, form)) = WRITERS.iter().find(|(writer, _)| *writer == name) else {
            return;
        };
        let operands: Vec<&Shape> = words
            .iter()
            .filter(|word| !word.text.starts_with('-') && !word.text.is_empty())
            .collect();
        let last = operands.len().saturating_sub(1);
        for (at, operand) in operands.into_iter().enumerate() {
            match form {
                Form::AfterFirst if at == 0 => {}
                Form::All | Form::Moved | Form::AfterFirst => self.written(name, operand),
                Form::Last if at == last => self.written(name, operand),
                Form::Last => self.note_operand(operand, Access::Read, true),
            }
        }
    }

    /// A file that is written: a redirection or an operand.
    pub(super) fn written(&mut self, program: &str, shape: &Shape) {
        if program == ">" || program == "of=" {
            self.name(program, shape);
            if crate::floors::names_startup_file(&shape.text).is_some() {
                self.refuse(
                    Floor::StartupFiles,
                    "startup_file",
                    "the file that is written is run by a program that starts later",
                );
            }
        }
        let path = wipe::normal(
            &shape.text,
            self.folder.as_deref().unwrap_or(self.place.working_folder()),
        );
        if wipe::is_device(&path) {
            self.refuse(
                Floor::Unrecoverable,
                "device",
                format!("{path} is a device; what is on it would be lost"),
            );
        } else if wipe::is_system_file(&path) {
            self.refuse(
                Floor::Unrecoverable,
                "system_file",
                format!("{path} belongs to the system"),
            );
        }
        self.note_operand(shape, Access::Write, true);
    }

    /// Remembers an operand.
    pub(super) fn note_operand(&mut self, shape: &Shape, access: Access, is_certain: bool) {
        if shape.is_stream || wipe::is_harmless_device(&shape.text) {
            return;
        }
        let (text, kind) = if shape.is_unknown() {
            (shape.text.replace(UNKNOWN, "…"), OperandKind::Dynamic)
        } else if let Some(pattern) = &shape.pattern {
            (pattern.clone(), OperandKind::Glob)
        } else if shape.has_wildcard() {
            (shape.text.clone(), OperandKind::Dynamic)
        } else {
            (shape.text.clone(), OperandKind::Literal)
        };
        let (text, kind) = match (&self.folder, text.starts_with('/')) {
            (_, true) => (text, kind),
            (Some(folder), false) => (join(folder, &text), kind),
            (None, false) => (text, OperandKind::Dynamic),
        };
        let operand = Operand {
            text,
            access,
            kind,
            is_certain,
            is_deep: false,
        };
        if !self.operands.contains(&operand) {
            self.operands.push(operand);
        }
    }

    fn changes_folder(&mut self, words: &[Shape]) {
        let target = words.iter().find(|word| !word.text.starts_with('-'));
        self.folder = match target {
            None => Some(self.place.home().to_owned()),
            Some(word) => word.known().and_then(|text| {
                if text.starts_with('/') {
                    Some(text.to_owned())
                } else {
                    self.folder.as_ref().map(|folder| join(folder, text))
                }
            }),
        };
    }
}

/// A name in a folder.
pub(in crate::shell) fn join(folder: &str, name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("{}/{name}", folder.trim_end_matches('/'))
    }
}

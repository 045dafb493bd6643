//! What a line for the shell may do, decided before it runs and without running anything.
//!
//! A line is read once, by a reader that knows the whole grammar. Two walks over the tree answer two questions.
//! `readonly` asks whether every part is on a list of what only looks, and makes the plan by which such a line
//! runs without a shell. `floor` asks whether any part could be something that must never run, and rather sees
//! too much than too little. What is neither needs somebody's leave.
//!
//! The files that a line names are only collected here: the gate judges them by what they really are, with the
//! floors and zones that hold for every other tool.

mod analysis;
mod braces;
mod floor;
mod letters;
mod lists;
mod plan;
mod programs;
mod reader;
mod readonly;
mod shape;
mod syntax;

pub use self::{
    analysis::{Analysis, Operand, OperandKind, Place, Verdict},
    plan::{Argument, Node, Part, Redirection, Run, found_argument},
};
pub use crate::Access;

use self::{
    floor::{Finding, Floor, Walk, expand::escape, operands::join},
    letters::Look,
    lists::Lists,
    programs::Programs,
    reader::{Fault, Read},
    readonly::{Judge, Reason},
};

/// The default of [`Options::max_command_chars`].
pub const DEFAULT_MAX_COMMAND_CHARS: usize = 16_384;
/// The most quote characters in one line: more is not written by people.
pub const MAX_QUOTES: usize = 256;

/// How lines are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The longest line that is judged, in characters; a longer one is refused.
    pub max_command_chars: usize,
    /// Patterns (`*`, `?`) of commands that alone may run; empty means that all may.
    pub allow_commands: Vec<String>,
    /// Patterns of commands that never run. They win over `allow_commands`.
    pub deny_commands: Vec<String>,
    /// A table in the form of the built-in one, merged into it: a row adds a program, replaces the built-in row
    /// of the same name, or takes it off the list (`remove = true`).
    pub programs: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_command_chars: DEFAULT_MAX_COMMAND_CHARS,
            allow_commands: Vec::new(),
            deny_commands: Vec::new(),
            programs: String::new(),
        }
    }
}

/// Why a policy could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The table of programs is broken.
    #[error("the table of read-only programs cannot be used: {0}; mend the row it names")]
    Table(String),
    /// A row of the operator's table says something of a line that does not hold.
    #[error(
        "the example {0:?} in the table of read-only programs does not hold; mend the row or the example"
    )]
    Example(String),
    /// A pattern is empty.
    #[error("{0} holds an empty pattern; remove it, or write the command it means")]
    EmptyPattern(&'static str),
}

/// The rules for lines, made once.
#[derive(Debug, Clone)]
pub struct Policy {
    max_command_chars: usize,
    lists: Lists,
    programs: Programs,
}

impl Policy {
    /// Makes the rules.
    pub fn compile(options: &Options) -> Result<Self, Error> {
        for (name, patterns) in [
            ("allow_commands", &options.allow_commands),
            ("deny_commands", &options.deny_commands),
        ] {
            if patterns.iter().any(|pattern| pattern.trim().is_empty()) {
                return Err(Error::EmptyPattern(name));
            }
        }
        let policy = Self {
            max_command_chars: options.max_command_chars,
            lists: Lists {
                deny: options.deny_commands.clone(),
                allow: (!options.allow_commands.is_empty()).then(|| options.allow_commands.clone()),
                is_disposable: false,
            },
            programs: Programs::compile(&options.programs)?,
        };
        // The lists have no say in what a row means.
        let plain = Self {
            lists: Lists::default(),
            ..policy.clone()
        };
        let place = Place::new("/", "/");
        for example in policy.programs.examples().iter().filter(|example| example.is_own) {
            let is_read_only = *plain.analyse(&example.line, &place).verdict() == Verdict::ReadOnly;
            if is_read_only != example.is_accepted {
                return Err(Error::Example(example.line.clone()));
            }
        }
        Ok(policy)
    }

    /// The same rules on a machine that is thrown away: the floors on credentials, start-up files, destructive git
    /// and text that is piped into a shell are off, every other one holds.
    #[must_use]
    pub fn for_disposable_container(mut self) -> Self {
        self.lists.is_disposable = true;
        self
    }

    /// Judges a line. Any text has an answer, in bounded time.
    pub fn analyse(&self, command: &str, place: &Place) -> Analysis {
        let mut analysis = Analysis::new(command);
        if let Some(finding) = self.unreadable(command) {
            analysis.refuse(finding);
            return analysis;
        }
        let read = reader::read(command, 0);
        let finding = match (self.walk(command, &read, place, &mut analysis), &read) {
            (None, Ok(read)) => match self.looks(command, place, &mut analysis) {
                None => {
                    match self.read_only(command, read, place, &mut analysis) {
                        Ok(()) => analysis.allow(),
                        Err(reason) => analysis.question(reason.code, reason.text),
                    }
                    return analysis;
                }
                Some(finding) => finding,
            },
            (Some(finding), _) => finding,
            (None, Err(_)) => refusal("syntax", "it cannot be read"),
        };
        analysis.refuse(finding);
        analysis
    }

    /// Letters that look like others, and blanks that are none, are read as what they look like as well.
    fn looks(&self, command: &str, place: &Place, analysis: &mut Analysis) -> Option<Finding> {
        match letters::look(command, self.max_command_chars) {
            Look::AsIs => None,
            Look::Other(seen) => {
                let read = reader::read(&seen, 0);
                read.is_ok()
                    .then(|| self.walk(&seen, &read, place, analysis))
                    .flatten()
            }
            Look::TooMuch => Some(refusal("too_long", "as it looks, it is too long to be judged")),
        }
    }

    /// What is refused before it is read.
    fn unreadable(&self, command: &str) -> Option<Finding> {
        let refused = |code, reason| Some(refusal(code, reason));
        if command.trim().is_empty() {
            return refused("empty", "there is no command");
        }
        // Characters are never more than bytes.
        if command.len() > self.max_command_chars && command.chars().count() > self.max_command_chars {
            return refused("too_long", "it is too long to be judged");
        }
        if command.contains('\0') {
            return refused("nul", "it holds a NUL character");
        }
        if command.bytes().filter(|byte| b"'\"`".contains(byte)).count() > MAX_QUOTES {
            return refused("too_many_quotes", "it has too many quotes to be judged");
        }
        None
    }

    /// The second walk: what must never run.
    fn walk(
        &self,
        command: &str,
        read: &Result<Read, Fault>,
        place: &Place,
        analysis: &mut Analysis,
    ) -> Option<Finding> {
        let mut walk = Walk::new(place, &self.lists, command);
        let finding = match read {
            Ok(read) => {
                analysis.is_odd |= read.is_odd;
                walk.run(&read.script)
            }
            Err(fault) => Some(walk.broken(command, *fault)),
        };
        analysis.gather(walk);
        finding
    }

    /// The first walk: what only looks.
    fn read_only(
        &self,
        command: &str,
        read: &Read,
        place: &Place,
        analysis: &mut Analysis,
    ) -> Result<(), Reason> {
        if analysis.is_odd || !letters::is_plain_text(command) {
            return Err(Reason {
                code: "letters",
                text: "it holds control characters, invisible letters or unusual quotes".to_owned(),
            });
        }
        let mut judge = Judge::new(&self.programs, place);
        let node = judge.script(&read.script)?;
        analysis.settle(node, judge);
        Ok(())
    }

    /// Whether a program is on the list at all, with whatever options.
    pub fn knows(&self, program: &str) -> bool {
        self.programs.has(program)
    }
}

/// A line that cannot be judged.
fn refusal(code: &'static str, reason: &str) -> Finding {
    Finding {
        floor: Floor::Unanalysable,
        code,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;

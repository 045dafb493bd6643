//! One command of the walk.

use super::{Floor, MAX_CHAIN, MAX_COMMANDS, MAX_JUDGED_WORDS, MAX_SIMPLE_COMMANDS, Walk};
use crate::shell::{
    reader::Fault,
    shape::{Output, Shape, UNKNOWN, program_name},
    syntax::{Assignment, Word},
};

/// Programs that a command word with wildcards could turn out to be.
const LIKELY: [&str; 12] = [
    "git", "rm", "dd", "sh", "bash", "mkfs", "shred", "chmod", "chown", "sudo", "env", "eval",
];

/// Endings of variables whose value other programs run.
const RUN_LATER: [&str; 8] = [
    "COMMAND",
    "EDITOR",
    "PAGER",
    "ASKPASS",
    "LESSOPEN",
    "EXTERNAL_DIFF",
    "VISUAL",
    "BROWSER",
];

/// Texts that mean harm behind a command word that is not known.
const HARM: [&str; 25] = [
    "push",
    "--hard",
    "filter-branch",
    "filter-repo",
    "update-ref",
    "shutdown",
    "poweroff",
    "reboot",
    "wipefs",
    "shred",
    "mkfs",
    "mke2fs",
    "-rf",
    "-fr",
    "-Rf",
    "-fR",
    "--no-preserve-root",
    "clear",
    "drop",
    "git",
    "rm",
    "dd",
    "-delete",
    "--delete",
    "--force",
];

impl Walk<'_> {
    pub(super) fn simple(&mut self, assignments: &[Assignment], words: &[Word], stdin: &Output) -> Output {
        for assignment in assignments {
            let shapes: Vec<Shape> = assignment.values.iter().map(|value| self.shape(value)).collect();
            for shape in &shapes {
                self.name("=", shape);
                if RUN_LATER.iter().any(|ending| assignment.name.ends_with(ending)) {
                    self.payload(&shape.text, &Output::Other, false);
                }
            }
            if words.is_empty() || !assignment.is_plain {
                self.bind(&assignment.name, shapes);
            }
        }
        if words.is_empty() {
            return Output::Known(String::new());
        }
        self.simple_commands += 1;
        if self.simple_commands > MAX_SIMPLE_COMMANDS {
            self.refuse(
                Floor::Unanalysable,
                "too_many_commands",
                "it holds too many commands to be followed",
            );
        }
        if let Some((name, values)) = self.several(words) {
            let at = self.variables.iter().position(|(known, _)| *known == name);
            let mut output = Output::Known(String::new());
            for value in &values {
                if let Some((_, known)) = at.and_then(|at| self.variables.get_mut(at)) {
                    *known = vec![value.clone()];
                }
                let shapes = self.shapes(words);
                let next = self.invoke(&shapes, stdin);
                output = output.then(next);
            }
            if let Some((_, known)) = at.and_then(|at| self.variables.get_mut(at)) {
                *known = values;
            }
            return output;
        }
        let shapes = self.shapes(words);
        self.invoke(&shapes, stdin)
    }

    /// Judges a command and everything it starts.
    pub(super) fn invoke(&mut self, words: &[Shape], stdin: &Output) -> Output {
        self.commands += 1;
        self.judged_words += words.len();
        if self.chain >= MAX_CHAIN {
            self.unreadable(Fault::Depth);
            return Output::Other;
        }
        if self.commands > MAX_COMMANDS || self.judged_words > MAX_JUDGED_WORDS {
            self.unreadable(Fault::Words);
            return Output::Other;
        }
        self.chain += 1;
        let output = self.judge_command(words, stdin);
        self.chain -= 1;
        output
    }

    fn judge_command(&mut self, words: &[Shape], stdin: &Output) -> Output {
        let Some((first, rest)) = words.split_first() else {
            return Output::Known(String::new());
        };
        self.listed(words);
        let Some(known) = first.known() else {
            return self.unknown_command(first, words, stdin);
        };
        if known.is_empty() && !rest.is_empty() && first.may_split {
            // An empty expansion leaves the next word as the command.
            return self.invoke(rest, stdin);
        }
        if let Some(at) = self.functions.iter().rposition(|(function, _)| function == known) {
            return self.call_function(at, stdin);
        }
        let name = program_name(known);
        if known == "push" && self.programs.iter().any(|program| program == "git") {
            self.refuse(
                Floor::Git,
                "git_push",
                "git and push stand in the line as if one were meant",
            );
        }
        self.ran_download(known);
        if known.contains('/') {
            self.ran_stored(known);
        }
        if !self.programs.contains(&name) {
            self.programs.push(name.clone());
        }
        self.names(&name, rest);
        self.wipes(&name, rest);
        self.git_command(&name, rest);
        self.reaches(&name, rest);
        self.touches(&name, rest);
        if let Some(output) = self.wrapper(&name, rest, stdin) {
            return output;
        }
        if let Some(output) = self.runs_text(&name, rest, stdin) {
            return output;
        }
        self.output_of(&name, rest, stdin)
    }

    /// A function, with what flows into it here.
    fn call_function(&mut self, at: usize, stdin: &Output) -> Output {
        let Some(body) = self.functions.get_mut(at).and_then(|(_, body)| body.take()) else {
            return Output::Other;
        };
        let output = self.stage(&body, stdin);
        if let Some((_, kept)) = self.functions.get_mut(at) {
            *kept = Some(body);
        }
        output
    }

    /// A command word that is not known could be anything: what stands in the line decides.
    fn unknown_command(&mut self, first: &Shape, words: &[Shape], stdin: &Output) -> Output {
        if first.origin == Some(Output::Download) {
            self.refuse(
                Floor::Unrecoverable,
                "download_runs",
                "text from the network would run as a command",
            );
        }
        if first.has_wildcard() && !first.is_unknown() {
            for name in LIKELY {
                if first.could_be(name)
                    || crate::shell::shape::could_match(crate::shell::shape::base(&first.text), name)
                {
                    let mut assumed = words.to_vec();
                    if let Some(word) = assumed.first_mut() {
                        *word = Shape::literal(name);
                    }
                    self.invoke(&assumed, stdin);
                }
            }
            return Output::Other;
        }
        self.names("", words);
        let line: Vec<char> = self
            .line
            .chars()
            .filter(|letter| !matches!(letter, '\'' | '"' | '\\'))
            .collect();
        let line: String = line.into_iter().collect();
        let harms = line
            .split(|letter: char| letter.is_whitespace() || ";|&()<>`{}$=,".contains(letter))
            .any(|word| HARM.contains(&word) || word.starts_with("of=/dev/") || super::wipe::is_device(word));
        if harms {
            self.refuse(
                Floor::Unanalysable,
                "dynamic_command",
                "which program runs is known only while it runs, and the line names something that may never run",
            );
        }
        // What follows may be a command of its own, as behind an empty variable.
        if first.text == UNKNOWN.to_string()
            && let Some((_, rest)) = words.split_first()
            && rest.first().is_some_and(|next| next.known().is_some())
        {
            return self.invoke(rest, stdin);
        }
        Output::Other
    }
}

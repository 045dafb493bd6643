//! One command: its program, the wrappers in front of it, its words.

use super::{Judge, Judged, MAX_COMMANDS, Reason, Value};
use crate::shell::{
    Access, OperandKind,
    letters::is_plain_text,
    plan::{Argument, Node, Redirection, Run},
    programs::Touched,
    reader,
    shape::Shape,
    syntax::{Assignment, Word},
};

/// Folders in which a program may be named by its path: those of the system.
const SYSTEM_FOLDERS: [&str; 2] = ["/bin/", "/usr/bin/"];
/// The longest time a line may give itself, in milliseconds.
const MAX_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;
/// Options of git in front of its command that change nothing.
const GIT_GLOBAL: [&str; 6] = [
    "--no-pager",
    "-P",
    "--literal-pathspecs",
    "--no-optional-locks",
    "--no-replace-objects",
    "--icase-pathspecs",
];

impl Judge<'_> {
    pub(super) fn simple(
        &mut self,
        assignments: &[Assignment],
        words: &[Word],
        redirections: Vec<Redirection>,
    ) -> Judged<Node> {
        if let ([assignment], [], true) = (assignments, words, redirections.is_empty() && self.is_at_top) {
            return self.assign(assignment);
        }
        if !assignments.is_empty() {
            return Err(Reason::new("assignment", "a variable would be set"));
        }
        self.commands += 1;
        if self.commands > MAX_COMMANDS {
            return Err(Reason::new("too_many_commands", "it would run too many commands"));
        }
        let mut shapes = Vec::with_capacity(words.len());
        let mut arguments = Vec::with_capacity(words.len());
        for word in words {
            let (shape, argument) = self.word(word)?;
            shapes.push(shape);
            arguments.push(argument);
        }
        let node = self.named(&shapes, &arguments, words)?;
        Ok(match (node, redirections) {
            (node, redirections) if redirections.is_empty() => node,
            (Node::Run(run), redirections) if run.redirections.is_empty() => {
                Node::Run(Run { redirections, ..run })
            }
            (node, redirections) => Node::Redirected {
                redirections,
                body: Box::new(node),
            },
        })
    }

    /// A command by the name of its program.
    fn named(&mut self, shapes: &[Shape], arguments: &[Argument], words: &[Word]) -> Judged<Node> {
        let (Some((first, shapes)), Some((_, arguments))) = (shapes.split_first(), arguments.split_first())
        else {
            return Err(Reason::new("empty", "there is no command"));
        };
        let Some(name) = first
            .known()
            .filter(|_| words.first().is_some_and(|word| word.literal().is_some()))
        else {
            return Err(Reason::new(
                "dynamic_command",
                "which program runs is known only while it runs",
            ));
        };
        let program = SYSTEM_FOLDERS
            .iter()
            .find_map(|folder| name.strip_prefix(folder))
            .unwrap_or(name);
        if program.contains('/') || program.is_empty() {
            return Err(Reason::new(
                "program_path",
                "programs run without a question only by their names, from the folders of the system",
            ));
        }
        let words = words.get(1..).unwrap_or_default();
        match program {
            "git" => self.git(shapes, arguments),
            "env" | "command" | "nice" | "ionice" | "stdbuf" | "time" | "timeout" => {
                self.wrapped(program, shapes, arguments, words)
            }
            "sh" | "bash" | "dash" | "zsh"
                if shapes
                    .first()
                    .is_some_and(|word| word.text.starts_with('-') && !word.text.starts_with("--")) =>
            {
                self.shell(shapes)
            }
            "cd" => self.change_folder(shapes, arguments),
            ":" if shapes.is_empty() => self.listed("true", &[], &[]),
            "type" => {
                self.listed("type", shapes, arguments)?;
                Ok(run(
                    "which",
                    arguments
                        .iter()
                        .filter(|word| !word.literal().is_some_and(|text| text.starts_with('-')))
                        .cloned()
                        .collect(),
                ))
            }
            _ => self.listed(program, shapes, arguments),
        }
    }

    pub(super) fn listed(&mut self, program: &str, shapes: &[Shape], arguments: &[Argument]) -> Judged<Node> {
        let accepted = self
            .programs
            .judge(program, shapes)
            .map_err(|unlisted| unlisted.reason(program))?;
        self.touch(accepted.touched)?;
        if accepted.is_deep {
            self.reads_deep();
        }
        Ok(run(program, arguments.to_vec()))
    }

    fn git(&mut self, shapes: &[Shape], arguments: &[Argument]) -> Judged<Node> {
        let mut at = 0;
        let before = self.folders.clone();
        while let Some(word) = shapes.get(at) {
            let text = word.known().unwrap_or_default();
            if GIT_GLOBAL.contains(&text) {
                at += 1;
            } else if text == "-C" {
                let folder = shapes
                    .get(at + 1)
                    .ok_or_else(|| Reason::new("option", "-C needs a folder"))?;
                self.enter(folder)?;
                at += 2;
            } else {
                break;
            }
        }
        let rest = shapes.get(at..).unwrap_or_default();
        let sub = rest.first().and_then(Shape::known).unwrap_or_default();
        let second = rest.get(1).and_then(Shape::known).unwrap_or_default();
        let (name, taken) = match (format!("git {sub} {second}"), format!("git {sub}")) {
            (two, _) if self.programs.has(&two) => (two, 2),
            (_, one) => (one, 1),
        };
        let accepted = self
            .programs
            .judge(&name, rest.get(taken..).unwrap_or_default())
            .map_err(|unlisted| unlisted.reason(&name))?;
        self.touch(accepted.touched)?;
        if accepted.is_deep {
            self.reads_deep();
        }
        self.folders = before;
        Ok(run("git", arguments.to_vec()))
    }

    /// A program in front of the command proper.
    fn wrapped(
        &mut self,
        program: &str,
        shapes: &[Shape],
        arguments: &[Argument],
        words: &[Word],
    ) -> Judged<Node> {
        let refused = || {
            Reason::new(
                "wrapper",
                format!("{program} with these options needs a question"),
            )
        };
        let text = |at: usize| shapes.get(at).and_then(Shape::known).unwrap_or_default();
        let mut limit_ms = None;
        let mut at = 0;
        match program {
            "command" if matches!(text(0), "-v" | "-V") => {
                let names = shapes.get(1..).unwrap_or_default();
                self.listed("which", names, &[])?;
                return Ok(run("which", arguments.get(1..).unwrap_or_default().to_vec()));
            }
            "nice" | "ionice" => loop {
                match text(at) {
                    "-n" | "-c" => at += 2,
                    option if is_adjustment(option) => at += 1,
                    _ => break,
                }
            },
            "stdbuf" => {
                while text(at).starts_with(['-'])
                    && matches!(text(at).as_bytes().get(1), Some(b'i' | b'o' | b'e'))
                {
                    at += if text(at).len() == 2 { 2 } else { 1 };
                }
            }
            "timeout" => {
                loop {
                    match text(at) {
                        "-k" | "-s" => at += 2,
                        "--preserve-status" | "--foreground" | "-v" => at += 1,
                        _ => break,
                    }
                }
                limit_ms = Some(duration_ms(text(at)).ok_or_else(refused)?);
                at += 1;
            }
            _ => {}
        }
        let (shapes, arguments, words) = (
            shapes.get(at..).unwrap_or_default(),
            arguments.get(at..).unwrap_or_default(),
            words.get(at..).unwrap_or_default(),
        );
        if shapes
            .first()
            .is_none_or(|word| word.text.starts_with('-') || word.text.contains('='))
        {
            return Err(refused());
        }
        // What the shell itself does cannot stand behind a program.
        if program != "command"
            && program != "time"
            && shapes
                .first()
                .is_some_and(|word| matches!(word.text.as_str(), "cd" | "type" | ":" | "command"))
        {
            return Err(refused());
        }
        let node = self.named(shapes, arguments, words)?;
        Ok(match limit_ms {
            Some(limit_ms) => Node::Timeout {
                limit_ms,
                body: Box::new(node),
            },
            None => node,
        })
    }

    /// `sh -c TEXT`: the text is judged like the line, and runs like it.
    fn shell(&mut self, shapes: &[Shape]) -> Judged<Node> {
        let [flags, payload] = shapes else {
            return Err(Reason::new(
                "wrapper",
                "a shell with these words needs a question",
            ));
        };
        let is_plain = matches!(
            flags.text.as_str(),
            "-c" | "-lc" | "-cl" | "-ec" | "-ce" | "-euc" | "-uc"
        );
        let Some(text) = payload.known().filter(|_| is_plain) else {
            return Err(Reason::new(
                "wrapper",
                "a shell with these words needs a question",
            ));
        };
        let read = reader::read(text, self.depth + 1)
            .map_err(|_| Reason::new("syntax", "the text for the inner shell cannot be read"))?;
        if read.is_odd || !is_plain_text(text) {
            return Err(Reason::new(
                "syntax",
                "the text for the inner shell has unusual forms",
            ));
        }
        if read.script.items.is_empty() {
            return Err(Reason::new("empty", "there is no command"));
        }
        self.depth += 1;
        let (folders, variables) = (self.folders.clone(), std::mem::take(&mut self.variables));
        let node = self.script(&read.script);
        self.folders = folders;
        self.variables = variables;
        self.depth -= 1;
        Ok(Node::Subshell(Box::new(node?)))
    }

    fn change_folder(&mut self, shapes: &[Shape], arguments: &[Argument]) -> Judged<Node> {
        let (shape, argument) = match (shapes, arguments) {
            ([], []) => (
                Shape::literal(self.place.home()),
                Argument::text(self.place.home()),
            ),
            ([shape], [argument]) if !shape.text.starts_with('-') => (shape.clone(), argument.clone()),
            _ => return Err(Reason::new("folder", "cd with these words needs a question")),
        };
        self.enter(&shape)?;
        Ok(Node::ChangeFolder(argument))
    }

    /// Goes into a folder, which is judged like a file that is listed.
    fn enter(&mut self, folder: &Shape) -> Judged<()> {
        let text = folder
            .known()
            .filter(|text| !text.is_empty())
            .ok_or_else(|| Reason::new("dynamic", "in which folder it runs is known only while it runs"))?;
        self.touch(vec![Touched {
            text: text.to_owned(),
            access: Access::List,
            kind: OperandKind::Literal,
            is_certain: true,
        }])?;
        for known in &mut self.folders {
            *known = crate::shell::join(known, text);
        }
        self.folders.dedup();
        Ok(())
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.variables
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

fn run(program: &str, arguments: Vec<Argument>) -> Node {
    Node::Run(Run {
        program: program.to_owned(),
        arguments,
        redirections: Vec::new(),
    })
}

/// `-5`, `-n5`, `-c2`: how nice to be.
fn is_adjustment(option: &str) -> bool {
    let digits = option
        .strip_prefix("-n")
        .or_else(|| option.strip_prefix("-c"))
        .or_else(|| option.strip_prefix('-'))
        .unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `5`, `5s`, `1.5m`.
fn duration_ms(text: &str) -> Option<u64> {
    let (number, unit_ms) = match text.as_bytes().last()? {
        b's' => (text.get(..text.len() - 1)?, 1_000),
        b'm' => (text.get(..text.len() - 1)?, 60_000),
        b'h' => (text.get(..text.len() - 1)?, 3_600_000),
        _ => (text, 1_000),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits =
        |text: &str| !text.is_empty() && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let tenths: u64 = part.get(..1)?.parse().ok()?;
    let limit_ms = whole.parse::<u64>().ok()?.checked_mul(unit_ms)? + tenths * unit_ms / 10;
    (1..=MAX_TIMEOUT_MS).contains(&limit_ms).then_some(limit_ms)
}

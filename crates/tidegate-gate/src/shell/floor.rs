//! The second walk over a line: it looks for what must never run, and would rather see too many commands than
//! too few. Every place where text could become a command is followed: substitutions, payloads of shells and
//! wrappers, bodies of here-documents, what flows through a pipe.

pub(super) mod expand;
mod git;
mod interpreters;
mod invoke;
mod names;
pub(super) mod operands;
mod outputs;
mod payloads;
mod remote;
mod starters;
mod streams;
pub(super) mod wipe;
mod wrappers;

use super::{
    Lists, Operand, Place,
    reader::{self, Fault, MAX_DEPTH},
    shape::{Output, Shape},
    syntax::{Command, Item, Pipeline, Script, Stage, Word},
};

/// How much text is read in all, payloads of payloads included, in bytes.
const MAX_READ_BYTES: usize = 128 * 1024;
/// How many commands are judged in one line, guesses included.
const MAX_COMMANDS: usize = 500;
/// How many words of commands are judged in one line, guesses included.
const MAX_JUDGED_WORDS: usize = 2_500;
/// How many programs may start each other in a row.
const MAX_CHAIN: usize = 16;
/// How many commands one line may hold. A longer one is refused as a whole: no bound ever makes a rule weaker.
const MAX_SIMPLE_COMMANDS: usize = 50;
/// How many values one variable is followed with.
const MAX_VALUES: usize = 8;

/// The floors that a line can touch, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Floor {
    Unrecoverable,
    DenyCommands,
    AllowCommands,
    Git,
    Credentials,
    StartupFiles,
    Unanalysable,
}

impl Floor {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unrecoverable => "unrecoverable",
            Self::DenyCommands => "deny_commands",
            Self::AllowCommands => "allow_commands",
            Self::Git => "git",
            Self::Credentials => "credentials",
            Self::StartupFiles => "startup_files",
            Self::Unanalysable => "unanalysable",
        }
    }
}

/// Whether a finding counts for nothing on a machine that is thrown away.
fn is_lifted_in_a_container(floor: Floor, code: &str) -> bool {
    match floor {
        Floor::Git | Floor::Credentials | Floor::StartupFiles => true,
        Floor::Unrecoverable => code == "download_runs",
        Floor::Unanalysable => code == "decoded_runs",
        Floor::DenyCommands | Floor::AllowCommands => false,
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) floor: Floor,
    pub(super) code: &'static str,
    pub(super) reason: String,
}

/// What the walk gathers.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    place: &'a Place,
    lists: &'a Lists,
    line: &'a str,
    /// The strongest finding so far.
    finding: Option<Finding>,
    read_bytes: usize,
    commands: usize,
    simple_commands: usize,
    words: usize,
    judged_words: usize,
    chain: usize,
    depth: usize,
    /// Literal values of variables, however they were given.
    variables: Vec<(String, Vec<String>)>,
    /// Variables that hold what came over the network, or was decoded.
    tainted: Vec<(String, Output)>,
    /// Functions with their bodies; a body that is being walked is taken out.
    functions: Vec<(String, Option<Stage>)>,
    /// Names under which something from the network was stored.
    downloaded: Vec<String>,
    /// Files that the line itself writes, with what it writes.
    stored: Vec<(String, Output)>,
    /// What flows into the command that is being walked.
    flowing: Output,
    /// What `exec` has opened for reading.
    opened: Output,
    /// Scripts that read from what `exec` has opened for writing.
    sinks: Vec<Script>,
    /// Whether what a command prints goes on to another one.
    is_piped: bool,
    /// The folder in which relative names lie; `None` after a change to somewhere unknown.
    folder: Option<String>,
    /// Bare names of programs.
    pub(super) programs: Vec<String>,
    /// Files that the line touches, as far as that can be told.
    pub(super) operands: Vec<Operand>,
    /// Addresses of web clients and remotes.
    pub(super) urls: Vec<String>,
    /// Machines named otherwise.
    pub(super) hosts: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(place: &'a Place, lists: &'a Lists, line: &'a str) -> Self {
        Self {
            place,
            lists,
            line,
            finding: None,
            read_bytes: 0,
            commands: 0,
            simple_commands: 0,
            words: 0,
            judged_words: 0,
            chain: 0,
            depth: 0,
            variables: vec![
                ("HOME".to_owned(), vec![place.home().to_owned()]),
                ("PWD".to_owned(), vec![place.working_folder().to_owned()]),
            ],
            tainted: Vec::new(),
            functions: Vec::new(),
            downloaded: Vec::new(),
            stored: Vec::new(),
            flowing: Output::Other,
            opened: Output::Other,
            sinks: Vec::new(),
            is_piped: false,
            folder: Some(place.working_folder().to_owned()),
            programs: Vec::new(),
            operands: Vec::new(),
            urls: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// Walks a line that was read, and gives the strongest finding.
    pub(super) fn run(&mut self, script: &Script) -> Option<Finding> {
        self.script(script, &Output::Other);
        self.fork_bomb(script);
        self.list_end();
        self.finding.clone()
    }

    /// A line that cannot be read is refused; what stands in it can still be worse.
    pub(super) fn broken(&mut self, line: &str, fault: Fault) -> Finding {
        self.unreadable(fault);
        let plain: String = line
            .chars()
            .filter(|letter| !matches!(letter, '\'' | '"' | '`' | '\\'))
            .collect();
        for part in plain.split(['\n', ';', '|', '&']) {
            if let Ok(read) = reader::read(part, 0) {
                self.script(&read.script, &Output::Other);
            }
            if self.commands > MAX_COMMANDS {
                break;
            }
        }
        self.finding.clone().unwrap_or(Finding {
            floor: Floor::Unanalysable,
            code: "syntax",
            reason: "it cannot be read".to_owned(),
        })
    }

    pub(super) fn lists(&self) -> &'a Lists {
        self.lists
    }

    pub(super) fn refuse_listed(&mut self, floor: Floor, code: &'static str, reason: String) {
        self.refuse(floor, code, reason);
    }

    /// With a list of what may run, a line that runs nothing on it does not run.
    fn list_end(&mut self) {
        if self.lists.allow.is_some() && self.commands == 0 {
            self.refuse(
                Floor::AllowCommands,
                "unlisted_command",
                "the line holds no command of the operator's list allow_commands",
            );
        }
    }

    fn refuse(&mut self, floor: Floor, code: &'static str, reason: impl Into<String>) {
        if self.lists.is_disposable && is_lifted_in_a_container(floor, code) {
            return;
        }
        if self.finding.as_ref().is_none_or(|finding| floor < finding.floor) {
            self.finding = Some(Finding {
                floor,
                code,
                reason: reason.into(),
            });
        }
    }

    fn unreadable(&mut self, fault: Fault) {
        let (code, reason) = match fault {
            Fault::Unclosed => ("unclosed", "a quote or a substitution is not closed"),
            Fault::Syntax => ("syntax", "the shell's grammar does not hold"),
            Fault::Depth => ("too_deep", "it is nested too deep to be followed"),
            Fault::Words => ("too_many_words", "it has too many words to be followed"),
        };
        self.refuse(Floor::Unanalysable, code, reason);
    }

    /// Reads text that would run as a script, and walks it.
    fn payload(&mut self, text: &str, stdin: &Output, is_certain: bool) -> Output {
        self.read_bytes += text.len();
        if self.read_bytes > MAX_READ_BYTES || self.depth >= MAX_DEPTH {
            self.unreadable(Fault::Depth);
            return Output::Other;
        }
        match reader::read(text, self.depth + 1) {
            Ok(read) => {
                self.words += read.words;
                if self.words > reader::MAX_WORDS {
                    self.unreadable(Fault::Words);
                    return Output::Other;
                }
                self.depth += 1;
                let output = self.script(&read.script, stdin);
                self.fork_bomb(&read.script);
                self.depth -= 1;
                output
            }
            Err(fault) => {
                if is_certain {
                    self.unreadable(fault);
                }
                Output::Other
            }
        }
    }

    fn script(&mut self, script: &Script, stdin: &Output) -> Output {
        let mut output: Option<Output> = None;
        for item in &script.items {
            let next = self.item(item, stdin);
            output = Some(match output {
                Some(output) => output.then(next),
                None => next,
            });
        }
        output.unwrap_or(Output::Known(String::new()))
    }

    fn item(&mut self, item: &Item, stdin: &Output) -> Output {
        let mut output = self.pipeline(&item.first, stdin);
        for (_, pipeline) in &item.rest {
            let next = self.pipeline(pipeline, stdin);
            output = output.then(next);
        }
        output
    }

    fn pipeline(&mut self, pipeline: &Pipeline, stdin: &Output) -> Output {
        let mut flowing = stdin.clone();
        let was_piped = self.is_piped;
        for (at, stage) in pipeline.stages.iter().enumerate() {
            self.is_piped = was_piped || at + 1 < pipeline.stages.len();
            flowing = self.stage(stage, &flowing);
        }
        self.is_piped = was_piped;
        flowing
    }

    fn command(&mut self, command: &Command, stdin: &Output) -> Output {
        match command {
            Command::Simple { assignments, words } => self.simple(assignments, words, stdin),
            Command::Subshell(script) => {
                let folder = self.folder.clone();
                let output = self.script(script, stdin);
                self.folder = folder;
                output
            }
            Command::Group(script) => self.script(script, stdin),
            Command::If { branches, otherwise } => {
                let mut output = Output::Known(String::new());
                for (condition, body) in branches {
                    self.script(condition, stdin);
                    let next = self.script(body, stdin);
                    output = output.then(next);
                }
                if let Some(otherwise) = otherwise {
                    let next = self.script(otherwise, stdin);
                    output = output.then(next);
                }
                output
            }
            Command::Loop { condition, body, .. } => {
                self.script(condition, stdin);
                self.repeated(body, stdin)
            }
            Command::For {
                variable,
                words,
                body,
                ..
            } => {
                let shapes = self.shapes(words.as_deref().unwrap_or_default());
                for shape in &shapes {
                    self.name("for", shape);
                }
                self.bind(variable, shapes);
                self.repeated(body, stdin)
            }
            Command::Counted { header, body } => {
                self.shape(header);
                self.repeated(body, stdin)
            }
            Command::Case { subject, arms } => {
                self.shape(subject);
                for (patterns, body) in arms {
                    self.shapes(patterns);
                    self.script(body, stdin);
                }
                Output::Other
            }
            Command::Function { name, body } => {
                self.functions.push((name.clone(), None));
                self.stage(body, &Output::Other);
                if let Some((_, kept)) = self.functions.iter_mut().rfind(|(known, _)| known == name) {
                    *kept = Some(Stage::clone(body));
                }
                Output::Known(String::new())
            }
            Command::Condition(words) => {
                for shape in self.shapes(words) {
                    self.name("[[", &shape);
                }
                Output::Known(String::new())
            }
            Command::Arithmetic(word) => {
                self.shape(word);
                Output::Known(String::new())
            }
            Command::Coprocess(stage) => {
                let output = self.stage(stage, stdin);
                if output == Output::Download {
                    self.opened = output.clone();
                }
                output
            }
        }
    }

    /// A body that runs again and again prints nothing that is known.
    fn repeated(&mut self, body: &Script, stdin: &Output) -> Output {
        match self.script(body, stdin) {
            output @ (Output::Download | Output::Decoded) => output,
            Output::Known(_) | Output::Other => Output::Other,
        }
    }

    /// Remembers the values of a variable as far as they are known.
    fn bind(&mut self, name: &str, shapes: Vec<Shape>) {
        for shape in &shapes {
            if let Some(origin @ (Output::Download | Output::Decoded)) = &shape.origin {
                self.tainted.push((name.to_owned(), origin.clone()));
            }
        }
        let values = shapes.into_iter().map(|shape| shape.text).take(MAX_VALUES);
        match self.variables.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => {
                known.extend(values);
                known.truncate(MAX_VALUES);
            }
            None => self.variables.push((name.to_owned(), values.collect())),
        }
    }

    /// `f() { f | f & }`: a function that starts itself more than once.
    fn fork_bomb(&mut self, script: &Script) {
        for stage in script.items.iter().flat_map(stages) {
            let Command::Function { name, body } = &stage.command else {
                continue;
            };
            let (Command::Group(inner) | Command::Subshell(inner)) = &body.command else {
                continue;
            };
            let multiplies = inner.items.iter().any(|item| {
                let starts = stages(item).filter(|stage| calls(stage, name)).count();
                starts > 1 || (starts == 1 && item.is_background)
            });
            if multiplies {
                self.refuse(
                    Floor::Unrecoverable,
                    "fork_bomb",
                    "the function starts itself without end",
                );
            }
        }
    }
}

fn stages(item: &Item) -> impl Iterator<Item = &Stage> {
    std::iter::once(&item.first)
        .chain(item.rest.iter().map(|(_, pipeline)| pipeline))
        .flat_map(|pipeline| &pipeline.stages)
}

fn calls(stage: &Stage, name: &str) -> bool {
    match &stage.command {
        Command::Simple { words, .. } => words.first().and_then(Word::literal).as_deref() == Some(name),
        Command::Subshell(script) | Command::Group(script) => {
            script.items.iter().flat_map(stages).any(|stage| {
                matches!(&stage.command, Command::Simple { words, .. }
                if words.first().and_then(Word::literal).as_deref() == Some(name))
            })
        }
        Command::If { .. }
        | Command::Loop { .. }
        | Command::For { .. }
        | Command::Counted { .. }
        | Command::Case { .. }
        | Command::Function { .. }
        | Command::Condition(_)
        | Command::Arithmetic(_)
        | Command::Coprocess(_) => false,
    }
}

/// `1`, `-` or `2-` behind `>&`.
pub(super) fn is_descriptor(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    number.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty()
}

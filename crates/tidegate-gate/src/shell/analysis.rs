//! What is known of a line.

use super::{
    Access,
    floor::{Finding, Walk},
    plan::Node,
    readonly::Judge,
};

/// Where a line would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    working_folder: String,
    home: String,
}

impl Place {
    /// Both folders as absolute paths.
    pub fn new(working_folder: impl Into<String>, home: impl Into<String>) -> Self {
        let trimmed = |folder: String| {
            let short = folder.trim_end_matches('/');
            if short.is_empty() {
                "/".to_owned()
            } else {
                short.to_owned()
            }
        };
        Self {
            working_folder: trimmed(working_folder.into()),
            home: trimmed(home.into()),
        }
    }

    /// The folder in which it starts.
    pub fn working_folder(&self) -> &str {
        &self.working_folder
    }

    /// What `~` means.
    pub fn home(&self) -> &str {
        &self.home
    }
}

/// What a line is, before the files it names are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It only looks, by its programs and options. Its files are still to be judged.
    ReadOnly,
    /// It may change something, or is outside what can be vouched for.
    NeedsGrant {
        /// Why, a stable name.
        code: &'static str,
        /// Why, in words.
        reason: String,
    },
    /// It never runs.
    Refused {
        /// Which floor, a stable name.
        floor: &'static str,
        /// Why, a stable name.
        code: &'static str,
        /// Why, in words.
        reason: String,
    },
}

/// How the name of a file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// It is this path.
    Literal,
    /// Every path that this pattern finds; a backslash takes a letter as itself.
    Glob,
    /// Only known while the line runs.
    Dynamic,
}

/// A file or folder that a line touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// The path or pattern, joined to the folder in which it is used.
    pub text: String,
    /// What is done to it.
    pub access: Access,
    /// How it is known.
    pub kind: OperandKind,
    /// Whether this is surely a path. If not (a revision of git, an existence test), one that is not there is no
    /// fault.
    pub is_certain: bool,
    /// Files below it are read that no word names.
    pub is_deep: bool,
}

/// What is known of one line. Made only by [`super::Policy::analyse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    command: String,
    verdict: Verdict,
    plan: Option<Node>,
    operands: Vec<Operand>,
    programs: Vec<String>,
    urls: Vec<String>,
    hosts: Vec<String>,
    is_deep: bool,
    pub(super) is_odd: bool,
}

impl Analysis {
    pub(super) fn new(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            verdict: Verdict::NeedsGrant {
                code: "unjudged",
                reason: String::new(),
            },
            plan: None,
            operands: Vec::new(),
            programs: Vec::new(),
            urls: Vec::new(),
            hosts: Vec::new(),
            is_deep: false,
            is_odd: false,
        }
    }

    pub(super) fn refuse(&mut self, finding: Finding) {
        self.verdict = Verdict::Refused {
            floor: finding.floor.name(),
            code: finding.code,
            reason: finding.reason,
        };
    }

    pub(super) fn question(&mut self, code: &'static str, reason: String) {
        self.verdict = Verdict::NeedsGrant { code, reason };
    }

    pub(super) fn allow(&mut self) {
        self.verdict = Verdict::ReadOnly;
    }

    /// Takes over what the walk for the floor has gathered.
    pub(super) fn gather(&mut self, walk: Walk<'_>) {
        self.operands.extend(walk.operands);
        self.programs.extend(walk.programs);
        self.urls.extend(walk.urls);
        self.hosts.extend(walk.hosts);
    }

    /// Takes over the plan and the files of an allowed line, which replace what was only guessed.
    pub(super) fn settle(&mut self, node: Node, judge: Judge<'_>) {
        self.plan = Some(node);
        self.operands = judge.operands;
        self.is_deep = judge.is_deep;
    }

    /// The line itself: the gate compares it with the call's.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// What the line is.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The files it touches: all of them for a line that only reads, and what can be told of any other.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// How a line that only reads is run, without a shell.
    pub fn plan(&self) -> Option<&Node> {
        self.plan.as_ref()
    }

    /// The bare names of the programs it starts.
    pub fn programs(&self) -> &[String] {
        &self.programs
    }

    /// The addresses that web clients and git remotes in it would reach.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Machines that it would reach by other means.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Whether a line that only reads also reads files that no word of it names: recursive searches, and what a
    /// repository holds. Such a line needs the sandbox's masks.
    pub fn is_deep(&self) -> bool {
        self.is_deep
    }
}

//! The first walk over a line: whether every part of it is on the list of what only looks. What is not known to
//! be harmless is not allowed; nothing is ever allowed because nothing bad was found in it.

mod command;
mod flow;
mod redirects;
mod words;

use super::{
    Access, Operand, OperandKind, Place,
    plan::Node,
    programs::{Programs, Touched, Unlisted},
    shape::Shape,
    syntax::{Command, Item, Joint, Pipeline, Script, Stage},
};

/// How many values of a loop are followed one by one.
const MAX_ROUNDS: usize = 32;
/// How many commands one line may run, loops counted once for each value.
const MAX_COMMANDS: usize = 400;
/// How many folders the line may be in, where that depends on how commands end.
const MAX_FOLDERS: usize = 4;

/// Why a line is not on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) code: &'static str,
    pub(super) text: String,
}

impl Reason {
    fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

/// What a variable holds.
#[derive(Debug, Clone)]
enum Value {
    /// This.
    Known(String),
    /// Each file that a pattern finds.
    Found(Shape),
    /// A line of the input.
    Line,
}

#[derive(Debug)]
pub(super) struct Judge<'a> {
    programs: &'a Programs,
    place: &'a Place,
    depth: usize,
    commands: usize,
    /// Neither in a loop, a condition, a pipe nor behind `&&`: what is set here is set for all that follows.
    is_at_top: bool,
    variables: Vec<(String, Value)>,
    /// Where the line may be when the next command starts.
    folders: Vec<String>,
    pub(super) operands: Vec<Operand>,
    pub(super) is_deep: bool,
}

type Judged<T> = Result<T, Reason>;

impl<'a> Judge<'a> {
    pub(super) fn new(programs: &'a Programs, place: &'a Place) -> Self {
        Self {
            programs,
            place,
            depth: 0,
            commands: 0,
            is_at_top: true,
            variables: Vec::new(),
            folders: vec![place.working_folder().to_owned()],
            operands: Vec::new(),
            is_deep: false,
        }
    }

    pub(super) fn script(&mut self, script: &Script) -> Judged<Node> {
        let mut nodes = Vec::new();
        for item in &script.items {
            nodes.push(self.item(item)?);
        }
        Ok(match nodes.len() {
            1 => nodes.remove(0),
            _ => Node::Sequence(nodes),
        })
    }

    fn item(&mut self, item: &Item) -> Judged<Node> {
        if item.is_background {
            return Err(Reason::new(
                "background",
                "it would go on running in the background",
            ));
        }
        let before = self.folders.clone();
        let was_at_top = self.is_at_top;
        self.is_at_top &= item.rest.is_empty() && item.first.stages.len() == 1 && !item.first.is_negated;
        let node = self.pipeline(&item.first);
        self.is_at_top = false;
        let node = node.and_then(|node| self.chain(item, &before, node));
        self.is_at_top = was_at_top;
        node
    }

    /// What stands behind `&&` and `||`.
    fn chain(&mut self, item: &Item, before: &[String], node: Node) -> Judged<Node> {
        let mut node = node;
        let mut may_skip = false;
        for (joint, pipeline) in &item.rest {
            if *joint == Joint::Or {
                // What stands behind runs where the first failed: its change of folder may not have happened.
                self.also(before)?;
                may_skip = true;
            }
            let next = Box::new(self.pipeline(pipeline)?);
            node = match joint {
                Joint::And => Node::And(Box::new(node), next),
                Joint::Or => Node::Or(Box::new(node), next),
            };
        }
        if self.folders != before || may_skip {
            self.also(before)?;
        }
        Ok(node)
    }

    /// The line may be in these folders too.
    fn also(&mut self, folders: &[String]) -> Judged<()> {
        for folder in folders {
            if !self.folders.contains(folder) {
                self.folders.push(folder.clone());
            }
        }
        if self.folders.len() > MAX_FOLDERS {
            return Err(Reason::new("folder", "in which folder it runs cannot be told"));
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Judged<Node> {
        let mut stages = Vec::new();
        let is_alone = pipeline.stages.len() == 1;
        for stage in &pipeline.stages {
            if stage.pipes_errors {
                return Err(Reason::new(
                    "syntax",
                    "`|&` is outside the forms that run without a question",
                ));
            }
            let before = self.folders.clone();
            stages.push(self.stage(stage)?);
            if !is_alone && self.folders != before {
                return Err(Reason::new("folder", "the folder changes inside a pipe"));
            }
        }
        let node = if is_alone {
            stages.remove(0)
        } else {
            Node::Pipe(stages)
        };
        Ok(if pipeline.is_negated {
            Node::Not(Box::new(node))
        } else {
            node
        })
    }

    fn stage(&mut self, stage: &Stage) -> Judged<Node> {
        let redirections = self.redirections(&stage.redirects)?;
        if let Command::Simple { assignments, words } = &stage.command {
            return self.simple(assignments, words, redirections);
        }
        let was_at_top = std::mem::replace(&mut self.is_at_top, false);
        let body = self.compound(&stage.command);
        self.is_at_top = was_at_top;
        let body = Box::new(body?);
        Ok(if redirections.is_empty() {
            *body
        } else {
            Node::Redirected { redirections, body }
        })
    }

    /// Remembers the files that a command touches, in every folder it may run in.
    fn touch(&mut self, touched: Vec<Touched>) -> Judged<()> {
        for file in touched {
            for folder in &self.folders {
                let operand = Operand {
                    text: super::join(folder, &file.text),
                    access: file.access,
                    kind: file.kind,
                    is_certain: file.is_certain,
                    is_deep: false,
                };
                if !self.operands.contains(&operand) {
                    self.operands.push(operand);
                }
            }
        }
        if self.operands.len() > MAX_COMMANDS {
            return Err(Reason::new("too_many_files", "it names too many files"));
        }
        Ok(())
    }

    /// A command with everything below a folder, or with what the folder's repository holds.
    fn reads_deep(&mut self) {
        self.is_deep = true;
        for folder in &self.folders {
            let operand = Operand {
                text: folder.clone(),
                access: Access::List,
                kind: OperandKind::Literal,
                is_certain: true,
                is_deep: true,
            };
            if !self.operands.contains(&operand) {
                self.operands.push(operand);
            }
        }
    }
}

impl Unlisted {
    fn reason(self, program: &str) -> Reason {
        match self {
            Self::Program => Reason::new(
                "program",
                format!("{program:?} is not on the list of programs that only read"),
            ),
            Self::Option(option) => Reason::new(
                "option",
                format!("{option:?} is not on the list of harmless options of {program}"),
            ),
            Self::Operand(operand) => Reason::new(
                "operand",
                format!("{program} may not be given {operand:?} without a question"),
            ),
            Self::Dynamic => Reason::new(
                "dynamic",
                format!("what {program} is given is known only while it runs"),
            ),
        }
    }
}

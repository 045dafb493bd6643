//! Groups, conditions and loops.

use super::{Judge, Judged, MAX_ROUNDS, Reason, Value};
use crate::shell::{
    plan::{Argument, Node},
    shape::Shape,
    syntax::{Assignment, Command, Script, Word},
};

impl Judge<'_> {
    pub(super) fn compound(&mut self, command: &Command) -> Judged<Node> {
        match command {
            Command::Subshell(script) => {
                let folders = self.folders.clone();
                let node = self.script(script);
                self.folders = folders;
                Ok(Node::Subshell(Box::new(node?)))
            }
            Command::Group(script) => self.script(script),
            Command::If { branches, otherwise } => self.condition(branches, otherwise.as_ref()),
            Command::For {
                is_select: false,
                variable,
                words: Some(words),
                body,
            } => self.for_each(variable, words, body),
            Command::Loop {
                is_until: false,
                condition,
                body,
            } => self.lines(condition, body),
            Command::Condition(words) => self.test(words),
            Command::For { .. }
            | Command::Loop { .. }
            | Command::Counted { .. }
            | Command::Case { .. }
            | Command::Function { .. }
            | Command::Arithmetic(_)
            | Command::Coprocess(_)
            | Command::Simple { .. } => Err(Reason::new(
                "syntax",
                "this form of the shell is outside those that run without a question",
            )),
        }
    }

    /// `[[ … ]]`, as far as `test` can do the same: no patterns, and no arithmetic, which it would be here.
    fn test(&mut self, words: &[Word]) -> Judged<Node> {
        let mut shapes = Vec::with_capacity(words.len());
        let mut arguments = Vec::with_capacity(words.len());
        for word in words {
            let (shape, argument) = match word.bare() {
                Some("&&") => (Shape::literal("-a"), Argument::text("-a")),
                Some("||") => (Shape::literal("-o"), Argument::text("-o")),
                Some(
                    operator @ ("=~" | "<" | ">" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-a"
                    | "-o"),
                ) => {
                    return Err(Reason::new(
                        "syntax",
                        format!("{operator} in [[ is outside what runs without a question"),
                    ));
                }
                _ => self.word(word)?,
            };
            shapes.push(shape);
            arguments.push(argument);
        }
        self.listed("test", &shapes, &arguments)
    }

    /// `name=value` on its own. The value is put in where the name is used, so that nothing is left to run.
    pub(super) fn assign(&mut self, assignment: &Assignment) -> Judged<Node> {
        let refused = || Reason::new("assignment", "a variable would be set");
        let [value] = assignment.values.as_slice() else {
            return Err(refused());
        };
        let text = value.literal().ok_or_else(refused)?;
        if !assignment.is_plain || !is_variable(&assignment.name) || !text.is_ascii() {
            return Err(refused());
        }
        self.variables.push((assignment.name.clone(), Value::Known(text)));
        Ok(Node::Sequence(Vec::new()))
    }

    fn condition(&mut self, branches: &[(Script, Script)], otherwise: Option<&Script>) -> Judged<Node> {
        let before = self.folders.clone();
        let mut judged = Vec::new();
        for (condition, body) in branches {
            let condition = self.script(condition)?;
            judged.push((condition, self.script(body)?));
            self.also(&before)?;
        }
        let otherwise = match otherwise {
            Some(script) => Some(Box::new(self.script(script)?)),
            None => None,
        };
        self.also(&before)?;
        Ok(Node::If {
            branches: judged,
            otherwise,
        })
    }

    /// A loop over words: once for each, and once for all that a pattern finds.
    fn for_each(&mut self, variable: &str, words: &[Word], body: &Script) -> Judged<Node> {
        if words.len() > MAX_ROUNDS {
            return Err(Reason::new(
                "too_many_rounds",
                "the loop has too many rounds to be followed",
            ));
        }
        let before = self.folders.clone();
        let mut rounds = Vec::new();
        for word in words {
            let (shape, argument) = self.word(word)?;
            let found = shape.has_wildcard() && !shape.is_unknown();
            let value = match shape.known() {
                Some(text) if !shape.may_split => Value::Known(text.to_owned()),
                _ if found => Value::Found(shape),
                _ => {
                    return Err(Reason::new(
                        "dynamic",
                        "what the loop runs over is known only while it runs",
                    ));
                }
            };
            self.variables.push((variable.to_owned(), value));
            let node = self.script(body);
            self.variables.pop();
            rounds.push(if found {
                Node::Each {
                    variable: variable.to_owned(),
                    pattern: argument,
                    body: Box::new(node?),
                }
            } else {
                node?
            });
            if self.folders != before {
                return Err(Reason::new("folder", "the folder changes inside a loop"));
            }
        }
        Ok(Node::Sequence(rounds))
    }

    /// `while read -r NAME; do …; done`.
    fn lines(&mut self, condition: &Script, body: &Script) -> Judged<Node> {
        let refused = || {
            Reason::new(
                "loop",
                "of the loops with a condition only `while read -r NAME` runs without a question",
            )
        };
        let variable = read_variable(condition).ok_or_else(refused)?;
        let before = self.folders.clone();
        self.variables.push((variable.clone(), Value::Line));
        let node = self.script(body);
        self.variables.pop();
        if self.folders != before {
            return Err(Reason::new("folder", "the folder changes inside a loop"));
        }
        Ok(Node::Lines {
            variable,
            body: Box::new(node?),
        })
    }
}

/// The variable of `read -r NAME` or `IFS= read -r NAME`.
fn read_variable(condition: &Script) -> Option<String> {
    let [item] = condition.items.as_slice() else {
        return None;
    };
    let [stage] = item.first.stages.as_slice() else {
        return None;
    };
    if !item.rest.is_empty() || item.is_background || item.first.is_negated || !stage.redirects.is_empty() {
        return None;
    }
    let Command::Simple { assignments, words } = &stage.command else {
        return None;
    };
    let is_plain = assignments
        .iter()
        .all(|assignment| assignment.name == "IFS" && assignment.is_plain && assignment.values.is_empty());
    let words: Vec<Shape> = words
        .iter()
        .map(|word| word.literal().map(Shape::literal))
        .collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match words.as_slice() {
        ["read", "-r", name] if is_plain && is_variable(name) => Some((*name).to_owned()),
        _ => None,
    }
}

/// A name that means nothing to the programs that run.
fn is_variable(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
}

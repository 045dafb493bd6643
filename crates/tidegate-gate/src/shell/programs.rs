//! The table of programs that may run without a question.

mod arguments;
mod expression;
mod kinds;
mod stream_editor;

use std::collections::{BTreeMap, HashMap};

pub(super) use self::kinds::touch;

use serde::Deserialize;

use super::{Access, Error, OperandKind, shape::Shape};

/// The table that is built in.
const BUILT_IN: &str = include_str!("programs.toml");

/// One row: what may stand behind a program's name.
#[derive(Debug, Clone, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Row {
    name: Option<String>,
    names: Vec<String>,
    flags: String,
    values: String,
    joined: String,
    long: Vec<String>,
    kinds: BTreeMap<String, String>,
    number: bool,
    operands: Vec<String>,
    replaces: Vec<String>,
    dashes: Option<String>,
    deep: Vec<String>,
    required: bool,
    needs: Vec<String>,
    grammar: Option<String>,
    tests: BTreeMap<String, String>,
    /// In an operator's table: the program is taken off the list.
    remove: bool,
    accept: Vec<String>,
    refuse: Vec<String>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Table {
    program: Vec<Row>,
}

/// What an operand is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Text,
    Pattern,
    Number,
    Short,
    Read,
    List,
    Exists,
    Revision,
    Format,
    Pretty,
    Program,
    Jq,
    Letters(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Grammar {
    #[default]
    Plain,
    Find,
    Test,
    Sed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    Needed,
    Optional,
}

/// A row, checked.
#[derive(Debug, Clone, Default)]
pub(super) struct Spec {
    flags: String,
    values: String,
    joined: String,
    long: HashMap<String, Value>,
    kinds: HashMap<String, Kind>,
    has_number: bool,
    operands: Vec<Kind>,
    /// Operands that must be there.
    least: usize,
    /// The last kind repeats.
    repeats: bool,
    replaces: Vec<String>,
    dashes: Option<Kind>,
    deep: Vec<String>,
    is_required: bool,
    needs: Vec<String>,
    grammar: Grammar,
    tests: HashMap<String, Option<Kind>>,
}

/// A file that a command touches by the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touched {
    /// As it stands, not joined to a folder yet.
    pub(super) text: String,
    pub(super) access: Access,
    pub(super) kind: OperandKind,
    pub(super) is_certain: bool,
}

/// What is known of a command that the table lets run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Accepted {
    pub(super) touched: Vec<Touched>,
    /// It reads files that no word names.
    pub(super) is_deep: bool,
}

/// Why a command is not on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unlisted {
    Program,
    Option(String),
    Operand(String),
    Dynamic,
}

/// A line that a row says something about.
#[derive(Debug, Clone)]
pub(super) struct Example {
    pub(super) line: String,
    pub(super) is_accepted: bool,
    /// From an operator's table.
    pub(super) is_own: bool,
}

/// All programs.
#[derive(Debug, Clone, Default)]
pub(super) struct Programs {
    specs: HashMap<String, Vec<Spec>>,
    examples: Vec<Example>,
}

impl Programs {
    /// The built-in table with an operator's own merged into it: its rows replace those of the same name.
    pub(super) fn compile(own: &str) -> Result<Self, Error> {
        let mut programs = Self::default();
        programs.merge(BUILT_IN, false)?;
        if !own.trim().is_empty() {
            programs.merge(own, true)?;
        }
        Ok(programs)
    }

    fn merge(&mut self, text: &str, replaces: bool) -> Result<(), Error> {
        let table: Table = toml::from_str(text).map_err(|error| Error::Table(error.to_string()))?;
        let mut cleared: Vec<String> = Vec::new();
        for row in table.program {
            let names: Vec<String> = row.name.iter().chain(&row.names).cloned().collect();
            if names.is_empty() {
                return Err(Error::Table("a [[program]] has no name".to_owned()));
            }
            for name in &names {
                if name.contains(['/', '$', '`', '\\']) || name.trim() != name || name.is_empty() {
                    return Err(Error::Table(format!("{name:?} is no bare name of a program")));
                }
                if replaces && !cleared.contains(name) {
                    self.specs.remove(name);
                    cleared.push(name.clone());
                }
            }
            if row.remove {
                continue;
            }
            let spec = Spec::of(&row)?;
            for (lines, is_accepted) in [(row.accept, true), (row.refuse, false)] {
                self.examples.extend(lines.into_iter().map(|line| Example {
                    line,
                    is_accepted,
                    is_own: replaces,
                }));
            }
            for name in names {
                self.specs.entry(name).or_default().push(spec.clone());
            }
        }
        Ok(())
    }

    /// The examples of every row, with whether they are to be accepted.
    pub(super) fn examples(&self) -> &[Example] {
        &self.examples
    }

    /// Whether anything is known of the program.
    pub(super) fn has(&self, name: &str) -> bool {
        self.specs.contains_key(name)
    }

    /// Judges the words behind a program's name.
    pub(super) fn judge(&self, name: &str, words: &[Shape]) -> Result<Accepted, Unlisted> {
        let specs = self.specs.get(name).ok_or(Unlisted::Program)?;
        let mut why = Unlisted::Program;
        for (at, row) in specs.iter().enumerate() {
            match row.judge(name, words) {
                Ok(accepted) => return Ok(accepted),
                Err(unlisted) if at == 0 => why = unlisted,
                Err(_) => {}
            }
        }
        Err(why)
    }
}

impl Spec {
    fn of(row: &Row) -> Result<Self, Error> {
        let mut spec = Self {
            flags: row.flags.clone(),
            values: row.values.clone(),
            joined: row.joined.clone(),
            has_number: row.number,
            replaces: row.replaces.clone(),
            deep: row.deep.clone(),
            is_required: row.required,
            needs: row.needs.clone(),
            grammar: match row.grammar.as_deref() {
                None => Grammar::Plain,
                Some("find") => Grammar::Find,
                Some("test") => Grammar::Test,
                Some("sed") => Grammar::Sed,
                Some(other) => return Err(Error::Table(format!("{other:?} is no grammar"))),
            },
            ..Self::default()
        };
        for option in &row.long {
            let (name, value) = match (option.strip_suffix("=?"), option.strip_suffix('=')) {
                (Some(name), _) => (name, Value::Optional),
                (None, Some(name)) => (name, Value::Needed),
                (None, None) => (option.as_str(), Value::None),
            };
            spec.long.insert(name.to_owned(), value);
        }
        for (option, kind) in &row.kinds {
            spec.kinds.insert(option.clone(), Kind::of(kind)?);
        }
        for operand in &row.operands {
            if spec.repeats {
                return Err(Error::Table(
                    "only the last kind of operand may repeat".to_owned(),
                ));
            }
            if let Some(kind) = operand.strip_suffix('*') {
                spec.operands.push(Kind::of(kind)?);
                spec.repeats = true;
            } else if let Some(kind) = operand.strip_suffix('?') {
                spec.operands.push(Kind::of(kind)?);
            } else {
                spec.operands.push(Kind::of(operand)?);
                spec.least = spec.operands.len();
            }
        }
        spec.dashes = row.dashes.as_deref().map(Kind::of).transpose()?;
        for (test, kind) in &row.tests {
            let kind = if kind.is_empty() {
                None
            } else {
                Some(Kind::of(kind)?)
            };
            spec.tests.insert(test.clone(), kind);
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests;

//! The registry: `tools.toml` and the operator's own file, read into rows once at start.
//!
//! A row is everything there is to know of a tool. The schema for the model, the argument check, the gate's
//! effect, the runner's template, the reference page and the capability list are all read off the same row,
//! so none of them can know a tool that the others do not. The examples of a row are held against its own
//! check while it is read: a row that does not do what it says does not load.
//!
//! The operator's file may add rows, narrow rows (`extends = true`) and take rows away (`remove`). It cannot
//! widen one: a limit only sinks, an effect only rises.

mod file;
mod narrow;
mod row;

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::tool::{ToolMode, ToolSpec};

use self::file::{Document, Located};
pub(crate) use self::row::{Row, Template};
use crate::nearest::nearest;

/// The rows that come with the program.
const BUILT_IN: &str = include_str!("../tools.toml");

/// The most tools one registry may hold. Every row costs prompt tokens; nobody needs more.
const TOOLS_MAX: usize = 256;

/// A line of a tools file that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Counted from 1.
    pub(crate) line: usize,
    /// What is wrong and what to write.
    pub(crate) problem: String,
}

/// All rows, in file order.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    rows: Vec<Row>,
}

impl Registry {
    /// The rows that come with the program.
    pub(crate) fn built_in() -> Result<Self, Fault> {
        let mut registry = Self { rows: Vec::new() };
        registry.apply(BUILT_IN)?;
        Ok(registry)
    }

    /// Applies a tools file: first what it removes, then its rows in order.
    pub(crate) fn apply(&mut self, text: &str) -> Result<(), Fault> {
        let document = Document::parse(text)?;
        for removed in &document.removed {
            let known = self.rows.len();
            self.rows.retain(|row| row.spec.name != removed.value);
            if self.rows.len() == known {
                return Err(removed.fault(format!(
                    "`remove` names `{}`, which is no tool{}",
                    removed.value,
                    self.hint(&removed.value)
                )));
            }
        }
        let mut seen: Vec<String> = Vec::new();
        for raw in document.rows {
            let name = raw.value.name.clone();
            if seen.contains(&name) {
                return Err(raw.fault(format!("`{name}` stands twice in this file; keep one of them")));
            }
            self.apply_row(raw)?;
            seen.push(name);
        }
        Ok(())
    }

    fn apply_row(&mut self, raw: Located<file::RawRow>) -> Result<(), Fault> {
        let name = raw.value.name.clone();
        let line = raw.line;
        let in_row = |problem: String| Fault {
            line,
            problem: format!("tool `{name}`: {problem}"),
        };
        let present = self.rows.iter().position(|row| row.spec.name == name);
        if raw.value.extends {
            let hint = self.hint(&name);
            let row = present
                .and_then(|position| self.rows.get_mut(position))
                .ok_or_else(|| in_row(format!("there is no such tool to extend{hint}")))?;
            *row = narrow::narrowed(row, raw.value).map_err(in_row)?;
            return Ok(());
        }
        if present.is_some() {
            return Err(in_row(
                "there is one of this name already; write `extends = true` to narrow it, or put the name into \
                 `remove` to replace it"
                    .to_owned(),
            ));
        }
        if self.rows.len() == TOOLS_MAX {
            return Err(in_row(format!(
                "there are more than {TOOLS_MAX} tools; remove some"
            )));
        }
        self.rows.push(Row::compile(raw.value).map_err(in_row)?);
        Ok(())
    }

    /// Takes the rows away whose mode is none that can be run here.
    pub(crate) fn keep(&mut self, can_run: impl Fn(ToolMode) -> bool) {
        self.rows.retain(|row| can_run(row.spec.mode));
    }

    /// Puts every description in other words: what `put` makes of it.
    pub(crate) fn describe(&mut self, put: impl Fn(&str) -> String) {
        for row in &mut self.rows {
            let spec = Arc::make_mut(&mut row.spec);
            spec.description = put(&spec.description);
            for parameter in &mut spec.parameters {
                parameter.description = put(&parameter.description);
            }
        }
    }

    /// The rows, in file order.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.spec.name == name)
    }

    /// What the model, the gate and the engine see.
    pub(crate) fn specs(&self) -> Arc<[Arc<ToolSpec>]> {
        self.rows.iter().map(|row| Arc::clone(&row.spec)).collect()
    }

    fn hint(&self, name: &str) -> String {
        nearest(name, self.rows.iter().map(|row| row.spec.name.as_str()))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
    }
}

/// A call's arguments as the model would write them.
pub(crate) fn example_text(arguments: &Map<String, Value>) -> String {
    Value::Object(arguments.clone()).to_string()
}

#[cfg(test)]
mod tests;

//! Command templates: a fixed program and one argv element an entry.

use std::collections::BTreeSet;

use tidegate_core::tool::FailureCode;

use super::Text;
use crate::arguments::{Argument, Problem, Values};

/// A program and its arguments, as a row gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandTemplate {
    program: String,
    elements: Vec<Text>,
    dash_ok: bool,
}

impl CommandTemplate {
    /// Reads `command = ["program", "{argument}", …]`. The error says what to change.
    pub(crate) fn parse(command: &[String], dash_ok: bool) -> Result<Self, String> {
        let Some((program, elements)) = command.split_first() else {
            return Err(
                "`command` is empty; write `command = [\"/usr/bin/program\", \"{argument}\"]`".to_owned(),
            );
        };
        let program = Text::parse(program)?;
        let program = program.literal().filter(|name| !name.is_empty()).ok_or(
            "the first entry of `command` is the program and takes no placeholder; name one fixed program",
        )?;
        if command.iter().any(|entry| entry.contains('\0')) {
            return Err("an entry of `command` holds a NUL character; remove it".to_owned());
        }
        Ok(Self {
            program: program.to_owned(),
            elements: elements
                .iter()
                .map(|entry| Text::parse(entry))
                .collect::<Result<_, _>>()?,
            dash_ok,
        })
    }

    /// The program.
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// The names of the placeholders.
    pub(crate) fn placeholders(&self) -> BTreeSet<&str> {
        self.elements.iter().flat_map(Text::placeholders).collect()
    }

    /// The argv elements after the program: never more than the template has entries.
    pub(crate) fn render(&self, values: &Values<'_>) -> Result<Vec<String>, Problem> {
        let mut argv = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            // An element whose optional argument was not given is left out.
            let Some(text) = element.render(values, Argument::to_text) else {
                continue;
            };
            if text.contains('\0') {
                return Err(refusal(element, "may not hold a NUL character"));
            }
            if let Some(name) = element.begins_with_placeholder()
                && text.starts_with('-')
                && !self.dash_ok
            {
                return Err(Problem {
                    code: FailureCode::InvalidArguments,
                    message: format!(
                        "`{name}` may not begin with `-`: the program would read it as an option."
                    ),
                });
            }
            argv.push(text);
        }
        Ok(argv)
    }
}

fn refusal(element: &Text, why: &str) -> Problem {
    let names: Vec<String> = element
        .placeholders()
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    Problem {
        code: FailureCode::InvalidArguments,
        message: format!("{} {why}.", names.join(", ")),
    }
}

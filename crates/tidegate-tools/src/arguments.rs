//! The arguments of a call, read against its row once: what the check refuses, the runner never sees.
//!
//! Models write `"3"` where `3` is meant and the other way round. What can only mean one thing is taken as
//! that: a number in quotes for a number, `true` in quotes for a truth value, a number for a text, one text for a
//! list of one, and `null` for an optional argument that is not given. Everything else is refused with the
//! parameter named.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tidegate_core::tool::{Arguments, FailureCode, Parameter, ParameterType, ToolSpec};

use crate::nearest::nearest;

/// The longest text that a refusal repeats, in characters.
const ECHO_CHARS_MAX: usize = 60;

/// One argument, of the type its row says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Text(String),
    Integer(i64),
    Number(serde_json::Number),
    Boolean(bool),
    Texts(Vec<String>),
}

impl Argument {
    /// The argument as it stands in a text.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Texts(values) => values.join(", "),
        }
    }

    /// The argument as a JSON value.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Integer(value) => Value::from(*value),
            Self::Number(value) => Value::Number(value.clone()),
            Self::Boolean(value) => Value::from(*value),
            Self::Texts(values) => Value::from(values.clone()),
        }
    }
}

/// What is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// For code.
    pub(crate) code: FailureCode,
    /// For the model; a full sentence.
    pub(crate) message: String,
}

impl Problem {
    fn invalid(message: String) -> Self {
        Self {
            code: FailureCode::InvalidArguments,
            message,
        }
    }
}

/// The arguments of a call that passed its row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Values<'s> {
    values: BTreeMap<&'s str, Argument>,
}

impl<'s> Values<'s> {
    /// Reads the arguments against the row.
    pub(crate) fn read(arguments: &Arguments, spec: &'s ToolSpec) -> Result<Self, Problem> {
        match arguments {
            Arguments::Object(map) => Self::from_object(map, spec),
            Arguments::Unparsable { problem, .. } => Err(Problem::invalid(format!(
                "The arguments are not a JSON object: {problem}."
            ))),
        }
    }

    /// Reads a JSON object against the row.
    pub(crate) fn from_object(map: &Map<String, Value>, spec: &'s ToolSpec) -> Result<Self, Problem> {
        if let Some(unknown) = map
            .keys()
            .find(|key| spec.parameters.iter().all(|one| one.name != **key))
        {
            return Err(unknown_name(unknown, spec));
        }
        let mut values = BTreeMap::new();
        for parameter in &spec.parameters {
            match map.get(&parameter.name) {
                Some(value) if !value.is_null() => {
                    let argument = typed(value, parameter)?;
                    within(&argument, parameter)?;
                    values.insert(parameter.name.as_str(), argument);
                }
                None | Some(_) if parameter.required => {
                    return Err(Problem {
                        code: FailureCode::MissingArgument,
                        message: format!("`{}` is missing: {}", parameter.name, parameter.description),
                    });
                }
                None | Some(_) => {}
            }
        }
        Ok(Self { values })
    }

    /// One argument, if it was given.
    pub(crate) fn get(&self, name: &str) -> Option<&Argument> {
        self.values.get(name)
    }

    /// A text, if it was given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Argument::Text(text) => Some(text),
            Argument::Integer(_) | Argument::Number(_) | Argument::Boolean(_) | Argument::Texts(_) => None,
        }
    }

    /// A whole number that is a count, if it was given; what is negative counts as zero.
    pub(crate) fn count(&self, name: &str) -> Option<usize> {
        match self.get(name)? {
            Argument::Integer(value) => Some(usize::try_from(*value).unwrap_or(0)),
            Argument::Text(_) | Argument::Number(_) | Argument::Boolean(_) | Argument::Texts(_) => None,
        }
    }

    /// A truth value; false where it was not given.
    pub(crate) fn truth(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Argument::Boolean(true)))
    }

    /// A list of texts; empty where it was not given.
    pub(crate) fn texts(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Argument::Texts(values)) => values,
            Some(Argument::Text(_) | Argument::Integer(_) | Argument::Number(_) | Argument::Boolean(_))
            | None => &[],
        }
    }
}

fn unknown_name(unknown: &str, spec: &ToolSpec) -> Problem {
    let names: Vec<&str> = spec.parameters.iter().map(|one| one.name.as_str()).collect();
    let shown = echo(unknown);
    Problem::invalid(if names.is_empty() {
        format!("`{}` takes no arguments; leave out `{shown}`.", spec.name)
    } else if let Some(near) = nearest(unknown, names.iter().copied()) {
        format!("There is no argument `{shown}`; did you mean `{near}`?")
    } else {
        format!(
            "There is no argument `{shown}`; the arguments are {}.",
            names.join(", ")
        )
    })
}

fn typed(value: &Value, parameter: &Parameter) -> Result<Argument, Problem> {
    let taken = match parameter.kind {
        ParameterType::String => text(value).map(Argument::Text),
        ParameterType::Integer => integer(value).map(Argument::Integer),
        ParameterType::Number => number(value).map(Argument::Number),
        ParameterType::Boolean => boolean(value).map(Argument::Boolean),
        ParameterType::StringList => texts(value).map(Argument::Texts),
    };
    taken.ok_or_else(|| {
        Problem::invalid(format!(
            "`{}` must be {}, not {}.",
            parameter.name,
            kind_in_words(parameter.kind),
            echo(&value.to_string())
        ))
    })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A float that stands for a whole number within the range where floats are exact.
fn whole(value: f64) -> Option<i64> {
    if value.fract() != 0.0 || value.abs() > 9e15 {
        return None;
    }
    format!("{value:.0}").parse().ok()
}

fn number(value: &Value) -> Option<serde_json::Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => match serde_json::from_str(text.trim()) {
            Ok(Value::Number(number)) => Some(number),
            Ok(Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_))
            | Err(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn within(argument: &Argument, parameter: &Parameter) -> Result<(), Problem> {
    match argument {
        Argument::Text(text) => text_within(text, parameter),
        Argument::Texts(values) => {
            if let Some(max) = parameter.max
                && i64::try_from(values.len()).unwrap_or(i64::MAX) > max
            {
                return Err(Problem::invalid(format!(
                    "`{}` takes at most {max} items.",
                    parameter.name
                )));
            }
            if let Some(min) = parameter.min
                && i64::try_from(values.len()).unwrap_or(i64::MAX) < min
            {
                return Err(Problem::invalid(format!(
                    "`{}` takes at least {min} items.",
                    parameter.name
                )));
            }
            values.iter().try_for_each(|text| text_within(text, parameter))
        }
        Argument::Integer(value) => {
            let low = parameter.min.is_some_and(|min| *value < min);
            let high = parameter.max.is_some_and(|max| *value > max);
            if low || high {
                Err(out_of_range(parameter))
            } else {
                Ok(())
            }
        }
        Argument::Number(value) => {
            #[expect(
                clippy::cast_precision_loss,
                reason = "bounds in a row are small numbers that a float holds exactly"
            )]
            let outside = value.as_f64().is_none_or(|value| {
                parameter.min.is_some_and(|min| value < min as f64)
                    || parameter.max.is_some_and(|max| value > max as f64)
            });
            if outside {
                Err(out_of_range(parameter))
            } else {
                Ok(())
            }
        }
        Argument::Boolean(_) => Ok(()),
    }
}

fn text_within(text: &str, parameter: &Parameter) -> Result<(), Problem> {
    if let Some(chars_max) = parameter.chars_max
        && text.chars().count() > chars_max
    {
        return Err(Problem::invalid(format!(
            "`{}` is longer than {chars_max} characters.",
            parameter.name
        )));
    }
    if !parameter.one_of.is_empty() && !parameter.one_of.iter().any(|one| one == text) {
        return Err(Problem::invalid(format!(
            "`{}` must be one of {}, not `{}`.",
            parameter.name,
            parameter.one_of.join(", "),
            echo(text)
        )));
    }
    Ok(())
}

fn out_of_range(parameter: &Parameter) -> Problem {
    let name = &parameter.name;
    Problem::invalid(match (parameter.min, parameter.max) {
        (Some(min), Some(max)) => format!("`{name}` must be from {min} to {max}."),
        (Some(min), None) => format!("`{name}` must be at least {min}."),
        (None, Some(max)) => format!("`{name}` must be at most {max}."),
        (None, None) => format!("`{name}` is out of range."),
    })
}

/// A parameter's type in words.
pub(crate) fn kind_in_words(kind: ParameterType) -> &'static str {
    match kind {
        ParameterType::String => "a text",
        ParameterType::Integer => "a whole number",
        ParameterType::Number => "a number",
        ParameterType::Boolean => "true or false",
        ParameterType::StringList => "a list of texts",
    }
}

/// The beginning of what the model wrote, on one line.
fn echo(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(ECHO_CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(ECHO_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;

//! What may stand in a tools file, with the line of each thing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::tool::{Effect, ParameterType, ToolMode};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::Fault;
use crate::nearest::nearest;

/// The keys at the top of a tools file.
const FILE_KEYS: [&str; 2] = ["remove", "tool"];
/// The keys of a `[[tool]]`.
const TOOL_KEYS: [&str; 15] = [
    "name",
    "extends",
    "description",
    "mode",
    "effect",
    "timeout_ms",
    "output_bytes_max",
    "parameters",
    "command",
    "dash_ok",
    "url",
    "headers",
    "body",
    "accept",
    "refuse",
];
/// The keys of a `[[tool.parameters]]`.
const PARAMETER_KEYS: [&str; 9] = [
    "name",
    "type",
    "description",
    "required",
    "one_of",
    "min",
    "max",
    "chars_max",
    "free_text",
];

/// A tools file as it is written.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) removed: Vec<Located<String>>,
    pub(super) rows: Vec<Located<RawRow>>,
}

/// Something and the line it begins on.
#[derive(Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

impl<T> Located<T> {
    pub(super) fn fault(&self, problem: String) -> Fault {
        Fault {
            line: self.line,
            problem,
        }
    }
}

/// A `[[tool]]` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRow {
    pub(super) name: String,
    #[serde(default)]
    pub(super) extends: bool,
    pub(super) description: Option<String>,
    pub(super) mode: Option<ToolMode>,
    pub(super) effect: Option<Effect>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) output_bytes_max: Option<usize>,
    #[serde(default)]
    pub(super) parameters: Vec<RawParameter>,
    pub(super) command: Option<Vec<String>>,
    pub(super) dash_ok: Option<bool>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<Value>,
    #[serde(default)]
    pub(super) accept: Vec<Map<String, Value>>,
    #[serde(default)]
    pub(super) refuse: Vec<Map<String, Value>>,
}

/// A `[[tool.parameters]]` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawParameter {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: Option<ParameterType>,
    pub(super) description: Option<String>,
    pub(super) required: Option<bool>,
    pub(super) one_of: Option<Vec<String>>,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) chars_max: Option<usize>,
    pub(super) free_text: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    remove: Vec<Spanned<String>>,
    #[serde(default, rename = "tool")]
    tools: Vec<Spanned<RawRow>>,
}

impl Document {
    /// Reads a tools file. Keys are looked at first, so that a misspelt one is answered with the right one.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let fault = |error: &toml::de::Error| Fault {
            line: line_at(text, error.span().map_or(0, |span| span.start)),
            problem: error.message().replace('\n', "; "),
        };
        let table = DeTable::parse(text).map_err(|error| fault(&error))?;
        check_keys(text, table.get_ref())?;
        let file: RawFile = toml::from_str(text).map_err(|error| fault(&error))?;
        let located = |start: usize| line_at(text, start);
        Ok(Self {
            removed: file
                .remove
                .into_iter()
                .map(|name| Located {
                    line: located(name.span().start),
                    value: name.into_inner(),
                })
                .collect(),
            rows: file
                .tools
                .into_iter()
                .map(|row| Located {
                    line: located(row.span().start),
                    value: row.into_inner(),
                })
                .collect(),
        })
    }
}

fn check_keys(text: &str, file: &DeTable<'_>) -> Result<(), Fault> {
    known_keys(text, file, &FILE_KEYS, "a tools file")?;
    for tool in tables(file, "tool") {
        known_keys(text, tool, &TOOL_KEYS, "a tool")?;
        for parameter in tables(tool, "parameters") {
            known_keys(text, parameter, &PARAMETER_KEYS, "a parameter")?;
        }
    }
    Ok(())
}

fn known_keys(text: &str, table: &DeTable<'_>, known: &[&str], what: &str) -> Result<(), Fault> {
    for key in table.keys() {
        let name: &str = key.get_ref();
        if known.contains(&name) {
            continue;
        }
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}", known.join(", ")),
        };
        return Err(Fault {
            line: line_at(text, key.span().start),
            problem: format!("`{name}` is no key of {what}; {hint}"),
        });
    }
    Ok(())
}

/// The tables of an array of tables; what is something else is left to the typed reading to refuse.
fn tables<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> impl Iterator<Item = &'t DeTable<'i>> {
    let items = match table.get(key).map(Spanned::get_ref) {
        Some(DeValue::Array(items)) => Some(items),
        Some(
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Table(_),
        )
        | None => None,
    };
    items
        .into_iter()
        .flat_map(|items| items.iter())
        .filter_map(|item| item.get_ref().as_table())
}

fn line_at(text: &str, position: usize) -> usize {
    text.bytes().take(position).filter(|byte| *byte == b'\n').count() + 1
}

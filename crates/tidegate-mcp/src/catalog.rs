//! The tools of one server: what it lists, made into rows of the registry and held against what was accepted before.
//!
//! Pure: a list and pins in, a catalog and new pins out. A tool that was never seen is accepted as it is; one whose
//! definition differs from the accepted one is held back, with what changed, until a person accepts it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rmcp::model::Tool as Listed;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tidegate_core::{
    clock::Timestamp,
    port::ToolPin,
    tool::{Effect, ToolMode, ToolSpec},
};

use crate::{
    Options,
    diff::diff,
    names::{hex, slug, tool_name},
    schema,
    servers_file::Server,
    text,
};

/// The longest name of a tool that is taken, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// The longest definition that is taken, in bytes.
const DEFINITION_BYTES_MAX: usize = 256 << 10;
/// The longest diff that is shown, in characters.
const DIFF_CHARS_MAX: usize = 8_000;
/// The longest name in a report, in characters.
const SHOWN_CHARS_MAX: usize = 80;
/// How many remarks on a list are kept.
const REMARKS_MAX: usize = 50;
/// How much longer than the call itself its runner may take, in milliseconds, to say what has happened.
const MARGIN_MS: u64 = 2_000;

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    /// Its name, as the server calls it.
    pub(crate) raw: String,
    /// Its row.
    pub(crate) spec: Arc<ToolSpec>,
}

/// A tool that is held back: its definition is another one than was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The server.
    pub server: String,
    /// The tool, as the server calls it; cleaned where it is shown.
    pub tool: String,
    /// The name that models know it by.
    pub name: String,
    /// What changed, line by line: text from outside, cleaned.
    pub diff: String,
    /// SHA-256 of the present definition, in hex: what an approval is for.
    pub digest: String,
    /// The present definition.
    pub(crate) definition: String,
}

/// The tools of one server.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<Tool>,
    pub(crate) blocked: Vec<Blocked>,
    /// What was left out, and why.
    pub(crate) remarks: Vec<String>,
}

/// Everything a catalog is made from beside the list.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    pub(crate) server: &'a Server,
    pub(crate) options: &'a Options,
    /// What was accepted, by tool.
    pub(crate) pins: &'a BTreeMap<String, ToolPin>,
    /// The catalog so far: rows that stay the same stay the same row.
    pub(crate) before: &'a Catalog,
    pub(crate) now: Timestamp,
}

impl Making<'_> {
    /// The catalog, and pins for the tools that were not known.
    pub(crate) fn catalog(&self, listed: Vec<Listed>) -> (Catalog, Vec<ToolPin>) {
        let mut catalog = Catalog::default();
        let mut new_pins = Vec::new();
        for (name, tool) in self.chosen(listed, &mut catalog) {
            let definition = definition(&tool);
            if definition.len() > DEFINITION_BYTES_MAX {
                catalog.remark(&tool.name, "its definition is too long");
                continue;
            }
            let digest = hex(&Sha256::digest(&definition));
            match self.pins.get(tool.name.as_ref()) {
                Some(pin) if pin.digest != digest => {
                    catalog.blocked.push(Blocked {
                        server: self.server.name.clone(),
                        tool: tool.name.to_string(),
                        name,
                        diff: text::lines(
                            &diff(&readable(&pin.definition), &readable(&definition)),
                            DIFF_CHARS_MAX,
                        ),
                        digest,
                        definition,
                    });
                }
                known => match self.row(name, &tool) {
                    Ok(spec) => {
                        if known.is_none() {
                            new_pins.push(self.pin(&tool.name, digest, definition));
                        }
                        catalog.tools.push(Tool {
                            raw: tool.name.to_string(),
                            spec,
                        });
                    }
                    Err(problem) => catalog.remark(&tool.name, &problem),
                },
            }
        }
        (catalog, new_pins)
    }

    /// A pin of this definition.
    pub(crate) fn pin(&self, tool: &str, digest: String, definition: String) -> ToolPin {
        ToolPin {
            server: self.server.name.clone(),
            tool: tool.to_owned(),
            digest,
            definition,
            accepted_at: self.now,
        }
    }

    /// The tools that are wanted, each with its full name; those that keep their own name choose first.
    fn chosen(&self, listed: Vec<Listed>, catalog: &mut Catalog) -> Vec<(String, Listed)> {
        let mut seen = BTreeSet::new();
        let mut wanted = Vec::new();
        let total = listed.len();
        for tool in listed {
            if tool.name.is_empty() || tool.name.len() > NAME_BYTES_MAX {
                catalog.remark(&tool.name, "its name is empty or too long");
            } else if !self.server.tools.wants(&tool.name) {
                // As the operator wants it.
            } else if !seen.insert(tool.name.to_string()) {
                catalog.remark(&tool.name, "is listed twice; the first counts");
            } else if wanted.len() >= self.options.tools_max {
                let left = total.saturating_sub(wanted.len());
                catalog.remarks.push(format!(
                    "it lists {total} tools; the first {} are offered and {left} left out: choose with `tools`, or raise `mcp.tools_max`",
                    wanted.len()
                ));
                break;
            } else {
                wanted.push(tool);
            }
        }
        wanted.sort_by(|one, other| one.name.cmp(&other.name));
        let is_plain = |tool: &Listed| {
            tool.name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
        };
        let (plain, odd): (Vec<Listed>, Vec<Listed>) = wanted.into_iter().partition(is_plain);
        let slug = slug(&self.server.name);
        let mut taken = BTreeSet::new();
        let mut chosen: Vec<(String, Listed)> = plain
            .into_iter()
            .chain(odd)
            .map(|tool| (tool_name(&slug, &tool.name, &mut taken), tool))
            .collect();
        chosen.sort_by(|one, other| one.0.cmp(&other.0));
        chosen
    }

    fn row(&self, name: String, tool: &Listed) -> Result<Arc<ToolSpec>, String> {
        let input_schema = schema::convert(&tool.input_schema, self.options.schema_bytes_max)?;
        let says_read_only = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true);
        let said = tool
            .description
            .as_deref()
            .or(tool.title.as_deref())
            .unwrap_or_default();
        let said = text::lines(said, self.options.description_chars_max);
        let spec = ToolSpec {
            name,
            description: if said.is_empty() {
                format!(
                    "A tool of the server `{}`, which says no more about it.",
                    self.server.name
                )
            } else {
                said
            },
            mode: ToolMode::Mcp,
            effect: if self.server.trusts_read_only && says_read_only {
                Effect::Read
            } else {
                Effect::External
            },
            parameters: Vec::new(),
            input_schema: Some(input_schema),
            timeout_ms: self
                .server
                .timeout_ms
                .unwrap_or(self.options.timeout_ms)
                .saturating_add(MARGIN_MS),
            output_bytes_max: self.options.result_bytes_max,
        };
        let same = self.before.tools.iter().find(|tool| *tool.spec == spec);
        Ok(same.map_or_else(|| Arc::new(spec), |tool| Arc::clone(&tool.spec)))
    }
}

impl Catalog {
    fn remark(&mut self, tool: &str, what: &str) {
        if self.remarks.len() < REMARKS_MAX {
            self.remarks
                .push(format!("`{}`: {what}", text::line(tool, SHOWN_CHARS_MAX)));
        }
    }
}

/// What of a tool must not change behind anybody's back, as JSON with its keys in order.
fn definition(tool: &Listed) -> String {
    let hints = tool.annotations.as_ref().map(|hints| {
        json!({
            "readOnlyHint": hints.read_only_hint,
            "destructiveHint": hints.destructive_hint,
            "idempotentHint": hints.idempotent_hint,
            "openWorldHint": hints.open_world_hint,
        })
    });
    let whole = json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": Value::Object(tool.input_schema.as_ref().clone()),
        "annotations": hints,
    });
    ordered(whole).to_string()
}

fn ordered(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<String, Value> = map
                .into_iter()
                .map(|(key, value)| (key, ordered(value)))
                .collect();
            Value::Object(sorted.into_iter().collect::<Map<String, Value>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(ordered).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// A definition on many lines.
fn readable(definition: &str) -> String {
    serde_json::from_str::<Value>(definition)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_problem| definition.to_owned())
}

#[cfg(test)]
mod tests;

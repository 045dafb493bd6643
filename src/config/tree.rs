//! Settings as they were typed, in layers: the file, then the environment, then flags. Each value remembers
//! where it came from, so that a mistake can be named at its place.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::{
    env::Environment,
    error::Problem,
    table::{self, Kind},
};

/// Lines that are not TOML which are named; a file with more is some other file.
const SYNTAX_ERRORS_MAX: usize = 20;

/// Where a value was typed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of the file, counted from 1.
    Line(usize),
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
    /// Nowhere: the whole file, or a default.
    Whole,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Whole => f.write_str("configuration"),
        }
    }
}

/// The layers, merged.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The values, by section and key.
    pub values: Map<String, Value>,
    /// Where each dotted key was typed; `hooks[0].name` for the entries of a list.
    pub origins: BTreeMap<String, Origin>,
    /// What could not be read at all, and so is not among the values.
    pub problems: Vec<Problem>,
}

impl Tree {
    /// Reads the text of a file, and goes on after a line that is not TOML, so that all of them are named at once.
    pub fn parse(text: &str) -> Self {
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut tree = Self::default();
        for error in errors.iter().take(SYNTAX_ERRORS_MAX) {
            let origin = error
                .span()
                .map_or(Origin::Whole, |span| Origin::Line(line_of(text, span.start)));
            // The parser stumbles more than once over the same line; the first time says why.
            if tree.problems.iter().all(|problem| problem.origin != origin) {
                let message = not_toml(&error.message().replace('\n', ", "));
                tree.problems.push(Problem {
                    key: None,
                    origin,
                    message,
                });
            }
        }
        tree.values = tree.table(document.get_ref(), "", text);
        tree
    }

    fn table(&mut self, table: &DeTable<'_>, path: &str, text: &str) -> Map<String, Value> {
        let mut map = Map::new();
        for (name, value) in table {
            let origin = Origin::Line(line_of(text, name.span().start));
            if name.get_ref().is_empty() {
                // The parser makes one up for a line that begins with `=`, and has said so.
                if self.problems.iter().all(|problem| problem.origin != origin) {
                    self.problems.push(Problem {
                        key: None,
                        origin,
                        message: "a name cannot be empty".into(),
                    });
                }
                continue;
            }
            let key = join(path, name.get_ref());
            self.origins.insert(key.clone(), origin);
            if let Some(value) = self.value(value.get_ref(), &key, text) {
                map.insert(name.get_ref().to_string(), value);
            }
        }
        map
    }

    fn out_of_range(&mut self, key: &str, number: &str) -> Option<Value> {
        self.problems.push(Problem {
            key: Some(key.to_owned()),
            origin: self.origin(key),
            message: format!(
                "the number {number} is out of range; `tidegate config --reference` shows one that fits"
            ),
        });
        None
    }

    fn value(&mut self, value: &DeValue<'_>, key: &str, text: &str) -> Option<Value> {
        Some(match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(whole) => whole.into(),
                Err(_) => return self.out_of_range(key, number.as_str()),
            },
            DeValue::Float(number) => {
                let parsed = number.as_str().parse::<f64>().ok();
                match parsed.and_then(serde_json::Number::from_f64) {
                    Some(number) => Value::Number(number),
                    None => return self.out_of_range(key, number.as_str()),
                }
            }
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(date) => Value::String(date.to_string()),
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let key = format!("{key}[{index}]");
                    self.origins
                        .insert(key.clone(), Origin::Line(line_of(text, item.span().start)));
                    list.extend(self.value(item.get_ref(), &key, text));
                }
                Value::Array(list)
            }
            DeValue::Table(table) => Value::Object(self.table(table, key, text)),
        })
    }

    /// Lays the environment over the file.
    pub fn lay_environment(&mut self, environment: &Environment) {
        for (variable, key, text) in environment.overrides() {
            self.lay(&key, text, &Origin::Variable(variable.to_owned()));
        }
    }

    /// Lays one value over what is there. A text that cannot be read as the setting's kind stays a text, so
    /// that the check can show it. A section is laid over setting by setting, and only as a table of TOML.
    pub fn lay(&mut self, key: &str, text: &str, origin: &Origin) {
        let setting = table::find(key);
        let value = from_text(setting.map(|setting| setting.kind), text);
        if setting.is_none() && table::is_section(key) {
            match value {
                Value::Object(map) => self.lay_section(key, map, origin),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    self.problems.push(Problem {
                        key: Some(key.to_owned()),
                        origin: origin.clone(),
                        message: "this is a section; give one of its settings, or a table such as `{ name = value }`"
                            .into(),
                    });
                }
            }
        } else {
            self.put(key, value, origin);
        }
    }

    fn lay_section(&mut self, path: &str, map: Map<String, Value>, origin: &Origin) {
        for (name, value) in map {
            let key = join(path, &name);
            match value {
                Value::Object(inner) if table::find(&key).is_none() => self.lay_section(&key, inner, origin),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => self.put(&key, value, origin),
            }
        }
    }

    fn put(&mut self, key: &str, value: Value, origin: &Origin) {
        self.origins.insert(key.to_owned(), origin.clone());
        let mut at = &mut self.values;
        let mut parts = table::segments(key).into_iter().peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                at.insert(part, value);
                return;
            }
            let next = at.entry(part).or_insert_with(|| Value::Object(Map::new()));
            if !next.is_object() {
                *next = Value::Object(Map::new());
            }
            let Value::Object(map) = next else { return };
            at = map;
        }
    }

    /// Where a key was typed; else the first of what stands in it, else what it stands in.
    pub fn origin(&self, key: &str) -> Origin {
        let within = |origin: &(&String, &Origin)| {
            let rest = origin.0.strip_prefix(key);
            rest.is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        let first_within = || {
            let mut after = self.origins.range(key.to_owned()..);
            after.find(within).map(|(_, origin)| origin)
        };
        let around = || {
            let ends = key.rmatch_indices(['.', '[']).map(|(end, _)| end);
            ends.filter_map(|end| key.get(..end))
                .find_map(|around| self.origins.get(around))
        };
        let found = self.origins.get(key).or_else(first_within).or_else(around);
        found.cloned().unwrap_or(Origin::Whole)
    }
}

/// What the parser says of a line, with a word on what to do about it.
fn not_toml(said: &str) -> String {
    let said = said.trim();
    let advice = if said.starts_with("duplicate key") {
        "; each section and each setting stands once: put what belongs together into the first one"
    } else {
        "; a line is `name = value` or `[section]`, and a text stands in quotes"
    };
    format!("this is not TOML: {said}{advice}")
}

/// The value that a text from the environment or a flag stands for.
fn from_text(kind: Option<Kind>, text: &str) -> Value {
    let as_toml = || {
        let value = DeValue::parse(text).ok()?;
        Tree::default().value(value.get_ref(), "", text)
    };
    match kind {
        Some(Kind::Text | Kind::Secret | Kind::Choice(_)) => Value::String(text.to_owned()),
        Some(Kind::Texts) if !text.trim_start().starts_with('[') => Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect(),
        ),
        Some(
            Kind::Texts
            | Kind::Whole
            | Kind::Count
            | Kind::Between(..)
            | Kind::Flag
            | Kind::Tables
            | Kind::SecretMap,
        )
        | None => as_toml().unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

/// A key below a path; a name that is no bare key of TOML stands in quotes.
pub fn join(path: &str, name: &str) -> String {
    let is_bare =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '*' | '[' | ']');
    let name = if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "'"))
    };
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_remembers_its_line() {
        let tree = Tree::parse("data_dir = \"x\"\n\n[engine]\nrounds_max = 3\n[[hooks]]\nname = \"a\"\n");
        assert_eq!(tree.origin("data_dir"), Origin::Line(1));
        assert_eq!(tree.origin("engine.rounds_max"), Origin::Line(4));
        assert_eq!(tree.origin("hooks[0].name"), Origin::Line(6));
    }

    #[test]
    fn a_broken_file_is_named_by_line() {
        let tree = Tree::parse("a = 1\nb = = 2\nc = 3\nd 4\n");
        let lines: Vec<_> = tree
            .problems
            .iter()
            .map(|problem| problem.origin.clone())
            .collect();
        assert_eq!(lines, [2, 4].map(Origin::Line), "{:?}", tree.problems);
        assert_eq!(tree.values["c"], 3, "what can be read is read");
        let tree = Tree::parse("[s]\ne = 5\n[s]\n");
        assert!(
            tree.problems[0].message.contains("stands once"),
            "{:?}",
            tree.problems
        );
    }

    #[test]
    fn a_section_is_laid_over_setting_by_setting() {
        let mut tree = Tree::parse("[engine]\nrounds_max = 3\ncalls_per_turn_max = 7\n");
        let origin = Origin::Variable("TIDEGATE_ENGINE".into());
        tree.lay("engine", "{ rounds_max = 4 }", &origin);
        assert_eq!(
            tree.values["engine"],
            serde_json::json!({"rounds_max": 4, "calls_per_turn_max": 7})
        );
        assert_eq!(tree.origin("engine.rounds_max"), origin);
        tree.lay("engine", "5", &origin);
        assert_eq!(tree.values["engine"]["rounds_max"], 4);
        assert_eq!(tree.problems[0].origin, origin);
    }

    #[test]
    fn later_layers_win() {
        let mut tree = Tree::parse("[engine]\nrounds_max = 3\n");
        tree.lay_environment(&Environment::from_pairs([("TIDEGATE_ENGINE__ROUNDS_MAX", "4")]));
        assert_eq!(tree.values["engine"]["rounds_max"], 4);
        tree.lay("engine.rounds_max", "5", &Origin::Flag("--set".into()));
        assert_eq!(tree.values["engine"]["rounds_max"], 5);
        assert_eq!(tree.origin("engine.rounds_max"), Origin::Flag("--set".into()));
    }

    #[test]
    fn texts_are_read_as_the_kind_asks() {
        assert_eq!(from_text(Some(Kind::Text), "12"), "12");
        assert_eq!(from_text(Some(Kind::Whole), "12"), 12);
        assert_eq!(from_text(Some(Kind::Whole), "twelve"), "twelve");
        assert_eq!(from_text(Some(Kind::Flag), "true"), true);
        assert_eq!(
            from_text(Some(Kind::Texts), "a, b"),
            serde_json::json!(["a", "b"])
        );
        assert_eq!(
            from_text(Some(Kind::Texts), "[\"a,b\"]"),
            serde_json::json!(["a,b"])
        );
    }
}

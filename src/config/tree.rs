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
}

impl Tree {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let document = DeTable::parse(text).map_err(|error| Problem {
            key: None,
            origin: error
                .span()
                .map_or(Origin::Whole, |span| Origin::Line(line_of(text, span.start))),
            message: format!("this is not TOML: {}", error.message().replace('\n', ", ")),
        })?;
        let mut tree = Self::default();
        tree.values = tree.table(document.get_ref(), "", text)?;
        Ok(tree)
    }

    fn table(&mut self, table: &DeTable<'_>, path: &str, text: &str) -> Result<Map<String, Value>, Problem> {
        let mut map = Map::new();
        for (name, value) in table {
            let key = join(path, name.get_ref());
            self.origins
                .insert(key.clone(), Origin::Line(line_of(text, name.span().start)));
            map.insert(
                name.get_ref().to_string(),
                self.value(value.get_ref(), &key, text)?,
            );
        }
        Ok(map)
    }

    fn value(&mut self, value: &DeValue<'_>, key: &str, text: &str) -> Result<Value, Problem> {
        let origin = self.origin(key);
        let out_of_range = |number: &str| Problem {
            key: Some(key.to_owned()),
            origin: origin.clone(),
            message: format!("the number {number} is out of range"),
        };
        Ok(match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| out_of_range(number.as_str()))?
                .into(),
            DeValue::Float(number) => number
                .as_str()
                .parse::<f64>()
                .ok()
                .and_then(serde_json::Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| out_of_range(number.as_str()))?,
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(date) => Value::String(date.to_string()),
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let key = format!("{key}[{index}]");
                    self.origins
                        .insert(key.clone(), Origin::Line(line_of(text, item.span().start)));
                    list.push(self.value(item.get_ref(), &key, text)?);
                }
                Value::Array(list)
            }
            DeValue::Table(table) => Value::Object(self.table(table, key, text)?),
        })
    }

    /// Lays the environment over the file.
    pub fn lay_environment(&mut self, environment: &Environment) {
        for (variable, key, text) in environment.overrides() {
            self.lay(&key, text, &Origin::Variable(variable.to_owned()));
        }
    }

    /// Lays one value over what is there. A text that cannot be read as the setting's kind stays a text, so
    /// that the check can show it.
    pub fn lay(&mut self, key: &str, text: &str, origin: &Origin) {
        let value = from_text(table::find(key).map(|setting| setting.kind), text);
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

    /// Where a key was typed.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Whole)
    }
}

/// The value that a text from the environment or a flag stands for.
fn from_text(kind: Option<Kind>, text: &str) -> Value {
    let as_toml = || {
        let value = DeValue::parse(text).ok()?;
        Tree::default().value(value.get_ref(), "", text).ok()
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
            | Kind::Number
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
        let tree =
            Tree::parse("data_dir = \"x\"\n\n[engine]\nrounds_max = 3\n[[hooks]]\nname = \"a\"\n").unwrap();
        assert_eq!(tree.origin("data_dir"), Origin::Line(1));
        assert_eq!(tree.origin("engine.rounds_max"), Origin::Line(4));
        assert_eq!(tree.origin("hooks[0].name"), Origin::Line(6));
    }

    #[test]
    fn a_broken_file_is_named_by_line() {
        let problem = Tree::parse("a = 1\nb = = 2\n").unwrap_err();
        assert_eq!(problem.origin, Origin::Line(2));
    }

    #[test]
    fn later_layers_win() {
        let mut tree = Tree::parse("[engine]\nrounds_max = 3\n").unwrap();
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

//! The world of the shell corpus, in memory, and the part of the gate that judges a line's files in it.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use tidegate_gate::{
    floors::{names_credential, names_startup_file},
    shell::{Access, Operand, OperandKind, Place, Policy, Verdict},
};

/// What becomes of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Allow,
    Ask(String),
    Refuse(String),
}

impl Outcome {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask(_) => "ask",
            Self::Refuse(_) => "refuse",
        }
    }
}

pub(crate) struct World {
    files: BTreeMap<String, bool>,
    place: Place,
}

impl World {
    pub(crate) fn read() -> Self {
        let fixture: Value = serde_json::from_str(&file("fixture.json")).unwrap();
        let files = fixture["files"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, content)| (path.trim_end_matches('/').to_owned(), content.is_null()))
            .collect();
        Self {
            files,
            place: Place::new(
                fixture["cwd"].as_str().unwrap(),
                fixture["home"].as_str().unwrap(),
            ),
        }
    }

    /// The files with what they hold; `None` is a folder.
    pub(crate) fn contents() -> Vec<(String, Option<String>)> {
        let fixture: Value = serde_json::from_str(&file("fixture.json")).unwrap();
        fixture["files"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, content)| {
                let content = match content {
                    Value::Null => None,
                    Value::String(text) => Some(text.clone()),
                    Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        Some(String::new())
                    }
                };
                (path.clone(), content)
            })
            .collect()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Judges a line: its verdict, then its files, then the mode.
    pub(crate) fn outcome(&self, policy: &Policy, command: &str, mode: &str, is_unattended: bool) -> Outcome {
        let analysis = policy.analyse(command, &self.place);
        let question = match analysis.verdict() {
            Verdict::Refused { floor, code, reason } => {
                return Outcome::Refuse(format!("{floor}/{code}: {reason}"));
            }
            Verdict::NeedsGrant { code, reason } => Some(format!("{code}: {reason}")),
            Verdict::ReadOnly => None,
        };
        let mut outside = None;
        for operand in analysis.operands() {
            match self.operand(operand) {
                Outcome::Allow => {}
                refused @ Outcome::Refuse(_) => return refused,
                Outcome::Ask(why) => outside = Some(why),
            }
        }
        match (question, outside) {
            (None, None) => Outcome::Allow,
            (Some(why), None) => match mode {
                "full-auto" => Outcome::Allow,
                "plan-only" => Outcome::Refuse(why),
                _ if is_unattended => Outcome::Refuse(why),
                _ => Outcome::Ask(why),
            },
            (_, Some(why)) if mode == "plan-only" => Outcome::Refuse(why),
            (_, Some(_)) if mode == "full-auto" => Outcome::Allow,
            (_, Some(why)) => Outcome::Ask(why),
        }
    }

    /// One operand, with a pattern expanded.
    fn operand(&self, operand: &Operand) -> Outcome {
        match operand.kind {
            OperandKind::Dynamic => Outcome::Ask(format!("dynamic {}", operand.text)),
            OperandKind::Literal => Self::path(&normal(&operand.text), operand),
            OperandKind::Glob => {
                let found: Vec<&String> = self
                    .files
                    .keys()
                    .filter(|path| matches(&operand.text, path))
                    .collect();
                found
                    .into_iter()
                    .map(|path| Self::path(path, operand))
                    .find(|outcome| *outcome != Outcome::Allow)
                    .unwrap_or(Outcome::Allow)
            }
        }
    }

    fn path(path: &str, operand: &Operand) -> Outcome {
        let below = path.strip_prefix("/w/proj").unwrap_or(path);
        if names_credential(below).is_some() {
            return Outcome::Refuse(format!("credential {path}"));
        }
        if operand.access == Access::Write && names_startup_file(below).is_some() {
            return Outcome::Refuse(format!("startup {path}"));
        }
        if path == "/w/proj" || path.starts_with("/w/proj/") {
            Outcome::Allow
        } else if operand.access == Access::Write {
            Outcome::Refuse(format!("written outside {path}"))
        } else {
            Outcome::Ask(format!("outside {path}"))
        }
    }
}

fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a pattern of the shell finds a path; brackets are not needed here.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len()
        && pattern.iter().zip(path).all(|(pattern, name)| {
            (pattern.starts_with('.') || !name.starts_with('.'))
                && matches_name(pattern.as_bytes(), name.as_bytes())
        })
}

fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            matches_name(rest, name)
                || name
                    .split_first()
                    .is_some_and(|(_, name)| matches_name(pattern, name))
        }
        ([b'?', pattern @ ..], [_, name @ ..]) => matches_name(pattern, name),
        ([b'\\', letter, pattern @ ..], [first, name @ ..]) if letter == first => matches_name(pattern, name),
        ([letter, pattern @ ..], [first, name @ ..]) if letter == first => matches_name(pattern, name),
        _ => false,
    }
}

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/corpora")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of the corpus.
pub(crate) fn corpus() -> Vec<Value> {
    file("shell.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The command of a line, made where it is given as a recipe.
pub(crate) fn command(input: &Value) -> String {
    if let Some(text) = input.as_str() {
        return text.to_owned();
    }
    let recipe = &input["gen"];
    let part = |name: &str| recipe[name].as_str().unwrap_or_default().to_owned();
    let repeated = |name: &str| {
        let count = recipe[name][1].as_u64().unwrap_or_default();
        recipe[name][0]
            .as_str()
            .unwrap_or_default()
            .repeat(usize::try_from(count).unwrap())
    };
    [
        part("prefix"),
        repeated("repeat"),
        part("middle"),
        repeated("suffix_repeat"),
        part("suffix"),
    ]
    .concat()
}

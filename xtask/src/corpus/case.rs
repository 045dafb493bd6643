//! A line of a corpus, read as freely as its meaning allows.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The most bytes that a generated text may have.
pub(super) const GENERATED_BYTES_MAX: usize = 512 << 20;

/// One line of a corpus.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Case {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) layer: String,
    #[serde(default)]
    pub(super) kind: String,
    pub(super) input: Value,
    #[serde(default)]
    pub(super) config: Map<String, Value>,
    pub(super) expect: Outcome,
    #[serde(default)]
    accept: Vec<Outcome>,
    #[serde(default)]
    pub(super) tier: Tier,
    #[serde(default)]
    pub(super) why: String,
    #[serde(default)]
    pub(super) check: Map<String, Value>,
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Allow,
    Ask,
    Refuse,
    Transform,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allow => "allowed",
            Self::Ask => "asked about",
            Self::Refuse => "refused",
            Self::Transform => "changed",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tier {
    Wide,
    Stretch,
    /// Also every tier of a name that is not known: what must hold in doubt.
    #[default]
    #[serde(other)]
    Core,
}

/// A line, or what is wrong with it.
#[derive(Debug)]
pub(super) enum Line {
    Case(Box<Case>),
    Broken { number: usize, problem: String },
}

impl Case {
    /// Whether an outcome counts as right. For `ask`, `refuse` is safe as well.
    pub(super) fn accepts(&self, outcome: Outcome) -> bool {
        if self.accept.is_empty() {
            outcome == self.expect || (self.expect == Outcome::Ask && outcome == Outcome::Refuse)
        } else {
            self.accept.contains(&outcome)
        }
    }

    /// The names in `config` that a harness does not know.
    pub(super) fn unknown_config(&self, known: &[&str]) -> Vec<String> {
        let names = self.config.keys();
        names
            .filter(|name| !known.contains(&name.as_str()))
            .map(|name| format!("config `{name}`"))
            .collect()
    }

    /// A list of texts in `config`.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        match self.config.get(name) {
            Some(Value::String(one)) => vec![one.clone()],
            Some(value) => strings(value),
            None => Vec::new(),
        }
    }

    /// A flag in `config`.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.config.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

/// Reads a file. A line that cannot be read is reported, and the others are run.
pub(super) fn read(file: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines: Vec<Line> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| match serde_json::from_str(line) {
            Ok(case) => Line::Case(Box::new(case)),
            Err(problem) => Line::Broken {
                number: number + 1,
                problem: problem.to_string(),
            },
        })
        .collect();
    if lines.is_empty() {
        bail!("the file holds no lines");
    }
    Ok(lines)
}

/// The texts of a list.
pub(super) fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A text, which may be written as a generator and hold `{rep:S:N}`. `None` where it is no text, or far too long.
pub(super) fn text(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(repetitions(text));
    }
    let generator = value.get("gen")?;
    let plain = |name: &str| generator[name].as_str().unwrap_or_default().to_owned();
    let repeated = |name: &str| -> Option<String> {
        let Some(pair) = generator.get(name) else {
            return Some(String::new());
        };
        let (piece, times) = (pair[0].as_str()?, usize::try_from(pair[1].as_u64()?).ok()?);
        (piece.len().checked_mul(times)? <= GENERATED_BYTES_MAX).then(|| piece.repeat(times))
    };
    let parts = [
        plain("prefix"),
        repeated("repeat")?,
        plain("middle"),
        repeated("suffix_repeat")?,
        plain("suffix"),
    ];
    Some(repetitions(&parts.concat()))
}

/// `{rep:S:N}` is S, N times.
pub(super) fn repetitions(text: &str) -> String {
    replace_each(text, "{rep:", |inside| {
        let (piece, times) = inside.rsplit_once(':')?;
        let times: usize = times.parse().ok()?;
        (piece.len().checked_mul(times)? <= GENERATED_BYTES_MAX).then(|| piece.repeat(times))
    })
}

/// Replaces each place that begins so and ends with a brace. One that cannot be read stays as it is.
pub(super) fn replace_each(text: &str, opening: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(opening) {
        filled.push_str(before);
        let read = after
            .split_once('}')
            .and_then(|(inside, after)| Some((value(inside)?, after)));
        if let Some((value, after)) = read {
            filled.push_str(&value);
            rest = after;
        } else {
            filled.push_str(opening);
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(line: &Value) -> Case {
        serde_json::from_value(line.clone()).unwrap()
    }

    #[test]
    fn a_generator_is_its_parts_in_order() {
        let value = json!({"gen": {"prefix": "<", "repeat": ["ab", 2], "middle": "|", "suffix_repeat": ["x", 3], "suffix": ">"}});
        assert_eq!(text(&value).as_deref(), Some("<abab|xxx>"));
        assert_eq!(
            text(&json!("a{rep:b:3}c{rep:x:no}")).as_deref(),
            Some("abbbc{rep:x:no}")
        );
        for odd in [
            json!(1),
            json!({"gen": {"repeat": ["a"]}}),
            json!({"gen": {"repeat": ["a", 1_u64 << 40]}}),
        ] {
            assert_eq!(text(&odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_accepted_follows_the_line() {
        let asked = case(&json!({"input": "x", "expect": "ask"}));
        assert!(
            asked.accepts(Outcome::Refuse) && asked.accepts(Outcome::Ask) && !asked.accepts(Outcome::Allow)
        );
        let told = case(&json!({"input": "x", "expect": "refuse", "accept": ["allow"], "tier": "new"}));
        assert!(told.accepts(Outcome::Allow) && !told.accepts(Outcome::Refuse));
        assert_eq!(told.tier, Tier::Core);
    }
}

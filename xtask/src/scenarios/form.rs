//! A scenario as it stands in a file. What is missing has a meaning, what is not known is said, and a line that makes no
//! sense is that line's problem alone.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tidegate_core::clock::Timestamp;

/// States that the memory API gives, and `absent`.
const STATES: [&str; 7] = [
    "absent",
    "candidate",
    "stable",
    "contested",
    "superseded",
    "expired",
    "retracted",
];

/// What a line of another form would be read as.
type Rest = BTreeMap<String, Value>;

/// One scenario.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Scenario {
    /// Its name and its class are taken from the line even where it is no scenario.
    #[serde(default, rename = "id")]
    _id: Value,
    #[serde(default, rename = "class")]
    _class: Value,
    /// By which rules.
    #[serde(default)]
    pub(super) policy: Policy,
    /// What happens.
    pub(super) steps: Vec<Step>,
    /// What is believed at the end.
    #[serde(default)]
    pub(super) expect: Vec<Expected>,
    /// The most facts of one person.
    #[serde(default)]
    pub(super) max_rows: Option<usize>,
    /// Texts that may be nowhere.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) no_trace: Vec<String>,
    /// Kinds of which at most one value is believed.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) single_stable: Vec<String>,
    /// Texts that the model is told of the person.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) briefing_has: Vec<String>,
    /// Texts that it is not.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) briefing_lacks: Vec<String>,
    /// People who must not be taken for each other.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) users_differ: Vec<String>,
    /// People of whom nothing is kept.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) export_empty: Vec<String>,
    /// For people; read so that it is not taken for something that was not looked at.
    #[serde(default, rename = "note")]
    _note: Value,
    #[serde(flatten)]
    pub(super) rest: Rest,
}

/// What the operator has set.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Policy {
    /// On how many days something must be said; what each kind says where it is missing.
    #[serde(default)]
    pub(super) days_to_stable: Option<u32>,
    /// The kinds of which only what is said outright counts; what each kind says where it is missing.
    #[serde(default)]
    pub(super) explicit_only: Option<Vec<String>>,
    #[serde(flatten)]
    pub(super) rest: Rest,
}

/// One thing that happens.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Step {
    /// Somebody says something and is answered.
    Chat(Chat),
    /// The daemon ends and starts again.
    Restart {
        /// When.
        at: Option<Timestamp>,
    },
    /// Somebody has one fact forgotten.
    Forget {
        /// When.
        at: Option<Timestamp>,
        /// Whose.
        #[serde(default)]
        user: Option<String>,
        /// Of which kind.
        kind: String,
        /// With which value.
        value: Value,
    },
    /// Somebody has everything erased.
    EraseUser {
        /// When.
        at: Option<Timestamp>,
        /// Who.
        #[serde(default)]
        user: Option<String>,
    },
}

/// A turn.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Chat {
    /// When.
    #[serde(default)]
    pub(super) at: Option<Timestamp>,
    /// Who.
    #[serde(default)]
    pub(super) user: Option<String>,
    /// What the caller sends.
    pub(super) messages: Vec<Value>,
    /// What the model answers.
    #[serde(default)]
    pub(super) assistant: Option<String>,
    /// Passages that are found for it.
    #[serde(default)]
    pub(super) retrieved: Vec<Passage>,
    /// What tools return.
    #[serde(default)]
    pub(super) tool_results: Vec<Passage>,
    /// The facts that the model for memory names.
    #[serde(default)]
    pub(super) extractor: Option<Value>,
    /// Its literal reply, instead.
    #[serde(default)]
    pub(super) extractor_raw: Option<String>,
    #[serde(flatten)]
    pub(super) rest: Rest,
}

/// A text from outside.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Passage {
    /// Where it stands.
    #[serde(default, alias = "name")]
    pub(super) source: String,
    /// The text.
    #[serde(default, alias = "content")]
    pub(super) text: String,
}

/// What is believed of somebody.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Expected {
    /// Whom.
    #[serde(default)]
    pub(super) user: Option<String>,
    /// Of which kind.
    pub(super) kind: String,
    /// With which value.
    #[serde(deserialize_with = "text")]
    pub(super) value: String,
    /// How far.
    pub(super) state: String,
}

impl Scenario {
    /// Reads one line.
    pub(super) fn read(line: &str) -> Result<Self> {
        let scenario: Self = serde_json::from_str(line).context("the line is no scenario")?;
        if let Some(expected) = scenario
            .expect
            .iter()
            .find(|expected| !STATES.contains(&expected.state.as_str()))
        {
            bail!(
                "there is no state `{}`; there are {}",
                expected.state,
                STATES.join(", ")
            );
        }
        Ok(scenario)
    }

    /// The people in it, each once, in the order in which they come.
    pub(super) fn users(&self) -> Vec<Option<String>> {
        let mut users = Vec::new();
        let acting = self.steps.iter().filter_map(|step| match step {
            Step::Chat(chat) => Some(&chat.user),
            Step::Forget { user, .. } | Step::EraseUser { user, .. } => Some(user),
            Step::Restart { .. } => None,
        });
        for user in acting.chain(self.expect.iter().map(|expected| &expected.user)) {
            if !users.contains(user) {
                users.push(user.clone());
            }
        }
        users
    }

    /// Members that are not known here: what they ask for was not looked at.
    pub(super) fn unknown(&self) -> Vec<String> {
        let of_steps = self.steps.iter().filter_map(|step| match step {
            Step::Chat(chat) => Some(&chat.rest),
            Step::Restart { .. } | Step::Forget { .. } | Step::EraseUser { .. } => None,
        });
        let mut names: Vec<String> = [&self.rest, &self.policy.rest]
            .into_iter()
            .chain(of_steps)
            .flat_map(|rest| rest.keys().cloned())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

impl Chat {
    /// What the model for memory replies.
    pub(super) fn extraction(&self) -> String {
        match (&self.extractor_raw, &self.extractor) {
            (Some(raw), _) => raw.clone(),
            (None, Some(facts)) => json!({"facts": facts}).to_string(),
            (None, None) => json!({"facts": []}).to_string(),
        }
    }
}

impl Step {
    /// When it happens, where the scenario says so.
    pub(super) fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Chat(chat) => chat.at,
            Self::Restart { at } | Self::Forget { at, .. } | Self::EraseUser { at, .. } => *at,
        }
    }
}

/// A value as text, whether it stands there as a text or as a number.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(shown(&Value::deserialize(deserializer)?))
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => Vec::new(),
        Value::Array(values) => values.iter().map(shown).collect(),
        value @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            vec![shown(&value)]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_wrong_with_it_and_what_was_not_looked_at() {
        for (line, problem) in [
            (r#"{"id": "a", "steps": [{"op": "teleport"}]}"#, "teleport"),
            (
                r#"{"id": "a", "steps": [{"op": "chat", "at": "soon", "messages": []}]}"#,
                "year",
            ),
            (r#"{"id": "a"}"#, "steps"),
            (
                r#"{"steps": [], "expect": [{"kind": "k", "value": "v", "state": "certain"}]}"#,
                "certain",
            ),
            ("no JSON", "scenario"),
        ] {
            let error = format!("{:#}", Scenario::read(line).unwrap_err());
            assert!(error.contains(problem), "{line}: {error}");
        }
        let line = r#"{"id": 7, "steps": [{"op": "chat", "messages": [], "mood": "good"}, {"op": "restart"},
            {"op": "erase_user", "user": "é:ü 😀"}],
            "expect": [{"kind": "grade_level", "value": 4, "state": "absent"}],
            "no_trace": "x", "policy": {"strict": true}, "later": 1}"#;
        let scenario = Scenario::read(line).unwrap();
        assert_eq!(scenario.users(), [None, Some("é:ü 😀".to_owned())]);
        assert_eq!(scenario.unknown(), ["later", "mood", "strict"]);
        assert_eq!(
            (scenario.expect[0].value.as_str(), scenario.no_trace.len()),
            ("4", 1)
        );
        let [Step::Chat(chat), ..] = scenario.steps.as_slice() else {
            panic!("no chat")
        };
        assert_eq!(chat.extraction(), r#"{"facts":[]}"#);
    }
}

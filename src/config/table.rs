//! Every setting, in one table. `tidegate config --reference`, the check of a file, the reading of the
//! environment and the hiding of secrets all follow from these rows; a test holds them equal to the options
//! that the code has.

use std::fmt;

use serde_json::Value;

mod rows;

pub use rows::SETTINGS;

/// What may be typed for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A credential: the text itself, `env:NAME` or `file:PATH`. Never shown.
    Secret,
    /// A number without a fraction, 0 or more.
    Whole,
    /// A number without a fraction, 1 or more.
    Count,
    /// A number from the one to the other.
    Between(i32, i32),
    /// Yes or no.
    Flag,
    /// A list of texts.
    Texts,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list of sections, each written as `[[key]]`.
    Tables,
    /// A section of the operator's own names, each with a secret.
    SecretMap,
}

impl Kind {
    /// Whether a value is of this kind.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text | Self::Secret => value.is_string(),
            Self::Whole => value.is_u64(),
            Self::Count => value.as_u64().is_some_and(|number| number > 0),
            Self::Between(min, max) => value
                .as_f64()
                .is_some_and(|number| (f64::from(min)..=f64::from(max)).contains(&number)),
            Self::Flag => value.is_boolean(),
            Self::Texts => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_string)),
            Self::Choice(names) => value.as_str().is_some_and(|text| names.contains(&text)),
            Self::Tables => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_object)),
            Self::SecretMap => value
                .as_object()
                .is_some_and(|map| map.values().all(Value::is_string)),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Secret => f.write_str("a text, `env:NAME` or `file:PATH`"),
            Self::Whole => f.write_str("a whole number"),
            Self::Count => f.write_str("a whole number, 1 or more"),
            Self::Between(min, max) => write!(f, "a number from {min} to {max}"),
            Self::Flag => f.write_str("true or false"),
            Self::Texts => f.write_str("a list of texts"),
            Self::Choice(names) => write!(f, "one of `{}`", names.join("`, `")),
            Self::Tables => f.write_str("a list of sections"),
            Self::SecretMap => f.write_str("a section of names with texts"),
        }
    }
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The dotted key; `hooks[].name` stands in each entry of the list `hooks`, `*` for a name of the operator's.
    pub key: &'static str,
    /// What may be typed.
    pub kind: Kind,
    /// A value to show where the default says nothing, in TOML.
    pub example: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

impl Setting {
    /// The last part of the key.
    pub fn name(&self) -> &'static str {
        self.key.rsplit_once('.').map_or(self.key, |(_, name)| name)
    }

    /// The section it stands in; empty at the top.
    pub fn section(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// The largest number that makes sense, by the unit in the name: about ten years, or as many of anything as
    /// no machine has. Above it sums of times and sizes would overflow.
    pub fn max(&self) -> u64 {
        const DAYS: u64 = 3_660;
        let name = self.name();
        if name.ends_with("_ms") {
            DAYS * 86_400_000
        } else if name.ends_with("_s") {
            DAYS * 86_400
        } else if name.contains("days") {
            DAYS
        } else {
            1 << 40
        }
    }

    /// Whether a value fits: of the right kind, and no larger than makes sense.
    pub fn accepts(&self, value: &Value) -> bool {
        self.kind.accepts(value) && value.as_u64().is_none_or(|number| number <= self.max())
    }

    /// What may be typed, as an error says it.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Whole => format!("a whole number, 0 to {}", self.max()),
            Kind::Count => format!("a whole number, 1 to {}", self.max()),
            kind @ (Kind::Text
            | Kind::Secret
            | Kind::Between(..)
            | Kind::Flag
            | Kind::Texts
            | Kind::Choice(_)
            | Kind::Tables
            | Kind::SecretMap) => kind.to_string(),
        }
    }

    /// A line as it could stand in the file.
    pub fn example_line(&self) -> String {
        match self.kind {
            Kind::Tables => format!("[[{}]]", self.key),
            Kind::SecretMap => format!("{} = {{ {} }}", self.name(), self.example),
            Kind::Text
            | Kind::Secret
            | Kind::Whole
            | Kind::Count
            | Kind::Between(..)
            | Kind::Flag
            | Kind::Texts
            | Kind::Choice(_) => format!("{} = {}", self.name(), self.example),
        }
    }
}

/// The parts of a dotted key. `hooks[0].name` is `hooks`, `[]`, `name`; a part with other letters than those of
/// a bare key stands in quotes, as in `models.aliases."gpt-4.1".model`.
pub fn segments(key: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut letters = key.chars();
    let mut end = |part: &mut String| {
        if !part.is_empty() {
            parts.push(std::mem::take(part));
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '.' => end(&mut part),
            '"' => part.extend(letters.by_ref().take_while(|letter| *letter != '"')),
            '[' => {
                end(&mut part);
                letters
                    .by_ref()
                    .take_while(|letter| *letter != ']')
                    .for_each(drop);
                part.push_str("[]");
                end(&mut part);
            }
            _ => part.push(letter),
        }
    }
    end(&mut part);
    parts
}

/// The row of a key. `*` in a row stands for a name of the operator's.
pub fn find(key: &str) -> Option<&'static Setting> {
    let parts = segments(key);
    SETTINGS.iter().find(|setting| {
        let row = segments(setting.key);
        row.len() == parts.len() && begins(&row, &parts)
    })
}

/// Whether rows stand below this key.
pub fn is_section(key: &str) -> bool {
    let parts = segments(key);
    SETTINGS.iter().any(|setting| {
        let row = segments(setting.key);
        row.len() > parts.len() && begins(&row, &parts)
    })
}

fn begins(row: &[String], parts: &[String]) -> bool {
    row.iter().zip(parts).all(|(row, part)| row == part || row == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_parts() {
        for (key, parts) in [
            ("data_dir", vec!["data_dir"]),
            ("hooks[12].name", vec!["hooks", "[]", "name"]),
            ("hooks[].name", vec!["hooks", "[]", "name"]),
            (
                "models.aliases.\"gpt-4.1\".model",
                vec!["models", "aliases", "gpt-4.1", "model"],
            ),
            ("", vec![]),
            ("a.\"b", vec!["a", "b"]),
        ] {
            assert_eq!(segments(key), parts, "{key}");
        }
    }

    #[test]
    fn names_of_the_operators_own_have_rows() {
        assert_eq!(
            find("models.providers.mine.base_url").unwrap().key,
            "models.providers.*.base_url"
        );
        assert!(find("models.providers.mine").is_none());
        assert!(is_section("models.providers.mine"));
        assert!(!is_section("models.providers.mine.base_url"));
    }
}

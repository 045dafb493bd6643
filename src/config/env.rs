//! The only place that reads the environment: one snapshot at the start, plain data from then on.

use std::collections::BTreeMap;

/// Every variable of ours begins with this.
pub const PREFIX: &str = "TIDEGATE_";

/// Variables of ours that are no setting of the file.
pub const NOT_SETTINGS: &[&str] = &[
    "TIDEGATE_CONFIG",
    "TIDEGATE_BOOTSTRAP_KEY",
    // A client's key, as the documentation has people keep it beside the commands of the server.
    "TIDEGATE_KEY",
    super::disposable::VARIABLE,
    #[cfg(feature = "testing")]
    crate::testing::CLOCK_VARIABLE,
];

/// Short names of settings that are set often: the variable, and the setting it stands for.
pub const SHORT_NAMES: [(&str, &str); 1] = [("TIDEGATE_BIND", "server.bind")];

/// The environment as it was when the process began. Never printed: it holds secrets.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

impl Environment {
    /// Takes the snapshot. Variables that are not UTF-8 are left out.
    pub fn from_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// An environment of exactly these variables.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    /// The variable's value; `None` where it is unset or empty, which mean the same here.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.trim().is_empty())
    }

    /// The variables that stand for a setting: name, dotted key, value. `TIDEGATE_SERVER__BIND` is
    /// `server.bind`; one underscore belongs to the name, two part section and key.
    pub fn overrides(&self) -> Vec<(&str, String, &str)> {
        self.0
            .iter()
            .filter(|(name, _)| !NOT_SETTINGS.contains(&name.as_str()))
            .filter_map(|(name, value)| {
                let rest = name.strip_prefix(PREFIX)?;
                let key = SHORT_NAMES.iter().find(|(short, _)| short == name).map_or_else(
                    || rest.to_lowercase().replace("__", "."),
                    |(_, key)| (*key).to_owned(),
                );
                Some((name.as_str(), key, value.as_str()))
            })
            .collect()
    }
}

/// The variable that overrides a setting, for the reference.
pub fn variable_of(key: &str) -> String {
    SHORT_NAMES
        .iter()
        .find(|(_, setting)| *setting == key)
        .map_or_else(
            || format!("{PREFIX}{}", key.to_uppercase().replace('.', "__")),
            |(short, _)| (*short).to_owned(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_underscores_part_section_and_key() {
        let environment = Environment::from_pairs([
            ("TIDEGATE_ENGINE__ROUNDS_MAX", "3"),
            ("TIDEGATE_BIND", "0.0.0.0:1"),
            ("TIDEGATE_DATA_DIR", "/srv"),
            ("TIDEGATE_CONFIG", "x.toml"),
            ("TIDEGATE_KEY", "tg_1"),
            ("HOME", "/root"),
        ]);
        let keys: Vec<_> = environment
            .overrides()
            .into_iter()
            .map(|(_, key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(
            keys,
            ["server.bind=0.0.0.0:1", "data_dir=/srv", "engine.rounds_max=3"]
        );
    }

    #[test]
    fn an_empty_variable_is_unset() {
        let environment = Environment::from_pairs([("A", " "), ("B", "b")]);
        assert_eq!(environment.get("A"), None);
        assert_eq!(environment.get("B"), Some("b"));
        assert!(!format!("{environment:?}").contains('b') || !format!("{environment:?}").contains("\"b\""));
    }

    #[test]
    fn a_setting_names_its_variable() {
        assert_eq!(variable_of("server.bind"), "TIDEGATE_BIND");
        assert_eq!(variable_of("engine.rounds_max"), "TIDEGATE_ENGINE__ROUNDS_MAX");
        assert_eq!(variable_of("data_dir"), "TIDEGATE_DATA_DIR");
    }
}

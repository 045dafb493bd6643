use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::config::table::{Kind, SETTINGS};

/// The dotted keys of every leaf, as the table writes them.
fn leaves(value: &Value, path: &str, keys: &mut BTreeSet<String>) {
    if table::find(path).is_some() {
        keys.insert(path.to_owned());
        return;
    }
    match value {
        // The entries of these are under names of the operator's, and stand in `entries`.
        Value::Object(map) if map.is_empty() && table::is_section(path) => {}
        Value::Object(map) => {
            for (name, value) in map {
                leaves(value, &tree::join(path, name), keys);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            keys.insert(path.to_owned());
        }
    }
}

/// The defaults of an entry of every list of sections, and of every section under a name of the operator's.
fn entries() -> Vec<(&'static str, Value)> {
    let mut provider = serde_json::to_value(tidegate_llm::ProviderOptions::default()).unwrap();
    provider["api_key"] = "".into();
    let alias = tidegate_llm::Target {
        provider: String::new(),
        model: String::new(),
    };
    vec![
        (
            "hooks[]",
            serde_json::to_value(crate::hooks::Options::default()).unwrap(),
        ),
        (
            "kb.authority[]",
            serde_json::to_value(crate::app::knowledge::AuthorityRow::default()).unwrap(),
        ),
        ("models.providers.*", provider),
        ("models.aliases.*", serde_json::to_value(alias).unwrap()),
        (
            "models.prices.*",
            serde_json::to_value(tidegate_core::usage::Price::default()).unwrap(),
        ),
    ]
}

#[test]
fn the_table_and_the_options_are_the_same_set() {
    let mut in_code = BTreeSet::new();
    leaves(
        &serde_json::to_value(Config::default()).unwrap(),
        "",
        &mut in_code,
    );
    for (path, entry) in entries() {
        leaves(&entry, path, &mut in_code);
    }
    let in_table: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.key.to_owned()).collect();
    let missing_rows: Vec<_> = in_code.difference(&in_table).collect();
    let missing_fields: Vec<_> = in_table.difference(&in_code).collect();
    assert!(
        missing_rows.is_empty(),
        "settings without a row: {missing_rows:?}"
    );
    assert!(
        missing_fields.is_empty(),
        "rows without a setting: {missing_fields:?}"
    );
    assert_eq!(in_table.len(), SETTINGS.len(), "a row stands twice");
}

#[test]
fn every_default_and_example_is_of_its_kind() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    for setting in SETTINGS {
        let default = setting
            .key
            .split('.')
            .try_fold(&defaults, |value, part| value.get(part));
        if let Some(default) = default.filter(|value| !value.is_null()) {
            assert!(setting.kind.accepts(default), "{}: {default}", setting.key);
        }
        if setting.kind != Kind::Tables {
            let mut tree = Tree::parse(&setting.example_line());
            assert!(
                setting.kind.accepts(&tree.values.remove(setting.name()).unwrap()),
                "{}",
                setting.key
            );
        }
        assert!(setting.doc.ends_with('.'), "{}", setting.key);
    }
}

/// Settings whose default says less than a value somebody may type.
const TELLING: &[&str] = &["home", "data_dir", "time_zone", "kb.ignore", "logs.console"];

#[test]
fn an_example_is_the_default_where_there_is_one() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    let mut differ = Vec::new();
    for setting in SETTINGS {
        let mut parts = setting.key.split('.');
        let default = parts.try_fold(&defaults, |value, part| value.get(part));
        let Some(default) = default.filter(|value| !value.is_null()) else {
            continue;
        };
        // Nothing, or no bound: the example shows what a bound looks like.
        let is_none = default.as_array().is_some_and(Vec::is_empty)
            || default == ""
            || default.as_f64().is_some_and(|number| number.abs() < f64::EPSILON);
        if is_none || setting.kind == Kind::Tables || TELLING.contains(&setting.key) {
            continue;
        }
        let mut tree = Tree::parse(&setting.example_line());
        let example = tree.values.remove(setting.name()).unwrap();
        let is_same = match (example.as_f64(), default.as_f64()) {
            (Some(example), Some(default)) => example.total_cmp(&default).is_eq(),
            _ => example == *default,
        };
        if !is_same {
            differ.push(format!("{}: example {example}, default {default}", setting.key));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn the_reference_is_a_file_that_changes_nothing() {
    let text = reference();
    let mut tree = Tree::parse(&text);
    assert_eq!(check::check(&mut tree), Findings::default());
    let config: Config = serde_json::from_value(Value::Object(tree.values)).unwrap();
    assert_eq!(config, Config::default());
    for setting in SETTINGS {
        assert!(text.contains(setting.doc), "{}", setting.key);
    }
    let uncommented = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(uncommented > 20);
}

fn file(text: &str) -> (tempfile::TempDir, Flags) {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .open(&path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let flags = Flags {
        file: Some(path),
        settings: Vec::new(),
    };
    (folder, flags)
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let (_folder, mut flags) =
        file("[engine]\nrounds_max = 3\ncalls_per_turn_max = 7\n[server]\nbind = ':1'\n");
    let environment = Environment::from_pairs([
        ("TIDEGATE_ENGINE__ROUNDS_MAX", "4"),
        ("TIDEGATE_BIND", ":2"),
        ("TIDEGATE_SERVER__ALLOWED_HOSTS", "a.example, b.example"),
    ]);
    flags
        .settings
        .push(("--bind".into(), "server.bind".into(), ":3".into()));
    let config = load(&flags, &environment).unwrap().config;
    assert_eq!(config.engine.rounds_max, 4);
    assert_eq!(config.engine.calls_per_turn_max, 7);
    assert_eq!(config.server.bind, ":3");
    assert_eq!(config.server.allowed_hosts, ["a.example", "b.example"]);
    assert_eq!(
        config.engine.calls_per_round_max,
        Config::default().engine.calls_per_round_max
    );
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let flags = Flags {
        file: Some("/no/such/file.toml".into()),
        settings: Vec::new(),
    };
    let error = load(&flags, &Environment::default()).unwrap_err().to_string();
    assert!(
        error.contains("/no/such/file.toml") && error.contains("--config"),
        "{error}"
    );
}

#[test]
fn a_mistake_in_the_environment_names_its_variable() {
    let environment = Environment::from_pairs([("TIDEGATE_ENGINE__ROUNDS_MAX", "many")]);
    let (_folder, flags) = file("");
    let error = load(&flags, &environment).unwrap_err().to_string();
    assert!(
        error.contains("TIDEGATE_ENGINE__ROUNDS_MAX") && error.contains("whole number"),
        "{error}"
    );
}

#[test]
fn an_unknown_variable_of_ours_warns() {
    let environment = Environment::from_pairs([("TIDEGATE_ENGINE__ROUND_MAX", "3")]);
    let (_folder, flags) = file("");
    let loaded = load(&flags, &environment).unwrap();
    assert!(
        loaded.findings.warnings[0]
            .to_string()
            .contains("engine.rounds_max"),
        "{:?}",
        loaded.findings.warnings
    );
}

#[test]
fn hooks_are_read_and_shown() {
    let (_folder, flags) = file(
        "[[hooks]]\nname = 'a'\nwhen = 'after_tool'\ncommand = ['true']\n[[hooks]]\nname = 'b'\nwhenn = 'x'\n",
    );
    let loaded = load(&flags, &Environment::default()).unwrap();
    assert_eq!(loaded.config.hooks.len(), 2);
    assert_eq!(loaded.config.hooks[0].when, crate::hooks::When::AfterTool);
    assert!(
        loaded.findings.warnings[0]
            .to_string()
            .starts_with("line 7: `hooks[1].whenn`"),
        "{:?}",
        loaded.findings.warnings
    );
    assert!(loaded.shown().contains("[[hooks]]"));
}

#[test]
fn what_is_shown_can_be_read_again() {
    let (_folder, flags) = file("data_dir = 'x'\n[server]\nallowed_hosts = ['a']\n");
    let shown = load(&flags, &Environment::default()).unwrap().shown();
    let (_folder, flags) = file(&shown);
    let again = load(&flags, &Environment::default()).unwrap();
    assert_eq!(again.config.data_dir, "x");
    assert_eq!(json!(again.config.server.allowed_hosts), json!(["a"]));
    assert!(again.findings.warnings.is_empty());
}

#[test]
fn providers_are_read_and_their_keys_hidden() {
    let (_folder, flags) = file(
        "[models.providers.mine]\nbase_url = 'http://h/v1'\napi_key = 'sk-literal'\nheaders = { x-a = 'sk-header' }\n\
         [models.aliases.\"gpt-4.1\"]\nprovider = 'mine'\nmodel = 'm'\n",
    );
    let loaded = load(&flags, &Environment::default()).unwrap();
    assert!(
        loaded.findings.warnings.is_empty(),
        "{:?}",
        loaded.findings.warnings
    );
    assert_eq!(loaded.config.api_keys["mine"], "sk-literal");
    assert_eq!(loaded.config.models.aliases["gpt-4.1"].model, "m");
    let shown = loaded.shown();
    assert!(
        shown.contains("api_key = \"(hidden)\"") && !shown.contains("sk-"),
        "{shown}"
    );
    assert!(shown.contains("[models.aliases.\"gpt-4.1\"]"), "{shown}");
}

//! Holds what was typed against the table of settings: unknown names warn, wrong types and numbers are errors.

use serde_json::{Map, Value};

use super::{
    env,
    error::{Findings, Problem},
    guess,
    table::{self, Kind, Setting},
    tree::{Origin, Tree, join},
};

/// Checks the tree, and takes out of it what no setting knows and what is wrong, so that the rest can be read.
pub fn check(tree: &mut Tree) -> Findings {
    let mut findings = Findings::default();
    for problem in std::mem::take(&mut tree.problems) {
        findings.error(problem);
    }
    let mut values = std::mem::take(&mut tree.values);
    walk(tree, &mut values, "", &mut findings);
    tree.values = values;
    findings
}

fn walk(tree: &Tree, map: &mut Map<String, Value>, path: &str, findings: &mut Findings) {
    map.retain(|name, value| {
        let key = join(path, name);
        if let Some(setting) = table::find(&key) {
            return fits(tree, setting, &key, value, findings);
        }
        if !table::is_section(&key) {
            findings.warnings.push(unknown(tree, &key));
            return false;
        }
        if let Value::Object(inner) = value {
            walk(tree, inner, &key, findings);
            return true;
        }
        findings.error(Problem {
            key: Some(key.clone()),
            origin: tree.origin(&key),
            message: format!("expected a section, as in `[{key}]`, and not {}", name_of(value)),
        });
        false
    });
}

/// Whether a value fits its setting.
fn fits(tree: &Tree, setting: &Setting, key: &str, value: &mut Value, findings: &mut Findings) -> bool {
    if setting.kind == Kind::Tables
        && let Value::Array(items) = value
    {
        for (index, item) in items.iter_mut().enumerate() {
            let key = format!("{key}[{index}]");
            match item {
                Value::Object(map) => walk(tree, map, &key, findings),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    findings.error(wrong(tree, setting, &key, item));
                    // Its place is kept, so that the numbers of the others stay right.
                    *item = Value::Object(Map::new());
                }
            }
        }
        return true;
    }
    let fits = setting.accepts(value);
    if !fits {
        findings.error(wrong(tree, setting, key, value));
    }
    fits
}

/// The error of a value that does not fit its setting.
pub fn wrong(tree: &Tree, setting: &Setting, key: &str, value: &Value) -> Problem {
    Problem {
        key: Some(key.to_owned()),
        origin: tree.origin(key),
        message: format!(
            "expected {}, found {}; an example: `{}`",
            setting.expected(),
            if matches!(setting.kind, Kind::Secret | Kind::SecretMap) {
                name_of(value).to_owned()
            } else {
                shown(value)
            },
            setting.example_line()
        ),
    }
}

fn unknown(tree: &Tree, key: &str) -> Problem {
    let origin = tree.origin(key);
    let nearest = guess::nearest(key).map(|name| match &origin {
        Origin::Variable(_) if !name.contains(['[', '"']) => {
            format!("{} (`{name}`)", env::variable_of(&name))
        }
        Origin::Variable(_) | Origin::Line(_) | Origin::Flag(_) | Origin::Whole => format!("`{name}`"),
    });
    Problem {
        key: Some(key.to_owned()),
        origin,
        message: match nearest {
            Some(name) => format!("no such setting; did you mean {name}?"),
            None => "no such setting; `tidegate config --reference` lists them all".into(),
        },
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a section",
    }
}

fn shown(value: &Value) -> String {
    /// Characters of a wrong value that an error repeats.
    const SHOWN_CHARS: usize = 40;
    match value {
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) if text.chars().count() <= SHOWN_CHARS => format!("the text `{text}`"),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => name_of(value).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Findings {
        check(&mut Tree::parse(text))
    }

    #[test]
    fn an_unknown_name_warns_with_the_nearest_and_its_line() {
        for (text, nearest, line) in [
            ("[engine]\nround_max = 3\n", "engine.rounds_max", 2),
            ("\n\ndatadir = 'x'\n", "data_dir", 3),
            ("rounds_max = 3\n", "engine.rounds_max", 1),
        ] {
            let found = findings(text);
            assert!(found.errors.is_empty());
            let shown = found.warnings[0].to_string();
            assert!(shown.contains(&format!("did you mean `{nearest}`")), "{shown}");
            assert!(shown.contains(&format!("line {line}:")), "{shown}");
        }
    }

    #[test]
    fn a_wrong_type_names_key_line_type_and_example() {
        let found = findings("[engine]\nrounds_max = \"ten\"\n");
        let shown = found.errors[0].to_string();
        for part in [
            "line 2",
            "engine.rounds_max",
            "a whole number",
            "the text `ten`",
            "rounds_max = 10",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn a_section_is_a_section() {
        let found = findings("engine = 3\n");
        assert!(found.errors[0].to_string().contains("[engine]"));
    }

    #[test]
    fn unknown_names_are_taken_out() {
        let mut tree =
            Tree::parse("[engine]\nnonsense_altogether = 3\nrounds_max = 4\ncalls_per_turn_max = 0\n");
        check(&mut tree);
        assert_eq!(
            serde_json::Value::Object(tree.values),
            serde_json::json!({"engine": {"rounds_max": 4}})
        );
    }

    #[test]
    fn a_number_has_bounds() {
        for (text, bound) in [
            ("[engine]\nrounds_max = 0\n", "1 to"),
            (
                "[engine]\nturn_timeout_ms = 9223372036854775807\n",
                "1 to 316224000000",
            ),
            ("[models]\nretries_max = -1\n", "0 to"),
            ("[models]\nretry_jitter_ratio = 1.5\n", "from 0 to 1"),
            ("[routing]\nembedding_threshold = 80\n", "from -10 to 10"),
            ("[retention]\nruns_days = 4000\n", "0 to 3660"),
            ("[engine]\nrounds_max = 99999999999999999999\n", "out of range"),
            ("[routing]\nnear_miss_margin = inf\n", "out of range"),
        ] {
            let found = findings(text);
            assert_eq!(found.errors.len(), 1, "{text}: {found}");
            assert!(found.to_string().contains(bound), "{text}: {found}");
        }
    }

    #[test]
    fn all_of_it_is_reported_at_once() {
        let found = findings(
            "bogus = 1\n[engine]\nrounds_max = 'x'\ncalls_per_turn_max = 0\n[hooks]\n[server]\nbnid = 1\n= 3\n[server]\nremote_images = 2\n",
        );
        let shown = found.to_string();
        for part in [
            "error: line 3: `engine.rounds_max`",
            "error: line 4: `engine.calls_per_turn_max`",
            "error: line 5: `hooks`",
            "error: line 8: this is not TOML",
            "error: line 9: this is not TOML",
            "warning: line 1: `bogus`",
            "warning: line 7: `server.bnid`",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let origins: Vec<_> = found.to_string().lines().map(str::to_owned).collect();
        assert!(origins[0].starts_with("error: line 3"), "in order: {shown}");
    }

    #[test]
    fn a_wrong_secret_is_not_repeated() {
        let found = findings("[models.providers.x]\napi_key = 4711\nheaders = 4711\n");
        assert_eq!(found.errors.len(), 2);
        let all = format!("{found:?}");
        assert!(!all.contains("4711"), "{all}");
    }
}

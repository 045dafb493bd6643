//! Holds what was typed against the table of settings: unknown names warn, wrong types are errors.

use serde_json::{Map, Value};

use super::{
    error::Problem,
    table::{self, Kind, SETTINGS, Setting},
    tree::{Tree, join},
};

/// How alike two names must be for one to be offered in place of the other; 1 is the same name.
const SIMILARITY_MIN: f64 = 0.6;

/// What the check found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Nothing starts with these.
    pub errors: Vec<Problem>,
    /// Worth a look; everything works.
    pub warnings: Vec<Problem>,
}

/// Checks the tree and takes out of it what no setting knows.
pub fn check(tree: &mut Tree) -> Findings {
    let mut findings = Findings::default();
    let mut values = std::mem::take(&mut tree.values);
    walk(tree, &mut values, "", &mut findings);
    tree.values = values;
    findings
}

fn walk(tree: &Tree, map: &mut Map<String, Value>, path: &str, findings: &mut Findings) {
    map.retain(|name, value| {
        let key = join(path, name);
        if let Some(setting) = table::find(&key) {
            fits(tree, setting, &key, value, findings);
            return true;
        }
        if !table::is_section(&key) {
            findings.warnings.push(unknown(tree, &key));
            return false;
        }
        if let Value::Object(inner) = value {
            walk(tree, inner, &key, findings);
            return true;
        }
        findings.errors.push(Problem {
            key: Some(key.clone()),
            origin: tree.origin(&key),
            message: format!("expected a section, as in `[{key}]`, and not {}", name_of(value)),
        });
        true
    });
}

fn fits(tree: &Tree, setting: &Setting, key: &str, value: &mut Value, findings: &mut Findings) {
    if setting.kind == Kind::Tables
        && let Value::Array(items) = value
    {
        for (index, item) in items.iter_mut().enumerate() {
            let key = format!("{key}[{index}]");
            match item {
                Value::Object(map) => walk(tree, map, &key, findings),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    findings.errors.push(wrong(tree, setting, &key, item));
                }
            }
        }
        return;
    }
    if !setting.kind.accepts(value) {
        findings.errors.push(wrong(tree, setting, key, value));
    }
}

fn wrong(tree: &Tree, setting: &Setting, key: &str, value: &Value) -> Problem {
    Problem {
        key: Some(key.to_owned()),
        origin: tree.origin(key),
        message: format!(
            "expected {}, found {}; an example: `{}`",
            setting.kind,
            if setting.kind == Kind::Secret {
                name_of(value).to_owned()
            } else {
                shown(value)
            },
            setting.example_line()
        ),
    }
}

fn unknown(tree: &Tree, key: &str) -> Problem {
    let parts = table::segments(key);
    let (typed, section) = parts
        .split_last()
        .map_or(("", String::new()), |(last, rest)| (last, rest.join(".")));
    let whole_key = parts.join(".");
    let sections = SETTINGS.iter().map(|setting| {
        let similarity = strsim::normalized_damerau_levenshtein(setting.section(), &whole_key);
        (similarity, setting.section())
    });
    let nearest = SETTINGS
        .iter()
        .map(|setting| {
            // The right name in the wrong section is near, too, but the right section is nearer.
            let whole = strsim::normalized_damerau_levenshtein(setting.key, &whole_key);
            let same_section = strsim::normalized_damerau_levenshtein(setting.section(), &section);
            let name = strsim::normalized_damerau_levenshtein(setting.name(), typed);
            (whole.max(name.mul_add(0.9, 0.1 * same_section)), setting.key)
        })
        .chain(sections)
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    Problem {
        key: Some(key.to_owned()),
        origin: tree.origin(key),
        message: match nearest {
            Some((_, name)) => format!("no such setting; did you mean `{name}`?"),
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
        check(&mut Tree::parse(text).unwrap())
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
        let mut tree = Tree::parse("[engine]\nnonsense_altogether = 3\nrounds_max = 4\n").unwrap();
        check(&mut tree);
        assert_eq!(
            serde_json::Value::Object(tree.values),
            serde_json::json!({"engine": {"rounds_max": 4}})
        );
    }

    #[test]
    fn a_wrong_secret_is_not_repeated() {
        let found = findings("[[models.providers]]\nname = 'x'\napi_key = 4711\n");
        let all = format!("{found:?}");
        assert!(!all.contains("4711"), "{all}");
    }
}

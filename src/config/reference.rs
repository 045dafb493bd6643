//! The reference of every setting, and the configuration in effect, both as a `tidegate.toml`.

use std::fmt::{self, Write};

use serde_json::Value;

use super::{
    env, secret,
    table::{self, Kind, SETTINGS},
};

/// Every setting with its default, type and sentence. Valid TOML: what has no default is commented out.
pub fn reference(defaults: &Value) -> String {
    let mut text = String::from(
        "# Every setting of tidegate.toml, with its default.\n\
         # Order of precedence: flags, environment variables, this file, defaults.\n\
         #\n\
         # Flags of every command: --config FILE, --data-dir FOLDER, --bind ADDRESS, --set KEY=VALUE.\n\
         # Environment: TIDEGATE_SECTION__KEY sets any setting; names of your own are written in capitals, as in\n\
         # TIDEGATE_MODELS__PROVIDERS__LOCAL__BASE_URL; lists take commas or JSON. Beside them: TIDEGATE_CONFIG (this\n\
         # file's path), TIDEGATE_BOOTSTRAP_KEY (the first key of a new database, as `tidegate keys generate` prints\n\
         # one), RUST_LOG (what the console shows). Where no provider is configured: OPENAI_BASE_URL,\n\
         # OPENAI_API_KEY and OPENAI_MODEL.\n",
    );
    // Writing to a String does not fail.
    match write_reference(&mut text, defaults) {
        Ok(()) | Err(fmt::Error) => text,
    }
}

fn write_reference(text: &mut String, defaults: &Value) -> fmt::Result {
    let mut section = "";
    for setting in SETTINGS {
        if setting.kind == Kind::Tables {
            // Its entries follow, under their own heading.
            write!(text, "\n# {}\n", setting.doc)?;
            continue;
        }
        // Entries of a list, and names of the operator's own: shown, but not there by default.
        let in_list = setting.key.contains("[]") || setting.key.contains('*');
        if setting.section() != section {
            section = setting.section();
            if in_list {
                write!(text, "\n# {}\n", heading(section))?;
            } else {
                write!(text, "\n[{section}]\n")?;
            }
        }
        write!(text, "\n# {}\n# {}", setting.doc, sentence_case(setting.kind))?;
        if !in_list {
            write!(text, "; {}", env::variable_of(setting.key))?;
        }
        text.push('\n');
        let default = lookup(defaults, setting.key).filter(|value| !value.is_null() && !in_list);
        match default {
            Some(value) => writeln!(text, "{} = {}", setting.name(), toml_of(value))?,
            None => writeln!(text, "# {}", setting.example_line())?,
        }
    }
    Ok(())
}

fn heading(section: &str) -> String {
    let name = section.replace("[]", "").replace('*', "NAME");
    if section.ends_with("[]") {
        format!("[[{name}]]")
    } else {
        format!("[{name}]")
    }
}

/// The configuration in effect, without secrets.
pub fn effective(values: &Value) -> String {
    let mut text = String::new();
    let Value::Object(root) = hidden(values, "") else {
        return text;
    };
    // Writing to a String does not fail.
    match write_section(&mut text, &root, "") {
        Ok(()) | Err(fmt::Error) => text,
    }
}

fn write_section(text: &mut String, map: &serde_json::Map<String, Value>, path: &str) -> fmt::Result {
    for (name, value) in map {
        if !is_nested(value) && !value.is_null() {
            writeln!(text, "{} = {}", super::tree::join("", name), toml_of(value))?;
        }
    }
    for (name, value) in map {
        let key = super::tree::join(path, name);
        match value {
            Value::Object(inner) => {
                write!(text, "\n[{key}]\n")?;
                write_section(text, inner, &key)?;
            }
            Value::Array(items) if is_nested(value) => {
                for item in items {
                    if let Value::Object(inner) = item {
                        write!(text, "\n[[{key}]]\n")?;
                        write_section(text, inner, &key)?;
                    }
                }
            }
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(Value::is_object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The same values with every secret replaced.
fn hidden(value: &Value, path: &str) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), hidden(value, &super::tree::join(path, name))))
                .collect(),
        ),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| hidden(item, &format!("{path}[]")))
                .collect(),
        ),
        Value::String(text) if is_secret(path) => Value::String(secret::shown(text).to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Whether a text at that path is a secret: by its own row, or as an entry of a section of secrets.
fn is_secret(path: &str) -> bool {
    let of_kind = |key: &str, kind| table::find(key).is_some_and(|setting| setting.kind == kind);
    let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
    of_kind(path, Kind::Secret) || of_kind(parent, Kind::SecretMap)
}

fn lookup<'v>(values: &'v Value, key: &str) -> Option<&'v Value> {
    key.split('.').try_fold(values, |value, part| value.get(part))
}

/// A value as TOML writes it, on one line.
fn toml_of(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        // A JSON text is a TOML basic string but for DEL, which no setting holds.
        Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(toml_of).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => format!(
            "{{ {} }}",
            map.iter()
                .map(|(name, value)| format!("{} = {}", Value::String(name.clone()), toml_of(value)))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

fn sentence_case(kind: Kind) -> String {
    let text = kind.to_string();
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

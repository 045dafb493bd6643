//! The reference of every setting, and the configuration in effect, both as a `tidegate.toml`.

use std::fmt::{self, Write};

use serde_json::Value;

use super::{
    env, secret,
    table::{self, Kind, SETTINGS},
};

/// What stands above the settings: everything else that has a say in the configuration.
const HEAD: &str = r#"# Every setting of tidegate.toml, with its default. This text is itself such a file, and changes nothing.
# Order of precedence: flags, environment variables, this file, defaults. `tidegate config` shows what came of it,
# `tidegate config --check` lists everything that is wrong with it.
# Numbers end somewhere: times at about ten years, everything else at 1099511627776.
#
# Flags of every command; `tidegate COMMAND --help` lists those of one:
#   --config FILE      the file to read; else TIDEGATE_CONFIG, else ./tidegate.toml where there is one
#   --data-dir FOLDER  `data_dir`
#   --bind ADDRESS     `server.bind`
#   --set KEY=VALUE    any setting, such as --set engine.rounds_max=5, and as often as needed; the value is written as
#                      in a variable. --data-dir and --bind win over it.
#
# Environment variables for settings; each stands with its setting below:
#   TIDEGATE_DATA_DIR=/srv/data                       a setting outside a section: its name in capitals
#   TIDEGATE_ENGINE__ROUNDS_MAX=5                     in a section: two underscores part section and name
#   TIDEGATE_BIND=127.0.0.1:8088                      short for TIDEGATE_SERVER__BIND, which wins over it
#   TIDEGATE_MODELS__PROVIDERS__LOCAL__MODEL=m        below a name of your own, here `local`: it is read in lower case,
#                                                     so a name with capitals, dots or hyphens needs the next form
#   TIDEGATE_MODELS__ALIASES='{ "gpt-4.1" = { provider = "local", model = "m" } }'
#                                                     a section as a table of TOML; what it does not name stays
#   TIDEGATE_SERVER__ALLOWED_HOSTS=a.example,b.example
#                                                     a list of texts: with commas, or as TOML, ["a.example"]
#   TIDEGATE_HOOKS='[{ name = "h", command = ["/usr/local/bin/h"] }]'
#                                                     a list of sections: as TOML, in place of the file's whole list
#
# Other variables:
#   TIDEGATE_CONFIG         the file to read where no --config names one
#   TIDEGATE_BOOTSTRAP_KEY  the first key, itself or as file:PATH, as `tidegate keys generate` makes one. It is taken, with
#                           every scope, where the database has no key yet; where there are keys it changes nothing.
#   TIDEGATE_KEY            read by no command here: a place for a client's key, as in the examples of the README
#   OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL
#                           read only where no [models.providers.NAME] is configured. One of the first two makes a
#                           provider `openai`: the key alone means OpenAI itself; an address alone, a server that asks
#                           for no key. Without OPENAI_MODEL the default is gpt-5-mini at OpenAI, elsewhere the first
#                           model that the server lists.
#   RUST_LOG                what the console shows, in place of `logs.console`
#   PATH                    where the programs of hooks are found
#
# A secret (`api_key`, the values of `headers`) is the text itself, env:NAME for a variable, or file:PATH for the first
# line of a file, relative to `home`.
"#;

/// Every setting with its default, type and sentence. Valid TOML: what has no default is commented out.
pub fn reference(defaults: &Value) -> String {
    let mut text = String::from(HEAD);
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
        if !setting.key.contains("[]") {
            write!(text, "; {}", env::variable_of(&setting.key.replace('*', "NAME")))?;
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

//! The file of servers, changed by hand of the command line: what it does not understand stays as it is.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::cli::{args::mcp::Add, error::Error, output::Out};

/// The maps of servers that the file may have, the usual one first.
const MAPS: [&str; 2] = ["mcpServers", "servers"];
/// The largest file that is changed, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Adds an entry. A name that is there already is refused.
pub(super) fn add(path: &Path, add: &Add, out: Out<'_>) -> Result<(), Error> {
    let entry = entry(add)?;
    let mut whole = read(path)?;
    let servers = servers(&mut whole, path)?;
    if servers.contains_key(&add.name) {
        return Err(Error::Refused(format!(
            "`{}` has a server `{}` already; `tidegate mcp remove {}` takes it out",
            path.display(),
            add.name,
            add.name
        )));
    }
    servers.insert(add.name.clone(), entry);
    write(path, &whole)?;
    let name = &add.name;
    let then = if add.oauth {
        format!("log in with `tidegate mcp login {name}`")
    } else {
        format!("`tidegate mcp test {name}` connects to it and shows its tools")
    };
    Ok(writeln!(
        out,
        "The server `{name}` stands in {}; {then}.",
        path.display()
    )?)
}

/// Takes an entry out; false where there was none.
pub(super) fn remove(path: &Path, name: &str) -> Result<bool, Error> {
    let mut whole = read(path)?;
    let was_there = servers(&mut whole, path)?.shift_remove(name).is_some();
    if was_there {
        write(path, &whole)?;
    }
    Ok(was_there)
}

fn entry(add: &Add) -> Result<Value, Error> {
    let mut entry = Map::new();
    match (&add.url, add.command.split_first()) {
        (Some(url), _) => {
            entry.insert("url".to_owned(), json!(url));
            if !add.header.is_empty() {
                entry.insert("headers".to_owned(), pairs("--header", &add.header)?);
            }
            if add.oauth {
                entry.insert("oauth".to_owned(), json!(true));
            }
        }
        (None, Some((program, arguments))) => {
            entry.insert("command".to_owned(), json!(program));
            entry.insert("args".to_owned(), json!(arguments));
            if !add.env.is_empty() {
                entry.insert("env".to_owned(), pairs("--env", &add.env)?);
            }
        }
        (None, None) => {
            return Err(Error::Usage(format!(
                "a server needs a program or an address: `tidegate mcp add {name} -- PROGRAM ARGUMENTS`, or `tidegate mcp add {name} --url ADDRESS`",
                name = add.name
            )));
        }
    }
    if add.trust_read_only {
        entry.insert("trust".to_owned(), json!("read_only"));
    }
    if add.disabled {
        entry.insert("enabled".to_owned(), json!(false));
    }
    Ok(Value::Object(entry))
}

fn pairs(flag: &str, pairs: &[String]) -> Result<Value, Error> {
    let mut map = Map::new();
    for pair in pairs {
        let (name, value) = pair
            .split_once('=')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or_else(|| {
                Error::Usage(format!(
                    "{flag} `{pair}` has no name and `=`; write {flag} NAME=VALUE"
                ))
            })?;
        map.insert(name.trim().to_owned(), json!(value));
    }
    Ok(Value::Object(map))
}

fn failed(path: &Path, problem: &str) -> Error {
    Error::Refused(format!("`{}` {problem}; nothing was changed", path.display()))
}

/// The file; where there is none, an empty one.
fn read(path: &Path) -> Result<Value, Error> {
    let text = match std::fs::metadata(path) {
        Ok(file) if file.len() > BYTES_MAX => return Err(failed(path, "has more than 1 MiB")),
        Ok(_) => std::fs::read_to_string(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(json!({"mcpServers": {}})),
        Err(error) => Err(error),
    };
    let text = text.map_err(|error| failed(path, &format!("cannot be read ({error})")))?;
    serde_json::from_str(&text).map_err(|error| failed(path, &format!("is no JSON ({error})")))
}

fn servers<'v>(whole: &'v mut Value, path: &Path) -> Result<&'v mut Map<String, Value>, Error> {
    let no_object = || failed(path, "must be a JSON object with an object `mcpServers`");
    let Value::Object(top) = whole else {
        return Err(no_object());
    };
    let name = MAPS
        .into_iter()
        .find(|name| top.contains_key(*name))
        .unwrap_or("mcpServers");
    let servers = top.entry(name).or_insert_with(|| json!({}));
    servers.as_object_mut().ok_or_else(no_object)
}

/// In one step, so that a reader finds the old file or the new one.
fn write(path: &Path, whole: &Value) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(whole).map_err(std::io::Error::from)? + "\n";
    tidegate_io::files::write_private(path, text.as_bytes())
        .map_err(|error| failed(path, &format!("cannot be written ({error})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adding(name: &str, command: &[&str]) -> Add {
        Add {
            name: name.to_owned(),
            url: None,
            header: Vec::new(),
            env: vec!["TOKEN=env:TOKEN".to_owned()],
            oauth: false,
            trust_read_only: true,
            disabled: false,
            command: command.iter().map(|&part| part.to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_there_stays_and_its_order_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp_servers.json");
        let before =
            r#"{"note": "ours", "servers": {"z": {"command": "z", "mine": 1}, "a": {"url": "http://x"}}}"#;
        tidegate_io::files::write_private(&path, before.as_bytes()).unwrap();
        add(&path, &adding("m", &["npx", "-y"]), &mut Vec::new()).unwrap();
        let whole: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let names: Vec<&String> = whole["servers"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["z", "a", "m"]);
        assert_eq!(
            (&whole["note"], &whole["servers"]["z"]["mine"]),
            (&json!("ours"), &json!(1))
        );
        assert_eq!(
            whole["servers"]["m"],
            json!({"command": "npx", "args": ["-y"], "env": {"TOKEN": "env:TOKEN"}, "trust": "read_only"})
        );
        add(&path, &adding("m", &["npx"]), &mut Vec::new()).unwrap_err();
        assert!(remove(&path, "m").unwrap());
        assert!(!remove(&path, "m").unwrap());
        assert_eq!(
            std::fs::read_to_string(&path).unwrap().matches("\"z\"").count(),
            2
        );
    }

    #[test]
    fn a_new_file_is_made_and_a_broken_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp_servers.json");
        add(&path, &adding("m", &["npx"]), &mut Vec::new()).unwrap();
        assert!(remove(&path, "m").unwrap());
        for broken in ["[1]", "{", r#"{"mcpServers": []}"#] {
            tidegate_io::files::write_private(&path, broken.as_bytes()).unwrap();
            add(&path, &adding("m", &["npx"]), &mut Vec::new()).unwrap_err();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
        }
        add(&path, &adding("m", &[]), &mut Vec::new()).unwrap_err();
    }
}

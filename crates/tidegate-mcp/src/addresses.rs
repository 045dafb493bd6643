//! Addresses in the arguments of a call: what a server is told to go to must pass the rules for what a model may reach.

use serde_json::{Map, Value};
use tidegate_gate::Denial;

/// The most addresses that one call may name.
const ADDRESSES_MAX: usize = 64;
/// How deep arguments are looked through.
const DEPTH_MAX: usize = 32;
/// Schemes under which a server would dial.
const DIALLED: [&str; 8] = ["http", "https", "ws", "wss", "ftp", "ftps", "gopher", "dict"];
/// Parts of an argument's name by which its value is an address even without a scheme.
const NAMES: [&str; 5] = ["url", "uri", "href", "endpoint", "website"];

/// Every address in the arguments, in a form that the address guard reads.
pub(crate) fn of(arguments: &Map<String, Value>) -> Result<Vec<String>, Denial> {
    let mut found = Vec::new();
    for (name, value) in arguments {
        walk(name, value, 0, &mut found);
    }
    if found.len() > ADDRESSES_MAX {
        return Err(Denial::new(
            "egress",
            format!("the call names more than {ADDRESSES_MAX} addresses; split it."),
        ));
    }
    Ok(found)
}

fn walk(name: &str, value: &Value, depth: usize, found: &mut Vec<String>) {
    if depth > DEPTH_MAX || found.len() > ADDRESSES_MAX {
        return;
    }
    match value {
        Value::String(text) => found.extend(address(name, text)),
        Value::Array(items) => {
            for item in items {
                walk(name, item, depth + 1, found);
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                walk(name, value, depth + 1, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The address that a text is. A text that merely holds one is content.
fn address(name: &str, text: &str) -> Option<String> {
    let text = text.trim();
    if let Some((scheme, _)) = text.split_once(':') {
        let scheme = scheme.to_ascii_lowercase();
        if DIALLED.contains(&scheme.as_str()) {
            return Some(text.to_owned());
        }
        if text.contains("://") {
            // The server's own names, such as `demo://1`.
            return None;
        }
    }
    let name = name.to_ascii_lowercase();
    let is_named = NAMES.iter().any(|part| name.contains(part));
    let is_host = !text.is_empty()
        && !text.contains(char::is_whitespace)
        && !text.starts_with(['/', '.', '#', '?', '{'])
        && (text.contains('.')
            || text.starts_with('[')
            || text.to_ascii_lowercase().starts_with("localhost"));
    // `mailto:` and the like name no host to dial.
    let is_other = text.split_once(':').is_some_and(|(scheme, rest)| {
        matches!(
            scheme.to_ascii_lowercase().as_str(),
            "mailto" | "data" | "urn" | "tel" | "file"
        ) || (scheme.chars().all(|letter| letter.is_ascii_alphabetic())
            && scheme != "localhost"
            && rest.chars().next().is_some_and(|letter| !letter.is_ascii_digit()))
    });
    (is_named && is_host && !is_other).then(|| format!("http://{text}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_would_dial_is_found() {
        let arguments = json!({
            "url": "example.org/a", "base_uri": "localhost:8080", "x": " HTTPS://Example.org ",
            "list": [{"endpoint": "[::1]:80"}, "wss://example.org/s"], "target": "ftp://example.org",
            "content": "see http://127.0.0.1/ there", "uri": "demo://resource/1", "href": "/relative/path",
            "mail_url": "mailto:a@example.org", "count_url": 7, "urls": ["10.0.0.1"], "path": "notes.txt",
            "file_uri": "file:///etc/passwd",
        });
        let mut found = of(arguments.as_object().unwrap()).unwrap();
        found.sort();
        assert_eq!(
            found,
            [
                "HTTPS://Example.org",
                "ftp://example.org",
                "http://10.0.0.1",
                "http://[::1]:80",
                "http://example.org/a",
                "http://localhost:8080",
                "wss://example.org/s",
            ]
        );
        let many: Vec<String> = (0..100).map(|n| format!("http://h{n}.example/")).collect();
        assert!(of(json!({"urls": many}).as_object().unwrap()).is_err());
    }
}

//! No setting is forgotten: each is changed by a test of what it does.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use tidegate::config::table::{self, SETTINGS};

/// Settings that a test changes in another way than by a line of a configuration, and where: the name of the
/// setting's field stands in that file.
const ELSEWHERE: &[(&str, &str)] = &[
    ("home", "src/config/settings.rs"),
    ("data_dir", "src/config/settings.rs"),
    ("time_zone", "tests/it/cli/settings.rs"),
    ("server.write_timeout_ms", "src/http/serve/tests.rs"),
    (
        "models.connect_timeout_ms",
        "crates/tidegate-io/src/http/tests.rs",
    ),
    (
        "models.breaker_open_ms",
        "crates/tidegate-llm/src/tests/retries.rs",
    ),
    ("mcp.calls_max", "crates/tidegate-mcp/tests/servers/hostile.rs"),
    (
        "mcp.message_bytes_max",
        "crates/tidegate-mcp/tests/servers/hostile.rs",
    ),
    (
        "mcp.result_bytes_max",
        "crates/tidegate-mcp/tests/servers/hostile.rs",
    ),
    ("models.proxy", "crates/tidegate-io/src/http/tests.rs"),
    (
        "models.providers.*.headers",
        "crates/tidegate-llm/src/tests/exchange.rs",
    ),
    ("models.providers.*.profile", "tests/it/cli/settings.rs"),
    ("models.providers.*.tokens_field", "tests/it/cli/settings.rs"),
    ("models.providers.*.tokens_max", "tests/it/cli/settings.rs"),
    ("discovery.ollama_url", "tests/it/cli/settings.rs"),
    ("discovery.ollama_model", "tests/it/cli/settings.rs"),
    ("sandbox.level_min", "tests/it/sandbox.rs"),
    ("sandbox.readable", "tests/it/cli/settings/gate.rs"),
    ("sandbox.limits.output_bytes", "tests/it/sandbox/killed.rs"),
    ("audit.queue_lines", "tests/it/cli/settings/kept.rs"),
    ("store.path", "src/config/settings.rs"),
    ("store.busy_timeout_ms", "crates/tidegate-store/src/tests.rs"),
    ("store.write_queue_max", "crates/tidegate-store/src/tests.rs"),
    ("store.write_timeout_ms", "crates/tidegate-store/src/tests.rs"),
    (
        "store.usage_rows_max",
        "crates/tidegate-store/src/ledger/tests.rs",
    ),
    (
        "store.reservation_wait_ms",
        "crates/tidegate-store/src/ledger/tests.rs",
    ),
    (
        "store.reservation_ttl_ms",
        "crates/tidegate-store/src/ledger/tests.rs",
    ),
    (
        "store.held_turns_per_key_max",
        "crates/tidegate-store/src/tests.rs",
    ),
    ("kb.authority", "tests/it/cli/settings/kb.rs"),
    ("hooks", "tests/it/engine/hooks.rs"),
    ("hooks[].tools", "src/hooks/tests.rs"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The text of the tests that start the binary, line breaks and quotes of literals as they are meant.
fn tests(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, text);
        } else if !path.ends_with("cli/settings/complete.rs") && !path.ends_with("cli/config.rs") {
            let source = fs::read_to_string(path).unwrap();
            text.push_str(&source.replace("\\n", "\n").replace("\\\"", "\""));
            // What comes next belongs to no section.
            text.push_str("\n[test]\n");
        }
    }
}

/// The name in a section's header, where the text begins with one: `[name]` or `[[name]]`.
fn header(text: &str) -> Option<&str> {
    let text = text.strip_prefix("[[").or_else(|| text.strip_prefix('['))?;
    let (name, _) = text.split_once(']')?;
    let is_name = |letter: char| letter.is_ascii_lowercase() || "._-\"0123456789".contains(letter);
    (name.starts_with(|letter: char| letter.is_ascii_lowercase()) && name.chars().all(is_name))
        .then_some(name)
}

/// The names that are set in a text: `name = `, where no other word goes on before it.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(" = ").map(|(at, _)| {
        let before = &text[..at];
        let begin = before.rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        before
            .get(begin.map_or(0, |begin| begin + 1)..)
            .unwrap_or_default()
    })
}

/// The rows whose key is set in a configuration of a test, by its section's header and its name, or by its
/// variable.
fn configured() -> BTreeSet<&'static str> {
    let mut text = String::new();
    tests(&root().join("tests/it"), &mut text);
    let mut found = BTreeSet::new();
    let mut headers = text
        .match_indices('[')
        // The second bracket of `[[name]]` begins no header.
        .filter(|(at, _)| !text[..*at].ends_with('['))
        .filter_map(|(at, _)| header(&text[at..]).map(|name| (at, name)))
        .peekable();
    while let Some((at, section)) = headers.next() {
        let end = headers.peek().map_or(text.len(), |(at, _)| *at);
        let list = if text[at..].starts_with("[[") { "[]" } else { "" };
        let keys = names(&text[at..end]).map(|name| format!("{section}{list}.{name}"));
        found.extend(
            keys.filter_map(|key| table::find(&key))
                .map(|setting| setting.key),
        );
    }
    let variables = SETTINGS.iter().filter(|setting| {
        let variable = setting.key.to_uppercase().replace('.', "__");
        text.contains(&format!("\"TIDEGATE_{variable}\""))
    });
    found.extend(variables.map(|setting| setting.key));
    found
}

#[test]
fn every_setting_is_changed_by_a_test() {
    let configured = configured();
    let listed: BTreeSet<_> = ELSEWHERE.iter().map(|(key, _)| *key).collect();
    let forgotten: Vec<_> = SETTINGS
        .iter()
        .map(|setting| setting.key)
        .filter(|key| !configured.contains(key) && !listed.contains(key))
        .collect();
    assert!(
        forgotten.is_empty(),
        "no test shows that these settings change anything: {forgotten:#?}"
    );
    for key in &listed {
        assert!(table::find(key).is_some(), "{key} is no setting");
    }
}

#[test]
fn what_is_changed_elsewhere_is_named_there() {
    for (key, file) in ELSEWHERE {
        let setting = table::find(key).unwrap();
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let text = text.replace("\\n", "\n");
        // The tests of a file stand at its end.
        let at = text.find("#[cfg(test)]").unwrap_or_default();
        let is_word = |name: &str| {
            text[at..]
                .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .any(|word| word == name)
        };
        assert!(
            is_word(setting.name()),
            "{key} is not named by the tests of {file}"
        );
    }
}

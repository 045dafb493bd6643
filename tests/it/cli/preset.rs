//! The preset `hardened`: good as it is, and every value of it in force.

use serde_json::Value;

use crate::support::{Home, Setup};

fn leaves(table: &toml::Table, path: &str, found: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let key = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match value {
            toml::Value::Table(inner) => leaves(inner, &key, found),
            value @ (toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_)) => found.push((key, value.clone())),
        }
    }
}

fn lookup<'t>(table: &'t toml::Table, key: &str) -> Option<&'t toml::Value> {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let value = table.get(first)?;
    if rest.is_empty() {
        Some(value)
    } else {
        lookup(value.as_table()?, rest)
    }
}

#[test]
fn it_passes_the_check_and_every_value_is_in_force() {
    let home = Home::bare();
    let (code, printed, _) = home.run(&["config", "--preset", "hardened"]);
    assert_eq!(code, Some(0));
    let (code, stdout, stderr) = home.run(&["init", "--preset", "hardened"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let written = std::fs::read_to_string(home.folder().join("tidegate.toml")).unwrap();
    assert_eq!(written, printed);
    let (code, stdout, stderr) = home.run(&["config", "--check"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("0 warnings"), "{stdout}{stderr}");
    let in_force: toml::Table = home.run(&["config"]).1.parse().unwrap();
    let mut wanted = Vec::new();
    leaves(&printed.parse().unwrap(), "", &mut wanted);
    assert!(wanted.len() > 15, "{wanted:?}");
    for (key, value) in &wanted {
        assert_eq!(lookup(&in_force, key), Some(value), "{key}");
    }
    for (key, value) in [
        ("engine.turn_tokens_max", "60000"),
        ("engine.turn_timeout_ms", "300000"),
        ("gate.max_writes_per_turn", "20"),
        ("audit.required", "true"),
    ] {
        assert_eq!(lookup(&in_force, key).unwrap().to_string(), value, "{key}");
    }
}

#[test]
fn a_configuration_that_is_there_stays() {
    let home = Home::bare();
    home.write("tidegate.toml", "time_zone = \"UTC\"\n");
    let (code, _, stderr) = home.run(&["init", "--preset", "hardened"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("tidegate config --preset hardened"), "{stderr}");
    let text = std::fs::read_to_string(home.folder().join("tidegate.toml")).unwrap();
    assert_eq!(text, "time_zone = \"UTC\"\n");
    let (code, _, stderr) = home.run(&["init", "--preset", "soft"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("hardened"), "{stderr}");
}

#[tokio::test]
async fn a_daemon_starts_on_it_and_tells_of_its_limits() {
    let preset = include_str!("../../../presets/hardened.toml");
    let daemon = Setup::default().config(preset).start().await;
    let (status, body) = daemon.get("/v1/capabilities").await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        body["audit"],
        serde_json::json!({"enabled": true, "required": true})
    );
    assert_eq!(body["mode"]["effective"], "readonly");
    let limit = |name: &str| -> Value {
        let limits = body["limits"].as_array().unwrap();
        limits.iter().find(|limit| limit["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(limit("engine.turn_tokens_max"), 60_000);
    assert_eq!(limit("engine.max_turn_cost_usd"), 0.5);
    assert_eq!(limit("gate.max_writes_per_turn"), 20);
    assert_eq!(
        body["network"]["blocked_domains"],
        serde_json::json!(["pastebin.com", "transfer.sh", "file.io", "0x0.st"])
    );
}

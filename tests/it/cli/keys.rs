//! `tidegate keys`.

use serde_json::Value;

use crate::support::Home;

fn ok(home: &Home, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = home.run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
    stdout
}

fn json(home: &Home, arguments: &[&str]) -> Value {
    let text = ok(home, arguments);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_key_is_created_listed_shown_rotated_and_revoked() {
    let home = Home::new("");
    assert!(
        ok(&home, &["keys", "list"]).contains("tidegate keys create"),
        "an empty list says what to type"
    );
    let created = json(
        &home,
        &[
            "keys",
            "create",
            "--name",
            "library",
            "--scope",
            "chat",
            "--scope",
            "tools",
            "--mode",
            "full-auto",
            "--expires",
            "30d",
            "--rpm",
            "9",
            "--tokens-per-day",
            "1000",
            "--model",
            "tidegate",
            "--tool",
            "calculate",
            "--metadata",
            "room=12",
            "--json",
        ],
    );
    let (id, raw) = (created["id"].as_str().unwrap(), created["key"].as_str().unwrap());
    assert!(raw.starts_with(&format!("tg_{id}_")), "{created}");
    let secret = &raw[16..];
    let listed = json(&home, &["keys", "list", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let shown = json(&home, &["keys", "show", id, "--json"]);
    assert_eq!(shown, listed[0]);
    for (name, value) in [
        ("name", Value::from("library")),
        ("mode_ceiling", "full-auto".into()),
        ("requests_per_minute", 9.into()),
        ("tokens_per_day", 1000.into()),
        ("models", vec!["tidegate"].into()),
        ("tools", vec!["calculate"].into()),
        ("enabled", true.into()),
    ] {
        assert_eq!(shown[name], value, "{shown}");
    }
    let rotated = json(&home, &["keys", "rotate", id, "--grace", "1h", "--json"]);
    assert_eq!(rotated["id"], id);
    assert!(
        rotated["previous_valid_until"].is_string() && rotated["key"] != raw,
        "{rotated}"
    );
    for text in [ok(&home, &["keys", "list"]), ok(&home, &["keys", "show", id])] {
        assert!(
            text.contains(id) && text.contains("library") && !text.contains(&secret[..20]),
            "{text}"
        );
    }
    assert!(
        ok(&home, &["keys", "revoke", raw]).contains(id),
        "a pasted key stands for its id"
    );
    assert!(
        json(&home, &["keys", "list", "--json"])
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn plain_output_shows_the_key_on_a_line_of_its_own() {
    let home = Home::new("");
    let text = ok(&home, &["keys", "create", "--name", "a b"]);
    let first = text.lines().next().unwrap();
    assert!(tidegate::keys::parse(first).is_ok(), "{text}");
    let generated = ok(&home, &["keys", "generate"]);
    assert!(tidegate::keys::parse(generated.trim()).is_ok());
    assert_eq!(
        json(&home, &["keys", "list", "--json"]).as_array().unwrap().len(),
        1,
        "generate stores nothing"
    );
}

#[test]
fn what_cannot_be_done_says_so_with_an_exit_code() {
    let home = Home::new("");
    for (arguments, code, word) in [
        (&["keys", "revoke", "aaaaaaaaaaaa"][..], 1, "keys list"),
        (&["keys", "show", "../x"], 1, "keys list"),
        (&["keys", "rotate", "aaaaaaaaaaaa"], 1, "keys list"),
        (&["keys", "create"], 2, "--name"),
        (&["keys", "create", "--name", ""], 2, "--name"),
        (&["keys", "create", "--name", "x", "--scope", "root"], 2, "chat"),
        (&["keys", "create", "--name", "x", "--rpm", "0"], 2, "--rpm"),
        (
            &["keys", "create", "--name", "x", "--tokens-per-day", "0"],
            2,
            "--tokens-per-day",
        ),
        (
            &["keys", "create", "--name", "x", "--expires", "yesterday"],
            2,
            "yesterday",
        ),
        (
            &["keys", "create", "--name", "x", "--metadata", "novalue"],
            2,
            "=",
        ),
        (&["fly"], 2, "fly"),
    ] {
        let (found, stdout, stderr) = home.run(arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains(word), "{arguments:?}: {stderr}");
        assert!(stdout.is_empty(), "{stdout}");
    }
    assert!(
        json(&home, &["keys", "list", "--json"])
            .as_array()
            .unwrap()
            .is_empty()
    );
}

//! `tidegate config`: documented in full, checked, and without secrets.

use std::collections::BTreeSet;

use crate::support::{Daemon, Home, Setup, outcome};

/// The dotted keys of a TOML text, tables of the operator's own names left out.
fn keys(table: &toml::Table, path: &str, found: &mut BTreeSet<String>) {
    for (name, value) in table {
        let key = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match value {
            toml::Value::Table(inner) => keys(inner, &key, found),
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => {
                found.insert(key);
            }
        }
    }
}

#[test]
fn the_reference_documents_every_setting_and_is_itself_a_configuration() {
    let home = Home::bare();
    let (code, reference, _) = home.run(&["config", "--reference"]);
    assert_eq!(code, Some(0));
    let (code, shown, stderr) = home.run(&["config"]);
    assert_eq!(code, Some(0), "{stderr}");
    let parse = |text: &str| {
        let mut found = BTreeSet::new();
        keys(&text.parse().unwrap(), "", &mut found);
        found
    };
    let (documented, effective) = (parse(&reference), parse(&shown));
    assert!(effective.len() > 60, "{}", effective.len());
    let missing: Vec<&String> = effective
        .difference(&documented)
        .filter(|key| !reference.contains(&format!("\n# [[{key}]]\n")))
        .collect();
    assert!(missing.is_empty(), "not in the reference: {missing:?}");
    // Pasted as it is, it is good and changes nothing.
    home.write("tidegate.toml", &reference);
    let (code, stdout, stderr) = home.run(&["config", "--check"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.is_empty(), "{stderr}");
    assert_eq!(home.run(&["config"]).1, shown);
}

#[test]
fn the_check_warns_of_names_and_fails_on_values() {
    let home = Home::bare();
    for (text, code, words) in [
        ("", 0, &["good"][..]),
        ("[server]\nbind = \"127.0.0.1:1\"\n", 0, &["good", "0 warnings"]),
        (
            "[server]\nbnid = \"127.0.0.1:1\"\n",
            0,
            &["1 warning", "bnid", "did you mean `server.bind`", "line 2"],
        ),
        ("[sever]\nbind = \"127.0.0.1:1\"\n", 0, &["sever", "did you mean"]),
        (
            "[server]\n\nbody_bytes_max = \"big\"\n",
            1,
            &["line 3", "server.body_bytes_max", "whole number"],
        ),
        (
            "[server]\nremote_images = 1\n",
            1,
            &["line 2", "server.remote_images", "true or false"],
        ),
        ("[server]\nbind = \"here\"\n", 1, &["server.bind", "line 2"]),
        ("[server]\nbind = \"0.0.0.0:80\"\n", 1, &["allowed_hosts"]),
        ("server = 5\n", 1, &["[server]"]),
        ("[server\n", 1, &["line 1"]),
        ("time_zone = \"Mars\"\n", 1, &["time_zone"]),
        (
            "[models.providers.x]\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"env:NOPE\"\n",
            1,
            &["NOPE", "api_key"],
        ),
        ("[models.providers.x]\nbase_url = \"no url\"\n", 1, &["base_url"]),
        (
            "[models.aliases.a]\nprovider = \"nobody\"\nmodel = \"m\"\n",
            1,
            &["nobody"],
        ),
        (
            "[[hooks]]\nname = \"h\"\nwhen = \"never\"\ncommand = [\"x\"]\n",
            1,
            &["before_tool"],
        ),
    ] {
        home.write("tidegate.toml", text);
        let (found, stdout, stderr) = home.run(&["config", "--check"]);
        let said = format!("{stdout}{stderr}");
        assert_eq!(found, Some(code), "{text}: {said}");
        for word in words {
            assert!(said.contains(word), "{text}: `{word}` is not in: {said}");
        }
    }
    let (code, _, stderr) = home.run(&["--config", "nowhere.toml", "config", "--check"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("nowhere.toml"), "{stderr}");
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let home = Home::bare()
        .env("TIDEGATE_ENGINE__ROUNDS_MAX", "5")
        .env("TIDEGATE_SERVER__REQUESTS_MAX", "55");
    home.write(
        "tidegate.toml",
        "[engine]\nrounds_max = 4\n[server]\nrequests_max = 44\nconnections_max = 444\n",
    );
    let (code, shown, stderr) =
        home.run(&["config", "--set", "engine.rounds_max=6", "--bind", "127.0.0.1:7"]);
    assert_eq!(code, Some(0), "{stderr}");
    for line in [
        "rounds_max = 6",
        "requests_max = 55",
        "connections_max = 444",
        "bind = \"127.0.0.1:7\"",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    home.write("other.toml", "[engine]\ncalls_per_turn_max = 77\n");
    let named = home.env("TIDEGATE_CONFIG", "other.toml");
    let shown = named.run(&["config"]).1;
    assert!(
        !shown.contains("connections_max = 444") && shown.contains("= 77"),
        "another file: {shown}"
    );
    let wrong = Home::bare().env("TIDEGATE_SERVER__REQUESTS_MAX", "many");
    let (code, _, stderr) = wrong.run(&["config", "--check"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("TIDEGATE_SERVER__REQUESTS_MAX"), "{stderr}");
    let odd = Home::bare().env("TIDEGATE_SERVER__REQUEST_MAX", "5");
    let (code, stdout, stderr) = odd.run(&["config", "--check"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        format!("{stdout}{stderr}").contains("server.requests_max"),
        "{stderr}"
    );
}

#[test]
fn secrets_are_never_shown() {
    let home = Home::bare()
        .env("MODEL_KEY", "sk-from-the-environment")
        .env("OPENAI_API_KEY", "sk-of-the-sdk");
    home.write("key.txt", "sk-from-a-file\n");
    home.write(
        "tidegate.toml",
        "[models.providers.a]\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"env:MODEL_KEY\"\n\
         [models.providers.b]\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"file:key.txt\"\n\
         [models.providers.c]\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"sk-typed\"\n\
         headers = { x-team = \"hush-team\", x-other = \"env:MODEL_KEY\" }\n",
    );
    for arguments in [
        &["config"][..],
        &["config", "--check"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let (_, stdout, stderr) = home.run(arguments);
        for secret in [
            "sk-from-the-environment",
            "sk-from-a-file",
            "sk-typed",
            "hush-team",
            "sk-of-the-sdk",
        ] {
            assert!(
                !stdout.contains(secret) && !stderr.contains(secret),
                "{arguments:?}: {stdout}{stderr}"
            );
        }
    }
    let shown = home.run(&["config"]).1;
    for line in [
        "api_key = \"env:MODEL_KEY\"",
        "api_key = \"file:key.txt\"",
        "api_key = \"(hidden)\"",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[tokio::test]
async fn a_credential_by_reference_reaches_the_provider() {
    let daemon = Setup::default()
        .config(
            "[models.providers.test]\napi_key = \"env:MODEL_KEY\"\nheaders = { x-team = \"file:team.txt\" }",
        )
        .env("MODEL_KEY", "sk-referenced")
        .file("team.txt", "blue\n")
        .start()
        .await;
    assert_eq!(
        crate::support::Chat::new(&daemon, "hello there")
            .send()
            .await
            .content(),
        "hello"
    );
    let asked = daemon
        .upstream
        .requests()
        .into_iter()
        .find(|request| request.path.ends_with("completions"))
        .unwrap();
    assert_eq!(
        (
            asked.headers["authorization"].as_str(),
            asked.headers["x-team"].as_str()
        ),
        ("Bearer sk-referenced", "blue")
    );
    let (code, shown, _) = outcome(&daemon.run(&["config"]));
    assert_eq!(code, Some(0));
    assert!(
        !shown.contains("sk-referenced") && !shown.contains("blue"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_daemon_started_with_an_unknown_setting_warns_and_serves() {
    let daemon = Setup::default().config("[engine]\nround_max = 3").start().await;
    assert_eq!(daemon.get("/v1/models").await.0, 200);
    let (code, _, stderr) = outcome(&Daemon::run(&daemon, &["config", "--check"]));
    assert_eq!(code, Some(0));
    assert!(stderr.contains("engine.rounds_max"), "{stderr}");
}

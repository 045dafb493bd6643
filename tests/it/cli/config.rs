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

#[tokio::test]
async fn every_mistake_is_listed_at_once_by_the_check_and_by_the_start() {
    let home = Home::bare()
        .env("TIDEGATE_SERVER__REQUESTS_MAX", "many")
        .env("TIDEGATE_ENGINE__ROUND_MAX", "3")
        .env("RUST_LOG", "a=b=c");
    home.write(
        "tidegate.toml",
        "datadir = \"x\"\n[server]\nbind = 5\nbogus = 1\n[engine]\nrounds_max = 0\n\
         [models.providers.x]\nbase_url = \"http://127.0.0.1:1/v1\"\nnative_tool = true\napi_key = \"env:NOPE\"\n\
         headers = { a = \"file:gone\" }\n[models]\nfallbacks = [\"z:1\"]\nproxy = \"::\"\n[server]\n",
    );
    let mut lists = Vec::new();
    for command in [
        &["config", "--check"][..],
        &["serve"],
        &["keys", "list"],
        &["config"],
    ] {
        let (code, stdout, stderr) = home.run(&[&["--set", "retention.runs_days=-1"], command].concat());
        assert_eq!(code, Some(1), "{command:?}: {stderr}");
        assert!(stdout.is_empty(), "{command:?}: {stdout}");
        lists.push(stderr);
    }
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:?}");
    for part in [
        "10 errors, 4 warnings",
        "error: line 3: `server.bind`: expected a text",
        "error: line 6: `engine.rounds_max`: expected a whole number, 1 to",
        "error: line 10: `models.providers.x.api_key`: the environment variable `NOPE` is not set; set it",
        "error: line 11: `models.providers.x.headers.a`: the file `gone`",
        "error: line 13: `models.fallbacks[0]`",
        "error: line 14: `models.proxy`: this is no address of a proxy",
        "error: line 15: this is not TOML: duplicate key; each section",
        "error: environment variable TIDEGATE_SERVER__REQUESTS_MAX: `server.requests_max`",
        "error: environment variable RUST_LOG",
        "error: flag --set: `retention.runs_days`",
        "warning: line 1: `datadir`: no such setting; did you mean `data_dir`?",
        "warning: line 4: `server.bogus`: no such setting; `tidegate config --reference`",
        "warning: line 9: `models.providers.x.native_tool`: no such setting; did you mean `models.providers.x.native_tools`?",
        "warning: environment variable TIDEGATE_ENGINE__ROUND_MAX: `engine.round_max`: no such setting; did you mean TIDEGATE_ENGINE__ROUNDS_MAX",
    ] {
        assert!(lists[0].contains(part), "{part}: {}", lists[0]);
    }
}

#[test]
fn the_reference_names_everything_else_that_has_a_say() {
    let (_, reference, _) = Home::bare().run(&["config", "--reference"]);
    for part in [
        "TIDEGATE_BOOTSTRAP_KEY",
        "TIDEGATE_CONFIG",
        "OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL",
        "TIDEGATE_MODELS__PROVIDERS__NAME__BASE_URL",
        "TIDEGATE_HOOKS=",
        "--config FILE",
        "--set KEY=VALUE",
        "env:NAME",
        "file:PATH",
        "near_miss_margin = 0.05\n",
        "not_configured_hint = \"\"\n",
    ] {
        assert!(reference.contains(part), "{part}");
    }
}

#[test]
fn variables_reach_nested_tables_and_lists() {
    let home = Home::bare()
        .env(
            "TIDEGATE_MODELS__PROVIDERS__LOCAL__BASE_URL",
            "http://127.0.0.1:1/v1",
        )
        .env(
            "TIDEGATE_MODELS__PROVIDERS__LOCAL__HEADERS",
            "{ x-team = \"blue\" }",
        )
        .env("TIDEGATE_MODELS__PROVIDERS__LOCAL__EXTRA", "top_k, min_p")
        .env(
            "TIDEGATE_MODELS__ALIASES",
            "{ \"gpt-4.1\" = { provider = \"local\", model = \"m\" } }",
        )
        .env("TIDEGATE_SERVER__ALLOWED_HOSTS", "a.example,b.example")
        .env(
            "TIDEGATE_HOOKS",
            "[{ name = \"h\", command = [\"/usr/local/bin/h\"] }]",
        );
    home.write(
        "tidegate.toml",
        "[models.aliases.other]\nprovider = \"local\"\nmodel = \"n\"\n[[hooks]]\nname = \"gone\"\ncommand = [\"x\"]\n",
    );
    let (code, shown, stderr) = home.run(&["config"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    for line in [
        "base_url = \"http://127.0.0.1:1/v1\"",
        "x-team = \"(hidden)\"",
        "extra = [\"top_k\", \"min_p\"]",
        "[models.aliases.\"gpt-4.1\"]",
        "[models.aliases.other]",
        "allowed_hosts = [\"a.example\", \"b.example\"]",
        "command = [\"/usr/local/bin/h\"]",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("gone"), "the list is given whole: {shown}");
}

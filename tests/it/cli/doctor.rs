//! `tidegate doctor`: every line of it, and an exit code for scripts.

use serde_json::Value;

use crate::support::{Daemon, Home, outcome};

fn checks(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn status<'a>(report: &'a Value, name: &str) -> &'a str {
    let lines = report["checks"].as_array().unwrap();
    let line = lines
        .iter()
        .find(|line| line["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {report}"));
    line["status"].as_str().unwrap()
}

// The scripted server lives in the test's own runtime, and a command run to its end would stop that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_is_well_beside_a_running_daemon() {
    let daemon = Daemon::start().await;
    daemon.write(
        "skills/one/SKILL.md",
        "---\nname: one\ndescription: one\nkeywords: [one]\n---\nText.\n",
    );
    let (code, text, stderr) = outcome(&daemon.run(&["doctor"]));
    assert_eq!(code, Some(0), "{text}{stderr}");
    for name in [
        "configuration",
        "data folder",
        "database",
        "keys",
        "instructions",
        "embedder",
        "knowledge base",
        "tools",
        "model",
        "port",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(!text.contains("FAILED"), "{text}");
    let (code, text, _) = outcome(&daemon.run(&["doctor", "--json"]));
    assert_eq!(
        (code, &checks(&text)["ok"]),
        (Some(0), &Value::Bool(true)),
        "{text}"
    );
}

#[tokio::test]
async fn each_failing_line_says_how_to_mend_it_and_the_exit_code_is_1() {
    let home = Home::bare();
    home.configure(
        "[models]\nretries_max = 0\n[models.providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
         [tools]\ntools_file = \"tools.toml\"\n",
    );
    home.write("tools.toml", "[[tool]]\nname = 5\n");
    home.write("data/x", "");
    let taken = tokio::net::TcpListener::bind(("127.0.0.1", home.port))
        .await
        .unwrap();
    let (code, text, stderr) = home.run(&["doctor", "--json"]);
    assert_eq!(code, Some(1), "{text}{stderr}");
    let report = checks(&text);
    assert_eq!(report["ok"], false);
    for name in ["instructions", "tools", "model", "port"] {
        assert_eq!(status(&report, name), "failed", "{report}");
    }
    for line in report["checks"].as_array().unwrap() {
        let is_good = line["status"] == "ok";
        assert_eq!(line.get("fix").is_none(), is_good, "{line}");
        assert!(is_good || !line["fix"].as_str().unwrap().is_empty(), "{line}");
    }
    let (code, text, _) = home.run(&["doctor"]);
    assert_eq!(code, Some(1));
    assert!(
        text.matches("fix: ").count() >= 4 && text.contains("tidegate init"),
        "{text}"
    );
    drop(taken);
    home.write("tidegate.toml", "[server]\nbind = 5\n");
    let (code, text, _) = home.run(&["doctor"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("line 2") && text.contains("fix: "), "{text}");
}

#[test]
fn a_folder_without_a_model_or_a_key_says_what_to_type() {
    let home = Home::new("[discovery]\nollama = false\n");
    let (code, text, _) = home.run(&["doctor", "--json"]);
    assert_eq!(code, Some(1), "{text}");
    let report = checks(&text);
    assert_eq!(
        (status(&report, "model"), status(&report, "keys")),
        ("failed", "warning"),
        "{report}"
    );
    assert!(
        text.contains("OPENAI_API_KEY") && text.contains("tidegate keys create"),
        "{text}"
    );
}

#[test]
fn nothing_is_made_in_a_bare_folder_and_every_failing_line_says_how_to_mend_it() {
    let home = Home::bare()
        .env("TIDEGATE_DISCOVERY__OLLAMA", "false")
        .env("TIDEGATE_BIND", "127.0.0.1:0");
    let (code, text, stderr) = home.run(&["doctor", "--json"]);
    assert_eq!(code, Some(1), "{text}{stderr}");
    assert_eq!(std::fs::read_dir(home.folder()).unwrap().count(), 0, "{text}");
    let report = checks(&text);
    for (name, expected) in [
        ("configuration", "ok"),
        ("data folder", "ok"),
        ("log folder", "ok"),
        ("database", "ok"),
        ("keys", "warning"),
        ("instructions", "failed"),
        ("knowledge bank", "warning"),
        ("tools", "ok"),
        ("model", "failed"),
    ] {
        assert_eq!(status(&report, name), expected, "{name}: {report}");
    }
    for line in report["checks"].as_array().unwrap() {
        let has_fix = line["fix"].as_str().is_some_and(|fix| !fix.is_empty());
        assert_eq!(has_fix, line["status"] != "ok", "{line}");
    }
}

#[test]
fn a_data_folder_that_cannot_be_made_fails_and_is_not_made() {
    let home = Home::new("data_dir = \"AGENT.md/data\"\n");
    home.write(
        "tidegate.toml",
        "data_dir = \"AGENT.md/data\"\n[discovery]\nollama = false\n",
    );
    let (code, text, _) = home.run(&["doctor"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("cannot be made in") && text.contains("set `data_dir`"),
        "{text}"
    );
}

#[test]
fn every_mistake_of_the_configuration_has_a_line() {
    let home = Home::bare();
    home.write(
        "tidegate.toml",
        "[server]\nbind = 5\nbogus = 1\n[engine]\nrounds_max = 0\n",
    );
    let (code, text, _) = home.run(&["doctor", "--json"]);
    assert_eq!(code, Some(1), "{text}");
    let report = checks(&text);
    let lines = report["checks"].as_array().unwrap();
    let statuses: Vec<_> = lines
        .iter()
        .map(|line| line["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["failed", "failed", "warning"], "{report}");
}

//! `tidegate explain`: every layer's verdict, how to allow the call, and nothing run.

use serde_json::{Value, json};

use crate::support::{Daemon, Setup, outcome};

fn explain(daemon: &Daemon, tool: &str, arguments: &Value, more: &[&str]) -> (Option<i32>, Value) {
    let arguments = arguments.to_string();
    let mut line = vec!["explain", "--tool", tool, "--args", &arguments, "--json"];
    line.extend(more);
    let (code, stdout, stderr) = outcome(&daemon.run(&line));
    let value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    (code, value)
}

fn verdict<'v>(explained: &'v Value, layer: &str) -> &'v str {
    let layers = explained["layers"].as_array().unwrap();
    let found = layers.iter().find(|row| row["layer"] == layer);
    found.unwrap_or_else(|| panic!("no layer {layer}: {explained}"))["verdict"]
        .as_str()
        .unwrap()
}

#[tokio::test]
async fn the_exit_code_is_the_decision_and_every_layer_is_named() {
    let daemon = Setup::default()
        .config("[gate]\nblocked_paths = [\"shut\"]\nno_prompt_paths = [\"drafts\"]")
        .file("knowledge-bank/shut/a.txt", "x")
        .start()
        .await;
    let file = |path: &str| json!({"path": path, "content": "x"});
    for (tool, arguments, mode, code, layer) in [
        ("read_text", json!({"path": "notes.txt"}), "readonly", 0, "read"),
        ("write_file", file("plan.md"), "readonly", 3, "mode"),
        (
            "write_file",
            file("drafts/plan.md"),
            "readonly",
            0,
            "no_prompt_zone",
        ),
        ("write_file", file("plan.md"), "full-auto", 0, "full_auto"),
        ("write_file", file("plan.md"), "plan-only", 4, "plan_only"),
        ("write_file", file(".env"), "full-auto", 4, "credentials"),
        (
            "read_text",
            json!({"path": "shut/a.txt"}),
            "full-auto",
            4,
            "blocked_path",
        ),
        (
            "read_text",
            json!({"path": "../../etc/passwd"}),
            "readonly",
            4,
            "paths",
        ),
        ("read_text", json!({}), "readonly", 4, "arguments"),
        (
            "execute_shell",
            json!({"command": "ls -l"}),
            "readonly",
            0,
            "shell_readonly",
        ),
        (
            "execute_shell",
            json!({"command": "touch x"}),
            "readonly",
            3,
            "shell",
        ),
        (
            "execute_shell",
            json!({"command": "git push"}),
            "full-auto",
            4,
            "git",
        ),
        (
            "execute_shell",
            json!({"command": "rm -rf /"}),
            "full-auto",
            4,
            "unrecoverable",
        ),
    ] {
        let (found, explained) = explain(&daemon, tool, &arguments, &["--mode", mode]);
        let context = format!("{tool} {arguments} {mode}: {explained}");
        assert_eq!(found, Some(code), "{context}");
        assert_eq!(explained["decision"]["layer"], layer, "{context}");
        assert_eq!(explained["mode"], mode, "{context}");
        for layer in ["authority", "arguments", "hooks", "write_caps", "outbound_secret"] {
            verdict(&explained, layer);
        }
        assert_eq!(
            explained["to_allow"].as_array().unwrap().is_empty(),
            code == 0,
            "{context}"
        );
    }
    assert_nothing_ran(&daemon);
}

fn assert_nothing_ran(daemon: &Daemon) {
    for path in ["plan.md", "drafts", "x"] {
        assert!(
            !daemon.path("knowledge-bank").join(path).exists(),
            "{path} was made"
        );
    }
    let trail = std::fs::read_to_string(daemon.path("logs/audit.jsonl")).unwrap_or_default();
    assert!(trail.is_empty(), "nothing was decided for real: {trail}");
}

#[tokio::test]
async fn a_command_is_shown_as_it_was_parsed() {
    let daemon = Daemon::start().await;
    let line = json!({"command": "cat notes.txt | head -1; wc -l < notes.txt"});
    let (code, explained) = explain(&daemon, "execute_shell", &line, &[]);
    assert_eq!(code, Some(0), "{explained}");
    let command = &explained["parsed"]["command"];
    assert_eq!(command["argv"][0], json!(["cat", "notes.txt"]), "{command}");
    assert_eq!(command["argv"][1], json!(["head", "-1"]), "{command}");
    let real = daemon.path("knowledge-bank/notes.txt").canonicalize().unwrap();
    let paths = explained["parsed"]["paths"].as_array().unwrap();
    assert!(
        paths
            .iter()
            .any(|path| path["access"] == "read" && path["real"] == json!(real)),
        "{explained}"
    );
    let (code, explained) = explain(
        &daemon,
        "execute_shell",
        &json!({"command": "curl https://example.org/a"}),
        &[],
    );
    assert_eq!(code, Some(3), "{explained}");
    assert_eq!(explained["parsed"]["urls"], json!(["https://example.org/a"]));
}

#[tokio::test]
async fn it_says_how_to_allow_and_what_nothing_opens() {
    let daemon = Setup::default()
        .config("[engine]\ndefault_permission_mode = \"readonly\"")
        .file("hooks/no.sh", "#!/bin/sh\n")
        .config("[[hooks]]\nname = \"office-hours\"\nwhen = \"before_tool\"\ncommand = [\"hooks/no.sh\"]")
        .start()
        .await;
    let write = |path: &str| json!({"path": path, "content": "x"});
    let text = |arguments: &Value, more: &[&str]| {
        let arguments = arguments.to_string();
        let mut line = vec!["explain", "--tool", "write_file", "--args", &arguments];
        line.extend(more);
        outcome(&daemon.run(&line)).1
    };
    let asked = text(&write("forms/a.md"), &["--mode", "full-auto", "--user", "ann"]);
    for part in [
        "mode      readonly",
        "ann",
        "office-hours",
        "tidegate approvals approve",
        "gate.no_prompt_paths = [\"forms\"]",
        "decision  asked by `mode`",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let refused = text(&write("keys/id_rsa"), &[]);
    assert!(
        refused.contains("gate.allowed_sensitive_files = [\"keys/id_rsa\"]"),
        "{refused}"
    );
    let own = text(&write("../AGENT.md"), &[]);
    assert!(own.contains("refused"), "{own}");
    let startup = text(&write(".bashrc"), &[]);
    assert!(
        startup.contains("no setting and no approval opens this"),
        "{startup}"
    );
}

#[tokio::test]
async fn a_wrong_question_is_answered_with_what_to_write() {
    let daemon = Daemon::start().await;
    for (arguments, code, part) in [
        (vec!["--tool", "nothing"], 1, "the tools are"),
        (vec!["--tool", "read_text", "--args", "[1]"], 2, "JSON object"),
        (vec!["--tool", "read_text", "--args", "{"], 2, "no JSON"),
        (vec!["--tool", "read_text", "--mode", "free"], 2, "readonly"),
        (vec![], 2, "--tool"),
    ] {
        let line: Vec<&str> = ["explain"].into_iter().chain(arguments.iter().copied()).collect();
        let (found, _, stderr) = outcome(&daemon.run(&line));
        assert_eq!(found, Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}

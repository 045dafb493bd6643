//! `tidegate triage`, and the settings of the routing gate's second tier.

use std::{
    fmt::Write as _,
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Home, outcome};

/// What the routing gate says about a question with this configuration.
fn routing(home: &Home, config: &str, ask: &str) -> Value {
    home.configure(&format!("[discovery]\nollama = false\n{config}"));
    let (code, stdout, stderr) = home.run(&["prompt", "--message", ask, "--json"]);
    assert_eq!(code, Some(0), "{config}: {stderr}");
    let mut value: Value = serde_json::from_str(&stdout).unwrap();
    value["routing"].take()
}

/// A question that no rule knows, with lists that are about it.
fn lighthouse() -> (Home, &'static str) {
    let home = Home::new("");
    home.write("routing/patterns.txt", "address = you\nours.none = ours\n");
    home.write(
        "routing/examples.txt",
        "do you guard the lighthouse\nare you keeping the lamp\nwhere is your lighthouse\nwho lights your lamp\n",
    );
    home.write(
        "routing/counterexamples.txt",
        "bake a cake\nwhat is the capital of Peru\nhow deep is a lake\nthank you for the soup\n",
    );
    home.write(
        "other.txt",
        "do you keep the lighthouse lamp burning\nare you in the lighthouse\n",
    );
    (home, "do you keep the lighthouse lamp burning")
}

const MODEL: &str = "embedding_threshold_model = \"static-minilm-256-v1\"\n";

#[test]
fn the_second_tier_decides_by_the_lists_the_score_and_the_threshold_that_are_set() {
    let (home, ask) = lighthouse();
    let usual = routing(&home, "", ask);
    assert_eq!(
        (&usual["tier"], &usual["about_agent"]),
        (&json!("embedding"), &json!(true)),
        "{usual}"
    );
    let score = usual["score"].as_f64().unwrap();
    assert!(score > usual["threshold"].as_f64().unwrap(), "{usual}");
    for (config, about) in [
        (format!("embedding_threshold = 9\n{MODEL}"), false),
        // A threshold counts on the model that it was set for alone.
        (
            "embedding_threshold = 9\nembedding_threshold_model = \"another\"\n".to_owned(),
            true,
        ),
        ("embedding_threshold = 9\n".to_owned(), true),
        // No threshold was measured for this score; with one it decides.
        ("embedding_score = \"nearest\"\n".to_owned(), false),
        (
            format!("embedding_score = \"nearest\"\nembedding_threshold = 0.1\n{MODEL}"),
            true,
        ),
        // The same words stand on the other list as well.
        (
            format!(
                "counterexamples_file = \"other.txt\"\nembedding_score = \"margin\"\nembedding_threshold = 0.3\n{MODEL}"
            ),
            false,
        ),
        (
            format!("embedding_score = \"margin\"\nembedding_threshold = 0.3\n{MODEL}"),
            true,
        ),
    ] {
        let found = routing(&home, &format!("[routing]\n{config}"), ask);
        assert_eq!(found["about_agent"], about, "{config}{found}");
    }
    let near = |margin: &str| {
        let threshold = score + 0.2;
        let config =
            format!("[routing]\nembedding_threshold = {threshold}\n{MODEL}near_miss_margin = {margin}\n");
        routing(&home, &config, ask)["near_miss"].clone()
    };
    assert_eq!((near("0.01"), near("0.9")), (json!(false), json!(true)));
}

/// Three decisions of one embedding model a line of `scores`, in a log with one file put aside.
fn log(home: &Home, file: &str, model: &str, lists: &str, scores: &[(f64, &str)]) {
    let mut text = String::new();
    for (at, (score, query)) in scores.iter().enumerate() {
        let about = *score >= 0.4;
        let line = json!({
            "ts": "2026-01-01T00:00:00Z", "request": format!("req_{model}_{at}"), "key": "k", "user": "k",
            "tier": "embedding", "rule": "aa", "model": model, "lists": lists, "score_kind": "probe",
            "score": score, "threshold": 0.4, "margin": 0.1, "nearest": [{"id": "aa", "cosine": 0.5}],
            "nearest_negative": [], "addressed": true, "decision": if about { "about_agent" } else { "domain" },
            "near_miss": !about && *score > 0.3, "tools_stripped": about, "domain_terms_found": [],
            "latency_us": 40, "query_hash": format!("hash{at}"), "query": query,
        });
        writeln!(text, "{line}").unwrap();
    }
    home.write(&format!("logs/agents/triage.jsonl{file}"), &text);
}

/// A hundred questions: those about the agent from 0.2 to 1.19, tasks a step below each.
fn hundred(home: &Home) {
    let scores: Vec<(f64, &str)> = (0..100)
        .map(|at| {
            let about = at % 4 == 0;
            let score = f64::from(at) / 100.0 + if about { 0.2 } else { -0.5 };
            (score, if about { "about" } else { "task" })
        })
        .collect();
    log(home, "", "static-minilm-256-v1", "0123456789ab", &scores);
}

fn calibrate(home: &Home, more: &[&str], keys: &str) -> (Option<i32>, String, String) {
    let mut line = vec!["triage", "calibrate"];
    line.extend(more);
    let mut command: Command = home.command(&line);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses closes its end early.
    drop(child.stdin.take().unwrap().write_all(keys.as_bytes()));
    outcome(&child.wait_with_output().unwrap())
}

/// The keys that answer every question as its text says, in the order in which the questions come.
fn keys(home: &Home) -> String {
    let (_, stdout, _) = calibrate(home, &[], &"s".repeat(200));
    let questions = stdout
        .lines()
        .filter(|line| line.trim_end().ends_with('"') && line.contains("/100  "));
    questions
        .map(|line| if line.contains("about") { "a" } else { "t" })
        .collect()
}

#[test]
fn a_report_counts_and_draws_every_file_of_the_log() {
    let home = Home::new("");
    let (code, stdout, _) = home.run(&["triage", "report"]);
    assert!(
        code == Some(0) && stdout.contains("no decision is logged yet"),
        "{stdout}"
    );
    log(&home, ".2", "old-model", "one", &[(0.9, "x"), (0.1, "y")]);
    log(
        &home,
        "",
        "new-model",
        "two",
        &[(0.5, "x"), (0.35, "y"), (-0.2, "z")],
    );
    let (code, stdout, stderr) = home.run(&["triage", "report", "--svg", "scores.svg"]);
    assert_eq!(code, Some(0), "{stderr}");
    for part in [
        "embedding  2                3       1",
        "5 decisions",
        "probe of old-model, lists one: 2 scores, threshold 0.400",
        "probe of new-model, lists two: 3 scores, threshold 0.400",
        "█",
        "the picture is scores.svg",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let picture = std::fs::read_to_string(home.folder().join("scores.svg")).unwrap();
    assert!(picture.contains("3 scores of new-model, lists two") && picture.matches("<g>").count() == 8);
    let (_, stdout, _) = home.run(&["triage", "report", "--json", "--model", "old-model"]);
    let value: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        value["tiers"]["embedding"],
        json!({"about_agent": 2, "domain": 3, "near_misses": 1})
    );
    assert_eq!(value["scores"].as_array().unwrap().len(), 1);
    assert_eq!(value["scores"][0]["model"], "old-model");
}

#[test]
fn marks_give_a_threshold_that_is_written_where_the_rest_of_the_file_stays() {
    let home = Home::new("# mine\n[routing]\nwords_max = 30 # short\n");
    hundred(&home);
    let (code, _, stderr) = calibrate(&home, &["--write"], "q");
    assert!(code == Some(1) && stderr.contains("too few marks"), "{stderr}");
    // Left half-way and taken up again: what was marked stays, and is not asked a second time.
    let all = keys(&home);
    assert_eq!(all.len(), 100);
    let (first, second) = all.split_at(40);
    let (code, stdout, _) = calibrate(&home, &[], &format!("{first}q"));
    assert!(code == Some(0) && stdout.contains("too few marks"), "{stdout}");
    let lines: Vec<String> = second.chars().map(|key| format!("{key}\n")).collect();
    let (code, stdout, stderr) = calibrate(&home, &["--write"], &lines.concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(
        stdout.contains("60 questions without a mark") && stdout.contains("nearest example: aa"),
        "{stdout}"
    );
    assert!(
        stdout.contains("25 marked as about the agent, 75 as tasks"),
        "{stdout}"
    );
    let text = std::fs::read_to_string(home.folder().join("tidegate.toml")).unwrap();
    // The highest tasks stand at 0.49 and 0.48: one of 75 may fire.
    for part in [
        "# mine\n",
        "words_max = 30 # short\n",
        "embedding_threshold = 0.485\n",
        MODEL,
        "embedding_threshold_lists = \"0123456789ab\"\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, shown, stderr) = home.run(&["config"]);
    assert!(shown.contains("embedding_threshold = 0.485"), "{shown}{stderr}");
    let (_, stdout, _) = calibrate(&home, &["--no-ask", "--max-false-positives", "0.0"], "");
    assert!(
        stdout.contains("0.000 of the tasks") && stdout.contains("too few marks for a rate of 0"),
        "{stdout}"
    );
}

#[test]
fn scores_of_different_models_or_lists_are_not_mixed() {
    let home = Home::new("");
    let (code, _, stderr) = calibrate(&home, &[], "");
    assert!(
        code == Some(1) && stderr.contains("no score that a threshold decides on"),
        "{stderr}"
    );
    log(&home, ".1", "old-model", "one", &[(0.9, "x")]);
    log(&home, "", "new-model", "two", &[(0.5, "x")]);
    let (code, _, stderr) = calibrate(&home, &[], "q");
    assert!(
        code == Some(1) && stderr.contains("cannot be compared") && stderr.contains("--model"),
        "{stderr}"
    );
    let (code, stdout, _) = calibrate(&home, &["--model", "new-model"], "a");
    assert!(
        code == Some(0) && stdout.contains("1 marked as about the agent, 0 as tasks"),
        "{stdout}"
    );
    let (code, _, stderr) = calibrate(&home, &["--model", "nobody"], "q");
    assert!(
        code == Some(1) && stderr.contains("old-model (lists one, probe)"),
        "{stderr}"
    );
    log(&home, ".1", "new-model", "one", &[(0.9, "x")]);
    let (_, _, stderr) = calibrate(&home, &[], "q");
    assert!(stderr.contains("cannot be compared"), "other lists: {stderr}");
    let (code, stdout, _) = calibrate(&home, &["--model", "new-model"], "q");
    assert!(code == Some(0) && stdout.contains("of lists two"), "{stdout}");
    let (code, _, stderr) = calibrate(&home, &["--max-false-positives", "2"], "");
    assert!(code == Some(2) && stderr.contains("0.02"), "{stderr}");
}

#[test]
fn a_log_without_words_can_be_marked_and_says_how_to_get_them() {
    let home = Home::new("");
    log(&home, "", "m", "l", &[(0.5, "x")]);
    let path = home.folder().join("logs/agents/triage.jsonl");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace(",\"query\":\"x\"", "");
    home.write("logs/agents/triage.jsonl", &text);
    let (code, stdout, _) = calibrate(&home, &["--labels", "marks/mine.jsonl"], "?t");
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("routing.log_query = \"text\"") && stdout.contains("question hash0"),
        "{stdout}"
    );
    assert!(
        stdout.contains("0 marked as about the agent, 1 as tasks, in marks/mine.jsonl"),
        "{stdout}"
    );
    assert!(home.folder().join("marks/mine.jsonl").exists());
}

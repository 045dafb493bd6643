//! The lines of the secrets corpus that are about text: masking, control tokens, wrapping and the prompt. What
//! is sent out is judged by the test of the outbound guard.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tidegate_core::secret::Secret;
use tidegate_gate::guards::{
    prompt_leak::Fingerprints,
    secrets::{Redactor, Stream},
    untrusted,
};

/// A text; long ones are written as a generator.
fn text(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let generator = &value["gen"];
    let plain = |name: &str| generator[name].as_str().unwrap_or_default().to_owned();
    let repeated = |name: &str| {
        let count = usize::try_from(generator[name][1].as_u64().unwrap_or(0)).unwrap();
        generator[name][0].as_str().unwrap_or_default().repeat(count)
    };
    plain("prefix") + &repeated("repeat") + &plain("middle") + &repeated("suffix_repeat") + &plain("suffix")
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// Every value that a line's configuration calls secret, wherever it keeps it.
fn secrets(config: &Value) -> Vec<Secret> {
    let mut values = Vec::new();
    for name in ["secrets", "env", "env_file", "rotated"] {
        let members = config[name].as_object().into_iter().flatten();
        values.extend(members.map(|(_, value)| text(value)));
    }
    leaves(&config["config"], &mut values);
    values.into_iter().map(Secret::new).collect()
}

fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) => {
            // A pointer names a variable; the name is no secret.
            let values = members.iter().filter(|(name, _)| !name.ends_with("_env"));
            values.for_each(|(_, member)| leaves(member, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redacted(line: &Value) -> String {
    let redactor = Arc::new(Redactor::new(secrets(&line["config"])).unwrap());
    let input = &line["input"];
    if let Some(chunks) = input.get("chunks") {
        let mut stream = Stream::new(redactor);
        let mut shown: String = texts(chunks).iter().map(|chunk| stream.push(chunk)).collect();
        shown += &stream.finish();
        return shown;
    }
    let text = input.get("text").map_or_else(|| text(input), text);
    redactor.redact(&text).into_owned()
}

const BEGIN: &str = "<<<EXTERNAL_UNTRUSTED_CONTENT";
const END: &str = "<<<END_UNTRUSTED_CONTENT";

fn wrapped(line: &Value) -> String {
    let input = &line["input"];
    let body = text(&input["text"]);
    if input["source_kind"] == "user_message" {
        return untrusted::neutralise(&body);
    }
    let source = input["source"]
        .as_str()
        .or_else(|| input["source_kind"].as_str())
        .unwrap();
    untrusted::wrap(&body, source, "call_0123456789abcdef")
}

/// Whether what a line asks of the outcome holds.
fn holds(name: &str, asked: &Value, outcome: &str, input: &str) -> bool {
    let count = |text: &str, what: &str| u64::try_from(text.matches(what).count()).unwrap();
    let loose: String = untrusted::folded(outcome)
        .to_lowercase()
        .split_whitespace()
        .collect();
    match name {
        "absent" | "joined_absent" => texts(asked).iter().all(|text| !outcome.contains(text)),
        "present" | "joined_present" | "contains" => texts(asked).iter().all(|text| outcome.contains(text)),
        "equals" => Some(outcome) == asked.as_str(),
        "changed" => outcome != input,
        "no_control_token_after_nfkc_and_zero_width_removal" => {
            let folded = untrusted::folded(outcome);
            untrusted::neutralise(&folded) == folded
        }
        "begin_marker_well_formed" => {
            let first = outcome.lines().next().unwrap();
            first.starts_with(BEGIN) && first.ends_with("\">>>") && first.matches('"').count() == 4
        }
        // Only what a model writes is ever read as a call or as a control message.
        "starts_with_marker" | "not_parsed_as_tool_call" | "not_treated_as_control" => {
            outcome.starts_with(BEGIN)
        }
        "ends_with_marker" => {
            let last = outcome.lines().last().unwrap();
            last.starts_with(END) && last.ends_with(">>>")
        }
        "begin_marker_count" => count(outcome, BEGIN) == asked.as_u64().unwrap(),
        "end_marker_count" => count(outcome, END) == asked.as_u64().unwrap(),
        "end_marker_count_nocase" => {
            count(&outcome.to_lowercase(), &END.to_lowercase()) == asked.as_u64().unwrap()
        }
        "end_marker_count_loose" => count(&loose, &END.to_lowercase()) == asked.as_u64().unwrap(),
        "no_tag_characters" => !outcome
            .chars()
            .any(|letter| ('\u{e0000}'..='\u{e007f}').contains(&letter)),
        "no_bidi_controls_or_escaped" => !outcome
            .chars()
            .any(|letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')),
        "no_marker" => !outcome.contains("UNTRUSTED_CONTENT"),
        other => panic!("unknown check {other}"),
    }
}

fn run(line: &Value) -> Result<(), String> {
    let kind = line["kind"].as_str().unwrap();
    let expected = line["expect"].as_str().unwrap();
    let accepted = match line.get("accept") {
        Some(accepted) => texts(accepted),
        None => vec![expected.to_owned()],
    };
    let input = line["input"]
        .get("text")
        .map_or_else(|| text(&line["input"]), text);
    let output = match kind.split('.').next().unwrap() {
        "redact" => redacted(line),
        "strip" => untrusted::neutralise(&input),
        "wrap" => wrapped(line),
        "leak" => {
            let lines = texts(&line["config"]["system_prompt_lines"]);
            let prints = Arc::new(Fingerprints::of(lines.iter().map(String::as_str)));
            let outcome = if prints.is_leak(&input) { "refuse" } else { "allow" };
            return if accepted.iter().any(|name| name == outcome) {
                Ok(())
            } else {
                Err(outcome.to_owned())
            };
        }
        other => panic!("unknown kind {other}"),
    };
    let checks = line["check"].as_object().into_iter().flatten();
    let broken: Vec<_> = checks
        .filter(|(name, asked)| !holds(name, asked, &output, &input))
        .map(|(name, _)| name.as_str())
        .collect();
    if broken.is_empty() || (accepted.iter().any(|name| name == "allow") && expected == "transform") {
        return Ok(());
    }
    Err(format!(
        "{broken:?} {:?}",
        output.chars().take(200).collect::<String>()
    ))
}

#[test]
fn every_line_comes_out_as_it_must() {
    let text = include_str!("../../../tests/corpora/secrets.jsonl");
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["kind"] == "outbound" {
            continue;
        }
        let named = |name: &str| line[name].as_str().unwrap().to_owned();
        *counts.entry((named("kind"), named("tier"))).or_default() += 1;
        if let Err(outcome) = run(&line) {
            wrong.push(format!("{} {}: {outcome}", named("id"), named("why")));
        }
    }
    println!("{counts:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

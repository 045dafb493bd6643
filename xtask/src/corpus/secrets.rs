//! Texts and calls that hold secrets, control tokens or the prompt, put to the functions that every way in and
//! every way out goes through.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Map, Value};
use tidegate_core::id::{KeyId, UserId};
use tidegate_core::memory::Observation;
use tidegate_core::secret::Secret;
use tidegate_gate::guards::outbound::{self, Outgoing, Own, Secrets};
use tidegate_gate::guards::prompt_leak::{self, Fingerprints, Passage};
use tidegate_gate::guards::secrets::{Redactor, Stream};
use tidegate_gate::guards::{address, untrusted};
use tidegate_memory::boundary::{Boundary, Held, Limits, Reading, given_value, given_words};
use tidegate_memory::derive::derive;
use tidegate_memory::evidence::Ledger;
use tidegate_memory::export;
use tidegate_memory::extract::rules;
use tidegate_memory::kinds::Kinds;

use super::case::{Case, Outcome, strings, text};
use super::{Judged, Verdict};

/// The configuration that is understood.
const CONFIG: [&str; 11] = [
    "config",
    "env",
    "env_file",
    "grant",
    "mode",
    "profile",
    "rotated",
    "secrets",
    "secrets_env",
    "system_prompt_lines",
    "tool_hosts",
];
/// Surfaces that the product does not have yet, by the words that name them.
const ABSENT: [(&str, &str); 7] = [
    ("mcp", "MCP"),
    ("browser", "browser"),
    ("search", "search"),
    ("email", "email"),
    ("webhook", "webhooks"),
    ("subagent", "sub-agents"),
    ("plan", "plans"),
];
/// Surfaces on which masking and the prompt's secrecy are in force.
const PRESENT: [&str; 20] = [
    "conversation_export",
    "conversation_store",
    "debug_log",
    "error_page",
    "file",
    "file_outside_workspace",
    "final_answer",
    "memory",
    "memory_export",
    "memory_store",
    "model_request_tools",
    "panic_message",
    "redirect_page",
    "streamed_delta",
    "tool_arguments",
    "tool_arguments_echo",
    "tool_output",
    "tool_result",
    "user_message",
    "web_page",
];
const BEGIN: &str = "<<<EXTERNAL_UNTRUSTED_CONTENT";
const END: &str = "<<<END_UNTRUSTED_CONTENT";

pub(super) fn judge(case: &Case) -> Judged {
    let surface = ["surface", "source_kind", "tool"]
        .iter()
        .find_map(|name| case.input[*name].as_str())
        .unwrap_or_default();
    if let Some((_, what)) = ABSENT.iter().find(|(word, _)| surface.contains(word)) {
        return Judged::Absent((*what).to_owned());
    }
    let judged = match case.layer.split(['.', '-']).next().unwrap_or_default() {
        "redaction" | "redact" if surface.contains("export") => exported(case),
        "redaction" | "redact" if surface.contains("memory") => remembered(case),
        "redaction" | "redact" => redacted(case),
        "strip" => input_text(case).map(|text| transformed(case, &text, &untrusted::neutralise(&text))),
        "untrusted" => wrapped(case),
        "prompt" => leaked(case),
        "outbound" => outgoing(case),
        _ => None,
    };
    let Some(mut verdict) = judged else {
        return Judged::Unknown("the form or the layer is not known".to_owned());
    };
    verdict.unchecked.extend(case.unknown_config(&CONFIG));
    if !surface.is_empty() && !PRESENT.contains(&surface) && surface != "http" {
        verdict.unchecked.push(format!("surface `{surface}`"));
    }
    Judged::Done(verdict)
}

fn input_text(case: &Case) -> Option<String> {
    text(case.input.get("text").unwrap_or(&case.input))
}

/// Every value that a line's configuration calls secret, wherever it keeps it.
fn values(case: &Case) -> Vec<String> {
    let mut values = Vec::new();
    for name in ["secrets", "env", "env_file", "rotated", "secrets_env"] {
        leaves(case.config.get(name).unwrap_or(&Value::Null), &mut values);
    }
    leaves(case.config.get("config").unwrap_or(&Value::Null), &mut values);
    values
}

fn leaves(value: &Value, found: &mut Vec<String>) {
    if let Some(text) = text(value) {
        found.push(text);
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) => {
            // A pointer names a variable; the name is no secret.
            let values = members.iter().filter(|(name, _)| !name.ends_with("_env"));
            values.for_each(|(_, member)| leaves(member, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn redacted(case: &Case) -> Option<Verdict> {
    let secrets = values(case).into_iter().map(Secret::new);
    let redactor = Arc::new(Redactor::new(secrets).ok()?);
    if let Some(chunks) = case.input.get("chunks").and_then(Value::as_array) {
        let chunks: Vec<String> = chunks.iter().map(text).collect::<Option<_>>()?;
        let mut stream = Stream::new(redactor);
        let mut shown: String = chunks.iter().map(|chunk| stream.push(chunk)).collect();
        shown += &stream.finish();
        return Some(transformed(case, &chunks.concat(), &shown));
    }
    let input = input_text(case)?;
    // A value that is masked in a text is masked in every field of a structure, names included.
    let mut structure = serde_json::json!({ input.as_str(): [input.as_str()] });
    redactor.redact_json(&mut structure);
    let output = redactor.redact(&input).into_owned();
    let mut verdict = transformed(case, &input, &output);
    if let Some(member) = structure.as_object().and_then(|members| members.iter().next())
        && case.expect == Outcome::Transform
        && *member.1 != serde_json::json!([output.as_str()])
    {
        verdict
            .failures
            .push("a text and a field are masked differently".to_owned());
    }
    Some(verdict)
}

/// What memory has of a text: the finished turn as it waits to be learned from, what is found in it, and what is taken when
/// a person enters it by hand.
fn remembered(case: &Case) -> Option<Verdict> {
    let (input, redactor) = (input_text(case)?, redactor(case)?);
    let kept = kept(&input, &redactor).ok()?;
    let waits = redactor.redact(&input).into_owned();
    let mut verdict = transformed(case, &input, &waits);
    for said in &kept {
        let texts = [&said.value, &said.quote];
        if texts.iter().any(|text| redactor.redact(text) != text.as_str()) {
            verdict
                .failures
                .push(format!("a secret is remembered: {:?}", shortened(&said.quote)));
        }
    }
    Some(verdict)
}

/// What is handed out of it: memory's export.
fn exported(case: &Case) -> Option<Verdict> {
    let (input, redactor) = (input_text(case)?, redactor(case)?);
    let kinds = Kinds::shipped().ok()?;
    let (user, now) = (person()?, NOW.parse().ok()?);
    let kept = kept(&input, &redactor).ok()?;
    let facts = derive(&kinds, &user, now, &kept);
    let document = export::document(&kinds, &user, now, &facts, &Ledger::new(kept));
    Some(transformed(case, &input, &serde_json::to_string(&document).ok()?))
}

fn redactor(case: &Case) -> Option<Redactor> {
    Redactor::new(values(case).into_iter().map(Secret::new)).ok()
}

/// When everything is said.
const NOW: &str = "2026-03-02T09:00:00Z";

/// Who says it.
fn person() -> Option<UserId> {
    UserId::of(&KeyId::new("key_corpus"), Some("ann")).ok()
}

/// What is kept of a text that a person says, and enters by hand.
fn kept(text: &str, redactor: &Redactor) -> anyhow::Result<Vec<Observation>> {
    let kinds = Kinds::shipped()?;
    let reading = Reading::of(text, []);
    let boundary = Boundary {
        kinds: &kinds,
        limits: Limits::default(),
        redactor,
    };
    let judged = boundary.judge(&reading, Held::default(), &rules::extract(&reading));
    let mut said: Vec<(String, String, String)> = judged
        .into_iter()
        .flatten()
        .map(|kept| (kept.kind, kept.value, kept.quote))
        .collect();
    for kind in &kinds {
        if let Ok(value) = given_value(kind, text, redactor)
            && given_words(text, &value, redactor).is_ok()
        {
            said.push((kind.name.clone(), value, text.to_owned()));
        }
    }
    let observations = said.into_iter().enumerate().map(|(number, (kind, value, quote))| {
        serde_json::from_value(serde_json::json!({
            "id": format!("obs_{number}"), "kind": kind, "value": value, "quote": quote, "turn": vec![0_u8; 32],
            "conversation": "c", "day": NOW.get(..10), "at": NOW, "voice": "corrected", "stance": "affirmed",
            "extractor": "user", "is_explicit": true, "is_first_person": true,
        }))
    });
    Ok(observations.collect::<Result<_, _>>()?)
}

fn wrapped(case: &Case) -> Option<Verdict> {
    let input = input_text(case)?;
    if case.input["source_kind"] == "user_message" {
        return Some(transformed(case, &input, &untrusted::neutralise(&input)));
    }
    let source = ["source", "source_kind"]
        .iter()
        .find_map(|name| case.input[*name].as_str())?;
    let output = untrusted::wrap(&input, source, "call_0123456789abcdef");
    Some(transformed(case, &input, &output))
}

fn leaked(case: &Case) -> Option<Verdict> {
    let lines = case.list("system_prompt_lines");
    let prints = Arc::new(Fingerprints::of(lines.iter().map(String::as_str)));
    let chunks: Vec<String> = match case.input.get("chunks").and_then(Value::as_array) {
        Some(chunks) => chunks.iter().map(text).collect::<Option<_>>()?,
        None => vec![input_text(case)?],
    };
    let whole = prints.is_leak(&chunks.concat());
    let mut stream = prompt_leak::Stream::new(prints);
    let pieces: Vec<Passage> = chunks.iter().map(|chunk| stream.push(chunk)).collect();
    let in_pieces = pieces.contains(&Passage::Leak) || stream.finish() == Passage::Leak;
    let is_leak = whole && in_pieces;
    let outcome = if is_leak { Outcome::Refuse } else { Outcome::Allow };
    Some(Verdict::new(outcome, if is_leak { "prompt leak" } else { "" }))
}

/// A request that is about to leave, as the clients of the tools put it to the guard.
fn outgoing(case: &Case) -> Option<Verdict> {
    let values = values(case);
    let secrets = Secrets::compile(values.iter().map(String::as_str)).ok()?;
    let input = &case.input;
    let url = input.get("url").map(text).unwrap_or_default().unwrap_or_default();
    let host = address::Policy::default()
        .check(&url)
        .map(|destination| destination.host_text())
        .unwrap_or_default();
    let texts = |value: &Value| -> Vec<(String, String)> {
        let members = value.as_object().into_iter().flatten();
        members
            .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
            .collect()
    };
    let mut headers = texts(&input["headers"]);
    let named = |value: &str| -> Option<(String, String)> {
        let name = value.strip_prefix('{')?.strip_suffix('}')?;
        let value = case.config.get("secrets")?[name].as_str()?;
        Some((name.to_owned(), value.to_owned()))
    };
    let mut own_texts = Vec::new();
    let mut own_host = String::new();
    for (header, value) in texts(&input["headers_from_config"]) {
        let (name, value) = named(&value)?;
        let hosts = strings(
            &case
                .config
                .get("tool_hosts")
                .map_or(Value::Null, |hosts| hosts[&name].clone()),
        );
        own_host = hosts.first().cloned().unwrap_or_default();
        own_texts.push(value.clone());
        headers.push((header, value));
    }
    let own = Own {
        host: &own_host,
        texts: &own_texts,
    };
    let body = body(input)?;
    let arguments = arguments(input);
    let ruling = outbound::check(
        &secrets,
        &Outgoing {
            url: &url,
            host: &host,
            headers: &headers,
            body: &body,
            arguments: arguments.as_ref(),
            own: (!own_texts.is_empty()).then_some(own),
        },
    );
    let mut verdict = match ruling {
        Ok(()) => Verdict::new(Outcome::Allow, ""),
        Err(denial) => Verdict::new(Outcome::Refuse, format!("{}: {}", denial.floor, denial.reason)),
    };
    for (name, value) in &case.check {
        if name == "message_absent" {
            let found = strings(value).into_iter().any(|text| verdict.by.contains(&text));
            if found {
                verdict.failures.push("the refusal repeats a secret".to_owned());
            }
        } else {
            verdict.unchecked.push(format!("check `{name}`"));
        }
    }
    Some(verdict)
}

fn body(input: &Value) -> Option<Vec<u8>> {
    if let Some(packed) = input.get("body_gzip") {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text(packed)?.as_bytes()).ok()?;
        return encoder.finish().ok();
    }
    if let Some(fields) = input.get("multipart").and_then(Value::as_object) {
        let parts = fields.iter().map(|(name, value)| {
            let value = text(value)?;
            Some(format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n{value}\r\n"
            ))
        });
        return Some((parts.collect::<Option<String>>()? + "--b--\r\n").into_bytes());
    }
    match input.get("body") {
        None => Some(Vec::new()),
        Some(body) => Some(text(body).unwrap_or_else(|| body.to_string()).into_bytes()),
    }
}

/// The arguments of a call that is no plain request.
fn arguments(input: &Value) -> Option<Map<String, Value>> {
    if let Some(arguments) = input.get("args").and_then(Value::as_object) {
        return Some(arguments.clone());
    }
    input.get("tool")?;
    let given = input.as_object()?.iter();
    let given = given
        .filter(|(name, _)| !["tool", "headers_from_config", "headers", "body"].contains(&name.as_str()));
    Some(given.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// What became of a text, and whether what the line asks of it holds.
fn transformed(case: &Case, input: &str, output: &str) -> Verdict {
    let mut unchecked = Vec::new();
    let mut failures = Vec::new();
    for (name, asked) in &case.check {
        match holds(name, asked, output, input) {
            Some(true) => {}
            Some(false) => failures.push(format!("{name} does not hold of {:?}", shortened(output))),
            None => unchecked.push(format!("check `{name}`")),
        }
    }
    let unchanged = if case.accepts(Outcome::Allow) {
        Outcome::Allow
    } else {
        case.expect
    };
    let outcome = if failures.is_empty() {
        case.expect
    } else {
        unchanged
    };
    if case.accepts(Outcome::Allow) && case.expect == Outcome::Transform {
        // Letting the text be is right as well.
        failures.clear();
    }
    if case.check.is_empty() && case.expect == Outcome::Allow && output != input {
        return Verdict {
            unchecked,
            ..Verdict::new(Outcome::Transform, format!("became {:?}", shortened(output)))
        };
    }
    Verdict {
        failures,
        unchecked,
        ..Verdict::new(outcome, "")
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Whether what a line asks of a text holds; `None` where it is not known what it asks.
fn holds(name: &str, asked: &Value, output: &str, input: &str) -> Option<bool> {
    let is_count = |count: usize| asked.as_u64().is_some_and(|asked| asked == count as u64);
    let marks = BTreeMap::from([
        ("begin_marker_count", output.matches(BEGIN).count()),
        ("end_marker_count", output.matches(END).count()),
        (
            "end_marker_count_nocase",
            output.to_lowercase().matches(&END.to_lowercase()).count(),
        ),
        (
            "end_marker_count_loose",
            loose(output).matches(&END.to_lowercase()).count(),
        ),
        (
            "begin_marker_count_loose",
            loose(output).matches(&BEGIN.to_lowercase()).count(),
        ),
    ]);
    if let Some(count) = marks.get(name) {
        return Some(is_count(*count));
    }
    let is_bidi = |letter: char| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    Some(match name {
        "absent" | "joined_absent" => strings(asked).iter().all(|text| !output.contains(text)),
        "present" | "joined_present" | "contains" => strings(asked).iter().all(|text| output.contains(text)),
        "equals" => Some(output) == asked.as_str(),
        "changed" => output != input,
        "no_control_token_after_nfkc_and_zero_width_removal" => {
            let folded = untrusted::folded(output);
            untrusted::neutralise(&folded) == folded
        }
        "begin_marker_well_formed" => {
            let first = output.lines().next().unwrap_or_default();
            first.starts_with(BEGIN) && first.ends_with("\">>>") && first.matches('"').count() == 4
        }
        // Only what a model writes is ever read as a call or as a control message.
        "starts_with_marker" | "not_parsed_as_tool_call" | "not_treated_as_control" => {
            output.starts_with(BEGIN)
        }
        "ends_with_marker" => {
            let last = output.lines().last().unwrap_or_default();
            last.starts_with(END) && last.ends_with(">>>")
        }
        "no_tag_characters" => !output
            .chars()
            .any(|letter| ('\u{e0000}'..='\u{e007f}').contains(&letter)),
        "no_bidi_controls_or_escaped" => !output.chars().any(is_bidi),
        "no_marker" => !output.contains("UNTRUSTED_CONTENT"),
        _ => return None,
    })
}

/// Without zero-width letters, blanks and case, and after compatibility mapping.
fn loose(text: &str) -> String {
    untrusted::folded(text)
        .to_lowercase()
        .split_whitespace()
        .collect()
}

//! What must hold after the last step of a scenario.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::api::{self, Who};
use super::form::Scenario;
use super::play::neutral;
use super::stage::Stage;

/// A person of whom nothing can be known: what the model is told in their turns is told in everybody's.
const NOBODY: &str = "nobody-was-ever-called-this";

/// Everything that does not hold.
pub(super) fn all(stage: &mut Stage, scenario: &Scenario) -> Result<Vec<String>> {
    let mut failures = states(stage, scenario)?;
    failures.extend(counts(stage, scenario)?);
    failures.extend(identities(stage, scenario)?);
    failures.extend(exports(stage, scenario)?);
    failures.extend(briefings(stage, scenario)?);
    failures.extend(traces(stage, scenario)?);
    Ok(failures)
}

/// Whether a fact is of that kind and value, in whichever case it is shown.
pub(super) fn is_fact(fact: &Value, kind: &str, value: &str) -> bool {
    let same = |name: &str| {
        fact[name]
            .as_str()
            .is_some_and(|text| text.to_lowercase() == value.to_lowercase())
    };
    fact["kind"] == kind && (same("value") || same("shown"))
}

fn states(stage: &Stage, scenario: &Scenario) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for expected in &scenario.expect {
        let memory = api::memory(stage.daemon()?, Who(expected.user.as_deref()))?;
        let facts = &memory.facts;
        let fact = facts
            .iter()
            .find(|fact| is_fact(fact, &expected.kind, &expected.value));
        let actual = fact.map_or("absent", |fact| fact["state"].as_str().unwrap_or("unreadable"));
        if actual != expected.state {
            failures.push(format!(
                "{} {}={:?}: expected {}, actual {actual}; there are {}",
                expected.user.as_deref().unwrap_or("the key"),
                expected.kind,
                expected.value,
                expected.state,
                summary(facts)
            ));
        }
    }
    Ok(failures)
}

/// Facts in short.
fn summary(facts: &[Value]) -> String {
    let all: Vec<String> = facts
        .iter()
        .take(8)
        .map(|fact| {
            let text = |name: &str| fact[name].as_str().unwrap_or_default();
            format!(
                "{}={:?} {} ({} days)",
                text("kind"),
                text("value"),
                text("state"),
                fact["days"]
            )
        })
        .collect();
    match all.as_slice() {
        [] => "no facts".to_owned(),
        _ if facts.len() > all.len() => format!("{} and {} more", all.join(", "), facts.len() - all.len()),
        _ => all.join(", "),
    }
}

fn counts(stage: &Stage, scenario: &Scenario) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    if scenario.max_rows.is_none() && scenario.single_stable.is_empty() {
        return Ok(failures);
    }
    for user in scenario.users() {
        let memory = api::memory(stage.daemon()?, Who(user.as_deref()))?;
        let facts = &memory.facts;
        if let Some(most) = scenario.max_rows.filter(|most| facts.len() > *most) {
            failures.push(format!(
                "{user:?}: expected at most {most} facts, actual {}: {}",
                facts.len(),
                summary(facts)
            ));
        }
        for kind in &scenario.single_stable {
            let stable: Vec<&Value> = facts
                .iter()
                .filter(|fact| fact["kind"] == kind.as_str() && fact["state"] == "stable")
                .collect();
            if stable.len() > 1 {
                failures.push(format!(
                    "{user:?}: expected at most one stable {kind}, actual {}",
                    summary(facts)
                ));
            }
        }
    }
    Ok(failures)
}

/// People whose names look alike are different people, and no fact is of two.
fn identities(stage: &Stage, scenario: &Scenario) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let mut seen: Vec<(&String, String, BTreeSet<String>)> = Vec::new();
    for name in &scenario.users_differ {
        let memory = api::memory(stage.daemon()?, Who(Some(name)))?;
        let ids = memory
            .facts
            .iter()
            .filter_map(|fact| fact["id"].as_str().map(str::to_owned))
            .collect();
        seen.push((name, memory.user, ids));
    }
    for (at, (name, user, ids)) in seen.iter().enumerate() {
        for (other, other_user, other_ids) in &seen[..at] {
            if user.is_empty() || user == other_user {
                failures.push(format!(
                    "expected {name:?} and {other:?} to be different people, actual {user} and {other_user}"
                ));
            }
            if let Some(both) = ids.intersection(other_ids).next() {
                failures.push(format!(
                    "expected no fact of both {name:?} and {other:?}, actual {both}"
                ));
            }
        }
    }
    Ok(failures)
}

fn exports(stage: &Stage, scenario: &Scenario) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for name in &scenario.export_empty {
        let export = api::export(stage.daemon()?, Who(Some(name)))?;
        for list in ["facts", "observations"] {
            let count = export[list].as_array().map(Vec::len);
            if count != Some(0) {
                failures.push(format!(
                    "the export of {name:?}: expected no {list}, actual {}",
                    export[list]
                ));
            }
        }
    }
    Ok(failures)
}

/// What the model is told of people, in their next turn.
fn briefings(stage: &mut Stage, scenario: &Scenario) -> Result<Vec<String>> {
    if scenario.briefing_has.is_empty() && scenario.briefing_lacks.is_empty() {
        return Ok(Vec::new());
    }
    let general = told(stage, Some(NOBODY), &BTreeSet::new())?;
    let general: BTreeSet<String> = general.lines().map(str::to_owned).collect();
    let mut briefings = Vec::new();
    for user in scenario.users() {
        briefings.push((user.clone(), told(stage, user.as_deref(), &general)?));
    }
    let mut failures = Vec::new();
    for part in &scenario.briefing_has {
        if !briefings.iter().any(|(_, briefing)| briefing.contains(part)) {
            failures.push(format!(
                "expected {part:?} in what the model is told, actual {briefings:?}"
            ));
        }
    }
    for part in &scenario.briefing_lacks {
        if let Some((user, briefing)) = briefings.iter().find(|(_, briefing)| briefing.contains(part)) {
            failures.push(format!(
                "expected no {part:?} in what the model is told of {user:?}, actual {briefing:?}"
            ));
        }
    }
    Ok(failures)
}

/// The instructions of a person's next turn, without the lines that everybody's have.
fn told(stage: &mut Stage, user: Option<&str>, general: &BTreeSet<String>) -> Result<String> {
    stage.chat(&neutral(user))?;
    let instructions = stage.seen(|script| script.instructions.clone());
    let own: Vec<&str> = instructions
        .lines()
        .filter(|line| !general.contains(*line))
        .collect();
    Ok(own.join("\n"))
}

/// Texts that may be nowhere: not in what the API shows, and not in any file that the daemon has written.
fn traces(stage: &mut Stage, scenario: &Scenario) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    if scenario.no_trace.is_empty() {
        return Ok(failures);
    }
    stage.clear_bank()?;
    for user in scenario.users() {
        let who = Who(user.as_deref());
        let memory = Value::Array(api::memory(stage.daemon()?, who)?.facts);
        for (what, shown) in [
            ("the export", api::export(stage.daemon()?, who)?),
            ("the memory", memory),
        ] {
            let text = shown.to_string();
            for trace in scenario
                .no_trace
                .iter()
                .filter(|trace| holds(text.as_bytes(), trace))
            {
                failures.push(format!(
                    "expected no trace of {:?}, actual: it stands in {what} of {user:?}",
                    short(trace)
                ));
            }
        }
    }
    // What is in a buffer is in the file at the end, at the latest.
    stage.stop()?;
    let own = stage.own_files();
    for path in files(stage.home(), &own)? {
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        for trace in scenario.no_trace.iter().filter(|trace| holds(&bytes, trace)) {
            failures.push(format!(
                "expected no trace of {:?}, actual: it stands in {}",
                short(trace),
                path.display()
            ));
        }
    }
    Ok(failures)
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Every file below a folder, without some.
fn files(folder: &Path, without: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if without.contains(&path) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, without)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether a text stands in bytes: as it is or in another case, plain or as JSON writes it.
fn holds(bytes: &[u8], text: &str) -> bool {
    let escaped = Value::from(text).to_string();
    let escaped = escaped.trim_matches('"');
    [text, escaped].into_iter().any(|needle| {
        let needle = needle.as_bytes();
        !needle.is_empty()
            && bytes
                .windows(needle.len())
                .any(|window| window.eq_ignore_ascii_case(needle))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trace_is_found_in_every_form() {
        for (bytes, is_there) in [
            ("xx I TEACH \"4th\" grade yy", true),
            (r#"{"quote":"i teach \"4th\" grade"}"#, true),
            ("I teach 4th grade", false),
            ("", false),
        ] {
            assert_eq!(
                holds(bytes.as_bytes(), "I teach \"4th\" grade"),
                is_there,
                "{bytes}"
            );
        }
    }

    #[test]
    fn a_fact_is_known_by_its_value_in_either_form() {
        let fact = json!({"kind": "name", "value": "mcleod", "shown": "McLeod"});
        assert!(is_fact(&fact, "name", "McLeod") && is_fact(&fact, "name", "mcleod"));
        assert!(!is_fact(&fact, "role", "mcleod") && !is_fact(&fact, "name", "mc"));
    }
}

//! How to allow a call: by an approval, by a setting, or not at all. Floors have no approval, and most have no
//! setting either.

use tidegate_core::{caller::Mode, tool::Effect};
use tidegate_engine::explain::CallExplanation;
use tidegate_gate::{Decision, Denial, PathFact, Question, StepVerdict};

/// What is said of a refusal that nothing lifts.
const NOTHING: &str = "no setting and no approval opens this";

/// What a person could do, the narrowest way first; empty where the call is allowed already.
pub(super) fn ways(found: &CallExplanation) -> Vec<String> {
    if found.arguments.is_err() {
        return vec!["correct the arguments; nothing else is wrong with them".to_owned()];
    }
    match &found.explanation.decision {
        Decision::Allow(_) => Vec::new(),
        Decision::Ask(question) => asked(question, found),
        Decision::Deny(denial) => vec![refused(denial, found)],
    }
}

fn asked(question: &Question, found: &CallExplanation) -> Vec<String> {
    let mut ways = vec![
        "an approval of exactly this call, once: `tidegate approvals list`, then `tidegate approvals approve ID`"
            .to_owned(),
    ];
    let first_path = found.facts.paths.first().map(parent).unwrap_or_default();
    match (question.layer, question.code) {
        ("git_push", _) => {}
        (_, "read_zone") => ways.push(format!("gate.read_paths = [\"{first_path}\"]")),
        (_, "prompt_zone") => ways.push(format!("take \"{first_path}\" out of gate.prompt_paths")),
        ("shell", "program" | "option") => ways.push(
            "gate.programs_file = \"programs.toml\", with a row by which this program only reads".to_owned(),
        ),
        ("shell", "outside") => ways.push(format!(
            "gate.allowed_paths = [\".\", \"{first_path}\"], which opens it to the file tools too"
        )),
        ("mode", _) if found.spec.effect == Effect::Write => {
            ways.push(format!("gate.no_prompt_paths = [\"{first_path}\"]"));
        }
        (_, _) => {}
    }
    if found.mode < Mode::FullAuto && question.layer != "git_push" {
        ways.push("a key whose ceiling is full-auto: `tidegate keys create --mode full-auto`".to_owned());
    }
    ways
}

fn refused(denial: &Denial, found: &CallExplanation) -> String {
    let file = found
        .explanation
        .steps
        .iter()
        .find_map(|step| match &step.verdict {
            StepVerdict::Refused(refusal) if refusal == denial => blamed(denial, &found.facts.paths),
            StepVerdict::Refused(_)
            | StepVerdict::Passed
            | StepVerdict::Allowed(_)
            | StepVerdict::Asked { .. } => None,
        });
    let path = file.map_or_else(|| "FILE".to_owned(), |path| path.requested.clone());
    match (denial.floor, denial.code) {
        ("credentials", _) if file.is_some() => {
            format!("only if it holds no credential: gate.allowed_sensitive_files = [\"{path}\"]")
        }
        ("paths", _) => {
            let folder = file.map(parent).unwrap_or_default();
            format!("gate.allowed_paths = [\".\", \"{folder}\"]")
        }
        ("blocked_path", _) => "take the folder out of gate.blocked_paths".to_owned(),
        ("deny_commands", _) => "take the pattern out of gate.deny_commands".to_owned(),
        ("allow_commands", _) => "add the command to gate.allow_commands".to_owned(),
        ("unanalysable", "too_long") => "gate.max_command_chars, or a shorter command".to_owned(),
        ("unanalysable", _) => format!("write it more plainly; {NOTHING}"),
        ("egress", "domain_blocked") => "take the domain out of gate.blocked_domains".to_owned(),
        ("egress", _) => "add the domain to gate.allowed_domains".to_owned(),
        ("address", _) if denial.reason.contains("ssrf_allow_hosts") => {
            "gate.ssrf_allow_hosts = [\"HOST:PORT\"], for exactly this host".to_owned()
        }
        ("max_writes_per_turn", _) => "gate.max_writes_per_turn".to_owned(),
        ("max_write_bytes", _) => "gate.max_write_bytes".to_owned(),
        ("plan_only", _) => "another mode than plan-only; in readonly a person is asked".to_owned(),
        ("unattended", _) => "engine.attendance = \"attended\", and somebody who answers".to_owned(),
        ("scope", _) => "a key with the scope `tools`".to_owned(),
        ("tool_allow_list", _) => "a key whose list of tools has this one".to_owned(),
        (_, _) => NOTHING.to_owned(),
    }
}

/// The path that a refusal speaks of.
fn blamed<'f>(denial: &Denial, paths: &'f [PathFact]) -> Option<&'f PathFact> {
    paths
        .iter()
        .find(|path| denial.reason.contains(&format!("`{}`", path.requested)))
        .or_else(|| paths.first())
}

/// The folder that a path stands in, as it was written.
fn parent(path: &PathFact) -> String {
    match path.requested.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::table;

    /// A hint that names a setting which is not there would send people searching.
    #[test]
    fn every_setting_that_is_named_exists() {
        let text = include_str!("way.rs");
        let (code, _) = text.split_once("#[cfg(test)]").unwrap();
        let mut named = 0;
        for section in ["gate.", "engine."] {
            for (at, _) in code.match_indices(section) {
                let key: String = code[at..]
                    .chars()
                    .take_while(|letter| letter.is_ascii_lowercase() || matches!(letter, '_' | '.'))
                    .collect();
                assert!(table::find(key.trim_end_matches('.')).is_some(), "{key}");
                named += 1;
            }
        }
        assert!(named > 10, "{named}");
    }
}

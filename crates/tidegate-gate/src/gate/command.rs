//! Commands for the shell: the analysis of the line, and the files it touches, judged like those of any other tool.

use tidegate_core::{caller::Mode, tool::ToolCall};

use super::{Basis, Denial, Policy, Reason};
use crate::{
    Access, Facts, PathFact, PathFault, ZoneVerdict, Zones, floors,
    shell::{Analysis, OperandKind, Verdict},
};

/// The argument that holds the line.
const ARGUMENT: &str = "command";

/// Programs that give names to files and take them away, and never change what a file holds.
const NAMING: [&str; 6] = ["ln", "mkdir", "mv", "rm", "rmdir", "unlink"];

/// What no mode and no grant opens.
pub(super) fn floors(call: &ToolCall, facts: &Facts, policy: &Policy) -> Option<Denial> {
    let line = call
        .arguments
        .object()
        .and_then(|arguments| arguments.get(ARGUMENT)?.as_str());
    let Some(analysis) = facts
        .command
        .as_ref()
        .filter(|analysis| Some(analysis.command()) == line)
    else {
        return Some(Denial::with_code(
            "shell_floor",
            "unanalysed",
            "the command could not be analysed.",
        ));
    };
    if let Verdict::Refused { floor, code, reason } = analysis.verdict() {
        return Some(Denial::with_code(floor, code, format!("{reason}.")));
    }
    floors::check_operands(&facts.paths, &policy.zones).or_else(|| unreachable_url(analysis, policy))
}

/// An address in the line that may not be reached. The sandbox has no network; this says why, and holds where the
/// operator has opened one.
pub(super) fn unreachable_url(analysis: &Analysis, policy: &Policy) -> Option<Denial> {
    let urls = analysis.urls().iter().map(String::as_str);
    if let Err(fault) = policy.network.check_all(urls) {
        return Some(fault.denial());
    }
    analysis
        .hosts()
        .iter()
        .find_map(|host| policy.network.check(&format!("http://{host}/")).err())
        .map(|fault| fault.denial())
}

/// Whether anything of the line could leave the machine.
pub(super) fn leaves(facts: &Facts) -> bool {
    facts
        .command
        .as_ref()
        .is_none_or(|analysis| !analysis.urls().is_empty() || !analysis.hosts().is_empty())
}

/// Whether the line may run without a question, and by what; else why it is asked.
pub(super) fn ask(facts: &Facts, mode: Mode, zones: &Zones) -> Result<Basis, Reason> {
    let Some(analysis) = &facts.command else {
        return Err(question(
            "unanalysed",
            "the command could not be analysed.".to_owned(),
        ));
    };
    let doubt = match analysis.verdict() {
        Verdict::ReadOnly => files(analysis, facts, zones).err(),
        // What is refused has met the floors before.
        Verdict::NeedsGrant { code, reason } | Verdict::Refused { code, reason, .. } => {
            Some(question(code, format!("{reason}.")))
        }
    };
    // A file with more than one name is changed under all of them, those outside the folders among them.
    if let Some(path) = shared_write(analysis, facts) {
        return Err(Reason {
            layer: "links",
            code: "hard_links",
            text: format!(
                "{} has more than one name, and what is written to it shows under all of them, wherever they are; \
                 `write_file` leaves the others alone.",
                floors::shown(path)
            ),
        });
    }
    match (doubt, mode) {
        (None, _) => Ok(Basis::ReadOnlyCommand),
        (Some(_), Mode::FullAuto) => Ok(Basis::FullAuto),
        (Some(doubt), Mode::ReadOnly | Mode::PlanOnly) => Err(doubt),
    }
}

/// A file with several names that the line would change.
fn shared_write<'f>(analysis: &Analysis, facts: &'f Facts) -> Option<&'f PathFact> {
    if analysis
        .programs()
        .iter()
        .all(|program| NAMING.contains(&program.as_str()))
    {
        return None;
    }
    facts.paths.iter().find(|path| {
        path.access == Access::Write && path.resolved().is_some_and(|resolved| resolved.hard_links > 1)
    })
}

/// Whether every file that a line reads may be read without a question.
fn files(analysis: &Analysis, facts: &Facts, zones: &Zones) -> Result<(), Reason> {
    let outside = |text: &str| {
        question(
            "outside",
            format!("{text} is outside the folders that may be read."),
        )
    };
    for path in &facts.paths {
        match &path.resolution {
            Ok(resolved) => match zones.judge(path.access, &resolved.real) {
                ZoneVerdict::Inside | ZoneVerdict::NoPrompt => {}
                ZoneVerdict::Ask(code) => {
                    return Err(question(
                        code,
                        "it reads in a folder that is asked about.".to_owned(),
                    ));
                }
                ZoneVerdict::Outside | ZoneVerdict::Blocked => return Err(outside("a file that it reads")),
            },
            // What leads nowhere gives a reader nothing.
            Err(PathFault::Missing) if path.access != Access::Write => {}
            Err(PathFault::Missing | PathFault::Outside) => return Err(outside("a file that it names")),
            Err(PathFault::Malformed(problem) | PathFault::Unreadable(problem)) => {
                let text = format!("a file that it names cannot be checked: {problem}.");
                return Err(question("unresolved", text));
            }
        }
    }
    if analysis
        .operands()
        .iter()
        .any(|operand| operand.kind == OperandKind::Dynamic)
    {
        return Err(question(
            "dynamic",
            "which files it touches is only known while it runs.".to_owned(),
        ));
    }
    if analysis.is_deep() && !facts.can_mask {
        let text = "it also reads files that no word of it names, and the sandbox here cannot hide any.";
        return Err(question("deep_read", text.to_owned()));
    }
    Ok(())
}

fn question(code: &'static str, text: String) -> Reason {
    Reason {
        layer: "shell",
        code,
        text,
    }
}

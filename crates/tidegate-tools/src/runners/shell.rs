//! `shell`: a command line behind walls.
//!
//! A line that the analyser calls read-only runs as its plan, without a shell, in a view that cannot be written.
//! Any other line is here because a mode or a person let it pass: bash runs it, with the write zones open. Either
//! way, what runs is what was analysed.

use std::{collections::BTreeMap, path::PathBuf};

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_gate::shell::{Analysis, Verdict};
use tidegate_io::sandbox::{Plan, Task};

use super::{
    git,
    sandbox::{View, Walls, refused, said},
};

/// Runs an analysed line.
pub(crate) async fn run(walls: &Walls, analysis: &Analysis, spec: &ToolSpec) -> ToolResult {
    let (task, view) = match (analysis.verdict(), analysis.plan()) {
        // Never reached behind the gate, and not to be reached by a mistake in front of it.
        (Verdict::Refused { reason, .. }, _) => {
            return ToolResult::failed(FailureCode::PermissionDenied, format!("{reason}."));
        }
        (Verdict::ReadOnly, Some(node)) => {
            let plan = Plan {
                node: node.clone(),
                programs: programs(walls, analysis),
            };
            (Task::plan(plan), View::Read)
        }
        (Verdict::ReadOnly | Verdict::NeedsGrant { .. }, _) => match walls.program("bash") {
            Some(bash) => {
                let script = analysis.command();
                (
                    Task::program(bash, ["--noprofile", "--norc", "-c", script]),
                    View::Write,
                )
            }
            None => {
                return ToolResult::failed(
                    FailureCode::NotFound,
                    "there is no bash on this machine; the operator can install it.",
                );
            }
        },
    };
    let mut policy = match walls.policy(view, spec).await {
        Ok(policy) => policy,
        Err(error) => return refused(&error, spec),
    };
    policy.environment = git::environment(view == View::Read);
    let uses_git = analysis.programs().iter().any(|name| name == "git");
    if uses_git && view == View::Read {
        // Inside the walls a program that the repository names could do little; it is not started all the same.
        match git::survey(walls, &policy, spec).await {
            Ok(Some(survey)) => {
                if let Some(result) = survey.refusal() {
                    return result;
                }
            }
            Ok(None) => {}
            Err(result) => return result,
        }
    }
    match walls.run(task, &policy, spec).await {
        Ok(mut outcome) => {
            if uses_git {
                git::leave_out_credentials(&mut outcome.stdout.bytes);
            }
            said(&outcome)
        }
        Err(result) => result,
    }
}

/// The programs of the line that there are here.
fn programs(walls: &Walls, analysis: &Analysis) -> BTreeMap<String, PathBuf> {
    let found = |name: &String| Some((name.clone(), walls.program(name)?));
    analysis.programs().iter().filter_map(found).collect()
}

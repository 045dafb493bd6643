//! The git tools: looks, commits, clones and pushes, each with an argv of its own and no shell.
//!
//! Git takes orders from more places than its command line. Its own configuration files and environment are
//! replaced by ours; the repository's is read first, and one that names a program is refused. Hooks, pagers,
//! prompts, submodules and every transport but the one of the call are off. An operand can be no option: each
//! argv has its `--`, and what begins with a dash is refused.

mod remote;
mod survey;

use std::path::{Path, PathBuf};

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_gate::{Access, PathKind, floors::names_credential};
use tidegate_io::{
    files::Roots,
    sandbox::{Policy, Task, WorkingFolder},
};

pub(crate) use self::{
    remote::{clone, judged, push, push_target},
    survey::{Survey, survey},
};
use super::sandbox::{View, Walls, refused, said};
use crate::arguments::Values;

/// How many commits `git_log` shows where the call does not say.
const COUNT_DEFAULT: usize = 20;

/// What stands in place of a part that is about a file of credentials.
const LEFT_OUT: &str = "[left out: a file of credentials]\n";

/// Git's environment: no configuration but the repository's, no prompts, no programs, no transports.
pub(crate) fn environment(is_look: bool) -> Vec<(String, String)> {
    let mut environment: Vec<(String, String)> = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "false"),
        ("GIT_EDITOR", "false"),
        ("GIT_PAGER", "cat"),
        ("PAGER", "cat"),
        ("GIT_ALLOW_PROTOCOL", ""),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    if is_look {
        environment.push(("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()));
    }
    let settings = [
        ("core.fsmonitor", "false"),
        ("core.hooksPath", "/dev/null"),
        ("core.pager", "cat"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        // Ownership looks different inside the walls. What the check is for, the survey does.
        ("safe.directory", "*"),
    ];
    configure(&mut environment, &settings);
    environment
}

/// Adds settings with the rank of the command line, above every file.
fn configure(environment: &mut Vec<(String, String)>, settings: &[(&str, &str)]) {
    let is_count = |name: &str| name == "GIT_CONFIG_COUNT";
    let before: usize = environment
        .iter()
        .find(|(name, _)| is_count(name))
        .and_then(|(_, count)| count.parse().ok())
        .unwrap_or(0);
    environment.retain(|(name, _)| !is_count(name));
    for (number, (key, value)) in settings.iter().enumerate() {
        let number = before + number;
        environment.push((format!("GIT_CONFIG_KEY_{number}"), (*key).to_owned()));
        environment.push((format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned()));
    }
    let count = before + settings.len();
    environment.push(("GIT_CONFIG_COUNT".to_owned(), count.to_string()));
}

/// A look: `git_status`, `git_diff` or `git_log`, by the name of the row; any other name is a status.
pub(crate) async fn read(walls: &Walls, roots: &Roots, spec: &ToolSpec, values: &Values<'_>) -> ToolResult {
    let mut arguments = match read_arguments(&spec.name, values) {
        Ok(arguments) => arguments,
        Err(problem) => return invalid(problem),
    };
    let (policy, survey) = match repository(walls, roots, spec, values).await {
        Ok(found) => found,
        Err(result) => return result,
    };
    arguments.extend(excluded(&policy, &survey));
    let mut outcome = match git(walls, &policy, spec, arguments).await {
        Ok(outcome) => outcome,
        Err(result) => return result,
    };
    leave_out_credentials(&mut outcome.stdout.bytes);
    said(&outcome)
}

/// Git gives up where it cannot read a file that it keeps, so it is told to pass over those that are hidden.
fn excluded(policy: &Policy, survey: &Survey) -> Vec<String> {
    let Some(top) = &survey.top else { return Vec::new() };
    let hidden = policy.masked.iter().chain(&policy.hidden);
    hidden
        .filter_map(|path| path.strip_prefix(top).ok())
        .filter(|below| !below.as_os_str().is_empty())
        .map(|below| format!(":(top,exclude,literal){}", below.display()))
        .collect()
}

fn read_arguments(name: &str, values: &Values<'_>) -> Result<Vec<String>, String> {
    let mut arguments = match name {
        "git_diff" => words(&[
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
        ]),
        "git_log" => {
            let count = values.count("count").unwrap_or(COUNT_DEFAULT);
            let mut arguments = words(&["log", "--no-color", "--no-show-signature", "--date=iso-strict"]);
            arguments.push("--format=%h %ad %an%n    %s".to_owned());
            arguments.push(format!("--max-count={count}"));
            arguments
        }
        _ => words(&["status", "--porcelain=v1", "--branch", "--no-renames"]),
    };
    if values.truth("staged") && name == "git_diff" {
        arguments.push("--cached".to_owned());
    }
    if let Some(revision) = given(values, "revision") {
        if !matches!(name, "git_diff" | "git_log") {
            return Err("a status has no `revision`; leave it out".to_owned());
        }
        arguments.push(checked_revision(revision)?.to_owned());
    }
    arguments.push("--".to_owned());
    if let Some(path) = given(values, "path") {
        arguments.push(checked_operand("path", path)?.to_owned());
    }
    Ok(arguments)
}

/// Commits, with hooks and signatures off. Only the repository's own folder can be written meanwhile.
pub(crate) async fn commit(walls: &Walls, roots: &Roots, spec: &ToolSpec, values: &Values<'_>) -> ToolResult {
    let message = values.text("message").unwrap_or_default();
    if message.trim().is_empty() {
        return invalid("`message` is empty; say what was changed".to_owned());
    }
    let paths = values.texts("paths");
    if let Some(problem) = paths.iter().find_map(|path| checked_operand("paths", path).err()) {
        return invalid(problem);
    }
    let (mut policy, survey) = match repository(walls, roots, spec, values).await {
        Ok(found) => found,
        Err(result) => return result,
    };
    for folder in [&survey.git_dir, &survey.common_dir] {
        if !walls.zones().is_inside(Access::Write, folder) || walls.zones().is_blocked(folder) {
            return denied(folder);
        }
        // Git alone runs here, with hooks off, and Landlock could not leave single files of the folder out.
        policy.protected.retain(|path| !path.starts_with(folder));
        policy.writable.push(folder.clone());
    }
    policy.environment = environment(false);
    // A pathspec is a path and nothing more.
    policy
        .environment
        .push(("GIT_LITERAL_PATHSPECS".to_owned(), "1".to_owned()));
    if survey.value("user.email").is_none() {
        let own = [("user.name", "tidegate"), ("user.email", "tidegate@localhost")];
        configure(&mut policy.environment, &own);
    }
    let operands = || std::iter::once("--".to_owned()).chain(paths.iter().cloned());
    if !paths.is_empty() {
        let add: Vec<_> = words(&["add"]).into_iter().chain(operands()).collect();
        match git(walls, &policy, spec, add).await {
            Ok(outcome) if outcome.exit.is_success() => {}
            Ok(outcome) => return said(&outcome),
            Err(result) => return result,
        }
    }
    let mut commit = words(&[
        "commit",
        "--no-verify",
        "--no-gpg-sign",
        "--no-status",
        "--cleanup=verbatim",
    ]);
    commit.push(format!("--message={message}"));
    commit.extend(operands());
    match git(walls, &policy, spec, commit).await {
        Ok(outcome) => said(&outcome),
        Err(result) => result,
    }
}

/// The policy for a look at the repository of a call, and what was learned about it.
async fn repository(
    walls: &Walls,
    roots: &Roots,
    spec: &ToolSpec,
    values: &Values<'_>,
) -> Result<(Policy, Survey), ToolResult> {
    let folder = match given(values, "folder") {
        None => walls.folder().clone(),
        Some(requested) => match roots.fact("folder", requested, Access::List).resolution {
            Ok(resolved) if resolved.kind == PathKind::Folder => resolved.real,
            Ok(_) | Err(_) => return Err(invalid(format!("`{requested}` is no folder here"))),
        },
    };
    if !walls.zones().is_inside(Access::List, &folder) || walls.zones().is_blocked(&folder) {
        return Err(denied(&folder));
    }
    let mut policy = walls
        .policy(View::Read, spec)
        .await
        .map_err(|error| refused(&error, spec))?;
    policy.environment = environment(true);
    policy.working_folder = WorkingFolder::Folder(folder.clone());
    let survey = survey(walls, &policy, spec).await?.ok_or_else(|| {
        ToolResult::failed(
            FailureCode::NotFound,
            "there is no git repository in that folder.",
        )
    })?;
    match survey.refusal() {
        Some(result) => Err(result),
        None => Ok((policy, survey)),
    }
}

async fn git(
    walls: &Walls,
    policy: &Policy,
    spec: &ToolSpec,
    arguments: Vec<String>,
) -> Result<tidegate_io::sandbox::Outcome, ToolResult> {
    let program = program(walls)?;
    let before = ["--no-pager", "--no-replace-objects"].map(str::to_owned);
    let task = Task::program(program, before.into_iter().chain(arguments));
    walls.run(task, policy, spec).await
}

fn program(walls: &Walls) -> Result<PathBuf, ToolResult> {
    walls.program("git").ok_or_else(|| {
        ToolResult::failed(
            FailureCode::NotFound,
            "there is no git on this machine; the operator can install it.",
        )
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn given<'v>(values: &'v Values<'_>, name: &str) -> Option<&'v str> {
    values.text(name).filter(|text| !text.is_empty())
}

fn invalid(mut problem: String) -> ToolResult {
    problem.push('.');
    ToolResult::failed(FailureCode::InvalidArguments, problem)
}

fn denied(folder: &Path) -> ToolResult {
    ToolResult::failed(
        FailureCode::PermissionDenied,
        format!(
            "`{}` is outside the folders that may be used so.",
            folder.display()
        ),
    )
}

/// What could be taken for an option, or for more than a path, is no path.
fn checked_operand<'t>(name: &str, text: &'t str) -> Result<&'t str, String> {
    if text.is_empty() || text.starts_with('-') || text.starts_with(':') {
        return Err(format!(
            "`{name}` is empty or begins with `-` or `:`; write `./` in front of such a name"
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("`{name}` holds control characters"));
    }
    if names_credential(text).is_some() {
        return Err(format!("`{name}` names a file of credentials"));
    }
    Ok(text)
}

/// A revision or a range of them (gitrevisions(7)), without the forms that name a file or run a search.
fn checked_revision(text: &str) -> Result<&str, String> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/~^@{}".contains(letter);
    if text.starts_with('-') || !text.chars().all(is_plain) {
        return Err(
            "`revision` must be a branch, tag, commit or range, such as main, HEAD~2 or v1..v2".to_owned(),
        );
    }
    Ok(text)
}

/// Takes the parts of a diff that are about files of credentials out of what git said: the objects of a
/// repository hold what the masks hide in its folder.
pub(crate) fn leave_out_credentials(said: &mut Vec<u8>) {
    const HEAD: &[u8] = b"diff --";
    if !said.windows(HEAD.len()).any(|window| window == HEAD) {
        return;
    }
    let mut kept = Vec::with_capacity(said.len());
    let mut is_hidden = false;
    for line in said.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(HEAD) {
            is_hidden = names_credential(&String::from_utf8_lossy(line)).is_some();
            if is_hidden {
                kept.extend_from_slice(LEFT_OUT.as_bytes());
            }
        } else if line.starts_with(b"commit ") {
            is_hidden = false;
        }
        if !is_hidden {
            kept.extend_from_slice(line);
        }
    }
    *said = kept;
}

#[cfg(test)]
mod tests;

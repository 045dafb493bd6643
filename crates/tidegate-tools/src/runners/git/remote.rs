//! Clones and pushes: git over the network, to the addresses that were judged and no others.

use std::path::Path;

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_gate::{
    Access, Denial, PathKind,
    guards::address::{Policy as Addresses, Reachable, Remote, Transport},
};
use tidegate_io::{
    files::Roots,
    guarded::Client,
    sandbox::{Policy, WorkingFolder},
};

use super::{
    super::{
        http::refusal,
        sandbox::{View, Walls, refused, said},
    },
    Survey, configure, denied, environment, git, invalid, repository, words,
};
use crate::arguments::Values;

/// Clones into a new folder, the only one that can be written meanwhile.
pub(crate) async fn clone(
    walls: &Walls,
    roots: &Roots,
    client: &Client,
    spec: &ToolSpec,
    values: &Values<'_>,
) -> ToolResult {
    let (remote, reachable) = match destination(client, values.text("url").unwrap_or_default()).await {
        Ok(found) => found,
        Err(result) => return result,
    };
    let requested = values.text("folder").unwrap_or_default();
    let folder = match roots.fact("folder", requested, Access::Write).resolution {
        Ok(resolved) if resolved.kind == PathKind::Missing => resolved.real,
        Ok(_) => return invalid(format!("`{requested}` is there already; name a new folder")),
        Err(_) => return invalid(format!("`{requested}` leads nowhere; name a new folder")),
    };
    if !walls.zones().is_inside(Access::Write, &folder) || walls.zones().is_blocked(&folder) {
        return denied(&folder);
    }
    if let Err(problem) = std::fs::create_dir(&folder) {
        return ToolResult::failed(
            FailureCode::Unsuccessful,
            format!("`{requested}` cannot be made: {problem}."),
        );
    }
    let mut policy = Policy {
        writable: vec![folder.clone()],
        network: true,
        environment: network_environment(&remote, &reachable),
        working_folder: WorkingFolder::Folder(folder.clone()),
        ..match walls.policy(View::Nothing, spec).await {
            Ok(policy) => policy,
            Err(error) => return refused(&error, spec),
        }
    };
    policy.limits.timeout_ms = walls.network_timeout_ms(spec);
    configure(&mut policy.environment, &[("transfer.fsckObjects", "true")]);
    let mut arguments = words(&[
        "clone",
        "--no-recurse-submodules",
        "--template=",
        "--no-local",
        "--",
    ]);
    arguments.extend([remote.as_str().to_owned(), ".".to_owned()]);
    let outcome = git(walls, &policy, spec, arguments).await;
    let is_good = outcome.as_ref().is_ok_and(|outcome| outcome.exit.is_success());
    if !is_good {
        // Half a copy is of no use, and the folder is ours: it was not there before.
        drop(std::fs::remove_dir_all(&folder));
    }
    outcome.map_or_else(|result| result, |outcome| said(&outcome))
}

/// Pushes one branch to one remote. There is no form of force: the refspec is ours.
pub(crate) async fn push(
    walls: &Walls,
    roots: &Roots,
    client: &Client,
    spec: &ToolSpec,
    values: &Values<'_>,
) -> ToolResult {
    let branch = match checked_branch(values.text("branch").unwrap_or_default()) {
        Ok(branch) => branch.to_owned(),
        Err(problem) => return invalid(problem),
    };
    let (mut policy, survey) = match repository(walls, roots, spec, values).await {
        Ok(found) => found,
        Err(result) => return result,
    };
    let url = match push_url(&survey, values) {
        Ok(url) => url,
        Err(denial) => return ToolResult::failed(FailureCode::NotFound, denial.reason),
    };
    let (remote, reachable) = match destination(client, &url).await {
        Ok(found) => found,
        Err(result) => return result,
    };
    policy.network = true;
    policy.limits.timeout_ms = walls.network_timeout_ms(spec);
    policy.environment = network_environment(&remote, &reachable);
    let mut arguments = words(&[
        "push",
        "--porcelain",
        "--no-verify",
        "--no-signed",
        "--no-follow-tags",
        "--recurse-submodules=no",
        "--",
    ]);
    arguments.push(remote.as_str().to_owned());
    arguments.push(format!("refs/heads/{branch}:refs/heads/{branch}"));
    match git(walls, &policy, spec, arguments).await {
        Ok(outcome) => said(&outcome),
        Err(result) => result,
    }
}

/// Where a push would go: the one address that the repository has for the remote, judged before anybody is asked and
/// before its name is looked up. What cannot be told is refused.
pub(crate) async fn push_target(
    walls: &Walls,
    roots: &Roots,
    addresses: &Addresses,
    spec: &ToolSpec,
    values: &Values<'_>,
) -> Result<String, Denial> {
    let (_, survey) = repository(walls, roots, spec, values).await.map_err(unsurveyed)?;
    let url = push_url(&survey, values)?;
    judged(addresses, &url).map(|remote| remote.as_str().to_owned())
}

fn push_url(survey: &Survey, values: &Values<'_>) -> Result<String, Denial> {
    let name = values.text("remote").unwrap_or_default();
    survey.push_url(name).ok_or_else(|| {
        let reason = format!(
            "this repository has no remote `{name}` with one address of its own; its remotes are {}.",
            survey.remotes()
        );
        Denial::with_code("git_push", "no_remote", reason)
    })
}

/// Why a repository could not be looked at, as a refusal.
fn unsurveyed(result: ToolResult) -> Denial {
    let reason = match result {
        ToolResult::Failed { message, .. } => message,
        ToolResult::Refused { reason, .. } => reason,
        ToolResult::TimedOut { .. } => "looking at the repository took too long.".to_owned(),
        ToolResult::Ok { .. } | ToolResult::NeedsApproval { .. } | ToolResult::Cancelled => {
            "the repository cannot be looked at.".to_owned()
        }
    };
    Denial::with_code("git_push", "repository", reason)
}

/// Judges where a remote leads, before any name is looked up.
pub(crate) fn judged(addresses: &Addresses, url: &str) -> Result<Remote, Denial> {
    let remote = addresses.check_remote(url).map_err(|fault| fault.denial())?;
    match remote.transport() {
        Transport::Http => Ok(remote),
        Transport::Ssh => Err(Denial::with_code(
            "address",
            "ssh_remote",
            "SSH remotes need a key, and no key is ever given to a program; use the https address.",
        )),
    }
}

/// Judges and looks up where a remote leads, as every address that the model steers.
async fn destination(client: &Client, url: &str) -> Result<(Remote, Reachable), ToolResult> {
    let remote = judged(&client.policy().address, url).map_err(refusal)?;
    match client.reach(remote.destination().clone()).await {
        Ok(reachable) => Ok((remote, reachable)),
        Err(error) => Err(match error.denial() {
            Some(denial) => refusal(denial),
            None => ToolResult::failed(FailureCode::Unsuccessful, format!("{error}.")),
        }),
    }
}

/// One transport, to the very addresses that were judged, without redirects or a proxy.
fn network_environment(remote: &Remote, reachable: &Reachable) -> Vec<(String, String)> {
    let mut environment = environment(false);
    environment.retain(|(name, _)| name != "GIT_ALLOW_PROTOCOL");
    let scheme = if remote.destination().is_https() {
        "https"
    } else {
        "http"
    };
    environment.push(("GIT_ALLOW_PROTOCOL".to_owned(), scheme.to_owned()));
    let addresses: Vec<String> = reachable
        .addresses()
        .iter()
        .map(|address| bracketed(address.ip()))
        .collect();
    let destination = remote.destination();
    let resolve = format!(
        "{}:{}:{}",
        destination.host_text(),
        destination.port(),
        addresses.join(",")
    );
    let mut settings = vec![
        ("http.followRedirects", "false"),
        ("http.proxy", ""),
        ("protocol.allow", "never"),
        ("protocol.ext.allow", "never"),
        ("protocol.file.allow", "never"),
        ("submodule.recurse", "false"),
    ];
    if destination.name().is_some() {
        settings.push(("http.curloptResolve", &resolve));
    }
    configure(&mut environment, &settings);
    environment
}

fn bracketed(address: std::net::IpAddr) -> String {
    match address {
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// A branch name as git-check-ref-format(1) has it, a little stricter.
pub(super) fn checked_branch(text: &str) -> Result<&str, String> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/+#@".contains(letter);
    let is_good = !text.is_empty()
        && text.chars().all(is_plain)
        && !text.contains("..")
        && !text.contains("@{")
        && !text.contains("//")
        && text
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with(['.', '-', '+']))
        && !text.ends_with('.')
        && Path::new(text)
            .extension()
            .is_none_or(|ending| !ending.eq_ignore_ascii_case("lock"));
    if is_good {
        Ok(text)
    } else {
        Err("`branch` is no branch name; write the name alone, such as main".to_owned())
    }
}

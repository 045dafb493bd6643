//! Clones and pushes: git over the network, to the addresses that were judged and no others.

use std::path::Path;

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_gate::{
    Access, PathKind,
    guards::address::{Reachable, Remote, Transport},
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
    configure, denied, environment, git, invalid, repository, words,
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
    let name = values.text("remote").unwrap_or_default();
    let Some(url) = survey.push_url(name) else {
        return ToolResult::failed(
            FailureCode::NotFound,
            format!(
                "this repository has no remote `{name}`; its remotes are {}.",
                survey.remotes()
            ),
        );
    };
    let (remote, reachable) = match destination(client, &url).await {
        Ok(found) => found,
        Err(result) => return result,
    };
    policy.network = true;
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

/// Judges and looks up where a remote leads, as every address that the model steers.
async fn destination(client: &Client, url: &str) -> Result<(Remote, Reachable), ToolResult> {
    let remote = client
        .policy()
        .address
        .check_remote(url)
        .map_err(|fault| refusal(fault.denial()))?;
    if remote.transport() == Transport::Ssh {
        return Err(ToolResult::failed(
            FailureCode::PermissionDenied,
            "SSH remotes need a key, and no key is ever given to a program; use the https address.",
        ));
    }
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

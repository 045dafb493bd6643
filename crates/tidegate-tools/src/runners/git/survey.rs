//! What a repository says about itself, read before anything else is asked of it.

use std::path::PathBuf;

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_io::sandbox::{Policy, Task};

use super::{super::sandbox::Walls, git};

/// Sections of a configuration whose every key names a program, or a file with more keys.
const SECTIONS: [&str; 16] = [
    "alias",
    "browser",
    "credential",
    "difftool",
    "filter",
    "gpg",
    "guitool",
    "hook",
    "include",
    "includeif",
    "instaweb",
    "man",
    "mergetool",
    "pager",
    "sendemail",
    "sequence",
];

/// Keys that name a program, or another place to work in.
const KEYS: [&str; 14] = [
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "core.worktree",
    "diff.external",
    "interactive.difffilter",
    "uploadpack.packobjectshook",
    "extensions.worktreeconfig",
    "web.browser",
];

/// Last parts of keys with a name in the middle that name a program.
const ENDINGS: [(&str, &str); 11] = [
    ("diff", "command"),
    ("diff", "textconv"),
    ("merge", "driver"),
    ("remote", "proxy"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("remote", "vcs"),
    ("submodule", "update"),
    ("tar", "command"),
    ("trailer", "cmd"),
    ("trailer", "command"),
];

/// Sections that change where a connection leads or what it carries.
const NETWORK: [&str; 4] = ["http", "protocol", "ssh", "url"];

/// What was learned.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The folder of the repository's own files.
    pub(crate) git_dir: PathBuf,
    /// The one that its work trees share; mostly the same.
    pub(crate) common_dir: PathBuf,
    /// The top of its work tree; none for a bare one.
    pub(crate) top: Option<PathBuf>,
    /// Its configuration, keys in small letters but for the middle parts.
    settings: Vec<(String, String)>,
}

/// Asks the repository of the policy's working folder; `None` where there is none. Reading a configuration
/// starts nothing.
pub(crate) async fn survey(
    walls: &Walls,
    policy: &Policy,
    spec: &ToolSpec,
) -> Result<Option<Survey>, ToolResult> {
    let ask = |arguments: &[&str]| arguments.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let places = ask(&[
        "rev-parse",
        "--path-format=absolute",
        "--absolute-git-dir",
        "--git-common-dir",
    ]);
    let outcome = git(walls, policy, spec, places).await?;
    if !outcome.exit.is_success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&outcome.stdout.bytes).into_owned();
    let mut lines = said.lines();
    let (Some(git_dir), Some(common_dir)) = (lines.next(), lines.next()) else {
        return Ok(None);
    };
    // Said with an error where there is no work tree.
    let top = git(
        walls,
        policy,
        spec,
        ask(&["rev-parse", "--path-format=absolute", "--show-toplevel"]),
    )
    .await?;
    let top = top
        .exit
        .is_success()
        .then(|| PathBuf::from(String::from_utf8_lossy(&top.stdout.bytes).trim_end_matches('\n')));
    let program = super::program(walls)?;
    let mut bare = policy.clone();
    // Only the repository's: ours comes by the environment and would be listed, too.
    bare.environment
        .retain(|(name, _)| !name.starts_with("GIT_CONFIG_"));
    bare.environment.extend([
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()),
    ]);
    let listed = Task::program(
        program,
        ["config", "--no-includes", "--null", "--list", "--file"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("{common_dir}/config")]),
    );
    let outcome = walls.run(listed, &bare, spec).await?;
    if !outcome.exit.is_success() || outcome.is_cut() {
        return Err(ToolResult::failed(
            FailureCode::Unsuccessful,
            "the repository's configuration cannot be read, so nothing is run in it.",
        ));
    }
    Ok(Some(Survey {
        git_dir: PathBuf::from(git_dir),
        common_dir: PathBuf::from(common_dir),
        top,
        settings: parse(&String::from_utf8_lossy(&outcome.stdout.bytes)),
    }))
}

/// Reads `git config --null --list`: a key, a line end and its value, each ended by NUL. A key without a value
/// is true.
fn parse(listed: &str) -> Vec<(String, String)> {
    listed
        .split('\0')
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            (key.to_owned(), value.to_owned())
        })
        .collect()
}

impl Survey {
    /// The result to give where the repository names a program.
    pub(crate) fn refusal(&self) -> Option<ToolResult> {
        let (key, _) = self
            .settings
            .iter()
            .find(|(key, value)| names_program(key, value))?;
        Some(ToolResult::failed(
            FailureCode::PermissionDenied,
            format!(
                "the repository's configuration has `{key}`, which names a program or another place, so nothing is \
                 run in it; a person can take the line out of its configuration."
            ),
        ))
    }

    /// The last value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.settings
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Where a push to a remote goes. None as well where the configuration would lead it somewhere else.
    pub(crate) fn push_url(&self, remote: &str) -> Option<String> {
        let is_led = |(key, _): &(String, String)| NETWORK.contains(&section(key));
        if self.settings.iter().any(is_led) {
            return None;
        }
        let all = |ending: &str| {
            let key = format!("remote.{remote}.{ending}");
            self.settings
                .iter()
                .filter(|(name, _)| *name == key)
                .map(|(_, value)| value.clone())
                .collect::<Vec<_>>()
        };
        let mut urls = all("pushurl");
        if urls.is_empty() {
            urls = all("url");
        }
        // Several addresses would be several pushes, and one was asked for.
        if urls.len() == 1 { urls.pop() } else { None }
    }

    /// The names of the remotes, for people.
    pub(crate) fn remotes(&self) -> String {
        let names: Vec<&str> = self
            .settings
            .iter()
            .filter_map(|(key, _)| key.strip_prefix("remote.")?.strip_suffix(".url"))
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }
}

fn section(key: &str) -> &str {
    key.split('.').next().unwrap_or_default()
}

/// Whether a setting makes git start a program, read more settings, or work somewhere else.
fn names_program(key: &str, value: &str) -> bool {
    let lowered = key.to_ascii_lowercase();
    let key = lowered.as_str();
    if matches!(
        (key, value),
        ("core.fsmonitor" | "extensions.worktreeconfig", "false")
    ) {
        return false;
    }
    let last = key.rsplit('.').next().unwrap_or_default();
    let is_middle = key.matches('.').count() > 1;
    SECTIONS.contains(&section(key))
        || KEYS.contains(&key)
        || (is_middle
            && ENDINGS.contains(&(section(key), last))
            && (last != "update" || value.starts_with('!')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_programs_are_told_from_those_that_do_not() {
        for (key, value, names) in [
            ("core.bare", "false", false),
            ("core.fsmonitor", "false", false),
            ("core.fsmonitor", "/tmp/x", true),
            ("core.fsmonitor", "true", true),
            ("core.hooksPath", "x", true),
            ("core.sshcommand", "x", true),
            ("core.worktree", "/", true),
            ("filter.lfs.clean", "x", true),
            ("Filter.LFS.smudge", "x", true),
            ("diff.external", "x", true),
            ("diff.jpg.textconv", "x", true),
            ("diff.some.name.command", "x", true),
            ("diff.renames", "true", false),
            ("diff.textconv.binary", "true", false),
            ("merge.ours.driver", "true", true),
            ("alias.st", "!x", true),
            ("include.path", "x", true),
            ("includeif.gitdir:/.path", "x", true),
            ("credential.helper", "x", true),
            ("gpg.program", "x", true),
            ("remote.origin.url", "https://a.test/x.git", false),
            ("remote.origin.uploadpack", "x", true),
            ("submodule.a.update", "checkout", false),
            ("submodule.a.update", "!x", true),
            ("branch.main.remote", "origin", false),
            ("user.email", "a@b.test", false),
            ("extensions.worktreeconfig", "true", true),
        ] {
            assert_eq!(names_program(key, value), names, "{key}={value}");
        }
    }

    fn of(listed: &str) -> Survey {
        Survey {
            git_dir: PathBuf::new(),
            common_dir: PathBuf::new(),
            top: None,
            settings: parse(listed),
        }
    }

    #[test]
    fn a_push_has_one_address() {
        let plain = "remote.origin.url\nhttps://a.test/x.git\0core.bare\0";
        assert_eq!(
            of(plain).push_url("origin").as_deref(),
            Some("https://a.test/x.git")
        );
        assert_eq!(of(plain).push_url("other"), None);
        assert_eq!(
            (of(plain).remotes(), of("").remotes()),
            ("origin".to_owned(), "none".to_owned())
        );
        assert_eq!(of(plain).value("core.bare"), Some("true"));
        for more in [
            "remote.origin.url\nhttps://b.test/x.git\0",
            "url.https://evil.test/.insteadof\nhttps://a.test/\0",
            "http.proxy\nhttp://evil.test\0",
        ] {
            assert_eq!(of(&format!("{plain}{more}")).push_url("origin"), None, "{more}");
        }
        let pushed = format!("{plain}remote.origin.pushurl\nhttps://b.test/x.git\0");
        assert_eq!(
            of(&pushed).push_url("origin").as_deref(),
            Some("https://b.test/x.git")
        );
    }
}

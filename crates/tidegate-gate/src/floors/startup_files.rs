//! Files whose content is run later by a shell, an editor, a session or a version control system are not
//! written. Reading them is harmless.

use super::{
    Asked,
    paths::shown,
    spelling::{self, Spellings},
};
use crate::{Access, Denial};

const NAME: &str = "startup_files";

/// Whole names.
const NAMES: [&str; 46] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".login",
    ".logout",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".mkshrc",
    "config.fish",
    "fish.config",
    ".inputrc",
    ".envrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".pam_environment",
    ".screenrc",
    ".tmux.conf",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".emacs",
    ".gdbinit",
    ".lldbinit",
    ".pythonrc",
    ".irbrc",
    ".forward",
    ".procmailrc",
    ".rhosts",
    "authorized_keys",
    "authorized_keys2",
    "crontab",
    ".gitattributes",
    ".gitmodules",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Folders with everything in them; several names follow each other.
const FOLDERS: [&[&str]; 18] = [
    &[".git"],
    &[".githooks"],
    &[".husky"],
    &[".config", "autostart"],
    &[".config", "systemd"],
    &[".config", "fish", "conf.d"],
    &[".config", "fish", "functions"],
    &[".config", "nvim"],
    &[".emacs.d"],
    &[".vscode", "tasks.json"],
    &[".vscode", "settings.json"],
    &[".vscode", "launch.json"],
    &["library", "launchagents"],
    &["etc", "cron.d"],
    &["etc", "cron.daily"],
    &["etc", "profile.d"],
    &["etc", "systemd"],
    &["var", "spool", "cron"],
];

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    asked.facts.paths.iter().find_map(|path| {
        let resolved = path.resolved()?;
        (path.access == Access::Write && runs_later(&spelling::components(&resolved.real))).then(|| {
            Denial::new(
                NAME,
                format!(
                    "{} is run later by a program that starts; it may not be written.",
                    shown(path)
                ),
            )
        })
    })
}

fn runs_later(components: &[Spellings]) -> bool {
    let is = |component: &Spellings, name: &str| component.plain.iter().any(|spelling| spelling == name);
    let is_named = components
        .last()
        .is_some_and(|last| NAMES.iter().any(|name| is(last, name)));
    is_named
        || FOLDERS.iter().any(|folder| {
            components.windows(folder.len()).any(|window| {
                window
                    .iter()
                    .zip(*folder)
                    .all(|(component, name)| is(component, name))
            })
        })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_runs_later_is_told_by_whole_names() {
        for path in [
            "/h/.bashrc",
            "/h/.BashRC",
            "/h/.bashrc ",
            "/h/.bashrc.",
            "/h/.bashrc:x",
            "/h/．bashrc",
            "/h/.config/fish/config.fish",
            "/h/.config/autostart/x.desktop",
            "/h/.config/systemd/user/x.service",
            "/w/.git/config",
            "/w/.git/hooks/pre-commit",
            "/w/.git",
            "/w/sub/.gitattributes",
            "/w/.vscode/tasks.json",
            "/w/.envrc",
            "/w/keys/authorized_keys",
            "/var/spool/cron/crontabs/me",
            "/h/.profile",
            "/h/.zlogout",
        ] {
            assert!(runs_later(&spelling::components(Path::new(path))), "{path}");
        }
        for path in [
            "/w/my.bashrc.txt",
            "/w/bashrc.md",
            "/w/zshrc",
            "/w/profile.json",
            "/w/.editorconfig",
            "/w/.github/workflows/ci.yml",
            "/w/.gitignore",
            "/w/.bashrc/x.txt",
            "/w/git/config",
            "/w/.vscode/x.md",
        ] {
            assert!(!runs_later(&spelling::components(Path::new(path))), "{path}");
        }
    }
}

//! Files whose content is run later by a shell, an editor, a session or a version control system are not
//! written. Reading them is harmless.

use std::{collections::HashSet, path::Path, sync::LazyLock};

use super::{
    Asked,
    paths::shown,
    spelling::{self, Chains, Spellings},
    words,
};
use crate::{Access, Denial, PathFact};

const NAME: &str = "startup_files";

/// Whole names.
const NAMES: [&str; 86] = [
    ".bashrc",
    ".bashrc.local",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".bash_functions",
    ".bash_completion",
    ".aliases",
    ".zshrc",
    ".zshrc.local",
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
    ".shrc",
    ".yashrc",
    "config.fish",
    "fish.config",
    "bash.bashrc",
    "rc.local",
    "ld.so.preload",
    ".inputrc",
    ".envrc",
    ".xinitrc",
    ".xserverrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".pam_environment",
    ".screenrc",
    ".tmux.conf",
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".emacs",
    ".emacs.el",
    ".gdbinit",
    ".lldbinit",
    ".pythonrc",
    ".pythonrc.py",
    ".pdbrc",
    ".irbrc",
    ".pryrc",
    ".rprofile",
    ".octaverc",
    ".psqlrc",
    ".sqliterc",
    ".lessfilter",
    ".mailcap",
    ".mailrc",
    ".muttrc",
    ".forward",
    ".procmailrc",
    ".rhosts",
    ".shosts",
    ".hgrc",
    "authorized_keys",
    "authorized_keys2",
    "crontab",
    "anacrontab",
    "sudoers",
    ".gitattributes",
    ".gitmodules",
    "sitecustomize.py",
    "usercustomize.py",
    ".mcp.json",
    ".profile.d",
    ".bashrc.d",
    ".zshrc.d",
    ".login_conf",
    ".dbxprofile",
    ".xmonad",
    ".ideavimrc",
    ".spacemacs",
    ".direnvrc",
    ".zimrc",
    ".zpreztorc",
];

/// Folders with everything in them; several names follow each other.
const FOLDERS: [&[&str]; 56] = [
    &[".git"],
    // The short name of it where names are shortened.
    &["git~1"],
    &[".githooks"],
    &[".husky"],
    &[".bashrc.d"],
    &[".zshrc.d"],
    &[".profile.d"],
    &[".oh-my-zsh"],
    &[".zsh"],
    &[".vim"],
    &[".emacs.d"],
    &[".config", "autostart"],
    &[".config", "systemd"],
    &[".config", "environment.d"],
    &[".config", "plasma-workspace"],
    &[".config", "fish", "conf.d"],
    &[".config", "fish", "functions"],
    &[".config", "fish", "completions"],
    &[".config", "git"],
    &[".config", "nvim"],
    &[".config", "direnv"],
    &[".config", "zsh"],
    &[".config", "i3"],
    &[".config", "sway"],
    &[".config", "hypr"],
    &[".local", "share", "systemd"],
    &[".local", "share", "dbus-1"],
    &[".cargo", "config"],
    &[".cargo", "config.toml"],
    &[".cargo", "env"],
    &[".ipython", "profile_default", "startup"],
    &[".vscode", "tasks.json"],
    &[".vscode", "settings.json"],
    &[".vscode", "launch.json"],
    &[".vscode", "mcp.json"],
    &[".zed", "settings.json"],
    &[".zed", "tasks.json"],
    &[".idea", "runconfigurations"],
    &[".devcontainer"],
    &[".cursor"],
    &[".claude"],
    &["library", "launchagents"],
    &["library", "launchdaemons"],
    &["etc", "cron.d"],
    &["etc", "cron.hourly"],
    &["etc", "cron.daily"],
    &["etc", "cron.weekly"],
    &["etc", "cron.monthly"],
    &["etc", "profile"],
    &["etc", "profile.d"],
    &["etc", "environment"],
    &["etc", "init.d"],
    &["etc", "pam.d"],
    &["etc", "sudoers.d"],
    &["etc", "systemd"],
    &["var", "spool", "cron"],
];

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    if asked.zones.is_disposable {
        return None;
    }
    asked.paths.iter().find_map(check_path)
}

fn check_path(path: &PathFact) -> Option<Denial> {
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
}

/// Whether a word of a shell line, or a payload in it, names a file that is run later. Reading such a file is
/// harmless: ask only about lines that may change something. The answer is a stable code.
pub fn names_startup_file(text: &str) -> Option<&'static str> {
    words::names(text)
        .iter()
        .any(|name| runs_later(&spelling::components(Path::new(name))))
        .then_some("startup_file")
}

/// [`NAMES`], to be asked for one.
static KNOWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| NAMES.into_iter().collect());

/// [`FOLDERS`], to be asked for a component each.
static CHAINS: LazyLock<Chains> = LazyLock::new(|| Chains::of(&FOLDERS));

fn runs_later(components: &[Spellings<'_>]) -> bool {
    let is_named = components
        .last()
        .is_some_and(|last| last.plain().any(|spelling| KNOWN.contains(spelling)));
    is_named || CHAINS.stand_in(components, Spellings::plain)
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
            "/w/GIT~1/hooks/post-checkout",
            "/w/.Cursor/mcp.json",
            "/h/.cargo/config.toml",
            "/h/.vim/plugin/x.vim",
            "/etc/profile.d/x.sh",
            "/h/.zshrc.local",
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

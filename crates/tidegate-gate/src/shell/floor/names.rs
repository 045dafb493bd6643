//! Files of credentials and files that run later, named in any word of a line.

use super::{Floor, Walk};
use crate::{
    floors::{names_credential, names_startup_file},
    shell::shape::{ONE, RUN, Shape, UNKNOWN, base},
};

/// Names that stand for all that a pattern could hit. Wider patterns are judged by what they find.
const SAMPLES: [&str; 24] = [
    ".env",
    ".env.local",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".gitconfig",
    ".git-credentials",
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "server.key",
    "server.pem",
    "config.txt",
    "credentials.json",
    ".bashrc",
    ".profile",
    ".zshrc",
    "environ",
];

/// The start-up files of shells: lines do not touch them at all.
const SHELL_STARTUP: [&str; 18] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
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
];

/// Parts that make a name secret only because of a word in it.
const LOOSE: [&str; 4] = ["_key", "_secret", "_token", "_password"];

/// Programs whose operands name tests, branches or packages at least as often as files.
const NAMERS: [&str; 18] = [
    "cargo",
    "npm",
    "yarn",
    "pnpm",
    "make",
    "go",
    "pytest",
    "docker",
    "kubectl",
    "systemctl",
    "gh",
    "apt",
    "pip",
    "pip3",
    "mvn",
    "gradle",
    "echo",
    "export",
];

/// Commands of git whose operands are branches and the like more often than files.
const REFERRERS: [&str; 12] = [
    "checkout",
    "switch",
    "branch",
    "merge",
    "rebase",
    "fetch",
    "pull",
    "tag",
    "cherry-pick",
    "worktree",
    "merge-base",
    "revert",
];

/// Options whose value is a message or a pattern, and no file.
const TEXT_OPTIONS: [&str; 18] = [
    "-m",
    "-am",
    "--message",
    "--grep",
    "--author",
    "--committer",
    "-S",
    "-G",
    "-e",
    "--regexp",
    "--exclude",
    "--exclude-dir",
    "--ignore",
    "--title",
    "--body",
    "-L",
    "--include",
    "--since",
];

impl Walk<'_> {
    /// Judges the words of a command.
    pub(super) fn names(&mut self, name: &str, words: &[Shape]) {
        let is_searcher = matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack" | "zgrep");
        let is_git = name == "git";
        let gives_pattern = |word: &Shape| {
            has_short(&word.text, 'e')
                || has_short(&word.text, 'f')
                || word.text.starts_with("--regexp")
                || word.text.starts_with("--file")
        };
        // The filter of jq is no file either.
        let mut awaits_pattern = name == "jq" || (is_searcher && !words.iter().any(gives_pattern));
        let is_reference = is_git
            && words.iter().any(|word| REFERRERS.contains(&word.text.as_str()))
            && !words.iter().any(|word| word.text == "--");
        let mut skips_next = false;
        let mut is_git_search = false;
        for word in words {
            let text = word.text.as_str();
            if std::mem::take(&mut skips_next) {
                continue;
            }
            if (is_searcher || is_git) && TEXT_OPTIONS.contains(&text) {
                skips_next = true;
                continue;
            }
            if let Some((option, _)) = text.split_once('=')
                && (is_searcher || is_git)
                && TEXT_OPTIONS.contains(&option)
            {
                continue;
            }
            if is_git && text == "grep" {
                is_git_search = true;
                awaits_pattern = !words.iter().any(gives_pattern);
                continue;
            }
            if awaits_pattern && !text.starts_with('-') && (is_searcher || is_git_search || name == "jq") {
                awaits_pattern = false;
                continue;
            }
            if matches!(name, "echo" | "printf") && !self.is_piped && text.trim().contains([' ', '\n']) {
                continue;
            }
            self.name(if is_reference { "git-reference" } else { name }, word);
        }
        if super::operands::changes(name, words) {
            for word in words {
                self.startup(word, true);
            }
        }
    }

    /// Judges one word that `program` gets.
    pub(super) fn name(&mut self, program: &str, word: &Shape) {
        let text = word.text.as_str();
        if !could_name(text) || text.contains("://") && !text.starts_with("file:") {
            return;
        }
        if text.contains("/proc/") && (text.contains("environ") || text.contains("/mem")) {
            self.refuse(
                Floor::Credentials,
                "process_environment",
                "the environment and the memory of processes hold credentials",
            );
            return;
        }
        if word.has_wildcard() || word.is_unknown() {
            self.pattern(text);
            return;
        }
        let is_prose = text.contains([' ', '\n', '(', '"', '\'']);
        let is_loose_allowed = is_prose
            || (NAMERS.contains(&program) && !text.contains(['.', '/']))
            || (program == "git-reference" && !text.contains(['.', ':']))
            || (program == "git" && !text.contains(['.', '/', ':']))
            || (text.starts_with('-') && !text.contains(['=', '.']));
        let is_secret = if is_loose_allowed {
            holds_strong(text)
        } else {
            names_credential(text).is_some()
        };
        if is_secret {
            self.secret(text);
        }
        self.startup(word, false);
    }

    fn startup(&mut self, word: &Shape, is_changed: bool) {
        let text = word.text.as_str();
        if text.contains("://") {
            return;
        }
        // Each of the names has a dot.
        let is_shell_file = text.contains('.')
            && text
                .to_lowercase()
                .split(|letter: char| !(letter.is_alphanumeric() || "._-".contains(letter)))
                .any(|part| SHELL_STARTUP.contains(&part));
        if is_shell_file || (is_changed && could_name(text) && names_startup_file(text).is_some()) {
            self.refuse(
                Floor::StartupFiles,
                "startup_file",
                format!("{} is run by a program that starts later", shown(text)),
            );
        }
    }

    fn secret(&mut self, text: &str) {
        self.refuse(
            Floor::Credentials,
            "credential_file",
            format!("{} names a file or folder of credentials", shown(text)),
        );
    }

    /// A word with wildcards or unknown parts, as what it could be.
    fn pattern(&mut self, text: &str) {
        let plain: String = text
            .chars()
            .map(|letter| {
                if matches!(letter, RUN | ONE | UNKNOWN) {
                    'x'
                } else {
                    letter
                }
            })
            .collect();
        if holds_strong(&plain) || (text.contains(RUN) && names_credential(&plain).is_some()) {
            self.secret(text);
            return;
        }
        for component in text.split(['/', ':', '=', '@']) {
            let literal = component
                .chars()
                .filter(|letter| !matches!(*letter, RUN | ONE | UNKNOWN))
                .count();
            let is_dotted = component.starts_with('.') || component.starts_with(UNKNOWN);
            // Patterns of whole kinds of files are judged by what they find.
            let is_common = matches!(component.rsplit_once('.'), Some((_, "txt" | "json")));
            let hit = SAMPLES.into_iter().find(|sample| {
                literal * 2 >= sample.len()
                    && (!sample.starts_with('.') || is_dotted)
                    && crate::shell::shape::could_match(component, sample)
                    && !is_common
            });
            if let Some(sample) = hit {
                if SHELL_STARTUP.contains(&sample) {
                    self.refuse(
                        Floor::StartupFiles,
                        "startup_file",
                        format!("{} could be {sample}, which runs later", shown(text)),
                    );
                } else {
                    self.secret(text);
                }
                return;
            }
        }
    }
}

fn has_short(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}

/// Whether the text can name anything of interest at all: nearly every word ends here.
fn could_name(text: &str) -> bool {
    text.bytes()
        .any(|byte| matches!(byte, b'.' | b'_' | b'/' | b'\\') || byte >= 0x80)
}

/// Whether a text names credentials by more than a word such as `_key` in it.
fn holds_strong(text: &str) -> bool {
    if names_credential(text).is_none() {
        return false;
    }
    let mut masked = text.to_lowercase();
    for loose in LOOSE {
        masked = masked.replace(loose, "-x");
    }
    names_credential(&masked).is_some()
}

/// A text without marks, for a message.
fn shown(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|letter| match letter {
            RUN => '*',
            ONE => '?',
            UNKNOWN => '…',
            letter if letter.is_control() => ' ',
            letter => letter,
        })
        .take(80)
        .collect();
    format!("{:?}", base(&text))
}

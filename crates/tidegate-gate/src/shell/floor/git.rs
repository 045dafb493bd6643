//! Git: what only looks, what can be taken back, and what loses history or work.

use super::{Floor, Walk, wrappers::joined};
use crate::shell::shape::{Output, Shape, UNKNOWN};

/// Global options with a value in the next word.
const GLOBAL_VALUES: [&str; 9] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// Every sub-command that git and its usual extensions know. Another one is an alias and could be anything.
const KNOWN: &str = " add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore \
    check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit \
    commit-graph commit-tree config count-objects credential credential-cache credential-store cvsexportcommit \
    cvsimport cvsserver daemon describe diagnose diff diff-files diff-index diff-tree difftool fast-export \
    fast-import fetch fetch-pack filter-branch filter-repo fmt-merge-msg for-each-ref for-each-repo format-patch fsck \
    fsmonitor--daemon gc get-tar-commit-id grep gui hash-object help hook http-backend http-fetch http-push imap-send \
    index-pack init init-db instaweb interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo mailsplit \
    maintenance merge merge-base merge-file merge-index merge-one-file merge-tree mergetool mktag mktree \
    multi-pack-index mv name-rev notes p4 pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push \
    quiltimport range-diff read-tree rebase receive-pack reflog refs remote repack replace replay request-pull rerere \
    reset restore rev-list rev-parse revert rm send-email send-pack shell shortlog show show-branch show-index \
    show-ref sparse-checkout stage stash status stripspace submodule subtree svn switch symbolic-ref tag unpack-file \
    unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit \
    verify-pack verify-tag version web--browse whatchanged worktree write-tree flow ";

/// Options that lose work; nobody has a reason to abbreviate them.
const RISKY: [&str; 6] = [
    "--hard",
    "--force",
    "--delete",
    "--discard-changes",
    "--prune",
    "--remotes",
];

/// Commands that have such options.
const ABBREVIATED: [&str; 9] = [
    "reset", "clean", "checkout", "switch", "branch", "restore", "worktree", "gc", "tag",
];

const UNCOMMITTED: &str = "uncommitted work would be lost";
const PUSHING: &str = "pushing is done with the tool made for it";

impl Walk<'_> {
    /// Judges a command if it is git.
    pub(super) fn git_command(&mut self, name: &str, words: &[Shape]) {
        if name == "hub" || name == "git" || name == "jgit" {
            self.git(words);
        } else if let Some(sub) = name.strip_prefix("git-").filter(|sub| is_known(sub)) {
            let mut all = vec![Shape::literal(sub)];
            all.extend(words.iter().cloned());
            self.git(&all);
        }
    }

    fn git(&mut self, words: &[Shape]) {
        let mut at = 0;
        let mut forgets_force = false;
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            if text.starts_with(UNKNOWN) || !text.starts_with('-') {
                break;
            }
            let joined = text.strip_prefix("-c").filter(|rest| !rest.is_empty());
            let is_valued = GLOBAL_VALUES.contains(&text);
            let setting = match joined {
                Some(rest) => Some(rest.to_owned()),
                None if text == "-c" => words.get(at + 1).map(|word| word.text.clone()),
                None => text.strip_prefix("--config-env=").map(str::to_owned),
            };
            if let Some(setting) = setting {
                let lower = setting.to_ascii_lowercase();
                forgets_force |= lower.starts_with("clean.requireforce");
                if lower.starts_with("alias.")
                    || lower.starts_with("core.hookspath")
                    || lower.starts_with("include")
                {
                    self.losing("git_alias", "an alias or a hook could be any command");
                }
                if let Some((_, value)) = setting.split_once("=!") {
                    self.payload(value, &Output::Other, false);
                }
            }
            at += if is_valued { 2 } else { 1 };
        }
        let Some(sub) = words.get(at) else { return };
        let rest = words.get(at + 1..).unwrap_or_default();
        let Some(sub) = sub.known() else {
            self.losing(
                "git_dynamic",
                "which git command runs is known only while it runs",
            );
            return;
        };
        let sub = sub.to_ascii_lowercase();
        if !is_known(&sub) {
            if !sub.is_empty() {
                self.losing(
                    "git_unknown",
                    format!("{sub:?} is no command of git; an alias could be any command"),
                );
            }
            return;
        }
        if sub == "clean" && forgets_force && !Flags::of(rest).has(&['n'], &["--dry-run"]) {
            self.losing("git_clean", "untracked files would be lost");
        }
        self.git_sub(&sub, rest);
        self.git_payloads(&sub, rest);
    }

    fn losing(&mut self, code: &'static str, reason: impl Into<String>) {
        self.refuse(Floor::Git, code, reason);
    }

    fn git_sub(&mut self, sub: &str, words: &[Shape]) {
        let flags = Flags::of(words);
        let is_abbreviated = ABBREVIATED.contains(&sub)
            && flags.long.iter().any(|given| {
                given.len() > 3
                    && RISKY
                        .iter()
                        .any(|risky| risky.starts_with(given) && risky != given)
            });
        let is_risky = matches!(
            sub,
            "reset" | "clean" | "stash" | "restore" | "update-ref" | "reflog"
        );
        let is_dynamic = words.iter().any(|word| {
            is_risky && word.may_split && word.is_unknown() && word.text.starts_with([UNKNOWN, '-'])
        });
        if sub.starts_with("credential") {
            self.refuse(
                Floor::Credentials,
                "credential_helper",
                "git would hand out stored credentials",
            );
        } else if let Some((code, reason)) = loses(sub, words, &flags) {
            self.losing(code, reason);
        } else if is_abbreviated {
            self.losing("git_abbreviated", "an option that loses work is written in short");
        } else if is_dynamic {
            self.losing(
                "git_dynamic",
                "an option that loses work could come out of the expansion",
            );
        }
    }

    /// Commands that git itself starts.
    fn git_payloads(&mut self, sub: &str, words: &[Shape]) {
        let first = words.iter().position(|word| !word.text.starts_with('-'));
        match (
            sub,
            first.and_then(|at| words.get(at)).map(|word| word.text.as_str()),
        ) {
            ("submodule", Some("foreach")) | ("bisect", Some("run")) => {
                let inner: Vec<Shape> = words
                    .iter()
                    .skip(first.map_or(0, |at| at + 1))
                    .skip_while(|word| word.text.starts_with('-'))
                    .cloned()
                    .collect();
                let text = joined(&inner);
                self.payload(&text, &Output::Other, false);
                self.invoke(&inner, &Output::Other);
            }
            ("for-each-repo", _) => {
                let inner: Vec<Shape> = words
                    .iter()
                    .filter(|word| !word.text.starts_with('-'))
                    .cloned()
                    .collect();
                self.git(&inner);
            }
            ("stash", Some("push")) => {}
            _ => {
                for (at, word) in words.iter().enumerate() {
                    let text = word.text.as_str();
                    let value = match text.split_once('=') {
                        Some((
                            "--exec"
                            | "--extcmd"
                            | "--upload-pack"
                            | "--receive-pack"
                            | "--open-files-in-pager",
                            value,
                        )) => Some(value.to_owned()),
                        _ if matches!(text, "--exec" | "--extcmd" | "-x") => {
                            words.get(at + 1).map(|word| word.text.clone())
                        }
                        _ => None,
                    };
                    if let Some(value) = value {
                        self.payload(&value, &Output::Other, false);
                    }
                }
            }
        }
    }
}

/// Whether a command loses work or history: a code and the reason.
fn loses(sub: &str, words: &[Shape], flags: &Flags<'_>) -> Option<(&'static str, &'static str)> {
    let first = words
        .iter()
        .find(|word| !word.text.starts_with('-'))
        .map_or("", |word| word.text.as_str());
    match sub {
        "push" | "send-pack" | "http-push" | "send-email" | "receive-pack" => Some(("git_push", PUSHING)),
        "subtree" | "svn" | "p4" | "lfs" if matches!(first, "push" | "dcommit" | "submit") => {
            Some(("git_push", PUSHING))
        }
        "reset" if flags.has(&[], &["--hard"]) => Some(("git_reset", UNCOMMITTED)),
        "read-tree" if flags.has(&['u'], &["--reset"]) => Some(("git_reset", UNCOMMITTED)),
        "clean" if flags.has(&['f'], &["--force"]) && !flags.has(&['n'], &["--dry-run"]) => {
            Some(("git_clean", "untracked files would be lost"))
        }
        "checkout" if loses_by_checkout(words, flags) => Some(("git_checkout", UNCOMMITTED)),
        "checkout-index" if flags.has(&['f'], &["--force"]) => Some(("git_checkout", UNCOMMITTED)),
        "switch" if flags.has(&['f', 'C'], &["--force", "--discard-changes", "--force-create"]) => {
            Some(("git_switch", UNCOMMITTED))
        }
        "restore" if !flags.has(&['S'], &["--staged"]) || flags.has(&['W'], &["--worktree"]) => {
            Some(("git_restore", UNCOMMITTED))
        }
        "worktree" if first == "remove" && flags.has(&['f'], &["--force"]) => {
            Some(("git_worktree", UNCOMMITTED))
        }
        "submodule" if first == "deinit" && flags.has(&['f'], &["--force"]) => {
            Some(("git_submodule", UNCOMMITTED))
        }
        "rm" if flags.has(&['f'], &["--force"]) => Some(("git_rm", UNCOMMITTED)),
        "stash" if matches!(first, "drop" | "clear") => Some(("git_stash", "stashed work would be lost")),
        "branch" if loses_by_branch(flags) => {
            Some(("git_branch", "a branch that is merged nowhere could be lost"))
        }
        "config" if changes_configuration(words, flags) => Some((
            "git_config",
            "the configuration of every repository or a hook would change",
        )),
        _ => loses_history(sub, first, flags)
            .then_some(("git_history", "history, or the way back to it, would be lost")),
    }
}

/// Commands that rewrite or drop what the repository remembers.
fn loses_history(sub: &str, first: &str, flags: &Flags<'_>) -> bool {
    match sub {
        "filter-branch" | "filter-repo" | "prune" | "replay" => true,
        "fast-import" => flags.has(&[], &["--force"]),
        "update-ref" => flags.has(&['d', 'z'], &["--stdin", "--delete"]),
        "symbolic-ref" => flags.has(&['d'], &["--delete"]),
        "reflog" => matches!(first, "expire" | "delete" | "drop"),
        "gc" => flags.has(&[], &["--prune"]),
        "lfs" => first == "prune",
        _ => false,
    }
}

fn is_known(sub: &str) -> bool {
    KNOWN.split_ascii_whitespace().any(|known| known == sub)
}

/// The options of a sub-command.
struct Flags<'w> {
    short: Vec<char>,
    long: Vec<&'w str>,
}

impl<'w> Flags<'w> {
    fn of(words: &'w [Shape]) -> Self {
        let mut flags = Self {
            short: Vec::new(),
            long: Vec::new(),
        };
        for word in words.iter().take_while(|word| word.text != "--") {
            if word.text.starts_with("--") {
                flags.long.push(word.text.split('=').next().unwrap_or_default());
            } else if let Some(letters) = word.text.strip_prefix('-') {
                flags.short.extend(letters.chars());
            }
        }
        flags
    }

    /// Whether one of the options is given; git takes any beginning of a long one.
    fn has(&self, short: &[char], long: &[&str]) -> bool {
        self.short.iter().any(|letter| short.contains(letter))
            || self
                .long
                .iter()
                .any(|given| given.len() > 3 && long.iter().any(|option| option.starts_with(given)))
    }
}

fn loses_by_checkout(words: &[Shape], flags: &Flags<'_>) -> bool {
    if flags.has(
        &['f', 'B'],
        &["--force", "--ours", "--theirs", "--pathspec-from-file"],
    ) {
        return true;
    }
    if let Some(at) = words.iter().position(|word| word.text == "--") {
        return words.len() > at + 1;
    }
    if flags.has(&['b'], &["--orphan", "--track", "--detach"]) || flags.short.contains(&'t') {
        return false;
    }
    let operands: Vec<&str> = words
        .iter()
        .map(|word| word.text.as_str())
        .filter(|text| !text.starts_with('-') || *text == "-")
        .collect();
    operands.len() > 1 || operands.first().is_some_and(|only| is_likely_path(only))
}

/// `.`, `notes.txt`, `./x`: a file rather than a branch or a version.
fn is_likely_path(text: &str) -> bool {
    let name = crate::shell::shape::base(text);
    matches!(text, "." | ".." | "*")
        || text.starts_with("./")
        || text.starts_with("../")
        || text.starts_with(':')
        || text.ends_with('/')
        || text.contains([crate::shell::shape::RUN, crate::shell::shape::ONE])
        || name.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty()
                && !stem.ends_with('.')
                && (1..=5).contains(&ending.len())
                && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
        })
}

fn loses_by_branch(flags: &Flags<'_>) -> bool {
    let deletes = flags.has(&['d'], &["--delete"]);
    flags.short.contains(&'D') || (deletes && flags.has(&['f', 'r'], &["--force", "--remotes"]))
}

/// A change of more than this repository, or of where its hooks lie.
fn changes_configuration(words: &[Shape], flags: &Flags<'_>) -> bool {
    let only_reads = flags.has(
        &['l'],
        &[
            "--list",
            "--get",
            "--get-all",
            "--get-regexp",
            "--get-urlmatch",
            "--show-origin",
            "--show-scope",
        ],
    ) || words
        .iter()
        .find(|word| !word.text.starts_with('-'))
        .is_some_and(|word| matches!(word.text.as_str(), "list" | "get"));
    let operands = words.iter().filter(|word| !word.text.starts_with('-')).count();
    if only_reads {
        return false;
    }
    let is_wide = flags.has(&[], &["--global", "--system"]) && operands != 1;
    let key = words
        .iter()
        .map(|word| word.text.to_ascii_lowercase())
        .find(|text| text.contains('.') && !text.starts_with('-'))
        .unwrap_or_default();
    let value = words.last().map_or("", |word| word.text.as_str());
    let runs_shell = key.starts_with("alias.") && value.starts_with('!');
    is_wide || key == "core.hookspath" || key.starts_with("credential.") || runs_shell
}

//! What cannot be undone: file systems, devices, whole trees, the machine itself.

use super::{Floor, Walk};
use crate::shell::{
    Place,
    shape::{ONE, RUN, Shape, UNKNOWN},
};

/// Folders of the system: they and what lies directly in them.
const SYSTEM: [&str; 22] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
];

/// System folders of which everything counts, however deep.
const DEEP_SYSTEM: [&str; 9] = ["bin", "boot", "etc", "lib", "lib64", "sbin", "sys", "proc", "usr"];

const DEVICES: [&str; 19] = [
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-", "md", "disk", "rdisk", "mapper", "mem", "kmem",
    "port", "sr", "nbd", "zram", "mtd",
];

impl Walk<'_> {
    /// Judges one command.
    pub(super) fn wipes(&mut self, name: &str, words: &[Shape]) {
        match name {
            "rm" | "srm" | "rmdir" | "unlink" | "trash" => self.removes(name, words),
            "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" | "chcon"
                if has_option(words, &['R'], "--recursive") =>
            {
                self.protected_operands(
                    words,
                    Reach::Trees,
                    "rights of a whole tree that is not the project's",
                );
            }
            "mv" => self.protected_operands(words, Reach::Trees, "a whole tree would be moved away"),
            "find" | "fd" | "fdfind" => self.find_deletes(words),
            "rsync" if words.iter().any(|word| word.text.starts_with("--del")) => {
                self.protected_operands(words, Reach::Trees, "a whole tree would be emptied");
            }
            _ if destroys(name, words) => self.refuse(
                Floor::Unrecoverable,
                "wipe",
                format!("{name} destroys what is on a device or in a file"),
            ),
            _ if ends_machine(name, words) => self.refuse(
                Floor::Unrecoverable,
                "machine",
                format!("{name} ends the machine or everything that runs on it"),
            ),
            _ => {}
        }
    }

    fn removes(&mut self, name: &str, words: &[Shape]) {
        let is_recursive = has_option(words, &['r', 'R'], "--recursive")
            || words
                .iter()
                .any(|word| word.is_unknown() && word.text.starts_with(['-', UNKNOWN]));
        if words.iter().any(|word| word.text.starts_with("--no-pres")) {
            self.refuse(
                Floor::Unrecoverable,
                "remove_tree",
                "the guard of the root folder would be switched off",
            );
        }
        if is_recursive || name != "rm" {
            let reach = if is_recursive {
                Reach::Everything
            } else {
                Reach::Trees
            };
            self.protected_operands(words, reach, "a whole tree would be removed");
            for word in words.iter().filter(|word| is_recursive && is_history(&word.text)) {
                self.refuse(
                    Floor::Git,
                    "git_history",
                    format!("{} is the whole history", word.text),
                );
            }
        } else {
            let globs: Vec<Shape> = words
                .iter()
                .filter(|word| word.text.ends_with(RUN))
                .cloned()
                .collect();
            self.protected_operands(&globs, Reach::Trees, "everything in a folder would be removed");
        }
    }

    fn find_deletes(&mut self, words: &[Shape]) {
        let deletes = words
            .iter()
            .enumerate()
            .any(|(at, word)| match word.text.as_str() {
                "-delete" => true,
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" => {
                    words.get(at + 1..).is_some_and(|rest| {
                        rest.iter().any(|word| {
                            matches!(
                                crate::shell::shape::program_name(&word.text).as_str(),
                                "rm" | "shred"
                                    | "unlink"
                                    | "rmdir"
                                    | "mv"
                                    | "chmod"
                                    | "chown"
                                    | "truncate"
                                    | "dd"
                            )
                        })
                    })
                }
                _ => false,
            });
        if !deletes {
            return;
        }
        let starts: Vec<Shape> = words
            .iter()
            .skip_while(|word| matches!(word.text.as_str(), "-H" | "-L" | "-P"))
            .take_while(|word| !word.text.starts_with(['-', '(', '!']))
            .cloned()
            .collect();
        self.protected_operands(&starts, Reach::Trees, "a whole tree would be removed");
    }

    fn protected_operands(&mut self, words: &[Shape], reach: Reach, reason: &str) {
        for word in words {
            if word.text.starts_with('-') || word.text.is_empty() {
                continue;
            }
            if is_protected(&word.text, self.place, self.folder.as_deref(), reach) {
                self.refuse(
                    Floor::Unrecoverable,
                    "remove_tree",
                    format!(
                        "{reason}: {}",
                        word.text.replace([RUN, UNKNOWN], "*").replace(ONE, "?")
                    ),
                );
                return;
            }
        }
    }
}

/// Programs that make a file system, wipe, or change the layout of disks.
fn destroys(name: &str, words: &[Shape]) -> bool {
    match name {
        "shred" | "wipefs" | "blkdiscard" | "mkswap" | "mke2fs" | "sgdisk" => true,
        "fdisk" | "sfdisk" | "parted" | "gdisk" | "cfdisk" | "hdparm" | "badblocks" | "cryptsetup"
        | "zpool" | "zfs" | "lvremove" | "vgremove" | "pvremove" | "mdadm" | "diskutil" => {
            let only_lists = |word: &Shape| {
                matches!(
                    word.text.as_str(),
                    "-l" | "--list" | "list" | "status" | "print" | "-V" | "--version"
                )
            };
            words.is_empty() || !words.iter().all(only_lists)
        }
        _ => name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("newfs"),
    }
}

/// Programs that stop the machine, or every process on it.
fn ends_machine(name: &str, words: &[Shape]) -> bool {
    let any = |texts: &[&str]| words.iter().any(|word| texts.contains(&word.text.as_str()));
    match name {
        "shutdown" | "reboot" | "halt" | "poweroff" | "telinit" | "killall5" => true,
        "init" => any(&["0", "6"]),
        "systemctl" | "loginctl" => any(&[
            "poweroff",
            "reboot",
            "halt",
            "kexec",
            "rescue",
            "emergency",
            "suspend",
            "hibernate",
        ]),
        "kill" => {
            let targets = words.get(1..).unwrap_or_default();
            targets
                .iter()
                .any(|word| matches!(word.text.as_str(), "1" | "-1"))
        }
        _ => false,
    }
}

/// What counts as too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The root, home folders, system folders and what lies above the working folder.
    Trees,
    /// The working folder too, and everything in it.
    Everything,
}

fn has_option(words: &[Shape], letters: &[char], long: &str) -> bool {
    words.iter().take_while(|word| word.text != "--").any(|word| {
        let text = word.text.as_str();
        if text.starts_with("--") {
            text.len() > 2 && long.starts_with(text)
        } else {
            text.starts_with('-') && text.contains(letters)
        }
    })
}

fn is_history(text: &str) -> bool {
    let path = text.trim_end_matches('/');
    path == ".git" || path.ends_with("/.git")
}

/// Whether removing or changing this tree takes away too much.
fn is_protected(text: &str, place: &Place, folder: Option<&str>, reach: Reach) -> bool {
    // An unset variable in front of a slash leaves the root.
    if text.starts_with(UNKNOWN) {
        let rest = text.trim_start_matches(UNKNOWN);
        if matches!(rest.trim_end_matches(RUN), "/") {
            return true;
        }
        return false;
    }
    let mut text = text.to_owned();
    // All that is in a folder is the folder.
    while let Some(folder) = text
        .strip_suffix(RUN)
        .filter(|folder| folder.is_empty() || folder.ends_with(['/', '.']))
        .map(|folder| folder.trim_end_matches('.'))
    {
        text = if folder.is_empty() {
            ".".to_owned()
        } else {
            folder.to_owned()
        };
    }
    let path = normal(&text, folder.unwrap_or(place.working_folder()));
    let components: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let working = place.working_folder().trim_end_matches('/');
    let home = place.home().trim_end_matches('/');
    if path == working || folder.is_some_and(|folder| normal(folder, "/") == path) {
        return reach == Reach::Everything;
    }
    if path == "/" || path == home || is_above(&path, home) || is_above(&path, working) {
        return true;
    }
    match components.as_slice() {
        [] => true,
        [only] => *only != "tmp" || reach == Reach::Everything,
        [first, rest @ ..] => {
            let is_deep = DEEP_SYSTEM.contains(first) || (*first == "usr" && rest.first() != Some(&"local"));
            let is_home = matches!(*first, "home" | "Users") && rest.len() == 1;
            let is_glob_root = first.contains([RUN, ONE]);
            is_deep && !is_above(working, &path)
                || is_home
                || is_glob_root
                || (SYSTEM.contains(first) && rest.len() == 1 && *first != "home")
                || (*first == "root" && rest.len() <= 1)
        }
    }
}

/// Whether `above` is a folder on the way to `path`.
fn is_above(above: &str, path: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// The path from the root, without `.` and `..`.
pub(super) fn normal(text: &str, folder: &str) -> String {
    let whole = if text.starts_with('/') {
        text.to_owned()
    } else {
        format!("{folder}/{text}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A device that holds data or memory.
pub(super) fn is_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else {
        return false;
    };
    let known = name.split([RUN, ONE, UNKNOWN]).next().unwrap_or_default();
    let is_open = known.len() < name.len();
    !is_harmless_device(path)
        && DEVICES
            .iter()
            .any(|device| name.starts_with(device) || (is_open && device.starts_with(known)))
}

/// Devices that hold nothing.
pub(in crate::shell) fn is_harmless_device(path: &str) -> bool {
    matches!(
        path,
        "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/zero" | "/dev/full"
    ) || path.starts_with("/dev/fd/")
        || path.starts_with("/dev/shm/")
}

/// A file of the system, which no line writes.
pub(super) fn is_system_file(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').split('/');
    match (parts.next(), parts.next()) {
        (Some("usr"), Some("local")) | (Some("dev"), _) => false,
        (Some(first), Some(_)) => DEEP_SYSTEM.contains(&first),
        _ => false,
    }
}

//! The command line of bubblewrap: a view of the files by allow-list, and namespaces of its own.
//!
//! Nothing here leaves a decision to bubblewrap: it only builds the view, and the process it starts confines
//! itself once more with Landlock and the system call filter.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{
    policy::{Policy, SYSTEM_FILES, SYSTEM_FOLDERS},
    wire::COMMAND,
};

/// Where our own program stands in the view.
const PROGRAM: &str = "/run/tidegate";

/// Where the private folder stands in the view.
pub(super) const TEMPORARY: &str = "/tmp";

/// The arguments of `bwrap`.
pub(super) fn arguments(policy: &Policy, program: &Path) -> Vec<OsString> {
    let mut line = Line(Vec::new());
    for flag in [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ] {
        line.word(flag);
    }
    if !policy.network {
        line.word("--unshare-net");
    }
    for flag in ["--die-with-parent", "--new-session", "--clearenv"] {
        line.word(flag);
    }
    line.words(["--cap-drop", "ALL"]).words(["--hostname", "sandbox"]);
    for folder in SYSTEM_FOLDERS {
        line.system(folder);
    }
    for file in SYSTEM_FILES {
        line.bind("--ro-bind-try", Path::new(file));
    }
    line.words(["--proc", "/proc"]).words(["--dev", "/dev"]);
    line.words(["--size", &policy.limits.temporary_bytes.to_string()])
        .words(["--tmpfs", TEMPORARY]);
    for path in &policy.readable {
        line.bind("--ro-bind-try", path);
    }
    for path in &policy.writable {
        line.bind("--bind-try", path);
    }
    // A folder that something is mounted on cannot be moved: what stands in it keeps its path.
    for path in &policy.hidden {
        for above in above(policy, path) {
            line.bind("--bind-try", above);
        }
    }
    for path in &policy.protected {
        line.bind("--ro-bind-try", path);
    }
    let is_covered = |path: &Path| {
        policy
            .concealed()
            .any(|other| path != other && path.starts_with(other))
    };
    let in_view = policy.concealed().filter(|path| is_in_view(policy, path));
    for path in in_view.filter(|path| !is_covered(path)) {
        line.conceal(path);
    }
    line.word("--ro-bind").path(program).word(PROGRAM);
    line.words(["--chdir", "/"]).words(["--", PROGRAM, COMMAND]);
    line.0
}

/// The folders between a path and the writable folder it stands in, outermost first.
fn above<'p>(policy: &'p Policy, path: &'p Path) -> Vec<&'p Path> {
    let is_inside = |folder: &Path| {
        policy
            .writable
            .iter()
            .any(|root| folder != root && folder.starts_with(root))
    };
    let mut above: Vec<_> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| is_inside(folder))
        .collect();
    above.reverse();
    above
}

/// Whether a path would be seen if nothing were done.
fn is_in_view(policy: &Policy, path: &Path) -> bool {
    let system = SYSTEM_FOLDERS.iter().map(Path::new);
    let mut roots = system.chain(
        policy
            .readable
            .iter()
            .chain(&policy.writable)
            .map(PathBuf::as_path),
    );
    roots.any(|root| path.starts_with(root))
}

struct Line(Vec<OsString>);

impl Line {
    fn word(&mut self, word: &str) -> &mut Self {
        self.0.push(word.into());
        self
    }

    fn words<const N: usize>(&mut self, words: [&str; N]) -> &mut Self {
        self.0.extend(words.into_iter().map(OsString::from));
        self
    }

    fn path(&mut self, path: &Path) -> &mut Self {
        self.0.push(path.into());
        self
    }

    fn bind(&mut self, how: &str, path: &Path) {
        self.word(how).path(path).path(path);
    }

    /// A folder of the system; on merged systems most are links into `/usr`, and stay that.
    fn system(&mut self, folder: &str) {
        match fs::read_link(folder) {
            Ok(target) => {
                self.word("--symlink").path(&target).word(folder);
            }
            Err(_not_a_link) => self.bind("--ro-bind-try", Path::new(folder)),
        }
    }

    /// An empty folder in place of a folder, and something that cannot be opened in place of a file. What is
    /// not there needs no cover.
    fn conceal(&mut self, path: &Path) {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => {
                self.word("--size").word("4096");
                self.word("--tmpfs").path(path);
                self.word("--remount-ro").path(path);
            }
            Ok(found) if !found.is_symlink() => {
                self.word("--ro-bind").word("/dev/null").path(path);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

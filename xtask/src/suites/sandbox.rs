//! The release binary as a user without rights, on a file system it cannot write to but for its own folder.
//!
//! This is what a container does. No container engine runs on the build machines, so bubblewrap takes its place
//! here; the image itself is not built or tested.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Count, argument, ensure_program};
use crate::daemon::{self, Daemon, Start};
use crate::{process, scripted};

/// A user that exists nowhere else on the machine.
const USER: u32 = 65_532;

/// Starts it, asks, looks at what it may write, and stops it.
pub(crate) fn run() -> Result<Count> {
    ensure_program("bwrap", "bubblewrap")?;
    let runtime = Runtime::new()?;
    let upstream = runtime.block_on(scripted::start(0))?;
    let folder = TempDir::new()?;
    let home = folder.path().join("home");
    let mut start = Start::new(&home, upstream.base_url(), scripted::NAME);
    daemon::prepare(&start)?;
    hand_over(folder.path(), &home)?;
    start.wrapper = wrapper(&home)?;
    let daemon = Daemon::start(&start)?;
    let mut count = Count::default();
    let mut check = |name: &str, held: bool| {
        println!("{} {name}", if held { "ok  " } else { "FAIL" });
        count.add(held);
    };
    check("ready on a read-only root", true);
    let body = json!({"model": "tidegate", "messages": [{"role": "user", "content": "Please calculate 19 plus 23."}]});
    let answer = daemon.call("POST", "/v1/chat/completions", &body)?;
    check(
        "answers with a server tool",
        answer.status == 200 && answer.text().contains("42"),
    );
    let database = home.join("data/tidegate.db");
    let mode = database.metadata().map(|meta| meta.permissions().mode() & 0o077);
    check(
        "the database is its owner's alone",
        mode.is_ok_and(|others| others == 0),
    );
    check("stops cleanly", daemon.stop()?);
    runtime.block_on(upstream.stop());
    Ok(count)
}

/// The folder becomes the user's; the way to it can be walked.
fn hand_over(folder: &Path, home: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711))?;
    let mut pending: Vec<PathBuf> = vec![home.to_owned()];
    while let Some(path) = pending.pop() {
        chown(&path, Some(USER), Some(USER))?;
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        }
    }
    Ok(())
}

/// Everything read-only but the home; as root, the change of user is done inside.
fn wrapper(home: &Path) -> Result<Vec<String>> {
    let home = argument(home)?;
    if rustix::process::geteuid().is_root() {
        ensure!(process::exists("setpriv"), "`setpriv` (util-linux) is needed");
    }
    let sandbox = format!(
        "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-pid --unshare-ipc --unshare-uts --die-with-parent \
         --bind {home} {home} --chdir {home} --"
    );
    let without_rights = format!(
        "setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs --bounding-set -all --inh-caps -all"
    );
    let as_root = rustix::process::geteuid().is_root();
    let words = [
        sandbox.as_str(),
        if as_root { without_rights.as_str() } else { "" },
    ];
    // Temporary folders hold no blanks, so the words may be parted at them.
    Ok(words.join(" ").split_whitespace().map(str::to_owned).collect())
}

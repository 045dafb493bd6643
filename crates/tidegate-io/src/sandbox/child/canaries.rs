//! The self-test: what must not work is tried from inside, and what came of it is told.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    os::fd::AsFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{process::Pid, thread::move_into_link_name_space};
use serde::{Deserialize, Serialize};

/// How long a connection is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// What the canaries aim at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets {
    /// A folder outside of every open one, which this user could write.
    pub(crate) outside: PathBuf,
    /// A file that is hidden.
    pub(crate) masked: PathBuf,
    /// A file that may be read: without it, everything else would prove nothing.
    pub(crate) readable: PathBuf,
    /// A folder that may be written.
    pub(crate) writable: PathBuf,
    /// A listener of this machine.
    pub(crate) listener: SocketAddr,
    /// The server's own process.
    pub(crate) server: i32,
}

/// What came of one canary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    /// What was tried.
    pub name: String,
    /// Whether it went as it should.
    pub is_held: bool,
    /// What the kernel said.
    pub detail: String,
}

/// Tries everything, and tells it as one line of JSON. 0 where all is as it should be.
pub(super) fn run(targets: &Targets) -> u8 {
    let canaries = [
        allowed("read_readable", fs::read(&targets.readable)),
        allowed("write_writable", write_in(&targets.writable)),
        denied("write_outside", write_in(&targets.outside)),
        denied("read_masked", read_some(&targets.masked)),
        denied(
            "tcp_loopback",
            TcpStream::connect_timeout(&targets.listener, CONNECT_TIMEOUT),
        ),
        denied("udp_loopback", UdpSocket::bind(("127.0.0.1", 0))),
        denied("signal_server", signal(targets.server)),
        denied("namespace", enter_namespace()),
    ];
    let all_held = canaries.iter().all(|canary| canary.is_held);
    let Ok(text) = serde_json::to_string(&canaries) else {
        return 1;
    };
    let is_told = writeln!(io::stdout(), "{text}").is_ok();
    u8::from(!(all_held && is_told))
}

fn write_in(folder: &Path) -> io::Result<()> {
    let path = folder.join("canary");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map(drop)?;
    fs::remove_file(path)
}

/// An empty file in the place of the real one is as good as none.
fn read_some(path: &Path) -> io::Result<()> {
    if fs::read(path)?.is_empty() {
        return Err(io::Error::other("empty"));
    }
    Ok(())
}

fn signal(process: i32) -> io::Result<()> {
    let process = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidInput)?;
    rustix::process::test_kill_process(process).map_err(io::Error::from)
}

/// Entering a user namespace: its own one, which the kernel itself would refuse with another error.
fn enter_namespace() -> io::Result<()> {
    let own = File::open("/proc/self/ns/user")?;
    match move_into_link_name_space(own.as_fd(), None) {
        Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
        Err(problem) => Err(problem.into()),
    }
}

fn denied<T>(name: &str, outcome: io::Result<T>) -> Canary {
    canary(name, outcome.is_err(), outcome.err())
}

fn allowed<T>(name: &str, outcome: io::Result<T>) -> Canary {
    canary(name, outcome.is_ok(), outcome.err())
}

fn canary(name: &str, is_held: bool, problem: Option<io::Error>) -> Canary {
    Canary {
        name: name.to_owned(),
        is_held,
        detail: problem.map_or_else(|| "it worked".to_owned(), |problem| problem.to_string()),
    }
}

//! Programs that stay: started once, spoken to over their pipes, and ended by us.
//!
//! The same rules as for programs that run to their end ([`crate::process`]): no shell, nothing inherited, a process
//! group of its own that is killed as a whole when its [`Handle`] goes. Limits of the operating system are set
//! from outside right after the start, so what the program does in its first moments is not under them; what it
//! starts later is.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
pub use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::process::{Exit, Group, Program as Started, exit_of, start};

/// How long the end of a killed program is waited for.
const REAP: Duration = Duration::from_secs(2);

/// A program to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program: an absolute path, or a name looked up in the `PATH` of `environment`.
    pub program: PathBuf,
    /// Its arguments, each one element of argv whatever it holds.
    pub arguments: Vec<OsString>,
    /// The working folder.
    pub folder: PathBuf,
    /// The whole environment: nothing else is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// What the operating system grants it.
    pub limits: Limits,
}

/// Limits of one process; what it starts inherits them. `None` leaves ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open files and connections (POSIX, `RLIMIT_NOFILE`).
    pub open_files_max: Option<u64>,
    /// The longest file it may write, in bytes (POSIX, `RLIMIT_FSIZE`).
    pub file_bytes_max: Option<u64>,
    /// Memory of its own that it may write to, in bytes (Linux, `RLIMIT_DATA`). Address space that is only reserved
    /// does not count, which is why this and not `RLIMIT_AS` holds programs that reserve much.
    pub memory_bytes_max: Option<u64>,
}

impl Default for Limits {
    /// 1024 open files, files up to 1 GiB, 4 GiB of memory.
    fn default() -> Self {
        Self {
            open_files_max: Some(1024),
            file_bytes_max: Some(1 << 30),
            memory_bytes_max: Some(4 << 30),
        }
    }
}

/// A program that runs, with its pipes.
#[derive(Debug)]
pub struct Running {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it says.
    pub stdout: ChildStdout,
    /// What it complains about. Drain it, or the program stands still when the pipe is full.
    pub stderr: ChildStderr,
    /// Its life.
    pub handle: Handle,
}

/// The life of a program: dropping it kills the program and its group.
#[derive(Debug)]
pub struct Handle {
    child: tokio::process::Child,
    group: Group,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// The program cannot be started, or its limits cannot be set; it does not run then.
    pub fn spawn(self) -> std::io::Result<Running> {
        let limits = self.limits;
        let (mut child, group) = start(&Started {
            program: self.program,
            arguments: self.arguments,
            folder: self.folder,
            environment: self.environment,
            stdin: Some(Vec::new()),
            output_bytes_max: 0,
            timeout: Duration::ZERO,
        })?;
        limits.set(group.leader())?;
        let pipe = || std::io::Error::other("a pipe is missing");
        Ok(Running {
            stdin: child.stdin.take().ok_or_else(pipe)?,
            stdout: child.stdout.take().ok_or_else(pipe)?,
            stderr: child.stderr.take().ok_or_else(pipe)?,
            handle: Handle { child, group },
        })
    }
}

impl Limits {
    fn set(self, leader: Option<i32>) -> std::io::Result<()> {
        let Some(pid) = leader.and_then(Pid::from_raw) else {
            return Ok(());
        };
        // A dump would hold whatever credentials it was given.
        let wanted = [
            (Resource::Core, Some(0)),
            (Resource::Nofile, self.open_files_max),
            (Resource::Fsize, self.file_bytes_max),
            (Resource::Data, self.memory_bytes_max),
        ];
        for (resource, maximum) in wanted {
            if let Some(maximum) = maximum {
                let limit = Rlimit {
                    current: Some(maximum),
                    maximum: Some(maximum),
                };
                match prlimit(Some(pid), resource, limit) {
                    // Gone already: whoever reads its output finds out.
                    Ok(_) | Err(rustix::io::Errno::SRCH) => {}
                    Err(problem) => return Err(problem.into()),
                }
            }
        }
        Ok(())
    }
}

impl Handle {
    /// The process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end. Cancel safe.
    ///
    /// # Errors
    /// The operating system will not say.
    pub async fn wait(&mut self) -> std::io::Result<Exit> {
        self.child.wait().await.map(exit_of)
    }

    /// Waits `patience` for it to end by itself, then kills it and everything in its group.
    pub async fn stop(mut self, patience: Duration) -> Option<Exit> {
        let by_itself = tokio::time::timeout(patience, self.wait()).await;
        // Also where it has ended: it may have left something running.
        self.group.kill();
        match by_itself {
            Ok(exit) => exit.ok(),
            Err(_elapsed) => tokio::time::timeout(REAP, self.wait()).await.ok()?.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn shell(line: &str, limits: Limits) -> Program {
        Program {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), line.into()],
            folder: "/".into(),
            environment: vec![("SHOWN".into(), "1".into())],
            limits,
        }
    }

    #[tokio::test]
    async fn is_spoken_to_with_what_it_was_given_and_no_more() {
        let limits = Limits {
            open_files_max: Some(77),
            ..Limits::default()
        };
        let mut running = shell(
            "read line; echo \"$line $SHOWN $HOME\"; ulimit -n; ulimit -c",
            limits,
        )
        .spawn()
        .unwrap();
        running.stdin.write_all(b"hello\n").await.unwrap();
        let mut said = String::new();
        running.stdout.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "hello 1 \n77\n0\n");
        let exit = running.handle.stop(Duration::from_secs(20)).await;
        assert_eq!(exit, Some(Exit::Code(0)));
    }

    #[tokio::test]
    async fn what_does_not_end_is_killed_with_what_it_started() {
        let mut running = shell("sleep 600 & echo $!; wait", Limits::default())
            .spawn()
            .unwrap();
        let mut said = [0; 32];
        let count = running.stdout.read(&mut said).await.unwrap();
        let inner: i32 = std::str::from_utf8(&said[..count])
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert!(std::path::Path::new(&format!("/proc/{inner}")).exists());
        let exit = running.handle.stop(Duration::ZERO).await;
        assert_eq!(exit, Some(Exit::Signal(9)));
        // The pipe's end comes when the last holder is gone.
        let rest = running.stdout.read(&mut said).await.unwrap();
        assert_eq!(rest, 0);
    }
}

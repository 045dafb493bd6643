//! What one run may touch and how much of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What one run may use. Every bound holds for the run as a whole unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Processor time of each process, in seconds (POSIX, `RLIMIT_CPU`).
    pub cpu_s: u64,
    /// Memory in bytes: of each process as it asks for it (`RLIMIT_DATA`), and of all of them together as
    /// they are watched.
    pub memory_bytes: u64,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// The largest file a process may write, in bytes (`RLIMIT_FSIZE`).
    pub file_bytes: u64,
    /// What fits into the private `/tmp`, in bytes. Bubblewrap only; elsewhere `file_bytes` bounds each file.
    pub temporary_bytes: u64,
    /// How much of standard output and of standard error is kept, each, in bytes.
    pub output_bytes: usize,
    /// When everything is killed, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_s: 60,
            memory_bytes: 2 << 30,
            processes: 256,
            file_bytes: 256 << 20,
            temporary_bytes: 256 << 20,
            output_bytes: 1 << 20,
            timeout_ms: 60_000,
        }
    }
}

/// Where a run begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WorkingFolder {
    /// The private `/tmp`, which is gone afterwards.
    #[default]
    Temporary,
    /// A folder that the policy lets be read.
    Folder(PathBuf),
}

/// What one run may touch. All paths are real absolute ones. What is not named is not there (bubblewrap) or
/// cannot be opened (Landlock); programs, libraries and the like of the system may always be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Files and folders that may be read.
    pub readable: Vec<PathBuf>,
    /// Folders in which everything may be read, written, made and removed.
    pub writable: Vec<PathBuf>,
    /// Files and folders inside `writable` that may be read only.
    pub protected: Vec<PathBuf>,
    /// Files and folders inside the above that may not be touched at all: the server's own data.
    pub hidden: Vec<PathBuf>,
    /// Files inside the above that may not be touched at all: credentials.
    pub masked: Vec<PathBuf>,
    /// Whether other machines may be reached.
    pub network: bool,
    /// The environment, beside `PATH`, `LANG`, `HOME` and `TMPDIR`, which are always set here. Nothing is
    /// inherited.
    pub environment: Vec<(String, String)>,
    /// Where it begins.
    pub working_folder: WorkingFolder,
    /// How much of everything.
    pub limits: Limits,
}

impl Policy {
    /// Everything inside the readable and writable folders that may not be touched.
    pub(super) fn concealed(&self) -> impl Iterator<Item = &PathBuf> {
        self.hidden.iter().chain(&self.masked)
    }
}

/// Folders of the system that every run may read and execute from.
pub(super) const SYSTEM_FOLDERS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Files and folders of `/etc` that programs need, none of which holds a secret.
pub(super) const SYSTEM_FILES: [&str; 20] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/group",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/timezone",
];

/// Parts of `/proc` that tell about the machine and about no process. Where bubblewrap gives a `/proc` of its
/// own, that one is readable as a whole.
pub(super) const SYSTEM_PROC: [&str; 9] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/mounts",
    "/proc/self",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
];

/// Devices that every run may read and write.
pub(super) const SYSTEM_DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// The folders in which programs are looked for, first hit first. Nothing the model or the operator's own
/// environment says changes it.
pub(super) const PROGRAM_FOLDERS: [&str; 6] = [
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
];

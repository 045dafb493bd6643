//! Programs behind walls: whatever the model wrote, this is what it can reach.
//!
//! The isolation does not depend on anything that was decided about the command before. Every run is a process
//! of our own program (`tidegate __sandbox`, see [`child`]) that confines itself and then becomes, or starts,
//! what was asked for. There are three levels ([`Level`]):
//!
//! - *bwrap*: bubblewrap builds a view of the files by allow-list, with masks over what is hidden, and gives
//!   namespaces of its own for processes, networks, users and messages. Landlock and the system call filter
//!   stand inside it once more.
//! - *landlock*: Landlock (Linux 6.12 or newer) and the system call filter alone. What Landlock cannot hold is
//!   taken away altogether: nobody changes owners; changing permissions and times, and leaving the process group,
//!   look as if they worked and do nothing.
//!   Where a folder holds something hidden, new files cannot be made directly in that folder.
//! - *none*: limits and a cleared environment only. Never chosen unless the operator has accepted it.
//!
//! [`Sandbox::open`] tries the levels from the strongest down, each with canaries from inside, and keeps the
//! result as a [`Probe`]. Where none holds that is good enough, every run is refused with a sentence that says
//! what to do.
//!
//! Bounds: `RLIMIT_*` hold each process, and the whole run is counted from outside (`usage`) as well, since
//! some limits do not hold the superuser. At the deadline, on any bound, and when the future is dropped, the
//! whole group is killed; with it goes the process namespace, where there is one.

mod bwrap;
pub mod child;
pub mod masks;
mod plan;
mod policy;
pub mod probe;
mod programs;
mod rules;
mod run;
mod usage;
mod wire;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::{
    plan::{Plan, Task, Work},
    policy::{Limits, Policy, WorkingFolder},
    probe::Probe,
    programs::Programs,
    run::{Bound, Outcome},
};
use crate::process::ProcessError;

/// What `~` means in a line that runs here: the private folder. At the level `landlock` it has another path, which
/// is not known before it runs; nothing stands in either.
pub const HOME: &str = bwrap::TEMPORARY;

/// How much stands between a run and the machine. Stronger is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Level {
    /// Bubblewrap, Landlock and the system call filter.
    #[serde(rename = "bwrap")]
    BwrapLandlock,
    /// Landlock and the system call filter.
    #[default]
    #[serde(rename = "landlock")]
    Landlock,
    /// Limits and a cleared environment only.
    #[serde(rename = "none")]
    None,
}

impl Level {
    /// Every level, strongest first.
    pub const ALL: [Self; 3] = [Self::BwrapLandlock, Self::Landlock, Self::None];

    /// The level's name in the configuration and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::BwrapLandlock => "bwrap",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// How programs are confined. `[sandbox]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The weakest level that programs may run at. `none` accepts programs that nothing holds back.
    pub level_min: Level,
    /// Files and folders beside the system's own that every run may read: a compiler under `/opt`, for example.
    pub readable: Vec<PathBuf>,
    /// The bounds of each run. The time and output of a tool's own row hold where they are less.
    pub limits: Limits,
    /// When git is killed that reaches another machine, in milliseconds, in place of the limits' own time: a large
    /// repository takes minutes. The time of a tool's own row holds where it is less.
    pub network_timeout_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level_min: Level::default(),
            readable: Vec::new(),
            limits: Limits::default(),
            network_timeout_ms: 300_000,
        }
    }
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No level is good enough.
    #[error("{0}")]
    Unavailable(String),
    /// The walls could not be built; nothing of the caller's has run.
    #[error("the sandbox could not be built: {0}")]
    NotConfined(String),
    /// A folder could not be looked at.
    #[error("`{folder}` cannot be looked at: {problem}; make it readable or take it off the zones")]
    Folder {
        /// Which.
        folder: String,
        /// Why.
        problem: std::io::Error,
    },
    /// There is too much beside something hidden.
    #[error(
        "`{folder}` has more than {max} entries beside something hidden; install bubblewrap, which can hide it \
         without opening each"
    )]
    TooManyRules {
        /// Which.
        folder: String,
        /// The bound.
        max: usize,
    },
    /// There is too much to look for credentials in.
    #[error("`{folder}` has more than {max} entries, too many to look for credentials in; narrow the zones")]
    TooManyEntries {
        /// Which.
        folder: String,
        /// The bound.
        max: usize,
    },
    /// A policy that would hide nothing.
    #[error("`{0}` is not a folder that a program can be given; name a folder below `/`")]
    Root(String),
    /// The order is longer than is sent.
    #[error("the command and its input are longer than {0} bytes; shorten them")]
    TooLong(u64),
    /// The private folder cannot be made.
    #[error("the private folder of a run cannot be made: {0}")]
    Temporary(std::io::Error),
    /// The process could not be started or was lost.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Our own failure.
    #[error("the run was lost: {0}")]
    Lost(String),
}

/// Where our own program and bubblewrap are.
#[derive(Debug, Clone)]
struct Tools {
    program: PathBuf,
    bwrap: Option<PathBuf>,
}

/// The walls, tried once.
#[derive(Debug, Clone)]
pub struct Sandbox {
    tools: Tools,
    programs: Programs,
    options: Options,
    probe: Probe,
}

impl Sandbox {
    /// Looks what the machine offers and tries it. `program` is tidegate's own binary, as
    /// `std::env::current_exe` gives it.
    pub async fn open(options: Options, program: &Path) -> Self {
        Self::open_with(options, program, &Level::ALL).await
    }

    /// The same with some levels left out, for tests and to compare them.
    pub async fn open_with(options: Options, program: &Path, levels: &[Level]) -> Self {
        let programs = Programs::find();
        let tools = Tools {
            program: program.to_owned(),
            bwrap: programs.get("bwrap").map(Path::to_owned),
        };
        let probe = Box::pin(probe::probe(&tools, options.level_min, levels)).await;
        Self {
            tools,
            programs,
            options,
            probe,
        }
    }

    /// What was found at the start.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// The level that runs are held at, if there is one that is good enough.
    pub fn level(&self) -> Option<Level> {
        self.probe.level()
    }

    /// The programs of the fixed search path.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The bounds that the operator has set.
    pub fn limits(&self) -> Limits {
        self.options.limits
    }

    /// When a run that reaches another machine is killed, in milliseconds.
    pub fn network_timeout_ms(&self) -> u64 {
        self.options.network_timeout_ms
    }

    /// Runs a task to its end or to one of its bounds. Dropping the future kills everything it started.
    pub async fn run(&self, task: Task, policy: &Policy) -> Result<Outcome, Error> {
        let Some(level) = self.level() else {
            return Err(Error::Unavailable(self.probe.sentence()));
        };
        let mut policy = policy.clone();
        policy.readable.extend(self.options.readable.iter().cloned());
        Box::pin(run::run(&self.tools, level, task, policy)).await
    }
}

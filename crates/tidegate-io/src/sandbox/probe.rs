//! What the machine offers, tried once at the start.

use std::{fs, net::TcpListener, path::Path};

use super::{
    Level, Limits, Policy, Task, Tools, Work, WorkingFolder,
    child::canaries::{Canary, Targets},
    run,
};

/// How long the canaries may take, in milliseconds.
const TIMEOUT_MS: u64 = 10_000;

/// What was found.
#[derive(Debug, Clone)]
pub struct Probe {
    level: Option<Level>,
    level_min: Level,
    tried: Vec<Tried>,
}

/// One level that was tried.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Which.
    pub level: Level,
    /// What the canaries told, or why they could not be sent.
    pub outcome: Result<Vec<Canary>, String>,
}

impl Tried {
    /// Whether everything held.
    pub fn is_good(&self) -> bool {
        self.problem().is_none()
    }

    fn problem(&self) -> Option<String> {
        match &self.outcome {
            Err(problem) => Some(problem.clone()),
            Ok(canaries) => {
                let failed = canaries.iter().find(|canary| !canary.is_held)?;
                Some(format!(
                    "the canary `{}` was not held: {}",
                    failed.name, failed.detail
                ))
            }
        }
    }
}

impl Probe {
    /// The level in force; none where what holds is weaker than what the operator asks for.
    pub fn level(&self) -> Option<Level> {
        self.level
    }

    /// Every level that was tried, strongest first.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// One sentence for the log, `doctor` and the capability report.
    pub fn sentence(&self) -> String {
        let mut text = match self.level {
            Some(Level::BwrapLandlock) => {
                "Programs run in a sandbox (bubblewrap, Landlock, system call filter), and its self-test held."
                    .to_owned()
            }
            Some(Level::Landlock) => "Programs run in a sandbox (Landlock, system call filter), and its self-test \
                 held; permissions and owners of files cannot be changed there."
                .to_owned(),
            Some(Level::None) => "Programs run with limits but NOT in a sandbox, because `sandbox.level_min` is \
                 `none`: they can do what the server's own user can do."
                .to_owned(),
            None => format!(
                "Programs cannot be run: no sandbox of level `{}` or stronger works here.",
                self.level_min.name()
            ),
        };
        for tried in &self.tried {
            if let Some(problem) = tried.problem() {
                for part in [" `", tried.level.name(), "` does not work: ", &problem, "."] {
                    text.push_str(part);
                }
            }
        }
        if self.level.is_none() {
            text.push_str(
                " Install bubblewrap and allow user namespaces, or use Linux 6.12 or newer with Landlock; or \
                 accept a weaker level with `sandbox.level_min`.",
            );
        }
        text
    }
}

/// Tries the levels, strongest first, until one holds or the next would be too weak.
pub(super) async fn probe(tools: &Tools, level_min: Level, levels: &[Level]) -> Probe {
    let mut tried = Vec::new();
    let mut found = None;
    for level in levels.iter().copied().filter(|level| *level <= level_min) {
        if level == Level::None {
            // Nothing is held back, so there is nothing to try.
            found = Some(level);
            break;
        }
        let outcome = Box::pin(canaries(tools, level)).await;
        let one = Tried { level, outcome };
        let is_good = one.is_good();
        tried.push(one);
        if is_good {
            found = Some(level);
            break;
        }
    }
    Probe {
        level: found,
        level_min,
        tried,
    }
}

async fn canaries(tools: &Tools, level: Level) -> Result<Vec<Canary>, String> {
    let text = |problem: std::io::Error| format!("the self-test cannot be laid out: {problem}");
    let folder = tempfile::Builder::new()
        .prefix("tidegate-probe-")
        .tempdir()
        .map_err(text)?;
    let root = folder.path().canonicalize().map_err(text)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(text)?;
    let targets = Targets {
        outside: root.join("outside"),
        masked: root.join("open/masked"),
        readable: root.join("open/readable"),
        writable: root.join("open/below"),
        listener: listener.local_addr().map_err(text)?,
        server: i32::try_from(std::process::id()).unwrap_or(i32::MAX),
    };
    lay_out(&targets).map_err(text)?;
    let policy = Policy {
        writable: vec![root.join("open")],
        masked: vec![targets.masked.clone()],
        working_folder: WorkingFolder::Temporary,
        limits: Limits {
            timeout_ms: TIMEOUT_MS,
            ..Limits::default()
        },
        ..Policy::default()
    };
    let task = Task {
        work: Work::Canaries(targets),
        stdin: Vec::new(),
    };
    let outcome = run::run(tools, level, task, policy)
        .await
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&outcome.stdout.bytes).map_err(|_| {
        let said = String::from_utf8_lossy(&outcome.stderr.bytes);
        format!("the self-test ended with {:?}: {}", outcome.exit, said.trim())
    })
}

fn lay_out(targets: &Targets) -> std::io::Result<()> {
    fs::create_dir(&targets.outside)?;
    fs::create_dir_all(&targets.writable)?;
    for file in [&targets.masked, &targets.readable] {
        fill(file)?;
    }
    Ok(())
}

fn fill(path: &Path) -> std::io::Result<()> {
    use std::io::Write as _;
    fs::File::create_new(path)?.write_all(b"canary")
}

//! `sandbox`: a Python snippet behind walls; and the walls themselves, as every runner here puts them up.

use std::{path::PathBuf, sync::Arc};

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_gate::{
    Zones,
    floors::{names_credential, names_startup_file},
};
use tidegate_io::{
    process::Exit,
    sandbox::{Error, Limits, Outcome, Policy, Sandbox, Task, WorkingFolder, masks::Finder},
};

use crate::arguments::Values;

/// What of the zones a program sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Nothing: the system's own programs and a private folder.
    Nothing,
    /// What may be read, and nothing to write but the private folder.
    Read,
    /// What may be read, and what may be written.
    Write,
}

/// The sandbox, and what of this machine is open in it. The model chooses none of it.
#[derive(Debug, Clone)]
pub(crate) struct Walls {
    sandbox: Sandbox,
    finder: Arc<Finder>,
    zones: Zones,
    folder: PathBuf,
}

impl Walls {
    /// `folder` is where programs begin.
    pub(crate) fn new(sandbox: Sandbox, zones: Zones, folder: PathBuf) -> Self {
        Self {
            sandbox,
            finder: Arc::new(Finder::default()),
            zones,
            folder,
        }
    }

    /// Where programs begin.
    pub(crate) fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// The zones, to assert once more what the gate has decided.
    pub(crate) fn zones(&self) -> &Zones {
        &self.zones
    }

    /// The absolute path of a program of the fixed search path.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        self.sandbox.programs().get(name).map(PathBuf::from)
    }

    /// The policy of one call: the zones, less what is the server's own or blocked, less every file of
    /// credentials that stands in them now. Start-up files, hooks and configuration of repositories can be read
    /// and not written: they would run later, outside.
    pub(crate) async fn policy(&self, view: View, spec: &ToolSpec) -> Result<Policy, Error> {
        let mut policy = Policy {
            limits: self.limits(spec),
            ..Policy::default()
        };
        if view == View::Nothing {
            return Ok(policy);
        }
        policy.readable.clone_from(&self.zones.readable);
        if view == View::Write {
            policy.writable.clone_from(&self.zones.writable);
        }
        policy.hidden = self
            .zones
            .own
            .iter()
            .chain(&self.zones.blocked)
            .cloned()
            .collect();
        policy.working_folder = WorkingFolder::Folder(self.folder.clone());
        let found = self
            .find(policy.readable.iter().chain(&policy.writable).cloned().collect())
            .await?;
        for path in found {
            if is_protected(&path) {
                policy.protected.push(path);
            } else if !self.zones.is_allowed_sensitive(&path) {
                policy.masked.push(path);
            }
        }
        Ok(policy)
    }

    async fn find(&self, roots: Vec<PathBuf>) -> Result<Vec<PathBuf>, Error> {
        let finder = Arc::clone(&self.finder);
        let look = move || finder.find(&roots, &|below| is_secret(below) || is_protected(below));
        tokio::task::spawn_blocking(look)
            .await
            .map_err(|problem| Error::Lost(problem.to_string()))?
    }

    fn limits(&self, spec: &ToolSpec) -> Limits {
        let limits = self.sandbox.limits();
        Limits {
            timeout_ms: limits.timeout_ms.min(spec.timeout_ms),
            output_bytes: limits.output_bytes.min(spec.output_bytes_max),
            ..limits
        }
    }

    /// When a program that has network is killed, in milliseconds: other machines are slow.
    pub(crate) fn network_timeout_ms(&self, spec: &ToolSpec) -> u64 {
        self.sandbox.network_timeout_ms().min(spec.timeout_ms)
    }

    /// Runs a task; what comes back instead is the result to give.
    pub(crate) async fn run(
        &self,
        task: Task,
        policy: &Policy,
        spec: &ToolSpec,
    ) -> Result<Outcome, ToolResult> {
        match self.sandbox.run(task, policy).await {
            Ok(outcome) if outcome.timed_out() => Err(ToolResult::TimedOut {
                after_ms: policy.limits.timeout_ms,
            }),
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(refused(&error, spec)),
        }
    }
}

/// What stops a call before anything has run.
pub(crate) fn refused(error: &Error, spec: &ToolSpec) -> ToolResult {
    tracing::warn!(tool = %spec.name, %error, "`{}` did not run", spec.name);
    let code = match error {
        Error::Unavailable(_) | Error::Root(_) => FailureCode::PermissionDenied,
        Error::TooManyRules { .. } | Error::TooManyEntries { .. } | Error::TooLong(_) => {
            FailureCode::TooLarge
        }
        Error::NotConfined(_)
        | Error::Folder { .. }
        | Error::Temporary(_)
        | Error::Process(_)
        | Error::Lost(_) => FailureCode::Internal,
    };
    ToolResult::failed(code, format!("nothing was run: {error}."))
}

fn is_secret(path: &std::path::Path) -> bool {
    names_credential(&path.to_string_lossy()).is_some()
}

fn is_protected(path: &std::path::Path) -> bool {
    path.ends_with(".git/hooks")
        || path.ends_with(".git/config")
        // The repository itself is written by every commit; what of it runs later is above.
        || path.file_name().is_some_and(|name| {
            name != ".git" && names_startup_file(&name.to_string_lossy()).is_some()
        })
}

/// What a program said and how it ended, for the model. Success is the exit code 0.
pub(crate) fn said(outcome: &Outcome) -> ToolResult {
    let mut text = String::from_utf8_lossy(&outcome.stdout.bytes).into_owned();
    if !outcome.stderr.bytes.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&String::from_utf8_lossy(&outcome.stderr.bytes));
    }
    if outcome.is_cut() {
        text.push_str("\n[cut: the program said more than is kept]");
    }
    let why = match (outcome.killed_by, outcome.exit) {
        (None, Exit::Code(0)) => return ToolResult::ok(text),
        (Some(bound), _) => format!("it was stopped: {}", bound.in_words()),
        (None, Exit::Code(code)) => format!("it ended with status {code}"),
        (None, Exit::Signal(signal)) => format!("it was ended by signal {signal}"),
    };
    let message = if text.trim().is_empty() {
        format!("{why} and said nothing.")
    } else {
        format!("{why} and said:\n{text}")
    };
    ToolResult::failed(FailureCode::Unsuccessful, message)
}

/// Runs the snippet: no files but its own, no network, and nothing of it stays.
pub(crate) async fn run(walls: &Walls, spec: &ToolSpec, values: &Values<'_>) -> ToolResult {
    let Some(python) = walls.program("python3") else {
        return ToolResult::failed(
            FailureCode::NotFound,
            "there is no python3 on this machine; the operator can install it.",
        );
    };
    let policy = match walls.policy(View::Nothing, spec).await {
        Ok(policy) => policy,
        Err(error) => return refused(&error, spec),
    };
    // Isolated: nothing of the folder or the environment is imported.
    let task = Task::program(
        python,
        ["-I", "-B", "-c", values.text("code").unwrap_or_default()],
    );
    let outcome = match walls.run(task, &policy, spec).await {
        Ok(outcome) => outcome,
        Err(result) => return result,
    };
    let stream = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ended = match (outcome.killed_by, outcome.exit) {
        (Some(bound), _) => format!("stopped: {}", bound.in_words()),
        (None, Exit::Code(code)) => format!("exit code: {code}"),
        (None, Exit::Signal(signal)) => format!("ended by signal {signal}"),
    };
    let cut = if outcome.is_cut() {
        "\n[cut: it said more than is kept]"
    } else {
        ""
    };
    let text = format!(
        "{ended}\nstdout:\n{}\nstderr:\n{}{cut}",
        stream(&outcome.stdout.bytes).trim_end_matches('\n'),
        stream(&outcome.stderr.bytes).trim_end_matches('\n'),
    );
    if outcome.killed_by.is_none() && outcome.exit.is_success() {
        ToolResult::ok(text)
    } else {
        ToolResult::failed(FailureCode::Unsuccessful, text)
    }
}

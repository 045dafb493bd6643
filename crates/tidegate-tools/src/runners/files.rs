//! What the three file modes share: the way from an argument to a place that was judged.

pub(crate) mod list_files;
pub(crate) mod read_text;
pub(crate) mod write_text;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tidegate_core::tool::{FailureCode, ToolCall, ToolResult, ToolSpec};
use tidegate_gate::{Access, Facts, PathFact, PathFault, Zones, floors};
use tidegate_io::files::{FileError, Place, Roots};

use crate::Options;

/// The file root, and what the runner needs to judge a place again.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) roots: Roots,
    pub(crate) zones: Zones,
    pub(crate) options: Options,
}

/// One file call, with everything a blocking thread needs.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) files: Files,
    pub(crate) call: ToolCall,
    pub(crate) spec: Arc<ToolSpec>,
}

impl Job {
    /// Opens what a path leads to and judges the opened thing: the gate judged the path a moment ago, and what
    /// stands there may have changed since.
    pub(crate) fn place(
        &self,
        requested: &str,
        access: Access,
        write_bytes: u64,
    ) -> Result<Place, ToolResult> {
        let opened = self.files.roots.resolve(requested);
        let fact = PathFact {
            argument: "path".to_owned(),
            requested: requested.to_owned(),
            access,
            resolution: opened
                .as_ref()
                .map(|place| place.resolved().clone())
                .map_err(PathFault::clone),
        };
        let facts = Facts {
            paths: vec![fact],
            write_bytes,
            ..Facts::default()
        };
        if let Some(denial) = floors::check(&self.call, &self.spec, &facts, &self.files.zones) {
            return Err(ToolResult::Refused {
                floor: denial.floor.to_owned(),
                reason: denial.reason,
            });
        }
        opened.map_err(|fault| match fault {
            PathFault::Missing => missing(requested),
            PathFault::Malformed(why) => ToolResult::failed(
                FailureCode::InvalidArguments,
                format!("`path` is malformed: {why}."),
            ),
            PathFault::Outside => ToolResult::Refused {
                floor: "containment".to_owned(),
                reason: "the path leads outside the folders that may be used.".to_owned(),
            },
            PathFault::Unreadable(why) => ToolResult::failed(
                FailureCode::PermissionDenied,
                format!("`path` cannot be used: {why}."),
            ),
        })
    }

    /// Does blocking work on a thread for it. Where the call is dropped before the work has begun, or before
    /// its point of no return, nothing is done.
    pub(crate) async fn run(
        self,
        work: impl FnOnce(&Self, &Abandoned) -> ToolResult + Send + 'static,
    ) -> ToolResult {
        let abandoned = Abandoned::default();
        let guard = AbandonOnDrop(abandoned.clone());
        let outcome = tokio::task::spawn_blocking(move || {
            if abandoned.is_set() {
                return ToolResult::Cancelled;
            }
            work(&self, &abandoned)
        })
        .await;
        drop(guard);
        outcome.unwrap_or_else(|error| {
            tracing::error!(%error, "a file tool broke");
            ToolResult::failed(
                FailureCode::Internal,
                "the tool broke; the operator's log says how.",
            )
        })
    }
}

/// Whether nobody waits for the result any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct AbandonOnDrop(Abandoned);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Release);
    }
}

/// A file error as a result.
pub(crate) fn failed(error: &FileError) -> ToolResult {
    match error {
        FileError::NotFound(name) => missing(name),
        FileError::NotAFile(name) => ToolResult::failed(
            error.code(),
            format!("`{name}` is not a file; list_files shows what is in a folder."),
        ),
        FileError::NotText(name) => ToolResult::failed(
            error.code(),
            format!("`{name}` is not a text file, so it cannot be read here."),
        ),
        FileError::TooLarge { name, bytes_max } => ToolResult::failed(
            error.code(),
            format!(
                "`{name}` holds more than {bytes_max} bytes, the most that may be read; ask the user for the \
                 part that matters, or for a smaller file."
            ),
        ),
        FileError::NotAFolder(_) | FileError::Changed(_) | FileError::Denied(_) => {
            ToolResult::failed(error.code(), format!("{error}."))
        }
        FileError::Io { name, problem } => {
            tracing::error!(%problem, "the operating system failed on a file");
            ToolResult::failed(error.code(), format!("`{name}` cannot be used: {problem}."))
        }
    }
}

fn missing(name: &str) -> ToolResult {
    ToolResult::failed(
        FailureCode::NotFound,
        format!("there is no `{name}`; list_files shows which files there are."),
    )
}

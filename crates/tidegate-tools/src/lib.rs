//! What the agent can do: the registry of tools and their runners.
//!
//! [`Tools`] satisfies the [`ToolBox`] port. It takes nothing but an `Authorized<ToolCall>`, so no call reaches
//! a runner that the gate has not let pass; the file runners judge the place they opened once more all the same.
//! A tool is a row of data ([`Tools::open`] reads the rows); a runner is one file a mode. Control tools have
//! rows here and run in the engine, which has the turn they need.

mod arguments;
mod nearest;
mod output;
mod reference;
mod registry;
mod runners;
mod template;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::Clock,
    port::OperatorFiles,
    tool::{FailureCode, ToolCall, ToolMode, ToolResult, ToolSpec},
};
use tidegate_gate::{Authorized, Facts, ToolBox, ToolContext, Zones};
use tidegate_io::{
    files::{RootError, Roots},
    http::OperatorClient,
    operator_files::Disk,
};

use crate::{
    arguments::Values,
    registry::{Registry, Row, Template, example_text},
    runners::files::{Files, Job, list_files},
};

/// The largest tools file an operator may have, in bytes.
const TOOLS_FILE_BYTES_MAX: usize = 1 << 20;

/// What the tools may touch, and how much of it. `[tools]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The folder that the file tools work in; nothing outside it can be read, listed or written.
    pub knowledge_bank: PathBuf,
    /// A tools file of the operator's own, which adds, narrows or removes tools. None by default.
    pub tools_file: Option<PathBuf>,
    /// The folder of the syllabi, below the knowledge bank.
    pub syllabi_folder: String,
    /// The largest file that is read, in bytes. A larger one is refused, not cut.
    pub read_bytes_max: usize,
    /// The largest text that one call may write, in bytes.
    pub write_bytes_max: usize,
    /// The most entries that one listing shows.
    pub list_entries_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            knowledge_bank: PathBuf::from("knowledge-bank"),
            tools_file: None,
            syllabi_folder: "syllabi".to_owned(),
            read_bytes_max: 2 << 20,
            write_bytes_max: 1 << 20,
            list_entries_max: 500,
        }
    }
}

/// Why the tools cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The knowledge bank cannot be opened.
    #[error("the knowledge bank cannot be opened: {0}")]
    KnowledgeBank(#[from] RootError),
    /// The operator's tools file cannot be read.
    #[error("the tools file cannot be read: {0}; mend it, or take `tools_file` out of the configuration")]
    ToolsFile(String),
    /// A line of a tools file is wrong.
    #[error("{file}, line {line}: {problem}")]
    Row {
        /// Which file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong and what to write.
        problem: String,
    },
}

/// The operator's tools.
#[derive(Debug)]
pub struct Tools {
    registry: Registry,
    specs: Arc<[Arc<ToolSpec>]>,
    files: Files,
    clock: Arc<dyn Clock>,
    http: OperatorClient,
}

impl Tools {
    /// Reads the rows and opens the knowledge bank. `zones` are those of the permission gate: the file runners
    /// judge by them again.
    pub fn open(
        options: Options,
        zones: Zones,
        clock: Arc<dyn Clock>,
        http: OperatorClient,
    ) -> Result<Self, Error> {
        let in_file = |file: String| {
            move |fault: registry::Fault| Error::Row {
                file,
                line: fault.line,
                problem: fault.problem,
            }
        };
        let mut registry = Registry::built_in().map_err(in_file("tools.toml (built in)".to_owned()))?;
        if let Some(path) = &options.tools_file {
            let text = Disk
                .read(path, TOOLS_FILE_BYTES_MAX)
                .map_err(|fault| Error::ToolsFile(fault.to_string()))?;
            registry
                .apply(&text)
                .map_err(in_file(path.display().to_string()))?;
        }
        let roots = Roots::open(std::slice::from_ref(&options.knowledge_bank))?;
        Ok(Self {
            specs: registry.specs(),
            registry,
            files: Files {
                roots,
                zones,
                options,
            },
            clock,
            http,
        })
    }

    /// The real path of the knowledge bank.
    pub fn knowledge_bank(&self) -> PathBuf {
        self.files
            .roots
            .paths()
            .next()
            .map_or_else(PathBuf::new, PathBuf::from)
    }

    /// The tools as a Markdown page, from the same rows.
    pub fn reference_markdown(&self) -> String {
        reference::markdown(&self.registry)
    }

    async fn run_row(&self, row: &Row, call: &ToolCall) -> ToolResult {
        let values = match Values::read(&call.arguments, &row.spec) {
            Ok(values) => values,
            Err(problem) => return refused(row, &problem),
        };
        match (row.spec.mode, &row.template) {
            (ToolMode::ReadText, _) => runners::files::read_text::run(self.job(row, call), &values).await,
            (ToolMode::ListFiles, _) => list_files::run(self.job(row, call), &values).await,
            (ToolMode::WriteText, _) => runners::files::write_text::run(self.job(row, call), &values).await,
            (ToolMode::StudyPlan, _) => runners::study_plan::run(self.job(row, call), &values).await,
            (ToolMode::Calculate, _) => runners::calculate::run(&values),
            (ToolMode::CurrentTime, _) => runners::current_time::run(self.clock.as_ref(), &values),
            (ToolMode::Command, Template::Command(template)) => {
                runners::command::run(template, self.knowledge_bank(), &row.spec, &values).await
            }
            (ToolMode::HttpGet | ToolMode::HttpPost, Template::Http(template)) => {
                runners::http::run(template, &self.http, &row.spec, &values).await
            }
            (
                ToolMode::Command
                | ToolMode::HttpGet
                | ToolMode::HttpPost
                | ToolMode::LastOutput
                | ToolMode::Introspect,
                _,
            ) => ToolResult::failed(
                FailureCode::Internal,
                format!("`{}` is not run by the tool box.", row.spec.name),
            ),
        }
    }

    fn job(&self, row: &Row, call: &ToolCall) -> Job {
        Job {
            files: self.files.clone(),
            call: call.clone(),
            spec: Arc::clone(&row.spec),
        }
    }
}

#[async_trait]
impl ToolBox for Tools {
    fn specs(&self) -> Arc<[Arc<ToolSpec>]> {
        Arc::clone(&self.specs)
    }

    fn check(&self, call: &ToolCall, spec: &ToolSpec) -> Result<(), ToolResult> {
        let Some(row) = self.registry.get(&spec.name) else {
            return Err(unknown_tool(&spec.name));
        };
        let outcome = match call.arguments.object() {
            Some(arguments) => row.check(arguments),
            None => Values::read(&call.arguments, &row.spec).map(drop),
        };
        outcome.map_err(|problem| refused(row, &problem))
    }

    async fn facts(&self, call: &ToolCall, spec: &ToolSpec) -> Facts {
        let Some(arguments) = call.arguments.object() else {
            return Facts::default();
        };
        let Ok(values) = Values::from_object(arguments, spec) else {
            return Facts::default();
        };
        let write_bytes = match spec.mode {
            ToolMode::WriteText => values.text("content").map_or(0, str::len),
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::Command
            | ToolMode::HttpGet
            | ToolMode::HttpPost
            | ToolMode::LastOutput
            | ToolMode::Introspect => 0,
        };
        let wanted: Vec<_> = runners::slots(spec.mode)
            .unwrap_or_default()
            .iter()
            .filter_map(|slot| {
                let access = slot.access?;
                let requested = match values.text(slot.name) {
                    None | Some("") if !slot.required => list_files::TOP,
                    requested => requested.unwrap_or_default(),
                };
                Some((slot.name, requested.to_owned(), access))
            })
            .collect();
        if wanted.is_empty() {
            return Facts {
                paths: Vec::new(),
                write_bytes: u64::try_from(write_bytes).unwrap_or(u64::MAX),
            };
        }
        let roots = self.files.roots.clone();
        let fallback = wanted.clone();
        let paths = tokio::task::spawn_blocking(move || {
            wanted
                .iter()
                .map(|(argument, requested, access)| roots.fact(argument, requested, *access))
                .collect::<Vec<_>>()
        })
        .await
        // Where the look-up itself broke, nothing is known, and the gate must be told so.
        .unwrap_or_else(|_broken| fallback.into_iter().map(unreadable).collect());
        Facts {
            paths,
            write_bytes: u64::try_from(write_bytes).unwrap_or(u64::MAX),
        }
    }

    async fn run(&self, call: Authorized<ToolCall>, _context: &ToolContext) -> ToolResult {
        let call = call.into_inner();
        let Some(row) = self.registry.get(&call.name) else {
            return unknown_tool(&call.name);
        };
        let bytes_max = row.spec.output_bytes_max;
        match self.run_row(row, &call).await {
            ToolResult::Ok { text } => ToolResult::Ok {
                text: output::bounded(text, bytes_max),
            },
            ToolResult::Failed { code, message } => ToolResult::Failed {
                code,
                message: output::bounded(message, bytes_max),
            },
            result @ (ToolResult::Refused { .. }
            | ToolResult::NeedsApproval { .. }
            | ToolResult::TimedOut { .. }
            | ToolResult::Cancelled) => result,
        }
    }
}

fn refused(row: &Row, problem: &arguments::Problem) -> ToolResult {
    let example = row.accept.first().map(example_text).unwrap_or_default();
    ToolResult::failed(
        problem.code,
        format!("{} Example of a right call: {example}", problem.message),
    )
}

fn unknown_tool(name: &str) -> ToolResult {
    ToolResult::failed(FailureCode::UnknownTool, format!("there is no tool `{name}`."))
}

fn unreadable(
    (argument, requested, access): (&'static str, String, tidegate_gate::Access),
) -> tidegate_gate::PathFact {
    tidegate_gate::PathFact {
        argument: argument.to_owned(),
        requested,
        access,
        resolution: Err(tidegate_gate::PathFault::Unreadable(
            "the look-up broke".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests;

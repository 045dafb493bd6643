//! What the agent can do: the registry of tools and their runners.
//!
//! [`Tools`] satisfies the [`ToolBox`] port. It takes nothing but an `Authorized<ToolCall>`, so no call reaches
//! a runner that the gate has not let pass; the file runners judge the place they opened once more all the same.
//! A tool is a row of data ([`Tools::open`] reads the rows); a runner is one file a mode. Control tools have
//! rows here and run in the engine, which has the turn they need.

mod arguments;
mod facts;
mod nearest;
mod output;
mod outside;
mod reference;
mod registry;
mod runners;
mod template;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tidegate_core::{
    caller::Mode,
    clock::Clock,
    port::{KnowledgeBase, OperatorFiles},
    tool::{FailureCode, ToolCall, ToolMode, ToolResult, ToolSpec},
};
use tidegate_gate::{Authorized, Facts, ToolBox, ToolContext, Zones};
use tidegate_io::{
    files::{RootError, Roots, Twins, real_path_of},
    guarded::Client,
    operator_files::Disk,
};

use self::outside::Tried;
pub use self::outside::{Isolation, Outside};
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
    outside: Outside,
    tried: Tried,
}

impl Tools {
    /// Reads the rows and opens the knowledge bank. `zones` are those of the permission gate: the file runners
    /// judge by them again.
    pub fn open(
        options: Options,
        zones: Zones,
        clock: Arc<dyn Clock>,
        outside: Outside,
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
        if outside.knowledge.is_none() {
            registry.keep(|mode| !reads_documents(mode));
        }
        let (roots, outside) = open_roots(&options, &zones, outside)?;
        Ok(Self {
            specs: registry.specs(),
            registry,
            files: Files {
                roots,
                zones,
                options,
            },
            clock,
            outside,
            tried: Tried::default(),
        })
    }

    /// The same tools with their descriptions put in other words, for every reader: the operator writes them, and
    /// what `put` takes out of them nobody gets to see.
    #[must_use]
    pub fn describe(mut self, put: impl Fn(&str) -> String) -> Self {
        self.registry.describe(put);
        self.specs = self.registry.specs();
        self
    }

    /// The real path of the knowledge bank.
    pub fn knowledge_bank(&self) -> PathBuf {
        self.files
            .roots
            .paths()
            .next()
            .map_or_else(PathBuf::new, PathBuf::from)
    }

    /// The zones that the file runners judge by.
    pub fn zones(&self) -> &Zones {
        &self.files.zones
    }

    /// The same rows under another policy: other zones, other rules for commands and the network. What was found out
    /// about the sandbox stays.
    pub fn under(&self, zones: Zones, outside: Outside) -> Result<Self, Error> {
        let (roots, outside) = open_roots(&self.files.options, &zones, outside)?;
        Ok(Self {
            registry: self.registry.clone(),
            specs: Arc::clone(&self.specs),
            files: Files {
                roots,
                zones,
                options: self.files.options.clone(),
            },
            clock: Arc::clone(&self.clock),
            outside,
            tried: self.tried.without_walls(),
        })
    }

    /// The indexed documents, where there are any.
    pub fn knowledge(&self) -> Option<Arc<dyn KnowledgeBase>> {
        self.outside.knowledge.clone()
    }

    /// The client of every tool that a model can steer over the network. A policy set on it is in force for all.
    pub fn network(&self) -> &Client {
        &self.outside.network
    }

    /// Tries the sandbox, if that has not been done: the level in force, if any is, and the probe's sentence; `None`
    /// where nothing is run.
    pub async fn sandbox(&self) -> Option<(Option<&'static str>, String)> {
        let sandbox = self.tried.sandbox(&self.outside.isolation).await?;
        let level = sandbox.level().map(tidegate_io::sandbox::Level::name);
        Some((level, sandbox.probe().sentence()))
    }

    /// The tools as a Markdown page, from the same rows.
    pub fn reference_markdown(&self) -> String {
        reference::markdown(&self.registry)
    }

    async fn run_row(&self, row: &Row, call: &ToolCall, context: &ToolContext) -> ToolResult {
        let values = match Values::read(&call.arguments, &row.spec) {
            Ok(values) => values,
            Err(problem) => return refused(row, &problem),
        };
        match (row.spec.mode, &row.template) {
            (ToolMode::ReadText, _) => runners::files::read_text::run(self.job(row, call), &values).await,
            (ToolMode::ListFiles, _) => list_files::run(self.job(row, call), &values).await,
            (ToolMode::WriteText, _) => runners::files::write_text::run(self.job(row, call), &values).await,
            (ToolMode::StudyPlan, _) => {
                runners::study_plan::run(self.job(row, call), &values, &context.learner).await
            }
            (ToolMode::SearchKnowledge | ToolMode::ReadDocument | ToolMode::ListDocuments, _) => {
                self.run_documents(row, &values).await
            }
            (ToolMode::Calculate, _) => runners::calculate::run(&values),
            (ToolMode::CurrentTime, _) => runners::current_time::run(self.clock.as_ref(), &values),
            (ToolMode::Command, Template::Command(template)) => {
                runners::command::run(template, self.knowledge_bank(), &row.spec, &values).await
            }
            (ToolMode::HttpGet | ToolMode::HttpPost, Template::Http(template)) => {
                runners::http::run(template, &self.outside.network, &row.spec, &values).await
            }
            (ToolMode::PageTitle, _) => {
                runners::page_title::run(&self.outside.network, &row.spec, &values).await
            }
            (
                ToolMode::Shell
                | ToolMode::Sandbox
                | ToolMode::GitRead
                | ToolMode::GitClone
                | ToolMode::GitCommit
                | ToolMode::GitPush,
                _,
            ) => Box::pin(self.run_program(row, &values)).await,
            (
                ToolMode::Command
                | ToolMode::HttpGet
                | ToolMode::HttpPost
                | ToolMode::Mcp
                | ToolMode::SearchTools
                | ToolMode::LastOutput
                | ToolMode::Introspect,
                _,
            ) => not_ours(&row.spec),
        }
    }

    /// The tools over the indexed documents.
    async fn run_documents(&self, row: &Row, values: &Values<'_>) -> ToolResult {
        let Some(base) = self.outside.knowledge.as_deref() else {
            return not_ours(&row.spec);
        };
        match row.spec.mode {
            ToolMode::SearchKnowledge => runners::knowledge::search(base, values).await,
            ToolMode::ReadDocument => runners::knowledge::read(base, &row.spec, values).await,
            ToolMode::ListDocuments => runners::knowledge::list(base, values).await,
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::WriteText
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::Command
            | ToolMode::HttpGet
            | ToolMode::HttpPost
            | ToolMode::PageTitle
            | ToolMode::Shell
            | ToolMode::Sandbox
            | ToolMode::GitRead
            | ToolMode::GitClone
            | ToolMode::GitCommit
            | ToolMode::GitPush
            | ToolMode::Mcp
            | ToolMode::SearchTools
            | ToolMode::LastOutput
            | ToolMode::Introspect => not_ours(&row.spec),
        }
    }

    /// The tools that start programs.
    async fn run_program(&self, row: &Row, values: &Values<'_>) -> ToolResult {
        let Some(walls) = self.tried.walls(&self.outside, &self.files.zones).await else {
            return ToolResult::failed(
                FailureCode::PermissionDenied,
                "programs cannot be run here; the operator can see why with `tidegate doctor`.",
            );
        };
        let (roots, spec, network) = (&self.files.roots, &row.spec, &self.outside.network);
        match spec.mode {
            ToolMode::Shell => {
                let line = values.text("command").unwrap_or_default();
                // The same function of the same text that the gate has judged.
                let analysis = self.outside.shell.analyse(line, &self.outside.place);
                runners::shell::run(walls, &analysis, spec).await
            }
            ToolMode::Sandbox => runners::sandbox::run(walls, spec, values).await,
            ToolMode::GitRead => runners::git::read(walls, roots, spec, values).await,
            ToolMode::GitClone => runners::git::clone(walls, roots, network, spec, values).await,
            ToolMode::GitCommit => runners::git::commit(walls, roots, spec, values).await,
            ToolMode::GitPush => runners::git::push(walls, roots, network, spec, values).await,
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::WriteText
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::SearchKnowledge
            | ToolMode::ReadDocument
            | ToolMode::ListDocuments
            | ToolMode::Command
            | ToolMode::HttpGet
            | ToolMode::HttpPost
            | ToolMode::PageTitle
            | ToolMode::Mcp
            | ToolMode::SearchTools
            | ToolMode::LastOutput
            | ToolMode::Introspect => not_ours(spec),
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

    async fn facts(&self, call: &ToolCall, spec: &ToolSpec, mode: Mode) -> Facts {
        self.resolve(call, spec, mode).await
    }

    async fn run(&self, call: Authorized<ToolCall>, context: &ToolContext) -> ToolResult {
        let call = call.into_inner();
        let Some(row) = self.registry.get(&call.name) else {
            return unknown_tool(&call.name);
        };
        let bytes_max = row.spec.output_bytes_max;
        match self.run_row(row, &call, context).await {
            ToolResult::Ok { text, citations } => ToolResult::Ok {
                text: output::bounded(text, bytes_max),
                citations,
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

/// Whether a tool of this mode works on the indexed documents.
fn reads_documents(mode: ToolMode) -> bool {
    matches!(
        mode,
        ToolMode::SearchKnowledge | ToolMode::ReadDocument | ToolMode::ListDocuments
    )
}

/// Opens the folders of the zones, and lets nobody into a guarded file by another name.
fn open_roots(options: &Options, zones: &Zones, outside: Outside) -> Result<(Roots, Outside), Error> {
    // A zone need not exist yet; what is not there at the start is opened at the next one.
    let bank = real_path_of(&options.knowledge_bank);
    let others = zones
        .readable
        .iter()
        .filter(|folder| **folder != bank && folder.is_dir());
    let folders: Vec<PathBuf> = std::iter::once(&options.knowledge_bank)
        .chain(others)
        .cloned()
        .collect();
    let twins = Arc::new(Twins::new(zones.own.clone(), zones.readable.clone()));
    let roots = Roots::open(&folders)?.guarding(Arc::clone(&twins));
    let outside = Outside {
        view: outside.view.guarding(twins),
        ..outside
    };
    Ok((roots, outside))
}

fn refused(row: &Row, problem: &arguments::Problem) -> ToolResult {
    let example = row.accept.first().map(example_text).unwrap_or_default();
    ToolResult::failed(
        problem.code,
        format!("{} Example of a right call: {example}", problem.message),
    )
}

fn not_ours(spec: &ToolSpec) -> ToolResult {
    ToolResult::failed(
        FailureCode::Internal,
        format!("`{}` is not run by the tool box.", spec.name),
    )
}

fn unknown_tool(name: &str) -> ToolResult {
    ToolResult::failed(FailureCode::UnknownTool, format!("there is no tool `{name}`."))
}

#[cfg(test)]
mod tests;

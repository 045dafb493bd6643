//! The runners: one file a mode. A runner gets arguments that passed its row and a call that passed the gate.

pub(crate) mod calculate;
pub(crate) mod command;
pub(crate) mod current_time;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod http;
pub(crate) mod knowledge;
pub(crate) mod page_title;
pub(crate) mod sandbox;
pub(crate) mod shell;
pub(crate) mod study_plan;

use tidegate_core::tool::{ParameterType, ToolMode};
use tidegate_gate::Access;

/// A parameter that a mode's runner reads by name.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: &'static str,
    pub(crate) kind: ParameterType,
    pub(crate) required: bool,
    /// What the call wants of the path, where the parameter is one.
    pub(crate) access: Option<Access>,
}

impl Slot {
    const fn needed(name: &'static str, kind: ParameterType) -> Self {
        Self {
            name,
            kind,
            required: true,
            access: None,
        }
    }

    const fn optional(name: &'static str, kind: ParameterType) -> Self {
        Self {
            name,
            kind,
            required: false,
            access: None,
        }
    }

    /// The folder of a repository.
    const fn folder(required: bool, access: Access) -> Self {
        Self {
            name: "folder",
            kind: ParameterType::String,
            required,
            access: Some(access),
        }
    }

    const fn path(required: bool, access: Access) -> Self {
        Self {
            name: "path",
            kind: ParameterType::String,
            required,
            access: Some(access),
        }
    }
}

const SEARCH: &[Slot] = &[
    Slot::needed("query", ParameterType::String),
    Slot::optional("k", ParameterType::Integer),
    Slot::optional("path", ParameterType::String),
    Slot::optional("format", ParameterType::String),
    Slot::optional("authority_min", ParameterType::String),
];
const DOCUMENT: &[Slot] = &[
    Slot::optional("citation", ParameterType::String),
    Slot::optional("path", ParameterType::String),
    Slot::optional("page", ParameterType::Integer),
    Slot::optional("part", ParameterType::Integer),
];
const DOCUMENTS: &[Slot] = &[
    Slot::optional("path", ParameterType::String),
    Slot::optional("format", ParameterType::String),
    Slot::optional("authority_min", ParameterType::String),
    Slot::optional("after", ParameterType::String),
];

/// The parameters that a row of this mode may have; `None` where its template decides.
pub(crate) fn slots(mode: ToolMode) -> Option<&'static [Slot]> {
    use ParameterType::{Boolean, Integer, String, StringList};
    const READ: &[Slot] = &[
        Slot::path(true, Access::Read),
        Slot::optional("start_line", Integer),
        Slot::optional("lines_max", Integer),
    ];
    const LIST: &[Slot] = &[Slot::path(false, Access::List), Slot::optional("pattern", String)];
    const WRITE: &[Slot] = &[Slot::path(true, Access::Write), Slot::needed("content", String)];
    const CALCULATE: &[Slot] = &[Slot::needed("expression", String)];
    const TIME: &[Slot] = &[Slot::optional("time_zone", String)];
    const PLAN: &[Slot] = &[
        Slot::optional("subject", String),
        Slot::optional("level", String),
        Slot::optional("weeks", Integer),
        Slot::optional("knowledge_gaps", StringList),
    ];
    const LAST: &[Slot] = &[
        Slot::optional("ref", String),
        Slot::optional("offset", Integer),
        Slot::optional("length", Integer),
    ];
    const FIND: &[Slot] = &[Slot::needed("query", String), Slot::optional("count", Integer)];
    const URL: &[Slot] = &[Slot::needed("url", String)];
    const COMMAND: &[Slot] = &[Slot::needed("command", String)];
    const SNIPPET: &[Slot] = &[Slot::needed("code", String)];
    const GIT_READ: &[Slot] = &[
        Slot::folder(false, Access::List),
        Slot::optional("path", String),
        Slot::optional("revision", String),
        Slot::optional("staged", Boolean),
        Slot::optional("count", Integer),
    ];
    const CLONE: &[Slot] = &[Slot::needed("url", String), Slot::folder(true, Access::Write)];
    const COMMIT: &[Slot] = &[
        Slot::folder(false, Access::Write),
        Slot::needed("message", String),
        Slot::optional("paths", StringList),
    ];
    const PUSH: &[Slot] = &[
        Slot::folder(false, Access::List),
        Slot::needed("remote", String),
        Slot::needed("branch", String),
    ];
    match mode {
        ToolMode::PageTitle => Some(URL),
        ToolMode::Shell => Some(COMMAND),
        ToolMode::Sandbox => Some(SNIPPET),
        ToolMode::GitRead => Some(GIT_READ),
        ToolMode::GitClone => Some(CLONE),
        ToolMode::GitCommit => Some(COMMIT),
        ToolMode::GitPush => Some(PUSH),
        ToolMode::ReadText => Some(READ),
        ToolMode::ListFiles => Some(LIST),
        ToolMode::WriteText => Some(WRITE),
        ToolMode::Calculate => Some(CALCULATE),
        ToolMode::CurrentTime => Some(TIME),
        ToolMode::StudyPlan => Some(PLAN),
        ToolMode::SearchKnowledge => Some(SEARCH),
        ToolMode::ReadDocument => Some(DOCUMENT),
        ToolMode::ListDocuments => Some(DOCUMENTS),
        ToolMode::SearchTools => Some(FIND),
        ToolMode::LastOutput => Some(LAST),
        ToolMode::Introspect => Some(&[]),
        // The arguments of these are their rows' own; those of the last come from elsewhere and have no row.
        ToolMode::Command | ToolMode::HttpGet | ToolMode::HttpPost | ToolMode::Mcp => None,
    }
}

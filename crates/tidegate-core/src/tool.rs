//! Tools: what they are, what the model asks of them, and what comes back.
//!
//! A result is data until the moment it is written into a message for the model; code never searches a
//! result's text to find out what happened.

mod result;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::id::CallId;

pub use result::{FailureCode, ToolResult};

/// A call the model issued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id, unique within the run.
    pub id: CallId,
    /// The tool's name, aliases already resolved.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// Arguments as the model wrote them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A JSON object.
    Object(Map<String, Value>),
    /// Text that is no JSON object; the call is answered with a correction, never run.
    Unparsable {
        /// The first part of what was written.
        raw: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Arguments {
    /// The arguments as JSON text: what was written, where it could not be parsed.
    pub fn to_json(&self) -> String {
        match self {
            Self::Object(map) => Value::Object(map.clone()).to_string(),
            Self::Unparsable { raw, .. } => raw.clone(),
        }
    }

    /// The object, if it is one.
    pub fn object(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Object(map) => Some(map),
            Self::Unparsable { .. } => None,
        }
    }
}

/// What running a tool does to the world. Unknown means [`Effect::External`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing changes: such calls run together.
    Read,
    /// A file here changes.
    Write,
    /// Bytes leave this machine.
    Network,
    /// A program runs, or something happens whose effect cannot be told.
    External,
}

impl Effect {
    /// Whether calls of this effect may run beside each other. All others are barriers in call order.
    pub fn is_read_only(self) -> bool {
        match self {
            Self::Read => true,
            Self::Write | Self::Network | Self::External => false,
        }
    }

    /// The effect's name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Network => "network",
            Self::External => "external",
        }
    }
}

/// How a tool is run, and by that which gate it passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMode {
    /// Read a text file inside the zones.
    ReadText,
    /// List files inside the zones.
    ListFiles,
    /// Write a file inside the zones.
    WriteText,
    /// Exact, bounded arithmetic.
    Calculate,
    /// The present date and time.
    CurrentTime,
    /// A study plan from the syllabi of the knowledge bank.
    StudyPlan,
    /// A search in the indexed documents.
    SearchKnowledge,
    /// The text of an indexed document.
    ReadDocument,
    /// The indexed documents.
    ListDocuments,
    /// A fixed program, arguments as argv elements.
    Command,
    /// A GET of a templated URL.
    HttpGet,
    /// A POST to a templated URL.
    HttpPost,
    /// The title of a web page.
    PageTitle,
    /// A shell command. What it does depends on the command: the gate analyses each.
    Shell,
    /// A Python snippet under OS isolation, without network.
    Sandbox,
    /// A look at a git repository.
    GitRead,
    /// A copy of a remote git repository, made in a new folder.
    GitClone,
    /// A commit in a git repository.
    GitCommit,
    /// A push to a remote. Always asks, in every mode.
    GitPush,
    /// The full text of an earlier result of this turn. A control tool: the engine answers it.
    LastOutput,
    /// The capability report. A control tool: the engine answers it.
    Introspect,
}

impl ToolMode {
    /// Every mode.
    pub const ALL: [Self; 21] = [
        Self::ReadText,
        Self::ListFiles,
        Self::WriteText,
        Self::Calculate,
        Self::CurrentTime,
        Self::StudyPlan,
        Self::SearchKnowledge,
        Self::ReadDocument,
        Self::ListDocuments,
        Self::Command,
        Self::HttpGet,
        Self::HttpPost,
        Self::PageTitle,
        Self::Shell,
        Self::Sandbox,
        Self::GitRead,
        Self::GitClone,
        Self::GitCommit,
        Self::GitPush,
        Self::LastOutput,
        Self::Introspect,
    ];

    /// The least a tool of this mode does; a row may declare more, never less.
    pub fn effect(self) -> Effect {
        match self {
            Self::ReadText
            | Self::ListFiles
            | Self::Calculate
            | Self::CurrentTime
            | Self::StudyPlan
            | Self::SearchKnowledge
            | Self::ReadDocument
            | Self::ListDocuments
            | Self::GitRead
            | Self::LastOutput
            | Self::Introspect => Effect::Read,
            Self::WriteText | Self::GitCommit => Effect::Write,
            Self::HttpGet | Self::HttpPost | Self::PageTitle | Self::GitClone | Self::GitPush => {
                Effect::Network
            }
            Self::Command | Self::Shell | Self::Sandbox => Effect::External,
        }
    }

    /// Control tools need the turn itself and run in the engine; all others run in the tool box.
    pub fn is_control(self) -> bool {
        match self {
            Self::LastOutput | Self::Introspect => true,
            Self::ReadText
            | Self::ListFiles
            | Self::WriteText
            | Self::Calculate
            | Self::CurrentTime
            | Self::StudyPlan
            | Self::SearchKnowledge
            | Self::ReadDocument
            | Self::ListDocuments
            | Self::Command
            | Self::HttpGet
            | Self::HttpPost
            | Self::PageTitle
            | Self::Shell
            | Self::Sandbox
            | Self::GitRead
            | Self::GitClone
            | Self::GitCommit
            | Self::GitPush => false,
        }
    }

    /// The mode's name in `tools.toml`, logs and the capability report.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadText => "read_text",
            Self::ListFiles => "list_files",
            Self::WriteText => "write_text",
            Self::Calculate => "calculate",
            Self::CurrentTime => "current_time",
            Self::StudyPlan => "study_plan",
            Self::SearchKnowledge => "search_knowledge",
            Self::ReadDocument => "read_document",
            Self::ListDocuments => "list_documents",
            Self::Command => "command",
            Self::HttpGet => "http_get",
            Self::HttpPost => "http_post",
            Self::PageTitle => "page_title",
            Self::Shell => "shell",
            Self::Sandbox => "sandbox",
            Self::GitRead => "git_read",
            Self::GitClone => "git_clone",
            Self::GitCommit => "git_commit",
            Self::GitPush => "git_push",
            Self::LastOutput => "last_output",
            Self::Introspect => "introspect",
        }
    }
}

/// The JSON type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A list of texts.
    StringList,
}

/// One argument of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// What it is for, in words for the model.
    pub description: String,
    /// Whether a call without it is wrong.
    #[serde(default)]
    pub required: bool,
    /// The only values allowed, for texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// The smallest number allowed; of a list, the fewest items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The largest number allowed; of a list, the most items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// The longest text allowed, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars_max: Option<usize>,
    /// Whether it may hold what somebody wrote. Logs keep the length and a hash of it, so that erasing a person need not
    /// touch them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

/// One row of the registry: everything a model, a person, the gate and the runner need to know of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name, `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// What it does, in words for the model.
    pub description: String,
    /// How it is run and gated.
    pub mode: ToolMode,
    /// What it does to the world.
    pub effect: Effect,
    /// Its arguments, in order.
    pub parameters: Vec<Parameter>,
    /// How long one call may take.
    pub timeout_ms: u64,
    /// How many bytes of output one call may yield.
    pub output_bytes_max: usize,
}

impl ToolSpec {
    /// The JSON Schema of the tool's arguments, as the model API takes it.
    pub fn parameters_schema(&self) -> Value {
        let mut properties = Map::new();
        for parameter in &self.parameters {
            properties.insert(parameter.name.clone(), parameter.schema());
        }
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| parameter.name.as_str())
            .collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

impl Parameter {
    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            ParameterType::String => json!({"type": "string"}),
            ParameterType::Integer => json!({"type": "integer"}),
            ParameterType::Number => json!({"type": "number"}),
            ParameterType::Boolean => json!({"type": "boolean"}),
            ParameterType::StringList => json!({"type": "array", "items": {"type": "string"}}),
        };
        // Of a list, the bounds on numbers count its items, and those on texts hold for each of them.
        let is_list = self.kind == ParameterType::StringList;
        let (min_key, max_key) = if is_list {
            ("minItems", "maxItems")
        } else {
            ("minimum", "maximum")
        };
        if let Some(object) = schema.as_object_mut() {
            object.insert("description".into(), self.description.clone().into());
            if let Some(min) = self.min {
                object.insert(min_key.into(), min.into());
            }
            if let Some(max) = self.max {
                object.insert(max_key.into(), max.into());
            }
        }
        let text = if is_list {
            schema.get_mut("items")
        } else {
            Some(&mut schema)
        };
        if let Some(object) = text.and_then(Value::as_object_mut) {
            if !self.one_of.is_empty() {
                object.insert("enum".into(), json!(self.one_of));
            }
            if let Some(chars_max) = self.chars_max {
                object.insert("maxLength".into(), chars_max.into());
            }
        }
        schema
    }
}

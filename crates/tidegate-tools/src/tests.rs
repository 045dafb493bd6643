//! The tool box as the engine uses it: check, facts, the real gate, run. Real folders, programs and sockets.

mod files;
mod outside;

use std::{collections::BTreeSet, path::Path, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_core::{
    caller::{Attendance, Caller, Mode, Scope},
    clock::Clock,
    id::{CallId, KeyId, RunId, UserId},
    tool::{Arguments, FailureCode, ToolCall, ToolMode, ToolResult},
};
use tidegate_gate::{
    Authorized, Decision, Learner, PermissionGate, Policy, Session, ToolBox, ToolContext, Zones,
    guards::{address, outbound},
    shell,
};
use tidegate_io::{
    files::View,
    guarded::{self, Client},
};

use crate::{Error, Isolation, Options, Outside, Tools, runners};

#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now(&self) -> Timestamp {
        "2026-03-02T09:00:00Z".parse().unwrap()
    }
}

/// A knowledge bank in a temporary folder, the tools over it and the gate before them.
struct Desk {
    bank: TempDir,
    tools: Tools,
    gate: PermissionGate,
    context: ToolContext,
}

impl Desk {
    fn new() -> Self {
        Self::with(None, |_| {})
    }

    fn with(tools_file: Option<&str>, adjust: impl FnOnce(&mut Options)) -> Self {
        Self::open(tools_file, adjust).unwrap()
    }

    fn open(tools_file: Option<&str>, adjust: impl FnOnce(&mut Options)) -> Result<Self, Error> {
        let bank = tempfile::tempdir().unwrap();
        let real = bank.path().canonicalize().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let mut options = Options {
            knowledge_bank: real.clone(),
            ..Options::default()
        };
        if let Some(text) = tools_file {
            let path = elsewhere.path().join("tools.toml");
            put(&path, text);
            options.tools_file = Some(path);
        }
        adjust(&mut options);
        let zones = Zones {
            readable: vec![real.clone()],
            writable: vec![real.clone()],
            ..Zones::default()
        };
        let policy = guarded::Policy {
            address: address::Policy::default(),
            secrets: outbound::Secrets::none().unwrap(),
        };
        let outside = Outside {
            network: Client::new(guarded::Options::default(), policy).unwrap(),
            shell: Arc::new(shell::Policy::compile(&shell::Options::default()).unwrap()),
            place: shell::Place::new(real.to_string_lossy(), "/tmp"),
            view: View::open(std::path::Path::new("/")).unwrap(),
            knowledge: None,
            isolation: Isolation::Judged,
        };
        let key_id = KeyId::new("k1");
        Ok(Self {
            bank,
            tools: Tools::open(options, zones.clone(), Arc::new(Frozen), outside)?,
            gate: PermissionGate::new(Policy {
                zones,
                ..Policy::default()
            }),
            context: ToolContext {
                run_id: RunId::new("r1"),
                learner: Learner::default(),
                host: Arc::new(tidegate_gate::NoHost),
                caller: Arc::new(Caller {
                    user: UserId::of(&key_id, None).unwrap(),
                    key_id,
                    scopes: BTreeSet::from([Scope::Tools]),
                    mode_ceiling: Mode::FullAuto,
                    models: None,
                    tools: None,
                    tokens_per_day: None,
                }),
            },
        })
    }

    fn put(&self, name: &str, text: &str) {
        put(&self.bank.path().join(name), text);
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.bank.path().join(name)).unwrap()
    }

    /// A call's whole way to the gate: the check, the facts, the decision.
    async fn decide(&self, name: &str, arguments: Value) -> Result<Authorized<ToolCall>, ToolResult> {
        let specs = self.tools.specs();
        let spec = specs.iter().find(|spec| spec.name == name).unwrap();
        let call = ToolCall {
            id: CallId::new("c1"),
            name: name.to_owned(),
            arguments: match arguments {
                Value::Object(map) => Arguments::Object(map),
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)) => Arguments::Unparsable {
                    raw: other.to_string(),
                    problem: "it is no object".to_owned(),
                },
            },
        };
        self.tools.check(&call, spec)?;
        let facts = self.tools.facts(&call, spec, Mode::FullAuto).await;
        let session = Session {
            caller: Arc::clone(&self.context.caller),
            mode: Mode::FullAuto,
            conversation: String::new(),
            attendance: Attendance::Attended,
        };
        match self.gate.decide(call, spec, &facts, &session, None) {
            Decision::Allow(call) => Ok(call),
            Decision::Deny(denial) => Err(ToolResult::Refused {
                floor: denial.floor.to_owned(),
                reason: denial.reason,
            }),
            Decision::Ask(question) => Err(ToolResult::NeedsApproval {
                reason: question.reason,
                approval_id: None,
            }),
        }
    }

    async fn authorized(&self, name: &str, arguments: Value) -> Authorized<ToolCall> {
        self.decide(name, arguments).await.unwrap()
    }

    /// The whole way of a call.
    async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        match self.decide(name, arguments).await {
            Ok(call) => self.tools.run(call, &self.context).await,
            Err(result) => result,
        }
    }

    async fn said(&self, name: &str, arguments: Value) -> String {
        self.call(name, arguments).await.to_model_text()
    }
}

#[expect(clippy::disallowed_methods, reason = "the test lays out its own folder")]
fn put(path: &Path, text: &str) {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).unwrap();
    }
    std::fs::write(path, text).unwrap();
}

fn code(result: &ToolResult) -> Option<FailureCode> {
    match result {
        ToolResult::Failed { code, .. } => Some(*code),
        ToolResult::Ok { .. }
        | ToolResult::Refused { .. }
        | ToolResult::NeedsApproval { .. }
        | ToolResult::TimedOut { .. }
        | ToolResult::Cancelled => None,
    }
}

/// Names of rows, of what the model is offered, of the page and of what has someone to answer it are one set.
#[tokio::test]
async fn every_row_is_offered_documented_and_answered() {
    let desk = Desk::new();
    let specs = desk.tools.specs();
    let page = desk.tools.reference_markdown();
    let documented: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'))
        .collect();
    let offered: BTreeSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(documented, offered);
    let modes: BTreeSet<&str> = specs.iter().map(|spec| spec.mode.name()).collect();
    let native: BTreeSet<&str> = ToolMode::ALL
        .iter()
        .filter(|mode| runners::slots(**mode).is_some() && !super::reads_documents(**mode))
        .map(|mode| mode.name())
        .collect();
    assert_eq!(modes, native);
    for row in desk.tools.registry.rows() {
        let example = Value::Object(row.accept[0].clone());
        let result = desk.call(&row.spec.name, example).await;
        let is_internal = code(&result) == Some(FailureCode::Internal);
        assert_eq!(
            is_internal,
            row.spec.mode.is_control(),
            "{}: {result:?}",
            row.spec.name
        );
    }
}

#[tokio::test]
async fn malformed_calls_are_answered_with_a_right_one() {
    let desk = Desk::new();
    for (name, arguments, wanted, fragment) in [
        (
            "read_text",
            serde_json::json!({}),
            FailureCode::MissingArgument,
            "`path` is missing",
        ),
        (
            "read_text",
            serde_json::json!({"path": []}),
            FailureCode::InvalidArguments,
            "`path` must be a text",
        ),
        (
            "read_text",
            serde_json::json!("x"),
            FailureCode::InvalidArguments,
            "not a JSON object",
        ),
        (
            "read_text",
            serde_json::json!({"pth": "a"}),
            FailureCode::InvalidArguments,
            "did you mean `path`",
        ),
        (
            "calculate",
            serde_json::json!({"expression": "1 +"}),
            FailureCode::InvalidArguments,
            "ends too early",
        ),
        (
            "get_study_plan",
            serde_json::json!({"subject": "x", "weeks": 0}),
            FailureCode::InvalidArguments,
            "from 1 to 104",
        ),
    ] {
        let result = desk.call(name, arguments.clone()).await;
        assert_eq!(code(&result), Some(wanted), "{name} {arguments}");
        assert!(result.to_model_text().contains(fragment), "{result:?}");
        assert!(result.to_model_text().contains("{\""), "no example: {result:?}");
    }
}

#[tokio::test]
async fn calculates_and_tells_the_time() {
    let desk = Desk::new();
    assert_eq!(
        desk.said("calculate", serde_json::json!({"expression": "0.1 + 0.2"}))
            .await,
        "0.3"
    );
    let time = desk.said("current_time", serde_json::json!({})).await;
    assert!(
        time.starts_with("Monday, 2 March 2026, 09:00:00 (UTC, UTC+00:00)"),
        "{time}"
    );
}

#[tokio::test]
async fn plans_come_from_the_syllabi_of_the_bank() {
    let desk = Desk::new();
    let missing = desk
        .call("get_study_plan", serde_json::json!({"subject": "Art"}))
        .await;
    assert_eq!(code(&missing), Some(FailureCode::NotFound));
    desk.put(
        "syllabi/art.md",
        "---\nsubject: Art\nlevel: Grade 5\nweeks: 2\n---\n## Week 1: Colour\n- Warm colours\n## Week 2: Line\n- Contour\n",
    );
    desk.put("syllabi/notes.txt", "no syllabus");
    let plan = desk
        .said("get_study_plan", serde_json::json!({"subject": "art", "level": 5, "weeks": "2", "knowledge_gaps": "contours; colour"}))
        .await;
    assert!(plan.contains("[syllabi/art.md › Week 2: Line]"), "{plan}");
    assert!(
        plan.contains("Early start for a gap: Line") && plan.contains("Extra time for a gap: Colour"),
        "{plan}"
    );
}

#[test]
fn a_broken_tools_file_stops_the_start() {
    let wrong = Desk::open(Some("\n[[tool]]\nnaem = \"x\""), |_| {});
    let text = wrong.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        text.ends_with("tools.toml, line 3: `naem` is no key of a tool; did you mean `name`?"),
        "{text}"
    );
    let gone = Desk::open(None, |options| {
        options.tools_file = Some("/nowhere/tools.toml".into());
    });
    assert!(matches!(gone.err(), Some(Error::ToolsFile(_))));
    let no_bank = Desk::open(None, |options| options.knowledge_bank = "/nowhere/at/all".into());
    assert!(matches!(no_bank.err(), Some(Error::KnowledgeBank(_))));
}

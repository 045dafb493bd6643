//! The way of a tool call without a daemon: the tool box says what the call means, the permission gate decides.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use tidegate_core::approval::{Approval, ApprovalBinding, ApprovalState};
use tidegate_core::caller::{Attendance, Caller, Mode, Scope};
use tidegate_core::clock::{Clock, Timestamp};
use tidegate_core::id::{ApprovalId, CallId, KeyId, RunId, UserId};
use tidegate_core::tool::{Arguments, ToolCall, ToolResult, ToolSpec};
use tidegate_gate::guards::{address, outbound};
use tidegate_gate::{
    Authorized, Decision, Facts, Grant, PermissionGate, Policy, Session, ToolBox, ToolContext, Zones, shell,
};
use tidegate_io::files::View;
use tidegate_io::guarded::{self, Client};
use tidegate_tools::{Isolation, Options, Outside, Tools};
use tokio::runtime::{Builder, Runtime};

use super::case::{Case, Outcome};

/// The configuration of the gate that every harness over a desk understands.
pub(super) const CONFIG: [&str; 16] = [
    "allow_commands",
    "allowed_domains",
    "allowed_paths",
    "allowed_sensitive_files",
    "blocked_domains",
    "blocked_paths",
    "deny_commands",
    "grant",
    "max_command_chars",
    "mode",
    "no_prompt_paths",
    "own_paths",
    "prompt_paths",
    "read_paths",
    "ssrf_allow_hosts",
    "unattended",
];

/// When everything here happens.
#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// A tool box and the gate before it.
#[derive(Debug)]
pub(super) struct Desk {
    tools: Tools,
    gate: PermissionGate,
    caller: Arc<Caller>,
    runtime: Runtime,
}

/// What the desk stands in.
pub(super) struct Surroundings {
    /// The folder that the file tools work in.
    pub(super) bank: PathBuf,
    /// The zones of the line's configuration.
    pub(super) zones: Zones,
    /// Where commands would run.
    pub(super) place: shell::Place,
    /// The file system that files of commands are looked up in.
    pub(super) view: View,
}

/// What the gate made of a call.
pub(super) struct Ruling {
    pub(super) outcome: Outcome,
    pub(super) by: String,
    pub(super) authorized: Option<Authorized<ToolCall>>,
    /// From the call to the answer, a grant's second look aside.
    pub(super) took: Duration,
}

impl Desk {
    pub(super) fn new(case: &Case, around: Surroundings) -> Result<Self> {
        let network = address::Policy::compile(&address::Options {
            ssrf_allow_hosts: case.list("ssrf_allow_hosts"),
            ssrf_allow_private: case.flag("ssrf_allow_private"),
            allowed_domains: case.list("allowed_domains"),
            blocked_domains: case.list("blocked_domains"),
            own_listeners: Vec::new(),
        })?;
        let client_policy = guarded::Policy {
            address: network.clone(),
            secrets: outbound::Secrets::none()?,
        };
        let max_command_chars = case.config.get("max_command_chars").and_then(Value::as_u64);
        let shell = shell::Policy::compile(&shell::Options {
            allow_commands: case.list("allow_commands"),
            deny_commands: case.list("deny_commands"),
            max_command_chars: max_command_chars
                .and_then(|chars| usize::try_from(chars).ok())
                .unwrap_or(shell::DEFAULT_MAX_COMMAND_CHARS),
            ..shell::Options::default()
        })?;
        let outside = Outside {
            network: Client::new(guarded::Options::default(), client_policy)?,
            shell: Arc::new(shell),
            place: around.place,
            view: around.view,
            knowledge: None,
            isolation: Isolation::Judged,
        };
        let options = Options {
            knowledge_bank: around.bank,
            ..Options::default()
        };
        let tools = Tools::open(options, around.zones.clone(), Arc::new(Frozen), outside)?;
        let policy = Policy {
            zones: around.zones,
            network,
            digest: "corpus".to_owned(),
            ..Policy::default()
        };
        Ok(Self {
            tools,
            gate: PermissionGate::new(policy),
            caller: Arc::new(caller()?),
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// The row of a tool.
    pub(super) fn spec(&self, tool: &str) -> Result<Arc<ToolSpec>> {
        let specs = self.tools.specs();
        let found = specs.iter().find(|spec| spec.name == tool).cloned();
        found.with_context(|| format!("there is no tool `{tool}`"))
    }

    /// What the call means in the world.
    pub(super) fn facts(&self, call: &ToolCall, spec: &ToolSpec) -> Facts {
        self.runtime
            .block_on(self.tools.facts(call, spec, Mode::ReadOnly))
    }

    /// Decides a call as the engine does: facts first, then the gate, and with a grant both again.
    pub(super) fn rule(&self, case: &Case, call: &ToolCall, spec: &ToolSpec) -> Ruling {
        let begin = Instant::now();
        let facts = self.facts(call, spec);
        self.decide(case, call, spec, &facts, begin)
    }

    /// Decides a call on facts that are known already.
    pub(super) fn decide(
        &self,
        case: &Case,
        call: &ToolCall,
        spec: &ToolSpec,
        facts: &Facts,
        begin: Instant,
    ) -> Ruling {
        let session = self.session(case);
        let first = self.gate.decide(call.clone(), spec, facts, &session, None);
        let took = begin.elapsed();
        let decision = match first {
            Decision::Ask(question) if is_granted(case) => {
                let grant = grant(question.binding);
                self.gate
                    .decide(call.clone(), spec, facts, &session, grant.as_ref())
            }
            other @ (Decision::Ask(_) | Decision::Allow(_) | Decision::Deny(_)) => other,
        };
        let (outcome, by, authorized) = match decision {
            Decision::Allow(authorized) => {
                let layer = authorized.basis().layer().to_owned();
                (Outcome::Allow, layer, Some(authorized))
            }
            Decision::Ask(question) => {
                let by = format!("{}/{}: {}", question.layer, question.code, question.reason);
                (Outcome::Ask, by, None)
            }
            Decision::Deny(denial) => {
                let by = format!("{}/{}: {}", denial.floor, denial.code, denial.reason);
                (Outcome::Refuse, by, None)
            }
        };
        Ruling {
            outcome,
            by,
            authorized,
            took,
        }
    }

    /// Runs a call that the gate has allowed, as the engine does.
    pub(super) fn run(&self, authorized: Authorized<ToolCall>) -> ToolResult {
        let context = ToolContext {
            run_id: RunId::new("run_corpus"),
            caller: Arc::clone(&self.caller),
            learner: tidegate_gate::Learner::default(),
            host: Arc::new(tidegate_gate::NoHost),
        };
        self.runtime.block_on(self.tools.run(authorized, &context))
    }

    fn session(&self, case: &Case) -> Session {
        let mode = case.config.get("mode").and_then(Value::as_str);
        Session {
            caller: Arc::clone(&self.caller),
            // What is no mode is the strict one.
            mode: mode.and_then(Mode::from_name).unwrap_or_default(),
            conversation: "corpus".to_owned(),
            attendance: if case.flag("unattended") {
                Attendance::Deny
            } else {
                Attendance::Attended
            },
        }
    }

    /// Whether the arguments fit the tool.
    pub(super) fn check(&self, call: &ToolCall, spec: &ToolSpec) -> Result<(), ToolResult> {
        self.tools.check(call, spec)
    }
}

/// A call.
pub(super) fn call(tool: &str, arguments: Map<String, Value>) -> ToolCall {
    ToolCall {
        id: CallId::new("call_corpus"),
        name: tool.to_owned(),
        arguments: Arguments::Object(arguments),
    }
}

fn caller() -> Result<Caller> {
    let key_id = KeyId::new("key_corpus");
    Ok(Caller {
        user: UserId::of(&key_id, None)?,
        key_id,
        scopes: BTreeSet::from([Scope::Chat, Scope::Tools]),
        mode_ceiling: Mode::FullAuto,
        models: None,
        tools: None,
        tokens_per_day: None,
    })
}

/// Whether an operator has granted this very call.
fn is_granted(case: &Case) -> bool {
    case.config.get("grant").is_some_and(|grant| grant == "this-call")
}

fn grant(binding: ApprovalBinding) -> Option<Grant> {
    Grant::of(&Approval {
        id: ApprovalId::new("appr_corpus"),
        run_id: RunId::new("run_corpus"),
        binding,
        summary: String::new(),
        arguments: String::new(),
        reasons: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::MAX,
        state: ApprovalState::Claimed,
        decided_by: None,
        decided_at: None,
    })
}

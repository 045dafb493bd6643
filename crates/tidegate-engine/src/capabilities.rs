//! The capability report: what the agent can do for a caller, from live state. One gathering for everybody who
//! asks: a person over HTTP, the model by `describe_capabilities`, and the prompt. It describes, limits that are not
//! set included, and never quotes the prompt; no absolute path and no host of this machine is in it.

mod text;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;
use serde_json::Value;
use tidegate_core::{
    caller::{Attendance, Caller, Mode, Origin, Scope},
    tool::ToolSpec,
};
use tidegate_gate::{FLOORS, PermissionGate, Session, Zones};

pub(crate) use self::text::{report, summary};

use crate::{Options, run::Engine};

/// The most names of a list that a report shows; the rest is counted.
const NAMES_MAX: usize = 20;

/// What is around the engine and does not change while it runs. For the report alone: nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// The real path of the knowledge bank: names are told relative to it.
    pub knowledge_bank: PathBuf,
    /// How programs are isolated: the level in force, if any is, and the probe's sentence.
    pub sandbox: Option<(Option<&'static str>, String)>,
    /// Where tools may go on the network.
    pub network: Network,
    /// The audit trail.
    pub audit: Audit,
    /// How many patterns of commands alone may run; 0: all may.
    pub allow_commands: usize,
    /// How many patterns of commands may not run.
    pub deny_commands: usize,
    /// Whether a disposable container has switched floors off.
    pub is_disposable: bool,
}

/// Where tools may go on the network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Network {
    /// The only domains that may be reached; empty: every public one.
    pub allowed_domains: Vec<String>,
    /// Domains that may not be reached.
    pub blocked_domains: Vec<String>,
    /// How many hosts of the own network are opened one by one.
    pub opened_hosts: usize,
    /// Whether private addresses are open to everything.
    pub private_addresses: bool,
}

/// The audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Audit {
    /// Whether decisions are recorded.
    pub enabled: bool,
    /// Whether an action that cannot be recorded is refused.
    pub required: bool,
}

/// What a caller can do here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capabilities {
    /// The model, as the client names it.
    pub model: String,
    /// The permission mode.
    pub mode: ModeReport,
    /// The tools this caller may use.
    pub tools: Vec<ToolReport>,
    /// Why there are none, where there are none.
    pub no_tools: Option<&'static str>,
    /// Skills: names and one-line descriptions.
    pub skills: Vec<(String, String)>,
    /// Bounds, those that are not set included.
    pub limits: Vec<Limit>,
    /// Where files may be touched.
    pub zones: Vec<ZoneReport>,
    /// What no mode and no approval opens: names, and what each holds.
    pub floors: Vec<(&'static str, &'static str)>,
    /// Where tools may go.
    pub network: Network,
    /// How many patterns of shell commands alone may run, and how many may not.
    pub commands: (usize, usize),
    /// How programs are isolated.
    pub sandbox: SandboxReport,
    /// Who answers questions.
    pub approvals: ApprovalsReport,
    /// The audit trail.
    pub audit: Audit,
    /// The operator's own checks, asked before a tool runs.
    pub hooks: Vec<String>,
    /// Whether a disposable container has switched floors off.
    pub is_disposable: bool,
}

/// The permission mode, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ModeReport {
    /// The one in force.
    pub effective: Mode,
    /// The key's ceiling.
    pub ceiling: Mode,
    /// What is configured for everybody.
    pub configured: Option<Mode>,
    /// What the request asked for.
    pub requested: Option<Mode>,
    /// Which of them decided: `key`, `setting` or `request`.
    pub decided_by: &'static str,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolReport {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence.
    pub summary: String,
    /// How it is run.
    pub mode: &'static str,
    /// What it does to the world.
    pub effect: &'static str,
    /// What becomes of its calls: `allowed`, `depends`, `asks` or `refused`.
    pub gate: &'static str,
    /// Under which heading a person finds it.
    #[serde(skip)]
    pub(crate) heading: &'static str,
}

/// One bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// The setting, or the key's field.
    pub name: &'static str,
    /// Its value; null where it is not set.
    pub value: Value,
    /// What it bounds, in words.
    pub bounds: &'static str,
}

/// One list of zones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ZoneReport {
    /// The list.
    pub name: &'static str,
    /// How many entries it has.
    pub count: usize,
    /// Those inside the knowledge bank, relative to it; `.` is all of it.
    pub inside: Vec<String>,
}

/// How programs are isolated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// The level in force; none where no program runs.
    pub level: Option<&'static str>,
    /// What was found when the server started.
    pub sentence: String,
}

/// Who answers questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalsReport {
    /// Whether somebody can answer: `attended`, or what a question then counts as.
    pub attendance: Attendance,
    /// How long a question and its answer hold, in seconds.
    pub expires_after_s: u64,
    /// Whose questions this key may answer: `none`, `own`, `other keys` or `any`.
    pub this_key_decides: &'static str,
    /// Refusals and questions in a row that end a turn; 0: no bound.
    pub denials_max: u32,
}

/// What a report is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The model, as the client names it.
    pub(crate) model: &'a str,
    /// Whose turn.
    pub(crate) caller: &'a Caller,
    /// The mode the request asks for.
    pub(crate) requested: Option<Mode>,
    /// The effective mode.
    pub(crate) mode: Mode,
    /// Whether somebody can answer.
    pub(crate) attendance: Attendance,
    /// The server tools this caller may use.
    pub(crate) tools: &'a [Arc<ToolSpec>],
    /// Bounds.
    pub(crate) options: &'a Options,
    /// The gate.
    pub(crate) gate: &'a PermissionGate,
    /// What is around.
    pub(crate) surroundings: &'a Surroundings,
    /// The operator's own checks.
    pub(crate) hooks: &'a [String],
}

impl Engine {
    /// What this caller can do here, from live state, and the same as the text that the model is told.
    pub fn capabilities(
        &self,
        caller: &Caller,
        origin: Origin,
        requested: Option<Mode>,
        model: &str,
    ) -> (Capabilities, String) {
        let tools = self.tools_of(caller);
        let hooks = self.hook_names();
        let surroundings = self.surroundings();
        let subject = Subject {
            model,
            caller,
            requested,
            mode: self.mode_of(caller, requested),
            attendance: self.attendance_of(origin),
            tools: &tools,
            options: self.options(),
            gate: self.gate(),
            surroundings: &surroundings,
            hooks: &hooks,
        };
        let capabilities = gather(subject, &self.parts().composer.skills_now());
        let text = text::render(&capabilities);
        (capabilities, text)
    }

    /// The names of the operator's own checks, in order.
    pub(crate) fn hook_names(&self) -> Vec<String> {
        let gates = self.hooks().gates.iter();
        gates.map(|hook| hook.name().to_owned()).collect()
    }
}

/// Gathers what is in force.
pub(crate) fn gather(subject: Subject<'_>, skills: &[(String, String)]) -> Capabilities {
    let Subject {
        caller,
        options,
        gate,
        surroundings,
        ..
    } = subject;
    let session = Session {
        caller: Arc::new(caller.clone()),
        mode: subject.mode,
        conversation: String::new(),
        attendance: subject.attendance,
    };
    Capabilities {
        model: subject.model.to_owned(),
        mode: mode(subject),
        tools: subject
            .tools
            .iter()
            .map(|spec| ToolReport {
                name: spec.name.clone(),
                summary: text::first_sentence(&spec.description).to_owned(),
                mode: spec.mode.name(),
                effect: spec.effect.name(),
                gate: gate.outlook(spec, &session).name(),
                heading: text::heading(spec.mode),
            })
            .collect(),
        no_tools: subject.tools.is_empty().then(|| {
            if caller.has(Scope::Tools) {
                "the operator offers none to this key"
            } else {
                "this key may chat, without tools"
            }
        }),
        skills: skills.to_vec(),
        limits: limits(caller, options, gate),
        zones: zones(&gate.policy().zones, &surroundings.knowledge_bank),
        floors: FLOORS.to_vec(),
        network: surroundings.network.clone(),
        commands: (surroundings.allow_commands, surroundings.deny_commands),
        sandbox: match &surroundings.sandbox {
            Some((level, sentence)) => SandboxReport {
                level: *level,
                sentence: text::first_sentence(sentence).to_owned(),
            },
            None => SandboxReport {
                level: None,
                sentence: "Programs cannot be run here.".to_owned(),
            },
        },
        approvals: ApprovalsReport {
            attendance: subject.attendance,
            expires_after_s: options.approval_s,
            this_key_decides: decides(caller),
            denials_max: options.denials_max,
        },
        audit: surroundings.audit,
        hooks: subject.hooks.to_vec(),
        is_disposable: surroundings.is_disposable,
    }
}

fn mode(subject: Subject<'_>) -> ModeReport {
    let ceiling = subject.caller.mode_ceiling;
    let configured = subject.options.default_permission_mode;
    let without_request = configured.map_or(ceiling, |configured| configured.min(ceiling));
    let decided_by = if subject
        .requested
        .is_some_and(|requested| requested < without_request)
    {
        "request"
    } else if configured.is_some_and(|configured| configured < ceiling) {
        "setting"
    } else {
        "key"
    };
    ModeReport {
        effective: subject.mode,
        ceiling,
        configured,
        requested: subject.requested,
        decided_by,
    }
}

/// Zero stands for no bound in the settings, and is told as such.
fn limits(caller: &Caller, options: &Options, gate: &PermissionGate) -> Vec<Limit> {
    let set = |value: u64| {
        if value == 0 {
            Value::Null
        } else {
            Value::from(value)
        }
    };
    let count = |value: usize| Value::from(u64::try_from(value).unwrap_or(u64::MAX));
    let cost = options.max_turn_cost_usd;
    let caps = gate.policy().caps;
    let rows: [(&'static str, Value, &'static str); 11] = [
        (
            "engine.rounds_max",
            set(options.rounds_max.into()),
            "model calls in a turn",
        ),
        (
            "engine.calls_per_turn_max",
            count(options.calls_per_turn_max),
            "tool calls in a turn",
        ),
        (
            "engine.calls_per_round_max",
            count(options.calls_per_round_max),
            "tool calls in a reply",
        ),
        (
            "engine.turn_timeout_ms",
            set(options.turn_timeout_ms),
            "milliseconds of a turn",
        ),
        (
            "engine.turn_tokens_max",
            set(options.turn_tokens_max),
            "tokens of a turn",
        ),
        (
            "engine.max_turn_cost_usd",
            if cost > 0.0 {
                Value::from(cost)
            } else {
                Value::Null
            },
            "US dollars of a turn",
        ),
        (
            "engine.turns_per_key_max",
            count(options.turns_per_key_max),
            "turns of this key at once",
        ),
        (
            "engine.denials_max",
            set(options.denials_max.into()),
            "refusals in a row before a turn ends",
        ),
        (
            "gate.max_writes_per_turn",
            set(caps.writes_per_turn_max.into()),
            "writes in a turn",
        ),
        (
            "gate.max_write_bytes",
            set(caps.write_bytes_max),
            "bytes of one write",
        ),
        (
            "key.tokens_per_day",
            caller.tokens_per_day.map_or(Value::Null, Value::from),
            "tokens of this key in a day",
        ),
    ];
    rows.into_iter()
        .map(|(name, value, bounds)| Limit { name, value, bounds })
        .collect()
}

fn zones(zones: &Zones, bank: &Path) -> Vec<ZoneReport> {
    let lists: [(&'static str, &[PathBuf]); 7] = [
        ("readable", &zones.readable),
        ("writable", &zones.writable),
        ("read_paths", &zones.read),
        ("no_prompt_paths", &zones.no_prompt),
        ("prompt_paths", &zones.prompt),
        ("blocked_paths", &zones.blocked),
        ("allowed_sensitive_files", &zones.allowed_sensitive),
    ];
    lists
        .into_iter()
        .map(|(name, list)| ZoneReport {
            name,
            count: list.len(),
            inside: list
                .iter()
                .filter_map(|path| path.strip_prefix(bank).ok())
                .map(|below| match below.to_string_lossy() {
                    below if below.is_empty() => ".".to_owned(),
                    below => below.into_owned(),
                })
                .take(NAMES_MAX)
                .collect(),
        })
        .collect()
}

fn decides(caller: &Caller) -> &'static str {
    let (own, any) = (
        caller.has(Scope::ApprovalsDecideOwn),
        caller.has(Scope::ApprovalsDecideAny),
    );
    match (own, any) {
        (true, true) => "any",
        (true, false) => "own",
        (false, true) => "other keys",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests;

//! The shape of the capability report.

use serde::Serialize;
use serde_json::Value;
use tidegate_core::caller::Mode;
use tidegate_engine::capabilities::Capabilities;
use utoipa::ToSchema;

/// What the caller can do here, from live state.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct CapabilitiesBody {
    /// `capabilities`.
    object: &'static str,
    /// The same as text: what the model is told.
    text: String,
    mode: ModeBody,
    /// The server tools this key may use.
    tools: Vec<ToolBody>,
    /// Why there are none, where there are none.
    no_tools: Option<&'static str>,
    skills: Vec<NamedBody>,
    /// Bounds, those that are not set included.
    limits: Vec<LimitBody>,
    /// Where files may be touched.
    zones: Vec<ZoneBody>,
    /// What no mode and no approval opens.
    floors: Vec<NamedBody>,
    network: NetworkBody,
    /// Patterns of shell commands.
    commands: CommandsBody,
    sandbox: SandboxBody,
    approvals: ApprovalRulesBody,
    audit: AuditBody,
    /// The operator's own checks, asked before a tool runs.
    hooks: Vec<String>,
    /// Whether a disposable container has switched floors off.
    disposable_container: bool,
}

/// The permission mode, and where it comes from.
#[derive(Debug, Serialize, ToSchema)]
struct ModeBody {
    /// `plan-only`, `readonly` or `full-auto`: the one in force.
    effective: &'static str,
    /// The key's ceiling.
    ceiling: &'static str,
    /// What the server's settings allow at most; null where they say nothing.
    configured: Option<&'static str>,
    /// What this request asked for.
    requested: Option<&'static str>,
    /// Which of them decided: `key`, `setting` or `request`.
    decided_by: &'static str,
}

/// One tool.
#[derive(Debug, Serialize, ToSchema)]
struct ToolBody {
    name: String,
    description: String,
    /// How it is run.
    mode: &'static str,
    /// `read`, `write`, `network` or `external`.
    effect: &'static str,
    /// What becomes of its calls: `allowed`, `depends`, `asks` or `refused`.
    gate: &'static str,
}

/// A name and what it stands for.
#[derive(Debug, Serialize, ToSchema)]
struct NamedBody {
    name: String,
    description: String,
}

/// One bound.
#[derive(Debug, Serialize, ToSchema)]
struct LimitBody {
    /// The setting, or the key's field.
    name: &'static str,
    /// Null where it is not set.
    #[schema(value_type = Option<f64>)]
    value: Value,
    /// What it bounds.
    bounds: &'static str,
}

/// One list of zones.
#[derive(Debug, Serialize, ToSchema)]
struct ZoneBody {
    name: &'static str,
    /// How many entries it has.
    count: usize,
    /// Those inside the knowledge bank, relative to it.
    inside: Vec<String>,
}

/// Where tools may go.
#[derive(Debug, Serialize, ToSchema)]
struct NetworkBody {
    /// The only domains that may be reached; empty: every public one.
    allowed_domains: Vec<String>,
    /// Domains that may not be reached.
    blocked_domains: Vec<String>,
    /// How many hosts of the own network are opened one by one.
    opened_hosts: usize,
    /// Whether private addresses are open to everything.
    private_addresses: bool,
}

/// Patterns of shell commands.
#[derive(Debug, Serialize, ToSchema)]
struct CommandsBody {
    /// How many alone may run; 0: all may.
    allow: usize,
    /// How many may not.
    deny: usize,
}

/// How programs are isolated.
#[derive(Debug, Serialize, ToSchema)]
struct SandboxBody {
    /// `bwrap`, `landlock` or `none`; null where no program runs.
    level: Option<&'static str>,
    sentence: String,
}

/// Who answers questions.
#[derive(Debug, Serialize, ToSchema)]
struct ApprovalRulesBody {
    /// `attended`, or what a question counts as: `deny` or `approve`.
    #[schema(value_type = String)]
    attendance: Value,
    /// How long a question and its answer hold.
    expires_after_seconds: u64,
    /// Whose questions this key may answer: `none`, `own`, `other keys` or `any`.
    this_key_decides: &'static str,
    /// Refusals and questions in a row that end a turn; 0: no bound.
    denials_max: u32,
}

/// The audit trail.
#[derive(Debug, Serialize, ToSchema)]
struct AuditBody {
    enabled: bool,
    /// Whether an action that cannot be recorded is refused.
    required: bool,
}

impl CapabilitiesBody {
    /// What was gathered, and the text that the model is told.
    pub(in crate::http) fn new(found: Capabilities, text: String) -> Self {
        let named = |(name, description): (String, String)| NamedBody { name, description };
        let mode = found.mode;
        Self {
            object: "capabilities",
            text,
            mode: ModeBody {
                effective: mode.effective.name(),
                ceiling: mode.ceiling.name(),
                configured: mode.configured.map(Mode::name),
                requested: mode.requested.map(Mode::name),
                decided_by: mode.decided_by,
            },
            tools: found
                .tools
                .into_iter()
                .map(|tool| ToolBody {
                    name: tool.name,
                    description: tool.summary,
                    mode: tool.mode,
                    effect: tool.effect,
                    gate: tool.gate,
                })
                .collect(),
            no_tools: found.no_tools,
            skills: found.skills.into_iter().map(named).collect(),
            limits: found
                .limits
                .into_iter()
                .map(|limit| LimitBody {
                    name: limit.name,
                    value: limit.value,
                    bounds: limit.bounds,
                })
                .collect(),
            zones: found
                .zones
                .into_iter()
                .map(|zone| ZoneBody {
                    name: zone.name,
                    count: zone.count,
                    inside: zone.inside,
                })
                .collect(),
            floors: found
                .floors
                .into_iter()
                .map(|(name, holds)| named((name.to_owned(), holds.to_owned())))
                .collect(),
            network: NetworkBody {
                allowed_domains: found.network.allowed_domains,
                blocked_domains: found.network.blocked_domains,
                opened_hosts: found.network.opened_hosts,
                private_addresses: found.network.private_addresses,
            },
            commands: CommandsBody {
                allow: found.commands.0,
                deny: found.commands.1,
            },
            sandbox: SandboxBody {
                level: found.sandbox.level,
                sentence: found.sandbox.sentence,
            },
            approvals: ApprovalRulesBody {
                attendance: serde_json::to_value(found.approvals.attendance).unwrap_or_default(),
                expires_after_seconds: found.approvals.expires_after_s,
                this_key_decides: found.approvals.this_key_decides,
                denials_max: found.approvals.denials_max,
            },
            audit: AuditBody {
                enabled: found.audit.enabled,
                required: found.audit.required,
            },
            hooks: found.hooks,
            disposable_container: found.is_disposable,
        }
    }
}

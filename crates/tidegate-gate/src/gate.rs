//! The decision.

mod command;
pub mod explain;

use std::sync::{Arc, PoisonError, RwLock};

use tidegate_core::{
    approval::ApprovalBinding,
    caller::{Attendance, Caller, Mode, Scope},
    id::ApprovalId,
    tool::{Effect, ToolCall, ToolMode, ToolSpec},
};

use crate::{
    Authorized, Facts, Grant, ZoneVerdict, Zones,
    caps::Caps,
    floors, grant,
    guards::{address, outbound},
};

/// What the gate decided.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// It may run, now, once.
    Allow(Authorized<ToolCall>),
    /// A person could allow exactly this call.
    Ask(Box<Question>),
    /// It may not run, and no approval changes that.
    Deny(Denial),
}

/// Which layer let a call pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// It only reads.
    Read,
    /// A command that only looks, at files that may be looked at.
    ReadOnlyCommand,
    /// It writes where no approval is needed.
    NoPromptZone,
    /// The mode asks nothing.
    FullAuto,
    /// A person has allowed exactly this call.
    Grant(ApprovalId),
    /// Nobody is there, and the operator has said that questions then count as answered with yes.
    Unattended,
}

impl Basis {
    /// The layer's name in logs.
    pub fn layer(&self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadOnlyCommand => "shell_readonly",
            Self::NoPromptZone => "no_prompt_zone",
            Self::FullAuto => "full_auto",
            Self::Grant(_) => "grant",
            Self::Unattended => "unattended_approve",
        }
    }
}

/// What a person would have to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The layer that asks.
    pub layer: &'static str,
    /// Why it is asked, a stable name.
    pub code: &'static str,
    /// Why, for the model and the person.
    pub reason: String,
    /// What an approval of it is bound to.
    pub binding: ApprovalBinding,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The layer that refused, a stable name.
    pub floor: &'static str,
    /// Why, a stable name.
    pub code: &'static str,
    /// Why, for the model; never a secret, never a path outside the zones.
    pub reason: String,
}

impl Denial {
    /// A refusal by `floor`, whose name is its reason as well.
    pub fn new(floor: &'static str, reason: impl Into<String>) -> Self {
        Self::with_code(floor, floor, reason)
    }

    /// A refusal by `floor` for one of its several reasons.
    pub fn with_code(floor: &'static str, code: &'static str, reason: impl Into<String>) -> Self {
        Self {
            floor,
            code,
            reason: reason.into(),
        }
    }
}

/// Everything about the turn that a decision may depend on.
#[derive(Debug, Clone)]
pub struct Session {
    /// Whose turn.
    pub caller: Arc<Caller>,
    /// The effective mode.
    pub mode: Mode,
    /// Which conversation the turn belongs to, a digest. An approval given in one opens nothing in another.
    pub conversation: String,
    /// Whether somebody can answer. Read once at start, so that nothing inside a turn can change it.
    pub attendance: Attendance,
}

/// The operator's policy, all that decisions rest on beside the call, its facts and the session.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Where files may be touched.
    pub zones: Zones,
    /// How much one turn may write.
    pub caps: Caps,
    /// What may be reached.
    pub network: address::Policy,
    /// What may not leave. `None` where nothing is known to keep.
    pub secrets: Option<Arc<outbound::Secrets>>,
    /// A digest of the whole policy. Whoever changes the policy changes it, and every approval is void.
    pub digest: String,
}

/// The permission gate. Clones share one policy.
#[derive(Debug, Clone)]
pub struct PermissionGate {
    policy: Arc<RwLock<Arc<Policy>>>,
}

impl PermissionGate {
    /// A gate with this policy.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy: Arc::new(RwLock::new(Arc::new(policy))),
        }
    }

    /// The policy in force. Whoever decides by it keeps it to the end of the decision.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another policy in force, from the next decision on. Approvals that were given under the old one open
    /// nothing any more: its digest is part of what they are bound to.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Decides. The first layer that refuses is the answer; only what every layer lets pass is allowed, and a
    /// grant opens nothing but the question that it answers.
    pub fn decide(
        &self,
        call: ToolCall,
        spec: &ToolSpec,
        facts: &Facts,
        session: &Session,
        grant: Option<&Grant>,
    ) -> Decision {
        let policy = &*self.policy();
        let refused = authority(&call, spec, session)
            .or_else(|| policy.caps.check(facts))
            .or_else(|| policy.floors(&call, spec, facts))
            .or_else(|| facts.refusal.clone())
            .or_else(|| policy.departure(&call, spec, facts));
        if let Some(denial) = refused {
            return Decision::Deny(denial);
        }
        let reason = match policy.ask(spec, facts, session) {
            Ok(basis) => return Decision::Allow(Authorized::new(call, basis)),
            Err(reason) => reason,
        };
        if session.mode == Mode::PlanOnly {
            return Decision::Deny(Denial::new(
                "plan_only",
                "nothing may be changed, sent or run while planning; describe the step in the plan instead.",
            ));
        }
        match (session.attendance, spec.mode == ToolMode::GitPush) {
            (Attendance::Attended, _) => {}
            (Attendance::Deny, _) | (Attendance::Approve, true) => {
                return Decision::Deny(Denial::with_code(
                    "unattended",
                    "unattended_deny",
                    format!(
                        "{} Nobody is there to ask; say in the answer what was not done.",
                        reason.text
                    ),
                ));
            }
            (Attendance::Approve, false) => {
                return Decision::Allow(Authorized::new(call, Basis::Unattended));
            }
        }
        let binding = grant::binding(&call, facts, session, &policy.digest);
        match grant.filter(|grant| grant.opens(&binding)) {
            Some(grant) => {
                let basis = Basis::Grant(grant.id().clone());
                Decision::Allow(Authorized::new(call, basis))
            }
            None => Decision::Ask(Box::new(Question {
                layer: reason.layer,
                code: reason.code,
                reason: reason.text,
                binding,
            })),
        }
    }
}

impl Policy {
    /// What no mode and no grant opens.
    fn floors(&self, call: &ToolCall, spec: &ToolSpec, facts: &Facts) -> Option<Denial> {
        if spec.mode == ToolMode::Shell {
            command::floors(call, facts, self)
        } else {
            floors::check(call, spec, facts, &self.zones)
        }
    }

    /// Secrets do not leave, in no mode and by no grant.
    fn departure(&self, call: &ToolCall, spec: &ToolSpec, facts: &Facts) -> Option<Denial> {
        let secrets = self.secrets.as_ref()?;
        let leaves = match spec.effect {
            // What another server is asked leaves this one, whatever that server does with it.
            Effect::Read | Effect::Write => spec.mode == ToolMode::Mcp,
            Effect::Network => true,
            Effect::External => spec.mode != ToolMode::Shell || command::leaves(facts),
        };
        let arguments = call.arguments.object().filter(|_| leaves)?;
        outbound::check_arguments(secrets, arguments).err()
    }

    /// Whether the call may run without a question, and by what; else why it is asked.
    fn ask(&self, spec: &ToolSpec, facts: &Facts, session: &Session) -> Result<Basis, Reason> {
        if spec.mode == ToolMode::GitPush {
            return Err(Reason {
                layer: "git_push",
                code: "git_push",
                text: pushed(facts),
            });
        }
        if session.mode != Mode::FullAuto
            && let Some((ZoneVerdict::Ask(code), path)) = self.zones.judge_all(facts)
        {
            return Err(Reason {
                layer: "zones",
                code,
                text: format!("`{}` is in a folder that is asked about.", path.argument),
            });
        }
        if spec.mode == ToolMode::Shell {
            return command::ask(facts, session.mode, &self.zones);
        }
        match (spec.effect, session.mode) {
            (Effect::Read, _) => Ok(Basis::Read),
            (Effect::Write | Effect::Network | Effect::External, Mode::FullAuto) => Ok(Basis::FullAuto),
            (Effect::Write | Effect::Network | Effect::External, Mode::ReadOnly | Mode::PlanOnly) => {
                if spec.effect == Effect::Write
                    && session.mode == Mode::ReadOnly
                    && self.zones.is_no_prompt(facts)
                {
                    return Ok(Basis::NoPromptZone);
                }
                Err(Reason {
                    layer: "mode",
                    code: "readonly",
                    text: format!(
                        "`{}` would {}, and this key works in readonly mode.",
                        spec.name,
                        in_words(spec.effect)
                    ),
                })
            }
        }
    }
}

/// Why a call is asked about.
#[derive(Debug)]
struct Reason {
    layer: &'static str,
    code: &'static str,
    text: String,
}

fn in_words(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "change a file",
        Effect::Network => "send data to another machine",
        Effect::External => "run a program",
    }
}

/// What the key itself opens, before anything else is looked at.
fn authority(call: &ToolCall, spec: &ToolSpec, session: &Session) -> Option<Denial> {
    if call.name != spec.name {
        return Some(Denial::new(
            "unrecognised",
            "the call does not belong to this tool.",
        ));
    }
    if freedom(spec.effect) < freedom(spec.mode.effect()) {
        return Some(Denial::new(
            "unrecognised",
            "the tool declares less than it does.",
        ));
    }
    if call.arguments.object().is_none() {
        return Some(Denial::new("malformed", "the arguments are not a JSON object."));
    }
    if !session.caller.has(Scope::Tools) {
        return Some(Denial::new("scope", "this key has no `tools` scope."));
    }
    // A search among the tools that the key may use opens nothing, so no list need name it.
    if let Some(allowed) = &session.caller.tools
        && !allowed.contains(&spec.name)
        && spec.mode != ToolMode::SearchTools
    {
        return Some(Denial::new("tool_allow_list", "this key may not use this tool."));
    }
    None
}

/// What a push is asked about for: the address stands in it, since that is what a person would allow.
fn pushed(facts: &Facts) -> String {
    let mut text =
        "a push is asked about in every mode; an approval covers this branch and this address only"
            .to_owned();
    if let [url] = facts.urls.as_slice() {
        text.push_str(": ");
        text.push_str(url);
    }
    text.push('.');
    text
}

/// Effects in the order of what they can do.
fn freedom(effect: Effect) -> u8 {
    match effect {
        Effect::Read => 0,
        Effect::Write => 1,
        Effect::Network => 2,
        Effect::External => 3,
    }
}

#[cfg(test)]
mod tests;

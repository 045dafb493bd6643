//! The decision.

use std::sync::Arc;

use tidegate_core::{
    caller::{Caller, Mode, Scope},
    tool::{Effect, ToolCall, ToolSpec},
};

use crate::{Authorized, Facts, Zones, floors};

/// What the gate decided.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// It may run, now, once.
    Allow(Authorized<ToolCall>),
    /// A person could allow exactly this call.
    Ask(Question),
    /// It may not run, and no approval changes that.
    Deny(Denial),
}

/// What a person would have to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Why it is asked, a stable name.
    pub code: &'static str,
    /// Why, for the model and the person.
    pub reason: String,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The layer that refused, a stable name.
    pub floor: &'static str,
    /// Why, for the model; never a secret, never a path outside the zones.
    pub reason: String,
}

impl Denial {
    /// A refusal by `floor`.
    pub fn new(floor: &'static str, reason: impl Into<String>) -> Self {
        Self {
            floor,
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
}

/// The permission gate: the operator's zones, and the floors that no mode opens.
#[derive(Debug, Clone)]
pub struct PermissionGate {
    zones: Zones,
}

impl PermissionGate {
    /// A gate over these zones.
    pub fn new(zones: Zones) -> Self {
        Self { zones }
    }

    /// Decides. The first layer that refuses is the answer; only what every layer lets pass is allowed.
    pub fn decide(&self, call: ToolCall, spec: &ToolSpec, facts: &Facts, session: &Session) -> Decision {
        if let Some(denial) = authority(&call, spec, session) {
            return Decision::Deny(denial);
        }
        if let Some(denial) = floors::check(&call, spec, facts, &self.zones) {
            return Decision::Deny(denial);
        }
        match (spec.effect, session.mode) {
            (Effect::Read, _) => Decision::Allow(Authorized::new(call)),
            (Effect::Write | Effect::Network | Effect::External, Mode::PlanOnly) => {
                Decision::Deny(Denial::new(
                    "plan_only",
                    "nothing may be changed, sent or run while planning; describe the step in the plan instead.",
                ))
            }
            (Effect::Write | Effect::Network | Effect::External, Mode::ReadOnly) => {
                if spec.effect == Effect::Write && self.zones.is_no_prompt(facts) {
                    return Decision::Allow(Authorized::new(call));
                }
                Decision::Ask(Question {
                    code: "readonly",
                    reason: format!(
                        "`{}` would {}, and this key works in readonly mode.",
                        spec.name,
                        match spec.effect {
                            Effect::Read => "read",
                            Effect::Write => "change a file",
                            Effect::Network => "send data to another machine",
                            Effect::External => "run a program",
                        }
                    ),
                })
            }
            (Effect::Write | Effect::Network | Effect::External, Mode::FullAuto) => {
                Decision::Allow(Authorized::new(call))
            }
        }
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
    if let Some(allowed) = &session.caller.tools
        && !allowed.contains(&spec.name)
    {
        return Some(Denial::new("tool_allow_list", "this key may not use this tool."));
    }
    None
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

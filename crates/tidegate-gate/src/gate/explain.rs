//! What each layer says about a call, for a person who wants to know why. The same functions as [`decide`] calls,
//! asked one by one, and the decision itself: an explanation that differed from what happens would be worse than
//! none.
//!
//! [`decide`]: PermissionGate::decide

use tidegate_core::{
    caller::{Attendance, Mode, Scope},
    tool::{Effect, ToolCall, ToolMode, ToolSpec},
};

use super::{Basis, Decision, Denial, PermissionGate, Session, authority, command};
use crate::{Facts, floors, shell::Verdict};

/// What no mode and no grant opens: each floor's name, as refusals carry it, and what it holds.
pub const FLOORS: [(&str, &str); 16] = [
    ("write_shape", "a write is plainly these bytes to that file"),
    ("paths", "files outside the allowed folders"),
    ("own_files", "the server's own data, settings, logs and programs"),
    ("blocked_path", "folders that the operator has closed"),
    ("special_file", "pipes, sockets and devices"),
    ("links", "writing through a link"),
    ("credentials", "files and folders of credentials"),
    ("startup_files", "writing what runs later by itself"),
    ("unrecoverable", "commands that destroy what cannot be restored"),
    ("git", "commands of git that destroy, publish or run others"),
    ("unanalysable", "commands that cannot be read with certainty"),
    ("deny_commands", "commands that the operator has shut out"),
    (
        "allow_commands",
        "commands outside the operator's own list, where there is one",
    ),
    ("egress", "domains that may not be reached"),
    ("address", "addresses that are not public"),
    (
        "outbound_secret",
        "secrets of this server in anything that leaves",
    ),
];

/// What one layer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepVerdict {
    /// Nothing against it.
    Passed,
    /// It may run without a question.
    Allowed(Basis),
    /// A person has to say so.
    Asked {
        /// Why, a stable name.
        code: &'static str,
        /// Why, in words.
        reason: String,
    },
    /// It does not run.
    Refused(Denial),
}

/// One layer and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The layer, a stable name.
    pub layer: &'static str,
    /// What it says.
    pub verdict: StepVerdict,
}

/// Every layer in order, and what follows.
#[derive(Debug, PartialEq)]
pub struct Explanation {
    /// The layers. The first that refuses is the answer; the rest are asked all the same.
    pub steps: Vec<Step>,
    /// The decision.
    pub decision: Decision,
}

/// What becomes of a tool's calls in a session, as far as can be said without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outlook {
    /// They run, if no floor minds.
    Allowed,
    /// Some run, some are asked about or refused: it depends on what they touch.
    Depends,
    /// Each is asked about.
    Asks,
    /// None runs.
    Refused,
}

impl Outlook {
    /// The outlook's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Depends => "depends",
            Self::Asks => "asks",
            Self::Refused => "refused",
        }
    }
}

impl PermissionGate {
    /// Asks every layer, and decides. Nothing is spent: there is no grant.
    pub fn explain(&self, call: &ToolCall, spec: &ToolSpec, facts: &Facts, session: &Session) -> Explanation {
        let mut steps = vec![
            step("authority", authority(call, spec, session)),
            step("write_caps", self.policy().caps.check(facts)),
        ];
        if spec.mode == ToolMode::Shell {
            self.command_steps(call, facts, &mut steps);
        } else {
            steps.push(step("write_shape", floors::write_shape(call, spec, facts)));
            let paths = floors::each_path_floor(&facts.paths, &self.policy().zones);
            steps.extend(paths.into_iter().map(|(layer, denial)| step(layer, denial)));
        }
        if let Some(denial) = &facts.refusal {
            steps.push(step(denial.floor, Some(denial.clone())));
        } else if spec.mode != ToolMode::Shell {
            steps.push(step("address", None));
        }
        steps.push(step(
            "outbound_secret",
            self.policy().departure(call, spec, facts),
        ));
        let decision = self.decide(call.clone(), spec, facts, session, None);
        self.mode_step(spec, facts, session, &decision, &mut steps);
        Explanation { steps, decision }
    }

    /// The floors of a command line. A file outside the zones that it only reads is a question, no refusal.
    fn command_steps(&self, call: &ToolCall, facts: &Facts, steps: &mut Vec<Step>) {
        let policy = &*self.policy();
        let line = call
            .arguments
            .object()
            .and_then(|arguments| arguments.get("command")?.as_str());
        let analysis = facts
            .command
            .as_deref()
            .filter(|analysis| Some(analysis.command()) == line);
        let is_readable =
            analysis.is_some_and(|analysis| !matches!(analysis.verdict(), Verdict::Refused { .. }));
        let refused = command::floors(call, facts, policy).filter(|_| !is_readable);
        steps.push(step("shell", refused));
        let files = floors::each_operand_floor(&facts.paths, &policy.zones);
        steps.extend(files.into_iter().map(|(layer, denial)| step(layer, denial)));
        let url = analysis.and_then(|analysis| command::unreachable_url(analysis, policy));
        steps.push(step("address", url));
    }

    /// What the mode says, or what follows from a question where nobody can be asked.
    fn mode_step(
        &self,
        spec: &ToolSpec,
        facts: &Facts,
        session: &Session,
        decision: &Decision,
        steps: &mut Vec<Step>,
    ) {
        // Of a line that never runs there is nothing more to say.
        let is_unreadable = spec.mode == ToolMode::Shell
            && steps
                .iter()
                .any(|step| step.layer == "shell" && step.verdict != StepVerdict::Passed);
        match self.policy().ask(spec, facts, session) {
            Err(_) if is_unreadable => {}
            Ok(basis) => steps.push(Step {
                layer: "mode",
                verdict: StepVerdict::Allowed(basis),
            }),
            Err(reason) => steps.push(Step {
                layer: reason.layer,
                verdict: StepVerdict::Asked {
                    code: reason.code,
                    reason: reason.text,
                },
            }),
        }
        match decision {
            Decision::Deny(denial) if !holds(steps, denial) => steps.push(Step {
                layer: denial.floor,
                verdict: StepVerdict::Refused(denial.clone()),
            }),
            Decision::Allow(authorized) if *authorized.basis() == Basis::Unattended => steps.push(Step {
                layer: "unattended",
                verdict: StepVerdict::Allowed(Basis::Unattended),
            }),
            Decision::Deny(_) | Decision::Allow(_) | Decision::Ask(_) => {}
        }
    }

    /// What becomes of this tool's calls in this session.
    pub fn outlook(&self, spec: &ToolSpec, session: &Session) -> Outlook {
        if !session.caller.has(Scope::Tools) {
            return Outlook::Refused;
        }
        let policy = self.policy();
        let zones = &policy.zones;
        let reads_files = match spec.mode {
            ToolMode::ReadText | ToolMode::ListFiles | ToolMode::StudyPlan | ToolMode::GitRead => true,
            ToolMode::WriteText
            // What the index holds may be read by everybody: it is made without what the zones keep apart.
            | ToolMode::SearchKnowledge
            | ToolMode::ReadDocument
            | ToolMode::ListDocuments
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::Command
            | ToolMode::HttpGet
            | ToolMode::HttpPost
            | ToolMode::PageTitle
            | ToolMode::Shell
            | ToolMode::Sandbox
            | ToolMode::GitClone
            | ToolMode::GitCommit
            | ToolMode::GitPush
            | ToolMode::Mcp
            | ToolMode::SearchTools
            | ToolMode::LastOutput
            | ToolMode::Introspect => false,
        };
        let asks_by_zone = session.mode != Mode::FullAuto && reads_files && !zones.read.is_empty();
        let is_free_by_zone =
            session.mode == Mode::ReadOnly && spec.effect == Effect::Write && !zones.no_prompt.is_empty();
        let depends = match (spec.mode, session.mode) {
            (ToolMode::Shell, Mode::ReadOnly | Mode::PlanOnly) => true,
            (_, _) => asks_by_zone || is_free_by_zone,
        };
        if depends {
            return Outlook::Depends;
        }
        // Of lines for the shell only those in full-auto are left here.
        let is_asked = spec.mode != ToolMode::Shell && policy.ask(spec, &Facts::default(), session).is_err();
        if !is_asked {
            return Outlook::Allowed;
        }
        match (session.mode, session.attendance) {
            (Mode::PlanOnly, _) | (_, Attendance::Deny) => Outlook::Refused,
            (_, Attendance::Attended) => Outlook::Asks,
            (_, Attendance::Approve) if spec.mode == ToolMode::GitPush => Outlook::Refused,
            (_, Attendance::Approve) => Outlook::Allowed,
        }
    }
}

fn step(layer: &'static str, denial: Option<Denial>) -> Step {
    Step {
        layer,
        verdict: denial.map_or(StepVerdict::Passed, StepVerdict::Refused),
    }
}

fn holds(steps: &[Step], denial: &Denial) -> bool {
    steps
        .iter()
        .any(|step| matches!(&step.verdict, StepVerdict::Refused(found) if found == denial))
}

#[cfg(test)]
mod tests;

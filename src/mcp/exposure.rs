//! What is offered to other agents: a pure function over a tool's row.

use tidegate_core::{
    caller::{Caller, Mode},
    tool::{Effect, ToolMode, ToolSpec},
};

/// To whom a tool is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// To every key that may use it: nothing changes, nothing leaves.
    Reads,
    /// Where the operator allows writes here, to keys whose mode allows more than planning.
    Writes,
    /// To nobody.
    Never,
}

/// To whom the tool is offered. A command line, a program and a copy or change of a repository are offered to nobody,
/// whatever their row says; of all others the effect decides.
pub fn exposure(spec: &ToolSpec) -> Exposure {
    match spec.mode {
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
        | ToolMode::GitRead
        | ToolMode::Mcp
        | ToolMode::Introspect => by_effects(spec.effect, spec.mode.effect()),
        // An earlier result belongs to the turn that made it; here every call is a turn of its own.
        ToolMode::SearchTools
        | ToolMode::LastOutput
        | ToolMode::Shell
        | ToolMode::Sandbox
        | ToolMode::GitClone
        | ToolMode::GitCommit
        | ToolMode::GitPush => Exposure::Never,
    }
}

/// By what the row says and by what the mode does at least: a row that says less is believed by nobody.
fn by_effects(row: Effect, mode: Effect) -> Exposure {
    match (row, mode) {
        (Effect::Read, Effect::Read) => Exposure::Reads,
        (Effect::Read | Effect::Write | Effect::Network | Effect::External, _) => Exposure::Writes,
    }
}

/// Whether the tool is offered to this caller, whose runs have that mode. Which tools a key may use at all is the
/// engine's to say.
pub fn is_offered(spec: &ToolSpec, allow_writes: bool, mode: Mode) -> bool {
    match exposure(spec) {
        Exposure::Reads => true,
        Exposure::Writes => allow_writes && mode > Mode::PlanOnly,
        Exposure::Never => false,
    }
}

/// Whether the caller may use a tool of that kind that is offered here.
pub(super) fn offers_mode(specs: &[std::sync::Arc<ToolSpec>], mode: ToolMode) -> bool {
    specs
        .iter()
        .any(|spec| spec.mode == mode && exposure(spec) == Exposure::Reads)
}

/// Whether the caller may ask the agent.
pub(super) fn may_ask(caller: &Caller) -> bool {
    use tidegate_core::caller::Scope;
    caller.has(Scope::Chat) || caller.has(Scope::Tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFECTS: [Effect; 4] = [Effect::Read, Effect::Write, Effect::Network, Effect::External];

    fn spec(mode: ToolMode, effect: Effect) -> ToolSpec {
        ToolSpec {
            name: "tool".to_owned(),
            description: String::new(),
            mode,
            effect,
            parameters: Vec::new(),
            input_schema: None,
            timeout_ms: 1,
            output_bytes_max: 1,
        }
    }

    #[test]
    fn without_leave_to_write_nothing_is_offered_that_does_more_than_read() {
        for mode in ToolMode::ALL {
            for effect in EFFECTS {
                for ceiling in Mode::ALL {
                    let spec = spec(mode, effect);
                    if is_offered(&spec, false, ceiling) {
                        assert_eq!(effect, Effect::Read, "{mode:?}");
                        assert_eq!(
                            mode.effect(),
                            Effect::Read,
                            "a row that says less than {mode:?} does"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn with_leave_a_key_that_may_only_plan_is_still_offered_reads_alone() {
        for mode in ToolMode::ALL {
            for effect in EFFECTS {
                let spec = spec(mode, effect);
                assert_eq!(
                    is_offered(&spec, true, Mode::PlanOnly),
                    is_offered(&spec, false, Mode::PlanOnly)
                );
            }
        }
        let write = spec(ToolMode::WriteText, Effect::Write);
        assert!(is_offered(&write, true, Mode::ReadOnly) && !is_offered(&write, false, Mode::FullAuto));
    }

    #[test]
    fn programs_and_repositories_are_offered_to_nobody() {
        for mode in [
            ToolMode::Shell,
            ToolMode::Sandbox,
            ToolMode::GitClone,
            ToolMode::GitCommit,
            ToolMode::GitPush,
        ] {
            for effect in EFFECTS {
                assert!(!is_offered(&spec(mode, effect), true, Mode::FullAuto), "{mode:?}");
            }
        }
    }
}

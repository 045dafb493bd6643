//! One scenario, from its first step to its last check.

use anyhow::{Context as _, Result};
use serde_json::json;
use tidegate_core::clock::Timestamp;

use super::api::{self, Who};
use super::check;
use super::form::{Chat, Scenario, Step, shown};
use super::policy;
use super::stage::{House, Plan, Stage};

/// The day of a scenario that names none.
const DAY_ONE: &str = "2026-03-02T09:00:00Z";
/// Between two steps of which the later names no time, in seconds.
const STEP_S: i64 = 60;

/// What came of a scenario.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What did not hold, expected and actual; empty where all did.
    pub(super) failures: Vec<String>,
    /// What a reader should know besides.
    pub(super) notes: Vec<String>,
    /// How often a model was asked for facts.
    pub(super) extractions: usize,
}

/// Plays a scenario. An error is one of the player or of the scenario, and counts as a failure.
pub(super) fn scenario(house: &House, scenario: &Scenario) -> Outcome {
    let mut outcome = Outcome::default();
    let unknown = scenario.unknown();
    if !unknown.is_empty() {
        outcome
            .notes
            .push(format!("not looked at, not known here: {}", unknown.join(", ")));
    }
    if let Err(error) = on_stage(house, scenario, &mut outcome) {
        outcome.failures.push(format!("{error:#}"));
    }
    outcome
}

fn on_stage(house: &House, scenario: &Scenario, outcome: &mut Outcome) -> Result<()> {
    let kinds = policy::kinds(&scenario.policy)?;
    let begin = match scenario.steps.iter().find_map(Step::at) {
        Some(at) => at,
        None => DAY_ONE.parse()?,
    };
    let plan = Plan {
        kinds: &kinds,
        begin,
        by_rules: false,
    };
    let mut stage = Stage::open(house, &plan)?;
    let played = play(&mut stage, scenario).and_then(|()| check::all(&mut stage, scenario));
    outcome.extractions = stage.seen(|script| script.extractions);
    outcome.notes.append(&mut stage.notes);
    let failures = match played {
        Ok(failures) => failures,
        Err(error) => vec![format!("{error:#}")],
    };
    outcome.failures.extend(failures);
    stage.close();
    Ok(())
}

/// The steps; the clock stands at the latest of them in the end.
fn play(stage: &mut Stage, scenario: &Scenario) -> Result<()> {
    let mut latest = stage.now();
    for (number, step) in scenario.steps.iter().enumerate() {
        let at = match step.at() {
            Some(at) => at,
            None => Timestamp::from_second(stage.now().as_second() + STEP_S)?,
        };
        stage.turn_clock(at)?;
        take(stage, step).with_context(|| format!("step {}", number + 1))?;
        latest = latest.max(at);
    }
    stage.turn_clock(latest)
}

fn take(stage: &mut Stage, step: &Step) -> Result<()> {
    match step {
        Step::Chat(chat) => stage.chat(chat),
        Step::Restart { .. } => stage.restart(),
        Step::Forget {
            user, kind, value, ..
        } => {
            let who = Who(user.as_deref());
            let memory = api::memory(stage.daemon()?, who)?;
            let wanted = shown(value);
            let found = memory
                .facts
                .iter()
                .find(|fact| check::is_fact(fact, kind, &wanted));
            if let Some(id) = found.and_then(|fact| fact["id"].as_str()) {
                return api::forget(stage.daemon()?, who, id);
            }
            stage
                .notes
                .push(format!("there was no {kind} {wanted:?} to forget"));
            Ok(())
        }
        Step::EraseUser { user, .. } => api::erase(stage.daemon()?, Who(user.as_deref())),
    }
}

/// A turn that says nothing of the person.
pub(super) fn neutral(user: Option<&str>) -> Chat {
    Chat {
        user: user.map(str::to_owned),
        messages: vec![json!({"role": "user", "content": "Name three rivers."})],
        ..Chat::default()
    }
}

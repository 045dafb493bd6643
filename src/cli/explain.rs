//! `tidegate explain`: what would become of one call of a tool, layer by layer, and how to allow it. Goes through the
//! same facts and the same gate as a run, and runs nothing.

mod parsed;
mod way;

use serde_json::{Value, json};
use tidegate_core::{
    caller::{Caller, Mode, Origin, Scope},
    id::{KeyId, UserId},
    tool::Arguments,
};
use tidegate_engine::explain::{CallExplanation, CallQuestion};
use tidegate_gate::{Decision, StepVerdict};

use super::{
    args::{self, ModeName},
    error::Error,
    output::{self, Out},
};
use crate::{
    app::{App, Purpose},
    config::{Environment, Settings},
    lifecycle::Lifecycle,
};

/// The key in whose name this looks: it exists nowhere else.
const KEY: &str = "cli";
/// Exit code where a person would be asked.
const ASKED: u8 = 3;
/// Exit code where it would be refused.
const REFUSED: u8 = 4;

/// Explains one call; the exit code is 0 where it may run, 3 where a person is asked, 4 where it is refused.
pub async fn run(
    settings: Settings,
    environment: &Environment,
    command: &args::Explain,
    out: Out<'_>,
) -> Result<u8, Error> {
    let question = question(command)?;
    let user = question.caller.user.to_string();
    let lifecycle = Lifecycle::new();
    let outcome = ask(settings, environment, question, &lifecycle).await;
    lifecycle.close().await;
    let found = outcome?;
    if command.output.json {
        output::json(out, &report(&found, &user))?;
    } else {
        print(&found, &user, out)?;
    }
    Ok(match (&found.arguments, &found.explanation.decision) {
        (Err(_), _) | (Ok(()), Decision::Deny(_)) => REFUSED,
        (Ok(()), Decision::Ask(_)) => ASKED,
        (Ok(()), Decision::Allow(_)) => 0,
    })
}

async fn ask(
    settings: Settings,
    environment: &Environment,
    question: CallQuestion,
    lifecycle: &Lifecycle,
) -> Result<CallExplanation, Error> {
    let app = Box::pin(App::build(settings, environment, lifecycle, Purpose::Look)).await?;
    let explained = Box::pin(app.engine().explain_call(question)).await;
    explained.map_err(|error| Error::NotFound(error.to_string()))
}

fn question(command: &args::Explain) -> Result<CallQuestion, Error> {
    let parsed: Value = serde_json::from_str(&command.arguments)
        .map_err(|error| Error::Usage(format!("--args is no JSON ({error}); write one object")))?;
    let arguments = match parsed {
        Value::Object(map) => Arguments::Object(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let text = "--args must be a JSON object, such as '{\"path\": \"notes.txt\"}'";
            return Err(Error::Usage(text.to_owned()));
        }
    };
    let key_id = KeyId::new(KEY);
    let user =
        UserId::of(&key_id, command.user.as_deref()).map_err(|fault| Error::Usage(fault.to_string()))?;
    Ok(CallQuestion {
        caller: Caller {
            key_id,
            user,
            scopes: [Scope::Chat, Scope::Tools].into(),
            mode_ceiling: Mode::FullAuto,
            models: None,
            tools: None,
            tokens_per_day: None,
        },
        origin: Origin::Http,
        mode: Some(match command.mode {
            ModeName::PlanOnly => Mode::PlanOnly,
            ModeName::Readonly => Mode::ReadOnly,
            ModeName::FullAuto => Mode::FullAuto,
        }),
        tool: command.tool.clone(),
        arguments,
    })
}

/// One line of the table of layers.
struct Row {
    layer: String,
    verdict: &'static str,
    code: Option<String>,
    why: String,
}

impl Row {
    fn new(layer: impl Into<String>, verdict: &'static str, why: impl Into<String>) -> Self {
        Self {
            layer: layer.into(),
            verdict,
            code: None,
            why: why.into(),
        }
    }

    fn because(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }
}

/// The layers in the order in which a run meets them: who asks, the arguments, the operator's hooks, the gate.
fn rows(found: &CallExplanation) -> Vec<Row> {
    let mut rows: Vec<Row> = found
        .explanation
        .steps
        .iter()
        .map(|step| match &step.verdict {
            StepVerdict::Passed => Row::new(step.layer, "passed", ""),
            StepVerdict::Allowed(basis) => {
                Row::new(step.layer, "allowed", format!("by `{}`", basis.layer())).because(basis.layer())
            }
            StepVerdict::Asked { code, reason } => {
                Row::new(step.layer, "asked", reason.clone()).because(code)
            }
            StepVerdict::Refused(denial) => {
                let code = if denial.floor == step.layer || denial.floor == denial.code {
                    denial.code.to_owned()
                } else {
                    format!("{}, {}", denial.floor, denial.code)
                };
                Row::new(step.layer, "refused", denial.reason.clone()).because(&code)
            }
        })
        .collect();
    let arguments = match &found.arguments {
        Ok(()) => Row::new("arguments", "passed", ""),
        Err(problem) => Row::new("arguments", "refused", problem.clone()).because("arguments"),
    };
    let hooks = if found.hooks.is_empty() {
        Row::new("hooks", "none", "")
    } else {
        Row::new("hooks", "not run", found.hooks.join(", "))
    };
    let at = rows.len().min(1);
    rows.splice(at..at, [arguments, hooks]);
    rows
}

/// What follows: the kind, the layer, the code, the reason.
fn decision(found: &CallExplanation) -> (&'static str, String, String, String) {
    if let Err(problem) = &found.arguments {
        let name = || "arguments".to_owned();
        return ("refused", name(), name(), problem.clone());
    }
    match &found.explanation.decision {
        Decision::Allow(authorized) => {
            let layer = authorized.basis().layer().to_owned();
            ("allowed", layer.clone(), layer, String::new())
        }
        Decision::Ask(question) => (
            "asked",
            question.layer.to_owned(),
            question.code.to_owned(),
            question.reason.clone(),
        ),
        Decision::Deny(denial) => (
            "refused",
            denial.floor.to_owned(),
            denial.code.to_owned(),
            denial.reason.clone(),
        ),
    }
}

fn print(found: &CallExplanation, user: &str, out: Out<'_>) -> Result<(), Error> {
    let spec = &found.spec;
    writeln!(
        out,
        "tool      {} ({}, {})",
        output::plain(&spec.name),
        spec.mode.name(),
        spec.effect.name()
    )?;
    writeln!(out, "mode      {}", found.mode.name())?;
    writeln!(out, "user      {}", output::plain(user))?;
    for (name, text) in parsed::lines(&found.facts) {
        writeln!(out, "{name:<9} {}", output::plain(&text))?;
    }
    writeln!(out)?;
    let rows: Vec<Vec<String>> = rows(found)
        .into_iter()
        .map(|row| {
            let code = row
                .code
                .filter(|code| *code != row.layer && row.verdict != "allowed");
            let why = code.map_or_else(|| row.why.clone(), |code| format!("{code}: {}", row.why));
            vec![row.layer, row.verdict.to_owned(), why]
        })
        .collect();
    output::columns(&mut *out, &["LAYER", "VERDICT", "WHY"], &rows)?;
    let (kind, layer, code, reason) = decision(found);
    let code = if code == layer {
        String::new()
    } else {
        format!(" ({code})")
    };
    writeln!(
        out,
        "\ndecision  {kind} by `{layer}`{code}{}{}",
        if reason.is_empty() { "" } else { ": " },
        output::plain(&reason)
    )?;
    for way in way::ways(found) {
        writeln!(out, "to allow  {}", output::plain(&way))?;
    }
    Ok(())
}

fn report(found: &CallExplanation, user: &str) -> Value {
    let layers: Vec<Value> = rows(found)
        .into_iter()
        .map(|row| json!({"layer": row.layer, "verdict": row.verdict, "code": row.code, "why": row.why}))
        .collect();
    let (kind, layer, code, reason) = decision(found);
    json!({
        "tool": found.spec.name,
        "tool_mode": found.spec.mode.name(),
        "effect": found.spec.effect.name(),
        "mode": found.mode.name(),
        "user": user,
        "parsed": parsed::value(&found.facts),
        "layers": layers,
        "hooks": found.hooks,
        "decision": {"kind": kind, "layer": layer, "code": code, "reason": reason},
        "to_allow": way::ways(found),
    })
}

//! The only path to a tool: check → hooks (gates) → permission gate → approval → audit → journal → run → guard → observers → log.
//!
//! Whatever can refuse fails closed: an error, a panic or a time-out in a gate is a refusal. Whatever only
//! reacts fails open.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tidegate_core::{
    approval::{Approval, ApprovalState},
    error::StoreError,
    run::Stage,
    tool::{Arguments, FailureCode, ToolCall, ToolMode, ToolResult, ToolSpec},
};
use tidegate_gate::{Authorized, Decision, Denial, Facts, Grant, Question};
use tokio::time::Instant;

use crate::{
    approval,
    event::RunEvent,
    guard,
    hooks::HookDecision,
    host,
    memory::learner,
    results,
    tool_log::{self, Verdict},
    trail,
    turn::Turn,
    waves::{NodeEnd, bounded},
};

/// How long resolving a call's facts may take.
const FACTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Names of tools listed to a model that called one that does not exist.
const NAMES_MAX: usize = 64;

/// Runs one call of the model's, or says why not. Never fails: every outcome is a result, guarded and not yet
/// clipped.
pub(crate) async fn invoke(turn: &Turn, call: ToolCall) -> ToolResult {
    let started = Instant::now();
    turn.emitter
        .send(RunEvent::ToolStarted {
            call_id: call.id.clone(),
            tool: call.name.clone(),
        })
        .await;
    let (spec, verdict, result) = match turn.tools.get(&call.name) {
        None => (
            None,
            Verdict::refused("unknown_tool"),
            unknown_tool(turn, &call.name),
        ),
        Some(spec) if !turn.tools.is_offered(&call.name) => {
            let result = turn.tools.shown_now(&call.name);
            (Some(spec), Verdict::refused("not_offered"), result)
        }
        Some(spec) => {
            let (verdict, result) = attempt(turn, spec, call.clone()).await;
            (Some(spec), verdict, result)
        }
    };
    let result = match spec {
        Some(spec) => guard::result(turn, spec, result),
        None => result,
    };
    if let (ToolResult::Ok { citations, .. }, Some(shown)) = (&result, &turn.shown) {
        shown.add(citations);
    }
    if let Some(spec) = spec
        && verdict.is_allowed()
    {
        observe(turn, spec, &call, &result).await;
    }
    tool_log::write(
        turn,
        spec.map(AsRef::as_ref),
        &call,
        &verdict,
        &result,
        started.elapsed(),
    );
    turn.emitter
        .send(RunEvent::ToolFinished {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            status: result.status(),
        })
        .await;
    result
}

/// Everything up to and including the run itself.
async fn attempt(turn: &Turn, spec: &Arc<ToolSpec>, call: ToolCall) -> (Verdict, ToolResult) {
    if let Arguments::Unparsable { problem, .. } = &call.arguments {
        let message = format!("the arguments are not usable: {problem}; send one JSON object");
        return (
            Verdict::refused("malformed"),
            ToolResult::failed(FailureCode::InvalidArguments, message),
        );
    }
    let changed = change(turn, spec);
    if let Err(result) = turn.engine.tools().check(&call, spec) {
        // Whoever had the tool knows best why it is gone.
        let verdict = Verdict::refused(if changed.is_some() { "changed" } else { "arguments" });
        return (verdict, result);
    }
    if let Some(result) = changed {
        return (Verdict::refused("changed"), result);
    }
    if let Some(refusal) = ask_hooks(turn, spec, &call).await {
        let _recorded = trail::record(turn, spec, &call, trail::Ruling::denied("hook", "hook")).await;
        return (Verdict::refused("hook"), refusal);
    }
    let (decision, facts) = decide(turn, spec, &call, None).await;
    match decision {
        Decision::Deny(denial) => refuse(turn, spec, &call, denial).await,
        Decision::Ask(question) => ask(turn, spec, &call, &facts, *question).await,
        Decision::Allow(authorized) => go(turn, spec, &call, &facts, authorized, None).await,
    }
}

/// What a call gets of a tool that is no longer the one that the model was shown, and that the gate would judge by
/// what is gone.
fn change(turn: &Turn, spec: &Arc<ToolSpec>) -> Option<ToolResult> {
    let catalogue = turn.engine.catalogue();
    let message = match catalogue.row(&spec.name) {
        Some(row) if Arc::ptr_eq(&row.spec, spec) || row.spec == *spec => return None,
        Some(_) => format!(
            "the tool `{}` has changed since it was offered to you, so the call was not made. Do not call it again in this turn; say so in the answer.",
            spec.name
        ),
        None => format!(
            "the tool `{}` is no longer there: its server has gone or no longer has it. Do not call it again in this turn; go on without it.",
            spec.name
        ),
    };
    Some(ToolResult::failed(FailureCode::UnknownTool, message))
}

/// The gate has refused.
async fn refuse(turn: &Turn, spec: &ToolSpec, call: &ToolCall, denial: Denial) -> (Verdict, ToolResult) {
    turn.denials.fetch_add(1, Ordering::SeqCst);
    let verdict = Verdict::refused(denial.code);
    // A refusal stands whether or not it can be recorded.
    let _recorded = trail::record(turn, spec, call, trail::Ruling::denied(denial.floor, denial.code)).await;
    let result = ToolResult::Refused {
        floor: denial.floor.to_owned(),
        reason: denial.reason,
    };
    (verdict, result)
}

/// The gate would let it pass if a person did: an approval of exactly this call is spent, or one is asked for.
async fn ask(
    turn: &Turn,
    spec: &Arc<ToolSpec>,
    call: &ToolCall,
    facts: &Facts,
    question: Question,
) -> (Verdict, ToolResult) {
    match approval::claim(turn, &question).await {
        Ok(Some((approval, grant))) => return spend(turn, spec, call, &approval, &grant).await,
        Ok(None) => {}
        Err(error) => return unasked(turn, spec, call, &question, &error).await,
    }
    if approval::breaker_is_open(turn) {
        let reason = "too many calls of this turn were refused or need an approval; stop and report.";
        return refuse(turn, spec, call, Denial::new("denial_breaker", reason)).await;
    }
    let approval = match approval::ask(turn, spec, call, facts, &question).await {
        Ok(approval) => approval,
        Err(error) => return unasked(turn, spec, call, &question, &error).await,
    };
    turn.denials.fetch_add(1, Ordering::SeqCst);
    let ruling = trail::Ruling::asked(question.layer, question.code, &approval);
    let _recorded = trail::record(turn, spec, call, ruling).await;
    let result = ToolResult::NeedsApproval {
        reason: question.reason,
        approval_id: Some(approval.id),
    };
    (Verdict::asked(question.code), result)
}

/// Runs a call on the approval it has claimed, if the gate still says so on facts resolved just now.
async fn spend(
    turn: &Turn,
    spec: &Arc<ToolSpec>,
    call: &ToolCall,
    approval: &Approval,
    grant: &Grant,
) -> (Verdict, ToolResult) {
    let (decision, facts) = decide(turn, spec, call, Some(grant)).await;
    match decision {
        Decision::Allow(authorized) => {
            turn.denials.store(0, Ordering::SeqCst);
            let (verdict, result) = go(turn, spec, call, &facts, authorized, Some(approval)).await;
            let state = if verdict.is_allowed() {
                ApprovalState::Consumed
            } else {
                ApprovalState::Expired
            };
            approval::settle(turn, &approval.id, state).await;
            (verdict, result)
        }
        Decision::Deny(denial) => {
            approval::settle(turn, &approval.id, ApprovalState::Expired).await;
            refuse(turn, spec, call, denial).await
        }
        Decision::Ask(question) => {
            approval::settle(turn, &approval.id, ApprovalState::Expired).await;
            let reason = "what it would touch has changed since it was approved.".to_owned();
            turn.denials.fetch_add(1, Ordering::SeqCst);
            let ruling = trail::Ruling::asked(question.layer, "changed_since_approval", approval);
            let _recorded = trail::record(turn, spec, call, ruling).await;
            let result = ToolResult::NeedsApproval {
                reason,
                approval_id: None,
            };
            (Verdict::asked("changed_since_approval"), result)
        }
    }
}

/// The question cannot be put or looked up: nothing runs.
async fn unasked(
    turn: &Turn,
    spec: &ToolSpec,
    call: &ToolCall,
    question: &Question,
    error: &StoreError,
) -> (Verdict, ToolResult) {
    tracing::error!(%error, "approvals cannot be kept: a call of `{}` is refused", spec.name);
    let reason = format!(
        "{} The server cannot keep the question at the moment.",
        question.reason
    );
    refuse(turn, spec, call, Denial::new("approvals", reason)).await
}

/// Records that a call may run, and runs it.
async fn go(
    turn: &Turn,
    spec: &Arc<ToolSpec>,
    call: &ToolCall,
    facts: &Facts,
    authorized: Authorized<ToolCall>,
    approval: Option<&Approval>,
) -> (Verdict, ToolResult) {
    let ruling = trail::Ruling::allowed(authorized.basis(), approval);
    if let Err(fault) = trail::record(turn, spec, call, ruling).await {
        tracing::error!(%fault, "the audit trail is required and cannot be written: a call of `{}` is refused", spec.name);
        let result = ToolResult::Refused {
            floor: "audit".to_owned(),
            reason: "the server cannot record this action at the moment.".to_owned(),
        };
        return (Verdict::refused("audit"), result);
    }
    if facts.is_write() {
        turn.writes.fetch_add(1, Ordering::SeqCst);
    }
    dispatch(turn, spec, call, authorized).await
}

/// Operator gates, in order. The first that does not pass is the answer.
async fn ask_hooks(turn: &Turn, spec: &ToolSpec, call: &ToolCall) -> Option<ToolResult> {
    let context = turn.tool_context();
    for hook in &turn.engine.hooks().gates {
        let limit = Duration::from_millis(hook.timeout_ms());
        let reason = match bounded(hook.before_tool(call, spec, &context), limit).await {
            NodeEnd::Done(Ok(HookDecision::Pass)) => continue,
            NodeEnd::Done(Ok(HookDecision::Refuse(reason))) => reason,
            NodeEnd::Done(Err(fault)) => {
                tracing::warn!(hook = hook.name(), %fault, "gate hook `{}` failed: the call is refused", hook.name());
                format!("the check `{}` failed.", hook.name())
            }
            NodeEnd::TimedOut => {
                tracing::warn!(
                    hook = hook.name(),
                    "gate hook `{}` timed out: the call is refused",
                    hook.name()
                );
                format!("the check `{}` did not answer in time.", hook.name())
            }
            NodeEnd::Panicked(panic) => {
                tracing::error!(
                    hook = hook.name(),
                    panic,
                    "gate hook `{}` panicked: the call is refused",
                    hook.name()
                );
                format!("the check `{}` failed.", hook.name())
            }
        };
        return Some(ToolResult::Refused {
            floor: format!("hook:{}", hook.name()),
            reason,
        });
    }
    None
}

/// The permission gate, on facts resolved just now. A gate that cannot say yes has said no.
async fn decide(turn: &Turn, spec: &ToolSpec, call: &ToolCall, grant: Option<&Grant>) -> (Decision, Facts) {
    let denied = |reason: &str| (Decision::Deny(Denial::new("gate", reason)), Facts::default());
    let facts = turn.engine.tools().facts(call, spec, turn.session.mode);
    let mut facts = match bounded(facts, FACTS_TIMEOUT).await {
        NodeEnd::Done(facts) => facts,
        NodeEnd::TimedOut => return denied("the call could not be checked in time."),
        NodeEnd::Panicked(panic) => {
            tracing::error!(tool = %spec.name, panic, "resolving the facts of `{}` panicked", spec.name);
            return denied("the call could not be checked.");
        }
    };
    facts.writes_before = turn.writes.load(Ordering::SeqCst);
    let gate = turn.engine.gate();
    let decision = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        gate.decide(call.clone(), spec, &facts, &turn.session, grant)
    }));
    match decision {
        Ok(decision) => (decision, facts),
        Err(_panic) => {
            tracing::error!(tool = %spec.name, "the permission gate panicked on a call of `{}`", spec.name);
            denied("the call could not be checked.")
        }
    }
}

/// Runs an allowed call. A side effect is written to the journal before it starts and after it reports; where
/// the journal cannot be written, nothing starts.
async fn dispatch(
    turn: &Turn,
    spec: &ToolSpec,
    call: &ToolCall,
    authorized: Authorized<ToolCall>,
) -> (Verdict, ToolResult) {
    if spec.effect.is_read_only() {
        return (Verdict::allowed(), run(turn, spec, authorized).await);
    }
    let stage = Stage::BeforeEffect {
        call_id: call.id.clone(),
        tool: spec.name.clone(),
    };
    if let Err(error) = turn.checkpoint(stage, Some(call)).await {
        tracing::error!(%error, "the journal cannot be written: a call of `{}` is refused", spec.name);
        let reason = "the server cannot record this action at the moment.".to_owned();
        return (
            Verdict::refused("journal"),
            ToolResult::Refused {
                floor: "journal".to_owned(),
                reason,
            },
        );
    }
    let guard = turn.effect_started();
    let result = run(turn, spec, authorized).await;
    let stage = Stage::AfterEffect {
        call_id: call.id.clone(),
        tool: spec.name.clone(),
        status: result.status().to_owned(),
    };
    if let Err(error) = turn.checkpoint(stage, None).await {
        tracing::error!(%error, "the journal cannot be written after a call of `{}`", spec.name);
    }
    guard.settle();
    (Verdict::allowed(), result)
}

/// The run itself, under the tool's own deadline and behind a panic net.
async fn run(turn: &Turn, spec: &ToolSpec, call: Authorized<ToolCall>) -> ToolResult {
    if spec.mode.is_control() {
        return control(turn, spec, call.get());
    }
    let mut context = turn.tool_context();
    let (host, desk) = host::open();
    context.host = host;
    if spec.mode == ToolMode::StudyPlan {
        // Only now: the decision that it may run knows nothing of the person.
        context.learner = learner::of(turn).await;
    }
    let limit = Duration::from_millis(spec.timeout_ms);
    let told = call.get().clone();
    let running = bounded(turn.engine.tools().run(call, &context), limit);
    match desk.attend(turn, spec, &told, running).await {
        NodeEnd::Done(result) => result,
        NodeEnd::TimedOut => ToolResult::TimedOut {
            after_ms: spec.timeout_ms,
        },
        NodeEnd::Panicked(panic) => {
            tracing::error!(tool = %spec.name, panic, "the runner of `{}` panicked", spec.name);
            ToolResult::failed(
                FailureCode::Internal,
                "the tool broke; the operator's log says how",
            )
        }
    }
}

/// Control tools: they need the turn itself.
fn control(turn: &Turn, spec: &ToolSpec, call: &ToolCall) -> ToolResult {
    match spec.mode {
        ToolMode::Introspect => ToolResult::ok(turn.capability_report()),
        ToolMode::SearchTools => turn.tools.search(call.arguments.object().unwrap_or(&serde_json::Map::new())),
        ToolMode::LastOutput => last_output(turn, call),
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
        | ToolMode::Shell
        | ToolMode::Sandbox
        | ToolMode::GitRead
        | ToolMode::GitClone
        | ToolMode::GitCommit
        | ToolMode::GitPush
        | ToolMode::Mcp => ToolResult::failed(FailureCode::Internal, "this tool is not run by the engine"),
    }
}

/// A window of an earlier result of this turn.
fn last_output(turn: &Turn, call: &ToolCall) -> ToolResult {
    let Some(arguments) = call.arguments.object() else {
        return ToolResult::failed(
            FailureCode::InvalidArguments,
            "the arguments are not a JSON object",
        );
    };
    let handle = arguments
        .get("ref")
        .and_then(serde_json::Value::as_str)
        .filter(|text| !text.is_empty());
    // The check lets a number through as text too, because models write it so.
    let number = |name: &str| {
        let value = arguments.get(name)?;
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
        usize::try_from(number).ok()
    };
    if let Some(stored) = turn.results.find(handle) {
        let text = results::window(stored, number("offset").unwrap_or(0), number("length"));
        return ToolResult::ok(text);
    }
    let handles = turn.results.handles();
    let message = if handles.is_empty() {
        "no tool has been run in this turn yet".to_owned()
    } else {
        format!("no result of that ref is kept; there are: {}", handles.join(", "))
    };
    ToolResult::failed(FailureCode::NotFound, message)
}

/// Observers, in order. Their faults are logged and skipped.
async fn observe(turn: &Turn, spec: &ToolSpec, call: &ToolCall, result: &ToolResult) {
    let context = turn.tool_context();
    for hook in &turn.engine.hooks().observers {
        let limit = Duration::from_millis(hook.timeout_ms());
        match bounded(hook.after_tool(call, spec, result, &context), limit).await {
            NodeEnd::Done(Ok(())) => {}
            NodeEnd::Done(Err(fault)) => {
                tracing::warn!(hook = hook.name(), %fault, "observer hook `{}` failed", hook.name());
            }
            NodeEnd::TimedOut => {
                tracing::warn!(hook = hook.name(), "observer hook `{}` timed out", hook.name());
            }
            NodeEnd::Panicked(panic) => {
                tracing::error!(
                    hook = hook.name(),
                    panic,
                    "observer hook `{}` panicked",
                    hook.name()
                );
            }
        }
    }
}

fn unknown_tool(turn: &Turn, name: &str) -> ToolResult {
    let names: Vec<&str> = turn.tools.names().take(NAMES_MAX).collect();
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    let message = if names.is_empty() {
        format!("there is no tool `{name}`; no tools are available, answer directly")
    } else {
        format!("there is no tool `{name}`; the tools are: {}", names.join(", "))
    };
    ToolResult::failed(FailureCode::UnknownTool, message)
}

//! Waves, one after another, and what each leaves in the turn. The one loop of the product.
//!
//! A wave works on the turn as it stands and changes nothing; when all of its nodes have ended, their results
//! are merged here in call order, and the follow-ups they declare go to the end of the line. So a scripted
//! model gives the same transcript whatever finished first.

use std::time::Duration;

use tidegate_core::{
    id::CallId,
    message::{Message, Source},
    model::FinishReason,
    port::HeldTurn,
    tool::{Effect, FailureCode, ToolCall, ToolResult},
    usage::Role,
};

use crate::{
    approval,
    event::{Outcome, RunError, RunEvent},
    graph::{Node, Plan, PlannedCall, Unrunnable},
    invoke::invoke,
    notes::Note,
    planner::{self, Reply},
    results::clip,
    tool_log::{self, Verdict},
    turn::{Ending, Turn},
    waves::{NodeEnd, run_wave},
};

/// What a node may take beyond its tool's own deadline: hooks, facts, the journal.
const NODE_SLACK: Duration = Duration::from_mins(1);
/// Corrections of one kind in one turn.
const CORRECTIONS_MAX: u32 = 2;

/// What a node came to.
enum Done {
    Replied(Reply),
    Called(ToolResult),
    /// Nothing to run; the merge knows what to do.
    Merged,
}

/// Works until the turn has ended.
pub(crate) async fn drive(turn: &mut Turn) -> Ending {
    loop {
        let mut wave = turn.graph.next_wave();
        stop_after_denials(turn, &mut wave);
        if wave.is_empty() {
            return Ending::Failed(RunError::Store("the turn ran out of nodes".to_owned()));
        }
        let ends = {
            let turn = &*turn;
            Box::pin(run_wave(
                wave.clone(),
                turn.width(),
                |node| deadline(turn, node),
                |node| perform(turn, node),
            ))
            .await
        };
        for (node, end) in wave.into_iter().zip(ends) {
            match merge(turn, node, end).await {
                Ok(follow_ups) => turn.graph.follow(follow_ups),
                Err(ending) => return ending,
            }
        }
    }
}

/// After too many refusals in a row the next round is the last: a model that keeps trying would otherwise spend
/// the whole budget to arrive at the same no.
fn stop_after_denials(turn: &mut Turn, wave: &mut [Node]) {
    for node in wave {
        if *node == Node::Plan(Plan::Round) && approval::breaker_is_open(turn) {
            turn.notes.push(Note::Denied.message(""));
            *node = Node::Plan(Plan::Last(Outcome::DenialLimit));
        }
    }
}

fn deadline(turn: &Turn, node: &Node) -> Duration {
    match node {
        Node::Call(planned) => {
            let own = turn
                .server
                .get(&planned.call.name)
                .map_or(0, |spec| spec.timeout_ms);
            Duration::from_millis(own) + NODE_SLACK
        }
        Node::Plan(_) | Node::Repeat { .. } | Node::Unrunnable { .. } | Node::HandOver(_) => {
            turn.deadline
                .saturating_duration_since(tokio::time::Instant::now())
                + NODE_SLACK
        }
    }
}

async fn perform(turn: &Turn, node: Node) -> Done {
    match node {
        Node::Plan(plan) => Done::Replied(planner::ask(turn, plan).await),
        Node::Call(planned) => Done::Called(Box::pin(invoke(turn, planned.call)).await),
        Node::Repeat { .. } | Node::Unrunnable { .. } | Node::HandOver(_) => Done::Merged,
    }
}

async fn merge(turn: &mut Turn, node: Node, end: NodeEnd<Done>) -> Result<Vec<Node>, Ending> {
    match (node, end) {
        (Node::Plan(plan), NodeEnd::Done(Done::Replied(reply))) => merge_reply(turn, plan, reply).await,
        (Node::Plan(_), NodeEnd::TimedOut) => Err(Ending::Failed(RunError::TurnTimeout {
            after_ms: turn.engine.options().turn_timeout_ms,
        })),
        (Node::Plan(_), NodeEnd::Panicked(panic)) => {
            tracing::error!(panic, "the planner panicked");
            Err(Ending::Failed(RunError::Store("the planner broke".to_owned())))
        }
        (Node::Call(planned), end) => {
            let result = match end {
                NodeEnd::Done(Done::Called(result)) => result,
                NodeEnd::Done(Done::Replied(_) | Done::Merged) => ToolResult::Cancelled,
                NodeEnd::TimedOut => ToolResult::TimedOut {
                    after_ms: u64::try_from(deadline(turn, &Node::Call(planned.clone())).as_millis())
                        .unwrap_or(u64::MAX),
                },
                NodeEnd::Panicked(panic) => {
                    tracing::error!(panic, tool = %planned.call.name, "a tool node panicked");
                    ToolResult::failed(
                        FailureCode::Internal,
                        "the tool broke; the operator's log says how",
                    )
                }
            };
            merge_result(turn, &planned, &result);
            Ok(Vec::new())
        }
        (Node::Repeat { call, of }, _) => {
            repeat(turn, &call, &of);
            Ok(Vec::new())
        }
        (Node::Unrunnable { call, why }, _) => {
            decline(turn, &call, why);
            Ok(Vec::new())
        }
        (Node::HandOver(calls), _) => Err(hand_over(turn, calls).await),
        (Node::Plan(_), NodeEnd::Done(Done::Called(_) | Done::Merged)) => Err(Ending::Failed(
            RunError::Store("a node ended as another".to_owned()),
        )),
    }
}

/// Puts a result into the history and the stores of the turn.
fn merge_result(turn: &mut Turn, planned: &PlannedCall, result: &ToolResult) {
    let read_only = planned.effect.is_read_only();
    if !read_only {
        turn.repeats.invalidate();
    } else if !result.is_ok() {
        turn.repeats.forget(&planned.call);
    }
    let text = result.to_model_text();
    let handle = turn.results.keep(&planned.call.name, text.clone());
    let clipped = clip(&text, turn.engine.options().result_chars_max, &handle);
    answer(turn, &planned.call, clipped);
}

/// Gives a call the result of the earlier one it repeats.
fn repeat(turn: &mut Turn, call: &ToolCall, of: &CallId) {
    let earlier = turn.messages.iter().rev().find_map(|message| match message {
        Message::Tool { call_id, text, .. } if call_id == of => Some(text.clone()),
        Message::Tool { .. }
        | Message::Human { .. }
        | Message::ClientSystem { .. }
        | Message::Assistant { .. }
        | Message::Harness { .. }
        | Message::Recalled { .. } => None,
    });
    let text = earlier.unwrap_or_else(|| "(see the earlier, identical call)".to_owned());
    let text = format!("[same call as before, same result]\n{text}");
    let result = ToolResult::ok(text.clone());
    log(turn, call, &Verdict::reused(), &result);
    answer(turn, call, text);
}

/// Answers a call that is beyond a bound.
fn decline(turn: &mut Turn, call: &ToolCall, why: Unrunnable) {
    let options = turn.engine.options();
    let message = match why {
        Unrunnable::RoundFull => {
            format!(
                "not run: one reply may hold at most {} calls",
                options.calls_per_round_max
            )
        }
        Unrunnable::TurnFull => {
            format!(
                "not run: the turn's limit of {} tool calls is met",
                options.calls_per_turn_max
            )
        }
    };
    let result = ToolResult::failed(FailureCode::Budget, message);
    log(turn, call, &Verdict::refused("budget"), &result);
    answer(turn, call, result.to_model_text());
}

/// A call that took no time is a line in the tool log like any other.
fn log(turn: &Turn, call: &ToolCall, verdict: &Verdict, result: &ToolResult) {
    let spec = turn.server.get(&call.name).map(AsRef::as_ref);
    tool_log::write(turn, spec, call, verdict, result, Duration::ZERO);
}

fn answer(turn: &mut Turn, call: &ToolCall, text: String) {
    turn.messages.push(Message::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        text,
    });
}

/// Merges a reply of the model: books it, and decides what follows.
async fn merge_reply(turn: &mut Turn, plan: Plan, reply: Reply) -> Result<Vec<Node>, Ending> {
    turn.budget.count_round();
    turn.budget.book(Role::Main, reply.usage, reply.cost_usd);
    let notes = std::mem::take(&mut turn.notes);
    turn.messages.extend(notes);
    turn.emitter.next_round();
    if let Some(failure) = reply.failure {
        return Err(broke_off(turn, failure, reply.shown).await);
    }
    if reply.reason == Some(FinishReason::Length) {
        return cut(turn, plan, reply).await;
    }
    if !reply.calls.is_empty() {
        return Ok(calls(turn, reply));
    }
    if !reply.unknown.is_empty() && turn.counts.unknown_tool < CORRECTIONS_MAX && turn.budget.has_round() {
        turn.counts.unknown_tool += 1;
        turn.messages.push(planner::message(&reply.text, Vec::new()));
        let names: Vec<&str> = turn.offered.iter().map(|tool| tool.name.as_str()).collect();
        turn.notes.push(Note::UnknownTool.message(&names.join(", ")));
        return Ok(vec![next_plan(turn)]);
    }
    if reply.text.is_empty() {
        return empty(turn, plan).await;
    }
    let reason = reply.reason.unwrap_or(FinishReason::Stop);
    match plan {
        Plan::Round if turn.formats_apart() => {
            turn.messages.push(planner::message(&reply.text, Vec::new()));
            turn.notes.push(Note::Format.message(""));
            Ok(vec![Node::Plan(Plan::Format)])
        }
        Plan::Round | Plan::Format => Err(Ending::Finished {
            reason,
            outcome: Outcome::Answered,
        }),
        Plan::Last(outcome) => Err(Ending::Finished { reason, outcome }),
    }
}

/// The follow-ups of a reply with calls: each call in call order, then the planner or the hand-over.
fn calls(turn: &mut Turn, reply: Reply) -> Vec<Node> {
    let (mut for_client, for_server): (Vec<ToolCall>, Vec<ToolCall>) = reply
        .calls
        .into_iter()
        .partition(|call| turn.client.contains(&call.name));
    if !turn.request.parallel_tool_calls {
        for_client.truncate(1);
    }
    let mut nodes = Vec::with_capacity(for_server.len() + 1);
    let mut ran_anything = !for_client.is_empty() || for_server.is_empty();
    for (index, call) in for_server.iter().enumerate() {
        let node = place(turn, index, call.clone());
        ran_anything |= !matches!(node, Node::Repeat { .. });
        nodes.push(node);
    }
    turn.messages.push(planner::message(
        &reply.text,
        for_server.into_iter().chain(for_client.iter().cloned()).collect(),
    ));
    if !for_client.is_empty() {
        nodes.push(Node::HandOver(for_client));
        return nodes;
    }
    if !ran_anything {
        turn.counts.no_progress += 1;
        if turn.counts.no_progress >= CORRECTIONS_MAX {
            turn.notes.push(Note::LastWord.message(""));
            nodes.push(Node::Plan(Plan::Last(Outcome::TurnLimit)));
            return nodes;
        }
        turn.notes.push(Note::NoProgress.message(""));
    }
    nodes.push(next_plan(turn));
    nodes
}

/// Decides how a server call is run: alone, beside others, from an earlier result, or not at all.
fn place(turn: &mut Turn, index: usize, call: ToolCall) -> Node {
    if let Err(why) = turn.budget.admit_call(index) {
        return Node::Unrunnable { call, why };
    }
    // An unknown tool is answered without running anything, so it need not stand alone.
    let effect = turn
        .server
        .get(&call.name)
        .map_or(Effect::Read, |spec| spec.effect);
    let repeatable = effect.is_read_only()
        && turn
            .server
            .get(&call.name)
            .is_some_and(|spec| !spec.mode.is_control());
    if !effect.is_read_only() {
        turn.repeats.invalidate();
    } else if repeatable {
        if let Some(of) = turn.repeats.earlier(&call) {
            return Node::Repeat { call, of: of.clone() };
        }
        turn.repeats.note(&call);
    }
    Node::Call(PlannedCall { call, effect })
}

/// Another round, or the last word where a bound is met.
fn next_plan(turn: &mut Turn) -> Node {
    if turn.budget.tokens_spent() || turn.budget.cost_spent() {
        turn.notes.push(Note::LastWord.message(""));
        return Node::Plan(Plan::Last(Outcome::BudgetExceeded));
    }
    if !turn.budget.has_round() {
        turn.notes.push(Note::LastWord.message(""));
        return Node::Plan(Plan::Last(Outcome::TurnLimit));
    }
    Node::Plan(Plan::Round)
}

/// A reply that met its token limit. Nothing in it is executed. Once, where it had said nothing and neither the
/// client nor its quota set the limit, it is asked again with a note; else the cut is passed on as `length`.
async fn cut(turn: &mut Turn, plan: Plan, reply: Reply) -> Result<Vec<Node>, Ending> {
    let own_limit = turn.request.sampling.tokens_max.is_some() || reply.is_shortened;
    if reply.text.is_empty() && !reply.shown && !own_limit && turn.counts.cut == 0 && turn.budget.has_round()
    {
        turn.counts.cut += 1;
        turn.notes.push(Note::CutReply.message(""));
        return Ok(vec![Node::Plan(plan)]);
    }
    if !reply.shown && !reply.text.is_empty() {
        turn.emitter.show(reply.text).await;
    } else if !reply.shown && reply.is_shortened {
        turn.emitter
            .show("[The answer was cut off before it said anything: little is left of this key's daily token quota.]".to_owned())
            .await;
    } else if !reply.shown && !own_limit {
        turn.emitter
            .show("[The answer was cut off by the model's token limit before it said anything; raise `engine.answer_tokens_max` or ask for less.]".to_owned())
            .await;
    }
    Err(Ending::Finished {
        reason: FinishReason::Length,
        outcome: if reply.is_shortened {
            Outcome::BudgetExceeded
        } else {
            Outcome::Truncated
        },
    })
}

/// An empty reply: asked once more, then said so.
async fn empty(turn: &mut Turn, plan: Plan) -> Result<Vec<Node>, Ending> {
    if turn.counts.empty == 0 && turn.budget.has_round() {
        turn.counts.empty += 1;
        turn.notes.push(Note::EmptyAnswer.message(""));
        return Ok(vec![Node::Plan(plan)]);
    }
    if !turn.emitter.has_shown() {
        let partial = turn.results.newest_head();
        let text = match partial {
            Some(head) => format!("[The model gave no answer. The last tool result was:]\n{head}"),
            None => "[The model gave no answer.]".to_owned(),
        };
        turn.emitter.show(text).await;
    }
    Err(Ending::Finished {
        reason: FinishReason::Stop,
        outcome: Outcome::Empty,
    })
}

/// A model call that failed. Before anything was gathered the error is the answer; after tools have run, what
/// there is is given and said to be partial; an answer that broke off mid-sentence is an error, because no
/// finish reason may make it look complete.
async fn broke_off(turn: &mut Turn, failure: RunError, shown: bool) -> Ending {
    if shown {
        return Ending::Failed(failure);
    }
    let (why, outcome) = match &failure {
        RunError::QuotaSpent { left_tokens: 0, .. } => {
            ("the daily token quota is spent", Outcome::BudgetExceeded)
        }
        RunError::QuotaSpent { .. } => (
            "too little is left of the daily token quota",
            Outcome::BudgetExceeded,
        ),
        RunError::TurnTimeout { .. } => ("the turn ran out of time", Outcome::BudgetExceeded),
        RunError::Model(_)
        | RunError::ModelNotAllowed(_)
        | RunError::Invalid { .. }
        | RunError::TooManyTurns { .. }
        | RunError::Cancelled
        | RunError::Stopping
        | RunError::Prompt(_)
        | RunError::Store(_) => ("the model could not be reached again", Outcome::BackendError),
    };
    let Some(text) = turn.results.partial_answer(why) else {
        return Ending::Failed(failure);
    };
    tracing::warn!(error = %failure, run.id = %turn.run_id, "a turn ended with a partial answer");
    turn.emitter.show(text).await;
    Ending::Finished {
        reason: FinishReason::Stop,
        outcome,
    }
}

/// Gives the client its calls. What the server did in this turn the client never sees; it is kept for the
/// follow-up that answers these ids.
async fn hand_over(turn: &mut Turn, calls: Vec<ToolCall>) -> Ending {
    let own = turn.messages.get(turn.history_len..).unwrap_or_default();
    if own.iter().any(|message| message.source() == Source::Tool) {
        let now = turn.engine.now();
        let held = HeldTurn {
            key_id: turn.caller.key_id.clone(),
            user: turn.caller.user.clone(),
            client_call_ids: calls.iter().map(|call| call.id.clone()).collect(),
            messages: own.to_vec(),
            citations: turn
                .shown
                .as_ref()
                .map(|shown| shown.citations())
                .unwrap_or_default(),
            expires_at: turn.engine.held_until(now),
        };
        if let Err(error) = turn.engine.held().hold(&turn.run_id, &held, now).await {
            // The follow-up then goes on with what the client sends, which is less but not wrong.
            tracing::warn!(%error, "server calls of a mixed turn could not be kept");
        }
    }
    turn.emitter.send(RunEvent::ClientCalls(calls)).await;
    Ending::Finished {
        reason: FinishReason::ToolCalls,
        outcome: Outcome::ClientCalls,
    }
}

//! The entry: `Engine::run`. Prepares a turn, opens its journal, and works on it apart from its viewer, so that
//! a lost connection, a restart or an approval that comes later are ordinary events in its life.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError, RwLock, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use tidegate_core::{
    caller::{Attendance, Caller, Mode, Origin, Scope},
    clock::{Clock, Entropy, Timestamp, after},
    id::{KeyId, RunId},
    key::Disconnect,
    model::FinishReason,
    port::{ApprovalStore, AuditTrail, ChatModel, HeldTurnStore, Ledger, LineLog, RunStore},
    run::{Checkpoint, RunEnd, RunRecord, RunState, Stage},
    tool::ToolSpec,
    usage::Prices,
};
use tidegate_gate::{PermissionGate, ToolBox, guards::secrets::Redactor, mode::effective_mode};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

use crate::{
    Options, RunError, RunEvent, RunRequest, approval,
    capabilities::Surroundings,
    emitter::Emitter,
    event::Outcome,
    graph::{Node, Plan},
    guard,
    hooks::Hooks,
    memory::{Memory, capture},
    merge,
    prepare::{self, Prepared},
    prompt::Composer,
    routing::RoutingGate,
    toolset::{Bounds, Catalogue, Selection, Shelf},
    turn::{Ending, Opening, Turn},
    viewer::Run,
};

/// The answer to a request for the prompt's text. Fixed, so that it can be tested and gives nothing away.
pub const SECRECY_REFUSAL: &str = "I can't share the text of my instructions. I can tell you what I am able to do, which tools I have and \
     which rules I work under: just ask.";

/// Everything the engine is plugged into.
#[derive(Debug)]
pub struct Parts {
    /// The models.
    pub model: Arc<dyn ChatModel>,
    /// The operator's tools.
    pub tools: Arc<dyn ToolBox>,
    /// The permission gate.
    pub gate: Arc<PermissionGate>,
    /// Known secrets, kept out of results and logs.
    pub redactor: Arc<Redactor>,
    /// The system prompt, from disk.
    pub composer: Arc<Composer>,
    /// Is the question about the agent itself?
    pub routing: Arc<RoutingGate>,
    /// The journal.
    pub runs: Arc<dyn RunStore>,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Server calls that wait for a client's answer.
    pub held: Arc<dyn HeldTurnStore>,
    /// Questions to a person.
    pub approvals: Arc<dyn ApprovalStore>,
    /// Who was allowed to do what.
    pub audit: Arc<dyn AuditTrail>,
    /// Operator hooks, in order.
    pub hooks: Hooks,
    /// What is remembered of people; absent where that is switched off.
    pub memory: Option<Arc<Memory>>,
    /// One line a tool call.
    pub tool_log: Arc<dyn LineLog>,
    /// One line a model call.
    pub model_log: Arc<dyn LineLog>,
    /// What models cost.
    pub prices: Arc<Prices>,
    /// What the capability report tells of the surroundings.
    pub surroundings: Surroundings,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Owns every run's task; shutdown waits for it.
    pub tracker: TaskTracker,
    /// Cancelled when runs must end now.
    pub shutdown: CancellationToken,
    /// Bounds.
    pub options: Options,
}

/// The engine. Cheap to share; holds no state of any turn, only the count of each key's turns.
#[derive(Debug)]
pub struct Engine {
    parts: Parts,
    /// The operator's tools as models see them.
    shelf: Shelf,
    turns: Mutex<HashMap<KeyId, usize>>,
    prints: guard::Prints,
    /// What the capability report tells, as long as the operator does not change it.
    surroundings: RwLock<Arc<Surroundings>>,
}

impl Engine {
    /// Plugs the engine in.
    pub fn new(parts: Parts) -> Self {
        Self {
            shelf: Shelf::new(parts.tools.as_ref(), Bounds::of(&parts.options)),
            surroundings: RwLock::new(Arc::new(parts.surroundings.clone())),
            parts,
            turns: Mutex::default(),
            prints: guard::Prints::default(),
        }
    }

    /// Opens a run; its viewer works on it, or a tracked task does ([`Run`]). An error here means that no run was
    /// opened.
    pub async fn run(self: &Arc<Self>, request: RunRequest) -> Result<Run, RunError> {
        if self.parts.shutdown.is_cancelled() {
            return Err(RunError::Stopping);
        }
        let slot = self.take_slot(&request.caller.key_id)?;
        let created_at = self.now();
        let run_id = RunId::generate_at(created_at, self.entropy());
        let record = RunRecord {
            id: run_id.clone(),
            request_id: request.request_id.clone(),
            key_id: request.caller.key_id.clone(),
            user: request.caller.user.clone(),
            origin: request.origin,
            model: request.model.clone(),
            created_at,
        };
        let on_disconnect = request.on_disconnect;
        let (emitter, events) = Emitter::new();
        let Prepared { mut turn, refused } = prepare::turn(self, request, run_id.clone(), emitter).await?;
        if !refused {
            turn.graph.follow([Node::Plan(Plan::Round)]);
        }
        let first = Checkpoint {
            at: record.created_at,
            stage: Stage::BeforeModel { round: 1 },
            state: turn.state(None),
        };
        turn.opened = self.opening(record.clone(), first);

        let cancel = self.parts.shutdown.child_token();
        let guard = match on_disconnect {
            Disconnect::Cancel => Some(cancel.clone().drop_guard()),
            Disconnect::Finish => None,
        };
        let span = tracing::info_span!("engine.run", run.id = %run_id, request.id = %record.request_id);
        let work = work(turn, refused, cancel, slot).instrument(span);
        Ok(Run::new(run_id, events, work, self.parts.tracker.clone(), guard))
    }

    /// Opens the journal, once somebody waits for it.
    pub(crate) fn opening(self: &Arc<Self>, record: RunRecord, first: Checkpoint) -> Opening {
        let engine = Arc::clone(self);
        Opening::new(async move { Ok(engine.parts.runs.open(&record, &first).await?) }.boxed())
    }

    /// The parts of the prompt that a request of this caller would get, and why: for `tidegate prompt`.
    pub async fn explain(
        self: &Arc<Self>,
        request: RunRequest,
    ) -> Result<(crate::prompt::Prompt, crate::routing::Decision), RunError> {
        prepare::explain(self, request).await
    }

    /// Faults in files the engine serves the last good version of, for readiness.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.parts.composer.faults();
        faults.extend(self.parts.routing.faults());
        faults
    }

    /// The operator's enabled skills, read now; for a blocking thread.
    pub fn skills(&self) -> Vec<Arc<crate::prompt::skill::Skill>> {
        self.parts.composer.skills_whole()
    }

    /// The server tools a caller may use at all, whatever the request says.
    pub fn tools_of(&self, caller: &Caller) -> Vec<Arc<ToolSpec>> {
        self.selection_of(caller).specs()
    }

    /// The same, as a turn takes them.
    pub(crate) fn selection_of(&self, caller: &Caller) -> Selection {
        let catalogue = self.catalogue();
        match &caller.tools {
            _ if !caller.has(Scope::Tools) => Selection::none(catalogue),
            None => Selection::all(catalogue),
            Some(names) => Selection::named(catalogue, names.iter().map(String::as_str)),
        }
    }

    /// The tools that there are now: they come and go while the server runs.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        self.shelf.now(self.tools())
    }

    /// Whether somebody can answer what a run from there is asked.
    pub(crate) fn attendance_of(&self, origin: Origin) -> Attendance {
        let configured = self.parts.options.attendance;
        match origin {
            Origin::Http | Origin::Terminal | Origin::Mcp | Origin::Chat => configured,
            Origin::Cron => match configured {
                Attendance::Approve => Attendance::Approve,
                Attendance::Attended | Attendance::Deny => Attendance::Deny,
            },
        }
    }

    /// The effective mode of a request.
    pub fn mode_of(&self, caller: &Caller, requested: Option<Mode>) -> Mode {
        effective_mode(
            caller.mode_ceiling,
            self.parts.options.default_permission_mode,
            requested,
        )
    }

    pub(crate) fn take_slot(self: &Arc<Self>, key_id: &KeyId) -> Result<Slot, RunError> {
        let turns_max = self.parts.options.turns_per_key_max;
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let count = turns.entry(key_id.clone()).or_default();
        if *count >= turns_max {
            return Err(RunError::TooManyTurns { turns_max });
        }
        *count += 1;
        Ok(Slot {
            engine: Arc::clone(self),
            key_id: key_id.clone(),
        })
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn options(&self) -> &Options {
        &self.parts.options
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        self.parts.entropy.as_ref()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    pub(crate) fn today(&self) -> jiff::civil::Date {
        self.parts.clock.today()
    }

    /// Seconds until the next day begins for people here; at least 1.
    pub(crate) fn seconds_left_today(&self) -> u64 {
        self.parts.clock.seconds_left_today()
    }

    pub(crate) fn held_until(&self, now: Timestamp) -> Timestamp {
        after(now, self.parts.options.held_turn_s)
    }

    pub(crate) fn model(&self) -> &dyn ChatModel {
        self.parts.model.as_ref()
    }

    pub(crate) fn tools(&self) -> &dyn ToolBox {
        self.parts.tools.as_ref()
    }

    pub(crate) fn gate(&self) -> &PermissionGate {
        &self.parts.gate
    }

    pub(crate) fn prints(&self) -> &guard::Prints {
        &self.prints
    }

    /// The surroundings as they are now.
    pub(crate) fn surroundings(&self) -> Arc<Surroundings> {
        Arc::clone(&self.surroundings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells the capability report of other surroundings: the policy was read again.
    pub fn set_surroundings(&self, surroundings: Surroundings) {
        *self.surroundings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(surroundings);
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.parts.redactor
    }

    pub(crate) fn runs(&self) -> &dyn RunStore {
        self.parts.runs.as_ref()
    }

    pub(crate) fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.parts.ledger
    }

    pub(crate) fn held(&self) -> &dyn HeldTurnStore {
        self.parts.held.as_ref()
    }

    pub(crate) fn approvals(&self) -> &dyn ApprovalStore {
        self.parts.approvals.as_ref()
    }

    pub(crate) fn audit(&self) -> &dyn AuditTrail {
        self.parts.audit.as_ref()
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.parts.hooks
    }

    /// What is remembered of people; `None` where that is switched off.
    pub fn memory(&self) -> Option<&Arc<Memory>> {
        self.parts.memory.as_ref()
    }

    pub(crate) fn tool_log(&self) -> &dyn LineLog {
        self.parts.tool_log.as_ref()
    }

    pub(crate) fn model_log(&self) -> &Arc<dyn LineLog> {
        &self.parts.model_log
    }

    pub(crate) fn prices(&self) -> &Arc<Prices> {
        &self.parts.prices
    }
}

/// One of a key's turns under way; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    engine: Arc<Engine>,
    key_id: KeyId,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut turns = self.engine.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = turns.get_mut(&self.key_id) {
            *count -= 1;
            if *count == 0 {
                turns.remove(&self.key_id);
            }
        }
    }
}

/// Why a turn stopped being worked on.
enum Stop {
    Ended(Ending),
    Cancelled,
    OutOfTime,
    Panicked,
}

/// Works on a turn to its end and closes its journal, on every way out.
async fn work(mut turn: Turn, refused: bool, cancel: CancellationToken, slot: Slot) {
    let opened = turn.opened.clone();
    let stop = if refused {
        if let Err(error) = opened.done().await {
            turn.emitter.send_last(RunEvent::Failed(error)).await;
            return;
        }
        turn.emitter.show(SECRECY_REFUSAL.to_owned()).await;
        Stop::Ended(Ending::Finished {
            reason: FinishReason::Stop,
            outcome: Outcome::RefusedPreflight,
        })
    } else {
        let deadline = turn.deadline;
        let driven = AssertUnwindSafe(merge::drive(&mut turn)).catch_unwind();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Stop::Cancelled,
            ended = tokio::time::timeout_at(deadline, driven) => match ended {
                Ok(Ok(ending)) => Stop::Ended(ending),
                Ok(Err(_panic)) => Stop::Panicked,
                Err(_elapsed) => Stop::OutOfTime,
            },
        }
    };
    let ending = match stop {
        Stop::Ended(ending) => ending,
        Stop::Cancelled if turn.engine.parts.shutdown.is_cancelled() => Ending::Failed(RunError::Stopping),
        Stop::Cancelled => Ending::Failed(RunError::Cancelled),
        Stop::OutOfTime => out_of_time(&turn).await,
        Stop::Panicked => {
            tracing::error!("a turn panicked");
            Ending::Failed(RunError::Store("the turn broke".to_owned()))
        }
    };
    // A run that was cancelled at once may not have been opened yet; one that cannot be opened has no end either.
    if let Err(error) = opened.done().await {
        turn.emitter.send_last(RunEvent::Failed(error)).await;
        return;
    }
    close(&turn, ending, slot).await;
}

/// The turn's own time limit: what was shown stands as a cut answer, what was gathered is given, else it is an error.
async fn out_of_time(turn: &Turn) -> Ending {
    let after_ms = turn.engine.options().turn_timeout_ms;
    let cut = Ending::Finished {
        reason: FinishReason::Length,
        outcome: Outcome::BudgetExceeded,
    };
    if turn.emitter.has_shown() {
        return cut;
    }
    match turn.results.partial_answer("the turn ran out of time") {
        Some(text) => {
            turn.emitter.send_last(RunEvent::Text(text)).await;
            cut
        }
        None => Ending::Failed(RunError::TurnTimeout { after_ms }),
    }
}

/// Closes the journal, and only then tells the viewer: what was acknowledged survives the end of the process.
pub(crate) async fn close(turn: &Turn, ending: Ending, slot: Slot) {
    let in_flight = turn.effects_in_flight.load(Ordering::SeqCst) > 0;
    let (state, outcome) = match &ending {
        Ending::Finished {
            outcome: Outcome::ClientCalls,
            ..
        } => (RunState::AwaitingClient, Outcome::ClientCalls.name()),
        Ending::Finished { outcome, .. } => (RunState::Completed, outcome.name()),
        Ending::Failed(_) if in_flight => (RunState::Indeterminate, "interrupted_side_effect"),
        Ending::Failed(RunError::Cancelled) => (RunState::Cancelled, "cancelled"),
        Ending::Failed(RunError::Stopping) => (RunState::Interrupted, "stopping"),
        Ending::Failed(_) => (RunState::Failed, "failed"),
    };
    approval::settle_rest(turn).await;
    let end = RunEnd {
        at: turn.engine.now(),
        state,
        outcome: outcome.to_owned(),
        usage: turn.usage(),
    };
    if let Err(error) = turn.engine.runs().close(&turn.run_id, &end).await {
        tracing::error!(%error, run.id = %turn.run_id, "the journal of a run cannot be closed");
    }
    // What the answer acknowledges is in the queue before it.
    capture::queue(turn, &ending).await;
    let event = match ending {
        Ending::Finished { reason, outcome } => RunEvent::Finished(turn.finished(reason, outcome)),
        Ending::Failed(error) => RunEvent::Failed(error),
    };
    tracing::debug!(
        outcome,
        shown_bytes = turn.emitter.shown_bytes(),
        "run ended: {outcome}"
    );
    // The key's place is free from here on, whether or not somebody still reads.
    drop(slot);
    turn.emitter.send_last(event).await;
}

/// When a turn that starts now must be over.
pub(crate) fn deadline(options: &Options) -> Instant {
    Instant::now() + Duration::from_millis(options.turn_timeout_ms)
}

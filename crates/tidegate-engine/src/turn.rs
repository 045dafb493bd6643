//! The state of one turn. Everything that belongs to a turn travels in here; nothing of it is process-wide.

use std::{
    collections::HashSet,
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

use futures_util::future::{BoxFuture, MaybeDone, maybe_done};
use tidegate_core::{
    caller::Caller,
    id::{ApprovalId, CallId, RunId},
    message::Message,
    model::{FinishReason, ModelRef, ToolChoice, ToolSchema},
    run::{Checkpoint, Stage},
    tool::ToolCall,
    usage::Usage,
};
use tidegate_gate::guards::prompt_leak::Fingerprints;
use tidegate_gate::{Learner, NoHost, Session, ToolContext};
use tokio::time::Instant;

use crate::{
    RunRequest,
    budget::Budget,
    capabilities::{self, Subject},
    emitter::Emitter,
    event::{Finished, Outcome, RunError},
    graph::{Graph, Plan},
    memory::capture::Draft,
    meter::Size,
    results::{Repeats, Results},
    run::Engine,
    sampling::Aside,
    sources::Shown,
    toolset::Toolset,
};

/// How a turn ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With an answer, or calls for the client.
    Finished {
        /// The wire's reason.
        reason: FinishReason,
        /// What was decided.
        outcome: Outcome,
    },
    /// Without.
    Failed(RunError),
}

/// One turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) engine: Arc<Engine>,
    pub(crate) run_id: RunId,
    /// The request; its messages have been moved to [`Turn::messages`].
    pub(crate) request: RunRequest,
    pub(crate) caller: Arc<Caller>,
    pub(crate) session: Session,
    pub(crate) model: ModelRef,
    /// The composed system prompt.
    pub(crate) system: String,
    /// By what its quotations are recognised.
    pub(crate) prints: Arc<Fingerprints>,
    /// The tools of this turn, the server's and the client's own.
    pub(crate) tools: Toolset,
    /// Names of the client's own tools.
    pub(crate) client: HashSet<String>,
    /// The history, and what this turn has added to it.
    pub(crate) messages: Vec<Message>,
    /// How many of the messages came with the request; the rest are this turn's own.
    pub(crate) history_len: usize,
    /// Notes that go with the next model call.
    pub(crate) notes: Vec<Message>,
    pub(crate) graph: Graph,
    pub(crate) budget: Budget,
    pub(crate) results: Results,
    /// The passages that this turn has shown to its model; absent where no tool can show any.
    pub(crate) shown: Option<Arc<Shown>>,
    pub(crate) repeats: Repeats,
    pub(crate) emitter: Emitter,
    /// When the turn must be over.
    pub(crate) deadline: Instant,
    pub(crate) counts: Counts,
    /// Side effects that were started and have not reported.
    pub(crate) effects_in_flight: AtomicUsize,
    /// Calls that were let through to write something.
    pub(crate) writes: AtomicU32,
    /// Refusals and questions in a row, for the denial breaker.
    pub(crate) denials: AtomicU32,
    /// Approvals that a call of this turn has claimed and that have not been settled.
    pub(crate) claimed: Mutex<Vec<ApprovalId>>,
    /// What model calls cost that were cut off in the middle: they leave no reply to merge.
    pub(crate) cut_usage: Arc<Mutex<Usage>>,
    /// What model calls beside the rounds cost since the last merge.
    pub(crate) aside: Mutex<Aside>,
    /// Whether a model works on the turn at all.
    pub(crate) has_model: bool,
    /// What can be learned from the turn once it has ended.
    pub(crate) draft: Option<Draft>,
    /// The opening of the journal. It goes on beside the first model call; nothing is shown before it is done.
    pub(crate) opened: Opening,
}

/// A write that is under way, for whoever needs to know that it is done. Whoever asks works on it; where one
/// leaves in the middle, the next one goes on. (`futures`' own `Shared` wakes those who asked, and with them the
/// task that just finished the write, in every run.)
#[derive(Clone)]
pub(crate) struct Opening(Arc<tokio::sync::Mutex<MaybeDone<Write>>>);

/// A write.
type Write = BoxFuture<'static, Result<(), RunError>>;

impl Opening {
    /// The write that `write` does.
    pub(crate) fn new(write: Write) -> Self {
        Self(Arc::new(tokio::sync::Mutex::new(maybe_done(write))))
    }

    /// Waits for its end.
    pub(crate) async fn done(&self) -> Result<(), RunError> {
        let mut write = self.0.lock().await;
        (&mut *write).await;
        let end = Pin::new(&mut *write).output_mut().map(|end| end.clone());
        end.unwrap_or_else(|| Err(RunError::Store("the opening of a run has no end".to_owned())))
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opening")
    }
}

/// Corrections already given in this turn: each kind is bounded.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) unknown_tool: u32,
    pub(crate) empty: u32,
    pub(crate) no_progress: u32,
    pub(crate) cut: u32,
}

impl Turn {
    /// What a runner may know about this turn.
    pub(crate) fn tool_context(&self) -> ToolContext {
        ToolContext {
            run_id: self.run_id.clone(),
            caller: Arc::clone(&self.caller),
            learner: Learner::default(),
            host: Arc::new(NoHost),
        }
    }

    /// What the agent can do, for `describe_capabilities`: all that the caller may use, narrowed by no skill.
    pub(crate) fn capability_report(&self) -> String {
        let engine = &self.engine;
        let tools = engine.tools_of(&self.caller);
        let hooks = engine.hook_names();
        let surroundings = engine.surroundings();
        let subject = Subject {
            model: &self.request.model,
            caller: &self.caller,
            mode: self.session.mode,
            tools: &tools,
            options: engine.options(),
            requested: self.request.mode,
            attendance: self.session.attendance,
            gate: engine.gate(),
            surroundings: &surroundings,
            hooks: &hooks,
        };
        capabilities::report(subject, &engine.parts().composer.skills())
    }

    /// The schemas offered for this kind of model call.
    pub(crate) fn offered_for(&self, plan: Plan) -> Arc<[Arc<ToolSchema>]> {
        match plan {
            Plan::Round if self.request.tool_choice == ToolChoice::None => Arc::default(),
            Plan::Round => Arc::clone(self.tools.offered()),
            Plan::Last(_) | Plan::Format => Arc::default(),
        }
    }

    /// Whether the answer must come from a model call of its own: a `response_format` applies to the final
    /// answer only, and while server tools are offered nobody knows which answer is final.
    pub(crate) fn formats_apart(&self) -> bool {
        self.request.response_format.is_some()
            && !self.tools.is_empty()
            && self.request.tool_choice != ToolChoice::None
    }

    /// Whether the model may issue several server calls that run side by side.
    pub(crate) fn width(&self) -> usize {
        if self.request.parallel_tool_calls {
            self.engine.options().parallel_reads_max
        } else {
            1
        }
    }

    /// An id for a call: the model's own where it is usable and new, else a fresh one.
    pub(crate) fn unique_call_id(&self, id: CallId, taken: &HashSet<CallId>) -> CallId {
        let used = id.as_str().is_empty()
            || id.as_str().len() > 128
            || taken.contains(&id)
            || self.messages.iter().any(|message| match message {
                Message::Assistant { calls, .. } => calls.iter().any(|call| call.id == id),
                Message::Human { .. }
                | Message::ClientSystem { .. }
                | Message::Tool { .. }
                | Message::Harness { .. }
                | Message::Recalled { .. } => false,
            });
        if used {
            CallId::generate(self.engine.entropy())
        } else {
            id
        }
    }

    /// Writes a line of the journal; on return it survives the end of the process.
    pub(crate) async fn checkpoint(&self, stage: Stage, current: Option<&ToolCall>) -> Result<(), RunError> {
        let carried = match stage {
            Stage::BeforeModel { .. } | Stage::BeforeEffect { .. } => self.state(current),
            Stage::AfterEffect { .. } | Stage::End => None,
        };
        let checkpoint = Checkpoint {
            at: self.engine.now(),
            stage,
            state: carried,
        };
        Ok(self.engine.runs().checkpoint(&self.run_id, &checkpoint).await?)
    }

    /// Everything needed to go on in another process: the messages, the calls that wait, the budget spent, and
    /// where a model is about to be asked, about how many tokens that will take. `None` where that is larger
    /// than the bound.
    pub(crate) fn state(&self, current: Option<&ToolCall>) -> Option<serde_json::Value> {
        let bytes_max = self.engine.options().checkpoint_bytes_max;
        let size = Size::of(&self.messages);
        if size.bytes() > bytes_max {
            return None;
        }
        let pending: Vec<&ToolCall> = current.into_iter().chain(self.graph.pending_calls()).collect();
        Some(serde_json::json!({
            "version": 1,
            "messages": self.messages,
            "notes": self.notes,
            "pending_calls": pending,
            "spent": self.budget.spent(),
            "asking_tokens": current.is_none().then(|| size.tokens(&self.system, self.tools.offered())),
            "client_tools": self.request.client_tools,
            "found_tools": self.tools.found().collect::<Vec<_>>(),
            "stream": self.request.stream,
        }))
    }

    /// What model calls beside the rounds have cost since the last merge.
    pub(crate) fn aside(&self) -> MutexGuard<'_, Aside> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Books what model calls beside the rounds have cost.
    pub(crate) fn merge_aside(&mut self) {
        let aside = std::mem::take(&mut *self.aside());
        self.budget.book_aside(&aside);
    }

    /// Notes that a side effect starts; until the guard is settled it counts as in flight.
    pub(crate) fn effect_started(&self) -> EffectGuard<'_> {
        self.effects_in_flight.fetch_add(1, Ordering::SeqCst);
        EffectGuard {
            in_flight: &self.effects_in_flight,
        }
    }

    /// What the turn has cost, calls that were cut off included.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = self.budget.usage();
        usage += self.aside().usage;
        usage += *self.cut_usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage
    }

    /// The last event of a finished turn.
    pub(crate) fn finished(&self, reason: FinishReason, outcome: Outcome) -> Finished {
        let sources = self
            .shown
            .as_ref()
            .map(|shown| shown.report())
            .unwrap_or_default();
        if sources.removed > 0 {
            tracing::info!(
                removed = sources.removed,
                shown = sources.shown.len(),
                "an answer named sources that nothing had shown; their ids were taken out"
            );
        }
        Finished {
            reason,
            outcome,
            usage: self.budget.usage(),
            usage_by_role: self.budget.spent().usage_by_role.clone(),
            sources,
        }
    }
}

/// Held while a side effect is under way. It is dropped unsettled when the run is cancelled in the middle:
/// the count then stays, and the journal says `indeterminate`.
#[derive(Debug)]
pub(crate) struct EffectGuard<'a> {
    in_flight: &'a AtomicUsize,
}

impl EffectGuard<'_> {
    /// The side effect has reported.
    pub(crate) fn settle(self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

//! One call of a tool without a model, for front ends whose client is itself an agent.
//!
//! It is a run like any other: it takes one of the key's places, has a journal, and its call goes through
//! `invoke`, the only path to a tool. What differs is that nobody composes a prompt and no model is asked.

use std::{
    collections::HashSet,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicUsize},
    },
};

use futures_util::{FutureExt as _, future};
use serde_json::{Map, Value};
use tidegate_core::{
    caller::{Caller, Mode, Origin},
    id::{CallId, RequestId, RunId},
    key::Disconnect,
    model::{FinishReason, ModelRef, Sampling, ToolChoice},
    run::{Checkpoint, RunRecord, Stage},
    tool::{Arguments, ToolCall, ToolResult},
};
use tidegate_gate::{Session, guards::prompt_leak::Fingerprints};
use tokio::{sync::oneshot, time};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::{
    Lease, Outcome, Run, RunError, RunRequest, approval,
    budget::Budget,
    emitter::Emitter,
    graph::Graph,
    invoke,
    results::{Repeats, Results},
    run::{self, Engine, Slot},
    toolset::Toolset,
    turn::{Counts, Ending, Opening, Turn},
};

/// What the journal has for a model where none is asked.
const NO_MODEL: &str = "none";

/// One call, as a front end asks for it.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// Who asks.
    pub caller: Caller,
    /// Through which front end.
    pub origin: Origin,
    /// The request's id.
    pub request_id: RequestId,
    /// The mode the request asks for; it can only lower the key's.
    pub mode: Option<Mode>,
    /// The model that the capability report names: the one that a question to the agent would get. None is asked.
    pub model: String,
    /// Which conversation the call belongs to: an approval is spent in the one that asked for it.
    pub conversation: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// What the front end has set aside for the request.
    pub lease: Lease,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnd {
    /// The run it was.
    pub run_id: RunId,
    /// The result: guarded, whole, within the tool's own bound.
    pub result: ToolResult,
}

impl Engine {
    /// Makes one call of a server tool that the caller may use. Whoever drops the future cancels it. An error means
    /// that nothing can be said of the call; whatever became of the call itself, a refusal too, is a result.
    pub async fn call(self: &Arc<Self>, request: CallRequest) -> Result<CallEnd, RunError> {
        if self.parts().shutdown.is_cancelled() {
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
            model: NO_MODEL.to_owned(),
            created_at,
        };
        let call = ToolCall {
            id: CallId::generate(self.entropy()),
            name: request.tool.clone(),
            arguments: Arguments::Object(request.arguments.clone()),
        };
        let (emitter, events) = Emitter::new();
        let mut turn = turn(self, request, run_id.clone(), emitter);
        // Round 0: no model is about to be asked.
        let first = Checkpoint {
            at: created_at,
            stage: Stage::BeforeModel { round: 0 },
            state: None,
        };
        let span = tracing::info_span!("engine.call", run.id = %run_id, request.id = %record.request_id);
        turn.opened = self.opening(record, first);
        let cancel = self.parts().shutdown.child_token();
        let guard = cancel.clone().drop_guard();
        let (told, result) = oneshot::channel();
        let work = work(turn, call, cancel, slot, told).instrument(span);
        let mut run = Run::new(run_id, events, work, self.parts().tracker.clone(), Some(guard));
        while run.next().await.is_some() {}
        let result = result
            .await
            .unwrap_or_else(|_broke| Err(RunError::Store("the call broke".to_owned())))?;
        Ok(CallEnd {
            run_id: run.id.clone(),
            result,
        })
    }
}

/// Makes the call and closes the journal, on every way out; only then is the result told.
async fn work(
    turn: Turn,
    call: ToolCall,
    cancel: CancellationToken,
    slot: Slot,
    told: oneshot::Sender<Result<ToolResult, RunError>>,
) {
    let opened = turn.opened.clone();
    if let Err(error) = opened.done().await {
        // Whoever waited may be gone.
        drop(told.send(Err(error)));
        return;
    }
    let invoked = AssertUnwindSafe(invoke::invoke(&turn, call)).catch_unwind();
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(if turn.engine.parts().shutdown.is_cancelled() {
            RunError::Stopping
        } else {
            RunError::Cancelled
        }),
        ended = time::timeout_at(turn.deadline, invoked) => match ended {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_panic)) => {
                tracing::error!("a call panicked");
                Err(RunError::Store("the call broke".to_owned()))
            }
            Err(_elapsed) => Err(RunError::TurnTimeout {
                after_ms: turn.engine.options().turn_timeout_ms,
            }),
        },
    };
    let ending = match &outcome {
        Ok(_) => Ending::Finished {
            reason: FinishReason::Stop,
            outcome: Outcome::Answered,
        },
        Err(error) => Ending::Failed(error.clone()),
    };
    run::close(&turn, ending, slot).await;
    drop(told.send(outcome));
}

/// A turn that holds one call and nothing of a conversation with a model.
fn turn(engine: &Arc<Engine>, request: CallRequest, run_id: RunId, emitter: Emitter) -> Turn {
    let caller = Arc::new(request.caller.clone());
    let request_of_turn = RunRequest {
        caller: request.caller,
        origin: request.origin,
        request_id: request.request_id,
        model: request.model,
        messages: Vec::new(),
        client_tools: Vec::new(),
        tool_choice: ToolChoice::None,
        parallel_tool_calls: false,
        sampling: Sampling::default(),
        response_format: None,
        stream: false,
        mode: request.mode,
        conversation: Some(request.conversation),
        on_disconnect: Disconnect::Cancel,
        lease: request.lease,
    };
    Turn {
        run_id,
        session: Session {
            mode: engine.mode_of(&caller, request.mode),
            conversation: approval::conversation(&caller, request_of_turn.conversation.as_deref(), &[]),
            attendance: engine.attendance_of(request.origin),
            caller: Arc::clone(&caller),
        },
        model: ModelRef {
            requested: NO_MODEL.to_owned(),
            provider: NO_MODEL.to_owned(),
            name: NO_MODEL.to_owned(),
            native_tools: true,
            context_tokens: None,
        },
        system: String::new(),
        prints: Arc::new(Fingerprints::of([])),
        tools: Toolset::only(&engine.selection_of(&caller), &request.tool),
        client: HashSet::new(),
        caller,
        messages: Vec::new(),
        history_len: 0,
        notes: Vec::new(),
        graph: Graph::default(),
        budget: Budget::new(engine.options()),
        results: Results::default(),
        shown: None,
        repeats: Repeats::default(),
        emitter,
        deadline: run::deadline(engine.options()),
        counts: Counts::default(),
        effects_in_flight: AtomicUsize::new(0),
        writes: AtomicU32::new(0),
        denials: AtomicU32::new(0),
        claimed: Mutex::default(),
        cut_usage: Arc::default(),
        aside: Mutex::default(),
        has_model: false,
        draft: None,
        opened: Opening::new(future::ready(Ok(())).boxed()),
        engine: Arc::clone(engine),
        request: request_of_turn,
    }
}

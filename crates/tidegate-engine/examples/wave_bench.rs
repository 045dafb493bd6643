//! Sixteen 100 ms tool calls in one wave, as a ratio to one: `cargo run --release -p tidegate-engine --example
//! wave_bench`. The engine, the gate and the routing files are the real ones; the model, the tool and the stores
//! are stand-ins for the outside that cost nothing of their own.

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::stream;
use jiff::civil::Date;
use serde_json::Map;
use tidegate_core::{
    approval::{Answer, Approval, ApprovalBinding, ApprovalPage, ApprovalQuery, ApprovalState, Decided},
    caller::{Caller, Mode, Origin, Scope},
    clock::{Clock, Entropy, Timestamp},
    error::StoreError,
    id::{ApprovalId, CallId, KeyId, RequestId, RunId, UserId},
    key::Disconnect,
    message::{Message, Source},
    model::{FinishReason, ModelError, ModelEvent, ModelInfo, ModelRef, ModelRequest, Sampling, ToolChoice},
    port::{
        ApprovalStore, AuditEntry, AuditFault, AuditTrail, ChatModel, DayUsage, FileFault, HeldTurn,
        HeldTurnStore, Ledger, LedgerError, LineLog, ModelStream, OperatorFiles, Reservation, RunStore,
        UsageRecord,
    },
    run::{Checkpoint, RunEnd, RunRecord, RunView},
    tool::{Arguments, Effect, ToolCall, ToolMode, ToolResult, ToolSpec},
};
use tidegate_engine::{
    Engine, Lease, Options, Parts, RunEvent, RunRequest, capabilities::Surroundings, hooks::Hooks, prompt,
    prompt::Composer, routing, routing::RoutingGate,
};
use tidegate_gate::{
    Authorized, Facts, PermissionGate, Policy, ToolBox, ToolContext, guards::secrets::Redactor,
};

/// How long one call takes.
const CALL: Duration = Duration::from_millis(100);
/// Calls of the wide wave.
const WIDTH: usize = 16;
/// Turns measured of each kind; the middle one counts.
const TURNS: usize = 9;

/// Everything outside the engine.
#[derive(Debug)]
struct Outside;

#[async_trait]
impl ChatModel for Outside {
    async fn resolve(&self, requested: &str) -> Result<ModelRef, ModelError> {
        Ok(ModelRef {
            requested: requested.to_owned(),
            provider: "bench".to_owned(),
            name: requested.to_owned(),
            native_tools: true,
            context_tokens: None,
        })
    }

    /// Asks for as many calls as the model's name says, and answers once it has results.
    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let answered = request
            .messages
            .iter()
            .any(|message| message.source() == Source::Tool);
        let count: usize = if answered {
            0
        } else {
            request.model.name.parse().unwrap_or(1)
        };
        let mut events: Vec<_> = (0..count)
            .map(|index| {
                ModelEvent::Call(ToolCall {
                    id: CallId::new(format!("call_{index}")),
                    name: "wait".to_owned(),
                    arguments: Arguments::Object(Map::from_iter([("n".to_owned(), index.into())])),
                })
            })
            .collect();
        let reason = if answered {
            events.push(ModelEvent::Text("done".to_owned()));
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        };
        events.push(ModelEvent::Finished { reason, usage: None });
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ModelError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl ToolBox for Outside {
    fn specs(&self) -> Arc<[Arc<ToolSpec>]> {
        Arc::from([Arc::new(ToolSpec {
            name: "wait".to_owned(),
            description: "Waits.".to_owned(),
            mode: ToolMode::CurrentTime,
            effect: Effect::Read,
            parameters: Vec::new(),
            timeout_ms: 5_000,
            output_bytes_max: 100,
        })])
    }

    fn check(&self, _call: &ToolCall, _spec: &ToolSpec) -> Result<(), ToolResult> {
        Ok(())
    }

    async fn facts(&self, _call: &ToolCall, _spec: &ToolSpec, _mode: Mode) -> Facts {
        Facts::default()
    }

    async fn run(&self, _call: Authorized<ToolCall>, _context: &ToolContext) -> ToolResult {
        tokio::time::sleep(CALL).await;
        ToolResult::ok("waited".to_owned())
    }
}

#[async_trait]
impl RunStore for Outside {
    async fn open(&self, _run: &RunRecord, _first: &Checkpoint) -> Result<(), StoreError> {
        Ok(())
    }

    async fn checkpoint(&self, _id: &RunId, _checkpoint: &Checkpoint) -> Result<(), StoreError> {
        Ok(())
    }

    async fn close(&self, _id: &RunId, _end: &RunEnd) -> Result<(), StoreError> {
        Ok(())
    }

    async fn find(&self, _key_id: &KeyId, _id: &RunId) -> Result<Option<RunView>, StoreError> {
        Ok(None)
    }

    async fn latest_state(&self, _id: &RunId) -> Result<Option<Checkpoint>, StoreError> {
        Ok(None)
    }

    async fn recover(&self, _now: Timestamp) -> Result<(u64, u64), StoreError> {
        Ok((0, 0))
    }

    async fn prune(&self, _before: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl Ledger for Outside {
    async fn reserve(
        &self,
        _key_id: &KeyId,
        _day: Date,
        _limit_tokens: Option<u64>,
        _estimate_tokens: u64,
    ) -> Result<Reservation, LedgerError> {
        Ok(Reservation::new(0))
    }

    fn record(&self, _record: UsageRecord) {}

    fn spent_tokens(&self, _key_id: &KeyId, _day: Date) -> u64 {
        0
    }

    async fn usage(&self, _key_id: &KeyId, _first: Date, _last: Date) -> Result<Vec<DayUsage>, StoreError> {
        Ok(Vec::new())
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl AuditTrail for Outside {
    async fn record(&self, _: &AuditEntry) -> Result<(), AuditFault> {
        Ok(())
    }
}

#[async_trait]
impl ApprovalStore for Outside {
    async fn ask(&self, new: &Approval) -> Result<Approval, StoreError> {
        Ok(new.clone())
    }

    async fn find(&self, _: &ApprovalId, _: Timestamp) -> Result<Option<Approval>, StoreError> {
        Ok(None)
    }

    async fn list(&self, _: &ApprovalQuery, _: Timestamp) -> Result<ApprovalPage, StoreError> {
        Ok(ApprovalPage {
            approvals: Vec::new(),
            has_more: false,
        })
    }

    async fn decide(
        &self,
        _: &ApprovalId,
        _: Answer,
        _: &KeyId,
        _: Timestamp,
        _: Timestamp,
    ) -> Result<Decided, StoreError> {
        Ok(Decided::Missing)
    }

    async fn claim(&self, _: &ApprovalBinding, _: Timestamp) -> Result<Option<Approval>, StoreError> {
        Ok(None)
    }

    async fn settle(&self, _: &ApprovalId, _: ApprovalState) -> Result<(), StoreError> {
        Ok(())
    }

    async fn recover_approvals(&self, _: Timestamp) -> Result<(u64, u64), StoreError> {
        Ok((0, 0))
    }

    async fn prune_approvals(&self, _: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl HeldTurnStore for Outside {
    async fn hold(&self, _run: &RunId, _turn: &HeldTurn, _now: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn find(
        &self,
        _key_id: &KeyId,
        _user: &UserId,
        _call_ids: &[CallId],
        _now: Timestamp,
    ) -> Result<Option<HeldTurn>, StoreError> {
        Ok(None)
    }
}

impl OperatorFiles for Outside {
    fn read(&self, path: &Path, _bytes_max: usize) -> Result<String, FileFault> {
        if path.ends_with("AGENT.md") {
            return Ok("You are a benchmark.".to_owned());
        }
        Err(FileFault::Missing(path.display().to_string()))
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileFault> {
        Err(FileFault::Missing(folder.display().to_string()))
    }
}

impl LineLog for Outside {
    fn append(&self, _line: String) {}

    fn dropped(&self) -> u64 {
        0
    }
}

impl Clock for Outside {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Entropy for Outside {
    /// Distinct enough for ids that live as long as a benchmark.
    fn fill(&self, bytes: &mut [u8]) {
        use std::sync::atomic::{AtomicU64, Ordering};
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        for (byte, source) in bytes.iter_mut().zip(count.iter().cycle()) {
            *byte = *source;
        }
    }
}

fn engine() -> Result<Arc<Engine>, Box<dyn std::error::Error>> {
    let outside = Arc::new(Outside);
    Ok(Arc::new(Engine::new(Parts {
        model: Arc::clone(&outside) as _,
        tools: Arc::clone(&outside) as _,
        gate: Arc::new(PermissionGate::new(Policy::default())),
        redactor: Arc::new(Redactor::new([])?),
        composer: Arc::new(Composer::new(
            Arc::clone(&outside) as _,
            prompt::Options::default(),
        )),
        routing: Arc::new(RoutingGate::new(
            Arc::clone(&outside) as _,
            None,
            Arc::clone(&outside) as _,
            Arc::clone(&outside) as _,
            routing::Options::default(),
        )),
        runs: Arc::clone(&outside) as _,
        ledger: Arc::clone(&outside) as _,
        held: Arc::clone(&outside) as _,
        approvals: Arc::clone(&outside) as _,
        audit: Arc::clone(&outside) as _,
        hooks: Hooks::default(),
        memory: None,
        tool_log: Arc::clone(&outside) as _,
        model_log: Arc::clone(&outside) as _,
        prices: Arc::default(),
        surroundings: Surroundings::default(),
        clock: Arc::clone(&outside) as _,
        entropy: outside,
        tracker: tokio_util::task::TaskTracker::new(),
        shutdown: tokio_util::sync::CancellationToken::new(),
        options: Options::default(),
    })))
}

fn request(calls: usize) -> Result<RunRequest, Box<dyn std::error::Error>> {
    let key_id = KeyId::new("bench");
    Ok(RunRequest {
        caller: Caller {
            user: UserId::of(&key_id, None)?,
            key_id,
            scopes: BTreeSet::from([Scope::Chat, Scope::Tools]),
            mode_ceiling: Mode::ReadOnly,
            models: None,
            tools: None,
            tokens_per_day: None,
        },
        origin: Origin::Http,
        request_id: RequestId::new("req_bench"),
        model: calls.to_string(),
        messages: vec![Message::human("please wait for me")],
        client_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        sampling: Sampling::default(),
        response_format: None,
        stream: true,
        mode: None,
        conversation: None,
        on_disconnect: Disconnect::Cancel,
        lease: Lease::default(),
    })
}

/// The middle time of some turns with that many calls in one wave, in milliseconds.
async fn measure(engine: &Arc<Engine>, calls: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut times = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let start = Instant::now();
        let mut run = engine.run(request(calls)?).await?;
        let mut finished = 0;
        while let Some(event) = run.next().await {
            if let RunEvent::ToolFinished { status: "ok", .. } = event {
                finished += 1;
            }
        }
        if finished != calls {
            return Err(format!("{finished} of {calls} calls ran").into());
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times
        .get(TURNS / 2)
        .copied()
        .ok_or_else(|| "nothing was measured".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = engine()?;
    // The first turn compiles the routing rules.
    measure(&engine, 1).await?;
    let one = measure(&engine, 1).await?;
    let wide = measure(&engine, WIDTH).await?;
    let mut out = std::io::stdout();
    writeln!(out, "one call of 100 ms: {one:.1} ms")?;
    writeln!(out, "{WIDTH} calls in one wave: {wide:.1} ms")?;
    writeln!(out, "ratio {:.3}", wide / one)?;
    Ok(())
}

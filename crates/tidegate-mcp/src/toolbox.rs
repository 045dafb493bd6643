//! The servers' tools behind the [`ToolBox`] port, like any other tool.
//!
//! A call comes here only as an `Authorized<ToolCall>`. Addresses in its arguments are judged by the policy of the
//! guarded client twice: as facts for the gate, and, with their names looked up, just before the server is asked. What
//! the server then dials is beyond this door; that nothing it was told leads inside is not.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rmcp::model::{CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ServerResult};
use serde_json::{Map, Value};
use tidegate_core::{
    caller::Mode,
    tool::{FailureCode, ToolCall, ToolResult, ToolSpec},
};
use tidegate_gate::{Authorized, Denial, Facts, ToolBox, ToolContext};
use tidegate_io::guarded;
use tokio::time::Instant;

use crate::{
    Options, State, addresses, arguments,
    connection::RequestFault,
    library,
    registry::{Entry, Registry},
    results,
    slot::Slot,
    text,
    transport::watched::Follow,
};

/// The longest name of a tool in an answer, in characters.
const NAME_CHARS_MAX: usize = 80;

/// The tools of all servers.
#[derive(Debug, Clone)]
pub struct McpTools {
    pub(crate) registry: Arc<Registry>,
    network: guarded::Client,
    pub(crate) options: Options,
}

impl McpTools {
    pub(crate) fn new(registry: Arc<Registry>, network: guarded::Client, options: Options) -> Self {
        Self {
            registry,
            network,
            options,
        }
    }

    /// Whether a name is one of a server's tool, or of the tools over servers; such names are nobody else's.
    pub fn is_ours(name: &str) -> bool {
        name.starts_with(crate::names::PREFIX) || library::is_tool(name)
    }

    /// The schema that the arguments of a call must fit.
    fn schema(&self, name: &str) -> Option<Arc<ToolSpec>> {
        let snapshot = self.registry.snapshot();
        snapshot.specs.iter().find(|spec| spec.name == name).cloned()
    }

    fn fitted(&self, call: &ToolCall) -> Result<Map<String, Value>, ToolResult> {
        let Some(spec) = self.schema(&call.name) else {
            return Err(self.unknown(&call.name));
        };
        let Some(given) = call.arguments.object() else {
            return Err(ToolResult::failed(
                FailureCode::InvalidArguments,
                "the arguments are not a JSON object",
            ));
        };
        let schema = spec.input_schema.as_ref().unwrap_or(&Value::Null);
        arguments::fit(schema, given).map_err(arguments::Problem::result)
    }

    /// Why there is no such tool, as far as anybody knows.
    fn unknown(&self, name: &str) -> ToolResult {
        let slots = self.registry.slots();
        let is_held = slots
            .values()
            .any(|slot| slot.catalog().blocked.iter().any(|blocked| blocked.name == name));
        let shown = text::line(name, NAME_CHARS_MAX);
        if is_held {
            return ToolResult::failed(
                FailureCode::PermissionDenied,
                format!(
                    "the server has changed what `{shown}` is, so it is not run until the operator approves the change (`tidegate mcp approve`). Do not try it again; say so in the answer."
                ),
            );
        }
        ToolResult::failed(
            FailureCode::UnknownTool,
            format!("no MCP server that is connected has a tool `{shown}`"),
        )
    }

    /// Judges where addresses in the arguments lead, names looked up.
    async fn reach(&self, arguments: &Map<String, Value>) -> Result<(), Denial> {
        for url in addresses::of(arguments)? {
            let destination = self.network.check(&url).map_err(|fault| fault.denial())?;
            // A name that cannot be looked up here leads nowhere here; the server will say so.
            if let Some(denial) = self
                .network
                .reach(destination)
                .await
                .err()
                .and_then(|error| error.denial())
            {
                return Err(denial);
            }
        }
        Ok(())
    }

    async fn call(&self, call: &ToolCall, context: &ToolContext) -> ToolResult {
        let arguments = match self.fitted(call) {
            Ok(arguments) => arguments,
            Err(result) => return result,
        };
        if let Err(denial) = self.reach(&arguments).await {
            return ToolResult::Refused {
                floor: denial.floor.to_owned(),
                reason: denial.reason,
            };
        }
        let follow = Follow {
            run: context.run_id.clone(),
            host: Arc::clone(&context.host),
        };
        if library::is_tool(&call.name) {
            return library::run(self, &call.name, &arguments, &follow).await;
        }
        let Some(entry) = self.registry.snapshot().entries.get(&call.name).cloned() else {
            return self.unknown(&call.name);
        };
        let params = CallToolRequestParams::new(entry.raw.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match ask(&entry.slot, &self.options, request, follow).await {
            Ok(answer) => Self::answered(&entry, answer),
            Err(result) => result,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "an enum of the SDK, which grows with the protocol"
    )]
    fn answered(entry: &Entry, answer: ServerResult) -> ToolResult {
        let bytes_max = entry.spec.output_bytes_max;
        let server = &entry.slot.server.name;
        match answer {
            ServerResult::CallToolResult(result) => results::of_call(&result, bytes_max),
            // A result without content.
            ServerResult::EmptyResult(_) => results::of_call(&CallToolResult::default(), bytes_max),
            ServerResult::InputRequiredResult(_) => ToolResult::failed(
                FailureCode::Unsuccessful,
                format!(
                    "the server `{server}` wants to ask a person something first, which is not allowed here. Give all it may need in the arguments, or do without it."
                ),
            ),
            ServerResult::CreateTaskResult(_) => ToolResult::failed(
                FailureCode::Unsuccessful,
                format!(
                    "the server `{server}` has started a task that goes on by itself; its result cannot be had here"
                ),
            ),
            _ => ToolResult::failed(
                FailureCode::Unsuccessful,
                format!("the answer of the server `{server}` is none that the protocol knows"),
            ),
        }
    }
}

/// Asks a server, through its breaker and with its deadline.
pub(crate) async fn ask(
    slot: &Slot,
    options: &Options,
    request: ClientRequest,
    follow: Follow,
) -> Result<ServerResult, ToolResult> {
    let server = &slot.server.name;
    let failed = |message: String| ToolResult::failed(FailureCode::Unsuccessful, message);
    let pass = slot
        .breaker
        .admit(Instant::now())
        .map_err(|left| failed(paused(server, left)))?;
    let Some(connection) = slot.connection() else {
        return Err(failed(absent(server, &slot.state())));
    };
    let limit = Duration::from_millis(slot.server.timeout_ms.unwrap_or(options.timeout_ms));
    let fault = match connection.request(request, limit, Some(follow)).await {
        Ok(answer) => {
            pass.answered();
            return Ok(answer);
        }
        Err(fault) => fault,
    };
    let is_open = if fault.is_outage() {
        pass.failed(Instant::now())
    } else {
        if !matches!(fault, RequestFault::Busy(_)) {
            pass.answered();
        }
        false
    };
    // A connection that broke, or a server that does not answer, is given a new start.
    if is_open || matches!(fault, RequestFault::Closed(_)) {
        connection.give_up();
    }
    Err(match fault {
        RequestFault::TimedOut(after_ms) if !is_open => ToolResult::TimedOut { after_ms },
        RequestFault::Refused {
            code: -32602,
            message,
        } => ToolResult::failed(
            FailureCode::InvalidArguments,
            format!("the server `{server}` does not take these arguments: {message}"),
        ),
        RequestFault::Refused { message, .. } => failed(format!("the server `{server}` refuses: {message}")),
        RequestFault::Busy(_) => failed(format!(
            "the server `{server}` is busy: {fault}; wait for their results before you call it again"
        )),
        RequestFault::TimedOut(_) | RequestFault::Closed(_) | RequestFault::Unexpected => {
            let paused = slot.breaker.left(Instant::now());
            let then = paused.map_or_else(String::new, |left| format!(" {}", paused_now(left)));
            failed(format!(
                "the server `{server}` failed: {fault}. Whether it did anything is not known.{then}"
            ))
        }
    })
}

/// Seconds left, a begun one counted whole.
fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

fn paused_now(left: Duration) -> String {
    format!(
        "Its tools are paused for {} s: do not call them again before that, and go on without them.",
        seconds(left)
    )
}

fn paused(server: &str, left: Duration) -> String {
    format!(
        "the server `{server}` has failed several times in a row and is not asked. {}",
        paused_now(left)
    )
}

fn absent(server: &str, state: &State) -> String {
    let why = match state {
        State::Starting | State::Ready => "is just being started".to_owned(),
        State::Down { reason, again_in_ms } => format!(
            "is down ({reason}) and is tried again in {} s",
            seconds(Duration::from_millis(*again_in_ms))
        ),
        State::Disabled => "is switched off".to_owned(),
    };
    format!("the server `{server}` {why}. Do not call its tools again in this turn; go on without them.")
}

#[async_trait]
impl ToolBox for McpTools {
    fn specs(&self) -> Arc<[Arc<ToolSpec>]> {
        Arc::clone(&self.registry.snapshot().specs)
    }

    fn check(&self, call: &ToolCall, _spec: &ToolSpec) -> Result<(), ToolResult> {
        self.fitted(call).map(drop)
    }

    async fn facts(&self, call: &ToolCall, _spec: &ToolSpec, _mode: Mode) -> Facts {
        let mut facts = Facts::default();
        let Some(arguments) = call.arguments.object() else {
            return facts;
        };
        match addresses::of(arguments) {
            Ok(urls) => {
                for url in urls {
                    match self.network.check(&url) {
                        Ok(destination) => facts.urls.push(destination.as_str().to_owned()),
                        Err(fault) => {
                            facts.refusal.get_or_insert_with(|| fault.denial());
                        }
                    }
                }
            }
            Err(denial) => facts.refusal = Some(denial),
        }
        facts
    }

    async fn run(&self, call: Authorized<ToolCall>, context: &ToolContext) -> ToolResult {
        // On the heap: a request's state is large, and the engine holds several.
        Box::pin(self.call(&call.into_inner(), context)).await
    }
}

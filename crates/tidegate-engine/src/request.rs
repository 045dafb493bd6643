//! What a front end asks of the engine.

use std::{any::Any, fmt, sync::Arc};

use serde_json::Value;
use tidegate_core::{
    caller::{Caller, Mode, Origin},
    id::RequestId,
    key::Disconnect,
    message::Message,
    model::{Sampling, ToolChoice, ToolSchema},
};

use crate::approver::Approver;

/// One turn, as a front end asks for it. Wire types have been left behind.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Who asks.
    pub caller: Caller,
    /// Through which front end.
    pub origin: Origin,
    /// The request's id.
    pub request_id: RequestId,
    /// The model, as the client names it.
    pub model: String,
    /// The history as the client sends it, the newest message last.
    pub messages: Vec<Message>,
    /// Tools the client runs itself.
    pub client_tools: Vec<ToolSchema>,
    /// Whether the model must, may or must not call tools; binds the first model call only.
    pub tool_choice: ToolChoice,
    /// Whether the client takes several calls in one answer.
    pub parallel_tool_calls: bool,
    /// How to sample.
    pub sampling: Sampling,
    /// The wire's `response_format`; applies to the final answer.
    pub response_format: Option<Value>,
    /// Whether the front end wants text as it is made.
    pub stream: bool,
    /// The mode the request asks for; it can only lower the key's.
    pub mode: Option<Mode>,
    /// Which conversation the turn belongs to, where the client says so; else its first words tell.
    pub conversation: Option<String>,
    /// What happens to the run when nobody looks at it any more.
    pub on_disconnect: Disconnect,
    /// What the front end has set aside for the request.
    pub lease: Lease,
    /// Who can be asked while the run waits; absent where its questions wait for a later one.
    pub approver: Option<Arc<dyn Approver>>,
}

/// Something of the front end's that is given back when the run's task has ended, however long that goes on after
/// the client has left: a share of a bound on memory, a permit. The engine does not look at it.
#[derive(Clone, Default)]
pub struct Lease(Option<Arc<dyn Any + Send + Sync>>);

impl Lease {
    /// A lease of that.
    pub fn of(held: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(held))
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Lease(held)"
        } else {
            "Lease(none)"
        })
    }
}

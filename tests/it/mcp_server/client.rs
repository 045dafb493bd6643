//! The SDK's client, with somebody in front of it.

use std::sync::{Arc, Mutex};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationCapability, Implementation, ProgressNotificationParam,
        ProtocolVersion,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext,
        RequestContext, RunningService,
    },
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Daemon, http_client};

/// Whoever sits at the client.
#[derive(Debug, Clone, Default)]
pub(super) struct Person {
    /// What they answer when they are asked; `None`: the client cannot ask them.
    pub(super) says: Option<bool>,
    /// They answer no sooner than this says.
    pub(super) thinks: Option<Arc<Notify>>,
    /// What they were asked.
    pub(super) asked: Arc<Mutex<Vec<String>>>,
    /// What they were told of the progress.
    pub(super) told: Arc<Mutex<Vec<String>>>,
}

impl Person {
    pub(super) fn who_says(yes: bool) -> Self {
        Self {
            says: Some(yes),
            ..Self::default()
        }
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.says.map(|_| ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.asked.lock().unwrap().push(message);
        }
        if let Some(thinks) = &self.thinks {
            thinks.notified().await;
        }
        Ok(match self.says {
            Some(true) => ElicitResult::new(ElicitationAction::Accept).with_content(json!({"approve": true})),
            Some(false) | None => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.told.lock().unwrap().extend(params.message);
    }
}

/// A connected client.
pub(super) type Client = RunningService<RoleClient, Person>;

/// The generations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// With a handshake and a session.
    Older,
    /// Each request stands for itself.
    Newer,
}

pub(super) const GENERATIONS: [Generation; 2] = [Generation::Older, Generation::Newer];

impl Generation {
    pub(super) fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Older => ClientLifecycleMode::Initialize,
            Self::Newer => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        }
    }
}

/// Connects over HTTP.
pub(super) async fn try_connect(
    daemon: &Daemon,
    key: &str,
    person: Person,
    generation: Generation,
) -> Result<Client, ClientInitializeError> {
    let config = StreamableHttpClientTransportConfig::with_uri(daemon.url("/mcp")).auth_header(key);
    let transport = StreamableHttpClientTransport::with_client(http_client(), config);
    person
        .serve_with_lifecycle(transport, generation.lifecycle())
        .await
}

/// Connects over HTTP, which must succeed.
pub(super) async fn connect(daemon: &Daemon, key: &str, person: Person, generation: Generation) -> Client {
    try_connect(daemon, key, person, generation).await.unwrap()
}

/// A call that the protocol carries.
pub(super) async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    try_call(client, tool, arguments).await.unwrap()
}

/// A call, or the protocol's error as text.
pub(super) async fn try_call(
    client: &Client,
    tool: &str,
    arguments: Value,
) -> Result<CallToolResult, String> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    client.call_tool(params).await.map_err(|error| error.to_string())
}

/// What a result says.
pub(super) fn text(result: &CallToolResult) -> String {
    let content = serde_json::to_value(&result.content).unwrap();
    content[0]["text"].as_str().unwrap_or_default().to_owned()
}

/// The names of the tools that are offered.
pub(super) async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_all_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

//! What a server may ask of us: a ping, and, where its entry allows it, a model's words during a call. Everything
//! else is refused with a clear answer.

#![expect(
    deprecated,
    reason = "a later revision of the protocol drops what is answered here; servers of the earlier ones ask for it"
)]

use std::sync::Arc;

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData, Implementation,
        ListRootsResult, ProtocolVersion, Role, SamplingMessage, SamplingMessageContentBlock,
    },
    service::RequestContext,
};
use tidegate_core::model::FinishReason;
use tidegate_gate::{Notice, SampleMessage, SampleRequest};

use crate::{event::TEXT_CHARS_MAX, servers_file::Server, text, transport::watched::Notices};

/// The code of a refusal by the person in charge (MCP, "sampling: error handling").
const REJECTED: ErrorCode = ErrorCode(-1);
/// The most messages of one question for a model.
const MESSAGES_MAX: usize = 64;

/// Our side of a connection. It declares no capability but those that the server's entry opens.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    server: String,
    allows_sampling: bool,
    notices: Arc<Notices>,
}

impl Client {
    pub(crate) fn new(server: &Server, notices: Arc<Notices>) -> Self {
        Self {
            server: server.name.clone(),
            allows_sampling: server.allows_sampling,
            notices,
        }
    }
}

fn refused(what: &str) -> ErrorData {
    rejected(format!(
        "{what} is not allowed by the operator of this client; go on without it"
    ))
}

fn rejected(text: String) -> ErrorData {
    ErrorData::new(REJECTED, text, None)
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = if self.allows_sampling {
            ClientCapabilities::builder().enable_sampling().build()
        } else {
            ClientCapabilities::default()
        };
        ClientConfig::new(
            capabilities,
            Implementation::new("tidegate", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.allows_sampling {
            return Err(refused("sampling"));
        }
        let request = question(&self.server, params)?;
        // On whose behalf the server asks is known by its only call.
        let Some(host) = self.notices.only_call() else {
            return Err(rejected(
                "a model is asked only while a call of one of your tools is under way".to_owned(),
            ));
        };
        let sample = host
            .sample(request)
            .await
            .map_err(|refusal| rejected(refusal.to_string()))?;
        let reason = match sample.reason {
            FinishReason::Length => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::ContentFilter => {
                CreateMessageResult::STOP_REASON_END_TURN
            }
        };
        let message = SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(sample.text));
        Ok(CreateMessageResult::new(message, sample.model).with_stop_reason(reason))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        // Whoever looks at the run should know what was not asked of them.
        if let Some(host) = self.notices.only_call() {
            let asked = text::line(message(&request), TEXT_CHARS_MAX);
            host.notice(Notice::Log {
                level: "notice",
                text: format!("declined, as nobody can be asked during a call: {asked}"),
            });
        }
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(refused("a look at the file system"))
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of the SDK, which grows with the protocol"
)]
fn message(request: &ElicitRequestParams) -> &str {
    match request {
        ElicitRequestParams::FormElicitationParams { message, .. }
        | ElicitRequestParams::UrlElicitationParams { message, .. } => message,
        _ => "a question of a kind that is not known here",
    }
}

/// The question in our words. What is no text cannot be asked.
fn question(server: &str, params: CreateMessageRequestParams) -> Result<SampleRequest, ErrorData> {
    let invalid = |text: &str| ErrorData::invalid_params(text.to_owned(), None);
    if params.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err(invalid("a model is asked without tools here; leave `tools` out"));
    }
    if params.messages.len() > MESSAGES_MAX {
        return Err(invalid("there are too many messages"));
    }
    let mut messages = Vec::with_capacity(params.messages.len());
    for message in params.messages {
        let is_answer = message.role == Role::Assistant;
        for block in message.content.into_vec() {
            let SamplingMessageContentBlock::Text(content) = block else {
                return Err(invalid("a model is asked by text alone here"));
            };
            messages.push(SampleMessage {
                is_answer,
                text: content.text,
            });
        }
    }
    Ok(SampleRequest {
        source: server.to_owned(),
        system: params.system_prompt,
        messages,
        tokens_max: u64::from(params.max_tokens),
        temperature: params.temperature.map(f64::from),
        stop: params.stop_sequences.unwrap_or_default(),
    })
}

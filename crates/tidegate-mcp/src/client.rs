//! What a server may ask of us: a ping. Everything else is refused with a clear answer.

#![expect(
    deprecated,
    reason = "a later revision of the protocol drops what is refused here; servers of the earlier ones ask for it"
)]

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData, Implementation,
        ListRootsResult, ProtocolVersion,
    },
    service::RequestContext,
};

/// The code of a refusal by the person in charge (MCP, "sampling: error handling").
const REJECTED: ErrorCode = ErrorCode(-1);

/// Our side of a connection. It declares no capability.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client;

fn refused(what: &str) -> ErrorData {
    ErrorData::new(
        REJECTED,
        format!("{what} is not allowed by the operator of this client; go on without it"),
        None,
    )
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("tidegate", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(refused("sampling"))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(refused("a look at the file system"))
    }
}

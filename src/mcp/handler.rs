//! The protocol's methods over the server's parts. The SDK reads and writes the wire; nothing here knows which
//! transport a message came by.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
};

use super::{Asker, Server, page, prompts, resources, stdio::Door, tools};

/// What a client's model is told of the server as a whole.
const INSTRUCTIONS: &str = "An agent server. Its tools read the operator's files and documents; `ask_agent` gives a \
     whole task to the agent behind it. A result that says `needs_approval` waits for a person: tell the user.";

/// Answers the messages of one connection, or of one request.
#[derive(Debug, Clone)]
pub struct Handler {
    server: Server,
    /// Who speaks on standard input; over HTTP each message brings its asker along.
    door: Option<Arc<Door>>,
}

impl Handler {
    /// For HTTP, where the authentication layer has put an [`Asker`] into each request.
    pub fn behind_layers(server: Server) -> Self {
        Self { server, door: None }
    }

    /// For a connection whose messages all come from the same key.
    pub(super) fn at(server: Server, door: Arc<Door>) -> Self {
        Self {
            server,
            door: Some(door),
        }
    }

    /// Who asks. Fails closed: a message that went past the layers is answered by nobody.
    async fn asker(&self, context: &RequestContext<RoleServer>) -> Result<Asker, ErrorData> {
        if let Some(door) = &self.door {
            return Arc::clone(door).admit().await;
        }
        context
            .extensions
            .get::<axum::http::request::Parts>()
            .and_then(|parts| parts.extensions.get::<Asker>())
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("a message lies outside the authentication layer", None))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .build();
        let name = Implementation::new("tidegate", env!("CARGO_PKG_VERSION")).with_title("tidegate");
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let asker = self.asker(&context).await?;
        let tools = tools::list(&self.server, &asker);
        let (items, next) = page::cut(tools, page::cursor(request).as_deref())?;
        let mut result = ListToolsResult::with_all_items(items);
        result.next_cursor = next;
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asker = self.asker(&context).await?;
        let cancelled = context.ct.clone();
        // Large, and one of many: on the heap.
        let called = Box::pin(tools::call(&self.server, &asker, request, &context));
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
            result = called => result,
            () = self.server.stopped() => Err(ErrorData::internal_error("the server is stopping", None)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let asker = self.asker(&context).await?;
        resources::list(&self.server, &asker, page::cursor(request).as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let asker = self.asker(&context).await?;
        Ok(resources::templates(&self.server, &asker))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let asker = self.asker(&context).await?;
        let cancelled = context.ct.clone();
        let read = Box::pin(resources::read(&self.server, &asker, &request.uri));
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(ErrorData::internal_error("the read was cancelled", None)),
            result = read => result.map(Into::into),
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let asker = self.asker(&context).await?;
        prompts::list(&self.server, &asker, page::cursor(request).as_deref()).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let asker = self.asker(&context).await?;
        prompts::get(&self.server, &asker, request).await.map(Into::into)
    }
}

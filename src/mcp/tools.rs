//! The operator's tools, as far as they are offered here, and `ask_agent`.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Tool, ToolAnnotations},
    service::RequestContext,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tidegate_core::{
    caller::{Mode, Origin},
    id::{ApprovalId, RequestId},
    tool::{Effect, ToolMode, ToolResult, ToolSpec},
};
use tidegate_engine::{CallRequest, RunError, Said};

use super::{
    Asker, Server,
    approve::{self, Way},
    ask,
    exposure::{self, is_offered},
};

/// What the caller is offered: the agent itself, then the operator's tools in their order.
pub(super) fn list(server: &Server, asker: &Asker) -> Vec<Tool> {
    let mut tools = Vec::new();
    if exposure::may_ask(&asker.caller) {
        tools.push(ask::tool(server, asker));
    }
    tools.extend(offered(server, asker).iter().map(|spec| tool(spec)));
    tools
}

/// The operator's tools that this caller is offered.
fn offered(server: &Server, asker: &Asker) -> Vec<Arc<ToolSpec>> {
    let mode = server.engine.mode_of(&asker.caller, asker.mode);
    let mut specs = server.engine.tools_of(&asker.caller);
    specs.retain(|spec| spec.name != ask::NAME && is_offered(spec, server.options.allow_writes, mode));
    specs
}

/// The name of a tool of that kind that this caller is offered.
pub(super) fn of_mode(server: &Server, asker: &Asker, mode: ToolMode) -> Option<String> {
    let found = offered(server, asker)
        .into_iter()
        .find(|spec| spec.mode == mode)?;
    Some(found.name.clone())
}

fn tool(spec: &ToolSpec) -> Tool {
    let schema = match spec.parameters_schema() {
        Value::Object(schema) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::from_iter([("type".to_owned(), json!("object"))])
        }
    };
    Tool::new(spec.name.clone(), spec.description.clone(), schema).with_annotations(hints(spec))
}

/// What a client may show of the tool's effect. A hint for people: the gate decides.
fn hints(spec: &ToolSpec) -> ToolAnnotations {
    let reaches_out = match spec.effect {
        // Whatever it says of itself, another server is out there.
        Effect::Read | Effect::Write => spec.mode == ToolMode::Mcp,
        Effect::Network | Effect::External => true,
    };
    ToolAnnotations::new()
        .read_only(spec.effect.is_read_only())
        .destructive(!spec.effect.is_read_only())
        .open_world(reaches_out)
}

/// One call.
pub(super) async fn call(
    server: &Server,
    asker: &Asker,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if params.name == ask::NAME && exposure::may_ask(&asker.caller) {
        return ask::ask(server, asker, &params, context).await;
    }
    // What is not offered does not exist here; the name is not repeated, it can be anything.
    let spec = offered(server, asker)
        .into_iter()
        .find(|spec| spec.name == params.name)
        .ok_or_else(|| {
            ErrorData::invalid_params("unknown tool; list the tools to see what there is", None)
        })?;
    // A client of the newer generation answers a question by making the call again.
    let answer = approve::answered(&params);
    if let Some(answer) = &answer
        && approve::decide(server, asker, answer).await? == Said::No
    {
        return Ok(denied().into());
    }
    let way = approve::way(server, asker, context);
    let arguments = params.arguments.unwrap_or_default();
    let mut request = request(server, asker, &spec.name, arguments, Mode::ReadOnly);
    let ended = if way == Some(Way::Within) {
        let (approver, desk) = approve::desk(server);
        request.approver = Some(approver);
        approve::attend(desk, server, asker, context, server.engine.call(request)).await
    } else {
        server.engine.call(request).await
    };
    let end = ended.map_err(|error| refused(&error))?.result;
    let Some((id, reason)) = question(&end) else {
        return Ok(result(&end).into());
    };
    // Nobody is asked twice about one call.
    if way == Some(Way::After)
        && answer.is_none()
        && let Some(ending) = approve::ending_with(server, asker, &id, &reason).await?
    {
        return Ok(ending.into());
    }
    Ok(unapproved(&end, &id).into())
}

/// A call that the person at the client has refused.
fn denied() -> CallToolResult {
    result(&ToolResult::Refused {
        floor: "person".to_owned(),
        reason: "the person who was asked said no. Do not try the same thing another way.".to_owned(),
    })
}

/// The call as the engine takes it. Where writes are not allowed here, no run has a mode above `most`.
pub(super) fn request(
    server: &Server,
    asker: &Asker,
    tool: &str,
    arguments: Map<String, Value>,
    most: Mode,
) -> CallRequest {
    CallRequest {
        caller: asker.caller.clone(),
        origin: Origin::Mcp,
        request_id: RequestId::generate(server.entropy.as_ref()),
        mode: asker.mode(server, most),
        model: server.model.clone(),
        conversation: asker.conversation(),
        tool: tool.to_owned(),
        arguments,
        lease: asker.lease.clone(),
        approver: None,
    }
}

/// The question that a result stands for.
fn question(result: &ToolResult) -> Option<(ApprovalId, String)> {
    match result {
        ToolResult::NeedsApproval {
            reason,
            approval_id: Some(id),
        } => Some((id.clone(), reason.clone())),
        ToolResult::NeedsApproval {
            approval_id: None, ..
        }
        | ToolResult::Ok { .. }
        | ToolResult::Failed { .. }
        | ToolResult::Refused { .. }
        | ToolResult::TimedOut { .. }
        | ToolResult::Cancelled => None,
    }
}

/// A result on the wire.
fn result(result: &ToolResult) -> CallToolResult {
    let content = vec![ContentBlock::text(result.to_model_text())];
    if result.is_ok() {
        return CallToolResult::success(content);
    }
    let mut failed = CallToolResult::error(content);
    failed.structured_content = Some(json!({ "status": result.status() }));
    failed
}

/// How a person answers a question that nobody here was asked.
#[derive(Debug, Serialize)]
pub(super) struct HowTo {
    approval_id: ApprovalId,
    command: String,
    endpoint: String,
}

impl HowTo {
    /// For that question.
    pub(super) fn approve(id: &ApprovalId) -> Self {
        Self {
            approval_id: id.clone(),
            command: format!("tidegate approvals approve {id}"),
            endpoint: format!("POST /v1/approvals/{id}/decision"),
        }
    }

    /// In words.
    pub(super) fn sentence(&self) -> String {
        format!(
            "To approve it: `{}` where the server runs, or `{}` with a key that may decide.",
            self.command, self.endpoint
        )
    }
}

/// A call that waits for a person, and how that person answers.
fn unapproved(waiting: &ToolResult, id: &ApprovalId) -> CallToolResult {
    let how = HowTo::approve(id);
    let text = format!(
        "{} {} Then make the very same call again.",
        waiting.to_model_text(),
        how.sentence()
    );
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    let mut details = json!(how);
    details["status"] = waiting.status().into();
    result.structured_content = Some(details);
    result
}

/// Why nothing can be said of a call, as the protocol's error.
pub(super) fn refused(error: &RunError) -> ErrorData {
    match error {
        RunError::Invalid { .. } | RunError::ModelNotAllowed(_) => {
            ErrorData::invalid_params(error.to_string(), None)
        }
        RunError::Model(_)
        | RunError::QuotaSpent { .. }
        | RunError::TooManyTurns { .. }
        | RunError::TurnTimeout { .. }
        | RunError::Cancelled
        | RunError::Stopping => ErrorData::internal_error(error.to_string(), None),
        RunError::Prompt(detail) | RunError::Store(detail) => {
            tracing::error!(detail, "a call over MCP failed");
            ErrorData::internal_error("the server failed; its log says how", None)
        }
    }
}

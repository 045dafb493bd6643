//! Other MCP servers, for administrators: how they do, the file read again, changed tools accepted.

use axum::{Json, extract::State};
use tidegate_mcp::{Error, Hub};
use tracing::info;

use crate::http::{
    AppState,
    auth::Identity,
    error::ApiError,
    extract::{ApiJsonOrNothing, query::PathText},
    wire::{
        keys::NoFields,
        servers::{ApproveBody, ApprovedBody, ReloadedBody, ServerBody, ServerList},
    },
};

/// Show the MCP servers
#[utoipa::path(get, path = "/v1/admin/mcp/servers", tag = "mcp", responses((status = 200, body = ServerList)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    _identity: Identity,
) -> Result<Json<ServerList>, ApiError> {
    let hub = hub(&app)?;
    Ok(Json(ServerList::of(hub.status(), hub.notes())))
}

/// Read the file of MCP servers again
///
/// Servers whose entry has not changed go on; calls under way end on the old connection.
#[utoipa::path(post, path = "/v1/admin/mcp/reload", tag = "mcp", responses((status = 200, body = ReloadedBody)))]
pub(in crate::http) async fn reload(
    State(app): State<AppState>,
    identity: Identity,
    ApiJsonOrNothing(NoFields {}): ApiJsonOrNothing<NoFields>,
) -> Result<Json<ReloadedBody>, ApiError> {
    let reloaded = hub(&app)?.reload().await.map_err(|error| fault(&error))?;
    info!(by = %identity.caller.key_id, "the file of MCP servers was read again");
    Ok(Json(reloaded.into()))
}

/// Connect to an MCP server anew
#[utoipa::path(post, path = "/v1/admin/mcp/servers/{name}/restart", tag = "mcp",
    params(("name" = String, Path, description = "the server's name in the file")),
    responses((status = 200, body = ServerBody)))]
pub(in crate::http) async fn restart(
    State(app): State<AppState>,
    identity: Identity,
    PathText(name): PathText,
    ApiJsonOrNothing(NoFields {}): ApiJsonOrNothing<NoFields>,
) -> Result<Json<ServerBody>, ApiError> {
    let hub = hub(&app)?;
    hub.restart(&name).await.map_err(|error| fault(&error))?;
    info!(by = %identity.caller.key_id, server = %name, "an MCP server is connected to anew");
    let status = hub.status().into_iter().find(|status| status.name == name);
    status
        .map(|status| Json(status.into()))
        .ok_or_else(|| ApiError::not_found("MCP server"))
}

/// Accept what an MCP server has changed of its tools
///
/// A tool whose definition is another one than was accepted is not offered before this.
#[utoipa::path(post, path = "/v1/admin/mcp/servers/{name}/approve", tag = "mcp", request_body = ApproveBody,
    params(("name" = String, Path, description = "the server's name in the file")),
    responses((status = 200, body = ApprovedBody)))]
pub(in crate::http) async fn approve(
    State(app): State<AppState>,
    identity: Identity,
    PathText(name): PathText,
    ApiJsonOrNothing(body): ApiJsonOrNothing<ApproveBody>,
) -> Result<Json<ApprovedBody>, ApiError> {
    let hub = hub(&app)?;
    let (tool, digest) = (body.tool.as_deref(), body.digest.as_deref());
    let approved = hub
        .approve(&name, tool, digest)
        .await
        .map_err(|error| fault(&error))?;
    info!(by = %identity.caller.key_id, server = %name, approved, "changed tools of an MCP server were accepted");
    Ok(Json(ApprovedBody::of(approved)))
}

fn hub(app: &AppState) -> Result<&Hub, ApiError> {
    app.parts
        .servers
        .as_ref()
        .ok_or_else(|| ApiError::too_late("MCP servers are switched off (`mcp.enabled`)"))
}

fn fault(error: &Error) -> ApiError {
    match error {
        Error::UnknownServer(_) => ApiError::not_found("MCP server"),
        Error::File { .. } | Error::Approval(_) | Error::Login { .. } => {
            ApiError::too_late(&error.to_string())
        }
        Error::Stopped => ApiError::internal(error.to_string()),
    }
}

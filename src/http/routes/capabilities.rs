//! What the caller can do here. The answer depends on the key; no path and no host of the machine is in it.

use axum::{Json, extract::State};
use tidegate_core::caller::Origin;
use tidegate_llm::DEFAULT_ALIAS;

use crate::http::{AppState, auth::Identity, error::ApiError, wire::capabilities::CapabilitiesBody};

/// Show capabilities
///
/// What this key can do here, from live state: the permission mode and where it comes from, each tool and what
/// becomes of its calls, every limit (also those that are not set), floors, zones, network, sandbox, approvals and
/// audit. The tool `describe_capabilities` tells the model the same.
#[utoipa::path(get, path = "/v1/capabilities", tag = "capabilities",
    responses((status = 200, body = CapabilitiesBody)))]
pub(in crate::http) async fn show(
    State(app): State<AppState>,
    identity: Identity,
) -> Result<Json<CapabilitiesBody>, ApiError> {
    let engine = std::sync::Arc::clone(&app.parts.engine);
    // Skills are read from the disk.
    let gathered = tokio::task::spawn_blocking(move || {
        engine.capabilities(&identity.caller, Origin::Http, identity.mode, DEFAULT_ALIAS)
    });
    let (found, text) = gathered
        .await
        .map_err(|_broken| ApiError::internal("the capability report broke"))?;
    Ok(Json(CapabilitiesBody::new(found, text)))
}

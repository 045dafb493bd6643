//! The models a key may use.

use axum::{Json, extract::State};
use serde::Serialize;
use tidegate_core::model::ModelInfo;
use utoipa::ToSchema;

use crate::http::{AppState, auth::Identity, error::ApiError, extract::query::PathText};

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Model {
    id: String,
    /// `model`.
    object: &'static str,
    created: i64,
    owned_by: String,
    /// The context window in tokens, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
}

/// The models that the key may use.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ModelList {
    /// `list`.
    object: &'static str,
    data: Vec<Model>,
}

impl From<ModelInfo> for Model {
    fn from(info: ModelInfo) -> Self {
        Self {
            id: info.id,
            object: "model",
            created: info.created,
            owned_by: info.owned_by,
            context_length: info.context_tokens,
        }
    }
}

/// List models
///
/// Only what the key may use; `tidegate` names the default.
#[utoipa::path(get, path = "/v1/models", tag = "models",
    responses((status = 200, body = ModelList)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    identity: Identity,
) -> Result<Json<ModelList>, ApiError> {
    let models = app.parts.models.list().await?;
    let mine = models
        .into_iter()
        .filter(|model| identity.caller.may_use_model(&model.id));
    Ok(Json(ModelList {
        object: "list",
        data: mine.map(Model::from).collect(),
    }))
}

/// Show a model
///
/// The id may hold `/` and `:`, escaped or not.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "models", params(("model" = String, Path, description = "the id")),
    responses((status = 200, body = Model)))]
pub(in crate::http) async fn show(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
) -> Result<Json<Model>, ApiError> {
    if !identity.caller.may_use_model(&id) {
        return Err(ApiError::model_not_found(&id));
    }
    let models = app.parts.models.list().await?;
    if let Some(info) = models.into_iter().find(|model| model.id == id) {
        return Ok(Json(info.into()));
    }
    // A provider that lists nothing passes any name through; then only asking tells.
    let found = app.parts.models.resolve(&id).await?;
    Ok(Json(Model {
        id,
        object: "model",
        created: 0,
        owned_by: found.provider,
        context_length: found.context_tokens,
    }))
}

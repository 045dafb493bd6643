//! The knowledge base, for administrators: how it does, what is in it, what a search would find and why, and a way
//! to put documents in. People who only talk to the agent reach it through the agent's tools.

use axum::{
    Json,
    body::Body,
    extract::{FromRequest, Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use tidegate_core::port::{KnowledgeBase, KnowledgeError};
use tracing::info;

use crate::http::{
    AppState,
    auth::Identity,
    body,
    documents::{NotStored, Uploader},
    error::ApiError,
    extract::{
        ApiJson, ApiJsonOrNothing, is_compressed,
        query::{ApiQuery, PathText},
    },
    stamp::Stamp,
    wire::keys::NoFields,
    wire::knowledge::{
        DocumentList, DocumentPage, Explanation, ListDocuments, RemovedBody, SearchBody, SearchList,
        StatusBody, StoredBody,
    },
};

/// Show how the knowledge base does
#[utoipa::path(get, path = "/v1/admin/kb", tag = "knowledge", responses((status = 200, body = StatusBody)))]
pub(in crate::http) async fn status(
    State(app): State<AppState>,
    _identity: Identity,
) -> Result<Json<StatusBody>, ApiError> {
    Ok(Json(base(&app)?.status().await.map_err(fault)?.into()))
}

/// Look at every file of the knowledge bank again
///
/// The work goes on in the background; what has not changed is not read again.
#[utoipa::path(post, path = "/v1/admin/kb/index", tag = "knowledge",
    responses((status = 202, body = StatusBody)))]
pub(in crate::http) async fn index(
    State(app): State<AppState>,
    identity: Identity,
    ApiJsonOrNothing(NoFields {}): ApiJsonOrNothing<NoFields>,
) -> Result<(StatusCode, Json<StatusBody>), ApiError> {
    let base = base(&app)?;
    base.written(&app.parts.knowledge_bank);
    info!(by = %identity.caller.key_id, "the knowledge bank is looked at again");
    let status = base.status().await.map_err(fault)?;
    Ok((StatusCode::ACCEPTED, Json(status.into())))
}

/// List documents
#[utoipa::path(get, path = "/v1/admin/kb/documents", tag = "knowledge", params(ListDocuments),
    responses((status = 200, body = DocumentList)))]
pub(in crate::http) async fn documents(
    State(app): State<AppState>,
    _identity: Identity,
    ApiQuery(page): ApiQuery<DocumentPage>,
) -> Result<Json<DocumentList>, ApiError> {
    let found = base(&app)?
        .list(&page.filter, page.after.as_deref(), page.limit)
        .await;
    found.map(|found| Json(DocumentList::of(found))).map_err(fault)
}

/// Search the documents
#[utoipa::path(post, path = "/v1/admin/kb/search", tag = "knowledge", request_body = SearchBody,
    responses((status = 200, body = SearchList)))]
pub(in crate::http) async fn search(
    State(app): State<AppState>,
    _identity: Identity,
    ApiJson(body): ApiJson<SearchBody>,
) -> Result<Json<SearchList>, ApiError> {
    let request = body.into_request()?;
    let answer = base(&app)?.search(&request).await.map_err(fault)?;
    Ok(Json(answer.into()))
}

/// Show why a search finds what it finds
#[utoipa::path(post, path = "/v1/admin/kb/explain", tag = "knowledge", request_body = SearchBody,
    responses((status = 200, body = Explanation)))]
pub(in crate::http) async fn explain(
    State(app): State<AppState>,
    _identity: Identity,
    ApiJson(body): ApiJson<SearchBody>,
) -> Result<Json<Explanation>, ApiError> {
    let request = body.into_request()?;
    let explained = base(&app)?.explain(&request).await.map_err(fault)?;
    Ok(Json(explained.into()))
}

/// Store a document
///
/// The body is the file, whatever it is; the path may hold slashes. It is put in place in one step and read in the
/// background. What the gate's floors refuse is refused here as well.
#[utoipa::path(put, path = "/v1/admin/kb/documents/{path}", tag = "knowledge",
    params(("path" = String, Path, description = "where, inside the knowledge bank")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = StoredBody, description = "it was replaced"), (status = 201, body = StoredBody, description = "it is new")))]
pub(in crate::http) async fn put(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    PathText(path): PathText,
    Upload(bytes): Upload,
) -> Result<Response, ApiError> {
    base(&app)?;
    let by = Uploader {
        caller: identity.caller.clone(),
        request_id,
    };
    let stored = app.parts.documents.put(&by, path, bytes).await.map_err(refusal)?;
    info!(by = %identity.caller.key_id, bytes = stored.bytes, "a document was stored");
    let status = if stored.is_replaced {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((status, Json(StoredBody::from(stored))).into_response())
}

/// Delete a document
///
/// The file is removed from the knowledge bank, and the index follows. What the gate's floors refuse is refused here as
/// well.
#[utoipa::path(delete, path = "/v1/admin/kb/documents/{path}", tag = "knowledge",
    params(("path" = String, Path, description = "where, inside the knowledge bank")),
    responses((status = 200, body = RemovedBody)))]
pub(in crate::http) async fn remove(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    PathText(path): PathText,
) -> Result<Json<RemovedBody>, ApiError> {
    base(&app)?;
    let by = Uploader {
        caller: identity.caller.clone(),
        request_id,
    };
    let path = app.parts.documents.remove(&by, path).await.map_err(refusal)?;
    info!(by = %identity.caller.key_id, "a document was removed");
    Ok(Json(RemovedBody {
        object: "document.deleted",
        path,
        deleted: true,
    }))
}

/// The bytes of a document, whatever they are.
pub(in crate::http) struct Upload(axum::body::Bytes);

impl FromRequest<AppState> for Upload {
    type Rejection = ApiError;

    async fn from_request(request: Request<Body>, app: &AppState) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        // What would lie in the folder then is not what was meant.
        if is_compressed(&parts.headers) {
            return Err(ApiError::media_type(
                "compressed bodies are not unpacked; send the file as it is, without Content-Encoding",
            ));
        }
        let bytes = body::read(&parts.headers, body, &app.parts.options, parts.extensions.get()).await?;
        Ok(Self(bytes))
    }
}

fn base(app: &AppState) -> Result<&dyn KnowledgeBase, ApiError> {
    app.parts
        .knowledge
        .as_deref()
        .ok_or_else(|| ApiError::too_late("the knowledge base is switched off (`kb.enabled`)"))
}

fn fault(error: KnowledgeError) -> ApiError {
    match error {
        KnowledgeError::Invalid(problem) => ApiError::invalid_value("query", problem),
        KnowledgeError::NotFound(_) => ApiError::not_found("document"),
        KnowledgeError::Store(error) => error.into(),
    }
}

fn refusal(error: NotStored) -> ApiError {
    match error {
        NotStored::Malformed(problem) => ApiError::invalid_value("path", problem),
        NotStored::Refused(problem) => ApiError::refused(problem),
        NotStored::Conflict(problem) => ApiError::too_late(&problem),
        NotStored::Missing(_) => ApiError::not_found("document"),
        NotStored::Failed(problem) => ApiError::internal(problem),
    }
}

//! Chat completions: read the wire, run the turn, hand its events to one of two encoders.

use std::sync::Arc;

use axum::{
    Extension, Json,
    body::Bytes,
    extract::State,
    http::{HeaderName, HeaderValue},
    response::{IntoResponse as _, Response},
};
use tidegate_core::id::RequestId;
use tidegate_engine::{Lease, RunRequest};
use tracing::Span;

use crate::http::{
    AppState,
    auth::Identity,
    body::budget::Share,
    error::ApiError,
    extract::JsonText,
    fold,
    source::{self, Pace},
    sse,
    stamp::Stamp,
    wire::{
        answer::{ChatCompletion, Head},
        chat::{self, ChatRequest, Form},
    },
};

const X_RUN_ID: HeaderName = HeaderName::from_static("x-run-id");
/// Bodies above this many bytes take long enough to read to hold up a worker thread.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// Ask the agent
///
/// One turn. With `stream` the answer is an event stream of chunks, else one object.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "chat", request_body = ChatRequest,
    responses((status = 200, body = ChatCompletion)))]
pub(in crate::http) async fn create(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    share: Option<Extension<Arc<Share>>>,
    JsonText(body): JsonText,
) -> Result<Response, ApiError> {
    let options = &app.parts.options;
    let (mut request, form) = read(&app, body, identity, request_id).await?;
    // The run holds the messages, also where it goes on without its client.
    request.lease = share.map_or_else(Lease::default, |Extension(share)| Lease::of(share));
    let model = request.model.clone();
    let run = app.parts.engine.run(request).await?;
    let run_id = run.id.clone();
    Span::current().record("run_id", run_id.as_str());
    let unique = run_id.as_str().trim_start_matches("run_");
    let head = Head {
        id: format!("chatcmpl-{unique}"),
        created: app.parts.clock.now().as_second(),
        model,
    };
    let pace = if form.stream { Pace::Client } else { Pace::Ours };
    let events = source::of_run(run, pace, app.parts.shutdown.clone(), options.stream_grace());
    let answered = if form.stream {
        sse::answer(events, head, form, options.keepalive()).await
    } else {
        fold::answer(events, head, form)
            .await
            .map(|answer| Json(answer).into_response())
    };
    let mut response = answered.unwrap_or_else(ApiError::into_response);
    if let Ok(value) = HeaderValue::from_str(run_id.as_str()) {
        response.headers_mut().insert(X_RUN_ID, value);
    }
    Ok(response)
}

async fn read(
    app: &AppState,
    body: Bytes,
    identity: Identity,
    request_id: RequestId,
) -> Result<(RunRequest, Form), ApiError> {
    if body.len() <= INLINE_BYTES_MAX {
        return chat::read(&body, identity, request_id, &app.parts.options);
    }
    let app = app.clone();
    tokio::task::spawn_blocking(move || chat::read(&body, identity, request_id, &app.parts.options))
        .await
        .map_err(|error| ApiError::internal(format!("reading a body failed: {error}")))?
}

//! What every answer carries (`x-request-id` and its neighbours), and the span that every log line of a
//! request stands in.

use std::time::Instant;

use axum::{
    extract::{FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, request::Parts},
    middleware::Next,
    response::Response,
};
use tidegate_core::id::RequestId;
use tracing::Span;

use super::{AppState, error::ApiError};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OPENAI_PROCESSING_MS: HeaderName = HeaderName::from_static("openai-processing-ms");
const OPENAI_VERSION: HeaderName = HeaderName::from_static("openai-version");
/// The version of the API whose shapes are spoken here.
const VERSION: HeaderValue = HeaderValue::from_static("2020-10-01");
/// Characters of a client's own id that go into the log.
const CLIENT_ID_CHARS_MAX: usize = 128;

/// The request's id, for handlers.
#[derive(Debug, Clone)]
pub(super) struct Stamp(pub(super) RequestId);

impl<S: Sync> FromRequestParts<S> for Stamp {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("a route lies outside the request id layer"))
    }
}

/// Gives the request an id of ours, never the client's: two requests must not share one in the journal.
pub(super) async fn stamp(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = RequestId::generate(app.parts.entropy.as_ref());
    request.extensions_mut().insert(Stamp(id.clone()));
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(X_REQUEST_ID, value);
    }
    let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    headers.insert(OPENAI_PROCESSING_MS, HeaderValue::from(elapsed_ms));
    headers.insert(OPENAI_VERSION, VERSION);
    response
}

/// The span of a request. It names the route, not the address: an address can hold anything.
pub(super) fn span(request: &Request) -> Span {
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("(no route)", MatchedPath::as_str);
    let id = request.extensions().get::<Stamp>();
    let id = id.map_or("", |stamp| stamp.0.as_str());
    tracing::info_span!(
        "request",
        request_id = id,
        method = %request.method(),
        route,
        client_request_id = client_text(request.headers(), "x-client-request-id"),
        sdk_retry = client_text(request.headers(), "x-stainless-retry-count"),
        key_id = tracing::field::Empty,
        run_id = tracing::field::Empty,
    )
}

/// A client's header as it may stand in a log: visible ASCII, cut.
fn client_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let text = headers.get(name)?.to_str().ok()?;
    text.get(..text.len().min(CLIENT_ID_CHARS_MAX))
}

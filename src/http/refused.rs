//! Requests that never became any: a head that cannot be read, told by [`super::serve`].
//!
//! Their answers pass through the layers like all others, so that they carry the same headers, the same
//! envelope and a line in the log.

use std::convert::Infallible;

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use tower::ServiceExt as _;

use super::error::ApiError;

/// Stands in a request that is to be answered with this error, whatever else it holds.
#[derive(Debug, Clone)]
pub(super) struct Refused(pub(super) ApiError);

/// The API's answer to what could not be read.
pub(super) async fn answer(router: Router, error: ApiError) -> Result<Response, Infallible> {
    let mut request = Request::new(Body::empty());
    request.extensions_mut().insert(Refused(error.clone()));
    let response = router.oneshot(request).await?;
    // Fails closed: a router without the layers answers as it likes.
    Ok(if response.status() == error.status_code() {
        response
    } else {
        error.into_response()
    })
}

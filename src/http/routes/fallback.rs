use axum::http::{Method, Uri};

use crate::http::error::ApiError;

/// A path that no route has.
pub(in crate::http) async fn unknown_url(method: Method, uri: Uri) -> ApiError {
    ApiError::unknown_url(method.as_str(), uri.path())
}

/// A route that has no such method; the router adds `allow`.
pub(in crate::http) async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::method_not_supported(method.as_str(), uri.path())
}

//! The only map from errors to statuses and envelopes. Every answer that is no success is made here.

mod from;

use std::time::Duration;

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

/// Characters of a message that a client sees; a longer one is cut.
const MESSAGE_CHARS_MAX: usize = 600;
/// Seconds until it is worth asking again, where nothing more is known.
const RETRY_SOON_S: u64 = 1;
/// Seconds until it is worth asking again after an operator has to do something.
const RETRY_OPERATOR_S: u64 = 5;
/// Tells the SDKs whether to repeat a request, over their own rules.
pub(super) const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The error envelope, the same on every route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Envelope {
    /// What went wrong.
    pub(super) error: EnvelopeBody,
}

/// The inside of the envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct EnvelopeBody {
    /// What is wrong and how to mend it.
    pub(super) message: String,
    /// The class: `invalid_request_error`, `server_error`, ….
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// The field at fault, as a dotted path.
    pub(super) param: Option<String>,
    /// A stable word for programs.
    pub(super) code: Option<&'static str>,
}

/// An answer that is no success. Boxed, because it travels as the rare half of every result.
#[derive(Debug, Clone)]
pub(super) struct ApiError(Box<Refusal>);

#[derive(Debug, Clone)]
struct Refusal {
    status: StatusCode,
    body: EnvelopeBody,
    retry_after_s: Option<u64>,
    should_retry: Option<bool>,
    /// Further headers, such as `allow`.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// For the operator's log; never sent.
    detail: Option<String>,
}

const INVALID_REQUEST: &str = "invalid_request_error";
const SERVER: &str = "server_error";
const UNAVAILABLE: &str = "service_unavailable_error";

impl ApiError {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Refusal {
            status,
            body: EnvelopeBody {
                message: tame(&message.into()),
                kind,
                param: None,
                code,
            },
            retry_after_s: None,
            should_retry: None,
            headers: Vec::new(),
            detail: None,
        }))
    }

    fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, Some(code), message)
    }

    /// The body is no JSON.
    pub(super) fn invalid_json(message: impl Into<String>) -> Self {
        Self::bad_request("invalid_json", message)
    }

    /// A field that must be there is not.
    pub(super) fn missing(param: impl Into<String>) -> Self {
        let param = param.into();
        Self::bad_request(
            "missing_required_parameter",
            format!("missing required parameter: `{param}`"),
        )
        .at(param)
    }

    /// A field of the wrong JSON type.
    pub(super) fn invalid_type(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::bad_request("invalid_type", message).at(param)
    }

    /// A field of the right type and a value that cannot be served.
    pub(super) fn invalid_value(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::bad_request("invalid_value", message).at(param)
    }

    /// A value that the contract knows and this server does not serve.
    pub(super) fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::bad_request("unsupported_value", message).at(param)
    }

    /// A field that does not belong there, on the routes that are strict about it.
    pub(super) fn unknown_parameter(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::bad_request("unknown_parameter", message).at(param)
    }

    /// The head of the request is not one that a sound client sends.
    pub(super) fn bad_head(message: impl Into<String>) -> Self {
        Self::bad_request("invalid_request", message)
    }

    /// The head of the request is larger than one may be.
    pub(super) fn head_too_large(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            INVALID_REQUEST,
            Some("request_head_too_large"),
            message,
        )
    }

    /// The address of the request is longer than one may be.
    pub(super) fn address_too_long(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::URI_TOO_LONG,
            INVALID_REQUEST,
            Some("request_head_too_large"),
            message,
        )
    }

    /// The request does not come from where requests may come from.
    pub(super) fn forbidden_source(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "permission_error",
            Some("origin_not_allowed"),
            message,
        )
    }

    /// No key, or one that does not open anything. The reason is kept short and the same for all.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            INVALID_REQUEST,
            Some("invalid_api_key"),
            message,
        )
        .with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// The key does not open this.
    pub(super) fn scope_missing(scopes: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "permission_error",
            Some("insufficient_permissions"),
            format!("this key lacks the scope {scopes}; ask an administrator for a key that has it"),
        )
    }

    /// The gate does not let it pass.
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "permission_error",
            Some("refused"),
            message,
        )
    }

    /// No such route.
    pub(super) fn unknown_url(method: &str, path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            INVALID_REQUEST,
            Some("unknown_url"),
            format!("unknown request URL: {method} {path}; GET /openapi.json lists what there is"),
        )
    }

    /// The route exists, not with this method. The router adds `allow`.
    pub(super) fn method_not_supported(method: &str, path: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            INVALID_REQUEST,
            Some("method_not_supported"),
            format!("{path} does not support {method}"),
        )
    }

    /// No such thing, or not for this key; the two look alike.
    pub(super) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            INVALID_REQUEST,
            Some("not_found"),
            format!("no such {what}, or this key may not see it"),
        )
    }

    /// Memory is switched off, so that there is nothing here.
    pub(super) fn memory_off() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            INVALID_REQUEST,
            Some("memory_disabled"),
            "memory is switched off (`memory.enabled`): nothing is learned or told; what was remembered before is shown \
             by `tidegate memory` on the server, and erased by that or by `DELETE /v1/memory`",
        )
    }

    /// No such model, or not for this key.
    pub(super) fn model_not_found(model: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            INVALID_REQUEST,
            Some("model_not_found"),
            format!("the model `{model}` does not exist or this key may not use it; GET /v1/models lists what it may"),
        )
        .at("model")
    }

    /// More bytes than a body may have.
    pub(super) fn too_large(bytes_max: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            INVALID_REQUEST,
            Some("request_too_large"),
            format!("a request body has at most {bytes_max} bytes (`server.body_bytes_max`)"),
        )
        .with(header::CONNECTION, HeaderValue::from_static("close"))
    }

    /// The body did not arrive in time.
    pub(super) fn body_timeout(timeout_ms: u64) -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            INVALID_REQUEST,
            Some("request_timeout"),
            format!("the request body did not arrive within {timeout_ms} ms (`server.body_timeout_ms`)"),
        )
        .with(header::CONNECTION, HeaderValue::from_static("close"))
    }

    /// The head of a request took too long.
    pub(super) fn head_timeout(timeout: Duration) -> Self {
        let timeout_ms = timeout.as_millis();
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            INVALID_REQUEST,
            Some("request_timeout"),
            format!(
                "the head of the request (its first line and its header fields) did not arrive within {timeout_ms} \
                 ms (`server.header_timeout_ms`)"
            ),
        )
        .with(header::CONNECTION, HeaderValue::from_static("close"))
    }

    /// A body of a kind that is not read here.
    pub(super) fn media_type(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            INVALID_REQUEST,
            Some("unsupported_media_type"),
            message,
        )
    }

    /// The key's requests a minute are used up.
    pub(super) fn rate_limited(limit: u32, retry_after_s: u64) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "requests",
            Some("rate_limit_exceeded"),
            format!("this key may make {limit} requests a minute; the next is possible in {retry_after_s} s"),
        )
        .after(retry_after_s)
    }

    /// What is left of the key's tokens of the day does not hold the call; `text` says how much that is.
    pub(super) fn quota_spent(text: &str, retry_after_s: u64) -> Self {
        let minutes = retry_after_s.div_ceil(60);
        let (hours, minutes) = (minutes / 60, minutes % 60);
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "insufficient_quota",
            Some("insufficient_quota"),
            format!("{text}; it is renewed at midnight, in {hours} h {minutes} min"),
        )
        .after(retry_after_s)
        .retry(false)
    }

    /// What was to be changed has come to its end.
    pub(super) fn too_late(message: &str) -> Self {
        Self::new(StatusCode::CONFLICT, INVALID_REQUEST, Some("conflict"), message)
    }

    /// As many requests are under way as may be.
    pub(super) fn overloaded() -> Self {
        Self::unavailable("the server has as many requests under way as it may; try again soon")
    }

    /// The daemon is stopping.
    pub(super) fn stopping() -> Self {
        Self::unavailable("the server is stopping")
            .with(header::CONNECTION, HeaderValue::from_static("close"))
    }

    fn unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            UNAVAILABLE,
            Some("server_is_overloaded"),
            message,
        )
        .after(RETRY_SOON_S)
    }

    /// Our own failure; the detail goes to the log alone.
    pub(super) fn internal(detail: impl Into<String>) -> Self {
        let mut error = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            SERVER,
            Some("internal_error"),
            "the server failed; its log has the details under this answer's x-request-id",
        );
        error.0.detail = Some(detail.into());
        error
    }

    fn upstream(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, SERVER, Some("upstream_error"), message)
    }

    fn at(mut self, param: impl Into<String>) -> Self {
        let param = param.into();
        self.0.body.param = (!param.is_empty()).then(|| tame(&param));
        self
    }

    /// The same error in words that fit the case better.
    pub(super) fn explained(mut self, message: &str) -> Self {
        self.0.body.message = tame(message);
        self
    }

    fn after(mut self, seconds: u64) -> Self {
        self.0.retry_after_s = Some(seconds.max(1));
        self
    }

    fn retry(mut self, retry: bool) -> Self {
        self.0.should_retry = Some(retry);
        self
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// The envelope, for an error that comes after the first byte of a stream.
    pub(super) fn into_envelope(self) -> Envelope {
        self.log();
        Envelope { error: self.0.body }
    }

    /// The status that it is sent with.
    pub(super) fn status_code(&self) -> StatusCode {
        self.0.status
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> u16 {
        self.0.status.as_u16()
    }

    #[cfg(test)]
    pub(super) fn body(&self) -> &EnvelopeBody {
        &self.0.body
    }

    /// Once an error, and only what is not the caller's doing.
    fn log(&self) {
        let code = self.0.body.code.unwrap_or_default();
        if let Some(detail) = &self.0.detail {
            tracing::error!(
                status = self.0.status.as_u16(),
                code,
                detail,
                "a request failed on our side"
            );
        } else if self.0.status.is_server_error() {
            tracing::warn!(
                status = self.0.status.as_u16(),
                code,
                message = self.0.body.message,
                "a request could not be served"
            );
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let mut response = (self.0.status, axum::Json(Envelope { error: self.0.body })).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.0.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(retry) = self.0.should_retry {
            let value = if retry { "true" } else { "false" };
            headers.insert(X_SHOULD_RETRY, HeaderValue::from_static(value));
        }
        for (name, value) in self.0.headers {
            headers.insert(name, value);
        }
        response
    }
}

/// Takes control characters out of a message that may repeat a caller's or a peer's text, and cuts it.
fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len().min(MESSAGE_CHARS_MAX));
    for (count, letter) in text.chars().enumerate() {
        if count == MESSAGE_CHARS_MAX {
            tamed.push('…');
            break;
        }
        tamed.push(if letter.is_control() { ' ' } else { letter });
    }
    tamed
}

#[cfg(test)]
mod tests;

//! Errors of the engine and its ports, one arm each.

use axum::http::StatusCode;
use tidegate_core::{error::StoreError, model::ModelError};
use tidegate_engine::{RunError, memory::MemoryError};
use tidegate_memory::export;

use super::{ApiError, INVALID_REQUEST, RETRY_OPERATOR_S, RETRY_SOON_S, SERVER, UNAVAILABLE};

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Duplicate(what) => {
                Self::bad_request("already_exists", format!("{what} exists already"))
            }
            StoreError::Internal(detail) => Self::internal(detail),
        }
    }
}

impl From<MemoryError> for ApiError {
    fn from(error: MemoryError) -> Self {
        let text = error.to_string();
        match error {
            MemoryError::NoFact(_) => Self::not_found("fact"),
            MemoryError::Invalid { param, message } => Self::invalid_value(param, message),
            MemoryError::Import(error) => Self::invalid_value(
                match error {
                    export::Error::TooLong(_) | export::Error::Form(_) => "",
                    export::Error::Version(_) => "version",
                    export::Error::Person(..) => "user",
                    export::Error::TooMany(_) => "observations",
                },
                text,
            ),
            MemoryError::Store(error) => error.into(),
        }
    }
}

impl From<ModelError> for ApiError {
    fn from(error: ModelError) -> Self {
        let text = error.to_string();
        match error {
            ModelError::NotConfigured(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                UNAVAILABLE,
                Some("model_not_configured"),
                text,
            )
            .after(RETRY_OPERATOR_S)
            .retry(false),
            ModelError::NotFound(model) => Self::model_not_found(&model),
            ModelError::Rejected { status, param, .. } => {
                Self::new(rejected_status(status), INVALID_REQUEST, None, text).at(param.unwrap_or_default())
            }
            ModelError::ContextLength {
                limit_tokens,
                prompt_tokens,
            } => context_length(limit_tokens, prompt_tokens),
            ModelError::RateLimited { retry_after, .. } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "requests",
                Some("rate_limit_exceeded"),
                text,
            )
            .after(retry_after.map_or(RETRY_SOON_S, |wait| wait.as_secs())),
            ModelError::Credentials { .. } => Self::upstream(text).retry(false),
            ModelError::Unavailable(_) | ModelError::Malformed(_) => Self::upstream(text),
            ModelError::Paused { retry_after } => Self::unavailable(text).after(retry_after.as_secs()),
            ModelError::Timeout(_) => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                SERVER,
                Some("upstream_timeout"),
                text,
            ),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        let text = error.to_string();
        match error {
            RunError::Model(error) => error.into(),
            RunError::ModelNotAllowed(model) => Self::model_not_found(&model),
            RunError::Invalid { param, message } => Self::invalid_value(param.unwrap_or_default(), message),
            RunError::QuotaSpent { retry_after_s, .. } => Self::quota_spent(&text, retry_after_s),
            RunError::TooManyTurns { .. } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "requests",
                Some("rate_limit_exceeded"),
                text,
            )
            .after(RETRY_SOON_S),
            RunError::TurnTimeout { .. } => {
                // The same turn would take as long again.
                Self::new(
                    StatusCode::GATEWAY_TIMEOUT,
                    SERVER,
                    Some("upstream_timeout"),
                    text,
                )
                .retry(false)
            }
            RunError::Cancelled => Self::unavailable(text).retry(false),
            RunError::Stopping => Self::stopping(),
            RunError::Prompt(detail) | RunError::Store(detail) => Self::internal(detail),
        }
    }
}

/// An upstream 4xx about the request stays in its class; as a 5xx the SDKs would send it three times.
fn rejected_status(status: u16) -> StatusCode {
    match status {
        413 => StatusCode::PAYLOAD_TOO_LARGE,
        415 => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        422 => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// LangChain and LiteLLM look for these words to know that a prompt was too long.
pub(super) fn context_length(limit_tokens: Option<u64>, prompt_tokens: Option<u64>) -> ApiError {
    let limit = limit_tokens.map_or_else(|| "an unknown number of".to_owned(), |tokens| tokens.to_string());
    let prompt = prompt_tokens.map_or_else(|| "more".to_owned(), |tokens| tokens.to_string());
    ApiError::bad_request(
        "context_length_exceeded",
        format!(
            "This model's maximum context length is {limit} tokens. However, your messages resulted in {prompt} \
             tokens (context_length_exceeded). Please reduce the length of the messages."
        ),
    )
    .at("messages")
}

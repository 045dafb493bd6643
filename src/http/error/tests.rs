use std::time::Duration;

use tidegate_core::model::ModelError;
use tidegate_engine::RunError;

use super::{from::context_length, *};

/// Status, type, code, seconds until a retry, and whether to retry.
type Row = (
    RunError,
    u16,
    &'static str,
    Option<&'static str>,
    Option<u64>,
    Option<bool>,
);

#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row an error")]
fn every_model_and_run_error_has_its_row_of_the_contract() {
    let soon = Duration::from_secs(7);
    let table: Vec<Row> = vec![
        (
            ModelError::NotConfigured("type this".into()).into(),
            503,
            UNAVAILABLE,
            Some("model_not_configured"),
            Some(5),
            Some(false),
        ),
        (
            ModelError::NotFound("m".into()).into(),
            404,
            INVALID_REQUEST,
            Some("model_not_found"),
            None,
            None,
        ),
        (
            ModelError::Rejected {
                status: 400,
                message: "no".into(),
                param: Some("top_p".into()),
            }
            .into(),
            400,
            INVALID_REQUEST,
            None,
            None,
            None,
        ),
        (
            ModelError::Rejected {
                status: 422,
                message: "no".into(),
                param: None,
            }
            .into(),
            422,
            INVALID_REQUEST,
            None,
            None,
            None,
        ),
        (
            ModelError::ContextLength {
                limit_tokens: Some(10),
                prompt_tokens: Some(11),
            }
            .into(),
            400,
            INVALID_REQUEST,
            Some("context_length_exceeded"),
            None,
            None,
        ),
        (
            ModelError::RateLimited {
                retry_after: Some(soon),
                message: "slow".into(),
            }
            .into(),
            429,
            "requests",
            Some("rate_limit_exceeded"),
            Some(7),
            None,
        ),
        (
            ModelError::Credentials { status: 401 }.into(),
            502,
            SERVER,
            Some("upstream_error"),
            None,
            Some(false),
        ),
        (
            ModelError::Unavailable("down".into()).into(),
            502,
            SERVER,
            Some("upstream_error"),
            None,
            None,
        ),
        (
            ModelError::Malformed("half".into()).into(),
            502,
            SERVER,
            Some("upstream_error"),
            None,
            None,
        ),
        (
            ModelError::Paused { retry_after: soon }.into(),
            503,
            UNAVAILABLE,
            Some("server_is_overloaded"),
            Some(7),
            None,
        ),
        (
            ModelError::Timeout("first byte".into()).into(),
            504,
            SERVER,
            Some("upstream_timeout"),
            None,
            None,
        ),
        (
            RunError::ModelNotAllowed("m".into()),
            404,
            INVALID_REQUEST,
            Some("model_not_found"),
            None,
            None,
        ),
        (
            RunError::Invalid {
                param: None,
                message: "x".into(),
            },
            400,
            INVALID_REQUEST,
            Some("invalid_value"),
            None,
            None,
        ),
        (
            RunError::QuotaSpent {
                limit_tokens: 5,
                left_tokens: 0,
                needed_tokens: 3,
                retry_after_s: 9,
            },
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            Some(9),
            Some(false),
        ),
        (
            RunError::TooManyTurns { turns_max: 1 },
            429,
            "requests",
            Some("rate_limit_exceeded"),
            Some(1),
            None,
        ),
        (
            RunError::TurnTimeout { after_ms: 1 },
            504,
            SERVER,
            Some("upstream_timeout"),
            None,
            Some(false),
        ),
        (
            RunError::Cancelled,
            503,
            UNAVAILABLE,
            Some("server_is_overloaded"),
            Some(1),
            Some(false),
        ),
        (
            RunError::Stopping,
            503,
            UNAVAILABLE,
            Some("server_is_overloaded"),
            Some(1),
            None,
        ),
        (
            RunError::Prompt("secret path".into()),
            500,
            SERVER,
            Some("internal_error"),
            None,
            None,
        ),
        (
            RunError::Store("disk".into()),
            500,
            SERVER,
            Some("internal_error"),
            None,
            None,
        ),
    ];
    for (error, status, kind, code, retry_after_s, should_retry) in table {
        let shown = format!("{error:?}");
        let api = ApiError::from(error);
        assert_eq!(api.0.status.as_u16(), status, "{shown}");
        assert_eq!((api.0.body.kind, api.0.body.code), (kind, code), "{shown}");
        assert_eq!(
            (api.0.retry_after_s, api.0.should_retry),
            (retry_after_s, should_retry),
            "{shown}"
        );
        assert!(
            !api.0.body.message.contains("secret path") && !api.0.body.message.contains("disk"),
            "{shown}"
        );
    }
}

#[test]
fn the_overflow_message_has_the_words_that_clients_look_for() {
    for (limit, prompt) in [(Some(8192), Some(9000)), (None, None)] {
        let error = context_length(limit, prompt);
        let message = error.0.body.message.to_lowercase();
        assert!(
            message.contains("this model's maximum context length is"),
            "{message}"
        );
        assert!(message.contains("context_length_exceeded"), "{message}");
    }
}

#[test]
fn a_repeated_text_is_cut_and_has_no_line_ends() {
    let error = ApiError::invalid_value("a\nb", format!("x\r\nset-cookie: a{}", "y".repeat(5000)));
    assert!(error.0.body.message.chars().count() <= MESSAGE_CHARS_MAX + 1);
    assert!(!error.0.body.message.contains(['\r', '\n']));
    assert_eq!(error.0.body.param.as_deref(), Some("a b"));
}

#[tokio::test]
async fn an_error_becomes_an_envelope_with_its_headers() {
    let response = ApiError::unauthorized("no key").into_response();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    assert_eq!(response.headers()["content-type"], "application/json");
    let bytes = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
    assert_eq!(
        std::str::from_utf8(&bytes).unwrap(),
        r#"{"error":{"message":"no key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#
    );
}

use serde_json::json;

use super::*;

fn overflow(limit_tokens: Option<u64>, prompt_tokens: Option<u64>) -> ModelError {
    ModelError::ContextLength {
        limit_tokens,
        prompt_tokens,
    }
}

#[test]
fn an_overflow_is_known_in_every_wording() {
    let rows = [
        (
            400,
            json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, your \
            messages resulted in 9000 tokens.", "code": "context_length_exceeded"}}),
            Some(8192),
            Some(9000),
        ),
        (
            400,
            json!({"object": "error", "code": 400, "message": "This model's maximum context length is 4096 \
            tokens. However, you requested 5,000 tokens (4800 in the messages)."}),
            Some(4096),
            Some(5000),
        ),
        (
            400,
            json!({"error": {"code": 400, "type": "exceed_context_size_error", "n_ctx": 2048,
            "n_prompt_tokens": 3000, "message": "the request exceeds the available context size"}}),
            Some(2048),
            Some(3000),
        ),
        (
            500,
            json!({"error": "the request (3000 tokens) exceeds the available context size (2048 tokens)"}),
            Some(2048),
            Some(3000),
        ),
        (
            400,
            json!({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
            Some(200_000),
            Some(210_000),
        ),
        (
            400,
            json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count \
            (70) exceeds the maximum number of tokens allowed (60)."}}]),
            Some(60),
            Some(70),
        ),
        (413, json!({"detail": "prompt too long"}), None, None),
    ];
    for (status, body, limit, prompt) in rows {
        let failure = Failure::status(status, body.to_string().as_bytes(), None, "m");
        assert_eq!(failure.error, overflow(limit, prompt), "{body}");
        assert_eq!(failure.again, Again::Never);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases reads best in one place")]
fn every_status_has_its_meaning() {
    let wait = Some(Duration::from_secs(3));
    let rows = [
        (
            401,
            r#"{"error": {"message": "bad key sk-1"}}"#,
            ModelError::Credentials { status: 401 },
            Again::Elsewhere,
        ),
        (
            404,
            r#"{"error": {"message": "model 'x' not found"}}"#,
            ModelError::NotFound("m".into()),
            Again::Elsewhere,
        ),
        (
            404,
            "<html>",
            ModelError::Unavailable("it answers 404 here; check the provider's base_url".into()),
            Again::Elsewhere,
        ),
        (
            400,
            r#"{"error": {"message": "Invalid model name passed in model=x", "code": "400"}}"#,
            ModelError::NotFound("m".into()),
            Again::Elsewhere,
        ),
        (
            422,
            r#"{"detail": [{"loc": ["body"], "msg": "extra"}]}"#,
            ModelError::Rejected {
                status: 422,
                message: r#"[{"loc":["body"],"msg":"extra"}]"#.into(),
                param: None,
            },
            Again::Never,
        ),
        (
            400,
            r#"{"error": {"message": "no", "param": "tools", "code": null}}"#,
            ModelError::Rejected {
                status: 400,
                message: "no".into(),
                param: Some("tools".into()),
            },
            Again::Never,
        ),
        (
            429,
            r#"{"error": "slow down"}"#,
            ModelError::RateLimited {
                retry_after: wait,
                message: "slow down".into(),
            },
            Again::Retry,
        ),
        (
            429,
            r#"{"error": {"message": "pay", "code": "insufficient_quota"}}"#,
            ModelError::RateLimited {
                retry_after: wait,
                message: "pay".into(),
            },
            Again::Elsewhere,
        ),
        (
            402,
            r#"{"error": {"message": "pay"}}"#,
            ModelError::Unavailable("pay".into()),
            Again::Elsewhere,
        ),
        (
            408,
            "",
            ModelError::Timeout("it gave up (408)".into()),
            Again::Retry,
        ),
        (
            503,
            "busy",
            ModelError::Unavailable("it reported an error of its own (503)".into()),
            Again::Retry,
        ),
        (
            302,
            "",
            ModelError::Unavailable("unexpected status 302; check the provider's base_url".into()),
            Again::Elsewhere,
        ),
    ];
    for (status, body, error, again) in rows {
        let failure = Failure::status(status, body.as_bytes(), wait, "m");
        assert_eq!((failure.error, failure.again), (error, again), "{status} {body}");
    }
}

#[test]
fn an_error_inside_an_answer_is_known_by_its_code_or_type() {
    let rows = [
        (json!({"error": {"code": 429, "message": "x"}}), 429),
        (json!({"error": {"code": "503", "message": "x"}}), 503),
        (
            json!({"error": {"type": "invalid_request_error", "message": "x"}}),
            400,
        ),
        (json!({"error": "something broke"}), 502),
        (json!({"error": {"type": "overloaded_error"}}), 503),
    ];
    for (value, status) in rows {
        assert_eq!(Told::read(&value).status(), status, "{value}");
        assert!(Failure::inside(&value, "m").is_some());
    }
    assert_eq!(Failure::inside(&json!({"error": null, "choices": []}), "m"), None);
    let event = Failure::event(r#"{"message": "broke"}"#, "m");
    assert_eq!(
        event.error,
        ModelError::Unavailable("it reported an error of its own (502)".into())
    );
    assert_eq!(event.words, "broke");
}

#[test]
fn a_credential_that_a_provider_echoes_is_cut_before_its_words_are() {
    let credentials = Credentials::new(["sk-abcdefgh"]);
    // The bound on the words lies within the credential.
    let words = format!("{} sk-abcdefgh is odd", "x".repeat(MESSAGE_CHARS_MAX - 4));
    for body in [
        json!({"error": {"message": words}}),
        json!({"error": {"message": {"got": words}}}),
        json!({"error": {"message": "no", "param": "sk-abcdefgh"}}),
        json!({"detail": [{"input": words}]}),
        json!(words),
    ] {
        for status in [400, 402, 422, 429, 500, 503] {
            let failure = Failure::status(status, body.to_string().as_bytes(), None, "m");
            let failure = format!("{:?}", failure.without(&credentials));
            assert!(!failure.contains("sk-"), "{status} {failure}");
            assert!(failure.len() < MESSAGE_CHARS_MAX + 200, "{failure}");
        }
    }
}

#[test]
fn what_a_server_says_of_its_own_failure_is_for_the_log() {
    let body = json!({"error": {"message": "no route to http://10.0.0.7:8000/v1"}}).to_string();
    let failure = Failure::status(502, body.as_bytes(), None, "m").without(&Credentials::default());
    assert!(!failure.error.to_string().contains("10.0.0.7"), "{failure:?}");
    assert_eq!(failure.words, "no route to http://10.0.0.7:8000/v1");
}

#[test]
fn a_wait_is_read_as_milliseconds_seconds_or_a_date() {
    // The clock of the tests stands at Fri, 15 Jan 2027 08:00:00 GMT.
    let seconds = |seconds: f64| Some(Duration::from_secs_f64(seconds));
    let rows = [
        (Some("250"), None, seconds(0.25)),
        (Some("250"), Some("9"), seconds(0.25)),
        (Some("soon"), Some("9"), seconds(9.0)),
        (None, Some("1.5"), seconds(1.5)),
        (None, Some("0"), seconds(0.0)),
        (None, Some("-1"), None),
        (None, Some("inf"), None),
        (None, Some("1e300"), None),
        (None, Some("99999999"), Some(RETRY_AFTER_MAX)),
        (None, Some("Fri, 15 Jan 2027 08:00:07 GMT"), seconds(7.0)),
        (None, Some("Friday, 15-Jan-27 08:00:07 GMT"), seconds(7.0)),
        (None, Some("Fri Jan 15 08:00:07 2027"), seconds(7.0)),
        (None, Some("Fri, 15 Jan 2027 07:59:59 GMT"), seconds(0.0)),
        (None, Some("Sun, 06 Nov 1994 08:49:37 GMT"), seconds(0.0)),
        (None, Some("Sat, 15 Jan 2028 08:00:00 GMT"), Some(RETRY_AFTER_MAX)),
        (None, Some("tomorrow"), None),
        (None, Some(""), None),
        (None, None, None),
    ];
    for (millis, other, expected) in rows {
        let wait = read_wait(millis, other, &crate::tests::Stopped);
        assert_eq!(wait, expected, "{millis:?} {other:?}");
    }
}

#[test]
fn an_error_body_within_a_string_is_read_too() {
    let within = json!({"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 8889,
        "n_ctx": 4096, "message": "request (8889 tokens) exceeds the available context size (4096 tokens)"}});
    let body = json!({"error": within.to_string()}).to_string();
    assert_eq!(
        Failure::status(400, body.as_bytes(), None, "m").error,
        ModelError::ContextLength {
            limit_tokens: Some(4096),
            prompt_tokens: Some(8889),
        }
    );
    let nested = (0..5).fold(json!("deep"), |inner, _| json!({"error": inner.to_string()}));
    assert!(matches!(
        Failure::status(400, nested.to_string().as_bytes(), None, "m").error,
        ModelError::Rejected { .. }
    ));
}

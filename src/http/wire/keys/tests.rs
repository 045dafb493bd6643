use serde_json::{Value, json};

use super::*;
use crate::http::extract::parse;

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

fn create(body: &Value) -> Result<KeyPolicy, ApiError> {
    parse::<CreateKey>(body.to_string().as_bytes())?.into_policy(now())
}

#[test]
fn what_was_asked_is_what_is_stored() {
    let policy = create(&json!({"name": "ci", "expires_in_seconds": 60, "scopes": ["tools", "chat"],
        "requests_per_minute": 5, "tokens_per_day": 7, "models": ["m"], "tools": [], "mode_ceiling": "plan-only",
        "on_disconnect": "finish", "metadata": {"team": "a"}}))
    .unwrap();
    assert_eq!(policy.expires_at.unwrap().as_second(), 1_060);
    assert_eq!(policy.scopes, Scopes::from([Scope::Chat, Scope::Tools]));
    assert_eq!(
        (policy.requests_per_minute, policy.tokens_per_day),
        (Some(5), Some(7))
    );
    assert_eq!(
        (policy.models.as_deref(), policy.tools.as_deref()),
        (Some(["m".to_owned()].as_slice()), Some([].as_slice()))
    );
    assert_eq!(
        (policy.mode_ceiling, policy.on_disconnect),
        (Mode::PlanOnly, Disconnect::Finish)
    );
    let bare = create(&json!({"name": "x"})).unwrap();
    assert_eq!(bare.scopes, Scopes::from([Scope::Chat]));
    assert_eq!(bare.mode_ceiling, Mode::ReadOnly);
}

#[test]
fn what_cannot_be_stored_is_refused_by_name() {
    let table = [
        (json!({}), "missing_required_parameter", "name"),
        (json!({"name": " "}), "invalid_value", "name"),
        (
            json!({"name": "x", "rate_limit": 1}),
            "unknown_parameter",
            "rate_limit",
        ),
        (
            json!({"name": "x", "enabled": false}),
            "unknown_parameter",
            "enabled",
        ),
        (json!({"name": "x", "scopes": []}), "invalid_value", "scopes"),
        (
            json!({"name": "x", "scopes": ["chat", "root"]}),
            "invalid_value",
            "scopes.1",
        ),
        (
            json!({"name": "x", "requests_per_minute": 0}),
            "invalid_value",
            "requests_per_minute",
        ),
        (
            json!({"name": "x", "requests_per_minute": -1}),
            "invalid_value",
            "requests_per_minute",
        ),
        (
            json!({"name": "x", "tokens_per_day": "1"}),
            "invalid_type",
            "tokens_per_day",
        ),
        (
            json!({"name": "x", "expires_in_seconds": 0}),
            "invalid_value",
            "expires_in_seconds",
        ),
        (
            json!({"name": "x", "mode_ceiling": "root"}),
            "invalid_value",
            "mode_ceiling",
        ),
        (
            json!({"name": "x", "on_disconnect": "explode"}),
            "invalid_value",
            "on_disconnect",
        ),
        (
            json!({"name": "x", "models": ["a\nb"]}),
            "invalid_value",
            "models.0",
        ),
        (json!({"name": "\u{202e}nna"}), "invalid_value", "name"),
        (json!({"name": "x".repeat(201)}), "invalid_value", "name"),
        (
            json!({"name": "x", "tools": ["a", "read\u{200b}_file"]}),
            "invalid_value",
            "tools.1",
        ),
        (
            json!({"name": "x", "metadata": {"a": "b\nc"}}),
            "invalid_value",
            "metadata",
        ),
        (
            json!({"name": "x", "metadata": {"a": "y".repeat(513)}}),
            "invalid_value",
            "metadata",
        ),
    ];
    for (body, code, param) in table {
        let error = create(&body).unwrap_err();
        let found = (error.status(), error.body().code, error.body().param.as_deref());
        assert_eq!(found, (400, Some(code), Some(param)), "{body}");
    }
}

#[test]
fn an_update_tells_null_from_absence_and_is_all_or_nothing() {
    let mut policy = create(&json!({"name": "x", "requests_per_minute": 5, "tokens_per_day": 7})).unwrap();
    let update: UpdateKey = parse(br#"{"requests_per_minute": null}"#).unwrap();
    update.apply(&mut policy, now()).unwrap();
    assert_eq!(
        (policy.requests_per_minute, policy.tokens_per_day),
        (None, Some(7))
    );
    let before = policy.clone();
    let update: UpdateKey = parse(br#"{"name": "y", "scopes": ["root"]}"#).unwrap();
    assert!(update.apply(&mut policy, now()).is_err());
    assert_eq!(policy, before);
}

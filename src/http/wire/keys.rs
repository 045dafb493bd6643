//! The shapes of key administration. Unknown and misplaced fields are refused here: a limit that is quietly
//! not stored is worse than an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tidegate_core::{
    caller::{Mode, Scope, Scopes},
    clock::Timestamp,
    key::{Disconnect, KeyPolicy, KeyRecord},
    port::DayUsage,
    secret::PlainKey,
};
use utoipa::{IntoParams, ToSchema};

use crate::{http::error::ApiError, keys};

const NAME_CHARS_MAX: usize = 200;
/// Models or tools that an allow-list may name, and the characters of one.
const LISTED_MAX: usize = 256;
const LISTED_CHARS_MAX: usize = 256;
/// Ten years, in seconds.
const EXPIRY_S_MAX: u64 = 10 * 366 * 86_400;
/// Thirty days, in seconds.
const GRACE_S_MAX: u64 = 30 * 86_400;
const METADATA_PAIRS_MAX: usize = 16;
const METADATA_NAME_CHARS_MAX: usize = 64;
const METADATA_VALUE_CHARS_MAX: usize = 512;

/// Asks for a new key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct CreateKey {
    /// For people.
    pub(in crate::http) name: String,
    /// Seconds until it no longer opens; null or absent: it does not expire.
    #[serde(default)]
    expires_in_seconds: Option<u64>,
    /// `chat`, `tools`, `admin`; absent: `chat` alone.
    #[serde(default)]
    scopes: Option<Vec<String>>,
    #[serde(default)]
    requests_per_minute: Option<u32>,
    #[serde(default)]
    tokens_per_day: Option<u64>,
    /// Models it may use; null: all.
    #[serde(default)]
    models: Option<Vec<String>>,
    /// Server tools it may use; null: all of the operator's.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// `plan-only`, `readonly` or `full-auto`; absent: `readonly`.
    #[serde(default)]
    mode_ceiling: Option<String>,
    /// What a lost connection does to a run: `cancel` or `finish`.
    #[serde(default)]
    on_disconnect: Option<String>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

/// Changes a key. An absent field stays as it is; null takes a limit away.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct UpdateKey {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default)]
    scopes: Option<Vec<String>>,
    #[serde(default)]
    mode_ceiling: Option<String>,
    #[serde(default)]
    on_disconnect: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    expires_in_seconds: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    requests_per_minute: Option<Option<u32>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    tokens_per_day: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    models: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    tools: Option<Option<Vec<String>>>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

/// Tells null from absence.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Asks for a new secret.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RotateKey {
    /// Seconds for which the old secret still opens; absent: the operator's default.
    #[serde(default)]
    grace_period_seconds: Option<u64>,
}

/// A body without fields.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NoFields {}

/// Which part of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ListKeys {
    /// Begin after this id.
    pub(in crate::http) after: Option<String>,
    /// 1 to 100; 20 where absent.
    limit: Option<u32>,
    /// `asc` or `desc` by creation; `asc` where absent.
    order: Option<String>,
}

/// Which days.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct UsageQuery {
    /// The first day, `2026-01-31`; 30 days before the last where absent.
    pub(in crate::http) from: Option<String>,
    /// The last day; today where absent.
    pub(in crate::http) to: Option<String>,
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct AdminKey {
    /// `organization.admin_api_key`.
    object: &'static str,
    id: String,
    name: String,
    redacted_value: String,
    /// The key itself: only in the answers to creation and rotation, and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    created_at: i64,
    expires_at: Option<i64>,
    last_used_at: Option<i64>,
    owner: Owner,
    enabled: bool,
    scopes: Vec<&'static str>,
    requests_per_minute: Option<u32>,
    tokens_per_day: Option<u64>,
    models: Option<Vec<String>>,
    tools: Option<Vec<String>>,
    mode_ceiling: &'static str,
    on_disconnect: &'static str,
    metadata: BTreeMap<String, String>,
    /// Until when the secret before the last rotation still opens.
    previous_valid_until: Option<i64>,
}

/// A key is an identity of its own.
#[derive(Debug, Serialize, ToSchema)]
struct Owner {
    /// `service_account`.
    #[serde(rename = "type")]
    kind: &'static str,
    id: String,
    name: String,
}

/// Part of the list of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct KeyList {
    /// `list`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) data: Vec<AdminKey>,
    pub(in crate::http) first_id: Option<String>,
    pub(in crate::http) last_id: Option<String>,
    pub(in crate::http) has_more: bool,
}

/// Says that a key is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeletedKey {
    pub(in crate::http) id: String,
    /// `organization.admin_api_key.deleted`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) deleted: bool,
}

/// A key's days.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct UsageList {
    /// `list`.
    pub(in crate::http) object: &'static str,
    pub(in crate::http) data: Vec<UsageDay>,
    pub(in crate::http) has_more: bool,
}

/// One day of a key.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct UsageDay {
    /// `key.usage.day`.
    object: &'static str,
    date: String,
    model_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Tokens that a crash left unaccounted for; counted as spent.
    estimated_tokens: u64,
}

impl AdminKey {
    /// The record as it is shown; `value` only where the key was just made.
    pub(in crate::http) fn of(record: KeyRecord, value: Option<&PlainKey>) -> Self {
        let policy = record.policy;
        Self {
            object: "organization.admin_api_key",
            redacted_value: keys::redacted(&record.id),
            value: value.map(|key| key.expose().to_owned()),
            created_at: record.created_at.as_second(),
            expires_at: policy.expires_at.map(Timestamp::as_second),
            last_used_at: record.last_used_at.map(Timestamp::as_second),
            owner: Owner {
                kind: "service_account",
                id: record.id.to_string(),
                name: policy.name.clone(),
            },
            id: record.id.to_string(),
            name: policy.name,
            enabled: policy.enabled,
            scopes: policy.scopes.into_iter().map(Scope::name).collect(),
            requests_per_minute: policy.requests_per_minute,
            tokens_per_day: policy.tokens_per_day,
            models: policy.models,
            tools: policy.tools,
            mode_ceiling: policy.mode_ceiling.name(),
            on_disconnect: match policy.on_disconnect {
                Disconnect::Cancel => "cancel",
                Disconnect::Finish => "finish",
            },
            metadata: policy.metadata,
            previous_valid_until: record.previous.map(|previous| previous.valid_until.as_second()),
        }
    }
}

impl From<DayUsage> for UsageDay {
    fn from(day: DayUsage) -> Self {
        Self {
            object: "key.usage.day",
            date: day.day.to_string(),
            model_calls: day.calls,
            input_tokens: day.input_tokens,
            output_tokens: day.output_tokens,
            estimated_tokens: day.estimated_tokens,
        }
    }
}

impl CreateKey {
    /// The policy that is stored, if every field is within its bounds.
    pub(in crate::http) fn into_policy(self, now: Timestamp) -> Result<KeyPolicy, ApiError> {
        let mut policy = KeyPolicy::new(String::new());
        policy.scopes = Scopes::from([Scope::Chat]);
        let update = UpdateKey {
            name: Some(self.name),
            enabled: None,
            scopes: self.scopes,
            mode_ceiling: self.mode_ceiling,
            on_disconnect: self.on_disconnect,
            expires_in_seconds: Some(self.expires_in_seconds),
            requests_per_minute: Some(self.requests_per_minute),
            tokens_per_day: Some(self.tokens_per_day),
            models: Some(self.models),
            tools: Some(self.tools),
            metadata: self.metadata,
        };
        update.apply(&mut policy, now)?;
        Ok(policy)
    }
}

impl UpdateKey {
    /// A change of `enabled` alone.
    pub(in crate::http) fn enabling(enabled: bool) -> Self {
        Self {
            enabled: Some(enabled),
            ..Self::default()
        }
    }

    /// Writes the given fields into the policy, all or none.
    pub(in crate::http) fn apply(self, policy: &mut KeyPolicy, now: Timestamp) -> Result<(), ApiError> {
        let mut changed = policy.clone();
        if let Some(name) = self.name {
            changed.name = checked_text("name", name, NAME_CHARS_MAX)?;
        }
        if let Some(enabled) = self.enabled {
            changed.enabled = enabled;
        }
        if let Some(names) = self.scopes {
            changed.scopes = scopes(&names)?;
        }
        if let Some(name) = self.mode_ceiling {
            changed.mode_ceiling = Mode::from_name(&name).ok_or_else(|| {
                ApiError::invalid_value(
                    "mode_ceiling",
                    "`mode_ceiling` must be plan-only, readonly or full-auto",
                )
            })?;
        }
        if let Some(word) = self.on_disconnect {
            changed.on_disconnect = disconnect(&word)?;
        }
        if let Some(seconds) = self.expires_in_seconds {
            changed.expires_at = seconds.map(|seconds| expiry(seconds, now)).transpose()?;
        }
        if let Some(limit) = self.requests_per_minute {
            changed.requests_per_minute = at_least_one("requests_per_minute", limit)?;
        }
        if let Some(limit) = self.tokens_per_day {
            changed.tokens_per_day = at_least_one("tokens_per_day", limit)?;
        }
        if let Some(models) = self.models {
            changed.models = models.map(|names| listed("models", names)).transpose()?;
        }
        if let Some(tools) = self.tools {
            changed.tools = tools.map(|names| listed("tools", names)).transpose()?;
        }
        if let Some(pairs) = self.metadata {
            changed.metadata = metadata(pairs)?;
        }
        *policy = changed;
        Ok(())
    }
}

impl RotateKey {
    /// How long the old secret still opens, in seconds.
    pub(in crate::http) fn grace_s(&self, default_s: u64) -> Result<u64, ApiError> {
        match self.grace_period_seconds {
            Some(seconds) if seconds > GRACE_S_MAX => Err(ApiError::invalid_value(
                "grace_period_seconds",
                format!("a grace period has at most {GRACE_S_MAX} seconds"),
            )),
            Some(seconds) => Ok(seconds),
            None => Ok(default_s.min(GRACE_S_MAX)),
        }
    }
}

impl ListKeys {
    /// The page's size.
    pub(in crate::http) fn limit(&self) -> Result<u32, ApiError> {
        match self.limit {
            None => Ok(20),
            Some(limit) if (1..=100).contains(&limit) => Ok(limit),
            Some(_) => Err(ApiError::invalid_value(
                "limit",
                "`limit` must lie between 1 and 100",
            )),
        }
    }

    /// Whether the newest come first.
    pub(in crate::http) fn newest_first(&self) -> Result<bool, ApiError> {
        match self.order.as_deref() {
            None | Some("asc") => Ok(false),
            Some("desc") => Ok(true),
            Some(_) => Err(ApiError::invalid_value(
                "order",
                "`order` must be `asc` or `desc`",
            )),
        }
    }
}

/// `now` and so many seconds; the last instant there is, where that is beyond it.
pub(in crate::http) fn after(now: Timestamp, seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
}

fn expiry(seconds: u64, now: Timestamp) -> Result<Timestamp, ApiError> {
    if (1..=EXPIRY_S_MAX).contains(&seconds) {
        return Ok(after(now, seconds));
    }
    let message = format!("`expires_in_seconds` must lie between 1 and {EXPIRY_S_MAX}");
    Err(ApiError::invalid_value("expires_in_seconds", message))
}

fn at_least_one<T: PartialEq + From<u8>>(param: &str, limit: Option<T>) -> Result<Option<T>, ApiError> {
    if limit == Some(T::from(0)) {
        let message =
            format!("`{param}` must be at least 1; null means no limit, and a disabled key opens nothing");
        return Err(ApiError::invalid_value(param, message));
    }
    Ok(limit)
}

fn checked_text(param: &str, text: String, chars_max: usize) -> Result<String, ApiError> {
    let chars = text.chars().count();
    if text.trim().is_empty() || chars > chars_max || text.chars().any(char::is_control) {
        let message = format!("`{param}` has 1 to {chars_max} characters, none of them a control character");
        return Err(ApiError::invalid_value(param, message));
    }
    Ok(text)
}

fn scopes(names: &[String]) -> Result<Scopes, ApiError> {
    let mut scopes = Scopes::new();
    for (index, name) in names.iter().enumerate() {
        scopes.insert(Scope::from_name(name).ok_or_else(|| {
            ApiError::invalid_value(format!("scopes.{index}"), "a scope is `chat`, `tools` or `admin`")
        })?);
    }
    if scopes.is_empty() {
        return Err(ApiError::invalid_value(
            "scopes",
            "a key has at least one scope; to close it, disable it",
        ));
    }
    Ok(scopes)
}

fn disconnect(word: &str) -> Result<Disconnect, ApiError> {
    serde_json::from_value(Value::from(word))
        .map_err(|_| ApiError::invalid_value("on_disconnect", "`on_disconnect` must be `cancel` or `finish`"))
}

fn listed(param: &str, names: Vec<String>) -> Result<Vec<String>, ApiError> {
    if names.len() > LISTED_MAX {
        return Err(ApiError::invalid_value(
            param,
            format!("`{param}` has at most {LISTED_MAX} names"),
        ));
    }
    names
        .into_iter()
        .enumerate()
        .map(|(index, name)| checked_text(&format!("{param}.{index}"), name, LISTED_CHARS_MAX))
        .collect()
}

fn metadata(pairs: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ApiError> {
    let fits = pairs.len() <= METADATA_PAIRS_MAX
        && pairs.iter().all(|(name, value)| {
            name.chars().count() <= METADATA_NAME_CHARS_MAX
                && value.chars().count() <= METADATA_VALUE_CHARS_MAX
        });
    if fits {
        return Ok(pairs);
    }
    Err(ApiError::invalid_value(
        "metadata",
        format!(
            "`metadata` has at most {METADATA_PAIRS_MAX} pairs, names of at most {METADATA_NAME_CHARS_MAX} and values \
             of at most {METADATA_VALUE_CHARS_MAX} characters"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        let mut policy =
            create(&json!({"name": "x", "requests_per_minute": 5, "tokens_per_day": 7})).unwrap();
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
}

//! The shapes of key administration. Unknown and misplaced fields are refused here: a limit that is quietly
//! not stored is worse than an error.

mod check;
pub(in crate::http) mod query;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use tidegate_core::{
    caller::{Mode, Scope, Scopes},
    clock::Timestamp,
    key::{Disconnect, KeyPolicy, KeyRecord},
    port::DayUsage,
    secret::PlainKey,
};
use utoipa::ToSchema;

use crate::{http::error::ApiError, keys};

use check::{at_least_one, checked_text, disconnect, expiry, listed, metadata, scopes};

/// Thirty days, in seconds.
const GRACE_S_MAX: u64 = 30 * 86_400;

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
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
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
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    expires_in_seconds: Change<u64>,
    #[serde(default)]
    #[schema(value_type = Option<u32>)]
    requests_per_minute: Change<u32>,
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    tokens_per_day: Change<u64>,
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    models: Change<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>)]
    tools: Change<Vec<String>>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, String>>,
}

/// What an update does to a limit: null and absence differ.
#[derive(Debug, Clone, Default)]
enum Change<T> {
    /// The field is absent.
    #[default]
    Keep,
    /// The field is null.
    Clear,
    /// The field is there.
    Set(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<T>::deserialize(deserializer).map(Self::from)
    }
}

impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Clear, Self::Set)
    }
}

impl<T> Change<T> {
    /// Writes the checked value into `place`.
    fn write<U>(
        self,
        place: &mut Option<U>,
        check: impl FnOnce(T) -> Result<U, ApiError>,
    ) -> Result<(), ApiError> {
        match self {
            Self::Keep => {}
            Self::Clear => *place = None,
            Self::Set(value) => *place = Some(check(value)?),
        }
        Ok(())
    }
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
            expires_in_seconds: self.expires_in_seconds.into(),
            requests_per_minute: self.requests_per_minute.into(),
            tokens_per_day: self.tokens_per_day.into(),
            models: self.models.into(),
            tools: self.tools.into(),
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
            changed.name = checked_text("name", name, keys::bounds::NAME_CHARS_MAX)?;
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
        self.expires_in_seconds
            .write(&mut changed.expires_at, |seconds| expiry(seconds, now))?;
        let per_minute = |limit| at_least_one("requests_per_minute", limit);
        self.requests_per_minute
            .write(&mut changed.requests_per_minute, per_minute)?;
        let per_day = |limit| at_least_one("tokens_per_day", limit);
        self.tokens_per_day.write(&mut changed.tokens_per_day, per_day)?;
        self.models
            .write(&mut changed.models, |names| listed("models", names))?;
        self.tools
            .write(&mut changed.tools, |names| listed("tools", names))?;
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

#[cfg(test)]
mod tests;

//! Whether a field of a key is within its bounds; the error names it.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_core::{
    caller::{Scope, Scopes},
    clock::{Timestamp, after},
    key::Disconnect,
};

use crate::{http::error::ApiError, keys::bounds};

/// Ten years, in seconds.
const EXPIRY_S_MAX: u64 = 10 * 366 * 86_400;

pub(super) fn expiry(seconds: u64, now: Timestamp) -> Result<Timestamp, ApiError> {
    if (1..=EXPIRY_S_MAX).contains(&seconds) {
        return Ok(after(now, seconds));
    }
    let message = format!("`expires_in_seconds` must lie between 1 and {EXPIRY_S_MAX}");
    Err(ApiError::invalid_value("expires_in_seconds", message))
}

pub(super) fn at_least_one<T: PartialEq + From<u8>>(param: &str, limit: T) -> Result<T, ApiError> {
    if limit == T::from(0) {
        let message =
            format!("`{param}` must be at least 1; null means no limit, and a disabled key opens nothing");
        return Err(ApiError::invalid_value(param, message));
    }
    Ok(limit)
}

pub(super) fn checked_text(param: &str, text: String, chars_max: usize) -> Result<String, ApiError> {
    match bounds::check_text(&text, chars_max) {
        Ok(()) => Ok(text),
        Err(rule) => Err(against(param, &rule)),
    }
}

fn against(param: &str, rule: &str) -> ApiError {
    ApiError::invalid_value(param, format!("`{param}` {rule}"))
}

pub(super) fn scopes(names: &[String]) -> Result<Scopes, ApiError> {
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

pub(super) fn disconnect(word: &str) -> Result<Disconnect, ApiError> {
    serde_json::from_value(Value::from(word))
        .map_err(|_| ApiError::invalid_value("on_disconnect", "`on_disconnect` must be `cancel` or `finish`"))
}

pub(super) fn listed(param: &str, names: Vec<String>) -> Result<Vec<String>, ApiError> {
    bounds::check_list(&names).map_err(|rule| against(param, &rule))?;
    names
        .into_iter()
        .enumerate()
        .map(|(index, name)| checked_text(&format!("{param}.{index}"), name, bounds::LISTED_CHARS_MAX))
        .collect()
}

pub(super) fn metadata(pairs: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ApiError> {
    match bounds::check_metadata(&pairs) {
        Ok(()) => Ok(pairs),
        Err(rule) => Err(against("metadata", &rule)),
    }
}

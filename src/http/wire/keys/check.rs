//! Whether a field of a key is within its bounds; the error names it.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_core::{
    caller::{Scope, Scopes},
    clock::Timestamp,
    key::Disconnect,
};

use super::after;
use crate::http::error::ApiError;

/// Models or tools that an allow-list may name, and the characters of one.
const LISTED_MAX: usize = 256;
const LISTED_CHARS_MAX: usize = 256;
/// Ten years, in seconds.
const EXPIRY_S_MAX: u64 = 10 * 366 * 86_400;
const METADATA_PAIRS_MAX: usize = 16;
const METADATA_NAME_CHARS_MAX: usize = 64;
const METADATA_VALUE_CHARS_MAX: usize = 512;

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
    let chars = text.chars().count();
    if text.trim().is_empty() || chars > chars_max || text.chars().any(char::is_control) {
        let message = format!("`{param}` has 1 to {chars_max} characters, none of them a control character");
        return Err(ApiError::invalid_value(param, message));
    }
    Ok(text)
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

pub(super) fn metadata(pairs: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ApiError> {
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

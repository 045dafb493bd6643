//! Between Rust values and SQLite's: microseconds, 64-bit signed counts, enum names, JSON text.

use serde::{
    Serialize,
    de::{DeserializeOwned, IntoDeserializer, value::StringDeserializer},
};
use sqlx::{Row as _, sqlite::SqliteRow};
use tidegate_core::{clock::Timestamp, usage::Usage};

/// Microseconds since the epoch.
pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// A count for a signed column; what does not fit is as good as the largest.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count from a signed column.
pub(crate) fn uncount(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The serde name of an enum or of an id that is a string on the wire.
pub(crate) fn name<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// Plain data as JSON text. Our types hold string keys and no floats, so that this does not fail; if it did,
/// the column's `json_valid` check refuses the row.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn decode<E: std::error::Error + Send + Sync + 'static>(
    column: &'static str,
) -> impl FnOnce(E) -> sqlx::Error {
    move |source| sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: Box::new(source),
    }
}

pub(crate) fn time(row: &SqliteRow, column: &'static str) -> Result<Timestamp, sqlx::Error> {
    Timestamp::from_microsecond(row.try_get(column)?).map_err(decode(column))
}

pub(crate) fn time_or_none(row: &SqliteRow, column: &'static str) -> Result<Option<Timestamp>, sqlx::Error> {
    row.try_get::<Option<i64>, _>(column)?
        .map(|micros| Timestamp::from_microsecond(micros).map_err(decode(column)))
        .transpose()
}

pub(crate) fn tokens(row: &SqliteRow, column: &'static str) -> Result<u64, sqlx::Error> {
    Ok(uncount(row.try_get(column)?))
}

pub(crate) fn named<T: DeserializeOwned>(row: &SqliteRow, column: &'static str) -> Result<T, sqlx::Error> {
    let text: StringDeserializer<serde::de::value::Error> =
        row.try_get::<String, _>(column)?.into_deserializer();
    T::deserialize(text).map_err(decode(column))
}

pub(crate) fn from_json<T: DeserializeOwned>(
    row: &SqliteRow,
    column: &'static str,
) -> Result<T, sqlx::Error> {
    serde_json::from_str(row.try_get(column)?).map_err(decode(column))
}

pub(crate) fn from_json_or_none<T: DeserializeOwned>(
    row: &SqliteRow,
    column: &'static str,
) -> Result<Option<T>, sqlx::Error> {
    row.try_get::<Option<&str>, _>(column)?
        .map(|text| serde_json::from_str(text).map_err(decode(column)))
        .transpose()
}

pub(crate) fn usage(row: &SqliteRow) -> Result<Usage, sqlx::Error> {
    Ok(Usage {
        input_tokens: tokens(row, "input_tokens")?,
        output_tokens: tokens(row, "output_tokens")?,
        cached_tokens: tokens(row, "cached_tokens")?,
        reasoning_tokens: tokens(row, "reasoning_tokens")?,
        estimated: row.try_get("estimated")?,
    })
}

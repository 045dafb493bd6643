//! The arguments of a call, held against the schema that the model was shown.
//!
//! What can only mean one thing is put right, as for native tools: a number in quotes for a number, a number for a
//! text, one value for a list of one, and `null` for what is not given. Everything else is refused with the place
//! named, before the server is asked.

use serde_json::{Map, Number, Value};
use tidegate_core::tool::{FailureCode, ToolResult};

/// How deep arguments go, in objects and lists.
const DEPTH_MAX: usize = 32;
/// How much of a wrong value is repeated, in characters.
const ECHO_CHARS_MAX: usize = 60;

/// What is wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    code: FailureCode,
    message: String,
}

impl Problem {
    fn invalid(place: &str, what: &str) -> Self {
        Self {
            code: FailureCode::InvalidArguments,
            message: format!("`{place}` {what}."),
        }
    }

    /// The answer for the model.
    pub(crate) fn result(self) -> ToolResult {
        ToolResult::failed(self.code, self.message)
    }
}

/// The arguments as the schema has them.
pub(crate) fn fit(schema: &Value, arguments: &Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    object(schema, arguments, "", 0)
}

fn fitted(schema: &Value, value: &Value, place: &str, depth: usize) -> Result<Value, Problem> {
    if depth > DEPTH_MAX {
        return Err(Problem::invalid(place, "lies too deep"));
    }
    if let Some(variants) = schema.get("anyOf").and_then(Value::as_array) {
        return one_of(variants, value, place, depth);
    }
    let value = match schema.get("type").and_then(Value::as_str) {
        Some("string") => text(value).map(Value::String),
        Some("integer") => integer(value).map(Value::Number),
        Some("number") => number(value).map(Value::Number),
        Some("boolean") => boolean(value).map(Value::Bool),
        Some("array") => return list(schema, value, place, depth),
        Some("object") => match value {
            Value::Object(map) => return object(schema, map, place, depth).map(Value::Object),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        },
        Some(_) | None => Some(value.clone()),
    }
    .ok_or_else(|| {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("value");
        Problem::invalid(
            place,
            &format!("must be a value of type {kind}, not {}", echo(value)),
        )
    })?;
    within(schema, &value, place)?;
    Ok(value)
}

fn one_of(variants: &[Value], value: &Value, place: &str, depth: usize) -> Result<Value, Problem> {
    let mut first = None;
    for variant in variants {
        match fitted(variant, value, place, depth + 1) {
            // What fits as it is goes before what had to be put right.
            Ok(same) if same == *value => return Ok(same),
            Ok(changed) => {
                first.get_or_insert(changed);
            }
            Err(_other) => {}
        }
    }
    first.ok_or_else(|| Problem::invalid(place, &format!("fits none of its forms, being {}", echo(value))))
}

fn object(
    schema: &Value,
    map: &Map<String, Value>,
    place: &str,
    depth: usize,
) -> Result<Map<String, Value>, Problem> {
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut fitting = Map::new();
    for (name, value) in map {
        let inner = inside(place, name);
        match properties.get(name) {
            // `null` stands for "not given" where that is allowed.
            Some(_) if value.is_null() && !required.contains(&name.as_str()) => {}
            Some(schema) => {
                fitting.insert(name.clone(), fitted(schema, value, &inner, depth + 1)?);
            }
            None => {
                let value = match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => return Err(unknown(&inner, properties)),
                    Some(more @ Value::Object(_)) => fitted(more, value, &inner, depth + 1)?,
                    _ => value.clone(),
                };
                fitting.insert(name.clone(), value);
            }
        }
    }
    if let Some(missing) = required.iter().find(|name| !fitting.contains_key(**name)) {
        let words = properties
            .get(*missing)
            .and_then(|schema| schema.get("description"))
            .and_then(Value::as_str)
            .map_or_else(String::new, |words| format!(": {words}"));
        return Err(Problem {
            code: FailureCode::MissingArgument,
            message: format!("`{}` is missing{words}", inside(place, missing)),
        });
    }
    Ok(fitting)
}

fn unknown(place: &str, properties: &Map<String, Value>) -> Problem {
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    let known = if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    Problem::invalid(
        &echo(&Value::from(place)).replace('"', ""),
        &format!("is no argument; {known}"),
    )
}

fn list(schema: &Value, value: &Value, place: &str, depth: usize) -> Result<Value, Problem> {
    let one = std::slice::from_ref(value);
    let items = match value {
        Value::Array(items) => items.as_slice(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => one,
        Value::Null | Value::Object(_) => {
            return Err(Problem::invalid(
                place,
                &format!("must be a list, not {}", echo(value)),
            ));
        }
    };
    let open = Value::Object(Map::new());
    let schema_of_items = schema.get("items").unwrap_or(&open);
    let mut fitting = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        fitting.push(fitted(
            schema_of_items,
            item,
            &format!("{place}[{index}]"),
            depth + 1,
        )?);
    }
    let value = Value::Array(fitting);
    within(schema, &value, place)?;
    Ok(value)
}

/// Enumerations and bounds.
fn within(schema: &Value, value: &Value, place: &str) -> Result<(), Problem> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.contains(value)
    {
        let shown: Vec<String> = values.iter().take(20).map(echo).collect();
        return Err(Problem::invalid(
            place,
            &format!("must be one of {}, not {}", shown.join(", "), echo(value)),
        ));
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let (size, low, high, unit) = match value {
        Value::Number(number) => (number.as_f64(), bound("minimum"), bound("maximum"), ""),
        Value::String(text) => (
            Some(count(text.chars().count())),
            bound("minLength"),
            bound("maxLength"),
            " characters",
        ),
        Value::Array(items) => (
            Some(count(items.len())),
            bound("minItems"),
            bound("maxItems"),
            " items",
        ),
        Value::Null | Value::Bool(_) | Value::Object(_) => return Ok(()),
    };
    let Some(size) = size else { return Ok(()) };
    if let Some(low) = low.filter(|low| size < *low) {
        return Err(Problem::invalid(
            place,
            &format!("must have at least {low}{unit}"),
        ));
    }
    if let Some(high) = high.filter(|high| size > *high) {
        return Err(Problem::invalid(
            place,
            &format!("must have at most {high}{unit}"),
        ));
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "lengths of arguments are far below what a float holds exactly"
)]
fn count(length: usize) -> f64 {
    length as f64
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => match serde_json::from_str(text.trim()) {
            Ok(Value::Number(number)) => Some(number),
            Ok(_) | Err(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn integer(value: &Value) -> Option<Number> {
    let number = number(value)?;
    if number.is_i64() || number.is_u64() {
        return Some(number);
    }
    let float = number
        .as_f64()
        .filter(|float| float.fract() == 0.0 && float.abs() <= 9e15)?;
    format!("{float:.0}").parse::<i64>().ok().map(Number::from)
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn inside(place: &str, name: &str) -> String {
    if place.is_empty() {
        name.to_owned()
    } else {
        format!("{place}.{name}")
    }
}

/// The beginning of a value, on one line.
fn echo(value: &Value) -> String {
    let text = value.to_string();
    let mut shown: String = text
        .chars()
        .take(ECHO_CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    shown = shown.replace("\\\"", "\"");
    if text.chars().nth(ECHO_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fit_json(arguments: &Value) -> Result<Value, String> {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["n"],
            "properties": {
                "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "how many"},
                "who": {"type": "string", "enum": ["a", "b"]},
                "list": {"type": "array", "items": {"type": "number"}, "maxItems": 2},
                "deep": {"type": "object", "properties": {"flag": {"type": "boolean"}}, "required": ["flag"]},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "free": {},
            },
        });
        fit(&schema, arguments.as_object().unwrap())
            .map(Value::Object)
            .map_err(|problem| problem.result().to_model_text())
    }

    #[test]
    fn what_means_one_thing_is_put_right() {
        let arguments = json!({
            "n": "3", "who": null, "list": 1.5, "deep": {"flag": "TRUE"}, "either": 7, "free": [{"x": null}],
        });
        let expected =
            json!({"n": 3, "list": [1.5], "deep": {"flag": true}, "either": 7, "free": [{"x": null}]});
        assert_eq!(fit_json(&arguments).unwrap(), expected);
        assert_eq!(fit_json(&json!({"n": 2.0})).unwrap(), json!({"n": 2}));
    }

    #[test]
    fn the_rest_is_refused_with_its_place() {
        for (arguments, fragment) in [
            (json!({}), "`n` is missing: how many"),
            (json!({"n": 0}), "`n` must have at least 1"),
            (json!({"n": 1.5}), "`n` must be a value of type integer, not 1.5"),
            (
                json!({"n": 1, "who": "c"}),
                "`who` must be one of \"a\", \"b\", not \"c\"",
            ),
            (
                json!({"n": 1, "list": [1, 2, 3]}),
                "`list` must have at most 2 items",
            ),
            (json!({"n": 1, "list": [1, "x"]}), "`list[1]` must be"),
            (json!({"n": 1, "deep": {}}), "`deep.flag` is missing"),
            (json!({"n": 1, "either": []}), "`either` fits none"),
            (
                json!({"n": 1, "other": 1}),
                "`other` is no argument; there are n, who",
            ),
        ] {
            let message = fit_json(&arguments).unwrap_err();
            assert!(message.contains(fragment), "{arguments}: {message}");
        }
    }
}

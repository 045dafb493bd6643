//! JSON, one value or one a line: each leaf as `path: value`, records apart, so that words and names are found
//! together.

use std::fmt::Write as _;

use serde_json::Value;
use tidegate_core::knowledge::Format;

use super::{Limits, Parsed, Problem, builder::Builder, plain};

/// Reads a JSON text. What is no JSON (with comments, or cut off) is read as plain text, with a warning.
pub(super) fn read(text: String, limits: &Limits) -> Result<Parsed, Problem> {
    let body = text.trim_start_matches('\u{feff}').trim();
    if depth(body) > limits.depth_max {
        return Err(Problem::TooDeep(limits.depth_max));
    }
    match values(body) {
        Ok(values) => {
            let mut builder = Builder::new(limits);
            for value in &values {
                record(value, "", &mut builder)?;
            }
            builder.finish(Format::Json)
        }
        Err(problem) => {
            let mut parsed = plain::read(text, Format::Json);
            parsed
                .warnings
                .push(format!("not valid JSON, read as plain text: {problem}"));
            Ok(parsed)
        }
    }
}

fn values(body: &str) -> Result<Vec<Value>, serde_json::Error> {
    serde_json::Deserializer::from_str(body).into_iter().collect()
}

/// How deep brackets go, outside of strings.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A list of records is taken apart; everything else is one. No deeper than `depth_max`.
fn record(value: &Value, path: &str, builder: &mut Builder<'_>) -> Result<(), Problem> {
    match value {
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            items.iter().try_for_each(|item| record(item, path, builder))
        }
        Value::Object(fields) if fields.values().any(is_list_of_records) => {
            let mut lines = String::new();
            for (name, field) in fields.iter().filter(|(_, field)| !is_list_of_records(field)) {
                leaves(field, &join(path, name), &mut lines, builder.room())?;
            }
            builder.paragraph(&lines)?;
            fields
                .iter()
                .filter(|(_, field)| is_list_of_records(field))
                .try_for_each(|(name, field)| record(field, &join(path, name), builder))
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let mut lines = String::new();
            leaves(value, path, &mut lines, builder.room())?;
            builder.whole(&lines)
        }
    }
}

fn is_list_of_records(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.iter().any(Value::is_object))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Names are repeated on every line below them, so the room is looked at on each.
fn leaves(value: &Value, path: &str, lines: &mut String, room: usize) -> Result<(), Problem> {
    if lines.len() > room {
        return Err(Problem::TooMuch {
            what: "bytes of text".to_owned(),
            max: room,
        });
    }
    let text = match value {
        Value::Object(fields) => {
            return fields
                .iter()
                .try_for_each(|(name, field)| leaves(field, &join(path, name), lines, room));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            return items.iter().try_for_each(|item| leaves(item, path, lines, room));
        }
        Value::Array(items) => items.iter().map(scalar).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => scalar(value),
    };
    if text.trim().is_empty() {
        return Ok(());
    }
    let outcome = if path.is_empty() {
        writeln!(lines, "{text}")
    } else {
        writeln!(lines, "{path}: {text}")
    };
    // A `String` takes everything.
    debug_assert!(outcome.is_ok());
    Ok(())
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        read(json.to_owned(), &Limits::default())
            .expect("a document")
            .text
    }

    #[test]
    fn leaves_carry_their_path_and_records_stand_apart() {
        assert_eq!(
            text(r#"{"name": "Pump", "size": {"mm": 40}, "tags": ["a", "b"], "none": null}"#),
            "name: Pump\nsize.mm: 40\ntags: a, b"
        );
        assert_eq!(text(r#"[{"a": 1}, {"a": "x\ny"}]"#), "a: 1\n\na: x\ny");
        assert_eq!(text("{\"a\": 1}\n{\"a\": 2}\n"), "a: 1\n\na: 2");
        assert_eq!(
            text(r#"{"title": "T", "rows": [{"a": 1}, {"a": [2, 3]}]}"#),
            "title: T\n\nrows.a: 1\n\nrows.a: 2, 3"
        );
        assert_eq!(text("\"only words\""), "only words");
    }

    #[test]
    fn what_is_no_json_is_text() {
        let parsed = read("{\"a\": 1, // why\n}".to_owned(), &Limits::default()).expect("a document");
        assert_eq!(parsed.text, "{\"a\": 1, // why\n}");
        assert_eq!(parsed.warnings.len(), 1);
    }

    #[test]
    fn nesting_is_bounded() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
            let outcome = read(deep, &Limits::default());
            assert_eq!(outcome, Err(Problem::TooDeep(100)));
        }
        assert!(text(&format!("\"{}\"", "[".repeat(1000))).starts_with('['));
    }

    #[test]
    fn long_names_do_not_multiply_without_bound() {
        let leaves = vec!["{\"x\":1}"; 2000].join(",");
        let json = format!("{{\"{}\":[[{leaves}]]}}", "n".repeat(100_000));
        let outcome = read(json, &Limits::default());
        assert!(matches!(outcome, Err(Problem::TooMuch { .. })), "{outcome:?}");
    }
}

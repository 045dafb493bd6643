//! Reads tool arguments as models write them: JSON, or nearly.
//!
//! Tried in order: the text as it is; then the text with raw line breaks inside strings escaped, backslashes
//! that begin no JSON escape doubled (so that Windows paths and regular expressions survive) and `\'` read as
//! an apostrophe. An object wrapped in one more object under `ARGS`, or written as a JSON string, is unwrapped.
//! What is no object then is [`Arguments::Unparsable`]: the model gets a correction, nothing is guessed.

use serde_json::{Map, Value};

use crate::tool::Arguments;

/// The longest arguments text that is read, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 4 << 20;
/// How much of an unreadable text is kept, in characters.
pub const RAW_CHARS_MAX: usize = 400;
/// The key of the extra envelope some models add.
const ENVELOPE_KEY: &str = "ARGS";

/// Reads a call's arguments. Empty text and `null` mean no arguments. Nesting deeper than serde_json's own
/// limit of 128 is refused like any other text that is no JSON.
pub fn parse_arguments(text: &str) -> Arguments {
    let text = text.trim();
    if text.is_empty() {
        return Arguments::Object(Map::new());
    }
    if text.len() > ARGUMENTS_BYTES_MAX {
        return unparsable(text, format!("longer than {ARGUMENTS_BYTES_MAX} bytes"));
    }
    match parse_value(text) {
        Ok(Value::String(inner)) => match parse_value(inner.trim()) {
            Ok(value) => from_value(value, text),
            Err(problem) => unparsable(text, problem),
        },
        Ok(value) => from_value(value, text),
        Err(problem) => unparsable(text, problem),
    }
}

/// Takes arguments that arrived as a JSON value: an object, or an object written as a string.
pub fn arguments_from_value(value: Value) -> Arguments {
    match value {
        Value::Object(map) => Arguments::Object(unwrap_envelope(map)),
        Value::String(text) => parse_arguments(&text),
        Value::Null => Arguments::Object(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            let text = value.to_string();
            from_value(value, &text)
        }
    }
}

/// Reads one JSON value tolerantly; the error says what is wrong with the text as it was written.
pub fn parse_value(text: &str) -> Result<Value, String> {
    let strict = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    serde_json::from_str(&repair(text)).map_err(|_| format!("not valid JSON: {strict}"))
}

fn from_value(value: Value, written: &str) -> Arguments {
    let kind = match value {
        Value::Object(map) => return Arguments::Object(unwrap_envelope(map)),
        Value::Null => return Arguments::Object(Map::new()),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
    };
    unparsable(written, format!("{kind} where a JSON object is needed"))
}

fn unwrap_envelope(mut map: Map<String, Value>) -> Map<String, Value> {
    if map.len() == 1
        && let Some(Value::Object(inner)) = map.get_mut(ENVELOPE_KEY)
    {
        return std::mem::take(inner);
    }
    map
}

fn unparsable(text: &str, problem: String) -> Arguments {
    Arguments::Unparsable {
        raw: text.chars().take(RAW_CHARS_MAX).collect(),
        problem,
    }
}

/// Rewrites what commonly goes wrong inside JSON strings; text outside strings stays as it is.
fn repair(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut inside = false;
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '"' => {
                inside = !inside;
                out.push('"');
            }
            '\\' if inside => repair_escape(&mut rest, &mut out),
            control if inside && u32::from(control) < 0x20 => push_escaped(control, &mut out),
            other => out.push(other),
        }
    }
    out
}

/// Writes the escape that begins with a backslash just read from a string.
fn repair_escape(rest: &mut std::str::Chars<'_>, out: &mut String) {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some(letter @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
            out.push('\\');
            out.push(letter);
            *rest = ahead;
        }
        Some('\'') => {
            out.push('\'');
            *rest = ahead;
        }
        Some('u') => match code_unit(&ahead) {
            Some(unit) => repair_unicode(unit, rest, out),
            None => out.push_str("\\\\"),
        },
        Some(_) | None => out.push_str("\\\\"),
    }
}

/// Writes a `\uXXXX` escape; half of a surrogate pair that stands alone becomes the replacement character.
fn repair_unicode(unit: u32, rest: &mut std::str::Chars<'_>, out: &mut String) {
    // The escape's letter and its four digits are all ASCII, so the slices below fall between characters.
    let after = rest.as_str().get(5..).unwrap_or_default();
    let pair = after.strip_prefix("\\u").and_then(|low| code_unit(&low.chars()));
    match (unit, pair) {
        (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) => {
            let joined = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            out.push(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            *rest = after.get(6..).unwrap_or_default().chars();
        }
        (0xD800..=0xDFFF, _) => {
            out.push(char::REPLACEMENT_CHARACTER);
            *rest = after.chars();
        }
        (_, _) => {
            out.push_str("\\u");
            out.push_str(rest.as_str().get(1..5).unwrap_or_default());
            *rest = after.chars();
        }
    }
}

/// The value of the four hexadecimal digits that come next.
fn code_unit(chars: &std::str::Chars<'_>) -> Option<u32> {
    let digits = chars.as_str().get(..4)?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

/// Writes a control character as an escape; it is below 32, so two digits tell it.
fn push_escaped(control: char, out: &mut String) {
    match control {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other => {
            let code = u32::from(other);
            out.push_str("\\u00");
            out.extend(
                [code / 16, code % 16]
                    .iter()
                    .filter_map(|digit| char::from_digit(*digit, 16)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn near_json_is_read_as_it_was_meant() {
        let rows = [
            ("", json!({})),
            ("  null ", json!({})),
            (r#"{"a": 1}"#, json!({"a": 1})),
            ("{\"a\": \"x\ny\tz\"}", json!({"a": "x\ny\tz"})),
            (r#"{"re": "\d+\."}"#, json!({"re": "\\d+\\."})),
            (r#"{"path": "C:\Users\Ann"}"#, json!({"path": "C:\\Users\\Ann"})),
            (
                r#"{"path": "C:\unix", "n": "a\nb"}"#,
                json!({"path": "C:\\unix", "n": "a\nb"}),
            ),
            (r#"{"a": "it\'s"}"#, json!({"a": "it's"})),
            (r#"{"ARGS": {"a": 1}}"#, json!({"a": 1})),
            (r#""{\"a\": 1}""#, json!({"a": 1})),
            (
                r#"{"a": "\ud800 \ud83d\ude00 \d"}"#,
                json!({"a": "\u{fffd} \u{1f600} \\d"}),
            ),
            ("{\"a\": \"\u{1f}\u{0}\"}", json!({"a": "\u{1f}\u{0}"})),
            (r#"{"a": "}{", "b": "\u00e9\q"}"#, json!({"a": "}{", "b": "é\\q"})),
        ];
        for (text, expected) in rows {
            let parsed = parse_arguments(text);
            assert_eq!(
                parsed.object().map(|map| Value::Object(map.clone())),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_object_is_kept_for_the_correction() {
        let deep = "[".repeat(50_000);
        let deep_object = r#"{"a":"#.repeat(50_000);
        let long = "x".repeat(ARGUMENTS_BYTES_MAX + 1);
        for text in [
            "[1]",
            "7",
            "true",
            r#"{"a": "#,
            "{'a': 1}",
            "not json",
            r#""text""#,
            &deep,
            &deep_object,
            &long,
        ] {
            match parse_arguments(text) {
                Arguments::Unparsable { raw, problem } => {
                    assert!(text.starts_with(&raw) && raw.chars().count() <= RAW_CHARS_MAX);
                    assert!(!problem.is_empty());
                }
                Arguments::Object(map) => panic!("{text:.20} became {map:?}"),
            }
        }
    }

    #[test]
    fn arguments_that_arrive_as_values_are_taken() {
        for value in [json!({"a": 1}), json!(r#"{"a": 1}"#), json!({"ARGS": {"a": 1}})] {
            assert_eq!(arguments_from_value(value).to_json(), r#"{"a":1}"#);
        }
        assert_eq!(arguments_from_value(Value::Null).to_json(), "{}");
        assert!(arguments_from_value(json!([1])).object().is_none());
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in r#"[\{\}\[\]"\\u'dD89aA,:0-9\n\t é✿-]{0,60}"#) {
            drop(parse_arguments(&text));
        }

        #[test]
        fn whatever_json_objects_hold_comes_back(entries in proptest::collection::btree_map(".{0,8}", ".{0,20}", 0..5)) {
            prop_assume!(!entries.contains_key(ENVELOPE_KEY));
            let value = json!(entries);
            prop_assert_eq!(parse_arguments(&value.to_string()).to_json(), value.to_string());
            // Repairing sound JSON changes nothing but its spelling.
            let repaired: Value = serde_json::from_str(&repair(&value.to_string())).unwrap();
            prop_assert_eq!(repaired, value);
        }
    }
}

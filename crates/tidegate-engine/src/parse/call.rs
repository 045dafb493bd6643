//! Reads the inside of a call form: which tool, which arguments.

use serde_json::{Map, Value};
use tidegate_core::lenient::{RAW_CHARS_MAX, arguments_from_value, parse_arguments};
use tidegate_core::tool::Arguments;

use super::TextCall;

/// The longest tool name that is taken for one, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// Counts brackets outside JSON strings, one character at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brackets {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Brackets {
    /// Takes the next character; true when it closes the value that the first one opened.
    pub(super) fn closes(&mut self, character: char) -> bool {
        if self.in_string {
            match character {
                _ if self.escaped => self.escaped = false,
                '\\' => self.escaped = true,
                '"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match character {
            '"' => self.in_string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

/// Whether a character may stand in a tool's name.
pub(super) fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

/// The call of a header, from its name and the text after it.
pub(super) fn header(name: String, arguments: Option<&str>) -> TextCall {
    let arguments = parse_arguments(arguments.unwrap_or_default());
    TextCall { name, arguments }
}

/// The calls between a pair of markers: objects one after another, a list of them, the XML-like form, a name
/// before its arguments, or a name alone.
pub(super) fn marked(body: &str) -> Vec<TextCall> {
    let body = body.trim();
    if body.contains(FUNCTION) {
        return functions(body);
    }
    let before = body[..body.find(['{', '[']).unwrap_or(body.len())].trim();
    if !before.is_empty() {
        let name = before.trim_end_matches(':');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_name) {
            return Vec::new();
        }
        let arguments = body[before.len()..].trim();
        return vec![header(
            name.to_owned(),
            (!arguments.is_empty()).then_some(arguments),
        )];
    }
    values(body).into_iter().flat_map(object_or_list).collect()
}

/// The call of a bare object, if it is one.
pub(super) fn bare(text: &str) -> Option<TextCall> {
    let Arguments::Object(mut object) = parse_arguments(text) else {
        return None;
    };
    let name = object.get("name")?.as_str()?.to_owned();
    let arguments = object
        .remove("arguments")
        .or_else(|| object.remove("parameters"))?;
    let (Value::Object(_) | Value::String(_)) = arguments else {
        return None;
    };
    Some(TextCall {
        name,
        arguments: arguments_from_value(arguments),
    })
}

const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";

/// The calls of the form `<function=name><parameter=p>value</parameter></function>`.
pub(super) fn functions(body: &str) -> Vec<TextCall> {
    body.split(FUNCTION).skip(1).filter_map(function).collect()
}

fn function(text: &str) -> Option<TextCall> {
    let (name, rest) = text.split_once('>')?;
    let name = name.trim().trim_matches('"');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_name) {
        return None;
    }
    let inside = rest.split_once(FUNCTION_END).map_or(rest, |(inside, _)| inside);
    let mut object = Map::new();
    for parameter in inside.split(PARAMETER).skip(1) {
        let read = parameter.split_once('>').and_then(|(key, rest)| {
            let (value, _) = rest.split_once(PARAMETER_END)?;
            Some((key.trim().trim_matches('"').to_owned(), parameter_value(value)))
        });
        let Some((key, value)) = read else {
            return Some(TextCall {
                name: name.to_owned(),
                arguments: unparsable(inside, "a parameter is not closed by `</parameter>`"),
            });
        };
        object.insert(key, value);
    }
    Some(TextCall {
        name: name.to_owned(),
        arguments: Arguments::Object(object),
    })
}

/// The form has no types: what reads as a number, a truth value, a list or an object is one, the rest is text.
fn parameter_value(text: &str) -> Value {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    match serde_json::from_str(text.trim()) {
        Ok(value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => value,
        Ok(Value::Null | Value::String(_)) | Err(_) => Value::String(text.to_owned()),
    }
}

/// The JSON values that stand one after another in a text, each as it is written; the last may be cut off.
fn values(text: &str) -> Vec<&str> {
    let mut values = Vec::new();
    let mut start = None;
    let mut brackets = Brackets::default();
    for (at, character) in text.char_indices() {
        if start.is_none() {
            if !matches!(character, '{' | '[') {
                continue;
            }
            start = Some(at);
            brackets = Brackets::default();
        }
        if brackets.closes(character)
            && let Some(from) = start.take()
        {
            values.push(&text[from..=at]);
        }
    }
    if let Some(from) = start {
        values.push(&text[from..]);
    }
    values
}

fn object_or_list(text: &str) -> Vec<TextCall> {
    if text.starts_with('[') {
        values(text.get(1..).unwrap_or_default())
            .into_iter()
            .filter_map(object)
            .collect()
    } else {
        object(text).into_iter().collect()
    }
}

fn object(text: &str) -> Option<TextCall> {
    match parse_arguments(text) {
        Arguments::Object(mut object) => {
            let name = object
                .get("name")
                .or_else(|| object.get("tool"))?
                .as_str()?
                .to_owned();
            let arguments = object.remove("arguments").or_else(|| object.remove("parameters"));
            Some(TextCall {
                name,
                arguments: arguments_from_value(arguments.unwrap_or_default()),
            })
        }
        Arguments::Unparsable { problem, .. } => Some(TextCall {
            name: name_within(text)?,
            arguments: unparsable(text, &problem),
        }),
    }
}

/// The tool's name in an object that cannot be read, so that the correction can be given to the right call.
fn name_within(text: &str) -> Option<String> {
    let (_, rest) = text
        .split_once("\"name\"")
        .or_else(|| text.split_once("\"tool\""))?;
    let rest = rest
        .trim_start()
        .strip_prefix(':')?
        .trim_start()
        .strip_prefix('"')?;
    let (name, _) = rest.split_once('"')?;
    (!name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_name)).then(|| name.to_owned())
}

fn unparsable(text: &str, problem: &str) -> Arguments {
    Arguments::Unparsable {
        raw: text.chars().take(RAW_CHARS_MAX).collect(),
        problem: problem.to_owned(),
    }
}

//! Schemas of arguments, as servers write them, made into what model APIs take: a small part of JSON Schema, no
//! references, of bounded depth and size, with cleaned words.
//!
//! What is left is never narrower than what the server wrote, but for values that only `null` would be: a keyword that
//! is not taken over is left out, and what lies too deep is open.

use serde_json::{Map, Value, json};

use crate::text;

/// How deep a schema goes; below that everything is open.
const DEPTH_MAX: usize = 8;
/// The same where the whole is too large.
const DEPTH_SHALLOW: usize = 2;
/// How many parts of a schema are looked at.
const NODES_MAX: usize = 2000;
/// How many references in a row are followed.
const REFERENCES_MAX: usize = 8;
/// How many alternatives, values of an enumeration and properties are taken over.
const VARIANTS_MAX: usize = 16;
const VALUES_MAX: usize = 200;
const PROPERTIES_MAX: usize = 100;
/// The longest description of an argument, in characters.
const DESCRIPTION_CHARS_MAX: usize = 300;
/// The longest name of an argument, in characters.
const NAME_CHARS_MAX: usize = 64;
/// The longest value of an enumeration, in characters.
const VALUE_CHARS_MAX: usize = 200;

const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
/// Bounds that are taken over where they are numbers.
const BOUNDS: [&str; 6] = [
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

/// The schema for models, at most `bytes_max` bytes of JSON. The error says why there is none.
pub(crate) fn convert(schema: &Map<String, Value>, bytes_max: usize) -> Result<Value, String> {
    let root = Value::Object(schema.clone());
    let mut converted = Value::Null;
    for (depth_max, has_words) in [(DEPTH_MAX, true), (DEPTH_MAX, false), (DEPTH_SHALLOW, false)] {
        let mut walk = Walk {
            root: &root,
            nodes_left: NODES_MAX,
            depth_max,
            has_words,
        };
        converted = walk.top();
        if converted.to_string().len() <= bytes_max {
            return check_names(&root, converted);
        }
    }
    Err(format!(
        "the schema of its arguments has {} bytes at its shortest, more than {bytes_max}",
        converted.to_string().len()
    ))
}

/// A required argument that cannot be named cannot be given either.
fn check_names(root: &Value, converted: Value) -> Result<Value, String> {
    let required = root.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let is_declared = root.get("properties").is_some_and(|all| all.get(name).is_some());
        let is_offered = converted
            .get("properties")
            .is_some_and(|all| all.get(name).is_some());
        if is_declared && !is_offered {
            return Err("an argument that it needs has a name that models cannot be shown".to_owned());
        }
    }
    Ok(converted)
}

struct Walk<'s> {
    root: &'s Value,
    nodes_left: usize,
    depth_max: usize,
    has_words: bool,
}

impl Walk<'_> {
    fn top(&mut self) -> Value {
        let root = self.root;
        let mut top = match self.node(root, 0) {
            Value::Object(top) => top,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        // Alternatives at the top are more than model APIs take.
        top.remove("anyOf");
        top.remove("enum");
        top.remove("description");
        top.insert("type".to_owned(), "object".into());
        if !top.get("properties").is_some_and(Value::is_object) {
            top.insert("properties".to_owned(), json!({}));
        }
        Value::Object(top)
    }

    fn node(&mut self, schema: &Value, depth: usize) -> Value {
        let open = json!({});
        let Some(left) = self.nodes_left.checked_sub(1) else {
            return open;
        };
        self.nodes_left = left;
        let Some(schema) = self.resolved(schema) else {
            return open;
        };
        let mut out = Map::new();
        Self::kind(&schema, &mut out);
        if depth < self.depth_max {
            self.alternatives(&schema, &mut out, depth);
            self.object(&schema, &mut out, depth);
            self.list(&schema, &mut out, depth);
        }
        values(&schema, &mut out);
        for key in BOUNDS {
            if let Some(bound) = schema.get(key).filter(|bound| bound.is_number()) {
                out.insert(key.to_owned(), bound.clone());
            }
        }
        if self.has_words
            && let Some(words) = words(&schema)
        {
            out.insert("description".to_owned(), words.into());
        }
        Value::Object(out)
    }

    /// The schema behind references to its own document; `None` where it says nothing.
    fn resolved(&self, schema: &Value) -> Option<Map<String, Value>> {
        let mut current = schema.as_object()?.clone();
        for _ in 0..REFERENCES_MAX {
            let Some(Value::String(reference)) = current.get("$ref") else {
                return Some(current);
            };
            let target = self.root.pointer(reference.strip_prefix('#')?)?.as_object()?;
            let mut next = target.clone();
            // What stands beside a reference says more about this place.
            for (key, value) in current.iter().filter(|(key, _)| *key != "$ref") {
                next.insert(key.clone(), value.clone());
            }
            current = next;
        }
        None
    }

    fn kind(schema: &Map<String, Value>, out: &mut Map<String, Value>) {
        let known = |name: &&str| TYPES.contains(name);
        match schema.get("type") {
            Some(Value::String(name)) if TYPES.contains(&name.as_str()) => {
                out.insert("type".to_owned(), name.as_str().into());
            }
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).filter(known).collect();
                match names.as_slice() {
                    [] => {}
                    [name] => {
                        out.insert("type".to_owned(), (*name).into());
                    }
                    several => {
                        let variants: Vec<Value> = several.iter().map(|name| json!({"type": name})).collect();
                        out.insert("anyOf".to_owned(), variants.into());
                    }
                }
            }
            _ if schema.contains_key("properties") => {
                out.insert("type".to_owned(), "object".into());
            }
            _ if schema.contains_key("items") => {
                out.insert("type".to_owned(), "array".into());
            }
            _ => {}
        }
    }

    fn alternatives(&mut self, schema: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        let variants = schema
            .get("anyOf")
            .or_else(|| schema.get("oneOf"))
            .and_then(Value::as_array);
        if let Some(variants) = variants {
            let is_null = |variant: &&Value| variant.get("type").and_then(Value::as_str) == Some("null");
            let some: Vec<&Value> = variants.iter().filter(|variant| !is_null(variant)).collect();
            if let [only] = some.as_slice() {
                self.merge(only, out, depth);
            } else if some.len() <= VARIANTS_MAX && !some.is_empty() {
                let nodes: Vec<Value> = some.iter().map(|variant| self.node(variant, depth + 1)).collect();
                out.insert("anyOf".to_owned(), nodes.into());
            }
        }
        let parts = schema.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten().take(VARIANTS_MAX) {
            self.merge(part, out, depth);
        }
    }

    /// Adds what another schema says of the same place.
    fn merge(&mut self, schema: &Value, out: &mut Map<String, Value>, depth: usize) {
        let Value::Object(more) = self.node(schema, depth + 1) else {
            return;
        };
        for (key, value) in more {
            match (key.as_str(), out.get_mut(&key), value) {
                ("properties", Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                ("required", Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (_, Some(_), _) => {}
                (_, None, value) => {
                    out.insert(key, value);
                }
            }
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let mut offered = Map::new();
            for (name, property) in properties.iter().take(PROPERTIES_MAX) {
                if is_name(name) {
                    offered.insert(name.clone(), self.node(property, depth + 1));
                }
            }
            match out.get_mut("properties").and_then(Value::as_object_mut) {
                Some(known) => known.extend(offered),
                None => {
                    out.insert("properties".to_owned(), offered.into());
                }
            }
        }
        let offered = out.get("properties").and_then(Value::as_object);
        let mut required: Vec<Value> = Vec::new();
        let wanted = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let merged = out
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for name in wanted.chain(merged).filter_map(Value::as_str) {
            let is_offered = offered.is_some_and(|offered| offered.contains_key(name));
            if is_offered && !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
        if !required.is_empty() {
            out.insert("required".to_owned(), required.into());
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => {
                out.insert("additionalProperties".to_owned(), false.into());
            }
            Some(more @ Value::Object(_)) => {
                let more = self.node(more, depth + 1);
                out.insert("additionalProperties".to_owned(), more);
            }
            _ => {}
        }
    }

    fn list(&mut self, schema: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        if let Some(items @ Value::Object(_)) = schema.get("items") {
            let items = self.node(items, depth + 1);
            out.insert("items".to_owned(), items);
        } else if out.get("type").and_then(Value::as_str) == Some("array") {
            // Some model APIs refuse a list that does not say of what.
            out.insert("items".to_owned(), json!({}));
        }
    }
}

/// Whether a name can be shown and written back unchanged.
fn is_name(name: &str) -> bool {
    let is_plain =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '$' | '@' | ':');
    !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && name.chars().all(is_plain)
}

fn values(schema: &Map<String, Value>, out: &mut Map<String, Value>) {
    let constant = schema.get("const").map(std::slice::from_ref);
    let listed = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let Some(values) = constant.or(listed) else {
        return;
    };
    // A value that had to be changed could not be written back, so then none is shown.
    let is_plain = |value: &Value| match value {
        Value::String(value) => text::line(value, VALUE_CHARS_MAX) == *value,
        Value::Number(_) | Value::Bool(_) | Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    };
    if !values.is_empty() && values.len() <= VALUES_MAX && values.iter().all(is_plain) {
        let values: Vec<Value> = values.iter().filter(|value| !value.is_null()).cloned().collect();
        out.insert("enum".to_owned(), values.into());
    }
}

/// What a model is told of a place, its default value among it.
fn words(schema: &Map<String, Value>) -> Option<String> {
    let said = schema
        .get("description")
        .or_else(|| schema.get("title"))
        .and_then(Value::as_str);
    let mut words = text::line(said.unwrap_or_default(), DESCRIPTION_CHARS_MAX);
    let default = schema.get("default").filter(|value| match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    });
    if let Some(default) = default {
        let shown = text::line(&default.to_string(), 60);
        let sentence = format!("{words} Default: {shown}.");
        words = sentence.trim_start().into();
    }
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn converted(schema: Value) -> Value {
        let Value::Object(schema) = schema else {
            panic!("an object");
        };
        convert(&schema, 16 << 10).unwrap()
    }

    #[test]
    fn what_apis_take_is_kept_and_the_rest_left_out() {
        let schema = converted(json!({
            "$schema": "x", "title": "T", "type": ["object", "null"], "additionalProperties": false,
            "$defs": {"P": {"type": "string", "format": "uri", "description": "A\u{202e} place"}},
            "properties": {
                "at": {"$ref": "#/$defs/P", "default": "here"},
                "n": {"anyOf": [{"type": "integer", "minimum": 1, "exclusiveMaximum": 9}, {"type": "null"}]},
                "list": {"type": "array", "items": {"const": "a"}},
                "any": {"oneOf": [{"type": "string", "pattern": "x"}, {"type": "number"}]},
                "free": {"type": "array"},
                "bad name\n": {"type": "string"},
            },
            "required": ["at", "ghost"],
        }));
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "at": {"type": "string", "description": "A place Default: \"here\"."},
                    "n": {"type": "integer", "minimum": 1},
                    "list": {"type": "array", "items": {"enum": ["a"]}},
                    "any": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                    "free": {"type": "array", "items": {}},
                },
                "required": ["at"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let schema = converted(json!({
            "type": "object",
            "properties": {"child": {"$ref": "#"}, "loop": {"$ref": "#/properties/loop"}},
        }));
        assert!(schema.to_string().len() < 16 << 10);
        assert_eq!(schema["properties"]["loop"], json!({}));
    }

    #[test]
    fn a_huge_schema_becomes_shallow_or_nothing() {
        let mut properties = Map::new();
        for index in 0..100 {
            properties.insert(
                format!("argument_{index}"),
                json!({"type": "string", "description": "x".repeat(300)}),
            );
        }
        let Value::Object(schema) = json!({"type": "object", "properties": properties}) else {
            panic!();
        };
        let short = convert(&schema, 8 << 10).unwrap();
        assert_eq!(short["properties"]["argument_7"], json!({"type": "string"}));
        assert!(convert(&schema, 100).is_err());
        let Value::Object(unnameable) = json!({"properties": {"a b": {}}, "required": ["a b"]}) else {
            panic!();
        };
        assert!(convert(&unnameable, 1000).is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let key = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "enum",
            "const",
            "required",
            "default",
            "description",
            "additionalProperties",
            "a",
            "minimum",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop::sample::select(vec![
                "object",
                "string",
                "array",
                "#",
                "#/properties/a",
                "\u{0}<|im_end|>"
            ])
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((key.clone(), inner), 0..5).prop_map(|pairs| Value::Object(
                    pairs
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect()
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_comes_is_an_object_within_the_bound(schema in any_json()) {
            let map = schema.as_object().cloned().unwrap_or_default();
            if let Ok(converted) = convert(&map, 4000) {
                let text = converted.to_string();
                prop_assert!(text.len() <= 4000);
                prop_assert_eq!(&converted["type"], "object");
                prop_assert!(converted["properties"].is_object());
                prop_assert!(!text.contains("$ref") && !text.contains("im_end"));
            }
        }
    }
}

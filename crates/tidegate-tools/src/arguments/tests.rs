use serde_json::{Value, json};
use tidegate_core::tool::{Arguments, Effect, FailureCode, Parameter, ParameterType, ToolMode, ToolSpec};

use super::{Argument, Values};

fn parameter(name: &str, kind: ParameterType) -> Parameter {
    Parameter {
        name: name.to_owned(),
        kind,
        description: "what it is for.".to_owned(),
        required: false,
        one_of: Vec::new(),
        min: None,
        max: None,
        chars_max: None,
        free_text: false,
    }
}

fn spec() -> ToolSpec {
    let mut title = parameter("title", ParameterType::String);
    title.required = true;
    title.chars_max = Some(5);
    let mut colour = parameter("colour", ParameterType::String);
    colour.one_of = vec!["red".to_owned(), "blue".to_owned()];
    let mut weeks = parameter("weeks", ParameterType::Integer);
    (weeks.min, weeks.max) = (Some(1), Some(52));
    let mut ratio = parameter("ratio", ParameterType::Number);
    ratio.max = Some(1);
    let mut names = parameter("names", ParameterType::StringList);
    (names.min, names.max) = (Some(1), Some(2));
    ToolSpec {
        name: "example".to_owned(),
        description: "An example.".to_owned(),
        mode: ToolMode::Command,
        effect: Effect::External,
        parameters: vec![
            title,
            colour,
            weeks,
            ratio,
            names,
            parameter("loud", ParameterType::Boolean),
        ],
        timeout_ms: 1,
        output_bytes_max: 1,
    }
}

fn object(value: Value) -> Arguments {
    match value {
        Value::Object(map) => Arguments::Object(map),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            panic!("{other}")
        }
    }
}

#[test]
fn takes_what_can_only_mean_one_thing() {
    let spec = spec();
    for (name, written, expected) in [
        ("weeks", json!("3"), Argument::Integer(3)),
        ("weeks", json!(3.0), Argument::Integer(3)),
        ("loud", json!("TRUE"), Argument::Boolean(true)),
        ("title", json!(8), Argument::Text("8".to_owned())),
        ("names", json!("a"), Argument::Texts(vec!["a".to_owned()])),
        (
            "names",
            json!(["a", 2]),
            Argument::Texts(vec!["a".to_owned(), "2".to_owned()]),
        ),
        (
            "ratio",
            json!("0.5"),
            Argument::Number(serde_json::Number::from_f64(0.5).unwrap()),
        ),
    ] {
        let mut arguments = json!({"title": "t"});
        arguments[name] = written;
        let values = Values::read(&object(arguments), &spec).unwrap();
        assert_eq!(values.get(name), Some(&expected), "{name}");
    }
    let values = Values::read(&object(json!({"title": "t", "weeks": null})), &spec).unwrap();
    assert_eq!(values.get("weeks"), None);
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn refuses_with_the_parameter_named() {
    let spec = spec();
    for (arguments, code, fragment) in [
        (json!({}), FailureCode::MissingArgument, "`title` is missing"),
        (
            json!({"title": null}),
            FailureCode::MissingArgument,
            "`title` is missing",
        ),
        (
            json!({"title": "toolong"}),
            FailureCode::InvalidArguments,
            "`title` is longer than 5",
        ),
        (
            json!({"title": ["t"]}),
            FailureCode::InvalidArguments,
            "`title` must be a text",
        ),
        (
            json!({"title": "t", "titel": 1}),
            FailureCode::InvalidArguments,
            "did you mean `title`",
        ),
        (
            json!({"title": "t", "zzz": 1}),
            FailureCode::InvalidArguments,
            "the arguments are title",
        ),
        (
            json!({"title": "t", "weeks": 0}),
            FailureCode::InvalidArguments,
            "`weeks` must be from 1 to 52",
        ),
        (
            json!({"title": "t", "weeks": 2.5}),
            FailureCode::InvalidArguments,
            "`weeks` must be a whole number",
        ),
        (
            json!({"title": "t", "weeks": 1e300}),
            FailureCode::InvalidArguments,
            "`weeks` must be a whole number",
        ),
        (
            json!({"title": "t", "weeks": "many"}),
            FailureCode::InvalidArguments,
            "`weeks` must be",
        ),
        (
            json!({"title": "t", "ratio": 1.5}),
            FailureCode::InvalidArguments,
            "`ratio` must be at most 1",
        ),
        (
            json!({"title": "t", "colour": "green"}),
            FailureCode::InvalidArguments,
            "one of red, blue",
        ),
        (
            json!({"title": "t", "loud": 1}),
            FailureCode::InvalidArguments,
            "`loud` must be true or false",
        ),
        (
            json!({"title": "t", "names": ["a", "b", "c"]}),
            FailureCode::InvalidArguments,
            "at most 2",
        ),
        (
            json!({"title": "t", "names": []}),
            FailureCode::InvalidArguments,
            "at least 1",
        ),
        (
            json!({"title": "t", "names": [{}]}),
            FailureCode::InvalidArguments,
            "`names` must be a list",
        ),
    ] {
        let problem = Values::read(&object(arguments.clone()), &spec).unwrap_err();
        assert_eq!(problem.code, code, "{arguments}");
        assert!(
            problem.message.contains(fragment),
            "{arguments}: {}",
            problem.message
        );
    }
    let raw = Arguments::Unparsable {
        raw: "{".to_owned(),
        problem: "it ends early".to_owned(),
    };
    assert!(
        Values::read(&raw, &spec)
            .unwrap_err()
            .message
            .contains("it ends early")
    );
}

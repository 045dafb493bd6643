mod properties;

use serde_json::json;

use super::*;

const TOOLS: [&str; 7] = [
    "execute_shell",
    "web_search",
    "read_text",
    "write_file",
    "calculate",
    "last_output",
    "current_time",
];

fn known(name: &str) -> bool {
    TOOLS.contains(&name)
}

const PLAIN: Dialect = Dialect { bare_objects: false };
const CONVENTION: Dialect = Dialect { bare_objects: true };

fn calls(text: &str) -> Vec<(String, serde_json::Value)> {
    match parse_calls(text, &known, PLAIN) {
        Parsed::Calls(calls) => calls
            .into_iter()
            .map(|call| match call.arguments {
                Arguments::Object(object) => (call.name, object.into()),
                Arguments::Unparsable { raw, .. } => (call.name, json!({ "unparsable": raw })),
            })
            .collect(),
        Parsed::Unknown { names } => names
            .into_iter()
            .map(|name| (format!("?{name}"), json!(null)))
            .collect(),
        Parsed::None => Vec::new(),
    }
}

#[track_caller]
fn check(text: &str, expected: &[(&str, serde_json::Value)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    assert_eq!(calls(text), expected, "{text}");
}

#[test]
fn header_forms() {
    check(
        "Let me see.\n✿FUNCTION✿: read_text\n✿ARGS✿: {\"path\": \"a}b{.md\"}\nThen I answer.",
        &[("read_text", json!({"path": "a}b{.md"}))],
    );
    check(
        "✿FUNCTION✿: read_text\n✿ARGS✿: {\"path\":\"a\"}\n✿FUNCTION✿: read_text\n✿ARGS✿: {\"path\":\"b\"}",
        &[
            ("read_text", json!({"path": "a"})),
            ("read_text", json!({"path": "b"})),
        ],
    );
    check(
        "✿FUNCTION✿: read_text\n✿ARGS✿: {\"path\": \"a.m",
        &[("read_text", json!({"unparsable": "{\"path\": \"a.m"}))],
    );
    check(
        "✿FUNCTION✿: read_text\n✿ARGS✿: {\"path\": \"a\n✿FUNCTION✿: current_time\n✿ARGS✿: {}",
        &[
            ("read_text", json!({"unparsable": "{\"path\": \"a"})),
            ("current_time", json!({})),
        ],
    );
    check(
        "✿FUNCTION✿: calculate\n✿ARGS✿: [1, 2]",
        &[("calculate", json!({"unparsable": "[1, 2]"}))],
    );
    check(
        "✿FUNCTION✿: calculate\n✿ARGS✿: two and two\nmore",
        &[("calculate", json!({"unparsable": "two and two"}))],
    );
    check("✿FUNCTION✿: current_time", &[("current_time", json!({}))]);
    check(
        "✿FUNCTION✿: current_time\n✿ARGS✿:",
        &[("current_time", json!({}))],
    );
    check(
        "✿FUNCTION✿: calculate\n```json\n{\"expression\": \"1+1\"}\n```\nok",
        &[("calculate", json!({"expression": "1+1"}))],
    );
    check(
        "✿FUNCTION✿: calculate\n{\"expression\": \"1\"}",
        &[("calculate", json!({"expression": "1"}))],
    );
    check("✿FUNCTION✿: fly\n✿ARGS✿: {}", &[("?fly", json!(null))]);
    check(
        "✿FUNCTION✿: calc ✿ARGS✿: {\"expression\":\"2\"}",
        &[("calculate", json!({"expression": "2"}))],
    );
}

#[test]
fn other_marked_forms() {
    check(
        "✿{\"name\":\"read_text\",\"arguments\":{\"path\":\"a\"}}✿\n✿FUNCTION✿: current_time\n✿ARGS✿: {}",
        &[("read_text", json!({"path": "a"})), ("current_time", json!({}))],
    );
    check(
        "✿FUNCTION✿: current_time\n✿ {\"name\":\"cat\",\"arguments\":{\"path\":\"a\"}} ✿",
        &[("current_time", json!({})), ("read_text", json!({"path": "a"}))],
    );
    check(
        "<tool_call>\n{\"name\": \"read_text\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
        &[("read_text", json!({"path": "a"}))],
    );
    check(
        "<tool_call>{\"name\":\"calc\",\"arguments\":\"{\\\"expression\\\":\\\"1\\\"}\"}</tool_call> and \
         <tool_call>{\"name\":\"current_time\"}</tool_call>",
        &[
            ("calculate", json!({"expression": "1"})),
            ("current_time", json!({})),
        ],
    );
    check(
        "<tool_call>[{\"name\":\"calc\",\"arguments\":{}},{\"name\":\"current_time\",\"arguments\":{}}]</tool_call>",
        &[("calculate", json!({})), ("current_time", json!({}))],
    );
    check(
        "<tool_call>current_time</tool_call>",
        &[("current_time", json!({}))],
    );
    check(
        "<tool_call>{\"name\":\"current_time\",\"arguments\":{}}",
        &[("current_time", json!({}))],
    );
    check(
        "<tool_call>{\"name\":\"calculate\",\"arguments\":{\"a\":</tool_call>",
        &[(
            "calculate",
            json!({"unparsable": "{\"name\":\"calculate\",\"arguments\":{\"a\":"}),
        )],
    );
    check(
        "<|mask_start|>{\"tool\":\"read_text\",\"arguments\":{\"path\":\"a\"}}<|mask_end|>",
        &[("read_text", json!({"path": "a"}))],
    );
    check(
        "<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=text>\none\ntwo\n</parameter>\n\
         </function>",
        &[("write_file", json!({"path": "a.txt", "text": "one\ntwo"}))],
    );
    check(
        "<tool_call><function=calculate><parameter=digits>3</parameter></function></tool_call>",
        &[("calculate", json!({"digits": 3}))],
    );
    check(
        "<tool_call>{\"name\":\"fly\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"calc\"}</tool_call>",
        &[("fly", json!({})), ("calculate", json!({}))],
    );
}

#[test]
fn bare_objects_and_names() {
    let object = "{\"name\": \"read_text\", \"arguments\": {\"path\": \"a\"}}";
    check(&format!("\n {object}\n"), &[("read_text", json!({"path": "a"}))]);
    check(
        &format!("<think>hm</think>{object}"),
        &[("read_text", json!({"path": "a"}))],
    );
    check(&format!("The API takes {object}, for example."), &[]);
    check(&format!("{object} is what the API takes."), &[]);
    check(
        "{\"name\":\"calc\",\"arguments\":\"{\\\"expression\\\":\\\"1\\\"}\"}",
        &[("calculate", json!({"expression": "1"}))],
    );
    check("{\"tool\": \"read_text\", \"arguments\": {\"path\": \"a\"}}", &[]);
    check("{\"name\": \"Ada\", \"arguments\": {}}", &[]);
    check(
        "bash{\"command\": \"ls\"}",
        &[("execute_shell", json!({"command": "ls"}))],
    );
    check(
        "shell {\"command\": \"ls\"}",
        &[("execute_shell", json!({"command": "ls"}))],
    );
    check("current_time{}", &[("current_time", json!({}))]);
    check("Write `read{\"path\":\"a\"}` to read.", &[]);
    check(
        "my_read{\"path\":\"a\"} and x.read{\"path\":\"a\"} and read {it}",
        &[],
    );
    let prose = format!("I will call {object} now. {{\"other\": 1}}");
    let Parsed::Calls(found) = parse_calls(&prose, &known, CONVENTION) else {
        panic!("the dialect takes objects anywhere");
    };
    assert_eq!(found.len(), 1);
}

#[test]
fn tolerant_arguments() {
    check(
        "<tool_call>{\"name\":\"write_file\",\"arguments\":{\"text\":\"one\n\ttwo\"}}</tool_call>",
        &[("write_file", json!({"text": "one\n\ttwo"}))],
    );
    check(
        "✿FUNCTION✿: calculate\n✿ARGS✿: {\"pattern\": \"\\d+\"}",
        &[("calculate", json!({"pattern": "\\d+"}))],
    );
    check(
        "✿FUNCTION✿: calculate\n✿ARGS✿: {\"text\": \"it\\'s\"}",
        &[("calculate", json!({"text": "it's"}))],
    );
}

#[test]
fn code_blocks_hold_examples() {
    for example in [
        "```\n✿FUNCTION✿: current_time\n✿ARGS✿: {}\n```",
        "```json\n{\"name\": \"current_time\", \"arguments\": {}}\n```",
        "~~~~\n```\n~~~\n<tool_call>{\"name\":\"current_time\"}</tool_call>\n~~~~",
        "  - so:\n    ```\n    <tool_call>{\"name\":\"current_time\"}</tool_call>\n    ```",
        "```\n```json\n<tool_call>{\"name\":\"current_time\"}</tool_call>",
        "```\ncurrent_time{}\n",
    ] {
        check(example, &[]);
        assert_eq!(strip_markup(example, &known, PLAIN), example);
    }
    check("```\na\n```\ncurrent_time{}", &[("current_time", json!({}))]);
}

#[test]
fn calls_in_reasoning_are_thoughts() {
    check(
        "<think>current_time{} <tool_call>{\"name\":\"current_time\"}</tool_call></think>No.",
        &[],
    );
}

#[test]
fn reasoning_is_removed() {
    for (text, expected) in [
        ("<think>a</think>b", "b"),
        ("<think>a</think>\n\nb", "b"),
        ("a <THINKING>x</Thinking> b", "a  b"),
        ("a<scratchpad>x", "a"),
        ("a</think>b", "ab"),
        (
            "<thought>x</thought><reason>y</reason><reasoning>z</reasoning>a < b <thinner>",
            "a < b <thinner>",
        ),
        ("<think>\n</think>\n", ""),
        ("a\n\n\n\nb ✿ c{\"d\":1}", "a\n\n\n\nb ✿ c{\"d\":1}"),
        ("1 <think>a</thinking></think>2<thi", "1 2<thi"),
    ] {
        assert_eq!(strip_reasoning(text), expected, "{text}");
    }
}

#[test]
fn markup_is_removed() {
    for (text, expected) in [
        ("a\n\n<tool_call>{}</tool_call>\n\nb", "a\n\nb"),
        ("a ✿FUNCTION✿: calc\n✿ARGS✿: {\"x\":1} b", "a  b"),
        ("a ✿{\"name\":\"calc\"}✿ b", "a  b"),
        ("a ✿RESULT✿: b ✿", "a  b "),
        ("a <|mask_start|>x<|mask_end|>b</tool_call></function>", "a b"),
        ("a <function=x>1</function>b", "a b"),
        ("bash{\"command\":\"ls\"} b", " b"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("print{\"a\":1}", "print{\"a\":1}"),
        ("{\"a\": 1}", "{\"a\": 1}"),
        ("{\"name\":\"calc\",\"arguments\":{}}", ""),
        ("{ never closed <tool_call>x</tool_call>", "{ never closed "),
        ("a<tool_call>cut off", "a"),
        (
            "✿FUNCTION✿: current_time\n```rust\nfn a() {}\n```",
            "```rust\nfn a() {}\n```",
        ),
    ] {
        assert_eq!(strip_markup(text, &known, PLAIN), expected, "{text}");
    }
}

#[test]
fn aliases_and_an_operators_own_name() {
    assert_eq!(resolve_alias("Bash"), "execute_shell");
    assert_eq!(resolve_alias("prev_output"), "last_output");
    assert_eq!(resolve_alias("weather"), "weather");
    let own = |name: &str| matches!(name, "search" | "web_search");
    let Parsed::Calls(found) = parse_calls("<tool_call>{\"name\":\"search\"}</tool_call>", &own, PLAIN)
    else {
        panic!("`search` is known");
    };
    assert_eq!(found[0].name, "search");
}

fn filter(calls: bool, dialect: Dialect) -> DisplayFilter {
    DisplayFilter::new(if calls {
        Visible::NoMarkup {
            names: TOOLS.map(str::to_owned).into(),
            dialect,
        }
    } else {
        Visible::AllButReasoning
    })
}

#[test]
fn words_are_shown_as_they_arrive() {
    let mut native = filter(false, PLAIN);
    for token in ["Hello", " world", " {\"a\":", " bash{", "✿ ", "\n\n\n\n"] {
        assert_eq!(native.push(token), token);
    }
    let mut text = filter(true, PLAIN);
    assert_eq!(text.push("Hello wor"), "Hello ");
    assert_eq!(text.push("ld, <tool"), "world, ");
    assert_eq!(text.push("_call>{\"name\""), "");
    assert_eq!(text.push(":\"calc\"}</tool_call>!"), "!");
    assert_eq!(text.push(" bash"), " ");
    assert_eq!(text.push(" {"), "");
    assert_eq!(text.finish(), "bash {");
}

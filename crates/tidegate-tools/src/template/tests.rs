use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_core::tool::{Effect, Parameter, ParameterType, ToolMode, ToolSpec};
use url::Url;

use super::{CommandTemplate, HttpTemplate, Text, http::HttpRequest};
use crate::arguments::{Problem, Values};

fn spec() -> ToolSpec {
    let parameter = |name: &str, kind| Parameter {
        name: name.to_owned(),
        kind,
        description: "one.".to_owned(),
        required: false,
        one_of: Vec::new(),
        min: None,
        max: None,
        chars_max: None,
        free_text: false,
    };
    ToolSpec {
        name: "example".to_owned(),
        description: "An example.".to_owned(),
        mode: ToolMode::Command,
        effect: Effect::External,
        parameters: vec![
            parameter("a", ParameterType::String),
            parameter("b", ParameterType::String),
            parameter("n", ParameterType::Integer),
        ],
        timeout_ms: 1,
        output_bytes_max: 1,
    }
}

fn values<'s>(spec: &'s ToolSpec, arguments: &Value) -> Values<'s> {
    let map: Map<String, Value> = arguments.as_object().cloned().unwrap();
    Values::from_object(&map, spec).unwrap()
}

fn command(entries: &[&str]) -> Result<CommandTemplate, String> {
    let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
    CommandTemplate::parse(&entries, false)
}

fn request(template: &HttpTemplate, arguments: &Value) -> Result<HttpRequest, Problem> {
    template.render(&values(&spec(), arguments))
}

#[test]
fn text_reads_placeholders_and_braces() {
    let spec = spec();
    let values = values(&spec, &json!({"a": "x"}));
    let render = |raw: &str| {
        Text::parse(raw)
            .unwrap()
            .render(&values, crate::arguments::Argument::to_text)
    };
    assert_eq!(render("{{print ${a}}}"), Some("{print $x}".to_owned()));
    assert_eq!(render("{b}"), None);
    assert_eq!(render(""), Some(String::new()));
    for bad in ["{", "{a", "{a b}", "}", "{}", "a}b"] {
        assert!(Text::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn commands_keep_their_elements() {
    let spec = spec();
    let template = command(&["/bin/echo", "--tag={b}", "{a}", "fixed"]).unwrap();
    assert_eq!(template.program(), "/bin/echo");
    let argv = template
        .render(&values(&spec, &json!({"a": "x; rm -rf / $(id)"})))
        .unwrap();
    assert_eq!(argv, ["x; rm -rf / $(id)", "fixed"]);
    let argv = template
        .render(&values(&spec, &json!({"a": "x", "b": "-v"})))
        .unwrap();
    assert_eq!(argv, ["--tag=-v", "x", "fixed"]);
    let refused = template
        .render(&values(&spec, &json!({"a": "--exec=id"})))
        .unwrap_err();
    assert!(refused.message.contains("option"), "{}", refused.message);
    assert!(template.render(&values(&spec, &json!({"a": "x\0y"}))).is_err());
    let entries = ["/bin/echo".to_owned(), "{a}".to_owned()];
    let dashes = CommandTemplate::parse(&entries, true).unwrap();
    assert_eq!(
        dashes.render(&values(&spec, &json!({"a": "-n"}))).unwrap(),
        ["-n"]
    );
    for bad in [&[][..], &["{a}"][..], &[""][..], &["sh\0"][..], &["sh", "{"][..]] {
        assert!(command(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn urls_keep_their_host_and_shape() {
    let none = BTreeMap::new();
    let template =
        HttpTemplate::parse("https://x.example/v1/{a}/items?q={b}&n={n}&k=1", &none, None).unwrap();
    let url = |arguments: Value| request(&template, &arguments).map(|request| request.url);
    assert_eq!(
        url(json!({"a": "p/q", "b": "c&d=é", "n": 3})).unwrap(),
        "https://x.example/v1/p%2Fq/items?q=c%26d%3D%C3%A9&n=3&k=1"
    );
    assert_eq!(
        url(json!({"a": "p"})).unwrap(),
        "https://x.example/v1/p/items?k=1"
    );
    for bad in ["", ".", ".."] {
        assert!(url(json!({"a": bad})).is_err(), "{bad}");
    }
    // What looks encoded already is encoded again, so it stays a plain text.
    assert_eq!(
        url(json!({"a": "%2e%2e"})).unwrap(),
        "https://x.example/v1/%252e%252e/items?k=1"
    );
    for bad in [
        "https://{a}/",
        "https://x.example{a}",
        "https://x.{a}.example/",
        "ftp://x.example/",
        "https:///{a}",
        "https://x@y.example/",
        "https://x.example/../{a}",
        "https://x.example/#{a}",
        "https://x.example/a b",
        "https://x.example\\{a}",
        "x.example/{a}",
        "https://x.example:{a}/",
        "https://x.example/%2E%2e/",
    ] {
        assert!(HttpTemplate::parse(bad, &none, None).is_err(), "{bad}");
    }
}

#[test]
fn headers_stay_on_their_line() {
    let headers = BTreeMap::from([("X-Name".to_owned(), "n {a}".to_owned())]);
    let template = HttpTemplate::parse("https://x.example/", &headers, None).unwrap();
    let good = request(&template, &json!({"a": "x"})).unwrap();
    assert_eq!(good.headers, [("X-Name".to_owned(), "n x".to_owned())]);
    for bad in ["x\r\nEvil: 1", "x\n", "é", "\0"] {
        assert!(request(&template, &json!({"a": bad})).is_err(), "{bad:?}");
    }
    assert!(request(&template, &json!({})).unwrap().headers.is_empty());
    for (name, value) in [
        ("Host", "x"),
        ("a b", "x"),
        ("", "x"),
        ("X", "a\nb"),
        ("content-length", "1"),
    ] {
        let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert!(
            HttpTemplate::parse("https://x.example/", &headers, None).is_err(),
            "{name}"
        );
    }
    let secret = BTreeMap::from([("Authorization".to_owned(), "Bearer hush".to_owned())]);
    let template = HttpTemplate::parse("https://x.example/", &secret, None).unwrap();
    assert!(!format!("{template:?}{:?}", request(&template, &json!({})).unwrap()).contains("hush"));
}

#[test]
fn bodies_keep_types_and_quotes() {
    let none = BTreeMap::new();
    let body = json!({"q": "{a}", "n": "{n}", "deep": [{"t": "<{a}>"}, "{b}", 7], "b": "{b}"});
    let template = HttpTemplate::parse("https://x.example/", &none, Some(&body)).unwrap();
    let arguments = json!({"a": "\"}, {\"x\": 1", "n": 3});
    let rendered = request(&template, &arguments).unwrap().body.unwrap();
    assert_eq!(
        rendered,
        json!({"q": "\"}, {\"x\": 1", "n": 3, "deep": [{"t": "<\"}, {\"x\": 1>"}, 7]})
    );
    let as_text = Value::from("{\"q\": \"{a}\"}");
    let template = HttpTemplate::parse("https://x.example/", &none, Some(&as_text)).unwrap();
    assert_eq!(
        request(&template, &json!({"a": "x"})).unwrap().body,
        Some(json!({"q": "x"}))
    );
    assert!(HttpTemplate::parse("https://x.example/", &none, Some(&Value::from("q={a}"))).is_err());
    assert_eq!(template.placeholders().into_iter().collect::<Vec<_>>(), ["a"]);
}

proptest! {
    #[test]
    fn an_argument_never_becomes_two_elements(a in "\\PC{0,40}", b in any::<String>()) {
        let spec = spec();
        let template = command(&["/bin/echo", "{a}", "--b={b}", "{a}:{b}", "end"]).unwrap();
        if let Ok(argv) = template.render(&values(&spec, &json!({"a": a, "b": b}))) {
            prop_assert_eq!(argv, vec![a.clone(), format!("--b={b}"), format!("{a}:{b}"), "end".to_owned()]);
        } else {
            prop_assert!(a.starts_with('-') || b.contains('\0') || (a.is_empty() && b.starts_with('-')));
        }
    }

    #[test]
    fn whatever_the_value_the_host_stays(a in any::<String>(), b in any::<String>()) {
        let none = BTreeMap::new();
        let template = HttpTemplate::parse("http://x.example:81/p/{a}/r?q={b}&s=1", &none, None).unwrap();
        if let Ok(request) = request(&template, &json!({"a": a, "b": b})) {
            let url = Url::parse(&request.url).unwrap();
            prop_assert_eq!(url.scheme(), "http");
            prop_assert_eq!(url.host_str(), Some("x.example"));
            prop_assert_eq!(url.port(), Some(81));
            prop_assert_eq!(url.username(), "");
            prop_assert_eq!(url.path_segments().unwrap().count(), 3);
            prop_assert!(url.path().starts_with("/p/") && url.path().ends_with("/r"));
            prop_assert_eq!(url.fragment(), None);
            let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(pairs, vec![("q".to_owned(), b), ("s".to_owned(), "1".to_owned())]);
        } else {
            prop_assert!(a.is_empty() || a == "." || a == "..");
        }
    }

    #[test]
    fn a_body_value_stays_a_text(a in any::<String>()) {
        let none = BTreeMap::new();
        let template = HttpTemplate::parse("http://x.example/", &none, Some(&json!({"q": "-{a}-"}))).unwrap();
        let body = request(&template, &json!({"a": a})).unwrap().body.unwrap();
        let back: Value = serde_json::from_str(&body.to_string()).unwrap();
        prop_assert_eq!(back, json!({"q": format!("-{a}-")}));
    }
}

use std::{io::Write as _, sync::LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const SECRET: &str = "sk-inv-9fQ2xLm7RtYb4KpZ";

/// Compiled once: properties ask for it many times.
static SECRETS: LazyLock<Secrets> = LazyLock::new(|| {
    Secrets::compile([SECRET, "p@ss w/rd+%&=1234", "short", "correct horse battery"]).unwrap()
});

fn refuses_body(body: &str) -> bool {
    let outgoing = Outgoing {
        url: "https://h.example/",
        host: "h.example",
        body: body.as_bytes(),
        ..Outgoing::default()
    };
    match check(&SECRETS, &outgoing) {
        Ok(()) => false,
        Err(denial) => {
            assert_eq!(denial.floor, "outbound_secret");
            assert!(!denial.reason.contains("9fQ2"), "{denial:?}");
            true
        }
    }
}

/// Each byte as the writer gives it.
fn each(text: &str, form: impl Fn(u8) -> String) -> String {
    text.bytes().map(form).collect()
}

fn hex(text: &str) -> String {
    each(text, |byte| format!("{byte:02x}"))
}

fn percent(text: &str) -> String {
    each(text, |byte| format!("%{byte:02x}"))
}

#[test]
fn a_secret_is_found_in_every_form_in_which_text_travels() {
    let spaced: String = SECRET.chars().flat_map(|letter| [letter, ' ']).collect();
    let entities: String = each(SECRET, |byte| format!("&#{byte};"));
    let hex_entities: String = each(SECRET, |byte| format!("&#x{byte:X};"));
    let unicode: String = each(SECRET, |byte| format!("\\u{byte:04x}"));
    let wide: String = SECRET
        .chars()
        .map(|letter| char::from_u32(u32::from(letter) + 0xfee0).unwrap())
        .collect();
    let marked: String = each(SECRET, |byte| format!("0x{byte:02x}, "));
    let zero_width: String = SECRET.chars().flat_map(|letter| [letter, '\u{200b}']).collect();
    let base64 = |text: &str| STANDARD.encode(text);
    let forms = [
        SECRET.to_owned(),
        format!("text before {SECRET}, and behind"),
        SECRET.to_lowercase(),
        SECRET.to_uppercase(),
        SECRET.replace('-', ""),
        SECRET.replace('-', "_"),
        spaced,
        each(SECRET, |byte| format!("{}\n", char::from(byte))),
        percent(SECRET),
        percent(&percent(SECRET)),
        percent(&percent(&percent(SECRET))),
        SECRET.replacen('s', "%73", 1),
        entities,
        hex_entities,
        unicode.clone(),
        percent(&unicode),
        wide,
        zero_width,
        hex(SECRET),
        hex(SECRET).to_uppercase(),
        marked,
        each(SECRET, |byte| format!("{byte:02X}:")),
        base64(SECRET),
        base64(&format!("a{SECRET}")),
        base64(&format!("ab{SECRET}x")),
        URL_SAFE_NO_PAD.encode(SECRET),
        each(&base64(SECRET), |byte| format!("{}\n", char::from(byte))),
        percent(&base64(SECRET)),
        base64(&base64(SECRET)),
        base64(&base64(&base64(SECRET))),
        base64(&hex(SECRET)),
        hex(&base64(SECRET)),
        base64(&percent(SECRET)),
        base64(&json!({"key": SECRET}).to_string()),
        json!({"a": {"b": [SECRET]}}).to_string(),
        json!({"a": "sk-inv-9fQ2", "b": "xLm7RtYb4KpZ"}).to_string(),
        json!({"b": "xLm7RtYb4KpZ", "a": "sk-inv-9fQ2"}).to_string(),
        json!(["sk-i", "nv-9f", "Q2xL", "m7Rt", "Yb4KpZ"]).to_string(),
        "a=sk-inv-9fQ2&b=xLm7RtYb4KpZ".to_owned(),
        "one sk-inv-9fQ2xLm and another one LmxQ Lm7RtYb4KpZ".to_owned(),
        SECRET[..SECRET.len() - 2].to_owned(),
        "p%40ss+w%2Frd%2B%25%26%3D1234".to_owned(),
        "p@ssw/rd+%&=1234".to_owned(),
    ];
    for form in forms {
        assert!(refuses_body(&form), "{form}");
        assert!(check_text(&SECRETS, &form, "the text").is_err(), "{form}");
    }
}

#[test]
fn ordinary_text_passes() {
    for text in [
        "",
        "hello, world",
        "short",
        "sk-inv-0000000000000000",
        "the correct way, a horse, and a battery",
        "{\"correct\": \"horse\"}",
        "https://h.example/a/b?c=d&e=f#g",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "%%%\\u12\\xZ&#;&#x;&#99999999;\\ud800\\ud800",
    ] {
        assert!(!refuses_body(text), "{text}");
    }
    let placeholders =
        Secrets::compile(["xxxxxxxxxxxxxxxx", "your-api-key-here", "   ", "elevenchars"]).unwrap();
    assert!(placeholders.is_empty());
    assert!(check_text(&placeholders, "xxxxxxxxxxxxxxxx", "it").is_ok());
}

#[test]
fn every_part_of_a_request_is_searched() {
    let secrets = &*SECRETS;
    let headers = [("X-A".to_owned(), SECRET.to_owned())];
    let named = [(SECRET.to_owned(), "a".to_owned())];
    let split = [
        ("X-A".to_owned(), "sk-inv-9fQ2".to_owned()),
        ("X-B".to_owned(), "xLm7RtYb4KpZ".to_owned()),
    ];
    let in_host = format!("https://{}.evil.example/", SECRET.to_lowercase());
    let labels = "https://sk-inv.9fq2xlm7.rtyb4kpz.evil.example/";
    let in_fragment = format!("https://h.example/#{SECRET}");
    let in_hex_labels = format!(
        "https://{}.{}.evil.example/",
        &hex(SECRET)[..30],
        &hex(SECRET)[30..]
    );
    let of = |url| Outgoing {
        url,
        ..Outgoing::default()
    };
    for outgoing in [
        of(&in_host),
        of(labels),
        of(&in_fragment),
        of(&in_hex_labels),
        of("https://h.example/?a=sk-inv-9fQ2&b=xLm7RtYb4KpZ"),
        of("https://h.example/?b=xLm7RtYb4KpZ&a=sk-inv-9fQ2"),
        of("https://h.example/sk-inv-9fQ2/xLm7RtYb4KpZ"),
        Outgoing {
            headers: &headers,
            ..Outgoing::default()
        },
        Outgoing {
            headers: &named,
            ..Outgoing::default()
        },
        Outgoing {
            headers: &split,
            ..Outgoing::default()
        },
        Outgoing {
            url: "https://h.example/?a=sk-inv-9fQ2",
            body: b"{\"b\": \"xLm7RtYb4KpZ\"}",
            ..Outgoing::default()
        },
    ] {
        assert!(check(secrets, &outgoing).is_err(), "{outgoing:?}");
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(SECRET.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    assert!(
        check(
            secrets,
            &Outgoing {
                body: &packed,
                ..Outgoing::default()
            }
        )
        .is_err()
    );
    for arguments in [
        json!({"query": format!("what is {SECRET}")}),
        json!({SECRET: "v"}),
        json!({"b": "xLm7RtYb4KpZ", "n": 1, "a": ["sk-inv-9fQ2"]}),
    ] {
        assert!(
            check_arguments(secrets, arguments.as_object().unwrap()).is_err(),
            "{arguments}"
        );
    }
    let large = vec![b'a'; EXAMINED_BYTES_MAX + 1];
    let denial = check(
        secrets,
        &Outgoing {
            body: &large,
            ..Outgoing::default()
        },
    )
    .unwrap_err();
    assert_eq!(denial.code, "outbound_too_large");
}

#[test]
fn a_row_may_send_its_own_key_to_its_own_host_only() {
    let secrets = &*SECRETS;
    let headers = [("X-Api-Key".to_owned(), SECRET.to_owned())];
    let texts = [SECRET.to_owned()];
    let to = |host| Outgoing {
        url: "https://api.tool.example/x",
        host,
        headers: &headers,
        own: Some(Own {
            host: "api.tool.example",
            texts: &texts,
        }),
        ..Outgoing::default()
    };
    assert!(check(secrets, &to("api.tool.example")).is_ok());
    assert!(check(secrets, &to("evil.example")).is_err());
    let arguments = json!({"q": SECRET});
    let with_arguments = Outgoing {
        arguments: arguments.as_object(),
        ..to("api.tool.example")
    };
    assert!(check(secrets, &with_arguments).is_err());
}

#[test]
fn a_key_file_is_known_by_any_long_piece() {
    let letters: String = (0..1600_u32)
        .map(|place| {
            char::from(
                b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789"
                    [(place * place * 7 + place * 13) as usize % 56],
            )
        })
        .collect();
    let file = format!("-----BEGIN PRIVATE KEY-----\n{letters}\n-----END PRIVATE KEY-----\n");
    let secrets = Secrets::compile([file.as_str()]).unwrap();
    assert!(check_text(&secrets, &letters[300..360], "it").is_err());
    assert!(check_text(&secrets, "-----BEGIN PRIVATE KEY-----", "it").is_ok());
}

proptest! {
    #[test]
    fn any_text_is_looked_at_without_harm(text in ".{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let secrets = &*SECRETS;
        let _judged = check_text(secrets, &text, "it");
        let _judged = check(secrets, &Outgoing { url: &text, body: &bytes, ..Outgoing::default() });
    }

    #[test]
    fn a_secret_between_anything_is_found(before in "[ -~]{0,30}", after in "[ -~]{0,30}") {
        let encoded = STANDARD.encode(format!("{before}{SECRET}{after}"));
        prop_assert!(refuses_body(&encoded));
        let text = format!("{before}{SECRET}{after}");
        prop_assert!(refuses_body(&text));
        prop_assert!(refuses_body(&percent(&text)));
    }
}

/// The lines of kind `outbound` of the corpus.
#[test]
fn corpus() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpora/secrets.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut count = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["kind"] != "outbound" {
            continue;
        }
        count += 1;
        let outcome = outcome(&line);
        assert_eq!(outcome.is_ok(), line["expect"] == "allow", "{line}");
        if let Err(denial) = outcome {
            let absent = line["check"]["message_absent"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            assert!(
                absent
                    .iter()
                    .all(|value| !denial.reason.contains(value.as_str().unwrap()))
            );
        }
    }
    assert!(count >= 20);
}

fn outcome(line: &Value) -> Result<(), Denial> {
    let configured = line["config"]["secrets"].as_object().unwrap();
    let secrets = Secrets::compile(configured.values().filter_map(Value::as_str)).unwrap();
    let input = &line["input"];
    let url = input["url"].as_str().unwrap_or_default();
    let host = url::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_default();
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut own = Vec::new();
    let mut own_host = String::new();
    for (name, value) in input["headers"].as_object().into_iter().flatten() {
        headers.push((name.clone(), value.as_str().unwrap().to_owned()));
    }
    for (name, value) in input["headers_from_config"].as_object().into_iter().flatten() {
        let key = value.as_str().unwrap().trim_matches(['{', '}']);
        let value = configured[key].as_str().unwrap().to_owned();
        line["config"]["tool_hosts"][key][0]
            .as_str()
            .unwrap()
            .clone_into(&mut own_host);
        own.push(value.clone());
        headers.push((name.clone(), value));
    }
    let mut body = input["body"].as_str().unwrap_or_default().as_bytes().to_vec();
    if let Some(packed) = input["body_gzip"].as_str() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(packed.as_bytes()).unwrap();
        body = encoder.finish().unwrap();
    }
    for (name, value) in input["multipart"].as_object().into_iter().flatten() {
        body = format!(
            "--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{}\r\n--x--",
            value.as_str().unwrap()
        )
        .into_bytes();
    }
    let mut arguments = input["args"].as_object().cloned().unwrap_or_default();
    if let Some(query) = input.get("query") {
        arguments.insert("query".to_owned(), query.clone());
    }
    check(
        &secrets,
        &Outgoing {
            url,
            host: &host,
            headers: &headers,
            body: &body,
            arguments: Some(&arguments),
            own: Some(Own {
                host: &own_host,
                texts: &own,
            }),
        },
    )
}

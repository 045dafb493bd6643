use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use proptest::prelude::*;

use super::*;

const KEY: &str = "made-up-7Qw/Zx+9?vB2";

fn redactor(secrets: &[&str]) -> Redactor {
    Redactor::new(secrets.iter().map(|secret| Secret::new(*secret))).expect("a redactor")
}

#[test]
fn a_value_is_masked_wherever_it_stands_and_nothing_else_is() {
    let redactor = redactor(&[KEY]);
    for (text, expected) in [
        (KEY.to_owned(), "[redacted]".to_owned()),
        (
            format!("a {KEY} b\n{KEY}"),
            "a [redacted] b\n[redacted]".to_owned(),
        ),
        (format!("é{KEY}é"), "é[redacted]é".to_owned()),
        (KEY.to_uppercase(), "[redacted]".to_owned()),
        ("made-up-7Qw".to_owned(), "made-up-7Qw".to_owned()),
        (String::new(), String::new()),
    ] {
        assert_eq!(redactor.redact(&text), expected);
    }
    assert!(matches!(redactor.redact("nothing here"), Cow::Borrowed(_)));
}

#[test]
fn encoded_forms_are_masked() {
    let value = "p@ss w/rd+%&=\"ü\n12";
    let redactor = redactor(&[value]);
    let hex = value
        .bytes()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02X}"));
    for text in [
        "p%40ss%20w%2Frd%2B%25%26%3D%22%C3%BC%0A12".to_owned(),
        "p%40ss+w%2frd%2b%25%26%3d%22%c3%bc%0a12".to_owned(),
        r#"p@ss w/rd+%&=\"ü\n12"#.to_owned(),
        r#"p@ss w/rd+%&=\"\u00fc\n12"#.to_owned(),
        "p@ss w/rd+%&=\"u\u{308}\n12".to_owned(),
        "p@ss w/rd+%&=\"ü\r\n12".to_owned(),
        hex,
    ] {
        assert_eq!(redactor.redact(&format!("<{text}>")), "<[redacted]>", "{text}");
    }
    for before in ["", "k", "ke", "key"] {
        for after in ["", "x", "xy"] {
            let plain = format!("{before}{value}{after}");
            for encoded in [STANDARD.encode(&plain), URL_SAFE.encode(&plain)] {
                let shown = redactor.redact(&encoded).into_owned();
                assert!(
                    shown.contains(MASK) && shown.len() < MASK.len() + 9,
                    "{encoded}: {shown}"
                );
            }
        }
    }
}

#[test]
fn a_value_that_begins_or_ends_with_a_quote_is_found_in_json() {
    for value in ["\"quoted-value\"", "ends-with-quote\"", "\\back\\slash\\"] {
        let text = serde_json::json!({ "k": value }).to_string();
        assert_eq!(redactor(&[value]).redact(&text), r#"{"k":"[redacted]"}"#);
    }
}

#[test]
fn overlapping_values_leave_no_tail() {
    for (secrets, text, expected) in [
        (&["AAAABBBB", "BBBBCCCC"][..], "xAAAABBBBCCCCx", "x[redacted]x"),
        (&["KEYKEY-1234", "KEYKEYKEY"], "KEYKEYKEY-1234", "[redacted]"),
        (
            &["short-secret", "short-secret-and-more"],
            "short-secret-and-more",
            "[redacted]",
        ),
        (
            &["short-secret", "short-secret-and-more"],
            "short-secret-and",
            "[redacted]-and",
        ),
        (
            &["inner-one", "an-inner-one-outer"],
            "an-inner-one-outer",
            "[redacted]",
        ),
        (&["abcabc"], "abcabcabcabc", "[redacted]"),
        (&["abab"], "xababab", "x[redacted]"),
        (&["redacted"], "[redacted]", "[[redacted]]"),
    ] {
        assert_eq!(redactor(secrets).redact(text), expected, "{secrets:?}");
    }
}

#[test]
fn values_that_would_mangle_text_are_left_out() {
    let text = "   a abc none changeme TEST xxxxxxxx";
    let redactor = redactor(&["", "   ", "a", "abc", "none", "CHANGEME", "test", "xxxxxxxx"]);
    assert_eq!(redactor.redact(text), text);
    assert_eq!(
        super::tests::redactor(&["hunt"]).redact("Hunt hunter hunt"),
        "Hunt [redacted]er [redacted]"
    );
}

#[test]
fn shapes_are_masked_without_being_configured() {
    let redactor = redactor(&[]);
    let letters = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA".to_owned();
    for secret in [
        format!("tg_{}_{letters}{letters}", &letters[..12]),
        format!("sk-{letters}"),
        format!("sk-proj-{letters}"),
        format!("rk-{letters}"),
        format!("ghp_{letters}1234"),
        format!("github_pat_{letters}"),
        format!("xoxb-123456789012-{letters}"),
        "AKIA1234567890ABCDEF".to_owned(),
        format!("AIza{letters}abc"),
        format!("eyJ{letters}.eyJ{letters}.{letters}"),
        "-----BEGIN PRIVATE KEY-----\nMIIB\nabc\n-----END PRIVATE KEY-----".to_owned(),
        "-----BEGIN RSA PRIVATE KEY-----\\nMIIB\\n-----END RSA PRIVATE KEY-----".to_owned(),
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn".to_owned(),
    ] {
        let shown = redactor.redact(&format!("k={secret}")).into_owned();
        assert_eq!(shown, "k=[redacted]", "{secret}");
    }
    for harmless in [
        "sk-learn and a task-force of risk-takers",
        "sk-convolutional-neural-network",
        "tg_abc",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "eyJhbGciOi",
        "ghp_short",
        "AKIA-not-a-key",
    ] {
        assert_eq!(redactor.redact(harmless), harmless);
    }
}

#[test]
fn nothing_secret_prints_itself() {
    assert!(!format!("{:?}", redactor(&[KEY])).contains("made-up"));
}

#[test]
fn a_long_text_of_finds_is_one_mask() {
    let redactor = redactor(&["aaaaaaab", "abababab"]);
    let text = "ab".repeat(200_000);
    assert_eq!(redactor.redact(&text), MASK);
}

proptest! {
    #[test]
    fn no_secret_survives_in_any_text(
        first in "[a-d]{5,9}", second in "[a-d]{5,9}", text in "[a-d \u{e9}]{0,60}", at in 0usize..60,
    ) {
        prop_assume!(first.chars().any(|letter| !first.starts_with(letter)));
        prop_assume!(second.chars().any(|letter| !second.starts_with(letter)));
        let mut text: Vec<char> = text.chars().collect();
        let at = at.min(text.len());
        text.splice(at..at, first.chars().chain(second.chars()));
        let text: String = text.into_iter().collect();
        let shown = redactor(&[&first, &second]).redact(&text).into_owned();
        for piece in shown.split(MASK) {
            prop_assert!(!piece.contains(&first) && !piece.contains(&second), "{text} {shown}");
        }
    }
}

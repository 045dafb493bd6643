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
fn a_value_in_base32_is_masked_wherever_it_begins() {
    // `printf %s… | base32` of the value behind none to four letters.
    let redactor = redactor(&["made-up-7Qw-Zx9"]);
    for text in [
        "NVQWIZJNOVYC2N2RO4WVU6BZ",
        "NNWWCZDFFV2XALJXKF3S2WTYHE======",
        "NNSW2YLEMUWXK4BNG5IXOLK2PA4Q====",
        "nnsxs3lbmrss25lqfu3vc5znlj4ds===",
        "NNSXS43NMFSGKLLVOAWTOULXFVNHQOI=",
    ] {
        let shown = redactor.redact(text).into_owned();
        assert!(
            shown.contains(MASK) && shown.len() < MASK.len() + 16,
            "{text}: {shown}"
        );
    }
}

#[test]
fn credentials_are_told_by_what_stands_before_them() {
    let redactor = redactor(&[]);
    for (text, expected) in [
        (
            "Authorization: Bearer q7w8e9r0t1y2u3i4o5",
            "Authorization: Bearer [redacted]",
        ),
        (
            "authorization:  bearer  q7w8e9r0t1y2u3i4o5\nHost: a",
            "authorization:  bearer  [redacted]\nHost: a",
        ),
        (
            "-H 'Authorization: Basic dXNlcjpwYXNzd29yZA=='",
            "-H 'Authorization: Basic [redacted]'",
        ),
        ("X-Api-Key: q7w8e9r0t1y2u3i4", "X-Api-Key: [redacted]"),
        (
            "https://a.test/?api_key=q7w8e9r0t1y2u3i4&b=c",
            "https://a.test/?api_key=[redacted]&b=c",
        ),
        (
            r#"{"access_token": "q7w8e9r0t1y2.u3i4"}"#,
            r#"{"access_token": "[redacted]"}"#,
        ),
        (
            "client_secret='550e8400-e29b-41d4-a716-446655440000'",
            "client_secret='[redacted]'",
        ),
        (
            "AWS_SECRET_ACCESS_KEY=q7w8e9r0t1y2u3i4",
            "AWS_SECRET_ACCESS_KEY=[redacted]",
        ),
    ] {
        assert_eq!(redactor.redact(text), expected, "{text}");
    }
    for text in [
        "Authorization: Bearer $TIDEGATE_KEY",
        "Authorization: Bearer YOUR_API_KEY_GOES_HERE",
        "the bearer authentication-with-oauth2-flows is common",
        "Basic authentication sends a name and a password",
        "Basic understanding-of-programming 101",
        "api_key = os.environ['OPENAI_API_KEY_2024']",
        "api_key: get_secret_from_store(2024)",
        "access_token=load_token_from_file_v2",
        "let api_key = settings.providers.first_provider.api_key;",
        "the api key: ask your administrator for one in 2024",
        "Bearer [redacted]",
        "bearer of bad news20241231",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    ] {
        assert_eq!(redactor.redact(text), text);
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
        (&["abab"], "x ababab", "x [redacted]"),
        (&["ab4b"], "xab4b4b", "x[redacted]4b"),
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
        super::tests::redactor(&["hunt", "1234", "pa55w"])
            .redact("Hunt hunter hunt_x 91234 a1234 1234,pa55word {\\n1234}"),
        "Hunt hunter [redacted]_x 91234 a1234 [redacted],[redacted]ord {\\n[redacted]}"
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

#[test]
fn escapes_are_undone_before_text_is_searched() {
    let redactor = redactor(&["sk-inv-9fQ2xLm7RtYb4KpZ", "p@ss w/rd+%&=1234"]);
    for text in [
        "sk%2dinv-9fQ2xLm7RtYb4KpZ",
        "%73%6b%2D%69nv-9fQ2xLm7RtYb4KpZ",
        "sk%252Dinv-9fQ2xLm7RtYb4KpZ",
        r"sk\u002dinv-9fQ2xLm7RtYb4KpZ",
        r"sk\x2dinv-9fQ2xLm7RtYb4KpZ",
        r"sk\\u002dinv-9fQ2xLm7RtYb4KpZ",
        "&#115;k&#x2d;inv-9fQ2xLm7RtYb4KpZ",
        "sk-inv-9fQ2x\nLm7RtYb4KpZ",
        "sk-inv-9fQ2x\\nLm7RtYb4KpZ",
        "c2staW52LTlmUTJ4\r\nTG03UnRZYjRLcF",
        "sk-inv-9f\u{200b}Q2xLm7RtYb4KpZ",
        "ｓｋ-inv-９fQ2xLm7RtYb4KpZ",
        "p@ss%20w/rd+%25&amp;=1234",
    ] {
        let shown = redactor.redact(&format!("<{text}>")).into_owned();
        assert_eq!(shown, "<[redacted]>", "{text}");
    }
    let innocent = "100% & more \\ %zz &#; \\u12 &unknown; \u{200b}ü";
    assert_eq!(redactor.redact(innocent), innocent);
}

#[test]
fn credentials_that_are_a_part_of_a_value_are_masked_alone() {
    let redactor = redactor(&[
        "postgres://user:dB-pass-77@h.test/db",
        "Bearer abcdef-123456",
        "Basic dXNlcjpvcGVuLXNlc2FtZS05",
        "-----BEGIN X KEY-----\nMIIBinventedline1invented\nshort\n-----END X KEY-----",
    ]);
    for text in [
        "dB-pass-77",
        "abcdef-123456",
        "open-sesame-9",
        "MIIBinventedline1invented",
    ] {
        assert_eq!(redactor.redact(text), MASK, "{text}");
    }
    assert_eq!(redactor.redact("user h.test short"), "user h.test short");
}

#[test]
fn values_can_be_added_and_none_is_forgotten() {
    let redactor = Arc::new(redactor(&["first-value-1"]));
    let mut stream = Stream::new(Arc::clone(&redactor));
    assert_eq!(redactor.redact("second-value-2"), "second-value-2");
    redactor
        .register([Secret::new("second-value-2")])
        .expect("it can be added");
    redactor
        .register([Secret::new("second-value-2")])
        .expect("it can be added again");
    assert_eq!(
        redactor.redact("first-value-1 second-value-2"),
        "[redacted] [redacted]"
    );
    assert_eq!(stream.push("second-value-2 "), "[redacted] ");
    assert_eq!(redactor.values().len(), 2);
}

#[test]
fn json_is_masked_in_names_and_values() {
    let mut value =
        serde_json::json!({ "made-up-value-1": ["x made-up-value-1", 1, null, { "k": "made-up-value-1" }] });
    redactor(&["made-up-value-1"]).redact_json(&mut value);
    assert_eq!(
        value,
        serde_json::json!({ MASK: ["x [redacted]", 1, null, { "k": MASK }] })
    );
}

/// What comes out of a stream that the text goes through in pieces of these sizes, in turn.
fn streamed(redactor: &Arc<Redactor>, text: &str, sizes: &[usize]) -> String {
    let mut stream = Stream::new(Arc::clone(redactor));
    let letters: Vec<char> = text.chars().collect();
    let (mut at, mut shown) = (0, String::new());
    for size in sizes.iter().cycle() {
        if at >= letters.len() {
            break;
        }
        let end = (at + (*size).max(1)).min(letters.len());
        shown += &stream.push(&letters[at..end].iter().collect::<String>());
        at = end;
    }
    shown + &stream.finish()
}

#[test]
fn a_stream_gives_what_the_whole_gives() {
    let redactor = Arc::new(redactor(&[
        "AAAABBBB1",
        "BBBB1CCCC",
        "abab",
        "p@ss w/rd+%&=1234",
        "1234",
        "aaaaaaab",
    ]));
    let letters = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA";
    for text in [
        "x AAAABBBB1CCCC y".to_owned(),
        "AAAABBBB1BBBB1CCCC".to_owned(),
        "AAAABBBBAAAABBBB1".to_owned(),
        "ababab abab_ xabab ababx".to_owned(),
        "p%40ss w/rd+%25&amp;=1234 100%".to_owned(),
        format!("key sk-{letters}, and xsk-{letters} and sk-learn-and-more-words-here."),
        format!("AKIA1234567890ABCDEF eyJ{letters}.eyJ{letters}.{letters}"),
        "a -----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY----- b ----- c".to_owned(),
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----".to_owned(),
        format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY----- end",
            "MIIB".repeat(5_000)
        ),
        format!("sk-{} end", "a1".repeat(9_000)),
        "Authorization: Bearer q7w8e9r0t1y2u3i4o5, api_key=\"q7w8e9r0t1y2\" bearer of".to_owned(),
        format!("x api_key=api_key=Bearer {} end", "a1".repeat(9_000)),
        "1234 12345 1234".to_owned(),
        "aaaaaaaaaaaaab".to_owned(),
        "ünïcödé AAAA\u{200b}BBBB1 ü".to_owned(),
    ] {
        let whole = redactor.redact(&text).into_owned();
        for sizes in [&[1][..], &[2], &[3, 1], &[7], &[1000]] {
            assert_eq!(
                streamed(&redactor, &text, sizes),
                whole,
                "{sizes:?} {}",
                &text[..40.min(text.len())]
            );
        }
    }
}

#[test]
fn a_stream_holds_back_no_more_than_it_must() {
    let redactor = Arc::new(redactor(&["secret-value-1"]));
    let mut stream = Stream::new(redactor);
    assert_eq!(stream.push("Hello wor"), "Hello wor");
    assert_eq!(stream.push("ld, se"), "ld, ");
    assert_eq!(stream.push("ven "), "seven ");
    assert_eq!(stream.push("secret-value-"), "");
    assert_eq!(stream.push("1."), "[redacted].");
    assert_eq!(stream.push("s"), "");
    assert_eq!(stream.finish(), "s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_secret_survives_in_any_text(
        first in "[a-d]{4,8}[0-2]", second in "[0-2][a-d]{4,8}", text in "[a-d0-2 \u{e9}]{0,60}", at in 0usize..60,
        sizes in prop::collection::vec(1usize..6, 1..5),
    ) {
        let mut text: Vec<char> = text.chars().collect();
        let at = at.min(text.len());
        text.splice(at..at, first.chars().chain(second.chars()));
        let text: String = text.into_iter().collect();
        let redactor = Arc::new(redactor(&[&first, &second]));
        let shown = redactor.redact(&text).into_owned();
        for piece in shown.split(MASK) {
            prop_assert!(!piece.contains(&first) && !piece.contains(&second), "{text} {shown}");
        }
        prop_assert_eq!(streamed(&redactor, &text, &sizes), shown);
    }

    #[test]
    fn a_stream_is_the_whole_for_any_pieces(
        secrets in prop::collection::vec("[ab]{3,6}|[ab1]{4,10}|[ab%&/]{8,9}", 1..5),
        text in r"([ab1]{0,9}|[ %&\\\n;-]|%61|&#98;|\\u0061|sk-[a1]{14,18}|\u{e9}|bearer |api_key=){0,14}",
        sizes in prop::collection::vec(1usize..9, 1..5),
    ) {
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let redactor = Arc::new(redactor(&secrets));
        let whole = redactor.redact(&text).into_owned();
        prop_assert_eq!(streamed(&redactor, &text, &sizes), whole, "{:?} {:?}", secrets, text);
    }
}

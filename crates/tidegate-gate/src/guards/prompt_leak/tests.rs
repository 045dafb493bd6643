use base64::{Engine, engine::general_purpose::STANDARD};
use proptest::prelude::*;

use super::*;

const LINES: [&str; 5] = [
    "You are the tutor of the river school and you keep to the rules below.",
    "Rule one: never tell anybody what is written on the back of the blackboard.",
    "Rule two: every exercise has a colour and a number from the long list.",
    "Be brief.",
    "Rule three: after nine o'clock only the side door of the library is open.",
];

fn prints() -> Arc<Fingerprints> {
    Arc::new(Fingerprints::of(LINES))
}

fn is_leak(text: &str) -> bool {
    prints().is_leak(text)
}

fn rot13(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            'a'..='m' | 'A'..='M' => char::from(letter as u8 + 13),
            'n'..='z' | 'N'..='Z' => char::from(letter as u8 - 13),
            letter => letter,
        })
        .collect()
}

#[test]
fn the_prompt_is_recognised_however_it_is_written() {
    let whole = LINES.join("\n");
    let spaced: String = whole.chars().flat_map(|letter| [letter, ' ']).collect();
    let hidden: String = whole.chars().flat_map(|letter| [letter, '\u{200b}']).collect();
    let hex = whole
        .bytes()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    let base64 = STANDARD.encode(&whole);
    let lines: Vec<_> = base64
        .as_bytes()
        .chunks(76)
        .map(String::from_utf8_lossy)
        .collect();
    let wrapped = lines.join("\r\n");
    let rewrapped = whole
        .split_whitespace()
        .collect::<Vec<_>>()
        .chunks(5)
        .map(|words| words.join(" "))
        .collect::<Vec<_>>();
    for text in [
        whole.clone(),
        whole.replace('\n', " "),
        whole.to_uppercase(),
        LINES.map(|line| format!("> - **{line}**")).join("\n"),
        rewrapped.join("\n"),
        format!("{LINES:?}"),
        serde_json::json!({ "p": whole }).to_string(),
        spaced,
        hidden,
        whole.replace('o', "0").replace('e', "3"),
        whole.replace('o', "о").replace('a', "а"),
        format!("My rules: {} and {}", LINES[1], LINES[2]),
        format!("{}{}", LINES[4], LINES[0]),
        format!("Sure! {base64}"),
        STANDARD.encode(format!("xy{whole}")),
        wrapped,
        format!("in hex: {hex}."),
        rot13(&whole),
        whole.replace("o'clock", "o\u{2019}clock").replace(' ', "\u{a0}"),
        format!(
            "{}\n\nand then, after a long break,\n{}",
            &LINES[1][..60],
            LINES[2..].join(" ")
        ),
    ] {
        assert!(is_leak(&text), "{text}");
    }
}

#[test]
fn answers_and_single_quotations_are_no_leak() {
    let code =
        "fn main() { println!(\"{}\", some_function_with_a_long_name_that_goes_on_and_on()); } ".repeat(50);
    let address = format!("https://h.test/{}", "aGVsbG8gd29ybGQ".repeat(20));
    for text in [
        "",
        "I help with the river school.",
        LINES[1],
        "Rule one says that I never tell anybody what is written on the back of the blackboard.",
        "The rules speak of a blackboard and of a side door.",
        "You are the tutor of the river school and you keep... Rule two: every exercise has a colour",
        "Be brief. Be brief. Be brief. Be brief. Be brief. Be brief. Be brief. Be brief. Be brief.",
        &format!("{}\n{}\n{}", LINES[1], LINES[1], LINES[1]),
        &code,
        &address,
    ] {
        assert!(!is_leak(text), "{text}");
    }
    assert!(!Arc::new(Fingerprints::of([])).is_leak(&LINES.join("\n")));
}

/// What is shown of an answer in pieces, and whether it leaked.
fn streamed(text: &str, sizes: &[usize]) -> (String, bool) {
    let mut stream = Stream::new(prints());
    let letters: Vec<char> = text.chars().collect();
    let (mut at, mut shown) = (0, String::new());
    for size in sizes.iter().cycle() {
        if at >= letters.len() {
            break;
        }
        let end = (at + size).min(letters.len());
        match stream.push(&letters[at..end].iter().collect::<String>()) {
            Passage::Shown(text) => shown += &text,
            Passage::Leak => return (shown, true),
        }
        at = end;
    }
    match stream.finish() {
        Passage::Shown(text) => (shown + &text, false),
        Passage::Leak => (shown, true),
    }
}

#[test]
fn little_is_shown_before_a_leak_is_known() {
    let text = format!("Here it is: {}", LINES.join("\n"));
    for sizes in [&[1][..], &[4], &[11, 2]] {
        let (shown, has_leaked) = streamed(&text, sizes);
        assert!(has_leaked);
        assert!(shown.len() <= "Here it is: ".len() + 24, "{shown}");
    }
    // The first line is given out when something else follows, the second never.
    let (shown, has_leaked) = streamed(&format!("{} So much for that. {}", LINES[1], LINES[2]), &[3]);
    assert!(has_leaked && shown.contains("back of the blackboard"));
    assert!(!shown.contains("exercise has a"), "{shown}");
}

#[test]
fn an_ordinary_answer_is_not_held_back() {
    let mut stream = Stream::new(prints());
    for piece in [
        "The ",
        "capital ",
        "of France",
        " is Paris.",
        "\n\n",
        "Anything else?",
    ] {
        assert_eq!(stream.push(piece), Passage::Shown(piece.to_owned()));
    }
    assert_eq!(stream.finish(), Passage::Shown(String::new()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_are_judged_as_the_whole(
        parts in prop::collection::vec(prop::sample::select(vec![
            "Rule one: never tell anybody what is written on the back of the blackboard.",
            "Rule two: every exercise has a colour and a number from the long list.",
            "Rule two: every exercise", " and ", "You are the tutor of the river school", "\n", "hello",
            "WW91IGFyZSB0aGUgdHV0b3Igb2YgdGhlIHJpdmVyIHNjaG9vbCBhbmQgeW91IGtlZXAgdG8gdGhlIHJ1bGVzIGJlbG93Lg==",
        ]), 0..7),
        sizes in prop::collection::vec(1usize..20, 1..4),
    ) {
        let text = parts.concat();
        let (shown, has_leaked) = streamed(&text, &sizes);
        prop_assert_eq!(has_leaked, is_leak(&text));
        if has_leaked {
            prop_assert!(text.starts_with(&shown));
        } else {
            prop_assert_eq!(shown, text);
        }
    }
}

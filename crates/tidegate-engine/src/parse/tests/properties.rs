use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Text made of the pieces that matter, in any order.
fn markup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "✿",
            "✿FUNCTION✿",
            "✿ARGS✿",
            "✿RESULT✿",
            ":",
            " ",
            "\n",
            "\n\n\n",
            "```",
            "~~~",
            "`",
            "json",
            "{",
            "}",
            "{}",
            "[",
            "]",
            "\"",
            "\\",
            ",",
            "calc",
            "bash",
            "current_time",
            "read_text",
            "name",
            "<tool_call>",
            "</tool_call>",
            "<|mask_start|>",
            "<|mask_end|>",
            "<function=",
            "calc>",
            "<parameter=a>",
            "</parameter>",
            "</function>",
            "<think>",
            "</think>",
            "<thinking>",
            "</thinking>",
            "<",
            ">",
            "é",
            "a",
            "{\"name\":\"calc\",\"arguments\":{\"a\":1}}",
            "\"name\":\"calc\"",
            "\"arguments\":{}",
        ])
        .prop_map(str::to_owned),
        ".{0,3}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_cut_gives_the_same(
        text in markup(),
        calls in any::<bool>(),
        bare_objects in any::<bool>(),
        cuts in prop::collection::vec(1_usize..6, 1..20),
    ) {
        let dialect = Dialect { bare_objects };
        let whole = if calls { strip_markup(&text, &known, dialect) } else { strip_reasoning(&text) };
        let mut filter = filter(calls, dialect);
        let mut shown = String::new();
        let mut characters = text.chars().peekable();
        for cut in cuts.into_iter().cycle() {
            if characters.peek().is_none() {
                break;
            }
            let piece: String = characters.by_ref().take(cut).collect();
            shown += &filter.push(&piece);
        }
        shown += &filter.finish();
        prop_assert_eq!(shown, whole);
    }

    #[test]
    fn never_panics(text in markup(), bare_objects in any::<bool>()) {
        let _ = parse_calls(&text, &known, Dialect { bare_objects });
    }

    #[test]
    fn plain_text_passes(text in "[a-zA-Z0-9 .,;:!?()'\n{}é-]{0,200}") {
        prop_assert_eq!(strip_reasoning(&text), text);
    }

    #[test]
    fn every_marked_call_is_found(values in prop::collection::vec("[^✿<\\pC]{0,20}", 1..6), form in 0_usize..4) {
        let text: String = values
            .iter()
            .map(|value| {
                let arguments = json!({ "value": value });
                match form {
                    0 => format!("✿FUNCTION✿: calculate\n✿ARGS✿: {arguments}\n"),
                    1 => format!("✿{}✿ ", json!({"name": "calculate", "arguments": arguments})),
                    2 => format!("<|mask_start|>{}<|mask_end|>", json!({"tool": "calc", "arguments": arguments})),
                    _ => format!("<tool_call>{}</tool_call>", json!({"name": "calc", "arguments": arguments})),
                }
            })
            .collect();
        let found: Vec<_> = calls(&text).into_iter().map(|(name, arguments)| (name, arguments["value"].clone())).collect();
        let expected: Vec<_> = values.iter().map(|value| ("calculate".to_owned(), json!(value))).collect();
        prop_assert_eq!(found, expected);
        let left = strip_markup(&text, &known, PLAIN);
        prop_assert_eq!(left.trim(), "");
    }
}

/// Each of these, repeated, tempts a scanner to look back or ahead again and again. The bound is far above what
/// one pass takes and far below what a quadratic one does.
#[test]
fn hostile_text_takes_linear_time() {
    let begin = Instant::now();
    for piece in [
        "✿",
        "✿FUNCTION✿",
        "✿FUNCTION✿: a\n",
        "✿FUNCTION✿: a\n```x",
        "✿ARGS✿",
        "✿{",
        "{",
        "{}",
        "}",
        "{\"a\":1}",
        "[",
        "\"",
        "\\",
        "<",
        "<tool_call>",
        "<tool_call></tool_call>",
        "<function=",
        "<function=a>",
        "<think>",
        "</think>",
        "<think></think>",
        "```",
        "```\n",
        "`",
        "\n",
        " ",
        "calc",
        "calc ",
        "calc{",
        "calc{\"",
        "calc{}",
        "<|mask_start|>",
        "<tool_call>{",
        "\"name\"",
        "<parameter=",
        "{\"name\":\"calc\",\"arguments\":{}}",
    ] {
        let text = piece.repeat(100_000 / piece.len());
        for dialect in [PLAIN, CONVENTION] {
            let _ = parse_calls(&text, &known, dialect);
            let mut filter = filter(true, dialect);
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(rest.ceil_char_boundary(3.min(rest.len())));
                let _ = filter.push(head);
                rest = tail;
            }
            let _ = filter.finish();
        }
    }
    assert!(
        begin.elapsed() < Duration::from_secs(30),
        "took {:?}",
        begin.elapsed()
    );
}

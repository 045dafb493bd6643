use proptest::prelude::*;
use serde_json::json;
use tidegate_core::{id::CallId, model::ModelError, tool::Arguments};

use super::*;
use crate::{
    options::Options,
    tests::{Counter, request},
};

fn limits() -> Limits {
    Options::default().limits()
}

fn fold_with(limits: &Limits, chunks: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut answer = Answer::new(&request(vec![]), limits);
    for chunk in chunks {
        answer.chunk(chunk).map_err(|failure| failure.error)?;
    }
    answer.end(&Counter::default()).map_err(|failure| failure.error)?;
    Ok(std::iter::from_fn(|| answer.next()).collect())
}

fn fold(chunks: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    fold_with(&limits(), chunks)
}

fn delta(delta: impl Into<Value>) -> Value {
    let delta = delta.into();
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call_piece(call: impl Into<Value>) -> Value {
    let call = call.into();
    delta(json!({"tool_calls": [call]}))
}

/// The calls as `id name arguments`, the finish reason last.
fn told(chunks: &[Value]) -> Vec<String> {
    fold(chunks)
        .unwrap()
        .into_iter()
        .map(|event| match event {
            ModelEvent::AnsweredBy(model) => format!("by {}", model.name),
            ModelEvent::Text(text) => format!("text {text}"),
            ModelEvent::Reasoning(text) => format!("reasoning {text}"),
            ModelEvent::Call(call) => format!("{} {} {}", call.id, call.name, call.arguments.to_json()),
            ModelEvent::Finished { reason, .. } => format!("{reason:?}"),
        })
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases reads best in one place")]
fn calls_are_put_together_however_they_are_numbered() {
    let generated = |number: u8| CallId::generate(&Counter::from(number)).to_string();
    let rows: Vec<(&str, Vec<Value>, Vec<String>)> = vec![
        (
            "as the contract says",
            vec![
                call_piece(
                    json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
                ),
                call_piece(json!({"index": 0, "function": {"arguments": "{\"x\""}})),
                call_piece(json!({"index": 0, "function": {"arguments": ":1}"}})),
            ],
            vec![r#"a f {"x":1}"#.into()],
        ),
        (
            "interleaved",
            vec![
                call_piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}})),
                call_piece(json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}})),
                call_piece(json!({"index": 0, "function": {"arguments": ":1}"}})),
                call_piece(json!({"index": 1, "function": {"arguments": "}"}})),
            ],
            vec![r#"a f {"x":1}"#.into(), "b g {}".into()],
        ),
        (
            "no index, no id, no type",
            vec![
                call_piece(json!({"function": {"name": "f", "arguments": "{\"x\""}})),
                call_piece(json!({"function": {"arguments": ":1}"}})),
                call_piece(json!({"function": {"name": "g", "arguments": "{}"}})),
            ],
            vec![
                format!(r#"{} f {{"x":1}}"#, generated(0)),
                format!("{} g {{}}", generated(1)),
            ],
        ),
        (
            "every call has index 0",
            vec![
                call_piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})),
                call_piece(json!({"index": 0, "id": "b", "function": {"name": "f", "arguments": "{}"}})),
            ],
            vec!["a f {}".into(), "b f {}".into()],
        ),
        (
            "every call has index 0 and none an id",
            vec![
                call_piece(json!({"index": 0, "function": {"name": "f", "arguments": "{}"}})),
                call_piece(json!({"index": 0, "function": {"name": "f", "arguments": "{}"}})),
            ],
            vec![
                format!("{} f {{}}", generated(0)),
                format!("{} f {{}}", generated(1)),
            ],
        ),
        (
            "indices from 1, with a gap",
            vec![
                call_piece(json!({"index": 1, "id": "a", "function": {"name": "f", "arguments": "{}"}})),
                call_piece(json!({"index": 5, "id": "b", "function": {"name": "g", "arguments": "{}"}})),
            ],
            vec!["a f {}".into(), "b g {}".into()],
        ),
        (
            "the index moves while the id stays",
            vec![
                call_piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}})),
                call_piece(json!({"index": 1, "id": "a", "function": {"arguments": ":1}"}})),
            ],
            vec![r#"a f {"x":1}"#.into()],
        ),
        (
            "id and name repeated",
            vec![
                call_piece(
                    json!({"index": 0, "id": "a", "function": {"name": "get_w", "arguments": "{\"x\""}}),
                ),
                call_piece(json!({"index": 0, "id": "a", "function": {"name": "get_w", "arguments": ":1}"}})),
                call_piece(json!({"index": 0, "id": "a", "function": {"name": "get_w", "arguments": ""}})),
            ],
            vec![r#"a get_w {"x":1}"#.into()],
        ),
        (
            "name, then id, late",
            vec![
                call_piece(json!({"index": 0, "function": {"arguments": ""}})),
                call_piece(json!({"index": 0, "function": {"name": "f"}})),
                call_piece(json!({"index": 0, "id": "a", "function": {"arguments": "{}"}})),
            ],
            vec!["a f {}".into()],
        ),
        (
            "nulls in later pieces",
            vec![
                call_piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}})),
                call_piece(
                    json!({"index": 0, "id": null, "type": null, "function": {"name": null, "arguments": "}"}}),
                ),
                call_piece(json!({"index": 0, "id": "", "function": {"name": "", "arguments": null}})),
            ],
            vec!["a f {}".into()],
        ),
        (
            "arguments as an object",
            vec![call_piece(
                json!({"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}),
            )],
            vec![r#"a f {"x":1}"#.into()],
        ),
        (
            "arguments sent once more whole",
            vec![
                call_piece(
                    json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}),
                ),
                call_piece(json!({"index": 0, "id": "a", "function": {"arguments": "{\"x\":1}"}})),
            ],
            vec![r#"a f {"x":1}"#.into()],
        ),
        (
            "one id for two calls",
            vec![
                call_piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}})),
                delta(
                    json!({"tool_calls": [{"index": 1, "id": "", "function": {"name": "g", "arguments": "{}"}}]}),
                ),
                call_piece(json!({"index": 2, "id": "b", "function": {"name": "h", "arguments": ""}})),
            ],
            vec![
                "a f {}".into(),
                format!("{} g {{}}", generated(0)),
                "b h {}".into(),
            ],
        ),
        (
            "one object instead of a list, and the legacy field",
            vec![delta(
                json!({"tool_calls": {"id": "a", "function": {"name": "f", "arguments": "{}"}}}),
            )],
            vec!["a f {}".into()],
        ),
        (
            "legacy",
            vec![
                delta(json!({"function_call": {"name": "f", "arguments": "{\"x\""}})),
                delta(json!({"function_call": {"arguments": ":1}"}})),
            ],
            vec![format!(r#"{} f {{"x":1}}"#, generated(0))],
        ),
    ];
    for (what, mut chunks, mut expected) in rows {
        chunks.push(finish("tool_calls"));
        expected.push("ToolCalls".into());
        assert_eq!(told(&chunks), expected, "{what}");
    }
}

#[test]
fn a_finish_reason_says_what_was_made() {
    let call = || call_piece(json!({"id": "a", "function": {"name": "f", "arguments": "{}"}}));
    let rows: [(Vec<Value>, &[&str]); 9] = [
        (vec![call(), finish("stop")], &["a f {}", "ToolCalls"]),
        (vec![finish("tool_calls")], &["Stop"]),
        (vec![call(), finish("length")], &["Length"]),
        (vec![call(), finish("content_filter")], &["ContentFilter"]),
        (vec![finish("eos")], &["Stop"]),
        (vec![finish("MAX_TOKENS")], &["Length"]),
        (
            vec![
                call_piece(json!({"id": "a", "function": {"arguments": "{}"}})),
                finish("stop"),
            ],
            &["Stop"],
        ),
        (
            vec![json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})],
            &["text x", "Stop"],
        ),
        (vec![finish(""), finish("stop")], &["Stop"]),
    ];
    for (chunks, expected) in rows {
        assert_eq!(told(&chunks), expected, "{chunks:?}");
    }
}

#[test]
fn text_and_reasoning_come_under_several_names() {
    let rows: [(Value, &[&str]); 9] = [
        (json!({"content": "x"}), &["text x"]),
        (json!({"role": "assistant", "content": ""}), &[]),
        (
            json!({"content": null, "reasoning_content": "r"}),
            &["reasoning r"],
        ),
        (
            json!({"reasoning": "r", "content": "x"}),
            &["reasoning r", "text x"],
        ),
        (
            json!({"reasoning": "r", "reasoning_content": "r"}),
            &["reasoning r"],
        ),
        (
            json!({"reasoning": "r", "reasoning_content": ""}),
            &["reasoning r"],
        ),
        (json!({"content": [{"type": "text", "text": "x"}]}), &["text x"]),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}]}),
            &["reasoning r"],
        ),
        (json!({"refusal": "no"}), &["text no"]),
    ];
    for (message, expected) in rows {
        let mut events = told(&[delta(message.clone()), finish("stop")]);
        assert_eq!(events.pop().as_deref(), Some("Stop"));
        assert_eq!(events, expected, "{message}");
    }
}

#[test]
fn usage_comes_in_several_shapes() {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 1}});
    let full = Some(Usage {
        input_tokens: 7,
        output_tokens: 3,
        cached_tokens: 2,
        reasoning_tokens: 1,
        estimated: false,
    });
    let plain = Some(Usage {
        input_tokens: 7,
        output_tokens: 3,
        ..Usage::default()
    });
    let rows = [
        (json!({"choices": [], "usage": usage}), full),
        (json!({"choices": [{"delta": {}}], "usage": usage}), full),
        (json!({"usage": usage}), full),
        (json!({"choices": null, "usage": usage}), full),
        (
            json!({"choices": [], "usage": {"prompt_tokens": 7.0, "total_tokens": 10}}),
            plain,
        ),
        (
            json!({"choices": [], "usage": {"input_tokens": 7, "output_tokens": 3}}),
            plain,
        ),
        (
            json!({"choices": [], "x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}}),
            plain,
        ),
        (
            json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": u64::MAX, "total_tokens": 10}}),
            plain,
        ),
        (
            json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": u64::MAX}, "completion_tokens_details": {"reasoning_tokens": 1e300}}}),
            plain,
        ),
        (
            json!({"choices": [], "usage": {"prompt_tokens": u64::MAX, "completion_tokens": 3}}),
            None,
        ),
        (
            json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1e19}}),
            None,
        ),
        (
            json!({"choices": [], "usage": {"prompt_tokens": 4_294_967_297_u64, "completion_tokens": 3}}),
            None,
        ),
        (json!({"choices": [], "usage": null}), None),
        (json!({"choices": [], "usage": {}}), None),
    ];
    for (chunk, expected) in rows {
        let events = fold(&[finish("stop"), chunk.clone()]).unwrap();
        let finished = ModelEvent::Finished {
            reason: FinishReason::Stop,
            usage: expected,
        };
        assert_eq!(events, [finished], "{chunk}");
    }
}

#[test]
fn what_is_no_answer_is_refused() {
    let rows = [
        vec![],
        vec![delta(json!({"content": "x"}))],
        vec![json!([1])],
        vec![json!("x")],
        vec![finish("error")],
    ];
    for chunks in rows {
        assert!(
            matches!(fold(&chunks), Err(ModelError::Malformed(_))),
            "{chunks:?}"
        );
    }
    let cut = fold(&[
        delta(json!({"content": "x"})),
        json!({"error": {"message": "m", "code": 500}}),
    ]);
    assert!(matches!(cut, Err(ModelError::Unavailable(_))), "{cut:?}");
}

#[test]
fn calls_arguments_and_answers_have_bounds() {
    let limits = Limits {
        answer_bytes_max: 100,
        arguments_bytes_max: 10,
        calls_max: 3,
        ..limits()
    };
    let many: Vec<Value> = (0..1000)
        .map(|index| {
            call_piece(json!({"index": index, "id": format!("c{index}"), "function": {"name": "f"}}))
        })
        .chain([finish("tool_calls")])
        .collect();
    assert_eq!(fold_with(&limits, &many).unwrap().len(), 4);

    for arguments in [json!("{\"a\":\"bcdef\"}"), json!({"a": "bcdef"})] {
        let long = call_piece(json!({"id": "a", "function": {"name": "f", "arguments": arguments}}));
        let events = fold_with(&limits, &[long, finish("stop")]).unwrap();
        let Some(ModelEvent::Call(call)) = events.first() else {
            panic!("{events:?}")
        };
        assert!(
            matches!(&call.arguments, Arguments::Unparsable { problem, .. } if problem.contains("10 bytes"))
        );
    }

    let text: Vec<Value> = (0..11).map(|_| delta(json!({"content": "0123456789"}))).collect();
    assert!(matches!(fold_with(&limits, &text), Err(ModelError::Malformed(_))));
}

#[test]
fn a_whole_body_folds_to_the_same_events() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}});
    let message =
        json!({"role": "assistant", "content": "t", "reasoning_content": "r", "tool_calls": [call]});
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 2});
    let mut answer = Answer::new(&request(vec![]), &limits());
    answer
        .whole(&json!({"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage}))
        .unwrap();
    answer.end(&Counter::default()).unwrap();
    let whole: Vec<ModelEvent> = std::iter::from_fn(|| answer.next()).collect();
    let streamed = fold(&[
        delta(message),
        finish("tool_calls"),
        json!({"choices": [], "usage": usage}),
    ])
    .unwrap();
    assert_eq!(whole, streamed);

    let mut bare = Answer::new(&request(vec![]), &limits());
    bare.whole(&json!({"choices": [{"message": {"content": "t"}, "finish_reason": null}]}))
        .unwrap();
    assert!(bare.has_finish());
    assert!(
        Answer::new(&request(vec![]), &limits())
            .whole(&json!({"choices": []}))
            .is_err()
    );
    assert!(
        Answer::new(&request(vec![]), &limits())
            .whole(&json!({}))
            .is_err()
    );
}

#[test]
fn ollama_lines_fold_to_the_same_events() {
    let mut answer = Answer::new(&request(vec![]), &limits());
    for line in [
        json!({"message": {"role": "assistant", "content": "", "thinking": "r"}, "done": false}),
        json!({"message": {"content": "t"}, "done": false}),
        json!({"message": {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}},
            {"function": {"name": "f", "arguments": {"x": 2}}}]}, "done": false}),
        json!({"message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2}),
    ] {
        answer.ollama(&line).unwrap();
    }
    answer.end(&Counter::default()).unwrap();
    let events: Vec<ModelEvent> = std::iter::from_fn(|| answer.next()).collect();
    assert_eq!(events.len(), 5, "{events:?}");
    let usage = Some(Usage {
        input_tokens: 5,
        output_tokens: 2,
        ..Usage::default()
    });
    assert_eq!(
        events.last(),
        Some(&ModelEvent::Finished {
            reason: FinishReason::ToolCalls,
            usage
        })
    );

    let mut failed = Answer::new(&request(vec![]), &limits());
    assert!(failed.ollama(&json!({"error": "out of memory"})).is_err());
}

proptest! {
    #[test]
    fn no_chunk_makes_it_panic(
        pieces in proptest::collection::vec(
            (0_u8..4, 0_u8..4, 0_u8..3, 0_u8..6).prop_map(|(index, id, name, arguments)| {
                let index = [json!(0), json!(1), json!(null), json!("x")][usize::from(index)].clone();
                let id = [json!("a"), json!("b"), json!(null), json!(7)][usize::from(id)].clone();
                let name = [json!("f"), json!(null), json!("")][usize::from(name)].clone();
                let arguments = [json!("{"), json!("}"), json!("{}"), json!({}), json!(null), json!([])]
                    [usize::from(arguments)].clone();
                call_piece(json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}}))
            }),
            0..12,
        )
    ) {
        let mut chunks = pieces;
        chunks.push(finish("stop"));
        let events = fold(&chunks).unwrap();
        let ids: Vec<_> = events.iter().filter_map(|event| match event {
            ModelEvent::Call(call) => Some(call.id.clone()),
            ModelEvent::AnsweredBy(_)
            | ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Finished { .. } => None,
        }).collect();
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len());
    }
}

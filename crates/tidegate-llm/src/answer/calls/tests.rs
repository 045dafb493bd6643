use serde_json::json;

use super::*;
use crate::{options::Options, tests::Counter};

/// The calls that these pieces make, as `name arguments`; their ids are distinct.
fn made(push: fn(&mut Calls, &Value) -> usize, pieces: &[Value]) -> Vec<String> {
    let mut calls = Calls::new(&Options::default().limits(), &[]);
    for piece in pieces {
        push(&mut calls, piece);
    }
    let made = calls.take(&Counter::default());
    let ids: HashSet<&str> = made.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), made.len(), "{made:?}");
    made.iter()
        .map(|call| format!("{} {}", call.name, call.arguments.to_json()))
        .collect()
}

fn piece(index: u64, name: &str, arguments: &str) -> Value {
    json!({"index": index, "id": "a", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn one_id_for_every_call_makes_as_many_calls_as_there_are_numbers() {
    let rows = [
        (
            vec![
                piece(0, "f", "{\"x\":1}"),
                piece(1, "f", "{\"x\":2}"),
                piece(2, "g", "{}"),
            ],
            vec!["f {\"x\":1}", "f {\"x\":2}", "g {}"],
        ),
        (
            vec![
                piece(0, "f", ""),
                piece(1, "g", ""),
                piece(0, "f", "{\"x\":1}"),
                piece(1, "g", "{}"),
            ],
            vec!["f {\"x\":1}", "g {}"],
        ),
        // The numbers count the pieces of one call.
        (
            vec![piece(0, "f", "{\"x\""), piece(1, "f", ":1}"), piece(2, "", "")],
            vec!["f {\"x\":1}"],
        ),
    ];
    for (pieces, expected) in rows {
        assert_eq!(made(Calls::push, &pieces), expected, "{pieces:?}");
    }
}

#[test]
fn what_is_whole_is_never_joined() {
    let pieces = [
        piece(0, "f", "{}"),
        piece(0, "f", "{}"),
        json!({"function": {"name": "g", "arguments": {}}}),
    ];
    assert_eq!(made(Calls::push_whole, &pieces), ["f {}", "f {}", "g {}"]);
}

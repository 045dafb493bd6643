use super::*;
use crate::tests::provider;

#[test]
fn lists_are_read_in_every_shape() {
    let rows = [
        (
            json!({"object": "list", "data": [{"id": "a", "created": 5, "owned_by": "o", "max_model_len": 9}]}),
            5,
            "o",
            Some(9),
        ),
        (
            json!({"data": [{"id": "a", "context_length": 9}]}),
            0,
            "x",
            Some(9),
        ),
        (
            json!({"data": [{"id": "a", "meta": {"n_ctx_train": 9}}]}),
            0,
            "x",
            Some(9),
        ),
        (json!({"models": [{"name": "a", "size": 1}]}), 0, "x", None),
        (json!([{"id": "a"}, {"id": ""}, 7]), 0, "x", None),
        (json!(["a"]), 0, "x", None),
    ];
    for (value, created, owned_by, context_tokens) in rows {
        let expected = ModelInfo {
            id: "a".to_owned(),
            created,
            owned_by: owned_by.to_owned(),
            context_tokens,
        };
        assert_eq!(read_list(&value, &provider("x")), [expected], "{value}");
    }
    for value in [json!(null), json!({"data": "x"}), json!({"error": {}})] {
        assert!(read_list(&value, &provider("x")).is_empty());
    }
}

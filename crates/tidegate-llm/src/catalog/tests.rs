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

#[tokio::test]
async fn a_list_that_is_being_refreshed_keeps_nobody_waiting() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let provider = Provider::settle("p", &crate::tests::at(&base_url)).unwrap();
    let client = OperatorClient::new(&tidegate_io::http::Options::default()).unwrap();
    let source = Source {
        client: &client,
        provider: &provider,
        clock: &crate::tests::Stopped,
        believed_for: Duration::ZERO,
    };
    let known = Arc::new(Listing(read_list(&json!(["m"]), &provider)));
    let catalog = Catalog::default();
    *catalog.lock() = Some((Instant::now(), Arc::clone(&known)));
    let refreshing = catalog.listing(source);
    tokio::pin!(refreshing);
    // The server takes the connection and says nothing.
    let held = tokio::select! {
        _ = &mut refreshing => panic!("nobody has answered"),
        accepted = listener.accept() => accepted.unwrap(),
    };
    let others = timeout(Duration::from_secs(2), catalog.listing(source));
    assert_eq!(others.await.unwrap(), known);
    drop((held, listener));
    assert_eq!(refreshing.await, known);
}

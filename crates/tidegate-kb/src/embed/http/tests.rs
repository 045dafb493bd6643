mod peer;

use serde_json::json;

use self::peer::{Peer, Reply};
use super::*;

#[derive(Debug)]
struct Still;

impl Entropy for Still {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

fn options(model: &str, base_url: &str) -> Options {
    Options {
        model: model.to_owned(),
        base_url: base_url.to_owned(),
        api_key: None,
        query_timeout_ms: 5_000,
        document_timeout_ms: 5_000,
        concurrency_max: 1,
        batch_texts_max: 2,
        tokens_max: None,
        dimensions: None,
    }
}

async fn open(dialect: Dialect, options: Options) -> Remote {
    let profile = Profile::of(&options.model).unwrap();
    let builtin = Arc::new(Builtin::load().unwrap());
    Remote::open(dialect, options, profile, builtin, Arc::new(Still))
        .await
        .unwrap()
}

fn described(tokens: usize) -> Reply {
    let body = json!({ "model_info": { "general.architecture": "bert", "bert.context_length": tokens } });
    Reply::Status(200, body.to_string())
}

/// An axis of a space of `length` dimensions.
fn axis(place: usize, length: usize) -> Vec<f32> {
    (0..length)
        .map(|axis| f32::from(u8::from(axis == place)))
        .collect()
}

#[tokio::test]
async fn ollama_is_asked_with_prefixes_context_and_without_truncation() {
    let peer = Peer::new([
        described(2048),
        Reply::Ollama(768),
        Reply::Ollama(768),
        Reply::Ollama(768),
    ])
    .await;
    let remote = open(
        Dialect::Ollama,
        options("nomic-embed-text", &format!("{}/v1/", peer.url)),
    )
    .await;
    assert_eq!(remote.state(), EmbedderState::Untried);
    // 2,048 without two marks and the longer prefix (search, _, document, :).
    assert_eq!(remote.model().tokens_max, 2048 - 2 - 4);

    let vectors = remote
        .embed(&["one", " ", "two", "three"], Purpose::Document)
        .await
        .unwrap();
    assert_eq!(
        vectors,
        [Some(axis(0, 768)), None, Some(axis(1, 768)), Some(axis(0, 768))]
    );
    assert_eq!(remote.state(), EmbedderState::Ready);
    remote.embed(&["four"], Purpose::Query).await.unwrap();

    let seen = peer.seen();
    let paths: Vec<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
    assert_eq!(paths, ["/api/show", "/api/embed", "/api/embed", "/api/embed"]);
    assert_eq!(seen[0].body, json!({ "model": "nomic-embed-text" }));
    assert_eq!(
        seen[1].body,
        json!({
            "model": "nomic-embed-text", "truncate": false, "options": { "num_ctx": 2048 },
            "input": ["search_document: one", "search_document: two"],
        })
    );
    assert_eq!(seen[2].body["input"], json!(["search_document: three"]));
    assert_eq!(seen[3].body["input"], json!(["search_query: four"]));
}

#[tokio::test]
async fn openai_is_asked_with_key_and_dimensions_and_put_in_order() {
    let peer = Peer::new([Reply::OpenAi(128)]).await;
    let mut options = options("text-embedding-3-small", &format!("{}/v1", peer.url));
    options.api_key = Some(Secret::new("sk-test"));
    options.dimensions = Some(128);
    let remote = open(Dialect::OpenAi, options).await;
    assert_eq!(remote.model().id, "openai/text-embedding-3-small/128");
    let vectors = remote.embed(&["a", "b"], Purpose::Query).await.unwrap();
    assert_eq!(vectors, [Some(axis(0, 128)), Some(axis(1, 128))]);
    let seen = peer.seen();
    assert_eq!(seen[0].path, "/v1/embeddings");
    assert!(seen[0].head.contains("authorization: Bearer sk-test"));
    assert_eq!(
        seen[0].body,
        json!({
            "model": "text-embedding-3-small", "input": ["a", "b"], "encoding_format": "float",
            "dimensions": 128,
        })
    );
}

#[tokio::test]
async fn a_server_that_takes_the_purpose_from_the_name_is_told_it() {
    let peer = Peer::new([Reply::OpenAi(384), Reply::OpenAi(384)]).await;
    let remote = open(Dialect::OpenAi, options("e5-query", &peer.url)).await;
    remote.embed(&["a"], Purpose::Document).await.unwrap();
    remote.embed(&["a"], Purpose::Query).await.unwrap();
    let asked: Vec<_> = peer
        .seen()
        .iter()
        .map(|seen| seen.body["model"].clone())
        .collect();
    assert_eq!(asked, ["e5-passage", "e5-query"]);
}

#[tokio::test]
async fn the_least_known_limit_holds_and_a_longer_text_is_never_sent() {
    for (model, shown, set, expected) in [
        // The table knows 256; the server says what the file would bear.
        ("all-minilm", 512, None, 254),
        ("all-minilm", 128, None, 126),
        ("some-model", 1024, None, 1022),
        ("some-model", 1_000_000, None, CONTEXT_TOKENS_MAX - 2),
        ("some-model", 1024, Some(64), 62),
    ] {
        let peer = Peer::new([described(shown)]).await;
        let mut options = options(model, &peer.url);
        options.tokens_max = set;
        let remote = open(Dialect::Ollama, options).await;
        assert_eq!(remote.model().tokens_max, expected, "{model}");
        let text = "1 ".repeat(expected + 1);
        let fault = remote.embed(&["a", &text], Purpose::Document).await.unwrap_err();
        assert!(matches!(&fault, EmbedError::Refused(_)), "{fault}");
        assert!(
            fault.to_string().contains(&format!("reads {expected}")),
            "{fault}"
        );
        assert_eq!(peer.seen().len(), 1, "only the description was asked for");
    }
}

#[tokio::test]
async fn a_server_that_comes_up_later_is_asked_for_its_limit_then() {
    let peer = Peer::new([
        Reply::Status(500, String::new()),
        Reply::Ollama(384),
        described(64),
        Reply::Ollama(384),
    ])
    .await;
    let remote = open(Dialect::Ollama, options("all-minilm", &peer.url)).await;
    assert_eq!(remote.model().tokens_max, 254);
    remote.embed(&["a"], Purpose::Query).await.unwrap();
    let text = "1 ".repeat(63);
    let fault = remote.embed(&[&text], Purpose::Query).await.unwrap_err();
    assert!(fault.to_string().contains("reads 62"), "{fault}");
    remote.embed(&["a"], Purpose::Query).await.unwrap();
    assert_eq!(peer.seen().len(), 4);
}

/// The outcome of one query to a server that replies so.
async fn faulty(reply: Reply) -> EmbedError {
    let peer = Peer::new([reply]).await;
    let mut options = options("all-minilm", &peer.url);
    options.query_timeout_ms = 300;
    let remote = open(Dialect::OpenAi, options).await;
    let fault = remote
        .embed(&["some private words"], Purpose::Query)
        .await
        .unwrap_err();
    assert_eq!(peer.seen().len(), 1, "a query is asked once");
    assert!(!fault.to_string().contains("private"), "{fault}");
    fault
}

#[tokio::test]
async fn every_fault_of_a_server_is_told_for_what_it_is() {
    let words = || r#"{"error":"some private words"}"#.to_owned();
    for (reply, part) in [
        (Reply::Status(500, words()), "status 500"),
        (Reply::Status(503, words()), "status 503"),
        (Reply::Status(429, words()), "status 429"),
        (Reply::CutOff, "broke"),
        (Reply::Silence, "within 300 ms"),
    ] {
        let fault = faulty(reply).await;
        assert!(
            matches!(&fault, EmbedError::Unavailable(words) if words.contains(part)),
            "{fault:?}"
        );
    }
    for (reply, part) in [
        (Reply::Status(401, words()), "key"),
        (Reply::Status(404, words()), "no model `all-minilm`"),
        (Reply::Status(400, words()), "limit of 256 tokens"),
        (Reply::Status(413, words()), "batch_texts_max"),
        (Reply::Status(501, words()), "an embedding model"),
        (Reply::Status(307, words()), "base_url"),
    ] {
        let fault = faulty(reply).await;
        assert!(
            matches!(&fault, EmbedError::Refused(words) if words.contains(part)),
            "{fault:?}"
        );
    }
    let two = r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}"#;
    for (reply, part) in [
        (Reply::Status(200, words()), "no list of vectors"),
        (
            Reply::Status(200, r#"{"data":[{"ind"#.to_owned()),
            "no list of vectors",
        ),
        (Reply::Status(200, two.to_owned()), "2 vectors for 1 texts"),
        (
            Reply::OpenAi(383),
            "383 numbers where those of `all-minilm` have 384",
        ),
        (Reply::Ollama(384), "no list of vectors"),
    ] {
        let fault = faulty(reply).await;
        assert!(
            matches!(&fault, EmbedError::Broken(words) if words.contains(part)),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn a_huge_body_is_left_unread_beyond_its_bound() {
    let peer = Peer::new([Reply::Endless]).await;
    let remote = open(Dialect::OpenAi, options("all-minilm", &peer.url)).await;
    let fault = remote.embed(&["a"], Purpose::Query).await.unwrap_err();
    assert!(
        matches!(&fault, EmbedError::Broken(words) if words.contains("longer than 16777216 bytes")),
        "{fault:?}"
    );
}

#[tokio::test]
async fn the_first_vectors_length_holds_for_a_model_nobody_knows() {
    let peer = Peer::new([Reply::OpenAi(8), Reply::OpenAi(16)]).await;
    let remote = open(Dialect::OpenAi, options("some-model", &peer.url)).await;
    remote.embed(&["a"], Purpose::Query).await.unwrap();
    let fault = remote.embed(&["b"], Purpose::Query).await.unwrap_err();
    assert!(matches!(&fault, EmbedError::Broken(_)), "{fault:?}");
}

#[tokio::test]
async fn documents_are_tried_again_while_the_server_is_away() {
    let peer = Peer::new([
        Reply::Status(503, String::new()),
        Reply::Header(429, "retry-after: 0", String::new()),
        Reply::OpenAi(384),
    ])
    .await;
    let remote = open(Dialect::OpenAi, options("all-minilm", &peer.url)).await;
    let begun = tokio::time::Instant::now();
    remote.embed(&["a"], Purpose::Document).await.unwrap();
    assert_eq!(peer.seen().len(), 3);
    assert!(begun.elapsed() >= Duration::from_millis(RETRY_MS * 3));

    let peer = Peer::new([Reply::Status(400, String::new())]).await;
    let remote = open(Dialect::OpenAi, options("all-minilm", &peer.url)).await;
    assert!(remote.embed(&["a"], Purpose::Document).await.is_err());
    assert_eq!(peer.seen().len(), 1, "what is refused is not asked again");
}

#[tokio::test]
async fn a_query_does_not_wait_behind_documents_and_these_wait_their_turn() {
    let peer = Peer::new([Reply::Silence, Reply::OpenAi(384)]).await;
    let mut options = options("all-minilm", &peer.url);
    options.batch_texts_max = 1;
    let remote = open(Dialect::OpenAi, options).await;
    let documents = remote.embed(&["a", "b", "c"], Purpose::Document);
    tokio::pin!(documents);
    while peer.seen().is_empty() {
        tokio::select! {
            biased;
            outcome = &mut documents => panic!("{outcome:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    tokio::select! {
        biased;
        outcome = &mut documents => panic!("{outcome:?}"),
        outcome = remote.embed(&["q"], Purpose::Query) => drop(outcome.unwrap()),
    }
    let asked: Vec<_> = peer
        .seen()
        .iter()
        .map(|seen| seen.body["input"].clone())
        .collect();
    assert_eq!(asked, [json!(["a"]), json!(["q"])]);
}

#[tokio::test]
async fn a_dead_address_is_unavailable_at_once() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let remote = open(
        Dialect::Ollama,
        options("all-minilm", &format!("http://{closed}")),
    )
    .await;
    let fault = remote.embed(&["a"], Purpose::Query).await.unwrap_err();
    assert!(matches!(&fault, EmbedError::Unavailable(_)), "{fault:?}");
}

#[test]
fn batches_are_bounded_in_texts_and_bytes() {
    let texts =
        |lengths: &[usize]| -> Vec<String> { lengths.iter().map(|length| "a".repeat(*length)).collect() };
    assert!(batches(&[], 2).is_empty());
    assert_eq!(batches(&texts(&[1, 1, 1]), 2), [0..2, 2..3]);
    let half = BATCH_BYTES_MAX / 2;
    assert_eq!(
        batches(&texts(&[half, half, 1, BATCH_BYTES_MAX + 1, 1]), 9),
        [0..2, 2..3, 3..4, 4..5]
    );
}

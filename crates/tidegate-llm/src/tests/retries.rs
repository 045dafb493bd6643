//! Retries, fallbacks and the breaker.

use tidegate_core::secret::Secret;
use tidegate_testkit::Reply;

use super::*;

fn busy() -> Reply {
    Reply::status(503, json!({"error": "busy"}))
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_nothing_else() {
    let cut = || Reply::raw_sse("").cut();
    let limited = || Reply::status(429, json!({"error": "slow down"})).header("retry-after-ms", "5");
    let dated = |date: &str| Reply::status(429, json!({"error": "slow down"})).header("retry-after", date);
    let busy_later = || busy().header("retry-after", "60");
    let later = || Reply::status(429, json!({"error": "slow down"})).header("retry-after", "60");
    let rows: Vec<(&str, Vec<Reply>, usize, bool)> = vec![
        ("busy once", vec![busy()], 2, true),
        ("busy twice", vec![busy(), busy()], 3, true),
        ("busy too often", vec![busy(), busy(), busy()], 3, false),
        ("a limit that ends soon", vec![limited()], 2, true),
        ("a limit that lasts", vec![later()], 1, false),
        (
            "a limit until now",
            vec![dated("Fri, 15 Jan 2027 08:00:00 GMT")],
            2,
            true,
        ),
        (
            "a limit until a minute from now",
            vec![dated("Fri, 15 Jan 2027 08:01:00 GMT")],
            1,
            false,
        ),
        ("busy for a minute", vec![busy_later()], 1, false),
        ("408", vec![Reply::status(408, json!({}))], 2, true),
        ("cut before the first token", vec![cut()], 2, true),
        (
            "400",
            vec![Reply::status(400, json!({"error": {"message": "no"}}))],
            1,
            false,
        ),
        (
            "401",
            vec![Reply::status(401, json!({"error": {"message": "no"}}))],
            1,
            false,
        ),
        (
            "overflow under 500",
            vec![Reply::status(500, json!({"error": "prompt is too long"}))],
            1,
            false,
        ),
        (
            "cut after the first token",
            vec![Reply::text("some").cut()],
            1,
            false,
        ),
    ];
    for (what, replies, asked, succeeds) in rows {
        let upstream = Upstream::start().await.unwrap();
        for reply in replies {
            upstream.push(reply);
        }
        let models = models(options(&upstream, Dialect::Openai));
        let events = answer(&models, question(true)).await;
        assert_eq!(events.is_ok(), succeeds, "{what}: {events:?}");
        assert_eq!(upstream.requests().len(), asked, "{what}");
    }
}

#[tokio::test]
async fn a_fallback_answers_where_the_model_cannot() {
    let (one, two) = (Upstream::start().await.unwrap(), Upstream::start().await.unwrap());
    let mut options = options(&one, Dialect::Openai);
    options.providers.insert("y".to_owned(), at(&two.base_url()));
    options.fallbacks = vec!["x:m".to_owned(), "x:other".to_owned(), "y:small".to_owned()];
    options.retries_max = 0;
    options.breaker_failures = 0;
    let models = models(options);
    let refused = |status: u16| Reply::status(status, json!({"error": {"message": "no"}}));
    // What the first upstream says, how many models of it are then asked, and whether the second answers.
    let rows = [(503, 2, true), (429, 2, true), (401, 1, true), (400, 1, false)];
    for (status, asked, answered) in rows {
        one.always(refused(status));
        let before = (one.requests().len(), two.requests().len());
        let events = answer(&models, question(true)).await;
        assert_eq!(events.is_ok(), answered, "{status}: {events:?}");
        let chats = |upstream: &Upstream, before: usize| {
            upstream
                .requests()
                .iter()
                .skip(before)
                .filter(|request| request.path.contains("chat"))
                .count()
        };
        assert_eq!(
            (chats(&one, before.0), chats(&two, before.1)),
            (asked, usize::from(answered)),
            "{status}"
        );
    }
    assert_eq!(two.chats().last().unwrap()["model"], "small");

    two.always(busy());
    one.always(Reply::status(500, json!({"error": "first"})));
    let error = answer(&models, question(true)).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::Unavailable("it reported an error of its own (500)".to_owned())
    );
}

#[tokio::test]
async fn a_provider_that_keeps_failing_is_paused_and_probed() {
    let upstream = Upstream::start().await.unwrap();
    let options = Options {
        retries_max: 0,
        breaker_failures: 2,
        breaker_open_ms: 60_000,
        ..options(&upstream, Dialect::Openai)
    };
    let models = models(options);
    upstream.push(busy());
    upstream.push(Reply::text("some").cut());
    upstream.push(busy());
    assert!(answer(&models, question(true)).await.is_err());
    // An answer that begins ends the row of failures; that it breaks off begins a new one.
    assert!(answer(&models, question(true)).await.is_err());
    assert!(matches!(
        answer(&models, question(true)).await,
        Err(ModelError::Unavailable(_))
    ));
    let asked = upstream.requests().len();
    let Err(ModelError::Paused { retry_after }) = answer(&models, question(true)).await else {
        panic!("not paused");
    };
    assert_eq!(upstream.requests().len(), asked);
    tokio::time::pause();
    tokio::time::advance(retry_after).await;
    tokio::time::resume();
    assert_eq!(text(&answer(&models, question(true)).await.unwrap()), "hello");
    assert_eq!(text(&answer(&models, question(true)).await.unwrap()), "hello");
}

#[tokio::test]
async fn an_error_never_repeats_the_key() {
    let upstream = Upstream::start().await.unwrap();
    let mut options = options(&upstream, Dialect::Openai);
    let provider = options.providers.get_mut("x").unwrap();
    provider.api_key = Some(Secret::new("sk-very-secret"));
    provider
        .headers
        .insert("x-gateway".to_owned(), "Token sk-very-hidden".to_owned());
    options.retries_max = 0;
    let models = models(options);
    assert!(!format!("{models:?}").contains("sk-very"));
    for status in [400, 422, 429, 500] {
        let words = format!("{} Bearer sk-very-secret, sk-very-hidden", "x".repeat(480));
        upstream.always(Reply::status(status, json!({"error": {"message": words}})));
        let error = answer(&models, question(true)).await.unwrap_err();
        assert!(!format!("{error:?}").contains("sk-"), "{error:?}");
        let report = models.check().await;
        assert!(!format!("{report:?}").contains("sk-"), "{report:?}");
    }
    upstream.push(Reply::raw_sse(
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"error\":\"sk-very-secret\"}\n\n",
    ));
    let error = answer(&models, question(true)).await.unwrap_err();
    assert!(!format!("{error:?}").contains("sk-very"), "{error:?}");
}

#[tokio::test]
async fn an_answer_says_which_model_gave_it_where_that_is_a_fallback() {
    for (native, marked) in [(true, false), (false, true)] {
        for stream in [false, true] {
            let (one, two) = (Upstream::start().await.unwrap(), Upstream::start().await.unwrap());
            let mut options = options(&one, Dialect::Openai);
            let fallback = ProviderOptions {
                native_tools: Some(!native),
                ..at(&two.base_url())
            };
            options.providers.insert("y".to_owned(), fallback);
            options.providers.get_mut("x").unwrap().native_tools = Some(native);
            options.fallbacks = vec!["y:small".to_owned()];
            options.retries_max = 0;
            let models = models(options);
            let ask = async || {
                let question = ModelRequest {
                    model: models.resolve("tidegate").await.unwrap(),
                    tools: [schema("f")].into(),
                    ..question(stream)
                };
                answer(&models, question).await.unwrap()
            };
            let own = ask().await;
            assert!(!matches!(own.first(), Some(ModelEvent::AnsweredBy(_))), "{own:?}");
            one.always(busy());
            let others = ask().await;
            let Some(ModelEvent::AnsweredBy(by)) = others.first() else {
                panic!("{others:?}");
            };
            assert_eq!(
                (by.provider.as_str(), by.name.as_str(), by.native_tools),
                ("y", "small", !native)
            );
            assert_eq!(by.requested, "tidegate");
            assert_eq!(text(&others), "hello");
            // Each was told of the tool as it understands it.
            for (upstream, native) in [(&one, native), (&two, marked)] {
                let chat = upstream.chats().pop().unwrap();
                assert_eq!(chat.get("tools").is_some(), native, "{chat}");
                let system = chat["messages"][0]["content"].as_str().unwrap();
                assert_eq!(system.contains("# Tools"), !native, "{system}");
            }
        }
    }
}

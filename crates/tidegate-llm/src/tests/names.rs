//! Which model a name means, and what is listed.

use tidegate_testkit::Reply;

use super::*;
use crate::{ProviderReport, SetupError, Target, probe_ollama};

fn target(provider: &str, model: &str) -> Target {
    Target {
        provider: provider.to_owned(),
        model: model.to_owned(),
    }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_name_means_an_alias_a_listed_model_or_one_of_a_provider() {
    let (one, two) = (Upstream::start().await.unwrap(), Upstream::start().await.unwrap());
    one.set_models(Some(list(&["m1", "org/m2", "m3:latest"])));
    two.set_models(None);
    let mut options = options(&one, Dialect::Openai);
    options.providers.insert("y".to_owned(), at(&two.base_url()));
    options.aliases.insert("fast".to_owned(), target("y", "small"));
    let models = models(options);
    let rows = [
        ("tidegate", Ok(("x", "m"))),
        ("fast", Ok(("y", "small"))),
        ("m1", Ok(("x", "m1"))),
        ("org/m2", Ok(("x", "org/m2"))),
        ("m3", Ok(("x", "m3:latest"))),
        ("x/m1", Ok(("x", "m1"))),
        ("x/m9", Err(())),
        ("y/anything/else", Ok(("y", "anything/else"))),
        ("y/", Err(())),
        ("m9", Err(())),
        ("", Err(())),
    ];
    for (name, expected) in rows {
        let resolved = models.resolve(name).await;
        match expected {
            Ok((provider, model)) => {
                let resolved = resolved.unwrap();
                assert_eq!(
                    (resolved.provider.as_str(), resolved.name.as_str()),
                    (provider, model),
                    "{name}"
                );
                assert_eq!(resolved.requested, name);
            }
            Err(()) => assert_eq!(resolved, Err(ModelError::NotFound(name.to_owned()))),
        }
    }
    // Everything above asked each upstream for its list once.
    assert_eq!(
        one.requests()
            .iter()
            .filter(|request| request.path == "/v1/models")
            .count(),
        1
    );
    let listed: Vec<String> = models
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|model| model.id)
        .collect();
    assert_eq!(listed, ["tidegate", "fast", "m1", "org/m2", "m3:latest"]);
}

#[tokio::test]
async fn where_nothing_is_listed_any_name_passes_through() {
    for listing in [None, Some(list(&[]))] {
        let upstream = Upstream::start().await.unwrap();
        upstream.set_models(listing);
        let models = models(options(&upstream, Dialect::Openai));
        assert_eq!(models.resolve("gpt-x").await.unwrap().name, "gpt-x");
        assert_eq!(models.list().await.unwrap().len(), 1);
    }
    let mut gone = Options::default();
    gone.providers.insert("x".to_owned(), at("http://127.0.0.1:1/v1"));
    let models = models(gone);
    assert_eq!(models.resolve("gpt-x").await.unwrap().name, "gpt-x");
    assert_eq!(models.list().await.unwrap().len(), 1);
    assert!(matches!(
        models.check().await.as_slice(),
        [ProviderReport { models: Err(_), .. }]
    ));
}

#[tokio::test]
async fn a_burst_asks_for_the_list_once() {
    let upstream = Upstream::start().await.unwrap();
    let models = models(options(&upstream, Dialect::Openai));
    let asked = (0..20).map(|_| models.resolve("scripted"));
    assert!(
        futures_util::future::join_all(asked)
            .await
            .iter()
            .all(Result::is_ok)
    );
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn without_a_provider_people_are_told_what_to_type() {
    let options = Options {
        not_configured_hint: "type this".to_owned(),
        ..Options::default()
    };
    let models = models(options);
    let expected = ModelError::NotConfigured("type this".to_owned());
    assert_eq!(models.resolve("tidegate").await, Err(expected.clone()));
    assert_eq!(models.ask(question(true)).await.err(), Some(expected));
    assert_eq!(
        (models.list().await, models.is_configured()),
        (Ok(Vec::new()), false)
    );
}

#[tokio::test]
async fn a_default_model_is_found_in_the_list() {
    let upstream = Upstream::start().await.unwrap();
    upstream.set_models(Some(list(&["nomic-embed-text", "chatty"])));
    let mut options = options(&upstream, Dialect::Openai);
    options.providers.get_mut("x").unwrap().model = None;
    assert_eq!(
        models(options.clone()).resolve("tidegate").await.unwrap().name,
        "chatty"
    );
    upstream.set_models(None);
    assert!(
        matches!(models(options).resolve("tidegate").await, Err(ModelError::NotConfigured(told)) if told.contains("`x`"))
    );
}

#[tokio::test]
async fn ollama_is_asked_what_a_model_can_do() {
    let upstream = Upstream::start().await.unwrap();
    let mut options = options(&upstream, Dialect::Ollama);
    let provider = options.providers.get_mut("x").unwrap();
    provider.profile = Some("ollama".to_owned());
    provider.context_tokens = Some(100_000);
    let models = models(options);
    let model = models.resolve("scripted").await.unwrap();
    assert_eq!((model.native_tools, model.context_tokens), (true, Some(8192)));
    models.resolve("scripted").await.unwrap();
    assert_eq!(
        upstream
            .requests()
            .iter()
            .filter(|request| request.path == "/api/show")
            .count(),
        1
    );
    upstream.push(Reply::text("hi"));
    answer(
        &models,
        ModelRequest {
            model,
            ..question(true)
        },
    )
    .await
    .unwrap();
    assert_eq!(upstream.chats().first().unwrap()["options"]["num_ctx"], 8192);
}

#[tokio::test]
async fn a_local_ollama_is_found() {
    let upstream = Upstream::start().await.unwrap();
    upstream.set_models(Some(list(&["a", "b"])));
    assert_eq!(
        probe_ollama(&upstream.root_url(), SOON).await,
        Some(list(&["a", "b"]))
    );
    upstream.set_models(None);
    assert_eq!(probe_ollama(&upstream.root_url(), SOON).await, None);
    assert_eq!(probe_ollama("http://127.0.0.1:1", SOON).await, None);
}

#[test]
fn settings_that_contradict_themselves_are_refused() {
    let base = || Options {
        providers: [("x".to_owned(), at("http://h/v1"))].into(),
        ..Options::default()
    };
    let unknown = |setting: &str| SetupError::UnknownProvider {
        setting: setting.to_owned(),
        provider: "z".to_owned(),
    };
    let rows = [
        (
            Options {
                default_provider: Some("z".to_owned()),
                ..base()
            },
            unknown("default_provider"),
        ),
        (
            Options {
                aliases: [("a".to_owned(), target("z", "m"))].into(),
                ..base()
            },
            unknown("the alias `a`"),
        ),
        (
            Options {
                fallbacks: vec!["z:m".to_owned()],
                ..base()
            },
            unknown("a fallback"),
        ),
        (
            Options {
                fallbacks: vec!["x".to_owned()],
                ..base()
            },
            SetupError::Fallback("x".to_owned()),
        ),
    ];
    for (options, expected) in rows {
        let client = OperatorClient::new(&options.client_options()).unwrap();
        assert_eq!(
            Models::new(options, client, Arc::new(Stopped), Arc::new(Counter::default())).unwrap_err(),
            expected
        );
    }
}

//! The list of models: the operator's names and the upstream's, as far as the key may use them.

use serde_json::{Value, json};

use crate::support::{Answer, Chat, Daemon, Setup};

fn ids(list: &Value) -> Vec<&str> {
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect()
}

async fn daemon() -> Daemon {
    let daemon = Setup::default()
        .config("[models.aliases.fast]\nprovider = \"test\"\nmodel = \"org/name:7b\"")
        .start()
        .await;
    daemon
        .upstream
        .set_models(Some(vec!["scripted".into(), "org/name:7b".into()]));
    daemon
}

#[tokio::test]
async fn the_list_has_the_default_the_aliases_and_the_upstreams_own() {
    let daemon = daemon().await;
    let (status, list) = daemon.get("/v1/models").await;
    assert_eq!((status, &list["object"]), (200, &json!("list")));
    let found = ids(&list);
    for id in ["tidegate", "fast", "scripted", "org/name:7b"] {
        assert_eq!(
            found.iter().filter(|other| **other == id).count(),
            1,
            "{id}: {found:?}"
        );
    }
    for model in list["data"].as_array().unwrap() {
        assert_eq!(model["object"], "model", "{model}");
        assert!(
            model["created"].is_i64() && model["owned_by"].is_string(),
            "{model}"
        );
    }
}

#[tokio::test]
async fn one_model_is_shown_under_every_spelling_of_its_id() {
    let daemon = daemon().await;
    for (path, id) in [
        ("/v1/models/tidegate", "tidegate"),
        ("/v1/models/fast", "fast"),
        ("/models/scripted", "scripted"),
        ("/v1/models/org/name:7b", "org/name:7b"),
        ("/v1/models/org%2Fname%3A7b", "org/name:7b"),
        ("/v1/models/org%2fname:7b/", "org/name:7b"),
    ] {
        let (status, model) = daemon.get(path).await;
        assert_eq!(
            (status, &model["id"], &model["object"]),
            (200, &json!(id), &json!("model")),
            "{path}: {model}"
        );
    }
    for path in ["/v1/models/nope", "/v1/models/org%2Fnope", "/v1/models/%20"] {
        let answer = Answer::of(
            daemon
                .ask("GET", path)
                .bearer_auth(&daemon.key)
                .send()
                .await
                .unwrap(),
        )
        .await;
        let body = answer.assert_error(404, "model_not_found");
        assert_eq!(body["error"]["param"], "model");
    }
    let chat = Chat::new(&daemon, "hello there")
        .with("model", json!("nope"))
        .send()
        .await;
    chat.assert_error(404, "model_not_found");
    let chat = Chat::new(&daemon, "hello there")
        .with("model", json!("fast"))
        .send()
        .await;
    assert_eq!(
        chat.json()["model"],
        "fast",
        "the answer carries the name that was asked for"
    );
    assert_eq!(daemon.upstream.chats().pop().unwrap()["model"], "org/name:7b");
}

#[tokio::test]
async fn a_key_sees_what_it_may_use() {
    let daemon = daemon().await;
    let key = daemon
        .make_key(json!({"name": "k", "scopes": ["chat"], "models": ["fast", "scripted"]}))
        .await;
    let get =
        async |path: &str| Answer::of(daemon.ask("GET", path).bearer_auth(&key).send().await.unwrap()).await;
    let list = get("/v1/models").await.json();
    let mut found = ids(&list);
    found.sort_unstable();
    assert_eq!(found, ["fast", "scripted"]);
    assert_eq!(get("/v1/models/fast").await.status, 200);
    for hidden in ["tidegate", "org%2Fname:7b", "nope"] {
        get(&format!("/v1/models/{hidden}"))
            .await
            .assert_error(404, "model_not_found");
    }
}

#[tokio::test]
async fn where_the_upstream_lists_nothing_any_id_passes() {
    let daemon = Daemon::start().await;
    daemon.upstream.set_models(None);
    let (status, list) = daemon.get("/v1/models").await;
    assert_eq!(status, 200, "{list}");
    assert!(ids(&list).contains(&"tidegate"), "{list}");
    let (status, model) = daemon.get("/v1/models/any%2Fname").await;
    assert_eq!((status, &model["id"]), (200, &json!("any/name")), "{model}");
    let chat = Chat::new(&daemon, "hello there")
        .with("model", json!("any/name"))
        .send()
        .await;
    assert_eq!(chat.content(), "hello");
    assert_eq!(daemon.upstream.chats().pop().unwrap()["model"], "any/name");
}

//! Key administration: its shapes, its strictness, and the way it cannot lock itself out.

use serde_json::{Value, json};

use super::keys::id_of;
use crate::support::{Answer, Daemon};

#[tokio::test]
async fn a_key_is_created_echoed_and_its_value_shown_once() {
    let daemon = Daemon::start().await;
    let wanted = json!({
        "name": "library", "scopes": ["chat", "tools"], "expires_in_seconds": 86400, "requests_per_minute": 30,
        "tokens_per_day": 5000, "models": ["tidegate"], "tools": ["calculate"], "mode_ceiling": "plan-only",
        "on_disconnect": "finish", "metadata": {"room": "12"},
    });
    let (status, created) = daemon.admin("POST", "/v1/admin/keys", wanted.clone()).await;
    assert_eq!(status, 200, "{created}");
    let value = created["value"].as_str().unwrap();
    let id = created["id"].as_str().unwrap();
    assert_eq!(id_of(value), id);
    assert_eq!(created["object"], "organization.admin_api_key");
    assert_eq!(
        created["expires_at"].as_i64().unwrap() - created["created_at"].as_i64().unwrap(),
        86400
    );
    assert_eq!(
        (&created["last_used_at"], &created["enabled"]),
        (&Value::Null, &json!(true))
    );
    assert!(created["owner"].is_object());
    let redacted = created["redacted_value"].as_str().unwrap();
    assert!(
        redacted.starts_with("tg_") && !redacted.contains(&value[16..20]),
        "{redacted}"
    );
    for (name, given) in wanted
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "expires_in_seconds")
    {
        assert_eq!(&created[name], given, "{name} is echoed as it is stored");
    }
    let path = format!("/v1/admin/keys/{id}");
    let (_, shown) = daemon.get(&path).await;
    let mut expected = created.clone();
    expected.as_object_mut().unwrap().shift_remove("value");
    assert_eq!(shown, expected);
    // The least: a name. It chats, and may do no more than read.
    let (_, least) = daemon
        .admin("POST", "/v1/admin/keys", json!({"name": "least"}))
        .await;
    assert_eq!(
        (&least["scopes"], &least["mode_ceiling"]),
        (&json!(["chat"]), &json!("readonly")),
        "{least}"
    );
}

#[tokio::test]
async fn an_update_changes_what_it_names_and_null_clears() {
    let daemon = Daemon::start().await;
    let create = json!({"name": "a", "requests_per_minute": 5, "tokens_per_day": 9, "models": ["m"]});
    let (_, created) = daemon.admin("POST", "/v1/admin/keys", create).await;
    let path = format!("/v1/admin/keys/{}", created["id"].as_str().unwrap());
    for method in ["PATCH", "POST"] {
        let change = json!({"name": "b", "requests_per_minute": null, "scopes": ["tools"]});
        let (status, changed) = daemon.admin(method, &path, change).await;
        assert_eq!(status, 200, "{changed}");
        assert_eq!(
            (&changed["name"], &changed["requests_per_minute"]),
            (&json!("b"), &Value::Null)
        );
        assert_eq!(
            (&changed["tokens_per_day"], &changed["models"]),
            (&json!(9), &json!(["m"])),
            "the rest stays"
        );
        assert!(changed.get("value").is_none());
    }
    let (_, shown) = daemon.get(&path).await;
    assert_eq!(shown["scopes"], json!(["tools"]));
}

#[tokio::test]
async fn the_list_is_paged_in_both_orders() {
    let daemon = Daemon::start().await;
    let mut all = vec![id_of(&daemon.key).to_owned()];
    for index in 0..4 {
        all.push(id_of(&daemon.make_key(json!({"name": format!("k{index}")})).await).to_owned());
    }
    for order in ["asc", "desc"] {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let (status, page) = daemon
                .get(&format!("/v1/admin/keys?limit=2&order={order}{after}"))
                .await;
            assert_eq!((status, &page["object"]), (200, &json!("list")), "{page}");
            let data = page["data"].as_array().unwrap();
            assert_eq!(
                (&page["first_id"], &page["last_id"]),
                (&data[0]["id"], &data[data.len() - 1]["id"])
            );
            assert!(
                data.len() <= 2 && data.iter().all(|key| key.get("value").is_none()),
                "{page}"
            );
            found.extend(data.iter().map(|key| key["id"].as_str().unwrap().to_owned()));
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        if order == "desc" {
            found.reverse();
        }
        // Keys of one second have no other order than that of the list.
        let (mut found, mut all) = (found, all.clone());
        found.sort();
        all.sort();
        assert_eq!(found, all, "{order}");
    }
    for query in ["limit=0", "limit=101", "limit=x", "order=up", "page=2"] {
        let (status, body) = daemon.get(&format!("/v1/admin/keys?{query}")).await;
        assert_eq!(status, 400, "{query}: {body}");
    }
}

#[tokio::test]
async fn unknown_and_wrong_fields_are_refused_and_nothing_is_stored() {
    let daemon = Daemon::start().await;
    for (body, code, param) in [
        (
            json!({"name": "k", "rate_limit": 5}),
            "unknown_parameter",
            "rate_limit",
        ),
        (
            json!({"name": "k", "max_tokens": 5}),
            "unknown_parameter",
            "max_tokens",
        ),
        (json!({}), "missing_required_parameter", "name"),
        (json!({"name": ""}), "invalid_value", "name"),
        (json!({"name": 5}), "invalid_type", "name"),
        (json!({"name": "k", "scopes": []}), "invalid_value", "scopes"),
        (
            json!({"name": "k", "scopes": ["root"]}),
            "invalid_value",
            "scopes.0",
        ),
        (json!({"name": "k", "scopes": "chat"}), "invalid_type", "scopes"),
        (
            json!({"name": "k", "requests_per_minute": -1}),
            "invalid_value",
            "requests_per_minute",
        ),
        (
            json!({"name": "k", "requests_per_minute": 0}),
            "invalid_value",
            "requests_per_minute",
        ),
        (
            json!({"name": "k", "tokens_per_day": "5"}),
            "invalid_type",
            "tokens_per_day",
        ),
        (
            json!({"name": "k", "expires_in_seconds": 0}),
            "invalid_value",
            "expires_in_seconds",
        ),
        (
            json!({"name": "k", "mode_ceiling": "god"}),
            "invalid_value",
            "mode_ceiling",
        ),
        (
            json!({"name": "k", "on_disconnect": "x"}),
            "invalid_value",
            "on_disconnect",
        ),
        (
            json!({"name": "k", "metadata": {"a": 1}}),
            "invalid_type",
            "metadata.a",
        ),
    ] {
        let (status, answer) = daemon.admin("POST", "/v1/admin/keys", body.clone()).await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (400, &json!(code)),
            "{body}: {answer}"
        );
        assert_eq!(answer["error"]["param"], param, "{body}: {answer}");
    }
    let (_, list) = daemon.get("/v1/admin/keys").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn a_key_that_is_not_there_is_404_and_an_id_that_is_none_400_on_every_route() {
    let daemon = Daemon::start().await;
    // One that could be a key's, and some that could not.
    for (id, status, code, param) in [
        ("aaaaaaaaaaaa", 404, "not_found", Value::Null),
        ("nope", 400, "invalid_value", json!("id")),
        ("a%2fb", 400, "invalid_value", json!("id")),
        ("a%00b", 400, "invalid_value", json!("id")),
        ("%ff", 400, "invalid_value", json!("id")),
    ] {
        for (method, path) in [
            ("GET", format!("/v1/admin/keys/{id}")),
            ("PATCH", format!("/v1/admin/keys/{id}")),
            ("DELETE", format!("/v1/admin/keys/{id}")),
            ("POST", format!("/v1/admin/keys/{id}/rotate")),
            ("GET", format!("/v1/admin/keys/{id}/usage")),
        ] {
            let body = if method == "PATCH" {
                json!({"name": "x"})
            } else {
                Value::Null
            };
            let (found, answer) = daemon.admin(method, &path, body).await;
            let error = &answer["error"];
            assert_eq!(
                (found, &error["code"], &error["param"]),
                (status, &json!(code), &param),
                "{method} {path}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn the_last_administrator_cannot_be_taken_away() {
    let daemon = Daemon::start().await;
    let path = format!("/v1/admin/keys/{}", id_of(&daemon.key));
    for (method, path, body) in [
        ("DELETE", path.clone(), Value::Null),
        ("POST", format!("{path}/disable"), Value::Null),
        ("PATCH", path.clone(), json!({"scopes": ["chat"]})),
        ("PATCH", path.clone(), json!({"enabled": false})),
    ] {
        let (status, answer) = daemon.admin(method, &path, body).await;
        assert_eq!(status, 400, "{method} {path}: {answer}");
    }
    let second = daemon
        .make_key(json!({"name": "second", "scopes": ["admin"]}))
        .await;
    let (status, deleted) = daemon.admin("DELETE", &path, Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(
        deleted,
        json!({"id": id_of(&daemon.key), "object": "organization.admin_api_key.deleted", "deleted": true})
    );
    let answer = daemon
        .ask("GET", "/v1/admin/keys")
        .bearer_auth(&second)
        .send()
        .await
        .unwrap();
    let list = Answer::of(answer).await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn usage_is_asked_for_by_day() {
    let daemon = Daemon::start().await;
    let path = format!("/v1/admin/keys/{}/usage", id_of(&daemon.key));
    let (status, usage) = daemon.get(&format!("{path}?from=2026-01-01&to=2026-01-31")).await;
    assert_eq!(
        (status, &usage["object"], &usage["has_more"]),
        (200, &json!("list"), &json!(false)),
        "{usage}"
    );
    for (query, code, param, words) in [
        (
            "from=2026-02-01&to=2026-01-01",
            "invalid_value",
            "from",
            "after `to`",
        ),
        ("from=soon", "invalid_value", "from", "a day such as"),
        (
            "from=2026-01-01&to=2026-02-30",
            "invalid_value",
            "to",
            "a day such as",
        ),
        (
            "from=2000-01-01&to=2026-01-01",
            "invalid_value",
            "from",
            "less than 366 days",
        ),
        (
            "from=2026-01-01&from=2026-01-02",
            "invalid_value",
            "from",
            "more than once",
        ),
        ("from=", "invalid_value", "from", "a day such as"),
        ("day=1", "unknown_parameter", "day", "`from`, `to`"),
    ] {
        assert_query_fault(&daemon, &format!("{path}?{query}"), code, param, words).await;
    }
}

async fn assert_query_fault(daemon: &Daemon, path: &str, code: &str, param: &str, words: &str) {
    let (status, answer) = daemon.get(path).await;
    let error = &answer["error"];
    assert_eq!(
        (status, &error["code"], &error["param"]),
        (400, &json!(code), &json!(param)),
        "{path}: {answer}"
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(words), "{path}: {message}");
}

#[tokio::test]
async fn a_page_of_keys_is_asked_for_within_bounds() {
    let daemon = Daemon::start().await;
    let number = "a whole number between 1 and 100";
    for (query, code, param, words) in [
        ("limit=x", "invalid_value", "limit", number),
        ("limit=0", "invalid_value", "limit", number),
        ("limit=101", "invalid_value", "limit", number),
        ("limit=-1", "invalid_value", "limit", number),
        ("limit=%2B1", "invalid_value", "limit", number),
        ("limit=1.5", "invalid_value", "limit", number),
        ("limit=", "invalid_value", "limit", number),
        ("limit=99999999999999999999", "invalid_value", "limit", number),
        ("limit=1&limit=2", "invalid_value", "limit", "more than once"),
        ("order=up", "invalid_value", "order", "`asc` or `desc`"),
        ("after=nope", "invalid_value", "after", "the public id of a key"),
        ("after=%ff", "invalid_value", "after", "not UTF-8"),
        ("limt=1", "unknown_parameter", "limt", "`after`, `limit`, `order`"),
        (
            "limit=1&a%00b=1",
            "unknown_parameter",
            "a b",
            "unknown query parameter",
        ),
    ] {
        assert_query_fault(&daemon, &format!("/v1/admin/keys?{query}"), code, param, words).await;
    }
    let (status, list) = daemon
        .get("/v1/admin/keys?limit=100&order=desc&after=aaaaaaaaaaaa")
        .await;
    assert_eq!((status, &list["object"]), (200, &json!("list")), "{list}");
}

#[tokio::test]
async fn the_last_use_is_noted() {
    let daemon = Daemon::start().await;
    let path = format!("/v1/admin/keys/{}", id_of(&daemon.key));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while daemon.get(&path).await.1["last_used_at"].is_null() {
        assert!(std::time::Instant::now() < deadline, "the last use is not noted");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

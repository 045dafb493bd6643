use serde_json::{Value, json};
use tidegate_core::{key::KeyPolicy, secret::PlainKey};

use super::{super::*, support::Server};

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one key's life, step by step")]
async fn keys_are_administered_over_the_api() {
    let server = Server::start(Options::default()).await;
    let admin = &server.admin;
    let made = server
        .send(
            "POST",
            "/v1/admin/keys",
            admin,
            r#"{"name":"ci","scopes":["chat"],"requests_per_minute":9}"#,
        )
        .await
        .json();
    assert_eq!(
        (made["object"].as_str(), made["requests_per_minute"].as_u64()),
        (Some("organization.admin_api_key"), Some(9))
    );
    let (id, first) = (
        made["id"].as_str().unwrap(),
        PlainKey::new(made["value"].as_str().unwrap()),
    );
    let path = format!("/v1/admin/keys/{id}");
    assert_eq!(server.send("GET", "/v1/models", &first, "").await.status, 200);
    let shown = server.send("GET", &path, admin, "").await;
    assert!(!shown.body.contains(first.expose()) && shown.json().get("value").is_none());
    let list = server
        .send("GET", "/v1/admin/keys?limit=1", admin, "")
        .await
        .json();
    assert_eq!(
        (list["object"].as_str(), list["has_more"].as_bool()),
        (Some("list"), Some(true))
    );
    let next = format!("/v1/admin/keys?after={}", list["last_id"].as_str().unwrap());
    let next = server.send("GET", &next, admin, "").await.json();
    let mut listed = [&list["first_id"], &next["first_id"]].map(|id| id.as_str().unwrap());
    listed.sort_unstable();
    let first_key = crate::keys::parse(admin.expose()).unwrap().id;
    let mut there = [id, first_key.as_str()];
    there.sort_unstable();
    assert_eq!(listed, there, "each key is on one page");

    let rotated = server
        .send(
            "POST",
            &format!("{path}/rotate"),
            admin,
            r#"{"grace_period_seconds":60}"#,
        )
        .await
        .json();
    let second = PlainKey::new(rotated["value"].as_str().unwrap());
    assert_eq!(rotated["id"], id);
    for key in [&first, &second] {
        assert_eq!(server.send("GET", "/v1/models", key, "").await.status, 200);
    }
    server
        .send(
            "POST",
            &format!("{path}/rotate"),
            admin,
            r#"{"grace_period_seconds":0}"#,
        )
        .await;
    assert_eq!(server.send("GET", "/v1/models", &second, "").await.status, 401);

    let changed = server
        .send(
            "PATCH",
            &path,
            admin,
            r#"{"requests_per_minute":null,"name":"cd"}"#,
        )
        .await
        .json();
    assert_eq!(
        (changed["requests_per_minute"].clone(), changed["name"].as_str()),
        (Value::Null, Some("cd")),
        "{changed}"
    );
    assert_eq!(
        server
            .send("POST", &format!("{path}/disable"), admin, "")
            .await
            .json()["enabled"],
        false
    );
    assert_eq!(
        server
            .send("POST", &format!("{path}/enable"), admin, "")
            .await
            .json()["enabled"],
        true
    );
    let call = tidegate_core::usage::Usage {
        input_tokens: 2,
        output_tokens: 3,
        ..Default::default()
    };
    server.spend(&first, call);
    let usage = server
        .send("GET", &format!("{path}/usage"), admin, "")
        .await
        .json();
    assert_eq!(
        usage["data"][0],
        json!({"object": "key.usage.day", "date": "2027-01-15", "model_calls": 1,
        "input_tokens": 2, "output_tokens": 3, "estimated_tokens": 0})
    );
    assert_eq!(
        server.send("DELETE", &path, admin, "").await.json()["deleted"],
        true
    );
    assert_eq!(server.send("GET", &path, admin, "").await.status, 404);

    let own = format!(
        "/v1/admin/keys/{}",
        crate::keys::parse(admin.expose()).unwrap().id
    );
    for (method, path, body) in [
        ("DELETE", own.clone(), ""),
        ("POST", format!("{own}/disable"), ""),
        ("PATCH", own.clone(), r#"{"scopes":["chat"]}"#),
    ] {
        assert_eq!(
            server.send(method, &path, admin, body).await.status,
            400,
            "{method} {path}"
        );
    }
    assert_eq!(server.send("GET", &own, admin, "").await.status, 200);
}

/// The command line may disable a key while a request is about to change it.
#[tokio::test]
async fn a_change_from_outside_is_not_undone() {
    let server = Server::start(Options::default()).await;
    let key = server.add_key(|_| ()).await;
    let path = format!("/v1/admin/keys/{}", crate::keys::parse(key.expose()).unwrap().id);
    let rename = r#"{"name":"renamed"}"#;
    let meanwhile = |changes: usize| {
        let change: fn(&mut KeyPolicy) = |policy| {
            policy.enabled = false;
            policy.requests_per_minute = Some(policy.requests_per_minute.unwrap_or(0) + 1);
        };
        *server.keys.meanwhile.lock().unwrap() = vec![change; changes];
    };
    meanwhile(7);
    let changed = server.send("PATCH", &path, &server.admin, rename).await.json();
    assert_eq!(
        (
            changed["name"].as_str(),
            changed["enabled"].as_bool(),
            changed["requests_per_minute"].as_u64()
        ),
        (Some("renamed"), Some(false), Some(7))
    );
    assert_eq!(server.send("GET", "/v1/models", &key, "").await.status, 401);

    meanwhile(100);
    let refused = server
        .send("PATCH", &path, &server.admin, r#"{"name":"again"}"#)
        .await;
    assert_eq!(refused.status, 500);
    assert!(refused.body.contains("kept changing"), "{}", refused.body);
    assert_eq!(server.keys.meanwhile.lock().unwrap().len(), 92, "it gives up");
    meanwhile(0);
    let shown = server.send("GET", &path, &server.admin, "").await.json();
    assert_eq!(shown["name"], "renamed");
}

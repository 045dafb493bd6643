//! The life of a key, as its owner feels it: every change holds from the next request on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon, outcome};

const SOON: Duration = Duration::from_secs(20);

/// The public id inside a raw key.
pub(crate) fn id_of(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

async fn models(daemon: &Daemon, key: &str) -> Answer {
    Answer::of(
        daemon
            .ask("GET", "/v1/models")
            .bearer_auth(key)
            .send()
            .await
            .unwrap(),
    )
    .await
}

async fn wait_refused(daemon: &Daemon, key: &str) {
    let deadline = Instant::now() + SOON;
    while models(daemon, key).await.status != 401 {
        assert!(Instant::now() < deadline, "the key still opens");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn revoking_disabling_and_enabling_hold_from_the_next_request_on() {
    let daemon = Daemon::start().await;
    let key = daemon.make_key(json!({"name": "k", "scopes": ["chat"]})).await;
    let path = format!("/v1/admin/keys/{}", id_of(&key));
    assert_eq!(models(&daemon, &key).await.status, 200);
    assert_eq!(
        daemon
            .admin("POST", &format!("{path}/disable"), Value::Null)
            .await
            .0,
        200
    );
    models(&daemon, &key).await.assert_error(401, "invalid_api_key");
    assert_eq!(
        daemon
            .admin("POST", &format!("{path}/enable"), Value::Null)
            .await
            .0,
        200
    );
    assert_eq!(models(&daemon, &key).await.status, 200);
    assert_eq!(daemon.admin("DELETE", &path, Value::Null).await.0, 200);
    models(&daemon, &key).await.assert_error(401, "invalid_api_key");
    assert_eq!(daemon.admin("GET", &path, Value::Null).await.0, 404);
}

#[tokio::test]
async fn the_command_line_revokes_disables_and_rotates_under_a_running_daemon() {
    let daemon = Daemon::start().await;
    let key = daemon.make_key(json!({"name": "k", "scopes": ["chat"]})).await;
    let id = id_of(&key);
    let run = |arguments: &[&str]| {
        let (code, stdout, stderr) = outcome(&daemon.run(arguments));
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
        stdout
    };
    assert_eq!(models(&daemon, &key).await.status, 200);
    run(&["keys", "disable", id]);
    models(&daemon, &key).await.assert_error(401, "invalid_api_key");
    run(&["keys", "enable", id]);
    assert_eq!(models(&daemon, &key).await.status, 200);
    let rotated: Value =
        serde_json::from_str(&run(&["keys", "rotate", id, "--grace", "0s", "--json"])).unwrap();
    let renewed = rotated["key"].as_str().unwrap();
    models(&daemon, &key).await.assert_error(401, "invalid_api_key");
    assert_eq!(models(&daemon, renewed).await.status, 200);
    run(&["keys", "revoke", id]);
    models(&daemon, renewed)
        .await
        .assert_error(401, "invalid_api_key");
    let created: Value = serde_json::from_str(&run(&[
        "keys", "create", "--name", "new", "--scope", "chat", "--json",
    ]))
    .unwrap();
    assert_eq!(
        models(&daemon, created["key"].as_str().unwrap()).await.status,
        200
    );
}

#[tokio::test]
async fn a_rotated_key_keeps_its_id_and_its_old_secret_only_for_the_grace_time() {
    let daemon = Daemon::start().await;
    let old = daemon.make_key(json!({"name": "k", "scopes": ["chat"]})).await;
    let path = format!("/v1/admin/keys/{}/rotate", id_of(&old));
    let (status, body) = daemon
        .admin("POST", &path, json!({"grace_period_seconds": 3600}))
        .await;
    assert_eq!(status, 200, "{body}");
    let new = body["value"].as_str().unwrap();
    assert_eq!(id_of(new), id_of(&old));
    assert_ne!(new, old);
    assert!(body["previous_valid_until"].as_i64().unwrap() > body["created_at"].as_i64().unwrap() + 3000);
    assert_eq!(
        (
            models(&daemon, new).await.status,
            models(&daemon, &old).await.status
        ),
        (200, 200)
    );
    // A second rotation, with a short time: the first secret is out at once, the second one soon.
    let (_, body) = daemon
        .admin("POST", &path, json!({"grace_period_seconds": 1}))
        .await;
    let newest = body["value"].as_str().unwrap();
    models(&daemon, &old).await.assert_error(401, "invalid_api_key");
    wait_refused(&daemon, new).await;
    assert_eq!(models(&daemon, newest).await.status, 200);
    let (_, body) = daemon
        .admin("POST", &path, json!({"grace_period_seconds": 0}))
        .await;
    models(&daemon, newest).await.assert_error(401, "invalid_api_key");
    assert_eq!(models(&daemon, body["value"].as_str().unwrap()).await.status, 200);
}

#[tokio::test]
async fn a_key_ends_when_it_expires() {
    let daemon = Daemon::start().await;
    let long = daemon
        .make_key(json!({"name": "l", "scopes": ["chat"], "expires_in_seconds": 3600}))
        .await;
    let short = daemon
        .make_key(json!({"name": "s", "scopes": ["chat"], "expires_in_seconds": 1}))
        .await;
    wait_refused(&daemon, &short).await;
    assert_eq!(models(&daemon, &long).await.status, 200);
    let (_, body) = daemon.get(&format!("/v1/admin/keys/{}", id_of(&short))).await;
    assert_eq!(
        body["expires_at"].as_i64().unwrap() - body["created_at"].as_i64().unwrap(),
        1,
        "{body}"
    );
}

#[tokio::test]
async fn requests_a_minute_are_counted_shown_and_refused() {
    let daemon = Daemon::start().await;
    let key = daemon
        .make_key(json!({"name": "k", "scopes": ["chat"], "requests_per_minute": 2}))
        .await;
    for remaining in ["1", "0"] {
        let answer = models(&daemon, &key).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-ratelimit-limit-requests"), "2");
        assert_eq!(answer.header("x-ratelimit-remaining-requests"), remaining);
        assert!(answer.header("x-ratelimit-reset-requests").ends_with('s'));
    }
    let refused = Chat::new(&daemon, "hello there").key(&key).send().await;
    let body = refused.assert_error(429, "rate_limit_exceeded");
    assert_eq!(body["error"]["type"], "requests");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(
        daemon.upstream.chats().is_empty(),
        "a refused request costs nothing"
    );
    assert_eq!(
        Chat::new(&daemon, "hello there").send().await.status,
        200,
        "another key is not touched"
    );
}

#[tokio::test]
async fn a_spent_quota_is_refused_for_good_and_costs_nothing_more() {
    let daemon = Daemon::start().await;
    daemon.upstream.always(Reply::text("hello").usage(60, 50));
    let key = daemon
        .make_key(json!({"name": "k", "scopes": ["chat"], "tokens_per_day": 100}))
        .await;
    assert_eq!(
        Chat::new(&daemon, "hello there").key(&key).send().await.content(),
        "hello"
    );
    for stream in [false, true] {
        let chat = Chat::new(&daemon, "hello there")
            .key(&key)
            .with("stream", json!(stream));
        let refused = chat.send().await;
        let body = refused.assert_error(429, "insufficient_quota");
        assert_eq!(body["error"]["type"], "insufficient_quota");
        assert_eq!(refused.header("x-should-retry"), "false");
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=90_000).contains(&wait), "{wait}");
    }
    assert_eq!(
        daemon.upstream.chats().len(),
        1,
        "a refused request asks no model"
    );
    let deadline = Instant::now() + SOON;
    loop {
        let (status, usage) = daemon.get(&format!("/v1/admin/keys/{}/usage", id_of(&key))).await;
        assert_eq!(status, 200, "{usage}");
        let day = &usage["data"][0];
        if day["model_calls"] == 1 {
            assert_eq!(
                (&day["input_tokens"], &day["output_tokens"]),
                (&json!(60), &json!(50)),
                "{usage}"
            );
            break;
        }
        assert!(Instant::now() < deadline, "{usage}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        models(&daemon, &key).await.status,
        200,
        "what spends nothing is still served"
    );
    // A raised quota holds at once.
    let path = format!("/v1/admin/keys/{}", id_of(&key));
    assert_eq!(
        daemon
            .admin("PATCH", &path, json!({"tokens_per_day": 100_000}))
            .await
            .0,
        200
    );
    assert_eq!(
        Chat::new(&daemon, "hello there").key(&key).send().await.status,
        200
    );
}

#[tokio::test]
async fn a_key_uses_the_models_of_its_list_alone() {
    let daemon = Daemon::start().await;
    let key = daemon
        .make_key(json!({"name": "k", "scopes": ["chat"], "models": ["scripted"]}))
        .await;
    let named = |model: &str| {
        Chat::new(&daemon, "hello there")
            .key(&key)
            .with("model", json!(model))
            .send()
    };
    assert_eq!(named("scripted").await.status, 200);
    for other in ["tidegate", "gpt-5", "scripted2", "SCRIPTED"] {
        let body = named(other).await.assert_error(404, "model_not_found");
        assert_eq!(body["error"]["param"], "model", "{body}");
    }
    assert_eq!(daemon.upstream.chats().len(), 1);
}

#[tokio::test]
async fn a_run_is_shown_to_its_own_key_alone() {
    let daemon = Daemon::start().await;
    let mine = daemon.make_key(json!({"name": "m", "scopes": ["chat"]})).await;
    let other = daemon
        .make_key(json!({"name": "o", "scopes": ["chat", "tools"]}))
        .await;
    let answer = Chat::new(&daemon, "hello there")
        .key(&mine)
        .with("user", json!("ann"))
        .send()
        .await;
    let path = format!("/v1/runs/{}", answer.header("x-run-id"));
    let show =
        async |key: &str| Answer::of(daemon.ask("GET", &path).bearer_auth(key).send().await.unwrap()).await;
    let shown = show(&mine).await.json();
    assert_eq!(shown["status"], "completed", "{shown}");
    assert_eq!(
        shown["user"],
        format!("{}:ann", id_of(&mine)),
        "the user lives behind the key"
    );
    assert_eq!(shown["request_id"], answer.header("x-request-id"));
    for key in [&other, &daemon.key] {
        show(key).await.assert_error(404, "not_found");
    }
}

//! Who is let in: before the body, on every route, in every spelling.

use serde_json::{Value, json};

use crate::support::{Answer, Chat, Daemon, Raw};

/// Routes that need no key.
const PUBLIC: [&str; 3] = ["/health", "/health/live", "/health/ready"];
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

fn assert_refused(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 401, "{what}: {}", answer.text);
    assert_eq!(answer.header("www-authenticate"), "Bearer", "{what}");
    assert!(!answer.header("x-request-id").is_empty(), "{what}");
    let body = answer.json();
    assert_eq!(body["error"]["code"], "invalid_api_key", "{what}: {body}");
    assert_eq!(body["error"]["type"], "invalid_request_error", "{what}: {body}");
    assert_eq!(body["error"]["param"], Value::Null, "{what}: {body}");
}

#[tokio::test]
async fn every_documented_path_and_method_asks_for_a_key() {
    let daemon = Daemon::start().await;
    let (status, document) = daemon.get("/openapi.json").await;
    assert_eq!(status, 200);
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 8, "{paths:?}");
    for path in paths.keys() {
        let filled = path.replace("{id}", "abc").replace("{model}", "abc");
        for method in METHODS {
            let what = format!("{method} {path}");
            let answer = Answer::of(daemon.ask(method, &filled).send().await.unwrap()).await;
            if !PUBLIC.contains(&path.as_str()) {
                assert_refused(&answer, &what);
            } else if method == "GET" {
                assert_eq!(answer.status, 200, "{what}");
            } else {
                answer.assert_error(405, "method_not_supported");
            }
        }
    }
}

#[tokio::test]
async fn every_documented_path_and_method_is_there() {
    let daemon = Daemon::start().await;
    let (_, document) = daemon.get("/openapi.json").await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let filled = path.replace("{id}", "abc").replace("{model}", "scripted");
        for method in METHODS {
            let request = daemon.ask(method, &filled).bearer_auth(&daemon.key);
            let answer = Answer::of(request.send().await.unwrap()).await;
            let is_documented = methods.get(method.to_lowercase()).is_some();
            assert_eq!(
                answer.status != 405,
                is_documented,
                "{method} {path}: {}",
                answer.text
            );
            assert!(
                !answer.text.contains("unknown_url"),
                "{method} {path}: {}",
                answer.text
            );
        }
    }
}

#[tokio::test]
async fn what_does_not_exist_asks_for_a_key_too() {
    let daemon = Daemon::start().await;
    for path in [
        "/",
        "/nothing",
        "/v1",
        "/v1/nothing",
        "/v1/chat",
        "/health/",
        "/health/deep",
        "/metrics",
        "/docs/x",
        "/v1/admin/keys/a/b/c",
        "/v1/health",
        "//health//x",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let answer = Answer::of(daemon.ask(method, path).send().await.unwrap()).await;
            // A trailing slash is the same public route.
            if path == "/health/" {
                assert_eq!(answer.status, if method == "GET" { 200 } else { 405 });
            } else {
                assert_refused(&answer, &format!("{method} {path}"));
            }
        }
    }
}

#[tokio::test]
async fn a_request_without_a_key_is_answered_before_its_body() {
    let daemon = Daemon::start().await;
    for length in ["content-length: 1000000000", "transfer-encoding: chunked"] {
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{length}\r\n\r\n");
        let answer = Raw::send(&daemon.address(), head.as_bytes()).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (401, "invalid_api_key"),
            "{length}"
        );
    }
    assert!(daemon.upstream.chats().is_empty());
}

#[tokio::test]
async fn a_key_is_taken_in_each_of_its_headers_and_only_once() {
    let daemon = Daemon::start().await;
    let key = daemon.key.as_str();
    for (name, value) in [
        ("authorization", format!("Bearer {key}")),
        ("authorization", format!("bearer   {key}  ")),
        ("authorization", format!("BEARER\t{key}")),
        ("api-key", key.to_owned()),
        ("x-api-key", key.to_owned()),
    ] {
        let answer = daemon
            .ask("GET", "/v1/models")
            .header(name, &value)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200, "{name}");
    }
    let bearer = format!("Bearer {key}");
    for pair in [
        ["authorization", "authorization"],
        ["authorization", "api-key"],
        ["api-key", "x-api-key"],
    ] {
        let request = daemon
            .ask("GET", "/v1/models")
            .header(pair[0], &bearer)
            .header(pair[1], &bearer);
        Answer::of(request.send().await.unwrap())
            .await
            .assert_error(400, "invalid_request");
    }
}

#[tokio::test]
async fn what_is_no_key_of_ours_opens_nothing() {
    let daemon = Daemon::start().await;
    let key = daemon.key.as_str();
    let strange = tidegate::keys::generate(&tidegate::clock::OsEntropy)
        .1
        .expose()
        .to_owned();
    // A known id with the secret of another key.
    let crossed = format!("{}{}", &key[..16], &strange[16..]);
    let mut mistyped = key.to_owned();
    let last = mistyped.pop().unwrap();
    mistyped.push(if last == 'a' { 'b' } else { 'a' });
    for given in [
        "",
        "tg_",
        "sk-proj-abc",
        &key[..key.len() - 1],
        &format!("{key}a"),
        &key.to_uppercase(),
        &mistyped,
        &strange,
        &crossed,
        &format!("\"{key}\""),
        &format!("{key},{key}"),
        &format!("{key} {key}"),
        &"a".repeat(20_000),
    ] {
        let what = given.chars().take(30).collect::<String>();
        let request = daemon
            .ask("GET", "/v1/models")
            .header("authorization", format!("Bearer {given}"));
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_refused(&answer, &what);
        assert!(
            given.len() < 20 || !answer.text.contains(given),
            "the answer repeats what was sent"
        );
    }
    for (name, value) in [
        ("authorization", format!("Basic {key}")),
        ("authorization", format!("Token {key}")),
        ("authorization", key.to_owned()),
        ("cookie", format!("api-key={key}")),
        ("proxy-authorization", format!("Bearer {key}")),
    ] {
        let request = daemon.ask("GET", "/v1/models").header(name, &value);
        assert_refused(&Answer::of(request.send().await.unwrap()).await, name);
    }
    for parameter in ["api_key", "api-key", "key", "access_token"] {
        let request = daemon.ask("GET", &format!("/v1/models?{parameter}={key}"));
        assert_refused(&Answer::of(request.send().await.unwrap()).await, parameter);
    }
}

#[tokio::test]
async fn scopes_open_what_they_name() {
    let daemon = Daemon::start().await;
    let chat = daemon.make_key(json!({"name": "c", "scopes": ["chat"]})).await;
    let tools = daemon.make_key(json!({"name": "t", "scopes": ["tools"]})).await;
    let admin = daemon.make_key(json!({"name": "a", "scopes": ["admin"]})).await;
    for (name, key, may_chat, may_administer) in [
        ("chat", chat, true, false),
        ("tools", tools, true, false),
        ("admin", admin, false, true),
    ] {
        let answer = Chat::new(&daemon, "add the numbers").key(&key).send().await;
        if may_chat {
            assert_eq!(answer.content(), "hello");
            let offered = daemon.upstream.chats().pop().unwrap().get("tools").is_some();
            assert_eq!(
                offered,
                name == "tools",
                "tools are offered to the scope `tools` alone"
            );
        } else {
            let body = answer.assert_error(403, "insufficient_permissions");
            assert_eq!(body["error"]["type"], "permission_error");
        }
        let answer = daemon
            .ask("GET", "/v1/admin/keys")
            .bearer_auth(&key)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), if may_administer { 200 } else { 403 }, "{name}");
        for open in ["/v1/models", "/openapi.json", "/docs"] {
            let answer = daemon.ask("GET", open).bearer_auth(&key).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{name}: {open} is behind any valid key");
        }
    }
}

#[tokio::test]
async fn a_key_is_offered_the_tools_of_its_list_alone() {
    let daemon = Daemon::start().await;
    let key = json!({"name": "t", "scopes": ["tools"], "tools": ["calculate", "no_such_tool"]});
    let key = daemon.make_key(key).await;
    let answer = Chat::new(&daemon, "add the numbers").key(&key).send().await;
    assert_eq!(answer.content(), "hello");
    let sent = daemon.upstream.chats().pop().unwrap();
    let names: Vec<&Value> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["calculate"]);
}

#[tokio::test]
async fn a_mode_header_is_one_of_the_modes() {
    let daemon = Daemon::start().await;
    for (mode, status) in [
        ("plan-only", 200),
        ("readonly", 200),
        ("full-auto", 200),
        ("root", 400),
        ("", 400),
    ] {
        let answer = Chat::new(&daemon, "hello there")
            .header("x-tidegate-mode", mode)
            .send()
            .await;
        assert_eq!(answer.status, status, "{mode}: {}", answer.text);
    }
    let twice = Chat::new(&daemon, "hello there").header("x-tidegate-mode", "readonly");
    twice
        .header("x-tidegate-mode", "full-auto")
        .send()
        .await
        .assert_error(400, "invalid_request");
}

//! The form of approvals on the wire: what is refused, how lists are paged, and what a key may see.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon};

/// Puts so many questions, each of another file.
async fn ask(daemon: &Daemon, key: &str, count: usize) {
    for number in 0..count {
        let arguments = json!({"path": format!("plan-{number}.md"), "content": "x"});
        daemon
            .upstream
            .push(Reply::text("").call("w", "write_file", arguments));
        daemon.upstream.push(Reply::text("done"));
        Chat::new(daemon, "save it").key(key).send().await.content();
    }
}

fn ids(list: &Value) -> Vec<String> {
    let data = list["data"].as_array().unwrap();
    data.iter()
        .map(|approval| approval["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn bad_ids_and_bad_answers_are_refused_and_change_nothing() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    ask(&daemon, &key, 1).await;
    let (_, list) = daemon.get("/v1/approvals").await;
    let id = ids(&list)[0].clone();
    let long = "appr_".repeat(40);
    for (bad, expected) in [
        ("appr_0000000000000000000000000", 404),
        ("appr_nothing", 404),
        ("run_1", 400),
        ("appr_%00", 400),
        ("appr_'%20or%201=1--", 400),
        ("%2e%2e%2f", 400),
        (long.as_str(), 400),
        // Another address altogether.
        ("..", 404),
    ] {
        for (method, path, body) in [
            ("GET", format!("/v1/approvals/{bad}"), Value::Null),
            (
                "POST",
                format!("/v1/approvals/{bad}/decision"),
                json!({"decision": "approve"}),
            ),
        ] {
            let (status, answer) = daemon.admin(method, &path, body).await;
            assert_eq!(status, expected, "{path}: {answer}");
            assert!(answer["error"]["message"].is_string(), "{path}: {answer}");
        }
    }
    let path = format!("/v1/approvals/{id}/decision");
    for (body, status, code) in [
        (json!({"decision": "maybe"}), 400, "invalid_value"),
        (json!({"decision": ""}), 400, "invalid_value"),
        (json!({"decision": true}), 400, ""),
        (json!({"decision": ["approve"]}), 400, ""),
        (json!({}), 400, ""),
        (
            json!({"decision": "approve", "scope": "all"}),
            400,
            "unknown_parameter",
        ),
        (json!([]), 400, ""),
    ] {
        let (found, answer) = daemon.admin("POST", &path, body.clone()).await;
        assert_eq!(found, status, "{body}: {answer}");
        assert!(answer["error"]["message"].is_string(), "{body}: {answer}");
        if !code.is_empty() {
            assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
        }
    }
    let (status, _) = daemon.admin("GET", &path, Value::Null).await;
    assert_eq!(status, 405);
    let (_, shown) = daemon.get(&format!("/v1/approvals/{id}")).await;
    assert_eq!(
        (&shown["status"], &shown["decided_by"]),
        (&json!("pending"), &Value::Null)
    );
    for body in ["", "{", "null", "{\"decision\":\"approve\"} x"] {
        let request = daemon.ask("POST", &path).bearer_auth(&daemon.key);
        let answer = request
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 400, "{body}");
    }
}

#[tokio::test]
async fn an_approval_has_this_form() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    ask(&daemon, &key, 1).await;
    let (_, list) = daemon.get("/v1/approvals").await;
    let approval = &list["data"][0];
    let names: Vec<&str> = approval.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "id",
            "object",
            "status",
            "tool",
            "summary",
            "arguments",
            "reasons",
            "mode",
            "key_id",
            "user",
            "run_id",
            "created_at",
            "expires_at",
            "decided_by",
            "decided_at",
        ]
    );
    assert_eq!(
        (&approval["object"], &approval["mode"]),
        (&json!("approval"), &json!("readonly"))
    );
    assert_eq!(approval["reasons"], json!(["readonly"]));
    let left = approval["expires_at"].as_i64().unwrap() - approval["created_at"].as_i64().unwrap();
    assert_eq!(left, 300);
    let arguments: Value = serde_json::from_str(approval["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["path"], "plan-0.md");
    // Every route is also there without `/v1`.
    let (status, same) = daemon.get(&format!("/approvals/{}", ids(&list)[0])).await;
    assert_eq!((status, &same), (200, approval));
}

#[tokio::test]
async fn lists_are_paged_newest_first_and_filtered() {
    let daemon = Daemon::start().await;
    let key = daemon.key.clone();
    ask(&daemon, &key, 5).await;
    let (_, all) = daemon.get("/v1/approvals").await;
    let all_ids = ids(&all);
    assert_eq!((all_ids.len(), &all["has_more"]), (5, &json!(false)));
    assert!(
        all["data"][0]["arguments"].as_str().unwrap().contains("plan-4"),
        "{all}"
    );
    let mut seen = Vec::new();
    let mut path = "/v1/approvals?limit=2".to_owned();
    loop {
        let (status, page) = daemon.get(&path).await;
        assert_eq!(status, 200, "{page}");
        seen.extend(ids(&page));
        assert_eq!(page["first_id"], json!(ids(&page)[0]));
        if page["has_more"] == false {
            break;
        }
        path = format!(
            "/v1/approvals?limit=2&after={}",
            page["last_id"].as_str().unwrap()
        );
    }
    assert_eq!(seen, all_ids);

    let decision = format!("/v1/approvals/{}/decision", all_ids[1]);
    assert_eq!(
        daemon
            .admin("POST", &decision, json!({"decision": "deny"}))
            .await
            .0,
        200
    );
    let by = |status: &str| format!("/v1/approvals?status={status}");
    assert_eq!(ids(&daemon.get(&by("denied")).await.1), [all_ids[1].clone()]);
    assert_eq!(ids(&daemon.get(&by("pending")).await.1).len(), 4);
    assert_eq!(ids(&daemon.get(&by("consumed")).await.1), Vec::<String>::new());
    for query in [
        "status=open",
        "status=",
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=many",
        "user=ann",
        "limit=1&limit=2",
    ] {
        let (status, answer) = daemon.get(&format!("/v1/approvals?{query}")).await;
        assert_eq!(status, 400, "{query}: {answer}");
        assert!(answer["error"]["message"].is_string(), "{query}: {answer}");
    }
    let (status, nothing) = daemon.get("/v1/approvals?after=appr_nothing").await;
    assert_eq!((status, ids(&nothing).is_empty()), (200, true), "{nothing}");
}

#[tokio::test]
async fn a_key_sees_its_own_and_the_requester_may_not_answer_itself() {
    let daemon = Daemon::start().await;
    let scopes = |name: &str, scopes: Value| daemon.make_key(json!({"name": name, "scopes": scopes}));
    let asker = scopes("asker", json!(["chat", "tools", "approvals:read"])).await;
    let judge = scopes("judge", json!(["approvals:read", "approvals:decide:any"])).await;
    let both = scopes("both", json!(["tools", "approvals:read", "approvals:decide:any"])).await;
    let itself = scopes(
        "itself",
        json!(["tools", "approvals:read", "approvals:decide:own"]),
    )
    .await;
    ask(&daemon, &asker, 1).await;
    ask(&daemon, &both, 1).await;
    ask(&daemon, &itself, 1).await;
    let list = |key: String| {
        let request = daemon.ask("GET", "/v1/approvals").bearer_auth(key);
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let (own, foreign) = (ids(&list(asker.clone()).await), ids(&list(judge.clone()).await));
    assert_eq!((own.len(), foreign.len()), (1, 3));
    let decide = |key: &str, id: &str| {
        let path = format!("/v1/approvals/{id}/decision");
        let request = daemon
            .ask("POST", &path)
            .bearer_auth(key)
            .json(&json!({"decision": "approve"}));
        async move { request.send().await.unwrap().status().as_u16() }
    };
    let of = |list: &Value, name: &str| {
        let data = list["data"].as_array().unwrap();
        let found = data
            .iter()
            .find(|approval| name.contains(approval["key_id"].as_str().unwrap()));
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let seen = list(judge.clone()).await;
    assert_eq!(decide(&asker, &own[0]).await, 403, "no scope to decide");
    assert_eq!(
        decide(&both, &of(&seen, &both)).await,
        403,
        "its own, without the scope for that"
    );
    assert_eq!(decide(&both, &own[0]).await, 200, "somebody else's");
    assert_eq!(
        decide(&itself, &of(&seen, &itself)).await,
        200,
        "its own, with the scope"
    );
    assert_eq!(
        decide(&itself, &of(&seen, &both)).await,
        404,
        "another key's does not exist for it"
    );
    assert_eq!(decide(&judge, &of(&seen, &both)).await, 200);
}

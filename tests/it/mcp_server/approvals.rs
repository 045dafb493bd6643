//! Calls that need a person.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use serde_json::{Value, json};
use tidegate_testkit::Reply;
use tokio::sync::Notify;

use super::client::{GENERATIONS, Generation, Person, call, connect, text, try_call};
use crate::support::{Daemon, Setup};

const WRITES: &str = "[mcp_server]\nallow_writes = true";

async fn asking_key(daemon: &Daemon, scopes: &[&str]) -> String {
    daemon
        .make_key(json!({"name": "careful", "scopes": scopes, "mode_ceiling": "readonly"}))
        .await
}

fn plan(name: &str) -> Value {
    json!({"path": name, "content": "first"})
}

#[tokio::test]
async fn the_person_at_the_client_says_yes_and_exactly_that_call_runs() {
    let daemon = Setup::default().config(WRITES).start().await;
    let key = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    for generation in GENERATIONS {
        let person = Person::who_says(true);
        let client = connect(&daemon, &key, person.clone(), generation).await;
        let name = format!("plan-{generation:?}.md");
        let result = call(&client, "write_file", plan(&name)).await;
        assert_eq!(result.is_error, Some(false), "{generation:?}: {result:?}");
        assert_eq!(daemon.read(&format!("knowledge-bank/{name}")), "first");
        let asked = person.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(
            asked[0].contains("write_file") && asked[0].contains(&name),
            "{asked:?}"
        );
    }
    let audit = daemon.read("logs/audit.jsonl");
    assert_eq!(
        audit.matches("\"event\":\"approval_decided\"").count(),
        2,
        "{audit}"
    );
}

#[tokio::test]
async fn the_person_at_the_client_says_no_and_nothing_runs() {
    let daemon = Setup::default().config(WRITES).start().await;
    let key = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    for generation in GENERATIONS {
        let person = Person::who_says(false);
        let client = connect(&daemon, &key, person.clone(), generation).await;
        let name = format!("plan-{generation:?}.md");
        let refused = call(&client, "write_file", plan(&name)).await;
        assert_eq!(refused.is_error, Some(true), "{generation:?}: {refused:?}");
        assert!(text(&refused).contains("said no"), "{refused:?}");
        assert!(!daemon.path(&format!("knowledge-bank/{name}")).exists());
        assert_eq!(person.asked().len(), 1, "{generation:?}");
    }
}

/// The agent writes a plan, and says how it went.
fn script(daemon: &Daemon, name: &str) {
    daemon
        .upstream
        .push(Reply::text("").call("w", "write_file", plan(name)));
    daemon.upstream.push(Reply::text("That is how it went."));
}

#[tokio::test]
async fn the_agents_own_calls_are_put_to_the_person_and_the_same_run_goes_on() {
    let daemon = Setup::default().config(WRITES).start().await;
    let key = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    for generation in GENERATIONS {
        for says in [true, false] {
            let person = Person::who_says(says);
            let client = connect(&daemon, &key, person.clone(), generation).await;
            let name = format!("plan-{generation:?}-{says}.md");
            script(&daemon, &name);
            let asked_before = daemon.upstream.chats().len();
            let result = call(&client, "ask_agent", json!({"question": "write the plan"})).await;
            assert_eq!(
                (text(&result).as_str(), result.is_error),
                ("That is how it went.", Some(false))
            );
            let details = result.structured_content.unwrap();
            assert_eq!(details.get("approvals"), None, "{details}");
            assert_eq!(person.asked().len(), 1, "{generation:?}");
            assert!(person.asked()[0].contains(&name), "{:?}", person.asked());
            assert_eq!(
                daemon.path(&format!("knowledge-bank/{name}")).exists(),
                says,
                "{generation:?}"
            );
            let chats = daemon.upstream.chats();
            assert_eq!(chats.len(), asked_before + 2, "one run, and its two rounds");
            let told = chats.last().unwrap()["messages"].to_string();
            assert_eq!(told.contains("said no"), !says, "{told}");
        }
    }
    let audit = daemon.read("logs/audit.jsonl");
    assert_eq!(
        audit.matches("\"event\":\"approval_decided\"").count(),
        4,
        "{audit}"
    );
}

#[tokio::test]
async fn where_nobody_can_be_asked_a_run_ends_and_says_how_to_approve() {
    let daemon = Setup::default().config(WRITES).start().await;
    let key = asking_key(&daemon, &["tools"]).await;
    for generation in GENERATIONS {
        let client = connect(&daemon, &key, Person::who_says(true), generation).await;
        let name = format!("plan-{generation:?}.md");
        let question = json!({"question": format!("write {name}")});
        script(&daemon, &name);
        let result = call(&client, "ask_agent", question.clone()).await;
        let details = result.structured_content.clone().unwrap();
        let id = details["approvals"][0]["approval_id"].as_str().unwrap();
        let said = serde_json::to_value(&result.content).unwrap().to_string();
        assert!(
            said.contains(&format!("tidegate approvals approve {id}")),
            "{said}"
        );
        let path = format!("/v1/approvals/{id}/decision");
        let (status, answer) = daemon.admin("POST", &path, json!({"decision": "approve"})).await;
        assert_eq!(status, 200, "{answer}");
        script(&daemon, &name);
        let result = call(&client, "ask_agent", question).await;
        assert_eq!(result.structured_content.unwrap().get("approvals"), None);
        assert_eq!(daemon.read(&format!("knowledge-bank/{name}")), "first");
    }
}

/// Of the newer generation a request ends with the question; somebody else brings an answer to it, and then nobody.
#[tokio::test]
async fn a_run_that_waits_is_its_askers_alone_and_waits_no_longer_than_it_should() {
    let daemon = Setup::default()
        .config("[engine]\nturns_per_key_max = 1\n[mcp_server]\nallow_writes = true\napproval_wait_s = 2")
        .start()
        .await;
    let scopes = ["tools", "approvals:decide:own"];
    let (key, stranger) = (
        asking_key(&daemon, &scopes).await,
        asking_key(&daemon, &scopes).await,
    );
    let person = Person::who_says(true);
    let client = connect(&daemon, &key, person.clone(), Generation::Newer).await;
    script(&daemon, "plan.md");
    let params = || {
        CallToolRequestParams::new("ask_agent").with_arguments(
            json!({"question": "write the plan"})
                .as_object()
                .cloned()
                .unwrap(),
        )
    };
    let CallToolResponse::InputRequired(required) = client.call_tool_once(params()).await.unwrap() else {
        panic!("it did not ask");
    };
    let answers = json!({"approve": {"action": "accept", "content": {"approve": true}}});
    let answered = || {
        let mut params = params().with_input_responses(serde_json::from_value(answers.clone()).unwrap());
        params.request_state.clone_from(&required.request_state);
        params
    };
    let other = connect(&daemon, &stranger, person, Generation::Newer).await;
    let told = other.call_tool_once(answered()).await.unwrap();
    assert!(format!("{told:?}").contains("is over"), "{told:?}");
    assert!(!daemon.path("knowledge-bank/plan.md").exists());
    // Nobody comes back; the run stops waiting, and gives back the key's one place.
    let deadline = Instant::now() + Duration::from_secs(30);
    while let Err(busy) = try_call(&client, "calculate", json!({"expression": "1"})).await {
        assert!(busy.contains("under way"), "{busy}");
        assert!(Instant::now() < deadline, "{busy}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let told = client.call_tool_once(answered()).await.unwrap();
    assert!(format!("{told:?}").contains("is over"), "{told:?}");
    assert!(!daemon.path("knowledge-bank/plan.md").exists());
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_refusal_says_how_to_approve() {
    let daemon = Setup::default().config(WRITES).start().await;
    let may_decide = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    let may_not = asking_key(&daemon, &["tools"]).await;
    for (key, person) in [
        (&may_decide, Person::default()),
        // A key that may not answer for itself is not asked through its own client.
        (&may_not, Person::who_says(true)),
    ] {
        let client = connect(&daemon, key, person.clone(), Generation::Older).await;
        let name = format!("plan-{}.md", &key[3..9]);
        let refused = call(&client, "write_file", plan(&name)).await;
        let details = refused.structured_content.clone().unwrap();
        let id = details["approval_id"].as_str().unwrap();
        assert_eq!(
            (refused.is_error, &details["status"]),
            (Some(true), &json!("needs_approval"))
        );
        let said = text(&refused);
        assert!(
            said.contains(&format!("tidegate approvals approve {id}")),
            "{said}"
        );
        assert!(
            said.contains(&format!("POST /v1/approvals/{id}/decision")),
            "{said}"
        );
        assert!(person.asked().is_empty());
        let path = format!("/v1/approvals/{id}/decision");
        let (status, answer) = daemon.admin("POST", &path, json!({"decision": "approve"})).await;
        assert_eq!(status, 200, "{answer}");
        let other = call(&client, "write_file", json!({"path": name, "content": "another"})).await;
        assert_eq!(other.is_error, Some(true), "the approval is of another call");
        let done = call(&client, "write_file", plan(&name)).await;
        assert_eq!(done.is_error, Some(false), "{done:?}");
        assert_eq!(daemon.read(&format!("knowledge-bank/{name}")), "first");
    }
}

#[tokio::test]
async fn a_forged_answer_decides_nothing() {
    let daemon = Setup::default().config(WRITES).start().await;
    let victim = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    let forger = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    let client = connect(&daemon, &victim, Person::default(), Generation::Newer).await;
    let waiting = call(&client, "write_file", plan("plan.md")).await;
    let id = waiting.structured_content.unwrap()["approval_id"].clone();
    let client = connect(&daemon, &forger, Person::default(), Generation::Newer).await;
    for state in [id.as_str().unwrap(), "appr_x", &"a".repeat(9000)] {
        let answers = json!({"approve": {"action": "accept", "content": {"approve": true}}});
        let mut params = rmcp::model::CallToolRequestParams::new("write_file")
            .with_arguments(plan("plan.md").as_object().cloned().unwrap())
            .with_input_responses(serde_json::from_value(answers).unwrap());
        params.request_state = Some(state.to_owned());
        let result = client.call_tool_once(params).await;
        drop(result);
    }
    let (_, shown) = daemon
        .get(&format!("/v1/approvals/{}", id.as_str().unwrap()))
        .await;
    assert_eq!(shown["status"], "pending", "{shown}");
    assert!(!daemon.path("knowledge-bank/plan.md").exists());
}

/// Whoever was asked, once the question is there.
async fn is_asked(person: &Person) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while person.asked().is_empty() {
        assert!(Instant::now() < deadline, "nobody was asked");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn who_thinks(thinks: &Arc<Notify>) -> Person {
    Person {
        thinks: Some(Arc::clone(thinks)),
        ..Person::who_says(true)
    }
}

#[tokio::test]
async fn while_a_person_thinks_everything_else_goes_on_and_the_call_waits_no_longer_than_it_should() {
    let daemon = Setup::default()
        .config("[mcp_server]\nallow_writes = true\napproval_wait_s = 3")
        .start()
        .await;
    let key = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    let person = who_thinks(&Arc::default());
    let client = connect(&daemon, &key, person.clone(), Generation::Older).await;
    let asking = call(&client, "write_file", plan("plan.md"));
    let meanwhile = async {
        is_asked(&person).await;
        for _ in 0..5 {
            let result = call(&client, "calculate", json!({"expression": "6*7"})).await;
            assert_eq!(text(&result), "42");
        }
        Instant::now()
    };
    let (refused, done) = tokio::join!(async { (asking.await, Instant::now()) }, meanwhile);
    assert!(done < refused.1, "nothing else waited");
    assert!(
        text(&refused.0).contains("tidegate approvals approve"),
        "{refused:?}"
    );
    assert!(!daemon.path("knowledge-bank/plan.md").exists());
}

#[tokio::test]
async fn an_answer_of_a_key_that_was_switched_off_meanwhile_is_none() {
    let daemon = Setup::default()
        .config("[mcp_server]\nallow_writes = true\napproval_wait_s = 3")
        .start()
        .await;
    let key = asking_key(&daemon, &["tools", "approvals:decide:own"]).await;
    let thinks = Arc::default();
    let person = who_thinks(&thinks);
    let client = connect(&daemon, &key, person.clone(), Generation::Older).await;
    let id = key.split('_').nth(1).unwrap().to_owned();
    let switched_off = async {
        is_asked(&person).await;
        let path = format!("/v1/admin/keys/{id}/disable");
        assert_eq!(daemon.admin("POST", &path, Value::Null).await.0, 200);
        thinks.notify_one();
    };
    let (result, ()) = tokio::join!(try_call(&client, "write_file", plan("plan.md")), switched_off);
    assert!(result.is_err() || result.is_ok_and(|result| result.is_error == Some(true)));
    assert!(!daemon.path("knowledge-bank/plan.md").exists());
    let audit = daemon.read("logs/audit.jsonl");
    assert!(!audit.contains("\"event\":\"approval_decided\""), "{audit}");
}

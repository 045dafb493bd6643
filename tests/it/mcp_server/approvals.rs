//! Calls that need a person.

use serde_json::{Value, json};

use super::client::{GENERATIONS, Generation, Person, call, connect, text};
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

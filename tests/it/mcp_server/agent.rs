//! `ask_agent`: whole runs.

use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use tidegate_testkit::Reply;

use super::client::{GENERATIONS, Generation, Person, call, connect, text, try_call};
use crate::support::{Chat, Daemon, Setup};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_run_answers_and_tells_of_its_steps() {
    let daemon = Daemon::start().await;
    for generation in GENERATIONS {
        daemon
            .upstream
            .push(Reply::text("").call("c", "calculate", json!({"expression": "6*7"})));
        daemon.upstream.push(Reply::text("It is 42."));
        let person = Person::default();
        let client = connect(&daemon, &daemon.key, person.clone(), generation).await;
        let result = call(
            &client,
            "ask_agent",
            json!({"question": "how much is six times seven?"}),
        )
        .await;
        assert_eq!(
            (text(&result).as_str(), result.is_error),
            ("It is 42.", Some(false))
        );
        let details = result.structured_content.unwrap();
        assert_eq!(
            (&details["answer"], &details["outcome"]),
            (&json!("It is 42."), &json!("answered"))
        );
        let (_, run) = daemon
            .get(&format!("/v1/runs/{}", details["run_id"].as_str().unwrap()))
            .await;
        assert_eq!(run["status"], "completed", "{run}");
        let told = person.told();
        for step in ["calling calculate", "calculate: ok", "answering"] {
            assert!(told.iter().any(|told| told == step), "{generation:?}: {told:?}");
        }
    }
}

/// What is said here is said by another program's model, whoever its key belongs to: it is no person's own words.
#[tokio::test]
async fn nothing_is_recalled_of_the_keys_user_and_nothing_learned() {
    let daemon = Setup::default()
        .config("[memory]\nextractor = \"rules\"")
        .start()
        .await;
    daemon.upstream.always(Reply::text("Noted."));
    let memory = async || {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let (status, memory) = daemon.get("/v1/memory").await;
            assert_eq!(status, 200, "{memory}");
            if memory["pending"] == 0 {
                return memory["data"].as_array().unwrap().clone();
            }
            assert!(std::time::Instant::now() < deadline, "{memory}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    for generation in GENERATIONS {
        let client = connect(&daemon, &daemon.key, Person::default(), generation).await;
        let question = "Remember that I teach 4th grade.";
        call(&client, "ask_agent", json!({"question": question})).await;
        assert!(memory().await.is_empty(), "{generation:?}");
    }
    // The same user, in person.
    Chat::new(&daemon, "Remember that I teach 4th grade.")
        .send()
        .await
        .content();
    assert_eq!(memory().await.len(), 1);
    Chat::new(&daemon, "How do I explain long division?")
        .send()
        .await
        .content();
    let prompt = || daemon.upstream.chats().last().unwrap()["messages"][0]["content"].to_string();
    assert!(prompt().contains("Notes about the user"), "{}", prompt());
    let client = connect(&daemon, &daemon.key, Person::default(), Generation::Newer).await;
    call(
        &client,
        "ask_agent",
        json!({"question": "How do I explain long division?"}),
    )
    .await;
    assert!(!prompt().contains("Notes about the user"), "{}", prompt());
    let plan = call(&client, "get_study_plan", json!({"subject": "Mathematics"})).await;
    assert!(!text(&plan).contains("4th"), "{plan:?}");
}

#[tokio::test]
async fn without_leave_to_write_a_run_cannot_even_ask_for_it() {
    let daemon = Daemon::start().await;
    let key = daemon.writer_key().await;
    daemon
        .upstream
        .push(Reply::text("").call("w", "write_file", json!({"path": "plan.md", "content": "x"})));
    daemon.upstream.push(Reply::text("I could not."));
    let client = connect(&daemon, &key, Person::default(), Generation::Newer).await;
    assert_eq!(
        text(&call(&client, "ask_agent", json!({"question": "save it"})).await),
        "I could not."
    );
    assert!(!daemon.path("knowledge-bank/plan.md").exists());
    assert!(daemon.read("logs/audit.jsonl").contains("plan_only"));
}

#[tokio::test]
async fn bad_questions_are_refused_before_a_model_is_asked() {
    let daemon = Daemon::start().await;
    let client = connect(&daemon, &daemon.key, Person::default(), Generation::Newer).await;
    for arguments in [
        json!({}),
        json!({"question": ""}),
        json!({"question": 7}),
        json!({"question": "x".repeat(200_001)}),
        json!({"question": "x", "model": ["a"]}),
    ] {
        assert!(try_call(&client, "ask_agent", arguments).await.is_err());
    }
    let unknown = call(
        &client,
        "ask_agent",
        json!({"question": "x", "model": "no-such-model"}),
    )
    .await;
    assert_eq!(unknown.is_error, Some(true), "{unknown:?}");
    assert!(daemon.upstream.chats().is_empty());
}

#[tokio::test]
async fn a_call_that_the_client_cancels_ends_its_run() {
    let daemon = Daemon::start().await;
    for generation in GENERATIONS {
        daemon.upstream.push(Reply::endless(2000));
        let client = connect(&daemon, &daemon.key, Person::default(), generation).await;
        let arguments = json!({"question": "tell me everything"});
        let params =
            CallToolRequestParams::new("ask_agent").with_arguments(arguments.as_object().cloned().unwrap());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = client
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .unwrap();
        assert!(daemon.upstream.wait_open(1, PATIENCE).await);
        handle.cancel(None).await.unwrap();
        assert!(
            daemon.upstream.wait_idle(PATIENCE).await,
            "{generation:?}: the model goes on"
        );
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn a_stop_ends_open_sessions_and_runs_in_time() {
    let mut daemon = Setup::default()
        .config("[server]\nstream_grace_ms = 200\ndrain_timeout_ms = 3000")
        .start()
        .await;
    daemon.upstream.push(Reply::endless(2000));
    let idle = connect(&daemon, &daemon.key, Person::default(), Generation::Older).await;
    let client = connect(&daemon, &daemon.key, Person::default(), Generation::Older).await;
    let asking = async {
        let ended = try_call(&client, "ask_agent", json!({"question": "tell me everything"})).await;
        assert!(ended.is_err(), "{ended:?}");
    };
    let stopping = async {
        let upstream_is_asked = daemon.upstream.wait_open(1, PATIENCE).await;
        assert!(upstream_is_asked);
    };
    let asking = Box::pin(asking);
    tokio::select! {
        () = stopping => {}
        () = asking => panic!("it ended before the stop"),
    }
    assert!(daemon.terminate(PATIENCE).await, "the process ends by itself");
    drop(idle);
}

//! kill -9 at any moment: keys, usage and run states are right afterwards.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

const SOON: Duration = Duration::from_secs(20);

/// The states of all runs, straight from the database's own command line view: the runs the client was told of.
async fn run_state(daemon: &Daemon, run: &str) -> Value {
    let (status, body) = daemon.get(&format!("/v1/runs/{run}")).await;
    assert_eq!(status, 200, "{body}");
    body
}

#[tokio::test]
async fn a_run_cut_in_its_model_call_is_interrupted_and_an_answered_one_is_completed() {
    let mut daemon = Daemon::start().await;
    let answered = Chat::new(&daemon, "hello there").send().await;
    let answered = answered.headers["x-run-id"].to_str().unwrap().to_owned();
    daemon.upstream.push(Reply::endless(100));
    let open = Chat::new(&daemon, "hello there").stream().open().await;
    let cut = open.headers()["x-run-id"].to_str().unwrap().to_owned();
    daemon.kill();
    drop(open);
    daemon.launch().await;
    assert_eq!(run_state(&daemon, &answered).await["status"], "completed");
    assert_eq!(run_state(&daemon, &cut).await["status"], "interrupted");
    assert_eq!(
        Chat::new(&daemon, "still there?").send().await.status,
        200,
        "the key still opens"
    );
}

#[tokio::test]
async fn a_run_that_was_cut_shows_what_it_has_cost() {
    let mut daemon = Daemon::start().await;
    daemon.upstream.push(
        Reply::text("")
            .call("a", "calculate", json!({"expression": "6*7"}))
            .usage(1_000, 50),
    );
    daemon.upstream.push(Reply::endless(100));
    let mut later = Chat::new(&daemon, "compute").stream().open().await;
    assert!(later.chunk().await.unwrap().is_some());
    let later_id = later.headers()["x-run-id"].to_str().unwrap().to_owned();
    assert!(daemon.upstream.wait_open(1, SOON).await);
    let deadline = std::time::Instant::now() + SOON;
    while daemon.upstream.chats().len() < 2 {
        assert!(std::time::Instant::now() < deadline, "there was no second call");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    daemon.upstream.push(Reply::endless(100));
    let first = Chat::new(&daemon, "hello there").stream().open().await;
    let first_id = first.headers()["x-run-id"].to_str().unwrap().to_owned();
    daemon.kill();
    drop((later, first));
    daemon.launch().await;

    let later = run_state(&daemon, &later_id).await;
    assert_eq!(later["status"], "interrupted");
    let usage = &later["usage"];
    let prompt = usage["prompt_tokens"].as_u64().unwrap();
    assert!(
        prompt > 1_000,
        "the call that was cut has read its prompt: {later}"
    );
    assert_eq!(usage["completion_tokens"], 50, "{later}");
    assert_eq!(usage["total_tokens"], prompt + 50);
    assert_eq!(later["usage_estimated"], true);

    let first = run_state(&daemon, &first_id).await;
    assert!(first["usage"]["prompt_tokens"].as_u64().unwrap() > 10, "{first}");
    assert_eq!(first["usage_estimated"], true);

    let whole = Chat::new(&daemon, "hello there").send().await;
    let whole = run_state(&daemon, whole.header("x-run-id")).await;
    assert_eq!(whole["usage_estimated"], false, "{whole}");
}

#[tokio::test]
async fn a_side_effect_in_flight_is_indeterminate_and_is_not_repeated() {
    let mut daemon = Setup::default()
        .file(
            "tools.toml",
            "[[tool]]\nname = \"slow\"\ndescription = \"slow\"\nmode = \"command\"\ntimeout_ms = 60000\n\
             command = [\"/bin/sh\", \"-c\", \"echo ran >> ran.txt; sleep 30\"]\naccept = [{}]\n",
        )
        .config("[tools]\ntools_file = \"tools.toml\"")
        .start()
        .await;
    let writer = daemon.writer_key().await;
    daemon
        .upstream
        .push(Reply::text("working").call("s", "slow", json!({})));
    let mut open = Chat::new(&daemon, "do it").key(&writer).stream().open().await;
    let run = open.headers()["x-run-id"].to_str().unwrap().to_owned();
    let deadline = std::time::Instant::now() + SOON;
    let ran = loop {
        if let Some(path) = ran_file(&daemon) {
            break path;
        }
        assert!(std::time::Instant::now() < deadline, "the tool did not start");
        tokio::select! {
            _ = open.chunk() => {}
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    };
    daemon.kill();
    drop(open);
    daemon.launch().await;
    let answer = daemon
        .client
        .get(daemon.url(&format!("/v1/runs/{run}")))
        .bearer_auth(&writer)
        .send()
        .await
        .unwrap();
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["status"], "indeterminate", "{body}");
    assert_eq!(
        std::fs::read_to_string(ran).unwrap().lines().count(),
        1,
        "nothing is repeated"
    );
}

fn ran_file(daemon: &Daemon) -> Option<std::path::PathBuf> {
    [daemon.path("knowledge-bank/ran.txt"), daemon.path("ran.txt")]
        .into_iter()
        .find(|path| path.exists())
}

#[tokio::test]
async fn traffic_and_kills_at_random_points_lose_nothing_that_was_acknowledged() {
    let mut daemon = Daemon::start().await;
    let quota: u64 = 400;
    let key = daemon
        .make_key(json!({"name": "q", "scopes": ["chat"], "tokens_per_day": quota}))
        .await;
    daemon.upstream.always(Reply::text("ok").usage(10, 5));
    let mut acknowledged = Vec::new();
    let mut spent = 0;
    for (round, pause_ms) in [3_u64, 41, 7, 23, 90, 1].into_iter().enumerate() {
        // The first request of a round may take its time; the others are cut wherever the kill falls.
        let mut deadline = tokio::time::Instant::now() + SOON;
        loop {
            let chat = Chat::new(&daemon, "hello there").key(&key).send();
            let Ok(answer) = tokio::time::timeout_at(deadline, chat).await else {
                break;
            };
            deadline = deadline.min(tokio::time::Instant::now() + Duration::from_millis(pause_ms));
            match answer.status {
                200 => {
                    acknowledged.push(answer.headers["x-run-id"].to_str().unwrap().to_owned());
                    spent += answer.usage()["total_tokens"].as_u64().unwrap();
                }
                429 => break,
                status => panic!("round {round}: {status}: {}", answer.text),
            }
        }
        daemon.kill();
        daemon.launch().await;
    }
    assert!(!acknowledged.is_empty());
    assert!(
        spent <= quota + 15,
        "the quota of {quota} was overrun by more than one call: {spent}"
    );
    for run in acknowledged {
        let answer = daemon
            .client
            .get(daemon.url(&format!("/v1/runs/{run}")))
            .bearer_auth(&key)
            .send()
            .await
            .unwrap();
        if answer.status().as_u16() == 429 {
            break;
        }
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["status"], "completed", "{body}");
    }
    let (status, keys) = daemon.get("/v1/admin/keys?limit=10").await;
    assert_eq!(
        (status, keys["data"].as_array().unwrap().len()),
        (200, 2),
        "{keys}"
    );
}

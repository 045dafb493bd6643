//! `[routing]`: the second tier's patience with its embedder. What decides is in `triage.rs` beside this folder.

use std::time::Duration;

use serde_json::Value;
use tidegate_testkit::Embeddings;

use super::printed;
use crate::support::{Chat, Daemon, Home, Setup};

/// The lines for a scripted server, with more for the section `[routing]`.
fn lines(server: &Embeddings, routing: &str) -> String {
    format!(
        "[discovery]\nollama = false\n[embeddings]\nprovider = \"openai\"\nmodel = \"some-model\"\n\
         base_url = \"{}\"\nquery_timeout_ms = 30000\n[routing]\n{routing}\n",
        server.base_url()
    )
}

/// A question that no rule knows.
const QUESTION: &str = "would velvet zanzibarium frighten you";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_for_the_embedder_as_long_as_is_set() {
    let server = Embeddings::start(64).await.unwrap();
    server.slow("zanzibarium", Duration::from_millis(1_500));
    let home = Home::new("");
    let score = |limit: u32| {
        home.configure(&lines(&server, &format!("embedding_timeout_ms = {limit}")));
        let printed = printed(&home, &["prompt", "--message", QUESTION, "--json"]);
        printed["routing"]["score"].clone()
    };
    assert!(score(30_000).is_number());
    assert_eq!(score(100), Value::Null);
}

#[test]
fn the_second_tier_scores_by_the_lists_and_in_the_way_that_are_set() {
    let home = Home::new("");
    home.write("routing/patterns.txt", "address = you\nours.none = ours\n");
    home.write(
        "mine.txt",
        "do you guard the lighthouse\nwho lights your lamp\nare you keeping the lamp\n",
    );
    home.write(
        "other.txt",
        "do you keep the lamp burning\nare you in the lighthouse\nwho sails by\n",
    );
    let score = |config: &str| {
        home.configure(&format!("[discovery]\nollama = false\n{config}"));
        let arguments = [
            "prompt",
            "--message",
            "do you keep the lighthouse lamp burning",
            "--json",
        ];
        printed(&home, &arguments)["routing"]["score"].as_f64().unwrap()
    };
    let usual = score("");
    assert!(score("[routing]\nexamples_file = \"mine.txt\"\n") > usual);
    assert!(score("[routing]\ncounterexamples_file = \"other.txt\"\n") < usual);
    let nearest = score("[routing]\nexamples_file = \"mine.txt\"\nembedding_score = \"nearest\"\n");
    let margin = score("[routing]\nexamples_file = \"mine.txt\"\nembedding_score = \"margin\"\n");
    assert!(
        nearest > margin,
        "a cosine, and a difference of cosines: {nearest} {margin}"
    );
}

/// How often the server was asked for the question.
fn asked(server: &Embeddings) -> usize {
    let batches = server.batches();
    batches
        .iter()
        .flatten()
        .filter(|text| text.contains("zanzibarium"))
        .count()
}

/// Asks something else until the second tier is ready: it prepares while the daemon serves already.
async fn prepared(daemon: &Daemon, server: &Embeddings) {
    for _ in 0..600 {
        Chat::new(daemon, "would velvet curtains frighten you")
            .send()
            .await
            .content();
        let batches = server.batches();
        if batches.iter().flatten().any(|text| text.contains("curtains")) {
            return;
        }
    }
    panic!("the second tier never became ready");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedder_that_did_not_answer_is_left_alone_as_long_as_is_set() {
    for (rest, times) in [(3_600, 1), (0, 3)] {
        let server = Embeddings::start(64).await.unwrap();
        server.slow("zanzibarium", Duration::from_secs(20));
        let routing = format!("embedding_timeout_ms = 100\nembedding_rest_s = {rest}");
        let daemon = Setup::default()
            .config(&lines(&server, &routing))
            .config("[kb]\nenabled = false")
            .start()
            .await;
        prepared(&daemon, &server).await;
        for _request in 0..3 {
            Chat::new(&daemon, QUESTION).send().await.content();
        }
        assert_eq!(asked(&server), times, "{rest}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_triage_log_keeps_of_a_question_what_is_set() {
    for (keep, has_hash, has_text) in [
        ("none", false, false),
        ("hash", true, false),
        ("text", true, true),
    ] {
        let mut daemon = Setup::default()
            .config(&format!("[routing]\nlog_query = \"{keep}\""))
            .start()
            .await;
        Chat::new(&daemon, QUESTION).send().await.content();
        assert!(daemon.terminate(Duration::from_secs(20)).await);
        let text = daemon.read("logs/agents/triage.jsonl");
        let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(line["query_hash"].is_string(), has_hash, "{keep}: {line}");
        assert_eq!(line["query"] == QUESTION, has_text, "{keep}: {line}");
    }
}

//! Bounds of a turn, each enforced in one place and each a setting that changes what happens.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

/// A model that asks for another tool for ever, and answers only when none is offered.
fn insatiable(body: &Value) -> Reply {
    if body.get("tools").is_none() {
        return Reply::text("best I can do");
    }
    let round = body["messages"].as_array().map_or(0, Vec::len);
    Reply::text("").call(
        format!("c{round}"),
        "calculate",
        json!({"expression": format!("{round}+1")}),
    )
}

#[tokio::test]
async fn at_the_cap_of_rounds_the_model_is_asked_once_without_tools() {
    for rounds in [2_usize, 5] {
        let daemon = Setup::default()
            .config(&format!("[engine]\nrounds_max = {rounds}"))
            .start()
            .await;
        daemon.upstream.respond_with(insatiable);
        let answer = Chat::new(&daemon, "go on").send().await;
        assert_eq!(answer.content(), "best I can do");
        assert_eq!(daemon.upstream.chats().len(), rounds + 1);
    }
}

#[tokio::test]
async fn calls_beyond_a_reply_or_turn_are_answered_and_not_run() {
    let daemon = Setup::default()
        .config("[engine]\ncalls_per_round_max = 3\ncalls_per_turn_max = 5")
        .start()
        .await;
    let many = |from: usize| {
        (from..from + 4).fold(Reply::text(""), |reply, n| {
            reply.call(
                format!("c{n}"),
                "calculate",
                json!({"expression": format!("{n}+0")}),
            )
        })
    };
    daemon.upstream.push(many(0));
    daemon.upstream.push(many(10));
    daemon.upstream.push(Reply::text("enough"));
    assert_eq!(Chat::new(&daemon, "go").send().await.content(), "enough");
    let chats = daemon.upstream.chats();
    let last = chats.last().unwrap();
    let refused = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| {
            message["role"] == "tool" && message["content"].as_str().unwrap().contains("budget")
        })
        .count();
    assert_eq!(
        refused, 3,
        "one beyond the first reply, one beyond the turn and one beyond the second reply"
    );
    assert_eq!(last.get("tools"), None);
}

#[tokio::test]
async fn a_spent_token_budget_ends_the_turn_with_an_answer() {
    let daemon = Setup::default()
        .config("[engine]\nturn_tokens_max = 50")
        .start()
        .await;
    daemon.upstream.push(
        Reply::text("")
            .call("a", "calculate", json!({"expression": "1+1"}))
            .usage(60, 10),
    );
    daemon.upstream.push(Reply::text("two"));
    assert_eq!(Chat::new(&daemon, "go").send().await.content(), "two");
    assert_eq!(daemon.upstream.chats()[1].get("tools"), None);
}

#[tokio::test]
async fn a_turn_that_runs_out_of_time_says_so() {
    let daemon = Setup::default()
        .config("[engine]\nturn_timeout_ms = 700")
        .start()
        .await;
    daemon.upstream.push(Reply::never());
    let answer = Chat::new(&daemon, "go").send().await;
    assert_eq!(answer.status, 504, "{}", answer.text);

    daemon
        .upstream
        .push(Reply::text("").call("a", "calculate", json!({"expression": "6*7"})));
    daemon.upstream.push(Reply::never());
    let answer = Chat::new(&daemon, "go").send().await;
    assert!(
        answer.content().contains("ran out of time") && answer.content().contains("42"),
        "{}",
        answer.text
    );
    assert_eq!(answer.finish_reason(), "length");
}

#[tokio::test]
async fn a_backend_that_fails_after_tools_ran_gives_what_there_is() {
    let daemon = Setup::default().config("[models]\nretries_max = 0").start().await;
    daemon
        .upstream
        .push(Reply::text("").call("a", "calculate", json!({"expression": "6*7"})));
    daemon.upstream.push(Reply::status(500, json!({"error": "down"})));
    let answer = Chat::new(&daemon, "go").send().await;
    assert!(
        answer.content().contains("incomplete") && answer.content().contains("42"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_without_a_finish_reason() {
    let daemon = Daemon::start().await;
    daemon
        .upstream
        .push(Reply::text("half an ans").chunk_chars(4).cut());
    let answer = Chat::new(&daemon, "go").stream().send().await;
    assert_eq!(answer.status, 200);
    assert!(answer.text.contains("\"error\""), "{}", answer.text);
    assert_eq!(
        answer.finish_reason(),
        "",
        "no finish reason makes a cut answer look complete"
    );
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more_and_then_said() {
    let daemon = Daemon::start().await;
    daemon.upstream.push(Reply::text(""));
    daemon.upstream.push(Reply::text("now"));
    assert_eq!(Chat::new(&daemon, "go").send().await.content(), "now");
    daemon.upstream.push(Reply::text(""));
    daemon.upstream.push(Reply::text(""));
    assert!(
        Chat::new(&daemon, "go")
            .send()
            .await
            .content()
            .contains("no answer")
    );
    assert_eq!(daemon.upstream.chats().len(), 4);
}

#[tokio::test]
async fn a_cut_reply_without_words_is_asked_again_and_its_calls_are_not_run() {
    let daemon = Daemon::start().await;
    let writer = daemon.writer_key().await;
    daemon.upstream.push(
        Reply::text("")
            .call("w", "write_file", json!({"path": "cut.md", "content": "x"}))
            .finish("length"),
    );
    daemon.upstream.push(Reply::text("short"));
    assert_eq!(
        Chat::new(&daemon, "go").key(&writer).send().await.content(),
        "short"
    );
    assert!(!daemon.path("knowledge-bank/cut.md").exists());
}

#[tokio::test]
async fn turns_of_one_key_under_way_are_bounded() {
    let daemon = Setup::default()
        .config("[engine]\nturns_per_key_max = 1")
        .start()
        .await;
    daemon.upstream.push(Reply::never());
    let limit = std::time::Duration::from_secs(10);
    let others = async {
        assert!(daemon.upstream.wait_open(1, limit).await);
        let second = Chat::new(&daemon, "two").send().await;
        second.assert_error(429, "rate_limit_exceeded");
        let other = daemon.make_key(json!({"name": "o", "scopes": ["chat"]})).await;
        assert_eq!(Chat::new(&daemon, "three").key(&other).send().await.status, 200);
    };
    tokio::select! {
        _ = Chat::new(&daemon, "one").open() => panic!("the first turn cannot end"),
        () = others => {}
    }
    assert!(daemon.upstream.wait_idle(limit).await);
    // The place is free as soon as the journal of the first turn is closed.
    let deadline = std::time::Instant::now() + limit;
    while Chat::new(&daemon, "four").send().await.status != 200 {
        assert!(
            std::time::Instant::now() < deadline,
            "the place is not free again"
        );
    }
}

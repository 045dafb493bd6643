//! A key's daily quota, and many calls at once.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Answer, Chat, Daemon};

async fn limited_key(daemon: &Daemon, tokens_per_day: u64) -> String {
    daemon
        .make_key(json!({"name": "q", "scopes": ["chat"], "tokens_per_day": tokens_per_day}))
        .await
}

/// The bound on the answer that the model server was told.
fn told(body: &Value) -> u64 {
    body["max_tokens"]
        .as_u64()
        .unwrap_or_else(|| panic!("the answer of a key with a quota is bounded: {body}"))
}

/// A model that writes as much as it may, up to `words`, and says so.
fn talkative(words: u64) -> impl Fn(&Value) -> Reply {
    move |body| {
        let told = told(body);
        let finish = if told < words { "length" } else { "stop" };
        let answer = Reply::text("word ".repeat(usize::try_from(told.min(words)).unwrap()));
        answer
            .usage(30, told.min(words))
            .finish(finish)
            .delay_first_ms(20)
    }
}

fn number_before(text: &str, words: &str) -> u64 {
    let (before, _) = text
        .split_once(words)
        .unwrap_or_else(|| panic!("{words}: {text}"));
    let number = before.rsplit(' ').next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("{number}: {text}"))
}

fn spent(answers: &[Answer]) -> u64 {
    let usage = |answer: &Answer| answer.json()["usage"]["total_tokens"].as_u64().unwrap();
    answers
        .iter()
        .filter(|answer| answer.status == 200)
        .map(usage)
        .sum()
}

#[tokio::test]
async fn long_answers_side_by_side_do_not_overrun_a_quota() {
    const QUOTA: u64 = 3_000;
    let daemon = Daemon::start().await;
    let key = limited_key(&daemon, QUOTA).await;
    daemon.upstream.respond_with(talkative(700));
    let calls = (0..16).map(|_| Chat::new(&daemon, "hello there").key(&key).send());
    let answers = join_all(calls).await;
    for answer in &answers {
        match answer.status {
            200 => assert!(["stop", "length"].contains(&answer.finish_reason().as_str())),
            429 => drop(answer.assert_error(429, "insufficient_quota")),
            status => panic!("{status}: {}", answer.text),
        }
    }
    let spent = spent(&answers);
    // The prompt is longer for the server than it said: what a call takes is what it was told, and no more.
    assert!(spent <= QUOTA + 730, "{spent} of {QUOTA}");
    assert!(
        spent > QUOTA / 2,
        "{spent} of {QUOTA}: what is given back is used"
    );
}

#[tokio::test]
async fn a_model_that_takes_no_bound_overruns_a_quota_by_one_call() {
    const QUOTA: u64 = 3_000;
    let daemon = Daemon::start().await;
    let key = limited_key(&daemon, QUOTA).await;
    daemon
        .upstream
        .always(Reply::text("a long story").usage(40, 900).delay_first_ms(20));
    let calls = (0..16).map(|_| Chat::new(&daemon, "hello there").key(&key).send());
    let spent = spent(&join_all(calls).await);
    assert!(spent <= QUOTA + 940, "{spent} of {QUOTA}");
}

#[tokio::test]
async fn near_the_end_of_a_quota_answers_are_shorter_and_say_so() {
    let daemon = Daemon::start().await;
    let key = limited_key(&daemon, 1_200).await;
    daemon.upstream.respond_with(talkative(800));
    let ask = |stream: bool| {
        Chat::new(&daemon, "hello there")
            .key(&key)
            .with("stream", json!(stream))
    };
    let first = ask(false).send().await;
    assert_eq!(first.finish_reason(), "stop");
    let second = ask(true).send().await;
    assert_eq!(second.finish_reason(), "length", "{}", second.text);
    assert!(second.content().starts_with("word"), "{}", second.text);
    let chats = daemon.upstream.chats();
    assert_eq!(
        chats.len(),
        2,
        "it is not asked again for what there is no room for"
    );
    assert!(told(&chats[1]) < 370, "{}", chats[1]);
    let last = ask(false).send().await;
    let body = last.assert_error(429, "insufficient_quota");
    let message = body["error"]["message"].as_str().unwrap();
    let left = number_before(message, " tokens are left of the daily quota of 1200 tokens");
    let needed = number_before(message, " for its prompt alone");
    assert!(0 < left && left < needed && needed < 400, "{message}");
    assert!(message.contains("renewed at midnight, in "), "{message}");
    assert_eq!(last.header("x-should-retry"), "false");
    assert_eq!(
        daemon.upstream.chats().len(),
        2,
        "refused before anybody is asked"
    );
}

#[tokio::test]
async fn a_shortened_answer_without_a_word_is_said_to_be_the_quotas() {
    let daemon = Daemon::start().await;
    let key = limited_key(&daemon, 1_200).await;
    daemon
        .upstream
        .always(Reply::text("").finish("length").usage(30, 40));
    let answer = Chat::new(&daemon, "hello there").key(&key).send().await;
    assert_eq!(answer.finish_reason(), "length");
    assert!(answer.content().contains("quota"), "{}", answer.text);
    assert_eq!(daemon.upstream.chats().len(), 1);
}

#[tokio::test]
async fn the_clients_own_bound_is_what_is_reserved() {
    let daemon = Daemon::start().await;
    let key = limited_key(&daemon, 100_000).await;
    let own = Chat::new(&daemon, "hello there")
        .key(&key)
        .with("max_tokens", json!(7));
    assert_eq!(own.send().await.status, 200);
    assert_eq!(told(daemon.upstream.chats().last().unwrap()), 7);
    let unbounded = Chat::new(&daemon, "hello there").key(&key).send().await;
    assert_eq!(unbounded.status, 200);
    assert_eq!(told(daemon.upstream.chats().last().unwrap()), 8_192);
    let without_quota = Chat::new(&daemon, "hello there").send().await;
    assert_eq!(without_quota.status, 200);
    assert_eq!(daemon.upstream.chats().last().unwrap().get("max_tokens"), None);
}

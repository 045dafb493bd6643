//! A fallback answers as it writes, and not as the model that could not be reached would have.

use serde_json::{Value, json};
use tidegate_testkit::{Reply, Upstream};

use crate::support::{Chat, Daemon, Setup};

/// Two model servers: one whose models call tools natively, and one whose models write their calls.
async fn two(first_is_native: bool) -> (Daemon, Upstream) {
    let second = Upstream::start().await.unwrap();
    let config = format!(
        "[models]\ndefault_provider = \"test\"\nretries_max = 0\nbreaker_failures = 0\nfallbacks = [\"other:small\"]\n\
         [models.providers.test]\nnative_tools = {first_is_native}\n\
         [models.providers.other]\nbase_url = \"{}\"\nnative_tools = {}\n",
        second.base_url(),
        !first_is_native
    );
    (Setup::default().config(&config).start().await, second)
}

fn busy() -> Reply {
    Reply::status(503, json!({"error": "busy"}))
}

/// A call of `calculate` as a model of that kind makes it.
fn call(native: bool) -> Reply {
    if native {
        return Reply::text("Let me see.").call("c1", "calculate", json!({"expression": "6*7"}));
    }
    Reply::text("Let me see.\n✿FUNCTION✿: calculate\n✿ARGS✿: {\"expression\": \"6*7\"}\n").chunk_chars(5)
}

/// Whether the model server was told of tools as a model of that kind understands it.
fn is_told(body: &Value, native: bool) -> bool {
    let system = body["messages"][0]["content"].as_str().unwrap_or_default();
    body.get("tools").is_some() == native && system.contains("✿FUNCTION✿") != native
}

#[tokio::test]
async fn calls_of_a_fallback_are_read_as_it_writes_them() {
    for first_is_native in [true, false] {
        for stream in [false, true] {
            let (daemon, second) = two(first_is_native).await;
            daemon.upstream.always(busy());
            second.push(call(!first_is_native));
            second.push(Reply::text("It is 42.").usage(5, 6));
            let answer = Chat::new(&daemon, "compute")
                .with("stream", json!(stream))
                .send()
                .await;
            let words: Vec<String> = answer.content().split_whitespace().map(str::to_owned).collect();
            assert_eq!(
                words.join(" "),
                "Let me see. It is 42.",
                "{first_is_native} {stream}"
            );
            let chats = second.chats();
            assert_eq!(chats.len(), 2);
            for chat in &chats {
                assert!(is_told(chat, !first_is_native), "{chat}");
            }
            assert!(chats[1].to_string().contains("42"), "the tool ran: {}", chats[1]);
            assert!(is_told(&daemon.upstream.chats()[0], first_is_native));
        }
    }
}

#[tokio::test]
async fn a_turn_may_go_from_one_to_the_other_and_back() {
    for first_is_native in [true, false] {
        let (daemon, second) = two(first_is_native).await;
        daemon.upstream.push(busy());
        second.push(call(!first_is_native));
        daemon.upstream.push(call(first_is_native));
        daemon.upstream.push(busy());
        second.push(Reply::text("It is 42."));
        let answer = Chat::new(&daemon, "compute").stream().send().await;
        assert!(answer.content().ends_with("It is 42."), "{}", answer.text);
        assert!(!answer.content().contains('✿'), "{}", answer.text);
        assert_eq!((daemon.upstream.chats().len(), second.chats().len()), (3, 2));
    }
}

#[tokio::test]
async fn a_native_models_words_are_its_own_also_where_they_look_like_a_call() {
    let (daemon, second) = two(false).await;
    daemon.upstream.always(busy());
    let text = "Write ✿FUNCTION✿: calculate and so on.";
    second.push(Reply::text(text).chunk_chars(3));
    let answer = Chat::new(&daemon, "how are calls written").stream().send().await;
    assert_eq!(answer.content(), text);
}

//! What leaves in an answer: no secret and not the prompt, streamed or whole.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Setup};

/// Shaped like a token of a code host; it opens nothing.
const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

const AGENT: &str = "You are the tutor of the river school and you keep to the rules below.\n\
    Rule one: never tell anybody what is written on the back of the blackboard.\n\
    Rule two: every exercise has a colour and a number from the long list.\n\
    Rule three: after nine o'clock only the side door of the library is open.\n";

async fn answers(agent: &str, reply: Reply, change: impl Fn(Chat<'_>) -> Chat<'_>) -> Vec<String> {
    let daemon = Setup::default().file("AGENT.md", agent).start().await;
    let mut texts = Vec::new();
    for stream in [false, true] {
        daemon.upstream.push(reply.clone());
        let chat = Chat::new(&daemon, "please help me").with("stream", Value::Bool(stream));
        let answer = change(chat).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(!answer.text.contains(TOKEN), "{}", answer.text);
        texts.push(answer.content());
        if let Some((_, _, arguments)) = answer.calls().first() {
            texts.push(arguments.clone());
        }
    }
    texts
}

#[tokio::test]
async fn a_secret_is_masked_however_it_is_cut_into_pieces() {
    for chars in [1, 7, 1000] {
        let reply = Reply::text(format!("The token is {TOKEN}, keep it.")).chunk_chars(chars);
        let texts = answers("You help.\n", reply, |chat| chat).await;
        assert_eq!(texts, ["The token is [redacted], keep it."; 2], "{chars}");
    }
}

#[tokio::test]
async fn marks_of_wrapped_content_are_not_repeated_to_people() {
    for chars in [1, 9, 1000] {
        let reply = Reply::text(
            "It says: <<<EXTERNAL_UNTRUSTED_CONTENT id=\"b1\" source=\"a\">>>\nsix months\n<<<END_UNTRUSTED_CONTENT id=\"b1\">>",
        )
        .chunk_chars(chars);
        let texts = answers("You help.\n", reply, |chat| chat).await;
        assert_eq!(texts, ["It says: six months\n"; 2], "{chars}");
    }
}

#[tokio::test]
async fn a_secret_in_a_call_for_the_client_is_masked() {
    let tools = json!([{ "type": "function", "function": {
        "name": "send_mail", "parameters": { "type": "object", "properties": { "text": { "type": "string" } } },
    } }]);
    let reply = Reply::text("").call("c1", "send_mail", json!({ "text": format!("see {TOKEN}") }));
    let texts = answers("You help.\n", reply, |chat| chat.with("tools", tools.clone())).await;
    assert_eq!(
        texts
            .iter()
            .filter(|text| text.contains("see [redacted]"))
            .count(),
        2,
        "{texts:?}"
    );
}

#[tokio::test]
async fn an_answer_that_carries_the_prompt_is_replaced_before_the_second_line_is_out() {
    for text in [
        AGENT.to_owned(),
        format!("Sure:\n> {}", AGENT.replace('\n', "\n> ").to_uppercase()),
    ] {
        let reply = Reply::text(text).chunk_chars(3);
        for shown in answers(AGENT, reply, |chat| chat).await {
            assert!(
                shown.contains("I can't share the text of my instructions."),
                "{shown}"
            );
            assert!(
                !shown.to_lowercase().contains("back of the blackboard"),
                "{shown}"
            );
        }
    }
    let quotation = "I was told: Rule two: every exercise has a colour and a number from the long list.";
    let texts = answers(AGENT, Reply::text(quotation).chunk_chars(3), |chat| chat).await;
    assert_eq!(texts, [quotation; 2]);
}

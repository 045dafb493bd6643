//! What the documents say to copy works when it is copied.

use serde_json::{Value, json};
use tidegate_testkit::Upstream;

use crate::support::{Home, http_client};

const SWITCHING: &str = include_str!("../../../docs/switching-models.md");

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// The block whose first line says this.
fn block(title: &str) -> String {
    let head = format!("# tidegate.toml: {title}\n");
    let found = blocks(SWITCHING, "toml")
        .into_iter()
        .find(|block| block.starts_with(&head));
    found.unwrap_or_else(|| panic!("no block `{title}`"))
}

#[test]
fn every_block_is_a_whole_file_that_passes_the_check() {
    let found = blocks(SWITCHING, "toml");
    assert!(found.len() >= 5, "{}", found.len());
    for block in found {
        assert!(block.starts_with("# tidegate.toml: "), "{block}");
        let home = Home::bare();
        assert_eq!(home.run(&["init"]).0, Some(0));
        home.write("tidegate.toml", &block);
        let (code, stdout, stderr) = home.run(&["config", "--check"]);
        assert_eq!(code, Some(0), "{block}: {stderr}");
        assert!(
            stdout.contains("0 warnings") && stderr.is_empty(),
            "{block}: {stderr}"
        );
    }
}

#[test]
fn the_lines_for_the_shell_pass_the_check() {
    let found = blocks(SWITCHING, "sh");
    assert!(found.len() >= 2, "{}", found.len());
    for block in found {
        let mut home = Home::bare();
        for line in block.lines().filter_map(|line| line.strip_prefix("export ")) {
            let (name, value) = line.split_once('=').unwrap();
            home = home.env(name, value.split_whitespace().next().unwrap());
        }
        let (code, stdout, stderr) = home.run(&["config", "--check"]);
        assert_eq!(code, Some(0), "{block}: {stderr}");
        assert!(stdout.contains("0 warnings"), "{block}: {stdout}");
    }
}

/// A daemon on the block, its servers replaced by scripted ones; asks for each model and answers with the names that
/// reached the server.
async fn asked(block: &str, upstream: &Upstream, models: &[&str]) -> Vec<String> {
    let home = Home::new("");
    home.configure(block);
    let mut served = home.serve().await;
    let stdout = served.stdout();
    let key = stdout
        .split_whitespace()
        .find(|word| word.starts_with("tg_"))
        .unwrap();
    for model in models {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hello there"}]});
        let chat = http_client()
            .post(home.url("/v1/chat/completions"))
            .bearer_auth(key)
            .json(&body);
        let answer: Value = chat.send().await.unwrap().json().await.unwrap();
        assert_eq!(
            answer["choices"][0]["message"]["content"], "hello",
            "{model}: {answer}"
        );
    }
    served.stop().await;
    let chats = upstream.chats();
    chats
        .iter()
        .map(|chat| chat["model"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_blocks_do_what_they_say() {
    let first = "http://127.0.0.1:8000/v1";
    let upstream = Upstream::start().await.unwrap();
    upstream.set_models(None);
    let two = block("two providers").replace(first, &upstream.base_url());
    let names = asked(&two, &upstream, &["tidegate", "another", "local/third"]).await;
    assert_eq!(names, ["my-model", "another", "third"]);

    let upstream = Upstream::start().await.unwrap();
    let aliases = block("names of your own").replace(first, &upstream.base_url());
    let names = asked(&aliases, &upstream, &["tidegate", "fast"]).await;
    assert_eq!(names, ["qwen3:8b", "qwen3:4b"]);

    let upstream = Upstream::start().await.unwrap();
    let nobody = format!("http://127.0.0.1:{}/v1", tidegate_testkit::free_port().unwrap());
    let spare = block("a second server that steps in")
        .replace(first, &nobody)
        .replace("http://127.0.0.1:8001/v1", &upstream.base_url());
    let names = asked(&spare, &upstream, &["tidegate"]).await;
    assert_eq!(names, ["my-small-model"]);

    let upstream = Upstream::start().await.unwrap();
    let door =
        block("Ollama's OpenAI-compatible door").replace("http://127.0.0.1:11434/v1", &upstream.base_url());
    assert_eq!(asked(&door, &upstream, &["tidegate"]).await, ["qwen3:4b"]);
}

//! The first minutes: one key, shown once, with lines that work when they are pasted.

use serde_json::{Value, json};
use tidegate_testkit::Upstream;

use crate::support::{Home, Served, http_client};

fn keys_in(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with("tg_"))
        .map(str::to_owned)
        .collect()
}

/// The lines from `from` to the first empty one, as they would be copied.
fn pasted(served: &Served, from: &str) -> String {
    let stdout = served.stdout();
    let start = stdout
        .find(from)
        .unwrap_or_else(|| panic!("no `{from}` in {stdout}"));
    stdout[start..].split("\n\n").next().unwrap().to_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test pastes the line as a user would"
)]
async fn shell(script: String) -> (bool, String) {
    let output = tokio::task::spawn_blocking(move || {
        std::process::Command::new("sh")
            .args(["-c", &script])
            .env("no_proxy", "*")
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[tokio::test]
async fn the_first_start_prints_a_key_that_works_and_the_second_prints_none() {
    let upstream = Upstream::start().await.unwrap();
    let home = Home::with_model(&upstream);
    let mut served = home.serve().await;
    let keys = keys_in(&served.stdout());
    assert_eq!(
        keys.len(),
        3,
        "alone, for curl and for Python: {}",
        served.stdout()
    );
    assert!(keys.iter().all(|key| *key == keys[0]));
    let (ok, text) = shell(pasted(&served, "curl ")).await;
    assert!(ok, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(answer["choices"][0]["message"]["content"], "hello", "{answer}");
    let python = pasted(&served, "client = OpenAI(");
    assert!(
        python.contains(&home.url("/v1")) && python.contains("model=\"tidegate\""),
        "{python}"
    );
    served.stop().await;
    let mut again = home.serve().await;
    let models = http_client()
        .get(home.url("/v1/models"))
        .bearer_auth(&keys[0])
        .send()
        .await
        .unwrap();
    assert_eq!(models.status(), 200, "the first key still opens");
    again.stop().await;
    assert!(keys_in(&again.stdout()).is_empty(), "{}", again.stdout());
    assert!(keys_in(&again.stderr()).is_empty(), "{}", again.stderr());
}

#[tokio::test]
async fn a_bootstrap_key_is_taken_and_not_printed() {
    let upstream = Upstream::start().await.unwrap();
    let key = Home::bare().run(&["keys", "generate"]).1.trim().to_owned();
    let home = Home::with_model(&upstream).env("TIDEGATE_BOOTSTRAP_KEY", &key);
    let mut served = home.serve().await;
    let body = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello there"}]});
    let chat = http_client()
        .post(home.url("/v1/chat/completions"))
        .bearer_auth(&key)
        .json(&body);
    assert_eq!(chat.send().await.unwrap().status(), 200);
    served.stop().await;
    assert!(
        keys_in(&served.stdout()).is_empty() && keys_in(&served.stderr()).is_empty(),
        "{}",
        served.stderr()
    );
    let wrong = Home::with_model(&upstream).env("TIDEGATE_BOOTSTRAP_KEY", "tg_not_a_key");
    let (code, _, stderr) = wrong.run(&["serve"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("TIDEGATE_BOOTSTRAP_KEY") && !stderr.contains("tg_not_a_key"),
        "{stderr}"
    );
}

#[tokio::test]
async fn missing_instructions_are_an_error_that_init_mends() {
    let home = Home::bare();
    home.configure("[discovery]\nollama = false\n");
    let (code, stdout, stderr) = home.run(&["serve"]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(
        stderr.contains("AGENT.md") && stderr.contains("tidegate init"),
        "{stderr}"
    );
    assert!(
        keys_in(&stdout).is_empty(),
        "no key is lost in a start that failed: {stdout}"
    );
    let (code, stdout, stderr) = home.run(&["init"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("AGENT.md"), "{stdout}");
    assert!(home.folder().join("skills/study-planner/SKILL.md").exists());
    home.write("AGENT.md", "mine");
    assert_eq!(home.run(&["init"]).0, Some(0), "twice is fine");
    assert_eq!(
        std::fs::read_to_string(home.folder().join("AGENT.md")).unwrap(),
        "mine",
        "nothing is replaced"
    );
    let mut served = home.serve().await;
    assert_eq!(keys_in(&served.stdout()).len(), 3);
    served.stop().await;
    let log = served.stderr();
    assert!(
        log.contains("no model is configured") && log.contains("OPENAI_API_KEY"),
        "{log}"
    );
}

#[tokio::test]
async fn the_environment_names_the_model_where_the_file_does_not() {
    let upstream = Upstream::start().await.unwrap();
    let home = Home::new("")
        .env("OPENAI_BASE_URL", &upstream.base_url())
        .env("OPENAI_API_KEY", "sk-upstream");
    let served = home.serve().await;
    let key = keys_in(&served.stdout()).pop().unwrap();
    let body = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello there"}]});
    let chat = http_client()
        .post(home.url("/v1/chat/completions"))
        .bearer_auth(key)
        .json(&body);
    let answer: Value = chat.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "hello", "{answer}");
    let asked = upstream
        .requests()
        .into_iter()
        .find(|request| request.path.ends_with("completions"))
        .unwrap();
    assert_eq!(asked.headers["authorization"], "Bearer sk-upstream");
}

#[tokio::test]
async fn the_document_is_the_one_that_is_served() {
    let daemon = crate::support::Daemon::start().await;
    let (code, printed, _) = Home::bare().run(&["openapi"]);
    assert_eq!(code, Some(0));
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let (_, served) = daemon.get("/openapi.json").await;
    assert_eq!(printed, served);
    assert!(printed["openapi"].as_str().unwrap().starts_with("3."));
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_that_names_the_setting() {
    let home = Home::new("[discovery]\nollama = false\n");
    let taken = tokio::net::TcpListener::bind(("127.0.0.1", home.port))
        .await
        .unwrap();
    let (code, stdout, stderr) = home.run(&["serve"]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(
        stderr.contains(&home.port.to_string()) && stderr.contains("--bind"),
        "{stderr}"
    );
    assert!(
        keys_in(&stdout).is_empty(),
        "no key is lost in a start that failed: {stdout}"
    );
    drop(taken);
    let served = home.serve().await;
    assert_eq!(keys_in(&served.stdout()).len(), 3, "the key is still to be shown");
}

#[tokio::test]
async fn the_start_up_line_says_what_was_used() {
    let upstream = Upstream::start().await.unwrap();
    for (key, words) in [
        (None, "from OPENAI_BASE_URL "),
        (Some("sk-x"), "from OPENAI_BASE_URL and OPENAI_API_KEY "),
    ] {
        let mut home = Home::new("").env("OPENAI_BASE_URL", &upstream.base_url());
        if let Some(key) = key {
            home = home.env("OPENAI_API_KEY", key);
        }
        let mut served = home.serve().await;
        served.stop().await;
        assert!(served.stderr().contains(words), "{words}: {}", served.stderr());
    }
}

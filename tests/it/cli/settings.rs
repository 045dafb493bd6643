//! A setting that is changed changes what happens: those that no other test of the running binary shows.

mod bounds;
mod complete;
mod embeddings;
mod gate;
mod kb;
mod kept;
mod routing;

use serde_json::{Value, json};
use tidegate_testkit::{Reply, Upstream};

use crate::support::{Chat, Daemon, Home, Raw, Setup};

/// The JSON that a command prints.
fn printed(home: &Home, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = home.run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// What `tidegate prompt` says about a message with this configuration.
fn prompt(home: &Home, config: &str, message: &str) -> Value {
    home.configure(&format!("[discovery]\nollama = false\n{config}"));
    printed(home, &["prompt", "--message", message, "--json"])
}

/// What the model reads of the call's result.
async fn result(daemon: &Daemon, key: &str, tool: &str, arguments: Value) -> String {
    daemon.upstream.push(Reply::text("").call("c", tool, arguments));
    daemon.upstream.push(Reply::text("done"));
    let answer = Chat::new(daemon, "please do it").key(key).send().await;
    assert_eq!(answer.content(), "done");
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let text = messages.iter().rfind(|message| message["role"] == "tool");
    text.unwrap()["content"].as_str().unwrap().to_owned()
}

/// The body that reached the model's server.
async fn asked(daemon: &Daemon, chat: Chat<'_>) -> Value {
    chat.send().await.content();
    daemon.upstream.chats().pop().unwrap()
}

#[test]
fn a_day_begins_in_the_time_zone() {
    let home = Home::new("");
    let mut ends = Vec::new();
    for zone in ["UTC", "Asia/Tokyo"] {
        home.write("tidegate.toml", &format!("time_zone = \"{zone}\"\n"));
        let key = printed(
            &home,
            &[
                "keys",
                "create",
                "--name",
                "x",
                "--expires",
                "2099-01-31",
                "--json",
            ],
        );
        ends.push(key["expires_at"].as_str().unwrap().to_owned());
    }
    assert_eq!(ends, ["2099-01-31T00:00:00Z", "2099-01-30T15:00:00Z"]);
}

#[test]
fn instructions_and_skills_lie_where_they_are_said_to() {
    let skill = |name: &str| {
        format!("---\nname: {name}\ndescription: tides\nkeywords: [high water]\n---\nName the harbour.\n")
    };
    let home = Home::new("");
    home.write("OTHER.md", "You are the other one.\n");
    home.write("abilities/a-tides/SKILL.md", &skill("a-tides"));
    home.write("skills/b-tides/SKILL.md", &skill("b-tides"));
    let ask = "when is high water today";
    let plain = prompt(&home, "", ask);
    assert_eq!(
        (&plain["parts"][0]["source"], &plain["skill"]),
        (&json!("AGENT.md"), &json!("b-tides"))
    );
    let other = prompt(
        &home,
        "[prompt]\nagent_file = \"OTHER.md\"\nskills_dir = \"abilities\"\n",
        ask,
    );
    assert_eq!(
        (&other["parts"][0]["source"], &other["skill"]),
        (&json!("OTHER.md"), &json!("a-tides"))
    );
    // Only the first by name is read.
    home.write(
        "skills/a-none/SKILL.md",
        "---\nname: a-none\ndescription: n\nkeywords: [zebra]\n---\nText.\n",
    );
    assert_eq!(prompt(&home, "", ask)["skill"], "b-tides");
    assert_eq!(
        prompt(&home, "[prompt]\nskills_max = 1\n", ask)["skill"],
        Value::Null
    );
    assert_eq!(
        prompt(&home, "[prompt]\nskill_chars_max = 5\n", ask)["skill"],
        Value::Null
    );
    home.configure("[prompt]\nfile_bytes_max = 5\n");
    let (code, _, stderr) = home.run(&["prompt", "--message", ask]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("AGENT.md"), "{stderr}");
}

#[test]
fn questions_about_the_agent_are_known_by_the_files_and_bounds_that_are_set() {
    let home = Home::new("");
    home.write("rules.txt", "test.lighthouse = does the lighthouse sleep\n");
    home.write("words.txt", "guardrails\n");
    let about = |config: &str, ask: &str| prompt(&home, config, ask)["routing"]["about_agent"].clone();
    let (usual, own) = ("What guardrails do you follow?", "does the lighthouse sleep");
    for (config, ask, expected) in [
        ("", usual, true),
        ("", own, false),
        ("[routing]\nenabled = false\n", usual, false),
        ("[routing]\npatterns_file = \"rules.txt\"\n", own, true),
        ("[routing]\npatterns_file = \"rules.txt\"\n", usual, false),
        (
            "[routing]\npatterns_file = \"rules.txt\"\nfile_bytes_max = 8\n",
            own,
            false,
        ),
        ("[routing]\nvocabulary_file = \"words.txt\"\n", usual, false),
        ("[routing]\nwords_max = 4\n", usual, false),
        ("[routing]\nwords_max = 5\n", usual, true),
        ("[routing]\nchars_max = 20\n", usual, false),
    ] {
        assert_eq!(about(config, ask), expected, "{config}{ask}");
    }
}

#[tokio::test]
async fn the_tools_have_the_bounds_and_folders_that_are_set() {
    let daemon = Setup::default()
        .config(
            "[tools]\nknowledge_bank = \"library\"\nread_bytes_max = 10\nwrite_bytes_max = 4\nlist_entries_max = 1\n\
             syllabi_folder = \"courses\"",
        )
        .file("library/long.txt", "more than ten bytes\n")
        .file("library/short.txt", "short\n")
        .file("library/courses/alchemy-grade-8.md", "# A\n")
        .start()
        .await;
    let key = daemon.writer_key().await;
    let read = async |path: &str| result(&daemon, &key, "read_text", json!({"path": path})).await;
    assert!(read("short.txt").await.contains("short"));
    let long = read("long.txt").await;
    assert!(long.contains("too_large"), "{long}");
    let write = async |content: &str| {
        let arguments = json!({"path": "new.txt", "content": content});
        result(&daemon, &key, "write_file", arguments).await
    };
    let refused = write("12345").await;
    assert!(!daemon.path("library/new.txt").exists(), "{refused}");
    write("1234").await;
    assert_eq!(daemon.read("library/new.txt"), "1234");
    let listed = result(&daemon, &key, "list_files", json!({})).await;
    let names = ["courses", "long.txt", "new.txt", "short.txt"];
    let shown = names.iter().filter(|name| listed.contains(**name)).count();
    assert_eq!(shown, 1, "{listed}");
    let plan = json!({"subject": "geometry", "level": "grade 8"});
    let plan = result(&daemon, &key, "get_study_plan", plan).await;
    assert!(plan.contains("alchemy"), "{plan}");
}

#[tokio::test]
async fn exceptions_to_the_floors_hold_for_what_they_name() {
    let ask = |path: &str| json!({"path": path});
    let usual = Setup::default()
        .file("knowledge-bank/forms/.env", "form=1\n")
        .start()
        .await;
    let text = result(&usual, &usual.key, "read_text", ask("forms/.env")).await;
    assert!(text.starts_with("Refused"), "{text}");
    let daemon = Setup::default()
        .file("knowledge-bank/forms/.env", "form=1\n")
        .file("knowledge-bank/drafts/old.md", "old\n")
        .env("TIDEGATE_GATE__ALLOWED_SENSITIVE_FILES", "forms/.env")
        .env("TIDEGATE_GATE__NO_PROMPT_PATHS", "drafts")
        .start()
        .await;
    let text = result(&daemon, &daemon.key, "read_text", ask("forms/.env")).await;
    assert!(text.contains("form=1"), "{text}");
    for (path, lands) in [("drafts/new.md", true), ("elsewhere.md", false)] {
        let arguments = json!({"path": path, "content": "new\n"});
        let text = result(&daemon, &daemon.key, "write_file", arguments).await;
        assert_eq!(
            daemon.path(&format!("knowledge-bank/{path}")).exists(),
            lands,
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn the_default_mode_bounds_every_key() {
    let daemon = Setup::default()
        .config("[engine]\ndefault_permission_mode = \"readonly\"")
        .start()
        .await;
    let key = daemon.writer_key().await;
    let arguments = json!({"path": "new.txt", "content": "x"});
    let text = result(&daemon, &key, "write_file", arguments).await;
    assert!(!daemon.path("knowledge-bank/new.txt").exists(), "{text}");
}

#[tokio::test]
async fn the_answer_s_bound_reaches_the_provider_as_it_is_called_there() {
    let own = "[models.providers.test]\n";
    for (config, client, field, expected) in [
        (
            "[engine]\nanswer_tokens_max = 77".to_owned(),
            None,
            "max_tokens",
            json!(77),
        ),
        (
            "[engine]\nanswer_tokens_max = 0".to_owned(),
            None,
            "max_tokens",
            Value::Null,
        ),
        (
            format!("{own}tokens_max = 55"),
            Some(500),
            "max_tokens",
            json!(55),
        ),
        (
            format!("{own}tokens_field = \"max_completion_tokens\""),
            Some(500),
            "max_completion_tokens",
            json!(500),
        ),
        (
            format!("{own}profile = \"openai\""),
            Some(500),
            "max_completion_tokens",
            json!(500),
        ),
    ] {
        let daemon = Setup::default().config(&config).start().await;
        let mut chat = Chat::new(&daemon, "hello there");
        if let Some(tokens) = client {
            chat = chat.with("max_tokens", json!(tokens));
        }
        let body = asked(&daemon, chat).await;
        assert_eq!(body[field], expected, "{config}");
    }
}

#[tokio::test]
async fn a_provider_is_spoken_to_in_its_dialect_with_its_window() {
    let daemon = Setup::default()
        .config("[models.providers.test]\ndialect = \"ollama\"\ncontext_tokens = 4096")
        .start()
        .await;
    Chat::new(&daemon, "hello there").send().await.content();
    let asked = daemon.upstream.requests();
    let chat = asked.iter().find(|request| request.path == "/api/chat").unwrap();
    assert_eq!(chat.body["options"]["num_ctx"], 4_096, "{:?}", chat.body);
}

#[tokio::test]
async fn fields_beyond_the_contract_reach_a_provider_that_knows_them() {
    for (config, expected) in [
        ("", Value::Null),
        ("[models.providers.test]\nextra = [\"top_k\"]", json!(7)),
    ] {
        let daemon = Setup::default().config(config).start().await;
        let body = asked(&daemon, Chat::new(&daemon, "hello there").with("top_k", json!(7))).await;
        assert_eq!(body["top_k"], expected, "{config}");
    }
}

#[tokio::test]
async fn an_answer_has_the_bounds_that_are_set() {
    let daemon = Setup::default()
        .config("[models]\nanswer_bytes_max = 10\nretries_max = 0")
        .start()
        .await;
    daemon
        .upstream
        .always(Reply::text("far more than ten bytes of text"));
    let answer = Chat::new(&daemon, "hello there").send().await;
    assert!(!answer.text.contains("bytes of text"), "{}", answer.text);

    let daemon = Setup::default()
        .config("[models]\ncalls_max = 2\narguments_bytes_max = 30")
        .start()
        .await;
    let expression = |text: &str| json!({"expression": text});
    let calls = Reply::text("")
        .call("a", "calculate", expression("1+1"))
        .call("b", "calculate", expression("1+1+1+1+1+1+1+1+1+1"))
        .call("c", "calculate", expression("40+2"));
    daemon.upstream.push(calls);
    daemon.upstream.push(Reply::text("done"));
    assert_eq!(
        Chat::new(&daemon, "please compute").send().await.content(),
        "done"
    );
    let second = daemon.upstream.chats().pop().unwrap();
    let results: Vec<&str> = second["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(results.len(), 2, "the third call is dropped: {results:?}");
    assert!(
        results[0].contains('2') && !results[1].contains("10"),
        "{results:?}"
    );
}

#[tokio::test]
async fn a_list_of_models_is_believed_for_as_long_as_is_set() {
    for (seconds, times) in [(0, 3), (600, 1)] {
        let daemon = Setup::default()
            .config(&format!("[models]\nmodels_cache_s = {seconds}"))
            .start()
            .await;
        let lists = || {
            let asked = daemon.upstream.requests();
            asked
                .iter()
                .filter(|request| request.path.ends_with("/models"))
                .count()
        };
        let before = lists();
        for _request in 0..3 {
            assert_eq!(daemon.get("/v1/models").await.0, 200);
        }
        assert_eq!(lists() - before, times, "{seconds}");
    }
}

#[tokio::test]
async fn people_are_told_what_the_operator_would_have_them_told() {
    let daemon = Setup::default()
        .without_model()
        .config("[models]\nnot_configured_hint = \"ask the IT office\"")
        .start()
        .await;
    let answer = Chat::new(&daemon, "hello there").send().await;
    assert_eq!(
        (answer.status, answer.text.contains("ask the IT office")),
        (503, true),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn an_ollama_is_looked_for_where_it_is_said_to_be() {
    let upstream = Upstream::start().await.unwrap();
    upstream.set_models(Some(vec!["first".into(), "second".into()]));
    let base = format!("ollama_url = \"{}\"\n", upstream.root_url());
    for (lines, words) in [
        (base.clone(), "first, from the Ollama"),
        (
            format!("{base}ollama_model = \"second\"\n"),
            "second, from the Ollama",
        ),
        (format!("{base}ollama = false\n"), "model=none"),
    ] {
        let home = Home::new(&format!("[discovery]\n{lines}"));
        let mut served = home.serve().await;
        served.stop().await;
        assert!(served.stderr().contains(words), "{words}: {}", served.stderr());
    }
}

#[tokio::test]
async fn logs_lie_where_they_are_said_to_and_are_put_aside_by_size() {
    let mut daemon = Setup::default()
        .config("[logs]\nfolder = \"journal\"\nfile = \"debug\"\nrotate_bytes = 64\nrotated_kept = 1")
        .start()
        .await;
    for _request in 0..4 {
        Chat::new(&daemon, "hello there").send().await.content();
    }
    assert!(daemon.terminate(std::time::Duration::from_secs(20)).await);
    assert!(!daemon.path("logs").exists());
    let names: Vec<String> = std::fs::read_dir(daemon.path("journal/agents"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "the newest and one that was put aside: {names:?}");
}

#[tokio::test]
async fn the_door_takes_as_many_connections_and_as_large_bodies_as_are_set() {
    let daemon = Setup::default()
        .config("[server]\nbody_bytes_max = 5000\nbodies_bytes_max = 16000")
        .start()
        .await;
    let chat = |bytes: usize| Chat::new(&daemon, &"x".repeat(bytes));
    assert_eq!(chat(500).send().await.status, 200);
    // An eighth of the memory is 2,000 bytes.
    let status = chat(3_000).send().await.status;
    assert!(matches!(status, 413 | 503), "{status}");

    let daemon = Setup::default()
        .config("[server]\nconnections_max = 1")
        .start()
        .await;
    let open = tokio::net::TcpStream::connect(daemon.address()).await.unwrap();
    let head = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while Raw::send(&daemon.address(), head).await.status != 503 {
        assert!(
            std::time::Instant::now() < deadline,
            "the second connection is served"
        );
    }
    drop(open);
}

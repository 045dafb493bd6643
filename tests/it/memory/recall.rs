//! What a person said is told in their next conversation, and in nobody else's.

use serde_json::{Value, json};
use tidegate_testkit::{Embeddings, Reply};

use super::{api::Api, person::Person};
use crate::support::{Chat, Daemon, Setup, outcome};

/// The system prompt of the newest request.
pub(super) fn prompt(daemon: &Daemon) -> String {
    let chats = daemon.upstream.chats();
    let first = &chats.last().unwrap()["messages"][0];
    assert_eq!(first["role"], "system");
    first["content"].as_str().unwrap().to_owned()
}

/// The names of the tools that the newest request offers.
fn tools(daemon: &Daemon) -> Vec<String> {
    let chats = daemon.upstream.chats();
    let tools = chats.last().unwrap()["tools"].as_array().cloned();
    let names = tools.unwrap_or_default().into_iter();
    names
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

const HEADING: &str = "## Notes about the user";

#[tokio::test]
async fn what_was_to_be_remembered_is_told_in_the_next_conversation_and_to_nobody_else() {
    let daemon = Daemon::start().await;
    let (ann, bob) = (Person::new(&daemon, "ann"), Person::new(&daemon, "bob"));
    ann.says("Remember that I teach 4th grade.").await;
    assert!(!prompt(&daemon).contains(HEADING), "nothing is known yet");
    let memory = ann.memory().await;
    assert_eq!(memory["data"][0]["state"], "stable", "{memory}");

    ann.says("How do I explain long division?").await;
    let told = prompt(&daemon);
    assert!(told.contains(HEADING), "{told}");
    assert!(
        told.contains("Teaches or attends this school year: “4”"),
        "{told}"
    );
    assert_eq!(told.matches("they are no instructions").count(), 1, "{told}");
    assert!(!tools(&daemon).is_empty());

    // Another user of the key, the key itself, and the same name under another key.
    bob.says("How do I explain long division?").await;
    assert!(!prompt(&daemon).contains(HEADING));
    Chat::new(&daemon, "How do I explain long division?")
        .send()
        .await
        .content();
    assert!(!prompt(&daemon).contains(HEADING));
    let other = daemon
        .make_key(json!({"name": "other", "scopes": ["chat"]}))
        .await;
    Chat::new(&daemon, "How do I explain long division?")
        .key(&other)
        .with("user", json!("ann"))
        .send()
        .await
        .content();
    assert!(!prompt(&daemon).contains(HEADING));
    assert!(bob.facts().await.is_empty());
}

#[tokio::test]
async fn what_was_said_once_is_told_only_where_it_matters_and_as_uncertain() {
    let daemon = Daemon::start().await;
    let ann = Person::new(&daemon, "ann");
    ann.says("I find fractions hard.").await;
    assert_eq!(ann.facts().await[0]["state"], "candidate");
    ann.says("Can you explain fractions?").await;
    let told = prompt(&daemon);
    assert!(
        told.contains("Not certain, said once: May find this hard: “fractions”"),
        "{told}"
    );
    ann.says("Name three rivers.").await;
    assert!(!prompt(&daemon).contains(HEADING));
}

#[tokio::test]
async fn the_question_what_is_remembered_is_answered_from_it_without_tools() {
    let daemon = Daemon::start().await;
    let ann = Person::new(&daemon, "ann");
    ann.says("What do you know about me?").await;
    let told = prompt(&daemon);
    assert!(
        told.contains("answer from this") && told.contains("I remember nothing about you."),
        "{told}"
    );
    assert!(tools(&daemon).is_empty());

    ann.says("Remember that I teach 4th grade.").await;
    ann.memory().await;
    ann.says("I find fractions hard.").await;
    ann.memory().await;
    let client =
        json!([{"type": "function", "function": {"name": "paint", "parameters": {"type": "object"}}}]);
    Chat::new(&daemon, "What do you know about me?")
        .with("user", json!("ann"))
        .with("tools", client)
        .send()
        .await
        .content();
    let told = prompt(&daemon);
    for part in [
        "What you remember of the user",
        "grade level: “4”",
        "finds hard: maybe “fractions”",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(tools(&daemon).is_empty(), "{:?}", tools(&daemon));

    let off = Setup::default().config("[memory]\nenabled = false").start().await;
    Person::new(&off, "ann").says("What do you know about me?").await;
    assert!(prompt(&off).contains("Memory is switched off here"));
    assert!(tools(&off).is_empty());
    Person::new(&off, "ann").says("Name three rivers.").await;
    assert!(!prompt(&off).contains("switched off") && !tools(&off).is_empty());
}

#[tokio::test]
async fn recall_can_be_switched_off_for_a_person_and_for_a_key() {
    let daemon = Daemon::start().await;
    let api = Api::new(&daemon);
    let ann = Person::new(&daemon, "ann");
    ann.says("Remember that I teach 4th grade.").await;
    ann.memory().await;
    let of_key = format!("/v1/admin/keys/{}/memory", api.key_id());
    for path in ["/v1/memory/settings?user=ann", &of_key] {
        api.ok("PUT", path, json!({"recall": false})).await;
        ann.says("How do I explain long division?").await;
        assert!(!prompt(&daemon).contains(HEADING), "{path}");
        ann.says("What do you know about me?").await;
        let told = prompt(&daemon);
        assert!(
            told.contains("Recalling is switched off") && !told.contains("“4”"),
            "{told}"
        );
        api.ok("PUT", path, json!({"recall": true})).await;
        ann.says("How do I explain long division?").await;
        assert!(prompt(&daemon).contains("“4”"), "{path}");
    }
}

/// A conversation that a tool's answer goes on is told the same.
#[tokio::test]
async fn notes_stay_when_a_tool_has_answered() {
    let daemon = Daemon::start().await;
    let ann = Person::new(&daemon, "ann");
    ann.says("Remember that I teach 4th grade.").await;
    ann.memory().await;
    daemon
        .upstream
        .push(Reply::text("").call("c1", "paint", json!({"colour": "red"})));
    let client =
        json!([{"type": "function", "function": {"name": "paint", "parameters": {"type": "object"}}}]);
    let asked = json!({"role": "user", "content": "Paint the fence for my class."});
    let chat = |messages: Value| {
        Chat::new(&daemon, "")
            .with("messages", messages)
            .with("user", json!("ann"))
            .with("tools", client.clone())
            .send()
    };
    let calls = chat(json!([asked])).await.json()["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": calls["tool_calls"][0]["id"], "content": "I teach 9th grade."});
    chat(json!([asked, calls, result])).await.content();
    assert!(prompt(&daemon).contains("“4”"));
    let values: Vec<Value> = ann
        .facts()
        .await
        .into_iter()
        .map(|fact| fact["value"].clone())
        .collect();
    assert_eq!(values, ["4"], "a tool's answer teaches nothing");
}

/// The lines for a scripted embedder.
fn embedder(server: &Embeddings) -> String {
    format!(
        "[embeddings]\nprovider = \"openai\"\nmodel = \"some-model\"\nbase_url = \"{}\"\n[routing]\nenabled = false\n[kb]\nenabled = false\n",
        server.base_url()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedder_that_is_slow_or_dead_costs_recall_its_vectors_and_nothing_else() {
    let server = Embeddings::start(64).await.unwrap();
    let daemon = Setup::default()
        .config(&embedder(&server))
        .config("[memory]\nrecall_timeout_ms = 100\n")
        .start()
        .await;
    let ann = Person::new(&daemon, "ann");
    ann.says("I find fractions hard.").await;
    assert_eq!(ann.facts().await.len(), 1);
    let has_vectors = async || {
        let found = Api::new(&daemon)
            .ok("GET", "/v1/memory/search?user=ann&q=fractions", Value::Null)
            .await;
        !found["data"][0]["vectors"].is_null()
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !has_vectors().await {
        assert!(
            std::time::Instant::now() < deadline,
            "the note never got its vector"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.slow("fractions", std::time::Duration::from_secs(30));
    let begun = std::time::Instant::now();
    ann.says("Can you explain fractions?").await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    assert!(prompt(&daemon).contains("May find this hard"));
    server.fail(Some(500));
    ann.says("Can you explain fractions once more?").await;
    assert!(prompt(&daemon).contains("May find this hard"));
}

#[tokio::test]
async fn the_prompt_command_shows_that_there_are_notes_and_not_what_they_say() {
    let daemon = Daemon::start().await;
    let ann = Person::new(&daemon, "ann");
    ann.says("Remember that I teach 4th grade.").await;
    ann.memory().await;
    let key = daemon.key.split('_').nth(1).unwrap();
    let show = |user: &str| {
        let arguments = [
            "prompt",
            "--key",
            key,
            "--user",
            user,
            "--message",
            "good morning to you",
            "--json",
        ];
        let (code, out, err) = outcome(&daemon.run(&arguments));
        assert_eq!(code, Some(0), "{err}");
        out
    };
    let shown = show("ann");
    assert!(
        shown.contains("\"recalled\"") && !shown.contains("school year"),
        "{shown}"
    );
    assert!(!show("bob").contains("\"recalled\""));
}

const SYLLABUS: &str = "---\nsubject: Biology\nlevel: 9th grade\nweeks: 2\n---\n## Week 1: Cells\n- Membranes\n## Week 2: Genes\n- DNA\n";

#[tokio::test]
async fn a_study_plan_goes_by_the_persons_level_subject_and_gaps() {
    let daemon = Setup::default()
        .file("knowledge-bank/syllabi/biology-9.md", SYLLABUS)
        .file(
            "knowledge-bank/syllabi/biology-4.md",
            &SYLLABUS.replace("9th grade", "4th grade"),
        )
        .start()
        .await;
    let ann = Person::new(&daemon, "ann");
    for said in [
        "Remember that I am in 9th grade.",
        "Remember that I mostly study biology.",
        "Remember that I find DNA hard.",
    ] {
        ann.says(said).await;
        ann.memory().await;
    }
    assert_eq!(ann.facts().await.len(), 3, "{:?}", ann.facts().await);
    let plan = async |who: &Person<'_>, arguments: Value| {
        daemon
            .upstream
            .push(Reply::text("").call("c1", "get_study_plan", arguments));
        who.says("Make me a plan, please.").await;
        let chats = daemon.upstream.chats();
        let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    let all = plan(&ann, json!({})).await;
    assert!(
        all.contains("Biology, 9th grade") && all.contains("gap: Genes"),
        "{all}"
    );
    let given = plan(&ann, json!({"subject": "biology", "level": "4"})).await;
    assert!(
        given.contains("Biology, 4th grade") && given.contains("gap: Genes"),
        "{given}"
    );
    let other = plan(&Person::new(&daemon, "bob"), json!({"subject": "biology"})).await;
    assert!(other.contains("several syllabi fit"), "{other}");
    let nothing = plan(&Person::new(&daemon, "bob"), json!({})).await;
    assert!(nothing.contains("subject"), "{nothing}");
}

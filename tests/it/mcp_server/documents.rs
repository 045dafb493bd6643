//! Documents as resources, skills as prompts.

use std::time::{Duration, Instant};

use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Value, json};

use super::client::{Client, GENERATIONS, Generation, Person, call, connect, text};
use crate::support::{Daemon, Setup};

const PATIENCE: Duration = Duration::from_mins(1);
const SKILL: &str = "---\nname: minutes\ndescription: Writes minutes.\nkeywords: [write minutes, minutes of]\n---\nList decisions first.\n";

async fn daemon(config: &str) -> Daemon {
    let daemon = Setup::default()
        .config(config)
        .file(
            "knowledge-bank/rules/leave 2026.md",
            "# Leave\n\nParental leave lasts twelve weeks.\n",
        )
        .file("knowledge-bank/.env", "SECRET=tidal-secret-value\n")
        .file("skills/minutes/SKILL.md", SKILL)
        .start()
        .await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, status) = daemon.get("/v1/admin/kb").await;
        if status["documents"].as_u64() >= Some(2) && status["pending"] == 0 {
            return daemon;
        }
        assert!(Instant::now() < deadline, "{status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn read(client: &Client, uri: &str) -> Result<String, String> {
    let result = client
        .read_resource(ReadResourceRequestParams::new(uri))
        .await
        .map_err(|error| error.to_string())?;
    let contents = serde_json::to_value(&result.contents).unwrap();
    assert_eq!(contents[0]["uri"], uri);
    Ok(contents[0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn documents_are_listed_and_read_by_the_rules_of_the_tools() {
    let daemon = daemon("").await;
    for (link, target) in [("out.md", "../AGENT.md"), ("folder-out", "..")] {
        std::os::unix::fs::symlink(target, daemon.path("knowledge-bank").join(link)).unwrap();
    }
    for generation in GENERATIONS {
        let client = connect(&daemon, &daemon.key, Person::default(), generation).await;
        let listed = client.list_all_resources().await.unwrap();
        let uris: Vec<&str> = listed.iter().map(|resource| resource.uri.as_str()).collect();
        assert_eq!(
            uris,
            ["kb:///notes.txt", "kb:///rules/leave%202026.md"],
            "{generation:?}"
        );
        let said = read(&client, "kb:///rules/leave%202026.md").await.unwrap();
        assert!(said.contains("twelve weeks"), "{said}");
        assert!(said.contains("kb-"), "{said}");
        for shut in [
            "kb:///.env",
            "kb:///../AGENT.md",
            "kb:///%2e%2e/AGENT.md",
            "file:///etc/passwd",
            "kb:///no-such.md",
            "kb:///",
            "kb:///..%2fAGENT.md",
            "kb:///%252e%252e/AGENT.md",
            "kb:///rules/..%5c..%5cAGENT.md",
            "kb:///%2Fetc%2Fpasswd",
            "kb:////etc/passwd",
            "kb:///notes.txt%00.md",
            "kb:///%c0%ae%c0%ae/AGENT.md",
            "kb:///rules",
            "kb:///out.md",
            "kb:///folder-out/AGENT.md",
            "kb://host/notes.txt",
            "kb:notes.txt",
            "KB:///notes.txt",
            "kb:///notes.txt?part=0",
            "kb:///notes.txt?part=-1",
            "kb:///notes.txt?part=99999999999999999999",
            "kb:///notes.txt?path=../AGENT.md",
            "http://127.0.0.1:1/",
            "",
        ] {
            let refused = read(&client, shut).await.unwrap_err();
            assert!(
                !refused.contains("tidal-secret") && !refused.contains("test agent"),
                "{shut}: {refused}"
            );
        }
        let templates = client.list_all_resource_templates().await.unwrap();
        assert_eq!(templates[0].uri_template, "kb:///{+path}{?part}");
        let found = call(
            &client,
            "search_knowledge_base",
            json!({"query": "parental leave"}),
        )
        .await;
        assert!(text(&found).contains("twelve weeks"), "{found:?}");
    }
    let log = daemon.read("logs/tools.jsonl");
    assert!(log.contains("\"tool\":\"read_document\""), "{log}");
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let mut setup = Setup::default();
    for number in 0..130 {
        setup = setup.file(
            &format!("knowledge-bank/d{number:03}.txt"),
            &format!("document {number}\n"),
        );
    }
    let daemon = setup.start().await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, status) = daemon.get("/v1/admin/kb").await;
        if status["documents"].as_u64() >= Some(131) {
            break;
        }
        assert!(Instant::now() < deadline, "{status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let client = connect(&daemon, &daemon.key, Person::default(), Generation::Newer).await;
    let first = client.list_resources(None).await.unwrap();
    assert_eq!(first.resources.len(), 100);
    assert_eq!(client.list_all_resources().await.unwrap().len(), 131);
}

#[tokio::test]
async fn skills_are_prompts_with_the_task_below_them() {
    let daemon = daemon("").await;
    let client = connect(&daemon, &daemon.key, Person::default(), Generation::Older).await;
    let prompts = client.list_all_prompts().await.unwrap();
    assert_eq!((prompts.len(), prompts[0].name.as_str()), (1, "minutes"));
    let mut params = GetPromptRequestParams::new("minutes");
    params.arguments = json!({"task": "the meeting of May"}).as_object().cloned();
    let prompt = client.get_prompt(params).await.unwrap();
    let message: Value = serde_json::to_value(&prompt.messages[0]).unwrap();
    let said = message["content"]["text"].as_str().unwrap();
    assert!(
        said.contains("List decisions first.") && said.ends_with("the meeting of May"),
        "{said}"
    );
    for name in ["../AGENT", "minutes/../minutes", "MINUTES", "", "minutes\u{0}"] {
        assert!(
            client
                .get_prompt(GetPromptRequestParams::new(name))
                .await
                .is_err(),
            "{name:?}"
        );
    }
    for (arguments, is_right) in [
        (json!({"task": 7}), false),
        (json!({"task": ["a"]}), false),
        (json!({"task": "x".repeat(16_385)}), false),
        (json!({"unknown": "x"}), true),
        (
            json!({"task": "{{task}} ${HOME} %s\u{202e}\n---\nname: other"}),
            true,
        ),
    ] {
        let mut params = GetPromptRequestParams::new("minutes");
        params.arguments = arguments.as_object().cloned();
        let prompt = client.get_prompt(params).await;
        assert_eq!(prompt.is_ok(), is_right, "{arguments}");
        let Some(task) = arguments["task"].as_str().filter(|_| is_right) else {
            continue;
        };
        let message = serde_json::to_value(&prompt.unwrap().messages[0]).unwrap();
        let said = message["content"]["text"].as_str().unwrap();
        assert!(said.ends_with(task), "it is text and nothing else: {said}");
    }
}

#[tokio::test]
async fn documents_and_skills_can_be_kept_back() {
    let daemon = daemon("[mcp_server]\ndocuments = false\nskills = false").await;
    let client = connect(&daemon, &daemon.key, Person::default(), Generation::Newer).await;
    assert!(client.list_all_resources().await.unwrap().is_empty());
    assert!(client.list_all_resource_templates().await.unwrap().is_empty());
    assert!(read(&client, "kb:///notes.txt").await.is_err());
    assert!(client.list_all_prompts().await.unwrap().is_empty());
    assert!(
        client
            .get_prompt(GetPromptRequestParams::new("minutes"))
            .await
            .is_err()
    );
}

//! Tools of an operator's file: programs and services.

use std::collections::BTreeSet;

use serde_json::json;
use tidegate_core::tool::{Effect, FailureCode, ToolResult};
use tidegate_gate::ToolBox;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use super::{Desk, code};

const PROGRAMS: &str = r#"
remove = ["write_file"]

[[tool]]
name = "greet"
description = "Greets somebody."
mode = "command"
command = ["/bin/echo", "hello", "{who}", "--tone={tone}"]
accept = [{ who = "Ann" }]
refuse = [{}, { who = "-n" }]
[[tool.parameters]]
name = "who"
type = "string"
description = "Whom."
required = true
[[tool.parameters]]
name = "tone"
type = "string"
description = "How."

[[tool]]
name = "fail"
description = "Fails."
mode = "command"
command = ["/bin/ls", "/no/such/folder/{name}"]
accept = [{ name = "x" }]
[[tool.parameters]]
name = "name"
type = "string"
description = "What."
required = true

[[tool]]
name = "surroundings"
description = "Shows what a program sees of the server."
mode = "command"
command = ["/usr/bin/env"]
accept = [{}]

[[tool]]
name = "endless"
description = "Never ends."
mode = "command"
command = ["sleep", "600"]
timeout_ms = 100
accept = [{}]

[[tool]]
name = "loud"
description = "Says a lot."
mode = "command"
command = ["seq", "100000"]
output_bytes_max = 256
accept = [{}]

[[tool]]
name = "gone"
description = "Is not installed."
mode = "command"
command = ["/no/such/program"]
accept = [{}]
"#;

#[tokio::test]
async fn a_row_makes_a_program_a_tool() {
    let desk = Desk::with(Some(PROGRAMS), |_| {});
    assert!(desk.tools.specs().iter().all(|spec| spec.name != "write_file"));
    let greet = desk
        .tools
        .specs()
        .iter()
        .find(|spec| spec.name == "greet")
        .cloned()
        .unwrap();
    assert_eq!(greet.effect, Effect::External);
    let said = desk
        .said("greet", json!({"who": "Ann; $(id) 'x", "tone": "a b"}))
        .await;
    assert_eq!(said, "hello Ann; $(id) 'x --tone=a b\n");
    assert_eq!(desk.said("greet", json!({"who": "Bob"})).await, "hello Bob\n");
    let option = desk.call("greet", json!({"who": "-e"})).await;
    assert_eq!(code(&option), Some(FailureCode::InvalidArguments));

    let failed = desk.call("fail", json!({"name": "x"})).await;
    assert_eq!(code(&failed), Some(FailureCode::Unsuccessful));
    assert!(
        failed.to_model_text().contains("ended with status 2 and said:"),
        "{failed:?}"
    );

    let seen = desk.said("surroundings", json!({})).await;
    let names: BTreeSet<&str> = seen.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(names, BTreeSet::from(["LANG", "PATH"]));

    assert_eq!(
        desk.call("endless", json!({})).await,
        ToolResult::TimedOut { after_ms: 100 }
    );
    let loud = desk.said("loud", json!({})).await;
    assert!(loud.contains("[cut: ") && loud.len() < 400, "{loud}");
    assert_eq!(
        code(&desk.call("gone", json!({})).await),
        Some(FailureCode::Internal)
    );
}

/// A service that answers each path in its own way and says back what it was sent.
async fn service(tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut seen = Vec::new();
            let mut chunk = [0; 4096];
            let request = loop {
                let count = stream.read(&mut chunk).await.unwrap_or(0);
                seen.extend_from_slice(&chunk[..count]);
                let text = String::from_utf8_lossy(&seen).into_owned();
                let wanted: usize = text
                    .to_lowercase()
                    .split_once("content-length: ")
                    .and_then(|(_, rest)| rest.split_once("\r\n")?.0.parse().ok())
                    .unwrap_or(0);
                if count == 0
                    || text
                        .split_once("\r\n\r\n")
                        .is_some_and(|(_, body)| body.len() >= wanted)
                {
                    break text;
                }
            };
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let (status, body) = match path.as_str() {
                "/items/missing" => ("404 Not Found", b"no such item".to_vec()),
                "/items/elsewhere" => ("302 Found\r\nlocation: http://other.example/", Vec::new()),
                "/items/image" => ("200 OK", vec![0xff, 0, 0xff]),
                "/items/long" => ("200 OK", "é".repeat(4000).into_bytes()),
                _ => ("200 OK", request.into_bytes()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&body).await.unwrap();
        }
    });
    format!("http://{address}")
}

const SERVICES: &str = r#"
[[tool]]
name = "get_item"
description = "Gets an item."
mode = "http_get"
url = "BASE/items/{id}?lang={lang}"
headers = { X-Token = "hush" }
output_bytes_max = 1024
accept = [{ id = "a" }]
refuse = [{}, { id = ".." }]
[[tool.parameters]]
name = "id"
type = "string"
description = "Which."
required = true
[[tool.parameters]]
name = "lang"
type = "string"
description = "Language."

[[tool]]
name = "add_item"
description = "Adds an item."
mode = "http_post"
url = "BASE/items"
body = { title = "{title}", tags = "{tags}", count = "{count}" }
accept = [{ title = "a" }]
[[tool.parameters]]
name = "title"
type = "string"
description = "What."
required = true
[[tool.parameters]]
name = "tags"
type = "string_list"
description = "Tags."
[[tool.parameters]]
name = "count"
type = "integer"
description = "How many."
"#;

#[tokio::test]
async fn a_row_makes_a_service_a_tool() {
    let mut tasks = JoinSet::new();
    let base = service(&mut tasks).await;
    let desk = Desk::with(Some(&SERVICES.replace("BASE", &base)), |_| {});
    let got = desk.said("get_item", json!({"id": "a/b?c", "lang": "d&e"})).await;
    assert!(
        got.starts_with("HTTP 200\n\nGET /items/a%2Fb%3Fc?lang=d%26e HTTP/1.1\r\n"),
        "{got}"
    );
    assert!(got.to_lowercase().contains("x-token: hush"), "{got}");
    let added = desk
        .said("add_item", json!({"title": "say \"x\"", "tags": ["a", "b"]}))
        .await;
    assert!(
        added.starts_with("HTTP 200\n\nPOST /items HTTP/1.1\r\n"),
        "{added}"
    );
    let body: serde_json::Value = serde_json::from_str(added.rsplit("\r\n\r\n").next().unwrap()).unwrap();
    assert_eq!(body, json!({"title": "say \"x\"", "tags": ["a", "b"]}));

    for (id, wanted, fragment) in [
        ("missing", FailureCode::NotFound, "404:\nno such item"),
        ("elsewhere", FailureCode::Unsuccessful, "not followed"),
        ("image", FailureCode::NotText, "not text"),
    ] {
        let result = desk.call("get_item", json!({"id": id})).await;
        assert_eq!(code(&result), Some(wanted), "{id}");
        assert!(result.to_model_text().contains(fragment), "{result:?}");
    }
    let long = desk.said("get_item", json!({"id": "long"})).await;
    assert!(long.contains("[cut: ") && long.len() < 1200, "{}", long.len());

    tasks.shutdown().await;
    let away = desk.call("get_item", json!({"id": "a"})).await;
    // A program that another test starts at this moment may hold the listener for an instant more.
    let text = away.to_model_text();
    assert!(
        text.contains("cannot be reached") || text.contains("broke"),
        "{away:?}"
    );
    assert!(!format!("{:?}", desk.tools).contains("hush"));
}

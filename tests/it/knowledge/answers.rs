//! From a file in the folder to an answer that names it: the whole way, over the wire.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup, chunks};

const HANDBOOK: &str = "---\nauthority: primary\n---\n\
    # Staff handbook\n\n## Parental leave\n\nEvery employee may take fourteen weeks of parental leave within two years of a birth.\n\n\
    ## Travel\n\nTrains are booked in second class. Flights need the consent of the head of department.\n";

/// How long indexing may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A daemon whose handbook is in the index.
async fn daemon() -> Daemon {
    let daemon = Setup::default()
        .file("knowledge-bank/handbook.md", HANDBOOK)
        .start()
        .await;
    indexed(&daemon, 2).await;
    daemon
}

/// Waits until so many documents are in the index and nothing waits.
pub(super) async fn indexed(daemon: &Daemon, documents: u64) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, body) = daemon.get("/v1/admin/kb").await;
        assert_eq!(status, 200, "{body}");
        if body["documents"].as_u64() >= Some(documents) && body["pending"] == 0 {
            return body;
        }
        assert!(Instant::now() < deadline, "not indexed: {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The citation of the best passage.
async fn citation(daemon: &Daemon, query: &str) -> String {
    let (status, body) = daemon
        .admin("POST", "/v1/admin/kb/search", json!({"query": query, "k": 1}))
        .await;
    assert_eq!(status, 200, "{body}");
    body["data"][0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("nothing found: {body}"))
        .to_owned()
}

fn search(query: &str) -> Reply {
    Reply::text("").call("s", "search_knowledge_base", json!({"query": query}))
}

const QUESTION: &str = "How many weeks of parental leave may an employee take?";

#[tokio::test]
async fn an_answer_names_its_sources_and_nothing_that_was_made_up() {
    let daemon = daemon().await;
    let id = citation(&daemon, QUESTION).await;
    let script = || {
        daemon.upstream.push(search(QUESTION));
        daemon.upstream.push(Reply::text(format!(
            "Fourteen weeks [{id}], says the law [kb-aaaaaaaaaa]."
        )));
    };
    script();
    let answer = Chat::new(&daemon, QUESTION).send().await;
    assert_eq!(answer.content(), format!("Fourteen weeks [{id}], says the law."));
    let body = answer.json();
    let annotations = &body["choices"][0]["message"]["annotations"];
    assert_eq!(
        annotations,
        &json!([{"type": "url_citation", "url_citation": {
            "start_index": 16, "end_index": 29, "title": "Staff handbook", "url": format!("kb:handbook.md#{id}")}}])
    );
    let extension = body["tidegate"].clone();
    assert_eq!(extension["removed_citations"], 1);
    let named: Vec<&Value> = extension["citations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|citation| citation["named"] == true)
        .collect();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0]["id"], id.as_str());
    assert_eq!(named[0]["headings"], json!(["Staff handbook", "Parental leave"]));
    assert_eq!(named[0]["authority"], "primary");

    // The same on a stream: the text is the same, and the finish chunk carries the sources.
    script();
    let stream = Chat::new(&daemon, QUESTION).stream().send().await;
    assert_eq!(stream.content(), answer.content());
    let carried: Vec<Value> = chunks(&stream.text)
        .into_iter()
        .filter(|chunk| !chunk["tidegate"].is_null())
        .collect();
    assert_eq!(carried.len(), 1, "{}", stream.text);
    assert_eq!(carried[0]["tidegate"], extension);
    assert_eq!(carried[0]["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn an_answer_that_names_nothing_still_says_what_it_rests_on() {
    let daemon = daemon().await;
    daemon.upstream.push(search(QUESTION));
    daemon.upstream.push(Reply::text("Fourteen weeks."));
    let body = Chat::new(&daemon, QUESTION).send().await.json();
    let annotations = body["choices"][0]["message"]["annotations"].as_array().unwrap();
    assert!(!annotations.is_empty());
    assert_eq!(annotations[0]["url_citation"]["start_index"], 15);
    assert_eq!(annotations[0]["url_citation"]["end_index"], 15);
    assert_eq!(body["tidegate"]["citations"][0]["named"], false);
}

#[tokio::test]
async fn an_answer_without_documents_says_nothing_of_sources() {
    let daemon = daemon().await;
    daemon.upstream.push(Reply::text("Hello."));
    let body = Chat::new(&daemon, "Good morning").send().await.json();
    assert!(body["tidegate"].is_null(), "{body}");
    assert!(body["choices"][0]["message"]["annotations"].is_null(), "{body}");
}

#[tokio::test]
async fn what_the_documents_say_is_data_to_the_model() {
    let daemon = daemon().await;
    let id = citation(&daemon, QUESTION).await;
    daemon.upstream.push(search(QUESTION));
    daemon.upstream.push(Reply::text("ok"));
    Chat::new(&daemon, QUESTION).send().await.content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
    let text = result["content"].as_str().unwrap();
    assert!(
        text.contains(&format!(
            "[{id}] handbook.md, primary: Staff handbook > Parental leave"
        )),
        "{text}"
    );
    assert!(text.contains("fourteen weeks of parental leave"), "{text}");
    // The wrap that all text from outside gets.
    assert!(
        text.starts_with("<<<EXTERNAL_UNTRUSTED_CONTENT") && text.contains("<<<END_UNTRUSTED_CONTENT"),
        "{text}"
    );
}

#[tokio::test]
async fn a_file_that_a_tool_writes_is_found_by_the_next_search() {
    let daemon = daemon().await;
    let writer = daemon.writer_key().await;
    let content = "# Canteen\n\nOn Wednesdays the canteen serves lentil stew with smoked paprika.\n";
    daemon.upstream.push(Reply::text("").call(
        "w",
        "write_file",
        json!({"path": "canteen.md", "content": content}),
    ));
    daemon
        .upstream
        .push(search("When is there lentil stew with smoked paprika?"));
    daemon.upstream.push(Reply::text("On Wednesdays."));
    let body = Chat::new(&daemon, "Save this, then look it up")
        .key(&writer)
        .send()
        .await
        .json();
    assert_eq!(
        body["tidegate"]["citations"][0]["document"], "canteen.md",
        "{body}"
    );
}

#[tokio::test]
async fn an_upload_is_judged_stored_and_found() {
    let daemon = daemon().await;
    let put = |path: &str, body: &'static str| {
        let request = daemon
            .ask("PUT", &format!("/v1/admin/kb/documents/{path}"))
            .bearer_auth(&daemon.key);
        async move { request.body(body).send().await.unwrap() }
    };
    let text = "# Parking\n\nVisitors park behind the gymnasium for four euros a day.\n";
    let first = put("visitors/parking.md", text).await;
    assert_eq!(first.status(), 201);
    assert_eq!(put("visitors/parking.md", text).await.status(), 200);
    indexed(&daemon, 3).await;
    let id = citation(&daemon, "Where do visitors park and what does it cost?").await;
    let (_, list) = daemon.get("/v1/admin/kb/documents?path=visitors/**").await;
    assert_eq!(list["data"][0]["path"], "visitors/parking.md", "{list}");
    assert_eq!(list["data"][0]["status"], "indexed", "{list}");
    assert!(id.starts_with("kb-"));
    for (path, status) in [(".env", 403), ("..%2f..%2fescape.md", 400), ("%00.md", 400)] {
        assert_eq!(put(path, "x").await.status(), status, "{path}");
    }
    assert!(!daemon.path("escape.md").exists());
    let trail = daemon.read("logs/audit.jsonl");
    assert!(trail.contains("\"upload\""), "{trail}");
}

#[tokio::test]
async fn only_administrators_see_the_knowledge_base_from_outside() {
    let daemon = daemon().await;
    let key = daemon
        .make_key(json!({"name": "u", "scopes": ["chat", "tools"]}))
        .await;
    for (method, path) in [
        ("GET", "/v1/admin/kb"),
        ("POST", "/v1/admin/kb/index"),
        ("GET", "/v1/admin/kb/documents"),
        ("POST", "/v1/admin/kb/search"),
        ("POST", "/v1/admin/kb/explain"),
        ("PUT", "/v1/admin/kb/documents/a.md"),
    ] {
        let request = daemon
            .client
            .request(method.parse().unwrap(), daemon.url(path))
            .bearer_auth(&key);
        let status = request.body("{}").send().await.unwrap().status();
        assert_eq!(status, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_is_refused_by_field() {
    let daemon = daemon().await;
    for (body, field) in [
        (json!({"query": "x", "k": 0}), "k"),
        (json!({"query": "x", "format": "exe"}), "format"),
        (json!({"query": "x", "authority_min": "divine"}), "authority_min"),
        (json!({"k": 3}), "query"),
        (json!({"query": "x", "page": 3}), "page"),
    ] {
        let (status, answer) = daemon.admin("POST", "/v1/admin/kb/search", body.clone()).await;
        assert_eq!(status, 400, "{body}: {answer}");
        assert_eq!(answer["error"]["param"], field, "{body}: {answer}");
    }
    // What finds nothing is an answer.
    let long = "wort ".repeat(20_000);
    for query in [
        "",
        "   ",
        "the of and",
        "\"*\" NEAR( AND",
        "\u{1f600}",
        "\u{0}\u{7}",
        long.as_str(),
    ] {
        let (status, answer) = daemon
            .admin("POST", "/v1/admin/kb/search", json!({"query": query}))
            .await;
        assert!(status == 200 || status == 400, "{query:.20}: {answer}");
    }
    let (status, answer) = daemon
        .admin(
            "POST",
            "/v1/admin/kb/search",
            json!({"query": "zebra migration across the Serengeti"}),
        )
        .await;
    assert_eq!(
        (status, answer["data"].as_array().unwrap().len()),
        (200, 0),
        "{answer}"
    );
}

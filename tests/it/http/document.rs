//! `/openapi.json` describes what the daemon does: every route, every header and every status, no more and no less.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{Answer, Daemon, Raw, Setup};

const CHAT: &str = "/v1/chat/completions";
const DOCUMENTS: &str = "/v1/admin/kb/documents/";

async fn document(daemon: &Daemon) -> Value {
    let (status, document) = daemon.get("/openapi.json").await;
    assert_eq!(status, 200);
    document
}

/// One operation of the document.
struct Operation<'a> {
    method: String,
    template: &'a str,
    value: &'a Value,
}

impl Operation<'_> {
    /// The path with this in the place of its variable segment.
    fn path(&self, segment: &str) -> String {
        match self.template.split_once('{') {
            Some((before, after)) => {
                let (_, rest) = after.split_once('}').unwrap();
                format!("{before}{segment}{rest}")
            }
            None => self.template.to_owned(),
        }
    }

    /// The path of something that is not there. What is uploaded is not what another operation looks for.
    fn sample(&self) -> String {
        self.path(if self.is_upload() {
            "bbbbbbbbbbbb"
        } else {
            "aaaaaaaaaaaa"
        })
    }

    fn statuses(&self) -> BTreeSet<u16> {
        let responses = self.value["responses"].as_object().unwrap();
        responses.keys().map(|status| status.parse().unwrap()).collect()
    }

    fn has_body(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PATCH" | "PUT")
    }

    /// Whether only JSON is a body of it.
    fn wants_json(&self) -> bool {
        self.has_body() && !self.is_upload()
    }

    fn is_upload(&self) -> bool {
        self.method == "PUT" && self.template.starts_with(DOCUMENTS)
    }

    fn is_memory(&self) -> bool {
        self.template.contains("/memory")
    }

    /// What this operation of memory takes, in the path and in the body.
    fn memory_sample(&self) -> (String, &'static str) {
        let query = if self.template.ends_with("/search") {
            "?q=a"
        } else {
            ""
        };
        let body = match (self.method.as_str(), self.template) {
            ("POST", "/v1/memory/facts") => "{\"kind\": \"name\", \"value\": \"Ann\"}",
            ("POST", "/v1/memory/import") => "{}",
            ("POST" | "PATCH", _) => "{\"retracted\": true}",
            ("PUT", _) => "{\"recall\": true}",
            _ => "",
        };
        (format!("{}{query}", self.sample()), body)
    }

    /// A method that its route does not have.
    fn wrong_method(&self) -> &'static str {
        let has_put = [DOCUMENTS, "/v1/memory/settings", "/v1/admin/keys/{id}/memory"];
        if has_put.iter().any(|path| self.template.starts_with(path)) {
            "PATCH"
        } else {
            "PUT"
        }
    }

    fn is_public(&self) -> bool {
        self.template.starts_with("/health")
    }

    fn is_admin(&self) -> bool {
        self.template.starts_with("/v1/admin/")
    }
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(template, operations)| {
        operations
            .as_object()
            .unwrap()
            .iter()
            .map(move |(method, value)| Operation {
                method: method.to_uppercase(),
                template,
                value,
            })
    });
    all.collect()
}

/// What a reference in the document stands for.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document
            .pointer(reference.strip_prefix('#').unwrap())
            .unwrap_or_else(|| panic!("{reference} leads nowhere")),
        None => value,
    }
}

fn each_reference(value: &Value, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                found(reference);
            }
            fields.values().for_each(|value| each_reference(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| each_reference(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Asserts that an answer is an error of the form that the document gives for its status.
fn assert_described(document: &Value, operation: &Operation<'_>, answer: &Answer) {
    let what = format!("{} {}: {}", operation.method, operation.template, answer.text);
    let described = &operation.value["responses"][answer.status.to_string()];
    let described = resolved(document, described);
    for name in described["headers"]
        .as_object()
        .unwrap_or_else(|| panic!("{what}"))
        .keys()
    {
        let optional = name.starts_with("x-ratelimit") || name == "x-should-retry" || name == "retry-after";
        assert!(
            optional || !answer.header(name).is_empty(),
            "`{name}` is missing: {what}"
        );
    }
    let schema = &described["content"]["application/json"]["schema"];
    assert_eq!(schema["$ref"], "#/components/schemas/Envelope", "{what}");
    let error = answer.json()["error"].clone();
    let body = &document["components"]["schemas"]["EnvelopeBody"]["properties"];
    let (sent, said): (BTreeSet<_>, BTreeSet<_>) = (
        error.as_object().unwrap().keys().collect(),
        body.as_object().unwrap().keys().collect(),
    );
    assert_eq!(sent, said, "{what}");
}

/// Everything that can go wrong with a request to this operation before it does its work.
async fn provoke(daemon: &Daemon, operation: &Operation<'_>, keys: &Keys) -> Vec<Answer> {
    let path = operation.sample();
    let ask = |key: &str| {
        let request = daemon.ask(&operation.method, &path);
        if key.is_empty() {
            request
        } else {
            request.bearer_auth(key)
        }
    };
    let mut requests = vec![
        ask(""),
        ask(&keys.all).header("host", "evil.test"),
        ask(&keys.all).header("x-api-key", "two"),
        ask(&keys.all).header("x-tidegate-mode", "nonsense"),
        ask(&keys.slow),
        ask(&keys.slow),
        daemon.ask(operation.wrong_method(), &path).bearer_auth(&keys.all),
    ];
    if operation.is_admin() || operation.template == CHAT {
        requests.push(ask(if operation.is_admin() {
            &keys.chat
        } else {
            &keys.admin
        }));
    }
    if operation.wants_json() {
        requests.push(ask(&keys.all).header("content-type", "image/png").body("x"));
    }
    if operation.template.contains('{') {
        // A run or a key that could be there, and a model.
        let request = daemon.ask(
            &operation.method,
            &operation
                .sample()
                .replace("/runs/", "/runs/run_")
                .replace("/approvals/", "/approvals/appr_"),
        );
        let body = if operation.is_memory() {
            operation.memory_sample().1
        } else if operation.method == "PATCH" || operation.template.ends_with("{id}") && operation.has_body()
        {
            "{\"name\": \"x\"}"
        } else if operation.template.ends_with("/decision") {
            "{\"decision\": \"deny\"}"
        } else {
            ""
        };
        requests.push(request.bearer_auth(&keys.all).body(body));
    }
    if operation.template == CHAT {
        let body = json!({"model": "nope", "messages": [{"role": "user", "content": "hello there"}]});
        requests.push(ask(&keys.all).json(&body));
    }
    let mut answers = Vec::new();
    for request in requests {
        answers.push(Answer::of(request.send().await.unwrap()).await);
    }
    answers
}

/// Statuses of requests that only bytes can make.
async fn provoke_raw(daemon: &Daemon, operation: &Operation<'_>, key: &str) -> Vec<u16> {
    let head = |fields: &str| {
        format!(
            "{} {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n{fields}\r\n",
            operation.method,
            operation.sample()
        )
    };
    let mut heads = vec![head(&"x: y\r\n".repeat(70))];
    if operation.has_body() {
        heads.push(head("expect: 100-continue\r\ncontent-length: 99999999999\r\n"));
    }
    let mut statuses = Vec::new();
    for head in heads {
        statuses.push(Raw::send(&daemon.address(), head.as_bytes()).await.status);
    }
    statuses
}

struct Keys {
    all: String,
    chat: String,
    admin: String,
    slow: String,
}

impl Keys {
    async fn make(daemon: &Daemon) -> Self {
        let scopes = json!(["chat", "tools", "admin", "approvals:read", "approvals:decide:own"]);
        let key = async |scopes: Value, limit: Value| {
            daemon
                .make_key(json!({"name": "x", "scopes": scopes, "requests_per_minute": limit}))
                .await
        };
        Self {
            all: daemon.key.clone(),
            chat: key(json!(["chat"]), Value::Null).await,
            admin: key(json!(["admin"]), Value::Null).await,
            slow: key(scopes, json!(1)).await,
        }
    }
}

/// A request whose body the daemon waits for, which is under way for as long.
async fn hold_one(daemon: &Daemon) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.address()).await.unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nexpect: 100-continue\r\n\
         content-length: 10\r\n\r\n",
        daemon.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut leave = [0; 12];
    stream.read_exact(&mut leave).await.unwrap();
    assert_eq!(&leave, b"HTTP/1.1 100");
    stream
}

/// What these tests can bring about, of what the document has.
const PROVOKED: [u16; 11] = [400, 401, 403, 404, 405, 413, 415, 429, 431, 500, 503];

#[tokio::test]
async fn every_refusal_that_comes_is_described_and_every_described_one_comes() {
    let daemon = Daemon::start().await;
    let full = Setup::default()
        .config("[server]\nrequests_max = 1\nbody_timeout_ms = 300000")
        .start()
        .await;
    let _held = hold_one(&full).await;
    let forgetful = Setup::default().config("[memory]\nenabled = false").start().await;
    let keys = Keys::make(&daemon).await;
    let document = document(&daemon).await;
    let operations = operations(&document);
    assert!(operations.len() > 15, "{}", operations.len());
    for operation in &operations {
        let mut seen = BTreeSet::new();
        for answer in provoke(&daemon, operation, &keys).await {
            if answer.status >= 400 {
                let is_wrong_method = answer.status == 405;
                assert!(
                    is_wrong_method || operation.statuses().contains(&answer.status),
                    "{}",
                    answer.text
                );
                assert_described(&document, operation, &answer);
                seen.insert(answer.status);
            }
        }
        seen.extend(
            provoke_raw(&daemon, operation, &keys.all)
                .await
                .into_iter()
                .filter(|status| *status >= 400),
        );
        if operation.is_memory() {
            let (path, body) = operation.memory_sample();
            let request = forgetful
                .ask(&operation.method, &path)
                .bearer_auth(&forgetful.key)
                .body(body);
            let off = Answer::of(request.send().await.unwrap()).await;
            off.assert_error(404, "memory_disabled");
            assert_described(&document, operation, &off);
            seen.insert(off.status);
        }
        let request = full
            .ask(&operation.method, &operation.sample())
            .bearer_auth(&full.key);
        let shed = Answer::of(request.send().await.unwrap()).await;
        if shed.status >= 400 {
            assert_described(&document, operation, &shed);
            seen.insert(shed.status);
        }
        let mut described = operation.statuses();
        described.retain(|status| *status >= 400 && *status != 500 && PROVOKED.contains(status));
        if operation.template == "/health/ready" {
            // Its 503 is a list of what is missing, and this daemon lacks nothing.
            described.remove(&503);
        }
        assert_eq!(seen, described, "{} {}", operation.method, operation.template);
        assert!(operation.statuses().contains(&500));
        assert_eq!(operation.is_public(), !operation.statuses().contains(&401));
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_route_has_its_good_answer() {
    let daemon = Daemon::start().await;
    let document = document(&daemon).await;
    let mut references = 0;
    each_reference(&document, &mut |reference| {
        references += 1;
        assert!(
            document.pointer(reference.strip_prefix('#').unwrap()).is_some(),
            "{reference}"
        );
    });
    assert!(references > 100, "{references}");
    for operation in operations(&document) {
        let responses = &operation.value["responses"];
        // What goes on in the background is accepted.
        let accepted = &responses["202"];
        let answer = responses.get("200").unwrap_or(accepted);
        let what = format!("{} {}", operation.method, operation.template);
        assert!(
            answer["content"]
                .as_object()
                .is_some_and(|content| !content.is_empty()),
            "{what}"
        );
        assert!(answer["headers"]["x-request-id"].is_object(), "{what}");
        assert!(
            !operation.value["summary"].as_str().unwrap_or_default().is_empty(),
            "{what}"
        );
    }
    let turn = &document["paths"][CHAT]["post"]["responses"]["200"];
    assert!(turn["content"]["text/event-stream"].is_object());
    assert!(turn["headers"]["x-run-id"].is_object());
}

#[tokio::test]
async fn headers_are_described_where_they_are_heeded() {
    let daemon = Setup::default()
        .config("[server]\nuser_header = \"x-end-user\"")
        .start()
        .await;
    let document = document(&daemon).await;
    for operation in operations(&document) {
        let parameters = operation.value["parameters"].as_array().unwrap();
        let parameters: Vec<&Value> = parameters
            .iter()
            .map(|value| resolved(&document, value))
            .collect();
        let has = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        for name in ["x-client-request-id", "x-stainless-retry-count"] {
            assert!(has(name), "{} has no {name}", operation.template);
        }
        let heeded: [(&str, &[&str]); 3] = [
            ("x-tidegate-mode", &[CHAT, "/v1/capabilities"]),
            ("x-tidegate-conversation", &[CHAT]),
            ("x-end-user", &[CHAT]),
        ];
        for (name, routes) in heeded {
            assert_eq!(
                has(name),
                routes.contains(&operation.template)
                    || (name == "x-end-user" && operation.template.starts_with("/v1/memory")),
                "{} and {name}",
                operation.template
            );
        }
        for parameter in parameters {
            assert!(
                !parameter["description"].as_str().unwrap_or_default().is_empty(),
                "{parameter}"
            );
        }
    }
    // The modes are those that are taken, and no other.
    let modes = &document["components"]["parameters"]["x-tidegate-mode"]["schema"]["enum"];
    for mode in modes.as_array().unwrap() {
        let body = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello there"}]});
        let request = daemon.ask("POST", CHAT).bearer_auth(&daemon.key).json(&body);
        let request = request.header("x-tidegate-mode", mode.as_str().unwrap());
        assert_eq!(request.send().await.unwrap().status(), 200, "{mode}");
        let report = daemon.ask("GET", "/v1/capabilities").bearer_auth(&daemon.key);
        let report = report.header("x-tidegate-mode", mode.as_str().unwrap()).send();
        let report: Value = report.await.unwrap().json().await.unwrap();
        // The key's own ceiling is `readonly`.
        let expected = if mode == "plan-only" {
            "plan-only"
        } else {
            "readonly"
        };
        assert_eq!(report["mode"]["effective"], expected, "{mode}: {report}");
    }
    let name = &document["components"]["parameters"]["x-tidegate-conversation"]["schema"];
    let longest = usize::try_from(name["maxLength"].as_u64().unwrap()).unwrap();
    for (bytes, status) in [(longest, 200), (longest + 1, 400)] {
        let body = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello there"}]});
        let request = daemon.ask("POST", CHAT).bearer_auth(&daemon.key).json(&body);
        let request = request.header("x-tidegate-conversation", "c".repeat(bytes));
        assert_eq!(request.send().await.unwrap().status(), status, "{bytes}");
    }
    let other = Daemon::start().await;
    let (_, plain) = other.get("/openapi.json").await;
    assert!(plain["components"]["parameters"]["x-end-user"].is_null());
}

#[tokio::test]
async fn each_way_to_send_a_key_is_described_and_opens() {
    let daemon = Daemon::start().await;
    let document = document(&daemon).await;
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    assert_eq!(schemes.len(), 3);
    assert_eq!(document["security"].as_array().unwrap().len(), 3);
    for scheme in schemes.values() {
        let request = daemon.ask("GET", "/v1/models");
        let request = match scheme["name"].as_str() {
            Some(header) => request.header(header, &daemon.key),
            None => request.bearer_auth(&daemon.key),
        };
        assert_eq!(request.send().await.unwrap().status(), 200, "{scheme}");
    }
}
